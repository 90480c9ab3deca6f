#pragma once
// From a corpus to a model: batches, a budget in steps or seconds, and how well the result translates.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "transformer/generation.hpp"
#include "transformer/training.hpp"
#include "transformer/transformer.hpp"
#include "translate/corpus.hpp"
#include "translate/model_file.hpp"
#include "translate/random.hpp"
#include "translate/tokenizer.hpp"

namespace translate {

/// A corpus as numbers.
struct Lessons {
  Vocabulary vocabulary;
  std::vector<transformer::Pair> train, held_out, longer, twins;

  explicit Lessons(const Corpus& corpus) : vocabulary(Vocabulary::of(corpus.train)) {
    train = encoded(corpus.train);
    held_out = encoded(corpus.held_out);
    longer = encoded(corpus.longer);
    twins = encoded(corpus.twins);
  }

 private:
  std::vector<transformer::Pair> encoded(const std::vector<TextPair>& pairs) const {
    std::vector<transformer::Pair> out;
    for (const TextPair& pair : pairs)
      out.push_back({vocabulary.encode(pair.source).tokens, vocabulary.encode(pair.target).tokens});
    return out;
  }
};

/// Either a number of steps, which makes a run repeatable, or a time.
struct Budget {
  std::optional<Index> steps;
  double seconds = 60;
};

/// Where a run stands.
struct Progress {
  double fraction = 0;  // of the budget
  double seconds = 0, seconds_left = 0;
  double loss = 0;  // smoothed over the last steps, nats per word
  double tokens_per_second = 0;
  Index step = 0;
};

struct Learned {
  Model model;
  Progress last;
  bool interrupted = false;
};

/// The small model of this program. The learned positions have room for every sentence that file_corpus()
/// takes.
inline transformer::TransformerConfig small_model(transformer::PositionScheme scheme, std::size_t words) {
  return {.vocab_size = static_cast<Index>(words),
          .d_model = 64,
          .num_heads = 4,
          .num_encoder_layers = 2,
          .num_decoder_layers = 2,
          .d_ff = 256,
          .positions = scheme,
          .max_positions = 128,
          .norm_placement = transformer::NormPlacement::pre,
          .dropout = 0.0};  // no sentence is seen often enough to be learnt by heart
}

/// Batches without end: the pairs in random order, again and again.
class Batches {
 public:
  Batches(std::span<const transformer::Pair> pairs, std::size_t size, std::uint64_t seed)
      : pairs_(pairs), size_(size), random_(seed, 0xba7c4), order_(pairs.size()) {
    for (std::size_t n = 0; n < order_.size(); ++n) order_[n] = n;
    next_ = order_.size();
  }

  std::span<const transformer::Pair> next() {
    batch_.clear();
    while (batch_.size() < size_) {
      if (next_ == order_.size()) random_.shuffle(order_), next_ = 0;
      batch_.push_back(pairs_[order_[next_++]]);
    }
    return batch_;
  }

 private:
  std::span<const transformer::Pair> pairs_;
  std::size_t size_, next_;
  Random random_;
  std::vector<std::size_t> order_;
  std::vector<transformer::Pair> batch_;
};

/// Trains a model. `report` is called after every step; `stop` ends the run after the current one. The same
/// lessons, scheme, seed and steps give the same model bit for bit, on any number of threads.
inline Learned learn(const Lessons& lessons, transformer::PositionScheme scheme, std::uint64_t seed,
                     const Budget& budget, transformer::Threads& threads, const std::atomic<bool>& stop,
                     const std::function<void(const Progress&)>& report) {
  using Clock = std::chrono::steady_clock;
  constexpr std::size_t batch_size = 32;
  const auto start = Clock::now();
  const auto elapsed = [&] { return std::chrono::duration<double>(Clock::now() - start).count(); };

  Learned learned{{transformer::Transformer<float>(small_model(scheme, lessons.vocabulary.size()), seed),
                   lessons.vocabulary},
                  {},
                  false};
  transformer::TrainingConfig training;
  training.label_smoothing = 0.0;
  training.adam.beta2 = 0.98;
  training.max_gradient_norm = 1.0;
  training.chunk_sentences = 8;
  training.seed = seed;
  training.schedule.peak = 5e-3;

  // The learning rate falls to zero at the last step, so a budget of time has to be made one of steps: a copy
  // of the model tries how fast this machine is.
  Index steps = budget.steps.value_or(0);
  if (!budget.steps) {
    transformer::Transformer<float> copy = learned.model.network;
    transformer::Trainer<float> trial(copy, training, threads);
    Batches batches(lessons.train, batch_size, seed);
    const double trial_seconds = std::min(1.0, 0.1 * budget.seconds);
    trial.step(batches.next());  // takes the memory
    const double first = elapsed();
    Index tried = 0;
    do {
      trial.step(batches.next());
      ++tried;
    } while (elapsed() - first < trial_seconds);
    const double rate = static_cast<double>(tried) / (elapsed() - first);
    steps = std::max<Index>(1, static_cast<Index>(rate * (budget.seconds - elapsed())));
  }
  training.schedule.total_steps = steps + 1;
  training.schedule.warmup_steps = std::max<Index>(1, std::min<Index>(300, steps / 10));

  transformer::Trainer<float> trainer(learned.model.network, training, threads);
  Batches batches(lessons.train, batch_size, seed);
  Progress& progress = learned.last;
  double tokens = 0;
  const double trained_from = elapsed();
  while (progress.step < steps && !stop) {
    if (!budget.steps && progress.step > 0 && elapsed() >= budget.seconds) break;
    const transformer::StepResult result = trainer.step(batches.next());
    progress.step = result.step;
    progress.loss = result.step == 1 ? result.loss : 0.95 * progress.loss + 0.05 * result.loss;
    progress.seconds = elapsed();
    tokens += static_cast<double>(result.tokens);
    const double training_seconds = std::max(1e-9, progress.seconds - trained_from);
    progress.tokens_per_second = tokens / training_seconds;
    const double of_steps = static_cast<double>(progress.step) / static_cast<double>(steps);
    const double left_of_steps = training_seconds * (1.0 / of_steps - 1.0);
    progress.seconds_left = budget.steps
                                ? left_of_steps
                                : std::max(0.0, std::min(left_of_steps, budget.seconds - progress.seconds));
    progress.fraction = progress.seconds / (progress.seconds + progress.seconds_left);
    report(progress);
  }
  learned.interrupted = stop;
  return learned;
}

/// A sentence translated, by the likeliest word at each step.
inline Tokens translated(const transformer::Transformer<float>& network, std::span<const Token> source) {
  const Index room = network.config().max_positions - 1;
  const Index most = std::min<Index>(room, 16 + 2 * static_cast<Index>(source.size()));
  return transformer::greedy(network, source, {.max_new_tokens = most});
}

/// How many pairs are translated word for word as the corpus has it; with `together` = 2 a pair and the next
/// count as one, and both must be right.
struct ExactMatch {
  std::size_t right = 0, all = 0;
  double fraction() const { return all == 0 ? 0.0 : static_cast<double>(right) / static_cast<double>(all); }
};

inline ExactMatch exact_match(const transformer::Transformer<float>& network,
                              std::span<const transformer::Pair> pairs, transformer::Threads& threads,
                              const std::atomic<bool>& stop, std::size_t together = 1) {
  std::vector<int> right(pairs.size() / together, 0);
  threads.run(static_cast<Index>(right.size()), [&](Index n) {
    const std::size_t group = static_cast<std::size_t>(n);
    bool all = !stop;
    for (const transformer::Pair& pair : pairs.subspan(group * together, together))
      all = all && translated(network, pair.source) == pair.target;
    right[group] = all ? 1 : 0;
  });
  return {static_cast<std::size_t>(std::count(right.begin(), right.end(), 1)), right.size()};
}

}  // namespace translate
