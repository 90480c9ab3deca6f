#pragma once
// Scaled dot-product attention ("Attention Is All You Need", section 3.2.1, eq. 1), one sentence, all heads:
//
//   S = scale Q K^T           scale = 1 / sqrt(head_dim) unless said otherwise
//   S = cap tanh(S / cap)     softcap, where there is one (Gemma 2)
//   S = S + bias              ALiBi
//   P = softmax(S)            over the keys that a query may see; a query that may see none gets zeros
//   O = P V
//
// and backwards, from dO:
//
//   dP = dO V^T,   dS = P * (dP - rowsum(P * dP)),   dS *= 1 - (S / cap)^2 where there is a cap
//   dQ = scale dS K,   dK = scale dS^T Q,   dV = P^T dO
//
// Queries may have more heads than keys and values (grouped-query attention, Ainslie et al. 2023): query head
// h looks at key head h / (query heads / key heads), which gathers the gradients of its group.
//
// What a mask hides is never read into a result, not even as 0 x NaN.

#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>

#include "posenc/core/tensor.hpp"
#include "transformer/matrix.hpp"

namespace transformer {

/// Which keys j a query i may see: all of those that no part of the mask hides.
struct AttentionMask {
  std::optional<Index> causal_offset =
      {};                              ///< sees j <= i + offset: query i stands where key i + offset does
  const std::uint8_t* keys = nullptr;  ///< one per key, nonzero where there is a token: key padding
  std::optional<View<const std::uint8_t, 2>> pairs = {};  ///< (queries, keys), nonzero where i may see j

  /// Causal with the last query at the last key, as in a cache: fewer queries than keys see all of the past.
  static AttentionMask causal(Index queries, Index keys) { return {.causal_offset = keys - queries}; }

  bool hides_something() const { return causal_offset || keys != nullptr || pairs; }
  bool visible(Index i, Index j) const {
    return (!causal_offset || j <= i + *causal_offset) && (keys == nullptr || keys[j] != 0) &&
           (!pairs || (*pairs)(i, j) != 0);
  }
};

struct AttentionOptions {
  double scale = 1.0;    ///< on the products; 1 / sqrt(head_dim) in the paper
  double softcap = 0.0;  ///< 0: none
};

/// Head h of (tokens, heads, dim) as a (tokens, dim) matrix.
template <class T>
auto head(const View<T, 3>& x, Index h) {
  return strided(
      View<T, 2>(x.data() + h * x.stride(1), {x.extent(0), x.extent(2)}, {x.stride(0), x.stride(2)}));
}

/// Entry h of (heads, queries, keys), as a matrix.
template <class T>
auto plane(const View<T, 3>& x, Index h) {
  return matrix(View<T, 2>(x.data() + h * x.stride(0), {x.extent(1), x.extent(2)}));
}

/// scores[h] = scale q[h] k[h]^T. q: (queries, heads, dim); k: (keys, kv_heads, dim).
template <class Scalar>
void attention_scores(const View<Scalar, 3>& scores, const View<const Scalar, 3>& q,
                      const View<const Scalar, 3>& k, double scale) {
  const Index group = q.extent(1) / k.extent(1);
  const auto factor = static_cast<Scalar>(scale);
  for (Index h = 0; h < q.extent(1); ++h)
    if (q.extent(0) == 1) {  // Eigen would allocate the scaled row of a product with one row
      plane(scores, h).noalias() = head(q, h) * head(k, h / group).transpose();
      plane(scores, h) *= factor;
    } else {
      plane(scores, h).noalias() = (factor * head(q, h)) * head(k, h / group).transpose();
    }
}

/// Every element of a packed (heads, queries, keys) tensor.
template <class Scalar>
auto elements(const View<Scalar, 3>& x) {
  return matrix(View<Scalar, 2>(x.data(), {x.extent(0) * x.extent(1), x.extent(2)})).array();
}

/// scores = cap tanh(scores / cap).
template <class Scalar>
void softcap(const View<Scalar, 3>& scores, double cap) {
  auto s = elements(scores);
  s = static_cast<Scalar>(cap) * (s / static_cast<Scalar>(cap)).tanh();
}

/// scores = -infinity where the mask hides a key.
template <class Scalar>
void hide(const View<Scalar, 3>& scores, const AttentionMask& mask) {
  if (!mask.hides_something()) return;
  for (Index i = 0; i < scores.extent(1); ++i)
    for (Index j = 0; j < scores.extent(2); ++j)
      if (!mask.visible(i, j))
        for (Index h = 0; h < scores.extent(0); ++h)
          scores(h, i, j) = -std::numeric_limits<Scalar>::infinity();
}

/// P = softmax(S) over the keys, in place. Hidden scores are -infinity already; they become exactly zero.
template <class Scalar>
void softmax(const View<Scalar, 3>& scores, const AttentionMask& mask) {
  if (scores.extent(2) == 0) return;
  auto s = elements(scores);
  for (Index r = 0; r < s.rows(); ++r) {
    const Scalar largest = s.row(r).maxCoeff();
    // -infinity: nothing to see. The difference to it would be NaN, and the exponential of that no zero.
    s.row(r) -= largest == -std::numeric_limits<Scalar>::infinity() ? Scalar{0} : largest;
  }
  s = s.exp();
  if (mask.hides_something())  // exp may round -infinity to the smallest number instead of zero
    for (Index i = 0; i < scores.extent(1); ++i)
      for (Index j = 0; j < scores.extent(2); ++j)
        if (!mask.visible(i, j))
          for (Index h = 0; h < scores.extent(0); ++h) scores(h, i, j) = Scalar{0};
  for (Index r = 0; r < s.rows(); ++r) {
    const Scalar sum = s.row(r).sum();
    if (sum != Scalar{0}) s.row(r) *= Scalar{1} / sum;
  }
}

/// out (+)= a b, where a(i, j) is zero whenever visible(i, j) is false. A NaN or infinity in row j of b must
/// then not come through as 0 x NaN, so where b holds one, hidden terms are left out one by one.
template <bool Accumulate, class Out, class A, class B, class Visible>
void multiply_visible(Out&& out, const A& a, const B& b, bool hides_something, const Visible& visible) {
  if (!hides_something || (b.array() - b.array()).sum() == 0) {  // x - x is 0 for finite x, and else NaN
    if constexpr (Accumulate)
      out.noalias() += a * b;
    else
      out.noalias() = a * b;
    return;
  }
  for (Index i = 0; i < a.rows(); ++i) {
    if constexpr (!Accumulate) out.row(i).setZero();
    for (Index j = 0; j < b.rows(); ++j)
      if (visible(i, j)) out.row(i) += a(i, j) * b.row(j);
  }
}

/// out[h] = p[h] v[h]. v: (keys, kv_heads, dim); out: (queries, heads, dim).
template <class Scalar>
void weighted_values(const View<Scalar, 3>& out, const View<const Scalar, 3>& p,
                     const View<const Scalar, 3>& v, const AttentionMask& mask) {
  const Index group = out.extent(1) / v.extent(1);
  for (Index h = 0; h < out.extent(1); ++h)
    multiply_visible<false>(head(out, h), plane(p, h), head(v, h / group), mask.hides_something(),
                            [&](Index i, Index j) { return mask.visible(i, j); });
}

/// All of it. p receives the probabilities, and `capped` (unless its memory is null) what softcap made of the
/// scores: attend_vjp needs both. bias(scores) adds to the scores in place.
template <class Scalar, class Bias>
void attend(const View<Scalar, 3>& out, const View<const Scalar, 3>& q, const View<const Scalar, 3>& k,
            const View<const Scalar, 3>& v, const View<Scalar, 3>& p, const View<Scalar, 3>& capped,
            const AttentionOptions& options, const AttentionMask& mask, const Bias& bias) {
  attention_scores(p, q, k, options.scale);
  if (options.softcap != 0) {
    softcap(p, options.softcap);
    if (capped.data() != nullptr) elements(capped) = elements(p);
  }
  bias(p);
  hide(p, mask);
  softmax(p, mask);
  weighted_values(out, View<const Scalar, 3>(p), v, mask);
}

/// The gradients: dq is overwritten, dk and dv accumulate. `scratch`: (2, queries, keys).
template <class Scalar>
void attend_vjp(const View<Scalar, 3>& dq, const View<Scalar, 3>& dk, const View<Scalar, 3>& dv,
                const View<const Scalar, 3>& d_out, const View<const Scalar, 3>& q,
                const View<const Scalar, 3>& k, const View<const Scalar, 3>& v,
                const View<const Scalar, 3>& p, const View<const Scalar, 3>& capped,
                const AttentionOptions& options, const AttentionMask& mask, const View<Scalar, 3>& scratch) {
  const Index group = q.extent(1) / k.extent(1);
  const bool hides = mask.hides_something();
  const auto visible = [&](Index i, Index j) { return mask.visible(i, j); };
  const auto seen_by = [&](Index j, Index i) { return mask.visible(i, j); };
  const auto scale = static_cast<Scalar>(options.scale);
  auto ds = plane(scratch, 0);
  for (Index h = 0; h < q.extent(1); ++h) {
    const auto probability = plane(p, h);
    ds.noalias() = head(d_out, h) * head(v, h / group).transpose();  // dP
    if (hides)
      for (Index i = 0; i < ds.rows(); ++i)
        for (Index j = 0; j < ds.cols(); ++j)
          if (!visible(i, j)) ds(i, j) = Scalar{0};
    for (Index i = 0; i < ds.rows(); ++i) {
      auto row = ds.row(i).array();
      const Scalar expected = (row * probability.row(i).array()).sum();
      row = scale * probability.row(i).array() * (row - expected);
    }
    if (options.softcap != 0) {
      const auto ratio = plane(capped, h).array() / static_cast<Scalar>(options.softcap);
      if (hides) {
        for (Index i = 0; i < ds.rows(); ++i)
          for (Index j = 0; j < ds.cols(); ++j)
            if (visible(i, j)) ds(i, j) *= Scalar{1} - ratio(i, j) * ratio(i, j);
      } else {
        ds.array() *= Scalar{1} - ratio.square();
      }
    }
    multiply_visible<false>(head(dq, h), ds, head(k, h / group), hides, visible);
    multiply_visible<true>(head(dk, h / group), ds.transpose(), head(q, h), hides, seen_by);
    multiply_visible<true>(head(dv, h / group), probability.transpose(), head(d_out, h), hides, seen_by);
  }
}

}  // namespace transformer
