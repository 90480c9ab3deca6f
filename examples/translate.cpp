// A transformer that learns to translate English to Hindi in a minute, and what becomes of it without
// positions.
//
//   posenc_translate                         learn for a minute, then translate
//   posenc_translate "the man bit the dog"   translate at once, with the model of the repository
//   posenc_translate --compare               the same model with each way to encode position

#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transformer/generation.hpp"
#include "transformer/threads.hpp"
#include "transformer/transformer.hpp"
#include "translate/corpus.hpp"
#include "translate/learn.hpp"
#include "translate/model_file.hpp"
#include "translate/terminal.hpp"
#include "translate/tokenizer.hpp"

#ifndef POSENC_TRANSLATE_MODEL
#define POSENC_TRANSLATE_MODEL "examples/translate/model.safetensors"
#endif

namespace {

using namespace translate;
using transformer::PositionScheme;

std::atomic<bool> stop{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler sets it");

struct Options {
  std::vector<std::string> sentences;
  std::string scheme = "sinusoidal", pairs, save, load, report;
  double seconds = 60;
  Index steps = 0;
  std::uint64_t seed = 1;
  int seeds = 1, threads = 0;
  bool train = false, compare = false, attention = false, paper_base = false;
  bool learns = false;  // some option asks for training
};

/// What one training run came to.
struct Run {
  std::string scheme;
  std::uint64_t seed = 0;
  Progress last;
  Index parameters = 0, position_parameters = 0;
  ExactMatch held_out, twins, longer;
};

nlohmann::ordered_json to_json(const Run& run) {
  const auto share = [](const ExactMatch& match) {
    return match.all == 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(match.fraction());
  };
  return {{"scheme", run.scheme},
          {"seed", run.seed},
          {"seconds", run.last.seconds},
          {"steps", run.last.step},
          {"loss", run.last.loss},
          {"tokens_per_second", run.last.tokens_per_second},
          {"parameters", run.parameters},
          {"position_parameters", run.position_parameters},
          {"heldout_exact", share(run.held_out)},
          {"both_orders_exact", share(run.twins)},
          {"longer_exact", share(run.longer)}};
}

class Program {
 public:
  explicit Program(Options options)
      : options_(std::move(options)),
        terminal_(stdout_is_terminal()),
        threads_(thread_count(options_.threads)) {}

  void run() {
    if (options_.paper_base) return paper_base();
    check_outputs();
    if (options_.compare) return compare();
    if (!options_.load.empty()) return use(load_model(options_.load), nullptr);
    const std::string ours = POSENC_TRANSLATE_MODEL;
    if (!options_.learns && !options_.sentences.empty() && std::filesystem::exists(ours))
      return use(load_model(ours), nullptr);
    train();
  }

 private:
  static int thread_count(int wanted) {
    if (wanted > 0) return wanted;
    return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, 4u));
  }

  /// A file that cannot be written should say so before the training, not after it.
  void check_outputs() const {
    for (const std::string* path : {&options_.save, &options_.report}) {
      if (path->empty()) continue;
      const bool existed = std::filesystem::exists(*path);
      if (!std::ofstream(*path, std::ios::binary | std::ios::app))
        throw InputError(*path + ": cannot be written");
      if (!existed) std::filesystem::remove(*path);
    }
  }

  Corpus corpus(bool keep_longer) const {
    return options_.pairs.empty() ? grammar_corpus() : file_corpus(options_.pairs, keep_longer);
  }

  void describe(const Corpus& corpus, const Lessons& lessons) const {
    if (options_.pairs.empty())
      std::printf("English to Hindi, from a small grammar\n\n");
    else
      std::printf("%s\n\n", options_.pairs.c_str());
    std::printf("corpus     %zu pairs to learn from, %zu held out, %zu words\n", corpus.train.size(),
                corpus.held_out.size(), lessons.vocabulary.size() - Vocabulary::special_count);
    if (corpus.left_out > 0)
      std::printf("           %zu pairs of more than 120 words left out\n", corpus.left_out);
  }

  Budget budget() const {
    Budget b;
    if (options_.steps > 0) b.steps = options_.steps;
    b.seconds = options_.seconds;
    return b;
  }
  std::string budget_text() const {
    return options_.steps > 0 ? std::to_string(options_.steps) + " steps" : format("%g s", options_.seconds);
  }

  Learned learn_with_bar(const Lessons& lessons, PositionScheme scheme, std::uint64_t seed,
                         const std::string& label) {
    ProgressBar bar(label, terminal_);
    return learn(lessons, scheme, seed, budget(), threads_, stop, [&](const Progress& p) { bar.show(p); });
  }

  Run measured(const Learned& learned, const Lessons& lessons, std::uint64_t seed) {
    const auto& config = learned.model.network.config();
    return {transformer::name_of(config.positions),
            seed,
            learned.last,
            learned.model.network.parameters().count(),
            transformer::position_parameters(config),
            exact_match(learned.model.network, lessons.held_out, threads_, stop),
            exact_match(learned.model.network, lessons.twins, threads_, stop, 2),
            exact_match(learned.model.network, lessons.longer, threads_, stop)};
  }

  void write_report(const char* command, const std::vector<Run>& runs) const {
    if (options_.report.empty()) return;
    nlohmann::ordered_json report = {{"program", "posenc_translate"},
                                     {"command", command},
                                     {"pairs", options_.pairs.empty() ? "grammar" : options_.pairs},
                                     {"threads", threads_.count()},
                                     {"runs", nlohmann::ordered_json::array()}};
    for (const Run& run : runs) report["runs"].push_back(to_json(run));
    std::ofstream file(options_.report, std::ios::binary);
    file << report.dump(2) << '\n';
    file.close();
    if (!file) throw InputError(options_.report + ": cannot be written");
  }

  // ---- one model

  void train() {
    const Corpus texts = corpus(false);
    const Lessons lessons(texts);
    const PositionScheme scheme = transformer::position_scheme(options_.scheme);
    const auto config = small_model(scheme, lessons.vocabulary.size());
    Index parameters = 0;
    for (const auto& part : transformer::parameter_counts(config)) parameters += part.count;
    describe(texts, lessons);
    std::printf("model      %d + %d layers, d_model %d, %d heads, %td parameters, positions: %s\n",
                static_cast<int>(config.num_encoder_layers), static_cast<int>(config.num_decoder_layers),
                static_cast<int>(config.d_model), static_cast<int>(config.num_heads), parameters,
                options_.scheme.c_str());
    std::printf("training   %s on %d thread%s, seed %llu\n\n", budget_text().c_str(), threads_.count(),
                threads_.count() == 1 ? "" : "s", static_cast<unsigned long long>(options_.seed));
    std::fflush(stdout);
    const Learned learned = learn_with_bar(lessons, scheme, options_.seed, "");
    if (!options_.save.empty()) {
      save_model(options_.save, learned.model);
      std::printf("\nsaved      %s\n", options_.save.c_str());
    }
    if (learned.interrupted) {
      std::printf("\nInterrupted after %td steps.\n", learned.last.step);
      return;
    }
    const Run run = measured(learned, lessons, options_.seed);
    if (stop) return;  // the figures are not complete
    std::printf("\ntrained    %td steps in %.1f s, %.0f tokens/s\n", run.last.step, run.last.seconds,
                run.last.tokens_per_second);
    if (run.held_out.all > 0)
      std::printf("held out   %5.1f %% translated exactly (%zu of %zu sentences never seen)\n",
                  100 * run.held_out.fraction(), run.held_out.right, run.held_out.all);
    if (run.twins.all > 0)
      std::printf(
          "both ways  %5.1f %% (%zu of %zu pairs such as \"the dog bit the man\", \"the man bit the dog\")\n",
          100 * run.twins.fraction(), run.twins.right, run.twins.all);
    if (run.longer.all > 0)
      std::printf("longer     %5.1f %% (%zu of %zu sentences longer than any in training)\n",
                  100 * run.longer.fraction(), run.longer.right, run.longer.all);
    std::printf("\n");
    write_report("train", {run});
    use(learned.model, &texts);
  }

  /// Shows what a model can do: the user's sentences, or else some that tell.
  void use(const Model& model, const Corpus* texts) const {
    if (!options_.sentences.empty()) {
      print_translations(model, options_.sentences);
      if (options_.attention)
        for (const std::string& sentence : options_.sentences) print_attention(model, sentence);
      return;
    }
    if (texts != nullptr && !texts->held_out.empty()) {
      std::printf("Held-out sentences\n");
      std::vector<std::pair<std::string, std::string>> lines;
      for (std::size_t n = 0; n < std::min<std::size_t>(6, texts->held_out.size()); ++n) {
        const TextPair& pair = texts->held_out[n];
        const std::string got = translation(model, pair.source);
        const bool right = model.vocabulary.encode(got).tokens == model.vocabulary.encode(pair.target).tokens;
        lines.emplace_back(pair.source, right ? got : got + "   (expected: " + pair.target + ")");
      }
      std::printf("%s\n", side_by_side(lines).c_str());
    }
    std::string shown = "the old dog bit the young man";
    if (model.vocabulary.encode("the dog bit the man").unknown_words.empty()) {
      std::printf("The order of the words decides\n");
      print_translations(model,
                         {"the dog bit the man", "the man bit the dog", "the old dog bit the young man",
                          "the young dog bit the old man", "did the girl give the book to the boy?",
                          "the queen will not go to the market tomorrow"});
    } else if (texts != nullptr && !texts->held_out.empty()) {
      shown = texts->held_out.front().source;
    }
    print_attention(model, shown);
  }

  static std::string translation(const Model& model, const std::string& sentence) {
    return model.vocabulary.decode(translated(model.network, model.vocabulary.encode(sentence).tokens));
  }

  void print_translations(const Model& model, const std::vector<std::string>& sentences) const {
    std::vector<std::pair<std::string, std::string>> lines;
    for (const std::string& sentence : sentences) {
      std::string unknown;
      for (const std::string& word : model.vocabulary.encode(sentence).unknown_words)
        unknown += (unknown.empty() ? "" : ", ") + word;
      if (!unknown.empty())
        std::fprintf(stderr, "posenc_translate: not in the vocabulary, so the translation will miss it: %s\n",
                     unknown.c_str());
      lines.emplace_back(sentence, translation(model, sentence));
    }
    std::printf("%s", side_by_side(lines).c_str());
  }

  static void print_attention(const Model& model, const std::string& sentence) {
    const auto source = model.vocabulary.encode(sentence);
    const Tokens target = translated(model.network, source.tokens);
    std::vector<std::string> columns_of = source.words, rows;
    columns_of.emplace_back("<eos>");
    for (const Token token : target) rows.push_back(model.vocabulary.word(token));
    rows.emplace_back("<eos>");
    const auto map = transformer::mean_cross_attention(model.network, std::span<const Token>(source.tokens),
                                                       std::span<const Token>(target));
    std::printf(
        "\nWhere each word of the translation looks (cross-attention, mean of the last layer's heads)\n");
    std::printf("%s", attention_picture(map, columns_of, rows).c_str());
  }

  // ---- the model of the paper

  /// Its parameters by part, and one forward pass with the values training would start from.
  void paper_base() const {
    const auto config = transformer::paper_base();
    std::printf(
        "\"Attention Is All You Need\", table 3, base: %td + %td layers, d_model %td,\n"
        "%td heads, d_ff %td, %td words shared by source, target and output\n\n",
        config.num_encoder_layers, config.num_decoder_layers, config.d_model, config.num_heads, config.d_ff,
        config.vocab_size);
    Index total = 0;
    for (const transformer::PartCount& part : transformer::parameter_counts(config)) {
      std::printf("  %-24s %10td\n", part.part.c_str(), part.count);
      total += part.count;
    }
    std::printf("  %-24s %10td\n\n", "all", total);
    std::fflush(stdout);
    const transformer::Transformer<float> model(config, options_.seed);
    Tokens source, target;  // any words will do: nothing has been learnt
    for (Token word = 0; word < 32; ++word) source.push_back(1000 + word), target.push_back(2000 + word);
    const auto start = std::chrono::steady_clock::now();
    const auto logits = transformer::logits<float>(model, source, target);
    const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
    double surprise = 0;  // of the target and its end
    for (Index row = 0; row < logits.rows(); ++row) {
      const auto z = logits.row(row).cast<double>();
      const Token label =
          row < std::ssize(target) ? target[static_cast<std::size_t>(row)] : config.special.eos;
      surprise += z.maxCoeff() + std::log((z.array() - z.maxCoeff()).exp().sum()) - z(label);
    }
    std::printf("forward    32 words to 32 words in %.2f s: logits %td x %td, %.2f nats a word\n",
                passed.count(), logits.rows(), logits.cols(), surprise / static_cast<double>(logits.rows()));
    std::printf("           (untrained; %.2f if all words were equally likely)\n",
                std::log(static_cast<double>(config.vocab_size)));
  }

  // ---- all schemes

  void compare() {
    const Corpus texts = corpus(true);
    const Lessons lessons(texts);
    describe(texts, lessons);
    std::printf("longer     %zu pairs longer than any to learn from (those have at most %zu words)\n",
                texts.longer.size(), texts.longest);
    std::printf("training   each scheme %s, %d seed%s, on %d thread%s\n\n", budget_text().c_str(),
                options_.seeds, options_.seeds == 1 ? "" : "s", threads_.count(),
                threads_.count() == 1 ? "" : "s");
    std::vector<Run> runs;
    for (int n = 0; n < options_.seeds; ++n)
      for (const PositionScheme scheme : transformer::all_position_schemes) {
        const std::uint64_t seed = options_.seed + static_cast<std::uint64_t>(n);
        std::printf("%-10s seed %llu\n", transformer::name_of(scheme), static_cast<unsigned long long>(seed));
        std::fflush(stdout);
        const Learned learned = learn_with_bar(lessons, scheme, seed, "  ");
        const Run run = measured(learned, lessons, seed);
        if (stop) {
          std::printf("\nInterrupted; what follows are the runs that were complete.\n");
          return finish_comparison(runs);
        }
        runs.push_back(run);
        std::printf("  %td steps in %.1f s, held out %.1f %%, both orders %.1f %%, longer %.1f %%\n",
                    run.last.step, run.last.seconds, 100 * run.held_out.fraction(),
                    100 * run.twins.fraction(), 100 * run.longer.fraction());
        write_report("compare", runs);
      }
    finish_comparison(runs);
  }

  void finish_comparison(const std::vector<Run>& runs) const {
    write_report("compare", runs);
    if (runs.empty()) return;
    std::printf("\nTranslated exactly, in percent: mean over the seeds, and least to most\n\n");
    std::printf("  %-10s  %10s  %-18s  %-18s  %s\n", "scheme", "position", "held out", "both orders",
                "longer than any");
    std::printf("  %-10s  %10s  %-18s  %-18s  %s\n", "", "parameters", "", "", "in training");
    for (const PositionScheme scheme : transformer::all_position_schemes) {
      std::vector<const Run*> of_scheme;
      for (const Run& run : runs)
        if (run.scheme == transformer::name_of(scheme)) of_scheme.push_back(&run);
      if (of_scheme.empty()) continue;
      std::printf("  %-10s  %10td  %-18s  %-18s  %s\n", transformer::name_of(scheme),
                  of_scheme[0]->position_parameters, spread(of_scheme, &Run::held_out).c_str(),
                  spread(of_scheme, &Run::twins).c_str(), spread(of_scheme, &Run::longer).c_str());
    }
    std::printf("\nBoth orders: a sentence and the one with subject and object exchanged, both right.\n");
  }

  static std::string spread(const std::vector<const Run*>& runs, ExactMatch Run::* part) {
    double sum = 0, least = 100, most = 0;
    for (const Run* run : runs) {
      if ((run->*part).all == 0) return "-";
      const double percent = 100 * (run->*part).fraction();
      sum += percent;
      least = std::min(least, percent);
      most = std::max(most, percent);
    }
    return format("%5.1f (%.1f-%.1f)", sum / static_cast<double>(runs.size()), least, most);
  }

  Options options_;
  bool terminal_;
  transformer::Threads threads_;
};

constexpr const char* description =
    "A transformer learns to translate English to Hindi: 2 + 2 layers, trained from\n"
    "nothing in a minute.\n"
    "\n"
    "Without arguments it trains and then translates. With sentences it translates\n"
    "them at once, with the small model that comes with posenc; an option of the\n"
    "group \"Training\" makes it train first. English and Hindi order their words\n"
    "differently, and only the order tells \"the dog bit the man\" from \"the man bit\n"
    "the dog\": see what becomes of them with --scheme none.";

/// Options without the notes that would not fit into 80 columns.
class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(20); }
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: posenc_translate [options] [sentence ...]\n";
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_positional() || option->get_type_size() == 0 ? "" : " " + option->get_type_name();
  }
};

Options parse(CLI::App& app, int argc, char** argv) {
  Options o;
  app.name("posenc_translate");
  app.formatter(std::make_shared<HelpFormatter>());
  app.set_help_flag("--help", "Print this and leave");
  app.add_option("sentence", o.sentences, "English sentences to translate, each in quotes");
  app.add_flag("--attention", o.attention, "Show where each word of a translation looks");
  auto* paper_base = app.add_flag("--paper-base", o.paper_base,
                                  "Print the parameters of the paper's base model by part,\n"
                                  "run it once, and leave");
  auto* load = app.add_option("--load", o.load, "Translate with the model of this file, no training");
  load->type_name("FILE");
  app.add_option("--threads", o.threads, "Threads (all cores, at most 4); same result for any N")
      ->check(CLI::Range(1, 256).description(""))
      ->type_name("N");

  std::vector<CLI::Option*> training;
  const auto trains = [&](CLI::Option* option, const char* type) {
    option->group("Training")->excludes(load)->type_name(type);
    training.push_back(option);
    return option;
  };
  const auto scheme_name = [](const std::string& name) {
    for (const PositionScheme scheme : transformer::all_position_schemes)
      if (name == transformer::name_of(scheme)) return std::string();
    return "expected none, sinusoidal, learned, rope or alibi, got " + name;
  };
  training.push_back(app.add_flag("--train", o.train, "Train, then translate the sentences"));
  training.back()->group("Training")->excludes(load);
  auto* scheme = trains(app.add_option("--scheme", o.scheme,
                                       "How the model knows positions: none, sinusoidal,\n"
                                       "learned, rope or alibi (sinusoidal)")
                            ->check(scheme_name),
                        "NAME");
  trains(app.add_option("--pairs", o.pairs,
                        "Learn from this file: on each line a sentence, a tab,\n"
                        "its translation; UTF-8"),
         "FILE");
  auto* seconds = trains(app.add_option("--seconds", o.seconds, "How long to train (60)")
                             ->check(CLI::Range(0.1, 1e6).description("")),
                         "N");
  trains(app.add_option("--steps", o.steps,
                        "How many steps to train instead: the same seed then\n"
                        "gives the same model, bit for bit")
             ->check(CLI::Range(Index{1}, Index{100'000'000}).description(""))
             ->excludes(seconds),
         "N");
  trains(app.add_option("--seed", o.seed, "Where chance starts (1)"), "N");
  auto* save = trains(app.add_option("--save", o.save,
                                     "Write the trained model (safetensors); Ctrl-C ends the\n"
                                     "training early and writes it"),
                      "FILE");
  trains(app.add_option("--report", o.report, "Write the figures (JSON)"), "FILE");
  auto* compare = app.add_flag("--compare", o.compare, "Train once with each scheme, and print a table");
  compare->group("Training")->excludes(load)->excludes(save)->excludes(scheme);
  training.push_back(compare);
  trains(app.add_option("--seeds", o.seeds, "With --compare: so many seeds, from --seed on (1)")
             ->check(CLI::Range(1, 1000).description(""))
             ->needs(compare),
         "N");
  for (CLI::Option* option : training) option->excludes(paper_base);
  load->excludes(paper_base);
  app.parse(argc, argv);
  if (o.paper_base && !o.sentences.empty()) throw InputError("--paper-base translates no sentences");
  for (const CLI::Option* option : training) o.learns = o.learns || option->count() > 0;
  if (o.compare && !o.sentences.empty()) throw InputError("--compare translates no sentences");
  for (const std::string& sentence : o.sentences) {
    if (!is_utf8(sentence)) throw InputError("a sentence is not UTF-8");
    const std::size_t words = split(sentence).size();
    if (words == 0) throw InputError("a sentence is empty");
    if (words > 100)
      throw InputError("a sentence has " + std::to_string(words) + " words, expected at most 100");
  }
  return o;
}

/// The message as one line.
int fail(std::string message) {
  if (const auto end = message.find('\n'); end != std::string::npos) message.resize(end);
  std::fprintf(stderr, "posenc_translate: %s\n", message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(description);
  try {
    Program program(parse(app, argc, argv));
    std::signal(SIGINT, [](int) {
      stop = true;
      std::signal(SIGINT, SIG_DFL);  // a second one ends the program at once
    });
    program.run();
    return 0;
  } catch (const CLI::CallForHelp&) {
    std::printf("%s", app.help().c_str());
    return 0;
  } catch (const CLI::ParseError& error) {
    return fail(error.what());
  } catch (const InputError& error) {
    return fail(error.what());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
}
