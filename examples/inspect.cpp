// What does this model do with position?
//
//   posenc_inspect config.json             a Hugging Face config
//   posenc_inspect model.gguf              the header of a GGUF file
//   posenc_inspect model.gguf --layer 5    one layer, with every pair in the table
//
// Prints, for each run of equal layers, the scheme, which dimensions form a pair, the base, the scaling, and
// how many tokens each pair needs for a whole turn, before and after scaling. A model that writes gibberish
// from the first token on has the wrong pairing; one that does so beyond some length has the wrong base or
// scaling.

#include <posenc/io/gguf_config.hpp>
#include <posenc/io/hf_config.hpp>

#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <numbers>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace {

using posenc::AxisLayout;
using posenc::Index;
using posenc::RotaryLayer;

constexpr std::size_t width = 80;       // of the screen
constexpr std::size_t rows_shown = 16;  // of a table, unless one layer is asked for
constexpr const char* indent = "    ";

// ---- Text

template <class... Values>
std::string format(const char* pattern, Values... values) {
  std::array<char, 512> line{};
  std::snprintf(line.data(), line.size(), pattern, values...);
  return line.data();
}

/// Few digits, and no exponent as long as it can be read without: 6.283, 57345, 1.83e+06.
std::string number(double value) {
  if (!std::isfinite(value)) return value > 0 ? "never" : format("%g", value);
  const double size = std::abs(value);
  if (size >= 9999.5 && size < 999999.5) return format("%.0f", value);
  return format("%.4g", value);
}
std::string number(Index value) { return std::to_string(value); }

/// "text text text" over several lines, each after the first with `hang` spaces in front.
std::string wrapped(const std::string& text, std::size_t first_column, std::size_t hang) {
  std::string out, word;
  std::size_t column = first_column;
  const auto put = [&] {
    if (word.empty()) return;
    if (column > hang && column + 1 + word.size() > width) {
      out += "\n" + std::string(hang, ' ');
      column = hang;
    } else if (!out.empty()) {
      out += ' ', ++column;
    }
    out += word, column += word.size();
    word.clear();
  };
  for (const char c : text) c == ' ' ? put() : word.push_back(c);
  put();
  return out;
}

std::string field(const char* name, const std::string& value) {
  const std::string start = format("%s%-12s", indent, name);
  return start + wrapped(value, start.size(), start.size()) + "\n";
}

/// "0-4, 6-10, 12"
std::string ranges(const std::vector<Index>& sorted) {
  std::string text;
  for (std::size_t i = 0; i < sorted.size();) {
    std::size_t last = i;
    while (last + 1 < sorted.size() && sorted[last + 1] == sorted[last] + 1) ++last;
    text += (text.empty() ? "" : ", ") + std::to_string(sorted[i]);
    if (last > i) text += "-" + std::to_string(sorted[last]);
    i = last + 1;
  }
  return text;
}

// ---- Rotary layers

std::string pairing(const RotaryLayer& layer, Index pairs) {
  using posenc::Pairing;
  if (!layer.pairing) return "not stated: half or adjacent, depending on how the weights are stored";
  const std::string half = format("(i, i + %lld)", static_cast<long long>(pairs));
  switch (*layer.pairing) {
    case Pairing::half: return "half, dimensions " + half;
    case Pairing::adjacent: return "adjacent, dimensions (2i, 2i + 1)";
    case Pairing::adjacent_to_half: return "adjacent_to_half: reads (2i, 2i + 1), writes " + half;
    case Pairing::adjacent_mismatched:
      return "adjacent_mismatched, (2i, 2i + 1) at the angles of a table in halves";
  }
  return "";
}

std::string scaling(const posenc::RotaryScaling& scaling) {
  struct Words {
    std::string operator()(const posenc::DefaultScaling&) const { return "none"; }
    std::string operator()(const posenc::LinearConfig& s) const {
      return "linear: all frequencies / " + number(s.factor);
    }
    std::string operator()(const posenc::DynamicNtkConfig& s) const {
      return "dynamic NTK: factor " + number(s.factor) + ", beyond " + number(s.max_position_embeddings) +
             " tokens; depends on the length of the sequence";
    }
    std::string operator()(const posenc::NtkAlphaConfig& s) const {
      return "NTK with a fixed alpha of " + number(s.alpha);
    }
    std::string operator()(const posenc::YarnConfig& s) const {
      std::string text = "YaRN: factor " + number(s.factor) + ", trained on " +
                         number(s.original_max_position_embeddings) + " tokens, beta " + number(s.beta_fast) +
                         " to " + number(s.beta_slow);
      if (!s.truncate) text += ", ramp not truncated";
      if (s.attention_factor) text += ", attention_factor " + number(*s.attention_factor);
      if (s.mscale) text += ", mscale " + number(*s.mscale);
      if (s.mscale_all_dim) text += ", mscale_all_dim " + number(*s.mscale_all_dim);
      return text;
    }
    std::string operator()(const posenc::LongRopeConfig& s) const {
      return "LongRoPE: one list of divisors up to " + number(s.original_max_position_embeddings) +
             " tokens, another beyond; chosen once per sequence";
    }
    std::string operator()(const posenc::Llama3Config& s) const {
      return "Llama 3 bands: factor " + number(s.factor) + ", trained on " +
             number(s.original_max_position_embeddings) + " tokens, " + number(s.low_freq_factor) + " to " +
             number(s.high_freq_factor) + " turns";
    }
    std::string operator()(const posenc::ProportionalConfig& s) const {
      return "proportional: the first " + number(100 * s.partial_rotary_factor) +
             " % of the pairs turn, with factor " + number(s.factor);
    }
    std::string operator()(const posenc::GgmlYarnConfig& s) const {
      if (s.ext_factor == 0) return "linear: all frequencies / " + number(1 / s.freq_scale);
      return "YaRN as in ggml: factor " + number(1 / s.freq_scale) + ", trained on " + number(s.n_ctx_orig) +
             " tokens, beta " + number(s.beta_fast) + " to " + number(s.beta_slow) + ", ext_factor " +
             number(s.ext_factor);
    }
  };
  return std::visit(Words{}, scaling);
}

std::string axes(const RotaryLayer& layer) {
  std::string sections;
  for (const Index section : layer.sections) sections += (sections.empty() ? "" : ", ") + number(section);
  const std::string apart = layer.axes_apart ? ", each in a part of the head with pairs of its own" : "";
  switch (layer.axes) {
    case AxisLayout::one: return "";
    case AxisLayout::sections: return "M-RoPE, sections of " + sections + " pairs";
    case AxisLayout::interleaved: return "M-RoPE, interleaved, " + sections + " pairs";
    case AxisLayout::ernie: return "ERNIE's M-RoPE: h and w alternate, then t; " + sections + " pairs";
    case AxisLayout::axial: return number(layer.axis_count) + " axes, one after the other" + apart;
    case AxisLayout::axial_interleaved: return number(layer.axis_count) + " axes, pair by pair" + apart;
    case AxisLayout::pixtral: return "2 axes that share one ladder (Pixtral)";
    case AxisLayout::dinov3: return "2 axes, coordinates in [-1, 1] (DINOv3)";
  }
  return "";
}

/// What the coordinates count.
const char* unit(const RotaryLayer& layer) {
  switch (layer.axes) {
    case AxisLayout::one: return "tokens";
    case AxisLayout::sections:
    case AxisLayout::interleaved:
    case AxisLayout::ernie: return "positions";
    case AxisLayout::dinov3: return "units";
    default: return "patches";
  }
}

/// Whether positions along the context turn the pairs.
bool is_text(const RotaryLayer& layer) {
  return layer.axes == AxisLayout::one || std::string(unit(layer)) == "positions";
}

double wavelength(double frequency) {
  return frequency == 0 ? HUGE_VAL : 2 * std::numbers::pi / std::abs(frequency);
}

/// A logarithmic axis of `size` characters.
class Plot {
 public:
  Plot(double least, double most, std::size_t size) : size_(size) {
    first_ = std::floor(std::log10(least)), last_ = std::ceil(std::log10(most));
    if (last_ <= first_) last_ = first_ + 1;
  }

  std::string row(double before, double after, double context) const {
    std::string line(size_, ' ');
    if (context > 0) line[column(context)] = '|';
    if (std::isfinite(before)) line[column(before)] = 'o';
    if (std::isfinite(after))
      line[column(after)] = column(before) == column(after) && std::isfinite(before) ? '*' : '#';
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  }

  /// Powers of ten where there is room.
  std::string ticks() const {
    std::string line(size_, ' ');
    std::size_t free = 0;
    for (double power = first_; power <= last_; ++power) {
      const std::string label =
          power >= 0 && power <= 3 ? format("%.0f", std::pow(10, power)) : format("1e%.0f", power);
      const std::size_t at = (std::min)(column(std::pow(10, power)), size_ - label.size());
      if (at < free) continue;
      line.replace(at, label.size(), label);
      free = at + label.size() + 1;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    return line;
  }

 private:
  std::size_t column(double value) const {
    const double part = (std::log10(value) - first_) / (last_ - first_);
    return static_cast<std::size_t>(std::lround(std::clamp(part, 0.0, 1.0) * static_cast<double>(size_ - 1)));
  }

  double first_ = 0, last_ = 1;
  std::size_t size_;
};

/// The pairs to show: all, or some from the first to the last.
std::vector<std::size_t> chosen(std::size_t pairs, bool all) {
  std::vector<std::size_t> rows;
  const std::size_t count = all || pairs <= rows_shown ? pairs : rows_shown;
  for (std::size_t r = 0; r < count; ++r) rows.push_back(count == 1 ? 0 : r * (pairs - 1) / (count - 1));
  return rows;
}

std::string table(const RotaryLayer& layer, const posenc::RotaryFrequencies& before,
                  const posenc::RotaryFrequencies& after, bool all) {
  const double context = is_text(layer) ? static_cast<double>(layer.max_position_embeddings.value_or(0)) : 0;
  const bool scaled = before.inv_freq != after.inv_freq, several = !after.axis.empty();
  double least = HUGE_VAL, most = (std::max)(context, 1.0);
  for (const auto* frequencies : {&before, &after})
    for (const double f : frequencies->inv_freq)
      if (const double w = wavelength(f); w < 1e15) least = (std::min)(least, w), most = (std::max)(most, w);
  if (!std::isfinite(least)) least = 1;

  std::string head = format("%s%5s", indent, "pair");
  if (several) head += "  axis";
  head += format("  %10s", scaled ? "unscaled" : "wavelength");
  if (scaled) head += format("  %10s  %6s", "scaled", "ratio");
  head += "  ";
  const Plot plot(least, most, width - head.size());
  std::string text = head + plot.ticks() + "\n";
  for (const std::size_t i : chosen(after.inv_freq.size(), all)) {
    const double w = wavelength(before.inv_freq[i]), s = wavelength(after.inv_freq[i]);
    std::string row = format("%s%5zu", indent, i);
    if (several) row += format("  %4d", after.axis[i]);
    row += format("  %10s", number(w).c_str());
    if (scaled)
      row += format("  %10s  %6s", number(s).c_str(),
                    std::isfinite(w) && std::isfinite(s) ? number(s / w).c_str() : "");
    text += row + "  " + plot.row(w, s, context) + "\n";
  }
  text += format("%s       %s%s\n", indent, scaled ? "o unscaled   # scaled   * both" : "* wavelength in ",
                 scaled ? "" : unit(layer));
  if (context > 0) text.insert(text.size() - 1, "   | the context");
  return text;
}

std::string describe(const RotaryLayer& layer, bool all) {
  RotaryLayer plain = layer;
  plain.scaling = posenc::DefaultScaling{};
  plain.freq_factors.clear();
  if (const auto* proportional = std::get_if<posenc::ProportionalConfig>(&layer.scaling);
      proportional != nullptr)
    plain.config.partial_rotary_factor = 1.0, plain.config.rotary_dim.reset();

  const Index context = layer.max_position_embeddings.value_or(0);
  // Dynamic NTK does nothing within the context: show what it does beyond.
  const auto* dynamic = std::get_if<posenc::DynamicNtkConfig>(&layer.scaling);
  const Index length =
      dynamic != nullptr ? (std::max)(context, 2 * dynamic->max_position_embeddings) : context;
  const posenc::RotaryFrequencies before = plain.frequencies(length), after = layer.frequencies(length);
  const auto pairs = static_cast<Index>(after.inv_freq.size());
  const Index first = layer.window.first(after.head_dim, after.rotary_dim());

  std::string text = field("pairing", pairing(layer, pairs));
  text += field("base", format("%.10g", layer.config.rope_theta));
  std::string how = scaling(layer.scaling);
  if (!layer.freq_factors.empty())
    how = (how == "none" ? "" : how + ", and ") + "divisors from the tensor rope_freqs, one per pair";
  text += field("scaling", how);
  text += field("rotated",
                number(after.rotary_dim()) + " of " + number(after.head_dim) + " dimensions of each head" +
                    (first > 0 ? ", from " + number(first) + " on" : "") + ": " + number(pairs) + " pairs");
  if (const std::string which = axes(layer); !which.empty()) text += field("axes", which);
  std::string also;
  if (layer.negated) also += ", turns the other way";
  if (layer.rotates_values) also += ", values are rotated too";
  if (layer.before_projection) also += ", hidden states are rotated before the projections";
  if (layer.inverse_on_output) also += ", the attention output is turned back";
  if (layer.column_first) also += ", columns come before rows";
  if (layer.first_position != 0) also += ", rows and columns count from " + number(layer.first_position);
  if (!also.empty()) text += field("also", also.substr(2));
  if (after.attention_factor != 1)
    text += field("magnitude", "cos and sin x " + number(after.attention_factor) +
                                   ", so scores of the rotated part x " +
                                   number(after.attention_factor * after.attention_factor));
  if (layer.softmax_scale != 1)
    text += field("softmax", "1/sqrt(" + number(layer.config.head_dim) + ") x " +
                                 number(layer.softmax_scale) + ", for the whole head");
  if (context > 0) text += field("context", number(context) + " tokens");

  double longest = 0;
  Index unfinished = 0, still = 0;
  for (const double f : after.inv_freq) {
    const double w = wavelength(f);
    if (!std::isfinite(w) || w >= 1e15) {
      ++still;
      continue;
    }
    longest = (std::max)(longest, w);
    if (w > static_cast<double>(context)) ++unfinished;
  }
  std::string line = number(longest) + " " + unit(layer);
  if (context > 0 && is_text(layer))
    line +=
        " = " + number(longest / static_cast<double>(context)) + " x the context: " +
        (unfinished == 0 ? "every pair makes a whole turn in it"
                         : number(unfinished) + " of " + number(pairs) + " pairs make no whole turn in it");
  if (still > 0) line += "; " + number(still) + " pairs do not turn";
  text += field("longest", line);
  if (posenc::depends_on_length(layer.scaling))
    text += field("table", "for a sequence of " + number(length) + " tokens" +
                               (dynamic != nullptr ? ", beyond the context" : ""));
  return text + "\n" + table(layer, before, after, all);
}

// ---- Other layers

std::string describe(const posenc::AlibiConfig& alibi, bool) {
  const std::vector<double> slopes = posenc::alibi_slopes(alibi.num_heads, alibi.alibi_bias_max);
  const auto [least, most] = std::minmax_element(slopes.begin(), slopes.end());
  const double weakest = *least * alibi.scale, strongest = *most * alibi.scale;
  std::string text = field("heads", number(alibi.num_heads));
  text += field("slopes", number(strongest) + " to " + number(weakest) + " per token of distance");
  text += field("reach", "a key weighs e^-10 less at a distance of " + number(10 / strongest) +
                             " tokens in the shortest-sighted head, " + number(10 / weakest) +
                             " in the farthest-sighted");
  if (alibi.scale != 1)
    text += field("scale", number(alibi.scale) + ", as the bias is added before the scores are scaled");
  return text;
}

std::string describe(const posenc::RelativeBucketsLayer& buckets, bool) {
  return field("heads", number(buckets.num_heads)) +
         field("buckets", number(buckets.num_buckets) + ", up to a distance of " +
                              number(buckets.max_distance) + ", " +
                              (buckets.bidirectional ? "both directions" : "towards the past"));
}

std::string describe(const posenc::NoPositionLayer&, bool) { return ""; }

std::string temperature(const posenc::AttentionTemperatureConfig& config,
                        const posenc::LayerPositions& layer) {
  const auto* rotary = std::get_if<RotaryLayer>(&layer.scheme);
  const Index end = rotary != nullptr && rotary->max_position_embeddings
                        ? *rotary->max_position_embeddings - 1
                        : static_cast<Index>(4 * config.length);
  constexpr const char* rules[] = {"ln(1 + floor((p + 1) / length))", "ln(1 + floor(p / length))",
                                   "ln(max(1, (p + 1) / length))"};
  return field("temperature",
               "queries x 1 + " + number(config.scale) + " " + rules[static_cast<std::size_t>(config.rule)] +
                   ", length " + number(config.length) + ": x " +
                   number(posenc::AttentionTemperature(config).value(end)) + " at position " + number(end));
}

std::string describe(const posenc::LayerPositions& layer, bool all) {
  constexpr const char* names[] = {"no position", "RoPE", "ALiBi", "relative buckets (T5)"};
  std::string text = std::string(names[layer.scheme.index()]) + (layer.type ? ", " + *layer.type : "") + "\n";
  if (layer.temperature) text += temperature(*layer.temperature, layer);
  return text + std::visit([&](const auto& scheme) { return describe(scheme, all); }, layer.scheme);
}

// ---- The model

std::string describe(const posenc::LearnedEmbedding& table) {
  constexpr const char* rules[] = {"row = position", "row = position + offset",
                                   "RoBERTa's: row = padding_idx + count of tokens so far",
                                   "OPT's: counts the mask, row = count + offset", "one row per patch"};
  std::string text = "a learned table of " + number(table.max_len) + " rows is added at the input; " +
                     rules[static_cast<std::size_t>(table.rule)];
  if (table.offset != 0) text += ", offset " + number(table.offset);
  if (table.padding_idx) text += ", padding_idx " + number(*table.padding_idx);
  if (table.class_rows > 0) text += ", " + number(table.class_rows) + " of them for class tokens";
  return text;
}
std::string describe(const posenc::SinusoidalConfig& config) {
  constexpr const char* layouts[] = {"interleaved", "in halves"};
  return "sinusoids of width " + number(*config.d_model) + ", base " + number(config.base) + ", " +
         layouts[static_cast<std::size_t>(config.layout)] + ", are added at the input";
}
std::string describe(const std::monostate&) { return ""; }

void print(const posenc::StackPositions& stack, std::optional<Index> only) {
  if (stack.layers.empty())
    std::printf("\n%s\n", stack.name.c_str());
  else
    std::printf("\n%s: %zu layer%s\n", stack.name.c_str(), stack.layers.size(),
                stack.layers.size() == 1 ? "" : "s");
  const auto sentence = [](const std::string& text) {
    if (!text.empty()) std::printf("  %s\n", wrapped(text, 2, 2).c_str());
  };
  sentence(std::visit([](const auto& embedding) { return describe(embedding); }, stack.embedding));
  sentence(stack.other_scheme.value_or(""));

  // Layers with the same description are one run.
  std::vector<std::pair<std::string, std::vector<Index>>> runs;
  for (std::size_t i = 0; i < stack.layers.size(); ++i) {
    if (only && *only != static_cast<Index>(i)) continue;
    std::string text = describe(stack.layers[i], only.has_value());
    const auto same =
        std::find_if(runs.begin(), runs.end(), [&](const auto& run) { return run.first == text; });
    if (same == runs.end())
      runs.emplace_back(std::move(text), std::vector<Index>{static_cast<Index>(i)});
    else
      same->second.push_back(static_cast<Index>(i));
  }
  for (const auto& [text, layers] : runs) {
    const std::size_t end = text.find('\n');
    const std::string head =
        (layers.size() == 1 ? "layer " : "layers ") + ranges(layers) + ": " + text.substr(0, end);
    std::printf("\n  %s%s", wrapped(head, 2, 4).c_str(), text.substr(end).c_str());
  }
}

posenc::ModelPositions read(const std::filesystem::path& path) {
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  const bool gguf = std::string(magic.data(), magic.size()) == "GGUF" || path.extension() == ".gguf";
  return gguf ? posenc::read_gguf(path) : posenc::read_hf_config(path);
}

void inspect(const std::filesystem::path& path, std::optional<Index> only) {
  const posenc::ModelPositions model = read(path);
  std::size_t most = 0;
  for (const posenc::StackPositions& stack : model.stacks) most = (std::max)(most, stack.layers.size());
  if (only && (*only < 0 || *only >= static_cast<Index>(most)))
    throw std::invalid_argument("--layer: expected a layer in [0, " + std::to_string(most) + "), got " +
                                number(*only));

  std::printf("%s: %s\n", path.filename().string().c_str(),
              model.model_type.empty() ? "(no model_type)" : model.model_type.c_str());
  for (const posenc::StackPositions& stack : model.stacks)
    if (!only || *only < static_cast<Index>(stack.layers.size())) print(stack, only);
  if (!model.warnings.empty()) std::printf("\nwarnings\n");
  for (const std::string& warning : model.warnings) std::printf("  - %s\n", wrapped(warning, 4, 4).c_str());
}

/// One line, whatever was in it.
int fail(std::string message) {
  if (const std::size_t at = message.find("posenc: "); at != std::string::npos) message.erase(at, 8);
  for (char& c : message)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  message.erase(message.find_last_not_of(' ') + 1);
  std::fprintf(stderr, "posenc_inspect: %s\n", message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("What does this model do with position?", "posenc_inspect");
  std::string path;
  std::optional<Index> layer;
  app.add_option("model", path, "config.json of Hugging Face, or a GGUF file")->required();
  app.add_option("--layer", layer, "only this layer, counted from 0, with every pair in the table");
  try {
    app.parse(argc, argv);
    inspect(path, layer);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return fail(error.what());
  } catch (const std::exception& error) {
    return fail(path + ": " + error.what());
  }
  return 0;
}
