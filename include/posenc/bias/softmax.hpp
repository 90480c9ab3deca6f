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
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "posenc/bias/alibi.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/stack.hpp"
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

/// e^x for x <= 0, to 1.2 units in the last place; 0 below -86.99 (-708.05 for double). NaN stays NaN.
/// `least` is -87.25 (-708.25).
template <std::floating_point C>
[[gnu::always_inline]] inline Pack<C> exp_of_negative(Pack<C> x, C least) {
  using U = std::conditional_t<std::same_as<C, float>, std::uint32_t, std::uint64_t>;
  constexpr bool is_float = std::same_as<C, float>;
  constexpr int mantissa = is_float ? 23 : 52;
  // x = n ln 2 + r with |r| <= ln 2 / 2: the sum with `magic` puts the integer n, and the exponent of 1/2,
  // into the mantissa, from where it becomes the exponent of 2^(n-1); or 0, for the least n that can come.
  constexpr C magic = is_float ? C(0x1.8p23) + 126 : C(0x1.8p52) + 1022;
  constexpr C high = is_float ? C(0x1.62e4p-1) : C(0x1.62e42fefap-1);  // ln 2, its first bits
  constexpr C low = is_float ? C(0x1.7f7d1cp-20) : C(0x1.cf79abc9e3b39p-40);
  x = larger(broadcast(least), x);
  const Pack<C> shifted = opaque(multiply_add(x, broadcast(C(0x1.71547652b82fep+0)), broadcast(magic)));
  const Pack<C> n = shifted - magic;
  const Pack<C> r = multiply_add(n, broadcast(-low), opaque(multiply_add(n, broadcast(-high), x)));
  // 2 e^r = 2 + 2 r + ...: the polynomial that starts so and whose largest relative error is least (Remez's
  // exchange in 60 digits), 3.1e-9, or 5.4e-20 for double.
  Pack<C> sum;
  if constexpr (is_float)
    sum =
        polynomial<C>(r, 2.0, 2.0, 0x1.fffffcp-1, 0x1.555492p-2, 0x1.5558f2p-4, 0x1.1239e2p-6, 0x1.6a2434p-9);
  else
    sum = polynomial<C>(r, 2.0, 2.0, 1.0, 0x1.555555555555bp-2, 0x1.5555555555503p-4, 0x1.111111110ec5dp-6,
                        0x1.6c16c16c3048cp-9, 0x1.a01a01b37e37fp-12, 0x1.a01a01368f8a2p-15,
                        0x1.71ddf020cdedcp-18, 0x1.27e5b44634161p-21, 0x1.af6be7e49d961p-25,
                        0x1.1e3d2d1a6d39ap-28);
  // An exact product: the same where a compiler fuses it.
  return sum * bits_as<Pack<C>>(bits_as<Pack<U>>(shifted) << mantissa);
}

/// A row of scores is worked on in blocks of 8 KiB.
template <std::floating_point C>
inline constexpr Index softmax_block = 8192 / Index{sizeof(C)};
/// Rows of up to this many keys are kept between the passes; longer ones are computed anew.
inline constexpr Index softmax_kept = 4096;

/// Working memory of SoftmaxRow: room for softmax_kept keys, block by block, and for biases.
template <std::floating_point C>
struct SoftmaxScratch {
  static constexpr std::size_t blocks{softmax_kept / softmax_block<C>}, biases = 12288 / sizeof(C);
  std::array<C*, blocks> x;
  C* added;

  /// f(a scratch), a buffer after the other.
  template <std::size_t Block = 0, class F>
  void with(const F& f) {
    if constexpr (Block < blocks)
      with_buffer<C, std::size_t{softmax_block<C>}>([&](C* buffer) {
        x[Block] = buffer;
        with<Block + 1>(f);
      });
    else
      with_buffer<C, biases>([&](C* buffer) {
        added = buffer;
        f(*this);
      });
  }
};

/// One row of scores: query position i in head h of batch row b.
template <scalar_type S>
struct ScoreRow {
  const S* in;
  S* out;
  Index b, h;
  Position i;
  Index more;  // queries of the head that come after it
};

/// The passes over one row of scores.
template <scalar_type S, class Bias>
class SoftmaxRow {
 public:
  using C = compute_t<S>;
  SoftmaxRow(const SoftmaxScratch<C>& scratch, const Bias& bias, const Positions& k_at,
             const SoftmaxConfig& config, Index keys, Index in_step, Index out_step)
      : scratch_(scratch),
        bias_(bias),
        k_at_(k_at),
        scale_(constant<S>(config.scale)),
        causal_(config.causal),
        keys_(keys),
        in_step_(in_step),
        out_step_(out_step),
        in_ahead_(in_step == 1 && keys <= softmax_kept ? step : 0),
        out_ahead_(out_step == 1 && keys <= softmax_kept ? step : 0) {
    if constexpr (std::same_as<Bias, Alibi>) causal_ = causal_ || bias.config().form == AlibiForm::causal;
    for (Index n = 0; n < step; ++n) places_[n] = static_cast<C>(n);
  }

  /// row.out[j] = p of scores row.in[j], j in [0, keys). `next` is the row of the next call.
  void operator()(const ScoreRow<S>& row, const ScoreRow<S>& next) {
    // Keys that come in order are hidden from some key on.
    Index seen = keys_;
    if (causal_ && k_at_.is_consecutive()) {
      const Position first = keys_ == 0 ? 0 : k_at_(row.b, 0);
      seen = row.i < first ? 0 : row.i - first < keys_ ? static_cast<Index>(row.i - first) + 1 : keys_;
    }
    const auto each_block = [&](const auto& f) {
      for (Index first = 0; first < seen; first += block) {
        x_ = scratch_.x[static_cast<std::size_t>(first / block) % scratch_.blocks];
        f(first, (std::min)(block, seen - first));
      }
    };
    const bool kept = seen <= softmax_kept;
    Pack<C> most = hidden();
    each_block([&](Index first, Index count) { most = larger(load(row, first, count), most); });
    C top = fold(most, [](Pack<C> a, Pack<C> b) { return larger(a, b); });
    if (is_minus_infinity(opaque(top))) top = 0;  // no key is seen, or NaN alone

    Pack<C> sums{};
    each_block([&](Index first, Index count) {
      if (!kept) load(row, first, count);
      sums += exponentials(top, count, next.in);
    });
    const C sum = fold(sums, [](Pack<C> a, Pack<C> b) { return a + b; });
    const C inverse = sum == 0 ? C{0} : C{1} / sum;
    each_block([&](Index first, Index count) {
      if (!kept) load(row, first, count), exponentials(top, count, next.in);
      finish(row.out + first * out_step_, count, keys_ - first, inverse, next.out);
    });
    if (seen == keys_) return;
    if (out_step_ == 1) {
      if (out_ahead_ > 0) prefetch(next.out, seen, keys_ - seen);
      std::memset(static_cast<void*>(row.out + seen), 0, static_cast<std::size_t>(keys_ - seen) * sizeof(S));
    } else {
      for (Index j = seen; j < keys_; ++j) row.out[j * out_step_] = static_cast<S>(0);
    }
  }

 private:
  static constexpr Index step = pack_size<C>, block = softmax_block<C>;
  static constexpr auto hidden_bits = infinity_bits<C> | sign_bit<C>;  // of -infinity
  [[gnu::always_inline]] static Pack<C> hidden() {
    return opaque(bits_as<Pack<C>>(Pack<BitsOf<C>>{} + hidden_bits));
  }
  static constexpr Index padded(Index count) { return (count + step - 1) / step * step; }

  [[gnu::always_inline]] static Pack<C> normal_or_zero(Pack<C> x) {
    using Mask = decltype(x < x);
    return bits_as<Pack<C>>(bits_as<Mask>(x) & ~(x < (std::numeric_limits<C>::min)()));
  }

  /// x = scale in + bias, and -infinity for what is hidden and for the rest of the last pack. Returns the
  /// largest number of each place in a pack.
  Pack<C> load(const ScoreRow<S>& row, Index first, Index count) {
    const S* in = row.in + first * in_step_;
    const Pack<C> scale = broadcast(scale_);
    const bool any_hidden = causal_ && !k_at_.is_consecutive();
    if constexpr (std::same_as<Bias, NoBias>)
      if (!any_hidden)
        return biased(in, count, keys_ - first,
                      [&](Pack<C> scores, Index) { return multiply_add(scores, scale, Pack<C>{}); });
    if constexpr (std::same_as<Bias, Alibi>) {
      if (bias_.is_run(row.i, k_at_, row.b, first, count)) {
        const C* run = biases(row, bias_.run_start(row.i, k_at_(row.b, first)), count);
        return biased(in, count, keys_ - first, [&](Pack<C> scores, Index j) {
          return multiply_add(scores, scale, load_pack(run + j));
        });
      }
      run_count_ = 0;
      bias_.fill_row(row.h, row.i, k_at_, row.b, first, count, added_);
    } else {
      for (Index j = 0; j < count; ++j)
        added_[j] = static_cast<C>(bias_(row.h, row.i, k_at_(row.b, first + j)));
    }
    if (any_hidden)
      for (Index j = 0; j < count; ++j)
        if (k_at_(row.b, first + j) > row.i) added_[j] = minus_infinity<C>();
    std::fill(added_ + count, added_ + padded(count), minus_infinity<C>());
    return biased(in, count, keys_ - first, [&](Pack<C> scores, Index j) {
      using Mask = decltype(scores < scores);
      const Pack<C> added = load_pack(added_ + j), sum = multiply_add(scores, scale, added);
      return bits_as<Pack<C>>(select(bits_as<Mask>(bits_as<Pack<BitsOf<C>>>(added) == hidden_bits),
                                     bits_as<Mask>(added), bits_as<Mask>(sum)));
    });
  }

  /// The biases of `count` keys from Alibi::run_start on. Those of the next query begin one place before, so
  /// the run is made for several.
  const C* biases(const ScoreRow<S>& row, Position start, Index count) {
    const Index size = padded(count);
    if (row.h != run_head_ || start < run_start_ || start + size > run_start_ + run_count_) {
      run_count_ = (std::min)(static_cast<Index>(scratch_.biases), size + row.more);
      run_start_ = start + size - run_count_, run_head_ = row.h;
      bias_.fill_run(row.h, run_start_, run_count_, added_);
    }
    return added_ + (start - run_start_);
  }

  /// x = f(in), a pack at a time, with -infinity in the rest of the last one. `room` is what the row has from
  /// `in` on.
  template <class F>
  [[gnu::always_inline]] Pack<C> biased(const S* in, Index count, Index room, const F& f) {
    using Mask = decltype(Pack<C>{} < Pack<C>{});
    Pack<C> most = hidden();
    const auto put = [&](Index j, Pack<C> x) {
      most = larger(x, most);  // without NaN, which gets into the sum
      store_pack(x_ + j, x);
    };
    const auto put_last = [&](Index j, Pack<C> x) {
      const auto there = bits_as<Mask>(places_ < static_cast<C>(count - j));
      put(j, bits_as<Pack<C>>(select(there, bits_as<Mask>(x), bits_as<Mask>(hidden()))));
    };
    Index j = 0;
    if (in_step_ == 1) {
      for (; j + step <= count; j += step) put(j, f(load_pack(in + j), j));
      if (j < count) put_last(j, f(j + step <= room ? load_pack(in + j) : load_part(in + j, count - j), j));
    } else {
      load_tile(View<const S, 2>(Unchecked(), in, {1, count}, {0, in_step_}), x_);
      for (; j + step <= count; j += step) put(j, f(load_pack(x_ + j), j));
      if (j < count) put_last(j, f(load_part(x_ + j, count - j), j));
    }
    return most;
  }

  /// x = e^(x - top). Returns the sum of each place in a pack. `coming` is what is read next.
  Pack<C> exponentials(C top, Index count, const S* coming) {
    const Pack<C> tops = broadcast(top);
    Pack<C> sum{};
    const Index ahead = in_ahead_;
    for (Index j = 0; j < count; j += step, coming += ahead) {
      prefetch(coming);
      const Pack<C> e = exp_of_negative<C>(load_pack(x_ + j) - tops, least_);
      sum += e;
      store_pack(x_ + j, e);
    }
    return sum;
  }

  /// out = e / sum. `room` is what the row has from `out` on; after the last key seen, all is hidden.
  /// `coming` is what is written next.
  void finish(S* out, Index count, Index room, C inverse, const S* coming) {
    const auto p = [&](Index j) { return normal_or_zero(load_pack(x_ + j) * inverse); };
    if (out_step_ == 1) {
      const Index whole = padded(count) <= room ? padded(count) : count / step * step, ahead = out_ahead_;
      Index j = 0;
      for (; j < whole; j += step, coming += ahead) {
        prefetch(coming);
        store_pack(out + j, p(j));
      }
      if (j < count) store_part(out + j, p(j), count - j);
    } else {
      for (Index j = 0; j < padded(count); j += step) store_pack(x_ + j, p(j));
      store_tile(View<S, 2>(Unchecked(), out, {1, count}, {0, out_step_}), x_);
    }
  }

  const SoftmaxScratch<C>& scratch_;
  C* x_ = nullptr;  // the block at hand
  C* const added_ = scratch_.added;
  const Bias& bias_;
  const Positions& k_at_;
  C scale_;
  bool causal_;
  Index keys_, in_step_, out_step_;
  // How far a pack moves on in the memory of the next row. The hardware sees rows of this length too late:
  // each is a page or less.
  Index in_ahead_, out_ahead_;
  // Of exp_of_negative. A variable: with a constant, g++ 12 makes `larger` of four operations instead of one.
  C least_ = std::same_as<C, float> ? C(-87.25) : C(-708.25);
  Pack<C> places_;  // 0, 1, 2, ...
  Index run_head_ = 0, run_count_ = 0;
  Position run_start_ = 0;
};

template <scalar_type S, device D, class Bias>
void softmax_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in, const Bias& bias,
                   const Positions& q_at, const Positions& k_at, const SoftmaxConfig& config) {
  const Index heads = out.extent(1), queries = out.extent(2), keys = out.extent(3);
  const double bytes = static_cast<double>(keys) * sizeof(S);
  parallel_for(device, out.extent(0) * heads * queries, {bytes, bytes, 4 * static_cast<double>(keys)},
               [&](Index begin, Index end) {
                 if (begin >= end) return;
                 const auto row = [&](Index n) {
                   const Index b = n / (heads * queries), h = n / queries % heads, i = n % queries;
                   return ScoreRow<S>{in.data() + b * in.stride(0) + h * in.stride(1) + i * in.stride(2),
                                      out.data() + b * out.stride(0) + h * out.stride(1) + i * out.stride(2),
                                      b,
                                      h,
                                      q_at(b, i),
                                      (std::min)(end - n, queries - i) - 1};
                 };
                 using C = compute_t<S>;
                 SoftmaxScratch<C>().with([&](const SoftmaxScratch<C>& scratch) {
                   SoftmaxRow<S, Bias> softmax(scratch, bias, k_at, config, keys, in.stride(3),
                                               out.stride(3));
                   ScoreRow<S> now = row(begin);
                   for (Index n = begin; n < end; ++n) {
                     const ScoreRow<S> next = n + 1 < end ? row(n + 1) : now;
                     softmax(now, next);
                     now = next;
                   }
                 });
               });
}

template <device D, class Out, class Scores, class Bias>
void softmax(const D& device, Out& out, const Scores& scores, const Bias& bias, const Positions& q_at,
             const Positions& k_at, const SoftmaxConfig& config) {
  using S = scalar_of<Out>;
  const auto checked = out_and_in("out", out, "scores", scores);
  const View<S, 4> to = as_bhqk(checked.out);
  if (!is_finite(config.scale)) invalid("scale: expected a finite number, got ", config.scale);
  if constexpr (std::same_as<Bias, Alibi>) bias.require_heads(to.extent(1));
  require_positions("q_at", q_at, to.extent(0), to.extent(2));
  require_positions("k_at", k_at, to.extent(0), to.extent(3));
  if (to.size() == 0) return;
  softmax_views<S>(device, to, as_bhqk(checked.in), bias, q_at, k_at, config);
}

template <device D, class Dp, class P>
void softmax_vjp(const D& device, Dp& d, const P& p, double scale) {
  using S = scalar_of<Dp>;
  const auto checked = out_and_in("d", d, "p", p);
  if (!is_finite(scale)) invalid("scale: expected a finite number, got ", scale);
  const View<S, 4> to = as_bhqk(checked.out);
  const View<const S, 4> from = as_bhqk(checked.in);
  if (to.size() == 0) return;
  const Index heads = to.extent(1), queries = to.extent(2), keys = to.extent(3);
  const double bytes = static_cast<double>(keys) * sizeof(S);
  parallel_for(device, to.extent(0) * heads * queries, {2 * bytes, bytes, 4 * static_cast<double>(keys)},
               [&](Index begin, Index end) {
                 for (Index n = begin; n < end; ++n) {
                   const Index b = n / (heads * queries), h = n / queries % heads, i = n % queries;
                   // A hidden key has no part in it, whatever its gradient holds. Opaque, because under
                   // -ffast-math 0 d is 0, and the question would be left out.
                   double sum = 0;
                   for (Index j = 0; j < keys; ++j)
                     if (const double one = static_cast<double>(from(b, h, i, j)); one != 0)
                       sum += opaque(one) * static_cast<double>(to(b, h, i, j));
                   for (Index j = 0; j < keys; ++j) {
                     const double one = static_cast<double>(from(b, h, i, j));
                     const double slope =
                         one == 0 ? 0 : scale * opaque(one) * (static_cast<double>(to(b, h, i, j)) - sum);
                     to(b, h, i, j) = narrow<S>(static_cast<compute_t<S>>(slope));
                   }
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
  detail::softmax(Eigen::DefaultDevice(), scores, scores, bias, q_at, k_at, config);
}
/// The same on a device.
template <device D, writable_tensor Scores, score_bias Bias>
void softmax(const D& device, Scores&& scores, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config = {}) {
  detail::softmax(device, scores, scores, bias, q_at, k_at, config);
}

/// out = softmax(scale scores + bias). out is scores itself or memory apart from it.
template <writable_tensor Out, readable_tensor Scores, score_bias Bias>
void softmax(Out&& out, const Scores& scores, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config = {}) {
  detail::softmax(Eigen::DefaultDevice(), out, scores, bias, q_at, k_at, config);
}
/// The same on a device.
template <device D, writable_tensor Out, readable_tensor Scores, score_bias Bias>
void softmax(const D& device, Out&& out, const Scores& scores, const Bias& bias, const Positions& q_at,
             const Positions& k_at, const SoftmaxConfig& config = {}) {
  detail::softmax(device, out, scores, bias, q_at, k_at, config);
}

/// d = scale p (d - sum_j p d), in place: from d(loss) / d(p) to d(loss) / d(scores). p is what softmax gave,
/// of the shape of d. With scale 1 it is the gradient with respect to the biased scores, which Alibi::add_vjp
/// turns into that of the slopes.
template <writable_tensor Dp, readable_tensor P>
void softmax_vjp(Dp&& d, const P& p, double scale = 1.0) {
  detail::softmax_vjp(Eigen::DefaultDevice(), d, p, scale);
}
/// The same on a device.
template <device D, writable_tensor Dp, readable_tensor P>
void softmax_vjp(const D& device, Dp&& d, const P& p, double scale = 1.0) {
  detail::softmax_vjp(device, d, p, scale);
}

}  // namespace v0
}  // namespace posenc
