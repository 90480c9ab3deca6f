#pragma once
// What a .gguf file says about positions, as one ModelPositions. Where a key contradicts another, is missing,
// or is not known, the reader says so: in an error, or in a sentence of ModelPositions::warnings. Values are
// described as llama.cpp computes them, because that is what the file was written for.

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/core/error.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/power.hpp"
#include "posenc/io/gguf_architectures.hpp"
#include "posenc/io/gguf_metadata.hpp"
#include "posenc/io/model_positions.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// The keys about positions that GGUF has, without "{arch}.".
inline bool is_gguf_rope_key(std::string_view name) {
  static constexpr std::string_view known[] = {"rope.dimension_count",
                                               "rope.dimension_count_swa",
                                               "rope.dimension_sections",
                                               "rope.freq_base",
                                               "rope.freq_base_swa",
                                               "rope.scale_linear",
                                               "rope.scaling.type",
                                               "rope.scaling.factor",
                                               "rope.scaling.alpha",
                                               "rope.scaling.attn_factor",
                                               "rope.scaling.finetuned",
                                               "rope.scaling.original_context_length",
                                               "rope.scaling.yarn_ext_factor",
                                               "rope.scaling.yarn_log_multiplier",
                                               "rope.scaling.yarn_attn_factor",
                                               "rope.scaling.yarn_beta_fast",
                                               "rope.scaling.yarn_beta_slow"};
  return std::find(std::begin(known), std::end(known), name) != std::end(known);
}

/// Keys under attention. that have nothing to do with positions.
inline bool is_gguf_other_attention_key(std::string_view name) {
  static constexpr std::string_view known[] = {"causal",
                                               "clamp_kqv",
                                               "decay_lora_rank",
                                               "gate_lora_rank",
                                               "group_norm_epsilon",
                                               "group_norm_groups",
                                               "iclr_lora_rank",
                                               "kv_lora_rank",
                                               "layer_norm_epsilon",
                                               "layer_norm_rms_epsilon",
                                               "output_scale",
                                               "q_lora_rank",
                                               "scale",
                                               "shared_kv_layers",
                                               "value_length",
                                               "value_length_mla",
                                               "value_length_swa",
                                               "value_residual_mix_lora_rank",
                                               "value_scale",
                                               "sliding_window",
                                               "head_count_kv",
                                               "key_length",
                                               "key_length_mla",
                                               "key_length_swa",
                                               "head_count"};
  return name.starts_with("indexer.") ||
         std::find(std::begin(known), std::end(known), name) != std::end(known);
}

/// Typed access to the keys of one architecture, which remembers what was asked for.
class GgufKeys {
 public:
  GgufKeys(const GgufMetadata& file, std::string architecture)
      : file_(file), prefix_(std::move(architecture) + ".") {}

  std::string full(std::string_view name) const { return prefix_ + std::string(name); }
  bool used(const std::string& key) const { return used_.contains(key); }

  const GgufValue* find(std::string_view name) {
    const auto found = file_.values.find(full(name));
    if (found == file_.values.end()) return nullptr;
    used_.insert(found->first);
    return &found->second;
  }

  [[noreturn]] void missing(std::string_view name, const char* why) const {
    invalid(full(name), ": expected this key", why, ", but the file has none");
  }

  std::optional<Index> integer(std::string_view name, Index least, Index most) {
    const GgufValue* value = find(name);
    if (value == nullptr) return std::nullopt;
    const std::optional<std::int64_t> number = as_integer(*value);
    if (!number) invalid(full(name), ": expected an integer, got ", kind(*value));
    return in_range(name, *number, least, most);
  }

  std::optional<double> real(std::string_view name) {
    const GgufValue* value = find(name);
    if (value == nullptr) return std::nullopt;
    const double* number = std::get_if<double>(value);
    if (number == nullptr) invalid(full(name), ": expected a float, got ", kind(*value));
    if (!detail::is_finite(*number)) invalid(full(name), ": expected a finite number, got ", *number);
    return *number;
  }
  std::optional<double> positive(std::string_view name) {
    const std::optional<double> number = real(name);
    if (number && !(*number > 0)) invalid(full(name), ": expected a positive number, got ", *number);
    return number;
  }

  std::optional<bool> flag(std::string_view name) {
    const GgufValue* value = find(name);
    if (value == nullptr) return std::nullopt;
    const bool* truth = std::get_if<bool>(value);
    if (truth == nullptr) invalid(full(name), ": expected a bool, got ", kind(*value));
    return *truth;
  }

  std::optional<std::string> text(std::string_view name) {
    const GgufValue* value = find(name);
    if (value == nullptr) return std::nullopt;
    const std::string* found = std::get_if<std::string>(value);
    if (found == nullptr) invalid(full(name), ": expected a string, got ", kind(*value));
    return *found;
  }

  std::optional<std::vector<Index>> integers(std::string_view name, Index least, Index most) {
    const GgufValue* value = find(name);
    if (value == nullptr) return std::nullopt;
    const GgufList* list = std::get_if<GgufList>(value);
    // Lists of yes and no come as booleans or as integers, others as integers alone.
    if (list == nullptr || !list->kept || list->integers.size() != list->count ||
        (list->type == GgufType::boolean && most != 1))
      invalid(full(name), ": expected an array of integers, got ", kind(*value));
    std::vector<Index> numbers;
    for (const std::int64_t number : list->integers) numbers.push_back(in_range(name, number, least, most));
    return numbers;
  }

  bool is_list(std::string_view name) const {
    const auto found = file_.values.find(full(name));
    return found != file_.values.end() && std::holds_alternative<GgufList>(found->second);
  }

  /// One value per layer: from a list of as many, or one for all.
  std::optional<std::vector<Index>> per_layer(std::string_view name, Index layers, Index least, Index most) {
    if (!is_list(name)) {
      const std::optional<Index> one = integer(name, least, most);
      if (!one) return std::nullopt;
      return std::vector<Index>(static_cast<std::size_t>(layers), *one);
    }
    std::optional<std::vector<Index>> all = integers(name, least, most);
    if (static_cast<Index>(all->size()) != layers)
      invalid(full(name), ": expected one value per layer, ", layers, ", got ", all->size());
    return all;
  }

  static std::optional<std::int64_t> as_integer(const GgufValue& value) {
    if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
    const auto* number = std::get_if<std::uint64_t>(&value);
    if (number == nullptr) return std::nullopt;
    // Whatever is above an int64 is above any range asked for.
    constexpr std::int64_t most = (std::numeric_limits<std::int64_t>::max)();
    return *number >> 63 != 0 ? most : static_cast<std::int64_t>(*number);
  }

  static std::string kind(const GgufValue& value) {
    constexpr const char* names[] = {"a bool", "an integer", "an integer", "a float", "a string"};
    if (const GgufList* list = std::get_if<GgufList>(&value))
      return concat("an array of ", list->count, " (", gguf_type_name(list->type), " each)");
    return names[value.index()];
  }

 private:
  Index in_range(std::string_view name, std::int64_t number, Index least, Index most) const {
    if (number < least || number > most)
      invalid(full(name), ": expected an integer in [", least, ", ", most, "], got ", number);
    return static_cast<Index>(number);
  }

  const GgufMetadata& file_;
  std::string prefix_;
  std::set<std::string> used_;
};

/// One file on its way to ModelPositions.
class GgufModel {
 public:
  GgufModel(const GgufMetadata& file, const GgufArchitecture& architecture)
      : file_(file), arch_(architecture), keys_(file, std::string(architecture.name)) {}

  ModelPositions read() {
    using enum GgufScheme;
    model_.model_type = std::string(arch_.name);
    const bool is_recurrent = arch_.scheme == recurrent;
    layers_ = required("block_count", 1, gguf_most_layers);
    context_ = required("context_length", 1, std::int64_t{1} << 40);
    width_ = required("embedding_length", 1, std::int64_t{1} << 24);
    if (!is_recurrent) {
      const std::optional<std::vector<Index>> heads =
          keys_.per_layer("attention.head_count", layers_, 0, std::int64_t{1} << 16);
      if (!heads) keys_.missing("attention.head_count", "");
      heads_ = *heads;
      kv_heads_ =
          keys_.per_layer("attention.head_count_kv", layers_, 0, std::int64_t{1} << 16).value_or(heads_);
      for (std::size_t i = 0; i < heads_.size(); ++i)
        if (kv_heads_[i] > heads_[i])
          invalid(keys_.full("attention.head_count_kv"), ": expected at most as many heads as queries have, ",
                  heads_[i], ", got ", kv_heads_[i], " in layer ", i);
    }

    switch (arch_.scheme) {
      case norm:
      case neox:
      case mrope:
      case imrope:
      case norm_or_mrope:
      case neox_or_mrope: read_rotary(); break;
      case GgufScheme::baichuan:
        if (layers_ == 40) {
          read_alibi(8.0);
        } else {
          if (layers_ != 32)
            warn(concat("baichuan: with 32 layers it rotates, with 40 it has ALiBi; this file has ", layers_,
                        ", and is read as rotary"));
          read_rotary();
        }
        break;
      case learned: read_learned(); break;
      case alibi: read_alibi(keys_.positive("attention.max_alibi_bias").value_or(8.0)); break;
      case stated_alibi: read_stated_alibi(); break;
      case t5:
      case t5_encoder: read_t5(); break;
      case no_position: plain_stack(monostate, [](std::size_t) { return NoPositionLayer{}; }); break;
      case recurrent:
        plain_stack(monostate, [](std::size_t) { return NoPositionLayer{}; });
        for (LayerPositions& layer : model_.stacks.front().layers) layer.type = "recurrent";
        break;
      case refused: break;
    }
    report_unused();
    return std::move(model_);
  }

 private:
  static constexpr std::monostate monostate{};

  void warn(std::string sentence) { model_.warnings.push_back(std::move(sentence)); }

  Index required(const char* name, Index least, Index most) {
    const std::optional<Index> value = keys_.integer(name, least, most);
    if (!value) keys_.missing(name, "");
    return *value;
  }

  template <class Embedding, class Scheme>
  void plain_stack(const Embedding& embedding, const Scheme& scheme) {
    StackPositions stack{.name = "model", .embedding = embedding, .layers = {}};
    for (std::size_t i = 0; i < static_cast<std::size_t>(layers_); ++i) {
      LayerPositions layer{.type = {}, .scheme = NoPositionLayer{}};
      if (!has_attention(i))
        layer.type = "recurrent";
      else
        layer.scheme = scheme(i);
      stack.layers.push_back(std::move(layer));
    }
    model_.stacks.push_back(std::move(stack));
  }

  /// Hybrid models have zero heads where a layer is no attention.
  bool has_attention(std::size_t layer) const { return heads_.empty() || kv_heads_[layer] > 0; }

  // Learned tables.

  void read_learned() {
    const auto found = file_.tensors.find("position_embd.weight");
    LearnedEmbedding table{.max_len = context_};
    if (found != file_.tensors.end()) {
      const std::vector<std::uint64_t>& shape = found->second.shape;
      if (shape.size() != 2 || shape[0] != static_cast<std::uint64_t>(width_) || shape[1] < 1 ||
          shape[1] > std::uint64_t{1} << 40)
        invalid("position_embd.weight: expected a table of width ", width_);
      table.max_len = static_cast<Index>(shape[1]);
      if (table.max_len != context_)
        warn(concat("position_embd.weight has ", table.max_len, " rows, and ", keys_.full("context_length"),
                    " is ", context_, ": the table counts"));
    } else if (!file_.tensors.empty()) {
      invalid("position_embd.weight: expected this tensor in a file of architecture ",
              gguf_quoted(arch_.name));
    } else {
      warn(concat("the file lists no tensors: the learned table is taken to have context_length rows, ",
                  context_));
    }
    plain_stack(table, [](std::size_t) { return NoPositionLayer{}; });
  }

  // ALiBi.

  void read_alibi(double bias_max) {
    plain_stack(monostate, [&](std::size_t i) {
      return AlibiConfig{.num_heads = heads_[i], .alibi_bias_max = bias_max};
    });
  }

  void read_stated_alibi() {
    const std::optional<double> bias_max = keys_.real("attention.max_alibi_bias");
    if (bias_max && *bias_max < 0)
      invalid(keys_.full("attention.max_alibi_bias"), ": expected at least 0, got ", *bias_max);
    const bool table = file_.tensors.contains("position_embd.weight");
    if (bias_max.value_or(0) > 0) {
      if (table) invalid("position_embd.weight: expected either ALiBi or a learned table, got both");
      read_alibi(*bias_max);
    } else if (table) {
      read_learned();
    } else {
      keys_.missing("attention.max_alibi_bias", " or a tensor position_embd.weight");
    }
  }

  // T5.

  void read_t5() {
    const std::optional<Index> buckets = keys_.integer("attention.relative_buckets_count", 2, 65536);
    if (!buckets) keys_.missing("attention.relative_buckets_count", "");
    const auto stack = [&](const char* name, Index layers, bool bidirectional) {
      StackPositions positions{.name = name, .embedding = monostate, .layers = {}};
      for (Index i = 0; i < layers; ++i)
        positions.layers.push_back(
            {.type = {},
             .scheme = RelativeBucketsLayer{
                 .num_heads = heads_[static_cast<std::size_t>((std::min)(i, layers_ - 1))],
                 .num_buckets = *buckets,
                 .max_distance = 128,
                 .bidirectional = bidirectional}});
      model_.stacks.push_back(std::move(positions));
    };
    stack("encoder", layers_, true);
    if (arch_.scheme == GgufScheme::t5)
      stack("decoder", keys_.integer("decoder_block_count", 1, gguf_most_layers).value_or(layers_), false);
    warn("the header states no largest distance for the buckets: 128, as llama.cpp has it");
  }

  // Rotary.

  bool is_mla() const {
    return arch_.name == "deepseek2" || arch_.name == "deepseek32" || arch_.name == "glm-dsa" ||
           arch_.name == "mistral4" || arch_.name == "minicpm3" || arch_.name == "plm";
  }

  /// The width of a head, as its queries are stored.
  Index head_dim() {
    const std::optional<Index> mla = keys_.integer("attention.key_length_mla", 0, gguf_widest_head);
    if (mla.value_or(0) > 0) return *mla;
    if (const auto stated = keys_.integer("attention.key_length", 2, gguf_widest_head)) return *stated;
    const Index heads = *std::max_element(heads_.begin(), heads_.end());
    if (heads < 1) invalid(keys_.full("attention.head_count"), ": expected a layer with heads, got none");
    if (width_ % heads != 0 || width_ / heads > gguf_widest_head)
      invalid(keys_.full("embedding_length"), ": expected a multiple of attention.head_count, ", heads,
              ", as there is no attention.key_length, with heads of at most ", gguf_widest_head, ", got ",
              width_);
    return width_ / heads;
  }

  Index rotary_dim(const char* name, Index stated, Index head) {
    if (stated < 2 || stated % 2 != 0 || stated > head)
      invalid(keys_.full(name), ": expected an even number in [2, ", head, "], the width of a head, got ",
              stated);
    return stated;
  }

  /// true for the layers whose window slides, or nothing where all layers are alike.
  std::vector<bool> sliding_layers() {
    using enum GgufMix;
    const bool listed_here = keys_.is_list("attention.sliding_window_pattern");
    const std::optional<Index> window = keys_.integer("attention.sliding_window", 0, std::int64_t{1} << 40);
    if (has(arch_.mix, listed) && !listed_here)
      keys_.missing("attention.sliding_window_pattern", ", an array with the kind of each layer,");
    if (listed_here) {
      const std::optional<std::vector<Index>> kinds =
          keys_.per_layer("attention.sliding_window_pattern", layers_, 0, 1);
      return {kinds->begin(), kinds->end()};
    }
    if (!has(arch_.mix, periodic)) {
      if (keys_.integer("attention.sliding_window_pattern", 0, gguf_most_layers))
        warn(concat(keys_.full("attention.sliding_window_pattern"), ": left unused, as all layers of ",
                    std::string(arch_.name), " are alike"));
      return {};
    }
    // A stated window of zero switches the mixture off; a missing one does so only where it is optional.
    if (!has(arch_.mix, windowless) && (window ? *window == 0 : !has(arch_.mix, always))) return {};
    const Index period =
        keys_.integer("attention.sliding_window_pattern", 1, gguf_most_layers).value_or(arch_.period);
    std::vector<bool> sliding;
    for (Index i = 0; i < layers_; ++i)
      sliding.push_back(has(arch_.mix, first_full) ? i % period != 0 : i % period != period - 1);
    return sliding;
  }

  /// true for layers of a hybrid that are no attention.
  bool is_linear(std::size_t layer) {
    if (!has_attention(layer)) return true;
    if (recurrent_.empty() && has(arch_.mix, GgufMix::linear)) {
      recurrent_ = keys_.is_list("attention.recurrent_layers")
                       ? *keys_.per_layer("attention.recurrent_layers", layers_, 0, 1)
                       : std::vector<Index>();
      const Index interval =
          keys_.integer("full_attention_interval", 1, gguf_most_layers).value_or(arch_.period);
      for (Index i = 0; static_cast<Index>(recurrent_.size()) < layers_; ++i)
        recurrent_.push_back((i + 1) % interval != 0 ? 1 : 0);
    }
    return !recurrent_.empty() && recurrent_[layer] != 0;
  }

  std::optional<std::vector<double>> rope_tensor(const char* name) const {
    const auto found = file_.rope_tensors.find(name);
    if (found == file_.rope_tensors.end()) return std::nullopt;
    for (std::size_t i = 0; i < found->second.size(); ++i)
      if (detail::is_nan(found->second[i]) || found->second[i] <= 0)
        invalid(name, "[", i, "]: expected a positive divisor, got ", found->second[i]);
    return found->second;
  }

  void read_rotary() {
    RotaryLayer full;
    full.config.head_dim = head_dim();
    full.max_position_embeddings = context_;
    const std::optional<Index> width = keys_.integer("rope.dimension_count", 0, gguf_widest_head);
    if (!width && is_mla()) keys_.missing("rope.dimension_count", "");
    Index rotated =
        rotary_dim("rope.dimension_count", width.value_or(full.config.head_dim), full.config.head_dim);
    const Index sliding_default = rotated;
    if (arch_.name == "step35") {
      rotated = rotary_dim("rope.dimension_count", rotated / 2, full.config.head_dim);
      warn("step35: full-attention layers rotate half of rope.dimension_count");
    }
    if (rotated != full.config.head_dim) full.config.rotary_dim = rotated;
    if (is_mla()) full.window = Window::trailing();
    const std::optional<double> base = keys_.positive("rope.freq_base");
    if (!base) warn(concat(keys_.full("rope.freq_base"), " is absent: 10000, the default of llama.cpp"));
    full.config.rope_theta = base.value_or(10000.0);
    read_axes(full, rotated / 2);
    read_scaling(full);
    read_factors(full, rotated / 2);

    const std::vector<bool> sliding = sliding_layers();
    const bool mixed = std::find(sliding.begin(), sliding.end(), true) != sliding.end();
    const RotaryLayer slide = mixed ? sliding_layer(full, sliding_default) : full;
    const bool rotates = rope_switch();

    // Whatever is wrong with the numbers shows here, not at the first use.
    if (rotates) {
      full.frequencies(context_);
      slide.frequencies(context_);
    }

    const std::optional<AttentionTemperatureConfig> temperature = read_temperature();
    StackPositions stack{.name = "model", .embedding = monostate, .layers = {}};
    for (std::size_t i = 0; i < static_cast<std::size_t>(layers_); ++i) {
      LayerPositions layer{.type = {}, .scheme = NoPositionLayer{}};
      const bool slides = mixed && sliding[i],
                 no_rope = mixed && !slides && has(arch_.mix, GgufMix::no_rope_full);
      if (is_linear(i)) {
        layer.type = "recurrent";
      } else {
        if (has(arch_.mix, GgufMix::linear)) layer.type = "full_attention";
        if (mixed && !has(arch_.mix, GgufMix::windowless))
          layer.type = !slides                  ? "full_attention"
                       : arch_.name == "llama4" ? "chunked_attention"
                                                : "sliding_attention";
        if (rotates && !no_rope) layer.scheme = slides ? slide : full;
        if (temperature && (arch_.name != "llama4" || no_rope)) layer.temperature = temperature;
      }
      stack.layers.push_back(std::move(layer));
    }
    model_.stacks.push_back(std::move(stack));
  }

  /// Granite files say in rope.scaling.finetuned whether they rotate at all.
  bool rope_switch() {
    const std::optional<bool> finetuned = keys_.flag("rope.scaling.finetuned");
    if (!arch_.name.starts_with("granite") || finetuned.value_or(true)) return true;
    warn(concat(keys_.full("rope.scaling.finetuned"),
                " is false: no layer rotates, as llama.cpp reads Granite"));
    return false;
  }

  void read_axes(RotaryLayer& layer, Index pairs) {
    using enum GgufScheme;
    const GgufScheme scheme = arch_.scheme;
    layer.pairing = scheme == norm || scheme == norm_or_mrope || scheme == GgufScheme::baichuan
                        ? Pairing::adjacent
                        : Pairing::half;
    if (scheme == norm || scheme == neox || scheme == GgufScheme::baichuan) return;
    const char* name = "rope.dimension_sections";
    std::optional<std::vector<Index>> sections = keys_.integers(name, 0, gguf_widest_head);
    if (!sections && (scheme == mrope || scheme == imrope)) keys_.missing(name, "");
    if (!sections || std::all_of(sections->begin(), sections->end(), [](Index s) { return s == 0; })) {
      if (sections && (scheme == mrope || scheme == imrope))
        invalid(keys_.full(name), ": expected sections that sum to the number of pairs, ", pairs,
                ", got zeros");
      return;
    }
    if (sections->size() < 3 || sections->size() > 4)
      invalid(keys_.full(name), ": expected 3 or 4 sections, got ", sections->size());
    if (sections->size() == 4 && sections->back() == 0) sections->pop_back();
    Index sum = 0;
    for (const Index section : *sections) sum += section;
    if (sum != pairs)
      invalid(keys_.full(name), ": expected sections that sum to the number of pairs, ", pairs, ", got ",
              sum);
    layer.pairing = Pairing::half;
    layer.axes = scheme == imrope ? AxisLayout::interleaved : AxisLayout::sections;
    layer.sections = *sections;
    if (scheme != imrope) return;
    if (sections->size() != 3)
      invalid(keys_.full(name), ": expected a fourth section of 0 for interleaved axes, got ",
              sections->back());
    if (3 * (*sections)[1] > pairs + 1 || 3 * (*sections)[2] > pairs)
      invalid(keys_.full(name), ": expected sections that can take turns among ", pairs, " pairs, got ",
              (*sections)[1], " and ", (*sections)[2]);
    for (Index i = 0; i < pairs; ++i)
      if (i >= 3 * (*sections)[static_cast<std::size_t>(i % 3)]) {
        warn(concat("rope.dimension_sections: pair ", i,
                    " and some after it follow time, as in the model; ggml turns them by a fourth "
                    "coordinate, which is 0"));
        break;
      }
  }

  void read_scaling(RotaryLayer& layer) {
    const std::string type = keys_.text("rope.scaling.type").value_or("");
    if (type != "" && type != "none" && type != "linear" && type != "yarn" && type != "longrope")
      invalid(keys_.full("rope.scaling.type"), ": expected none, linear, yarn or longrope, got ",
              gguf_quoted(type));
    const double factor = read_factor(type);
    const double attn_factor = keys_.positive("rope.scaling.attn_factor").value_or(1.0);
    const std::optional<Index> stated =
        keys_.integer("rope.scaling.original_context_length", 1, std::int64_t{1} << 40);
    original_ = stated.value_or(context_);
    const bool lists =
        file_.rope_tensors.contains("rope_factors_long") || file_.rope_tensors.contains("rope_factors_short");

    if (type == "longrope" || lists) {
      if (type == "yarn")
        invalid(keys_.full("rope.scaling.type"), ": expected no rope_factors_long in a file with yarn");
      if (type != "longrope")
        warn(
            "rope_factors_long and _short are there, so this is LongRoPE, though rope.scaling.type does not "
            "say so");
      if (factor != 1.0)
        invalid(keys_.full("rope.scaling.factor"), ": expected none beside LongRoPE's lists, got ", factor);
      if (!stated)
        warn(concat(
            "rope.scaling.original_context_length is absent: the long list applies beyond context_length, ",
            context_));
      read_longrope(layer);
      return;
    }
    if (type == "yarn") {
      read_yarn(layer, factor, attn_factor);
    } else if (attn_factor != 1.0) {
      layer.scaling = GgmlYarnConfig{.freq_scale = 1 / factor, .attn_factor = attn_factor};
    } else if (factor != 1.0) {
      layer.scaling = LinearConfig{factor};
    }
    read_alpha(layer);
  }

  double read_factor(const std::string& type) {
    std::optional<double> factor = keys_.real("rope.scaling.factor");
    const std::optional<double> older = keys_.real("rope.scale_linear");
    for (const auto& [name, value] : {std::pair{"rope.scaling.factor", factor}, {"rope.scale_linear", older}})
      if (value && *value < 0) invalid(keys_.full(name), ": expected a positive number, got ", *value);
    if (factor && older && *factor != *older)
      warn(concat("rope.scaling.factor, ", *factor, ", wins over rope.scale_linear, ", *older));
    if (!factor) factor = older;
    if (type == "yarn" && !factor) keys_.missing("rope.scaling.factor", " with yarn");
    const double value = factor.value_or(1.0) == 0 ? 1.0 : factor.value_or(1.0);  // 0 stands for none
    if (type == "none" && value != 1.0) {
      warn(concat("rope.scaling.type none wins over a factor of ", value, ": nothing is scaled"));
      return 1.0;
    }
    return value;
  }

  /// llama.cpp's magnitude: 1 + 0.1 ln s as in the paper, or DeepSeek's ratio, times attn_factor. ggml
  /// multiplies by 1 + 0.1 ln s once more, so that is divided out beforehand.
  void read_yarn(RotaryLayer& layer, double factor, double attn_factor) {
    if (!(factor >= 1))
      invalid(keys_.full("rope.scaling.factor"), ": expected at least 1 with yarn, got ", factor);
    if (!keys_.find("rope.scaling.original_context_length"))
      warn(concat("rope.scaling.original_context_length is absent: context_length, ", context_,
                  ", takes its place"));
    const double ext_factor = keys_.real("rope.scaling.yarn_ext_factor").value_or(1.0);
    if (ext_factor < 0)
      invalid(keys_.full("rope.scaling.yarn_ext_factor"), ": expected at least 0, got ", ext_factor);
    double log_multiplier = keys_.real("rope.scaling.yarn_log_multiplier").value_or(0.0);
    if (log_multiplier < 0)
      invalid(keys_.full("rope.scaling.yarn_log_multiplier"), ": expected at least 0, got ", log_multiplier);
    const bool deepseek = arch_.name == "deepseek2" || arch_.name == "deepseek2-ocr" ||
                          arch_.name == "deepseek32" || arch_.name == "glm-dsa" || arch_.name == "mistral4";
    if (deepseek) {
      log_multiplier *= 10;  // the converter stores a tenth of mscale_all_dim
      if (log_multiplier == 0)
        warn("rope.scaling.yarn_log_multiplier is absent: the softmax scale is left as it is");
    } else if (arch_.name != "mistral3" && log_multiplier != 0) {
      warn(concat("rope.scaling.yarn_log_multiplier: left unused, as llama.cpp does not read it for ",
                  std::string(arch_.name)));
      log_multiplier = 0;
    }
    double magnitude = yarn_magnitude(factor);
    if (log_multiplier != 0) {
      const double all = yarn_magnitude(factor, log_multiplier);
      const double mscale = arch_.name == "deepseek2" && log_multiplier != 1 ? log_multiplier : 1.0;
      magnitude = yarn_magnitude(factor, mscale) / all;
      if (deepseek) layer.softmax_scale = magnitude * attn_factor * all * magnitude * attn_factor * all;
    }
    if (keys_.find("rope.scaling.yarn_attn_factor") && keys_.real("rope.scaling.yarn_attn_factor") != 1.0)
      warn("rope.scaling.yarn_attn_factor: left unused, as llama.cpp computes its own");
    layer.scaling = GgmlYarnConfig{
        .freq_scale = 1 / factor,
        .n_ctx_orig = original_,
        .ext_factor = ext_factor,
        .attn_factor = ext_factor == 0 ? attn_factor
                                       : detail::quotient(magnitude * attn_factor,
                                                          1 + detail::product(0.1, detail::log_of(factor))),
        .beta_fast = keys_.positive("rope.scaling.yarn_beta_fast").value_or(32.0),
        .beta_slow = keys_.positive("rope.scaling.yarn_beta_slow").value_or(1.0)};
    if (arch_.name == "gpt-oss")
      warn(
          "gpt-oss was trained with a ramp between fractions of pairs (truncate: false); ggml rounds it to "
          "whole pairs");
  }

  void read_longrope(RotaryLayer& layer) {
    const std::optional<std::vector<double>> shorts = rope_tensor("rope_factors_short"),
                                             longs = rope_tensor("rope_factors_long");
    if (!shorts) invalid("rope_factors_short: expected this tensor with LongRoPE, but the file has none");
    if (!longs) invalid("rope_factors_long: expected this tensor with LongRoPE, but the file has none");
    LongRopeConfig scaling{.short_factor = *shorts,
                           .long_factor = *longs,
                           .original_max_position_embeddings = original_,
                           .factor = static_cast<double>(context_) / static_cast<double>(original_)};
    scaling.attention_factor = keys_.positive("rope.scaling.attn_factor");
    if (!scaling.attention_factor && scaling.factor > 1)
      warn(
          "rope.scaling.attn_factor is absent: the magnitude is LongRoPE's formula, where llama.cpp takes 1");
    layer.scaling = std::move(scaling);
  }

  void read_alpha(RotaryLayer& layer) {
    const std::optional<double> alpha = keys_.real("rope.scaling.alpha");
    if (!alpha || *alpha == 0) return;
    if (arch_.name != "hunyuan_vl") {
      warn(concat("rope.scaling.alpha: left unused, as llama.cpp does not read it for ",
                  std::string(arch_.name)));
      return;
    }
    if (*alpha < 0) invalid(keys_.full("rope.scaling.alpha"), ": expected a positive number, got ", *alpha);
    if (!std::holds_alternative<DefaultScaling>(layer.scaling))
      invalid(keys_.full("rope.scaling.alpha"), ": expected no other scaling beside it, got ",
              rope_type(layer.scaling));
    layer.scaling = NtkAlphaConfig{*alpha};
  }

  void read_factors(RotaryLayer& layer, Index pairs) {
    std::optional<std::vector<double>> factors = rope_tensor("rope_freqs");
    if (!factors) {
      if (arch_.name == "gemma4" && !file_.tensors.empty())
        invalid("rope_freqs: expected this tensor in a file of architecture \"gemma4\"");
      return;
    }
    if (std::holds_alternative<LongRopeConfig>(layer.scaling))
      invalid("rope_freqs: expected either this tensor or LongRoPE's two, got both");
    // step35: one tensor for layers of several widths, of which each takes the front.
    const bool prefix = arch_.name == "step35" && static_cast<Index>(factors->size()) > pairs;
    if (prefix) factors->resize(static_cast<std::size_t>(pairs));
    if (static_cast<Index>(factors->size()) != pairs)
      invalid("rope_freqs: expected ", pairs, " divisors, one per pair, got ", factors->size());
    layer.freq_factors = std::move(*factors);
  }

  RotaryLayer sliding_layer(const RotaryLayer& full, Index default_width) {
    RotaryLayer slide = full;
    const Index head =
        keys_.integer("attention.key_length_swa", 2, gguf_widest_head).value_or(full.config.head_dim);
    const Index rotated = rotary_dim(
        "rope.dimension_count_swa",
        keys_.integer("rope.dimension_count_swa", 0, gguf_widest_head).value_or(default_width), head);
    slide.config.head_dim = head;
    slide.config.rotary_dim.reset();
    if (rotated != head) slide.config.rotary_dim = rotated;
    const bool own = has(arch_.mix, GgufMix::own_base);
    const std::optional<double> base = keys_.positive("rope.freq_base_swa");
    slide.config.rope_theta = base.value_or(own ? 10000.0 : full.config.rope_theta);
    if (own && !base)
      warn(concat(keys_.full("rope.freq_base_swa"), " is absent: 10000, the default of llama.cpp"));
    if (own || has(arch_.mix, GgufMix::scaled_full_only)) slide.scaling = DefaultScaling{};
    if (has(arch_.mix, GgufMix::factors_full_only)) slide.freq_factors.clear();
    return slide;
  }

  std::optional<AttentionTemperatureConfig> read_temperature() {
    if (arch_.name == "llama4")
      return AttentionTemperatureConfig{.rule = TemperatureRule::llama4, .scale = 0.1, .length = 8192};
    if (arch_.name != "mistral3" && arch_.name != "mistral4" && arch_.name != "deepseek2")
      return std::nullopt;
    const std::optional<double> scale = keys_.real("attention.temperature_scale");
    const std::optional<Index> length =
        keys_.integer("attention.temperature_length", 0, std::int64_t{1} << 40);
    if (!scale || *scale == 0) {
      if (length.value_or(0) != 0)
        warn("attention.temperature_length: left unused, as there is no temperature_scale");
      return std::nullopt;
    }
    if (arch_.name == "mistral3" && length && *length != original_)
      warn(concat("attention.temperature_length, ", *length,
                  ", is left unused: llama.cpp takes the original context, ", original_));
    const Index at = arch_.name == "mistral3" ? original_ : length.value_or(0);
    if (at == 0) keys_.missing("attention.temperature_length", " beside temperature_scale");
    return AttentionTemperatureConfig{
        .rule = TemperatureRule::ministral3, .scale = *scale, .length = static_cast<double>(at)};
  }

  // What is left.

  void report_unused() {
    const std::string prefix = keys_.full("");
    for (const auto& [key, value] : file_.values) {
      if (keys_.used(key)) continue;
      const std::size_t dot = key.find('.');
      const std::string_view name =
          std::string_view(key).substr(dot == std::string::npos ? key.size() : dot + 1);
      if (!key.starts_with(prefix)) {
        if (is_gguf_rope_key(name))
          warn(gguf_quoted(key) + ": left unused, as it belongs to another architecture");
        continue;
      }
      if (name.starts_with("rope.")) {
        if (!is_gguf_rope_key(name))
          invalid(gguf_quoted(key), ": expected no rope key that posenc does not know");
        warn(key + ": left unused, as nothing in " + std::string(arch_.name) + " asks for it");
      } else if (name.starts_with("attention.") && !is_gguf_other_attention_key(name.substr(10))) {
        warn(gguf_quoted(key) + ": left unused, as nothing in " + std::string(arch_.name) + " asks for it");
      }
    }
    for (const auto& [name, tensor] : file_.tensors)
      if (name.starts_with("rope") && !rope_tensor_name(name))
        invalid("tensor ", gguf_quoted(name), ": expected no rope tensor that posenc does not know");
    if (!uses_rope_tensors())
      for (const auto& [name, factors] : file_.rope_tensors)
        warn(name + ": left unused, as nothing in " + std::string(arch_.name) + " rotates");
  }

  bool uses_rope_tensors() const {
    for (const StackPositions& stack : model_.stacks)
      for (const LayerPositions& layer : stack.layers)
        if (std::holds_alternative<RotaryLayer>(layer.scheme)) return true;
    return false;
  }

  const GgufMetadata& file_;
  const GgufArchitecture& arch_;
  GgufKeys keys_;
  ModelPositions model_;
  Index layers_ = 0, context_ = 0, width_ = 0, original_ = 0;
  std::vector<Index> heads_, kv_heads_, recurrent_;
};

}  // namespace detail

/// What the header says about positions. Throws std::invalid_argument for an architecture that is not known,
/// keys that are missing, of the wrong type or contradictory, and rope keys that are not known.
inline ModelPositions model_positions_from_gguf(const GgufMetadata& file) {
  const auto found = file.values.find("general.architecture");
  if (found == file.values.end())
    detail::invalid("general.architecture: expected this key, but the file has none");
  const std::string* name = std::get_if<std::string>(&found->second);
  if (name == nullptr)
    detail::invalid("general.architecture: expected a string, got ", detail::GgufKeys::kind(found->second));
  return detail::GgufModel(file, detail::gguf_architecture(*name)).read();
}

/// The same from a file.
inline ModelPositions read_gguf(const std::filesystem::path& path) {
  return model_positions_from_gguf(read_gguf_metadata(path));
}

}  // namespace v0
}  // namespace posenc
