#pragma once
// Encoder and decoder layers ("Attention Is All You Need", section 3.1). Each sub-layer sits in a residual
// connection with a normalisation and dropout on its output (section 5.4):
//
//   post   y = norm(x + dropout(f(x)))       the paper
//   pre    y = x + dropout(f(norm(x)))       most models since (Xiong et al. 2020); the stack ends in a norm

#include <cstdint>
#include <span>
#include <string>

#include "posenc/embedding/dropout.hpp"
#include "transformer/feed_forward.hpp"
#include "transformer/matrix.hpp"
#include "transformer/multi_head_attention.hpp"
#include "transformer/normalization.hpp"
#include "transformer/parameters.hpp"
#include "transformer/position_scheme.hpp"
#include "transformer/sequences.hpp"

namespace transformer {

enum class NormPlacement { post, pre };

struct LayerConfig {
  AttentionConfig attention;
  Index d_ff = 0;
  Activation activation = Activation::relu;
  Norm norm = Norm::layer_norm;
  NormPlacement placement = NormPlacement::post;
  double norm_eps = 1e-6;
  double dropout = 0.0;
};

/// Dropout at one place of the model. The mask depends on the seed of the step, on the place, and on the
/// number of the token in its batch, so neither on threads nor on how the batch is split.
class DropoutSite {
 public:
  /// `place` tells the sites of a model apart.
  DropoutSite(double p, Index place) : dropout_(p), place_(static_cast<std::uint64_t>(place)) {}

  /// In place; also its own gradient. x: the tokens of `sequences`.
  template <class Scalar>
  void apply(const Pass<Scalar>& pass, const View<Scalar, 2>& x, const Sequences& sequences) const {
    if (dropout_.p() == 0) return;
    dropout_.apply(x, pass.mode, seed(pass.seed),
                   static_cast<std::uint64_t>(sequences.first_token() * x.extent(1)));
  }

 private:
  // Steele, Lea & Flood 2014, the finaliser of SplitMix: seeds next to each other become unrelated.
  std::uint64_t seed(std::uint64_t step) const {
    std::uint64_t z = step + (place_ + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }

  posenc::Dropout dropout_;
  std::uint64_t place_;
};

/// The residual connection around a sub-layer f.
template <class Scalar>
class Residual {
 public:
  using Saved = typename Normalization<Scalar>::Saved;

  Residual(Parameters<Scalar>& parameters, const std::string& name, const LayerConfig& config)
      : placement_(config.placement),
        dropout_(config.dropout, parameters.count()),
        norm_(parameters, name + "_norm", config.attention.d_model, config.norm, config.norm_eps) {}

  /// f(x) -> a matrix of its own.
  template <class F>
  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& x, const Sequences& sequences,
                          Saved& saved, const F& f) const {
    const bool pre = placement_ == NormPlacement::pre;
    const View<Scalar, 2> y = f(pre ? as_const(norm_.forward(pass, x, saved)) : x);
    dropout_.apply(pass, y, sequences);
    matrix(y) += matrix(x);
    return pre ? y : norm_.forward(pass, y, saved);
  }

  /// f_vjp(d f) -> the gradient of its input.
  template <class F>
  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<const Scalar, 2>& dy, const Sequences& sequences,
                           const Saved& saved, const F& f_vjp) const {
    const bool pre = placement_ == NormPlacement::pre;
    const View<const Scalar, 2> d_sum = pre ? dy : norm_.backward(pass, dy, saved);
    const View<Scalar, 2> d_dropped = copy(pass.workspace, d_sum);
    dropout_.apply(pass, d_dropped, sequences);
    const View<Scalar, 2> d_input = f_vjp(d_dropped);
    const View<Scalar, 2> dx = pre ? norm_.backward(pass, d_input, saved) : d_input;
    matrix(dx) += matrix(d_sum);
    return dx;
  }

 private:
  NormPlacement placement_;
  DropoutSite dropout_;
  Normalization<Scalar> norm_;
};

/// Self-attention, then feed-forward: the layer of an encoder and, with a causal AttentionConfig, that of a
/// decoder-only model.
template <class Scalar>
class EncoderLayer {
 public:
  struct Saved {
    typename SelfAttention<Scalar>::Saved self_attention;
    typename FeedForward<Scalar>::Saved feed_forward;
    typename Residual<Scalar>::Saved around_attention, around_feed_forward;
  };

  EncoderLayer(Parameters<Scalar>& parameters, const std::string& name, const LayerConfig& config,
               const PositionEncoding<Scalar>& positions)
      : self_attention_(parameters, name + ".self_attention", config.attention, positions),
        around_attention_(parameters, name + ".self_attention", config),
        feed_forward_(parameters, name + ".feed_forward", config.attention.d_model, config.d_ff,
                      config.activation),
        around_feed_forward_(parameters, name + ".feed_forward", config) {}

  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& x, const Sequences& sequences,
                          const posenc::Positions& at, Saved& saved) const {
    const View<Scalar, 2> attended =
        around_attention_.forward(pass, x, sequences, saved.around_attention, [&](const auto& in) {
          return self_attention_.forward(pass, in, sequences, at, saved.self_attention);
        });
    return around_feed_forward_.forward(
        pass, attended, sequences, saved.around_feed_forward,
        [&](const auto& in) { return feed_forward_.forward(pass, in, saved.feed_forward); });
  }

  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<const Scalar, 2>& dy, const Sequences& sequences,
                           const posenc::Positions& at, const Saved& saved) const {
    const View<Scalar, 2> d_attended = around_feed_forward_.backward(
        pass, dy, sequences, saved.around_feed_forward,
        [&](const auto& d) { return feed_forward_.backward(pass, d, saved.feed_forward); });
    return around_attention_.backward(
        pass, d_attended, sequences, saved.around_attention, [&](const auto& d) {
          return self_attention_.backward(pass, d, sequences, at, saved.self_attention);
        });
  }

  /// The next tokens of several sentences: see SelfAttention::extend.
  template <class Seen>
  View<Scalar, 2> extend(Pass<Scalar>& pass, const View<const Scalar, 2>& x, const posenc::Positions& at,
                         std::span<KeyValueCache<Scalar>> caches, const Seen& seen) const {
    static const Sequences none;  // dropout's only; it is off
    Saved saved;
    const View<Scalar, 2> attended = around_attention_.forward(
        pass, x, none, saved.around_attention,
        [&](const auto& in) { return self_attention_.extend(pass, in, at, caches, seen); });
    return around_feed_forward_.forward(pass, attended, none, saved.around_feed_forward, [&](const auto& in) {
      return feed_forward_.forward(pass, in, saved.feed_forward);
    });
  }

  const SelfAttention<Scalar>& self_attention() const { return self_attention_; }
  const FeedForward<Scalar>& feed_forward() const { return feed_forward_; }

 private:
  SelfAttention<Scalar> self_attention_;
  Residual<Scalar> around_attention_;
  FeedForward<Scalar> feed_forward_;
  Residual<Scalar> around_feed_forward_;
};

/// Causal self-attention, attention to the encoder's output, then feed-forward.
template <class Scalar>
class DecoderLayer {
 public:
  struct Saved {
    typename SelfAttention<Scalar>::Saved self_attention;
    typename CrossAttention<Scalar>::Saved cross_attention;
    typename FeedForward<Scalar>::Saved feed_forward;
    typename Residual<Scalar>::Saved around_attention, around_cross_attention, around_feed_forward;
  };
  struct Cache {
    KeyValueCache<Scalar> self, cross;
  };

  DecoderLayer(Parameters<Scalar>& parameters, const std::string& name, const LayerConfig& config,
               const PositionEncoding<Scalar>& positions)
      : self_attention_(parameters, name + ".self_attention", causal(config.attention, true), positions),
        around_attention_(parameters, name + ".self_attention", config),
        cross_attention_(parameters, name + ".cross_attention", causal(config.attention, false)),
        around_cross_attention_(parameters, name + ".cross_attention", config),
        feed_forward_(parameters, name + ".feed_forward", config.attention.d_model, config.d_ff,
                      config.activation),
        around_feed_forward_(parameters, name + ".feed_forward", config) {}

  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& x, const Sequences& sequences,
                          const posenc::Positions& at, const View<const Scalar, 2>& memory,
                          const Sequences& memory_of, Saved& saved) const {
    const View<Scalar, 2> attended =
        around_attention_.forward(pass, x, sequences, saved.around_attention, [&](const auto& in) {
          return self_attention_.forward(pass, in, sequences, at, saved.self_attention);
        });
    const View<Scalar, 2> informed = around_cross_attention_.forward(
        pass, attended, sequences, saved.around_cross_attention, [&](const auto& in) {
          return cross_attention_.forward(pass, in, sequences, memory, memory_of, saved.cross_attention);
        });
    return around_feed_forward_.forward(
        pass, informed, sequences, saved.around_feed_forward,
        [&](const auto& in) { return feed_forward_.forward(pass, in, saved.feed_forward); });
  }

  /// Returns dx, and adds to d_memory.
  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<Scalar, 2>& d_memory,
                           const View<const Scalar, 2>& dy, const Sequences& sequences,
                           const posenc::Positions& at, const Sequences& memory_of,
                           const Saved& saved) const {
    const View<Scalar, 2> d_informed = around_feed_forward_.backward(
        pass, dy, sequences, saved.around_feed_forward,
        [&](const auto& d) { return feed_forward_.backward(pass, d, saved.feed_forward); });
    const View<Scalar, 2> d_attended = around_cross_attention_.backward(
        pass, d_informed, sequences, saved.around_cross_attention, [&](const auto& d) {
          return cross_attention_.backward(pass, d_memory, d, sequences, memory_of, saved.cross_attention);
        });
    return around_attention_.backward(
        pass, d_attended, sequences, saved.around_attention, [&](const auto& d) {
          return self_attention_.backward(pass, d, sequences, at, saved.self_attention);
        });
  }

  /// Fills the cache of the keys and values of the encoder's output.
  void remember(Pass<Scalar>& pass, const View<const Scalar, 2>& memory, Cache& cache) const {
    cross_attention_.remember(pass, memory, cache.cross);
  }
  /// The next tokens of one sentence.
  View<Scalar, 2> extend(Pass<Scalar>& pass, const View<const Scalar, 2>& x, Cache& cache) const {
    static const Sequences none;  // dropout's only; it is off
    Saved saved;
    const View<Scalar, 2> attended = around_attention_.forward(
        pass, x, none, saved.around_attention,
        [&](const auto& in) { return self_attention_.extend(pass, in, cache.self); });
    const View<Scalar, 2> informed = around_cross_attention_.forward(
        pass, attended, none, saved.around_cross_attention,
        [&](const auto& in) { return cross_attention_.extend(pass, in, cache.cross); });
    return around_feed_forward_.forward(pass, informed, none, saved.around_feed_forward, [&](const auto& in) {
      return feed_forward_.forward(pass, in, saved.feed_forward);
    });
  }

  const SelfAttention<Scalar>& self_attention() const { return self_attention_; }
  const CrossAttention<Scalar>& cross_attention() const { return cross_attention_; }

 private:
  static AttentionConfig causal(AttentionConfig attention, bool causal) {
    attention.causal = causal;
    return attention;
  }

  SelfAttention<Scalar> self_attention_;
  Residual<Scalar> around_attention_;
  CrossAttention<Scalar> cross_attention_;
  Residual<Scalar> around_cross_attention_;
  FeedForward<Scalar> feed_forward_;
  Residual<Scalar> around_feed_forward_;
};

}  // namespace transformer
