// Spells Arabic names in Latin letters with a trained encoder-decoder of 6 + 6 layers: a model of OpenNMT,
// from a file of CTranslate2, on the transformer of examples/transformer.
//
//   posenc_transliterate model.bin           some names
//   posenc_transliterate model.bin محمد      others
//   posenc_transliterate model.bin --beam 4  the four likeliest spellings of each

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/error.hpp"
#include "models/transliterator.hpp"
#include "transformer/generation.hpp"
#include "translate/utf8.hpp"

namespace {

using models::Alphabet;
using models::InputError;
using models::Transliterator;
using transformer::Hypothesis;
using transformer::Index;
using transformer::Tokens;

constexpr Index most_letters = 100, most_beams = 64;

struct Options {
  std::string file;
  std::vector<std::string> names = {"محمد", "فاطمة", "يوسف", "بغداد", "آرثر", "نيوتن", "شكسبير", "موزارت"};
  Index beams = 1;
  std::string begins;
};

/// One spelling of a name.
struct Spelling {
  std::string text;
  double probability = 0;
  bool finished = false;
};

std::vector<std::string> words_of(const std::string& name) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at < name.size();) {
    const std::size_t end = std::min(name.find(' ', at), name.size());
    if (end > at) words.push_back(name.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

/// The spellings of one word, the likeliest first; one with greedy search.
std::vector<Spelling> spellings(const Transliterator& model, const std::string& word,
                                const Options& options) {
  const Tokens source = model.source.encode(word);
  const transformer::GenerationConfig config{.max_new_tokens = 2 * most_letters,
                                             .num_beams = options.beams,
                                             .prefix = model.target.encode(options.begins)};
  std::vector<Spelling> found;
  for (const Hypothesis& hypothesis :
       transformer::beam_search(model.network, std::span<const transformer::Token>(source), config))
    found.push_back(
        {model.target.decode(hypothesis.tokens), std::exp(hypothesis.log_probability), hypothesis.finished});
  return found;
}

/// A name of several words is spelled word by word: the model has seen words alone.
std::vector<Spelling> spell(const Transliterator& model, const std::string& name, const Options& options) {
  const std::vector<std::string> words = words_of(name);
  std::vector<Spelling> found = spellings(model, words[0], options);
  for (std::size_t n = 1; n < words.size(); ++n) {
    found.resize(1);
    const Spelling next = spellings(model, words[n], options)[0];
    found[0] = {found[0].text + " " + next.text, found[0].probability * next.probability,
                found[0].finished && next.finished};
  }
  return found;
}

void warn_of_unknown(const Transliterator& model, const std::string& name) {
  std::string unknown;
  for (std::size_t at = 0; at < name.size();) {
    const std::string letter = name.substr(at, translate::code_point(name, at).bytes);
    at += letter.size();
    if (letter != " " && model.source.number(letter) == model.source.unknown())
      unknown += (unknown.empty() ? "" : " ") + letter;
  }
  if (!unknown.empty())
    std::fprintf(stderr, "posenc_transliterate: not in the alphabet of the model: %s\n", unknown.c_str());
}

void run(const Options& options) {
  const Transliterator model = models::load_transliterator(options.file);
  const auto& config = model.network.config();
  const char* stored_as = model.stored_as == models::NumberType::i8    ? "int8, dequantised"
                          : model.stored_as == models::NumberType::i16 ? "int16, dequantised"
                                                                       : "float32";
  const Tokens begins = model.target.encode(options.begins);
  if (std::ranges::count(begins, model.target.unknown()) > 0)
    throw InputError("--begins: not letters of the model's target alphabet: " + options.begins);
  std::printf("%td + %td layers, d_model %td, %td heads, %td parameters (%s), %s\n\n",
              config.num_encoder_layers, config.num_decoder_layers, config.d_model, config.num_heads,
              model.network.parameters().count(), stored_as,
              options.beams == 1 ? "greedy" : ("beam of " + std::to_string(options.beams)).c_str());

  // Latin first: a line that starts with it runs from left to right on every terminal.
  std::printf("  %-16s %-12s %s\n", "spelling", "probability", "name");
  Index letters = 0;
  const auto start = std::chrono::steady_clock::now();
  for (const std::string& name : options.names) {
    warn_of_unknown(model, name);
    bool first = true;
    for (const Spelling& spelling : spell(model, name, options)) {
      letters += std::ssize(spelling.text);
      const std::string text = translate::padded(spelling.text + (spelling.finished ? "" : "..."), 16);
      std::printf(first ? "  %s %-12.4f %s\n" : "  %s %.4f\n", text.c_str(), spelling.probability,
                  name.c_str());
      first = false;
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("\n%zu name%s in %.1f ms, %.0f letters/s\n", options.names.size(),
              options.names.size() == 1 ? "" : "s", 1e3 * seconds.count(),
              static_cast<double>(letters) / seconds.count());
}

constexpr const char* description =
    "Spells Arabic names in Latin letters with a trained transformer: 6 + 6 layers,\n"
    "a CTranslate2 model (aren-transliteration of its tests: float32, int16 or int8).\n"
    "FILE is the model.bin, or its folder, which also holds source_vocabulary.txt\n"
    "and target_vocabulary.txt. Without names it spells some well-known ones.";

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(20); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: posenc_transliterate FILE [options] [name ...]\n";
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() || option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
};

/// Whether a byte of UTF-8 starts a letter.
bool starts_letter(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u; }

Options parse(CLI::App& app, int argc, char** argv) {
  Options o;
  app.name("posenc_transliterate");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("--help", "Print this and leave");
  app.add_option("FILE", o.file, "The model, or the folder that it lies in")->required();
  app.add_option("name", o.names, "Names in Arabic script, each in quotes if it has blanks");
  app.add_option("--beam", o.beams, "Keep the N likeliest spellings, and show them (1: greedy)")
      ->check(CLI::Range(Index{1}, most_beams).description(""))
      ->type_name("N");
  app.add_option("--begins", o.begins, "Letters that every spelling begins with")->type_name("ABC");
  app.parse(argc, argv);
  for (const std::string& name : o.names) {
    if (!translate::is_utf8(name)) throw InputError("a name is not UTF-8");
    const std::vector<std::string> words = words_of(name);
    if (words.empty()) throw InputError("a name is empty");
    for (const std::string& word : words)
      if (std::ranges::count_if(word, starts_letter) > most_letters)
        throw InputError("a name has more than 100 letters");
  }
  if (!translate::is_utf8(o.begins)) throw InputError("--begins: not UTF-8");
  if (std::ranges::count_if(o.begins, starts_letter) > most_letters)
    throw InputError("--begins: more than 100 letters");
  return o;
}

/// The message as one line.
int fail(std::string message) {
  if (const auto end = message.find('\n'); end != std::string::npos) message.resize(end);
  std::fprintf(stderr, "posenc_transliterate: %s\n", message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(description);
  try {
    run(parse(app, argc, argv));
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const std::exception& error) {  // a bad option, a bad file: one line
    return fail(error.what());
  }
}
