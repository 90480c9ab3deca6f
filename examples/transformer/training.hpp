#pragma once
// One step of training: forward, backward, Adam. A batch is cut into chunks of a fixed number of sentences,
// each with a workspace and a gradient of its own, and the gradients are added in the order of the chunks. So
// threads only decide who computes a chunk, never what comes out.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "transformer/loss.hpp"
#include "transformer/optimizer.hpp"
#include "transformer/threads.hpp"
#include "transformer/transformer.hpp"

namespace transformer {

struct TrainingConfig {
  double label_smoothing = 0.1;
  AdamConfig adam = {};
  WarmupSchedule schedule = {};
  double max_gradient_norm = 0.0;  ///< longer gradients are shortened to it; 0: never
  Index chunk_sentences = 16;      ///< how a batch is cut: part of the result, unlike the threads
  std::uint64_t seed = 1;          ///< of dropout
};

struct EvalResult {
  double loss = 0;      // label-smoothed, nats per target token
  double accuracy = 0;  // of the target tokens, given those before
  Index tokens = 0;     // source and target tokens read
};

struct StepResult : EvalResult {
  Index step = 0;
  double learning_rate = 0, gradient_norm = 0;
};

template <class Scalar>
class Trainer {
 public:
  /// Borrows the model and the threads.
  Trainer(Transformer<Scalar>& model, const TrainingConfig& config, Threads& threads)
      : model_(model),
        config_(config),
        threads_(threads),
        adam_(config.adam, model.parameters().count()),
        gradient_(model.parameters().count()) {
    if (config.chunk_sentences < 1)
      throw std::invalid_argument("chunk_sentences: expected at least 1, got " +
                                  std::to_string(config.chunk_sentences));
  }

  /// The batch's mean loss per target token goes one step down. Nothing has changed where it throws.
  StepResult step(std::span<const Pair> batch) {
    if (batch.empty()) throw std::invalid_argument("batch: expected at least 1 pair, got 0");
    Sums sums;
    run(batch, posenc::Mode::train, sums);
    StepResult result{sums.means()};
    adam_.next_step();
    result.step = adam_.step();
    result.learning_rate = config_.schedule.rate(adam_.step(), model_.config().d_model);

    const Index count = gradient_.size(), blocks = (count + block - 1) / block;
    norms_.assign(static_cast<std::size_t>(blocks), 0.0);
    const auto for_each_block = [&](const auto& f) {
      threads_.run(blocks, [&](Index b) { f(b, b * block, (std::min)(block, count - b * block)); });
    };
    for_each_block([&](Index b, Index first, Index n) {
      auto sum = gradient_.segment(first, n);
      sum = chunks_[0].gradient.segment(first, n);
      for (Index c = 1; c < used_chunks_; ++c)
        sum += chunks_[static_cast<std::size_t>(c)].gradient.segment(first, n);
      norms_[static_cast<std::size_t>(b)] = static_cast<double>(sum.squaredNorm());
    });
    double squared = 0;
    for (const double norm : norms_) squared += norm;
    result.gradient_norm = std::sqrt(squared);
    const bool clip = config_.max_gradient_norm > 0 && result.gradient_norm > config_.max_gradient_norm;
    const double scale = clip ? config_.max_gradient_norm / result.gradient_norm : 1.0;
    for_each_block([&](Index, Index first, Index n) {
      adam_.update(model_.parameters().flat(), gradient_, first, n, result.learning_rate, scale);
    });
    return result;
  }

  /// Loss and accuracy without dropout and without a step.
  EvalResult evaluate(std::span<const Pair> pairs) {
    const auto size = static_cast<std::size_t>(8 * config_.chunk_sentences);  // bounds the workspaces
    Sums sums;
    for (std::size_t first = 0; first < pairs.size(); first += size)
      run(pairs.subspan(first, (std::min)(size, pairs.size() - first)), posenc::Mode::eval, sums);
    return sums.means();
  }

  /// The gradient of the last step.
  const Vector<Scalar>& gradient() const { return gradient_; }

 private:
  static constexpr Index block = Index{1} << 14;  // parameters that one task of the optimiser updates

  struct Chunk {
    Workspace<Scalar> workspace;
    typename Transformer<Scalar>::Saved saved;
    Vector<Scalar> gradient;
    Sequences source, target;
    Tokens labels;
    LossSum sum;
  };

  struct Sums {
    double loss = 0;
    Index correct = 0, source_tokens = 0, target_tokens = 0;

    EvalResult means() const {
      const double labels = static_cast<double>((std::max)(Index{1}, target_tokens));
      return {loss / labels, static_cast<double>(correct) / labels, source_tokens + target_tokens};
    }
  };

  // Forward, and in training backward, for all chunks of a batch.
  void run(std::span<const Pair> batch, posenc::Mode mode, Sums& sums) {
    const Index sentences = static_cast<Index>(batch.size()), size = config_.chunk_sentences;
    used_chunks_ = (sentences + size - 1) / size;
    if (static_cast<Index>(chunks_.size()) < used_chunks_)
      chunks_.resize(static_cast<std::size_t>(used_chunks_));
    Index source_tokens = 0, target_tokens = 0;
    for (Index c = 0; c < used_chunks_; ++c) {
      Chunk& chunk = chunks_[static_cast<std::size_t>(c)];
      chunk.source.clear(), chunk.target.clear(), chunk.labels.clear();
      chunk.source.set_first_token(source_tokens), chunk.target.set_first_token(target_tokens);
      for (const Pair& pair :
           batch.subspan(static_cast<std::size_t>(c * size),
                         static_cast<std::size_t>((std::min)(size, sentences - c * size)))) {
        model_.append_source(chunk.source, pair.source);
        model_.append_target(chunk.target, pair.target);
        chunk.labels.insert(chunk.labels.end(), pair.target.begin(), pair.target.end());
        chunk.labels.push_back(model_.config().special.eos);
      }
      source_tokens += chunk.source.tokens(), target_tokens += chunk.target.tokens();
    }
    const double weight = 1.0 / static_cast<double>(target_tokens);  // of the loss of a token in the mean
    const bool train = mode == posenc::Mode::train;
    const std::uint64_t seed = config_.seed * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(adam_.step());
    threads_.run(used_chunks_, [&](Index c) {
      Chunk& chunk = chunks_[static_cast<std::size_t>(c)];
      chunk.workspace.reset();
      if (train) chunk.gradient.setZero(model_.parameters().count());
      Pass<Scalar> pass{model_.parameters(), chunk.workspace, train ? &chunk.gradient : nullptr, mode, seed};
      const View<Scalar, 2> logits = model_.forward(pass, chunk.source, chunk.target, chunk.saved);
      chunk.sum = cross_entropy(logits, chunk.labels, config_.label_smoothing, weight);
      if (train) model_.backward(pass, logits, chunk.source, chunk.target, chunk.saved);
    });
    for (Index c = 0; c < used_chunks_; ++c) {
      sums.loss += chunks_[static_cast<std::size_t>(c)].sum.loss;
      sums.correct += chunks_[static_cast<std::size_t>(c)].sum.correct;
    }
    sums.source_tokens += source_tokens, sums.target_tokens += target_tokens;
  }

  Transformer<Scalar>& model_;
  TrainingConfig config_;
  Threads& threads_;
  Adam<Scalar> adam_;
  Vector<Scalar> gradient_;
  std::vector<double> norms_;
  std::vector<Chunk> chunks_;
  Index used_chunks_ = 0;
};

}  // namespace transformer
