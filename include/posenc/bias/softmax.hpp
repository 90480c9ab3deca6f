#pragma once
// Softmax of biased attention scores in one pass over memory. The bias is computed where it is needed, row by
// row, so there is no (heads, seq, seq) matrix of it:
//
//   x[h, i, j] = scale scores[h, i, j] + bias(h, i, j)         over the keys j that query i sees
//   p[h, i, j] = exp(x[h, i, j] - max_j x) / sum_j exp(x[h, i, j] - max_j x)
//
// Convention: the bias meets scores that `scale` has multiplied already (1 / sqrt(head_dim), or 1 where the
// product was scaled). A key is hidden where `causal` says so (its position is after the query's) or where
// the bias is -infinity; its probability is 0 whatever its score holds, NaN included. A query that sees no
// key gets zeros.
//
// A probability too small for a normal float (double for double) is 0: the far keys of ALiBi would otherwise
// make every row slow.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "posenc/bias/alibi.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

namespace posenc {
inline namespace v0 {

/// What softmax does besides adding the bias.
struct SoftmaxConfig {
  double scale = 1.0;   ///< of the scores, not of the bias
  bool causal = false;  ///< hide keys after the query: position of the key > position of the query
};

/// What is added to scores: an Alibi, or any function of (head, position of the query, position of the key).
template <class B>
concept score_bias = std::same_as<B, Alibi> || requires(const B& bias, Index head, Position i, Position j) {
  { bias(head, i, j) } -> std::convertible_to<double>;
};

/// No bias: the softmax alone.
struct NoBias {
  /// 0 everywhere.
  double operator()(Index, Position, Position) const { return 0.0; }
};

namespace detail {

/// e^x for x <= 0, to 1.2 units in the last place; 0 below -87 (-708 for double). NaN stays NaN.
template <std::floating_point C>
[[gnu::always_inline]] inline Pack<C> exp_of_negative(Pack<C> x) {
  using U = std::conditional_t<std::same_as<C, float>, std::uint32_t, std::uint64_t>;
  constexpr bool is_float = std::same_as<C, float>;
  // x = n ln 2 + r with |r| <= ln 2 / 2: the sum with `magic` puts the integer n into the mantissa.
  constexpr C magic = is_float ? C(0x1.8p23) : C(0x1.8p52);
  constexpr C high = is_float ? C(0x1.62e4p-1) : C(0x1.62e42fefap-1);  // ln 2, its first bits
  constexpr C low = is_float ? C(0x1.7f7d1cp-20) : C(0x1.cf79abc9e3b39p-40);
  constexpr int mantissa = is_float ? 23 : 52;
  const Pack<C> shifted = multiply_add(x, broadcast(C(0x1.71547652b82fep+0)), broadcast(magic));
  const Pack<C> n = shifted - magic;
  const Pack<C> r = multiply_add(n, broadcast(-low), multiply_add(n, broadcast(-high), x));
  // 1 + r + r^2 / 2! + ...: the first term left out is below 5e-9, or 5e-18 for double.
  constexpr std::size_t terms = is_float ? 8 : 14;
  constexpr std::array<C, terms> coefficients = [] {
    std::array<C, terms> c{C{1}};
    for (std::size_t k = 1; k < terms; ++k) c[k] = c[k - 1] / static_cast<C>(k);
    return c;
  }();
  Pack<C> sum = broadcast(coefficients[terms - 1]);
  for (std::size_t k = terms - 1; k-- > 0;) sum = multiply_add(sum, r, broadcast(coefficients[k]));
  const auto scaled = (Pack<U>)sum + ((Pack<U>)shifted << mantissa);
  constexpr C least = is_float ? C(-87) : C(-708);
  const auto none = (Pack<U>)(x < least), nan = (Pack<U>)(x != x);
  return (Pack<C>)select(nan, (Pack<U>)x, scaled & ~none);
}

/// Rows of scores of up to this many keys are kept between the passes; longer ones are computed anew.
inline constexpr Index softmax_elements = 4096;

/// The passes over one row of scores.
template <scalar_type S, class Bias>
class SoftmaxRow {
 public:
  using C = compute_t<S>;
  SoftmaxRow(const Bias& bias, const Positions& k_at, const SoftmaxConfig& config)
      : bias_(bias), k_at_(k_at), scale_(constant<S>(config.scale)), causal_(config.causal) {}

  /// out[j] = p of scores in[j], j in [0, keys), of query position i in head h of batch row b.
  void operator()(const S* in, Index in_step, S* out, Index out_step, Index keys, Index b, Index h,
                  Position i) {
    // Keys that come in order are hidden from some key on.
    Index seen = keys;
    if (causal_ && k_at_.is_consecutive()) {
      const Position first = keys == 0 ? 0 : k_at_(b, 0);
      seen = i < first ? 0 : i - first < keys ? static_cast<Index>(i - first) + 1 : keys;
    }
    const Index blocks = (seen + softmax_elements - 1) / softmax_elements;
    const auto each_block = [&](const auto& f) {
      for (Index n = 0; n < blocks; ++n) {
        const Index first = n * softmax_elements, count = (std::min)(softmax_elements, seen - first);
        f(first, count);
      }
    };
    Pack<C> most = broadcast(-std::numeric_limits<C>::infinity());
    each_block([&](Index first, Index count) {
      most = larger(most, load(in + first * in_step, in_step, b, h, i, first, count));
    });
    C top = most[0];
    for (Index n = 1; n < step; ++n)
      if (most[n] > top || most[n] != most[n]) top = most[n];
    if (top == -std::numeric_limits<C>::infinity()) seen = 0;  // no key is seen

    Pack<C> sums{};
    if (seen > 0)
      each_block([&](Index first, Index count) {
        if (blocks > 1) load(in + first * in_step, in_step, b, h, i, first, count);
        for (Index j = 0; j < padded(count); j += step) {
          const Pack<C> e = exp_of_negative<C>(load_pack(x_.data() + j) - top);
          sums += e;
          store_pack(x_.data() + j, e);
        }
      });
    C sum = sums[0];
    for (Index n = 1; n < step; ++n) sum += sums[n];
    const C inverse = C{1} / sum;
    if (seen > 0)
      each_block([&](Index first, Index count) {
        if (blocks > 1) {
          load(in + first * in_step, in_step, b, h, i, first, count);
          for (Index j = 0; j < padded(count); j += step)
            store_pack(x_.data() + j, exp_of_negative<C>(load_pack(x_.data() + j) - top));
        }
        finish(out + first * out_step, out_step, count, inverse);
      });
    if (out_step == 1)
      std::fill(out + seen, out + keys, static_cast<S>(0));
    else
      for (Index j = seen; j < keys; ++j) out[j * out_step] = static_cast<S>(0);
  }

 private:
  static constexpr Index step = pack_size<C>;
  static constexpr Index padded(Index count) { return (count + step - 1) / step * step; }

  [[gnu::always_inline]] static Pack<C> normal_or_zero(Pack<C> x) {
    using Mask = decltype(x < x);
    return (Pack<C>)((Mask)x & ~(x < (std::numeric_limits<C>::min)()));
  }
  // The larger, or NaN where one of them is.
  [[gnu::always_inline]] static Pack<C> larger(Pack<C> a, Pack<C> b) {
    using Mask = decltype(a < b);
    const Mask take = (b > a) | (b != b);
    return (Pack<C>)select(take, (Mask)b, (Mask)a);
  }

  /// x = scale in + bias, and -infinity for what is hidden and for the rest of the last pack. Returns the
  /// largest.
  Pack<C> load(const S* in, Index in_step, Index b, Index h, Position i, Index first, Index count) {
    constexpr C hidden = -std::numeric_limits<C>::infinity();
    using Mask = decltype(Pack<C>{} < Pack<C>{});
    if constexpr (std::same_as<Bias, Alibi>)
      bias_.fill_row(h, i, k_at_, b, first, count, added_.data());
    else if constexpr (!std::same_as<Bias, NoBias>)
      for (Index j = 0; j < count; ++j)
        added_[static_cast<std::size_t>(j)] = static_cast<C>(bias_(h, i, k_at_(b, first + j)));
    else
      std::fill_n(added_.data(), count, C{0});
    if (causal_ && !k_at_.is_consecutive())
      for (Index j = 0; j < count; ++j)
        if (k_at_(b, first + j) > i) added_[static_cast<std::size_t>(j)] = hidden;
    std::fill(added_.begin() + count, added_.begin() + padded(count), hidden);
    Pack<C> most = broadcast(hidden);
    Index j = 0;
    const auto put = [&](Pack<C> score) {
      const Pack<C> added = load_pack(added_.data() + j), sum = multiply_add(score, broadcast(scale_), added);
      const Mask out_of_sight = added == hidden;
      const auto x = (Pack<C>)select(out_of_sight, (Mask)added, (Mask)sum);
      most = larger(most, x);
      store_pack(x_.data() + j, x);
    };
    if (in_step == 1) {
      for (; j + step <= count; j += step) put(load_pack(in + j));
      if (j < count) put(load_part(in + j, count - j));
    } else {
      load_tile(View<const S, 2>(in, {1, count}, {0, in_step}), x_.data());
      for (; j < padded(count); j += step) put(load_pack(x_.data() + j));
    }
    return most;
  }

  /// out = e / sum.
  void finish(S* out, Index out_step, Index count, C inverse) {
    const auto p = [&](Index j) { return normal_or_zero(load_pack(x_.data() + j) * inverse); };
    if (out_step == 1) {
      Index j = 0;
      for (; j + step <= count; j += step) store_pack(out + j, p(j));
      if (j < count) store_part(out + j, p(j), count - j);
    } else {
      for (Index j = 0; j < padded(count); j += step) store_pack(x_.data() + j, p(j));
      store_tile(View<S, 2>(out, {1, count}, {0, out_step}), x_.data());
    }
  }

  const Bias& bias_;
  const Positions& k_at_;
  C scale_;
  bool causal_;
  alignas(64) std::array<C, static_cast<std::size_t>(softmax_elements)> x_, added_;
};

template <scalar_type S, device D, class Bias>
void softmax_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in, const Bias& bias,
                   const Positions& q_at, const Positions& k_at, const SoftmaxConfig& config) {
  const Index heads = out.extent(1), queries = out.extent(2), keys = out.extent(3);
  const double bytes = static_cast<double>(keys) * sizeof(S);
  parallel_for(device, out.extent(0) * heads * queries, {bytes, bytes, 4 * static_cast<double>(keys)},
               [&](Index begin, Index end) {
                 SoftmaxRow<S, Bias> row(bias, k_at, config);
                 for (Index n = begin; n < end; ++n) {
                   const Index b = n / (heads * queries), h = n / queries % heads, i = n % queries;
                   row(in.data() + b * in.stride(0) + h * in.stride(1) + i * in.stride(2), in.stride(3),
                       out.data() + b * out.stride(0) + h * out.stride(1) + i * out.stride(2), out.stride(3),
                       keys, b, h, q_at(b, i));
                 }
               });
}

}  // namespace detail

/// scores = softmax(scale scores + bias) over the last axis, in place. scores: (heads, q, k) or (batch,
/// heads, q, k); q_at and k_at are the positions of queries and keys, shared or per batch row. Throws before
/// anything is written: std::invalid_argument where the shapes don't fit or the scale is not finite,
/// std::out_of_range for heads that an Alibi doesn't have.
template <writable_tensor Scores, score_bias Bias>
void softmax(Scores&& scores, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config = {}) {
  softmax(Eigen::DefaultDevice(), scores, scores, bias, q_at, k_at, config);
}
/// The same on a device.
template <device D, writable_tensor Scores, score_bias Bias>
void softmax(const D& device, Scores&& scores, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config = {}) {
  softmax(device, scores, scores, bias, q_at, k_at, config);
}

/// out = softmax(scale scores + bias). out is scores itself or memory apart from it.
template <writable_tensor Out, readable_tensor Scores, score_bias Bias>
void softmax(Out&& out, const Scores& scores, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config = {}) {
  softmax(Eigen::DefaultDevice(), out, scores, bias, q_at, k_at, config);
}
/// The same on a device.
template <device D, writable_tensor Out, readable_tensor Scores, score_bias Bias>
void softmax(const D& device, Out&& out, const Scores& scores, const Bias& bias, const Positions& q_at,
             const Positions& k_at, const SoftmaxConfig& config = {}) {
  using S = scalar_of<Out>;
  static_assert(std::same_as<S, scalar_of<Scores>>, "posenc: out and scores must have the same scalar type");
  static_assert(rank_of<Out> == rank_of<Scores>, "posenc: out and scores must have the same rank");
  const auto result = detail::output_view("out", out);
  const auto input = detail::input_view(scores);
  detail::require_same_shape("out", input, result);
  const View<S, 4> to = detail::as_bhqk(result);
  if (!std::isfinite(config.scale)) detail::invalid("scale: expected a finite number, got ", config.scale);
  if constexpr (std::same_as<Bias, Alibi>) bias.require_heads(to.extent(1));
  detail::require_positions("q_at", q_at, to.extent(0), to.extent(2));
  detail::require_positions("k_at", k_at, to.extent(0), to.extent(3));
  detail::softmax_views<S>(device, to, View<const S, 4>(detail::as_bhqk(input)), bias, q_at, k_at, config);
}

/// d = scale p (d - sum_j p d), in place: from d(loss) / d(p) to d(loss) / d(scores). p is what softmax gave,
/// of the shape of d. With scale 1 it is the gradient with respect to the biased scores, which Alibi::add_vjp
/// turns into that of the slopes.
template <writable_tensor Dp, readable_tensor P>
void softmax_vjp(Dp&& d, const P& p, double scale = 1.0) {
  softmax_vjp(Eigen::DefaultDevice(), d, p, scale);
}
/// The same on a device.
template <device D, writable_tensor Dp, readable_tensor P>
void softmax_vjp(const D& device, Dp&& d, const P& p, double scale = 1.0) {
  using S = scalar_of<Dp>;
  static_assert(std::same_as<S, scalar_of<P>>, "posenc: d and p must have the same scalar type");
  static_assert(rank_of<Dp> == rank_of<P>, "posenc: d and p must have the same rank");
  const auto target = detail::output_view("d", d);
  const auto source = detail::input_view(p);
  detail::require_same_shape("d", source, target);
  if (!std::isfinite(scale)) detail::invalid("scale: expected a finite number, got ", scale);
  const View<S, 4> to = detail::as_bhqk(target);
  const View<const S, 4> from = detail::as_bhqk(source);
  const Index heads = to.extent(1), queries = to.extent(2), keys = to.extent(3);
  const double bytes = static_cast<double>(keys) * sizeof(S);
  detail::parallel_for(device, to.extent(0) * heads * queries,
                       {2 * bytes, bytes, 4 * static_cast<double>(keys)}, [&](Index begin, Index end) {
                         for (Index n = begin; n < end; ++n) {
                           const Index b = n / (heads * queries), h = n / queries % heads, i = n % queries;
                           // A hidden key has no part in it, whatever its gradient holds.
                           double sum = 0;
                           for (Index j = 0; j < keys; ++j)
                             if (const double one = static_cast<double>(from(b, h, i, j)); one != 0)
                               sum += one * static_cast<double>(to(b, h, i, j));
                           for (Index j = 0; j < keys; ++j) {
                             const double one = static_cast<double>(from(b, h, i, j));
                             const double slope =
                                 one == 0 ? 0 : scale * one * (static_cast<double>(to(b, h, i, j)) - sum);
                             to(b, h, i, j) = detail::narrow<S>(static_cast<compute_t<S>>(slope));
                           }
                         }
                       });
}

}  // namespace v0
}  // namespace posenc
