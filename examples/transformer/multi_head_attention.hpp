#pragma once
// Multi-head attention ("Attention Is All You Need", section 3.2.2):
//
//   MultiHead(x, m) = Concat(head_1, ..., head_h) W_o,   head_i = Attention(x W_q[i], m W_k[i], m W_v[i])
//
// Self-attention has m = x: its queries, keys and values are one packed projection, and position enters here
// for the schemes that turn queries and keys (RoPE) or add to the scores (ALiBi). Cross-attention has the
// encoder's output as m and knows no position: a distance between two languages means nothing.
//
// A cache holds the keys, turned already, and the values of tokens that were seen before, packed as (tokens,
// keys | values).

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"
#include "transformer/attention.hpp"
#include "transformer/linear.hpp"
#include "transformer/matrix.hpp"
#include "transformer/parameters.hpp"
#include "transformer/position_scheme.hpp"
#include "transformer/sequences.hpp"

namespace transformer {

struct AttentionConfig {
  Index d_model = 0, num_heads = 0, num_kv_heads = 0;
  bool causal = false;  ///< self-attention only
  bool bias = false;    ///< on the projections; the paper has none
  double softcap = 0.0;
  Index head_width = 0;  ///< where heads x head_dim is not d_model; 0: it is

  Index head_dim() const { return head_width != 0 ? head_width : d_model / num_heads; }
  Index inner() const { return num_heads * head_dim(); }  ///< the width of all heads together
};

/// Keys and values of the tokens of one sentence.
template <class Scalar>
struct KeyValueCache {
  Matrix<Scalar> rows;  // (capacity, 2 kv_heads head_dim)
  Index length = 0;

  /// Room for this many tokens, so that append() does not have to make it.
  void reserve(Index capacity, Index width) {
    if (capacity > rows.rows()) rows.conservativeResize(capacity, width);
  }
  void append(const View<const Scalar, 2>& more) {
    const Index needed = length + more.extent(0);
    if (needed > rows.rows()) rows.conservativeResize((std::max)(needed, 2 * rows.rows()), more.extent(1));
    rows.middleRows(length, more.extent(0)) = strided(more);
    length = needed;
  }
  /// Forgets `count` tokens from `first` on; those behind them move up.
  void erase(Index first, Index count) {
    const Index width = rows.cols();
    std::copy(rows.data() + (first + count) * width, rows.data() + length * width,
              rows.data() + first * width);
    length -= count;
  }
  View<const Scalar, 2> view() const { return {rows.data(), {length, rows.cols()}}; }
  View<Scalar, 2> view() { return {rows.data(), {length, rows.cols()}}; }
};

/// What both kinds share: from projected queries, keys and values of a batch to what the heads saw.
template <class Scalar>
class AttentionHeads {
 public:
  struct Saved {
    View<Scalar, 2> context;    // (tokens, heads x head_dim)
    View<Scalar, 2> p, capped;  // of all sentences, one after another
  };

  explicit AttentionHeads(const AttentionConfig& config)
      : config_(config), options_{1.0 / std::sqrt(static_cast<double>(config.head_dim())), config.softcap} {}

  const AttentionConfig& config() const { return config_; }

  /// q: (tokens, heads, head_dim); k, v: (tokens of the keys, kv_heads, head_dim), both packed like their
  /// sequences.
  template <class Bias>
  void forward(Pass<Scalar>& pass, const View<const Scalar, 3>& q, const View<const Scalar, 3>& k,
               const View<const Scalar, 3>& v, const Sequences& q_of, const Sequences& k_of, Saved& saved,
               const Bias& bias) const {
    saved.context = pass.workspace.matrix(q.extent(0), config_.inner());
    const Index scores = offset(q_of, k_of, q_of.count());
    saved.p = pass.workspace.matrix(1, scores);
    saved.capped = config_.softcap != 0 ? pass.workspace.matrix(1, scores) : View<Scalar, 2>();
    const View<Scalar, 3> out = posenc::split_heads(saved.context, config_.num_heads);
    Index at = 0;
    for (Index s = 0; s < q_of.count(); ++s) {
      const View<Scalar, 3> p = scores_of(saved.p, q_of, k_of, s, at);
      attend(out.slice(0, q_of.start(s), q_of.length(s)), q.slice(0, q_of.start(s), q_of.length(s)),
             k.slice(0, k_of.start(s), k_of.length(s)), v.slice(0, k_of.start(s), k_of.length(s)), p,
             scores_of(saved.capped, q_of, k_of, s, at), options_, mask(q_of, k_of, s), bias);
      at += p.size();
    }
  }

  /// dq is overwritten; dk and dv accumulate.
  void backward(Pass<Scalar>& pass, const View<Scalar, 3>& dq, const View<Scalar, 3>& dk,
                const View<Scalar, 3>& dv, const View<const Scalar, 2>& d_context,
                const View<const Scalar, 3>& q, const View<const Scalar, 3>& k,
                const View<const Scalar, 3>& v, const Sequences& q_of, const Sequences& k_of,
                const Saved& saved) const {
    const View<const Scalar, 3> d_out = posenc::split_heads(d_context, config_.num_heads);
    Index at = 0;
    for (Index s = 0; s < q_of.count(); ++s) {
      const typename Workspace<Scalar>::Scope scope(pass.workspace);
      const auto queries = [&](const auto& x) { return x.slice(0, q_of.start(s), q_of.length(s)); };
      const auto keys = [&](const auto& x) { return x.slice(0, k_of.start(s), k_of.length(s)); };
      const View<Scalar, 3> p = scores_of(saved.p, q_of, k_of, s, at);
      attend_vjp<Scalar>(queries(dq), keys(dk), keys(dv), queries(d_out), queries(q), keys(k), keys(v), p,
                         scores_of(saved.capped, q_of, k_of, s, at), options_, mask(q_of, k_of, s),
                         pass.workspace.tensor(1, q_of.length(s), k_of.length(s)));
      at += p.size();
    }
  }

  /// New queries of one sentence against all of its keys; the last query stands at the last key. `seen`: one
  /// per key, nonzero where there is a token, or null where all of them are. `most_keys`: how many there may
  /// be in a later call, so that its memory is there already.
  template <class Bias>
  void forward_one(Pass<Scalar>& pass, const View<Scalar, 3>& out, const View<const Scalar, 3>& q,
                   const View<const Scalar, 3>& k, const View<const Scalar, 3>& v, const std::uint8_t* seen,
                   Index most_keys, const Bias& bias) const {
    const typename Workspace<Scalar>::Scope scope(pass.workspace);
    AttentionMask mask;
    if (config_.causal && q.extent(0) > 1) mask = AttentionMask::causal(q.extent(0), k.extent(0));
    mask.keys = seen;
    Scalar* const scores =
        pass.workspace.matrix(config_.num_heads, q.extent(0) * (std::max)(most_keys, k.extent(0))).data();
    attend(out, q, k, v, View<Scalar, 3>(scores, {config_.num_heads, q.extent(0), k.extent(0)}),
           View<Scalar, 3>(), options_, mask, bias);
  }

  /// The probabilities of sentence s: (heads, queries, keys).
  View<const Scalar, 3> probabilities(const Saved& saved, const Sequences& q_of, const Sequences& k_of,
                                      Index s) const {
    return scores_of(saved.p, q_of, k_of, s, offset(q_of, k_of, s));
  }

 private:
  Index offset(const Sequences& q_of, const Sequences& k_of, Index sentence) const {
    Index elements = 0;
    for (Index s = 0; s < sentence; ++s) elements += config_.num_heads * q_of.length(s) * k_of.length(s);
    return elements;
  }

  View<Scalar, 3> scores_of(const View<Scalar, 2>& all, const Sequences& q_of, const Sequences& k_of, Index s,
                            Index at) const {
    if (all.data() == nullptr) return {};
    return {all.data() + at, {config_.num_heads, q_of.length(s), k_of.length(s)}};
  }

  AttentionMask mask(const Sequences& q_of, const Sequences& k_of, Index s) const {
    AttentionMask mask;
    if (config_.causal) mask = AttentionMask::causal(q_of.length(s), k_of.length(s));
    mask.keys = k_of.mask(s);
    return mask;
  }

  AttentionConfig config_;
  AttentionOptions options_;
};

template <class Scalar>
class SelfAttention {
 public:
  struct Saved {
    View<const Scalar, 2> x;
    View<Scalar, 2> qkv;
    typename AttentionHeads<Scalar>::Saved heads;
  };

  SelfAttention(Parameters<Scalar>& parameters, const std::string& name, const AttentionConfig& config,
                const PositionEncoding<Scalar>& positions)
      : heads_(config),
        positions_(positions),
        project_(parameters, name + ".qkv", config.d_model, all_heads() * config.head_dim(), config.bias, 3),
        out_(parameters, name + ".out", config.inner(), config.d_model, config.bias) {}

  /// x: the tokens of `sequences`, which stand at `at`.
  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& x, const Sequences& sequences,
                          const posenc::Positions& at, Saved& saved) const {
    saved.x = x;
    saved.qkv = project_.forward(pass, x);
    const View<Scalar, 3> all = posenc::split_heads(saved.qkv, all_heads());
    positions_.rotate(queries_and_keys(all), at);
    heads_.forward(pass, queries(all), keys(all), values(all), sequences, sequences, saved.heads,
                   [&](const View<Scalar, 3>& scores) {
                     // A distance does not depend on where its sentence starts.
                     const auto here = posenc::consecutive(0, scores.extent(1));
                     positions_.bias(scores, here, here);
                   });
    return out_.forward(pass, saved.heads.context);
  }

  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<const Scalar, 2>& dy, const Sequences& sequences,
                           const posenc::Positions& at, const Saved& saved) const {
    const View<Scalar, 2> d_context = out_.backward(pass, dy, saved.heads.context);
    const View<Scalar, 2> d_qkv = pass.workspace.matrix(saved.qkv.extent(0), saved.qkv.extent(1));
    set_zero(d_qkv);
    const View<Scalar, 3> d_all = posenc::split_heads(d_qkv, all_heads());
    const View<const Scalar, 3> all = posenc::split_heads(saved.qkv, all_heads());
    heads_.backward(pass, queries(d_all), keys(d_all), values(d_all), d_context, queries(all), keys(all),
                    values(all), sequences, sequences, saved.heads);
    positions_.rotate_vjp(queries_and_keys(d_all), at);
    return project_.backward(pass, d_qkv, saved.x);
  }

  /// The next tokens of one sentence, after those in the cache, which they join.
  View<Scalar, 2> extend(Pass<Scalar>& pass, const View<const Scalar, 2>& x,
                         KeyValueCache<Scalar>& cache) const {
    return extend(pass, x, posenc::consecutive(cache.length, x.extent(0)), std::span(&cache, 1),
                  [](Index) { return nullptr; });
  }

  /// The next tokens of several sentences, as many of each, one sentence after another; they stand at `at`
  /// and join the caches, one per sentence. seen(s): for each key of sentence s, the new ones included,
  /// whether it is a token (nonzero), or null where all of them are.
  template <class Seen>
  View<Scalar, 2> extend(Pass<Scalar>& pass, const View<const Scalar, 2>& x, const posenc::Positions& at,
                         std::span<KeyValueCache<Scalar>> caches, const Seen& seen) const {
    const Index n = x.extent(0) / static_cast<Index>(caches.size()), kv_heads = config().num_kv_heads;
    const View<Scalar, 2> qkv = project_.forward(pass, x);
    const View<Scalar, 3> all = posenc::split_heads(qkv, all_heads());
    positions_.rotate(queries_and_keys(all), at);
    const Index width = 2 * kv_heads * config().head_dim();
    const View<Scalar, 2> context = pass.workspace.matrix(x.extent(0), config().inner());
    const View<Scalar, 3> out = posenc::split_heads(context, config().num_heads);
    for (Index s = 0; s < static_cast<Index>(caches.size()); ++s) {
      KeyValueCache<Scalar>& cache = caches[static_cast<std::size_t>(s)];
      const Index past = cache.length;
      cache.append(qkv.slice(0, s * n, n).slice(1, qkv.extent(1) - width, width));
      const View<const Scalar, 3> kv = posenc::split_heads(as_const(cache.view()), 2 * kv_heads);
      heads_.forward_one(
          pass, out.slice(0, s * n, n), queries(all).slice(0, s * n, n), kv.slice(1, 0, kv_heads),
          kv.slice(1, kv_heads, kv_heads), seen(s), cache.rows.rows(), [&](const View<Scalar, 3>& scores) {
            // A distance is that of places in the cache, whatever the positions start from.
            positions_.bias(scores, posenc::consecutive(past, n), posenc::consecutive(0, past + n));
          });
    }
    return out_.forward(pass, context);
  }

  /// Moves `count` cached keys, from `first` on, `delta` positions further.
  void shift(KeyValueCache<Scalar>& cache, Index first, Index count, posenc::Position delta) const {
    const View<Scalar, 3> kv = posenc::split_heads(cache.view(), 2 * config().num_kv_heads);
    positions_.shift(kv.slice(0, first, count).slice(1, 0, config().num_kv_heads), delta);
  }

  const AttentionHeads<Scalar>& heads() const { return heads_; }

 private:
  const AttentionConfig& config() const { return heads_.config(); }
  Index all_heads() const { return config().num_heads + 2 * config().num_kv_heads; }
  template <class T>
  View<T, 3> queries(const View<T, 3>& all) const {
    return all.slice(1, 0, config().num_heads);
  }
  template <class T>
  View<T, 3> keys(const View<T, 3>& all) const {
    return all.slice(1, config().num_heads, config().num_kv_heads);
  }
  template <class T>
  View<T, 3> values(const View<T, 3>& all) const {
    return all.slice(1, config().num_heads + config().num_kv_heads, config().num_kv_heads);
  }
  template <class T>
  View<T, 3> queries_and_keys(const View<T, 3>& all) const {
    return all.slice(1, 0, config().num_heads + config().num_kv_heads);
  }

  AttentionHeads<Scalar> heads_;
  PositionEncoding<Scalar> positions_;
  Linear<Scalar> project_, out_;
};

template <class Scalar>
class CrossAttention {
 public:
  struct Saved {
    View<const Scalar, 2> x, memory;
    View<Scalar, 2> q, kv;
    typename AttentionHeads<Scalar>::Saved heads;
  };

  CrossAttention(Parameters<Scalar>& parameters, const std::string& name, const AttentionConfig& config)
      : heads_(config),
        query_(parameters, name + ".q", config.d_model, config.inner(), config.bias),
        key_value_(parameters, name + ".kv", config.d_model, 2 * config.num_kv_heads * config.head_dim(),
                   config.bias, 2),
        out_(parameters, name + ".out", config.inner(), config.d_model, config.bias) {}

  /// x: the tokens of `sequences`; memory: the encoder's output for those of `memory_of`.
  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& x, const Sequences& sequences,
                          const View<const Scalar, 2>& memory, const Sequences& memory_of,
                          Saved& saved) const {
    saved.x = x, saved.memory = memory;
    saved.q = query_.forward(pass, x);
    saved.kv = key_value_.forward(pass, memory);
    const View<const Scalar, 3> kv = posenc::split_heads(saved.kv, 2 * kv_heads());
    heads_.forward(pass, posenc::split_heads(as_const(saved.q), heads_.config().num_heads), keys(kv),
                   values(kv), sequences, memory_of, saved.heads, [](const View<Scalar, 3>&) {});
    return out_.forward(pass, saved.heads.context);
  }

  /// Returns dx, and adds to d_memory.
  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<Scalar, 2>& d_memory,
                           const View<const Scalar, 2>& dy, const Sequences& sequences,
                           const Sequences& memory_of, const Saved& saved) const {
    const View<Scalar, 2> d_context = out_.backward(pass, dy, saved.heads.context);
    const View<Scalar, 2> dq = pass.workspace.matrix(saved.q.extent(0), saved.q.extent(1));
    const View<Scalar, 2> dkv = pass.workspace.matrix(saved.kv.extent(0), saved.kv.extent(1));
    set_zero(dkv);
    const View<const Scalar, 3> kv = posenc::split_heads(saved.kv, 2 * kv_heads());
    const View<Scalar, 3> d_kv = posenc::split_heads(dkv, 2 * kv_heads());
    const Index heads = heads_.config().num_heads;
    heads_.backward(pass, posenc::split_heads(dq, heads), keys(d_kv), values(d_kv), d_context,
                    posenc::split_heads(as_const(saved.q), heads), keys(kv), values(kv), sequences, memory_of,
                    saved.heads);
    matrix(d_memory) += matrix(key_value_.backward(pass, dkv, saved.memory));
    return query_.backward(pass, dq, saved.x);
  }

  /// The keys and values of a sentence, once for all steps of decoding.
  void remember(Pass<Scalar>& pass, const View<const Scalar, 2>& memory, KeyValueCache<Scalar>& cache) const {
    cache.append(key_value_.forward(pass, memory));
  }
  View<Scalar, 2> extend(Pass<Scalar>& pass, const View<const Scalar, 2>& x,
                         const KeyValueCache<Scalar>& cache) const {
    const View<Scalar, 2> q = query_.forward(pass, x);
    const View<Scalar, 2> context = pass.workspace.matrix(x.extent(0), heads_.config().inner());
    const View<const Scalar, 3> kv = posenc::split_heads(cache.view(), 2 * kv_heads());
    heads_.forward_one(pass, posenc::split_heads(context, heads_.config().num_heads),
                       posenc::split_heads(as_const(q), heads_.config().num_heads), keys(kv), values(kv),
                       nullptr, 0, [](const View<Scalar, 3>&) {});
    return out_.forward(pass, context);
  }

  const AttentionHeads<Scalar>& heads() const { return heads_; }

 private:
  Index kv_heads() const { return heads_.config().num_kv_heads; }
  template <class T>
  View<T, 3> keys(const View<T, 3>& kv) const {
    return kv.slice(1, 0, kv_heads());
  }
  template <class T>
  View<T, 3> values(const View<T, 3>& kv) const {
    return kv.slice(1, kv_heads(), kv_heads());
  }

  AttentionHeads<Scalar> heads_;
  Linear<Scalar> query_, key_value_, out_;
};

}  // namespace transformer
