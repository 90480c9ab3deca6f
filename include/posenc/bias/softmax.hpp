#pragma once
// Softmax of biased attention scores in one pass over memory. The bias is computed where it is needed, row by
// row, so there is no (heads, seq, seq) matrix of it:
//
//   x[h, i, j] = scale scores[h, i, j] + bias(h, i, j)         over the keys j that query i sees
//   p[h, i, j] = exp(x[h, i, j] - max_j x) / sum_j exp(x[h, i, j] - max_j x)
//
// With an attention sink s[h] (StreamingLLM, Xiao et al. 2024; gpt-oss) the sum has one term more, exp(s[h] -
// max), for a key that is not there.
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
#include <span>
#include <type_traits>

#include "posenc/bias/masks.hpp"
#include "posenc/bias/score_bias.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/mistakes.hpp"
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
  /// One learned score for each head of the call, which takes probability and has no key (gpt-oss,
  /// StreamingLLM). Neither scale nor bias touch it. Empty: none.
  std::span<const double> sinks = {};
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

/// One row of scores: query i in head h of batch row b.
template <scalar_type S>
struct ScoreRow {
  const S* in;
  S* out;
  Index b, h, i;
  Index queries_left;  // of the head, after it
};

/// The passes over one row of scores.
template <scalar_type S, class Bias>
class SoftmaxRow {
 public:
  using C = compute_t<S>;
  SoftmaxRow(const SoftmaxScratch<C>& scratch, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config, Index keys, Index in_step, Index out_step)
      : scratch_(scratch),
        bias_(bias),
        q_at_(q_at),
        k_at_(k_at),
        sinks_(config.sinks),
        scale_(constant<S>(config.scale)),
        causal_(config.causal),
        keys_(keys),
        in_step_(in_step),
        out_step_(out_step),
        in_ahead_(in_step == 1 && keys <= softmax_kept ? step : 0),
        out_ahead_(out_step == 1 && keys <= softmax_kept ? step : 0) {
    for (Index n = 0; n < step; ++n) places_[n] = static_cast<C>(n);
  }

  /// row.out[j] = p of scores row.in[j], j in [0, keys). `next` is the row of the next call.
  void operator()(const ScoreRow<S>& row, const ScoreRow<S>& next) {
    const BiasRow at{q_at_, k_at_, row.b, row.h, row.i};
    KeyRange seen = visible(bias_, at, keys_);
    if (causal_) seen = intersection(seen, causal().visible(at, keys_));
    const RowForm of_bias = hides_by_key() ? RowForm::values : form(bias_, at);
    const auto each_block = [&](const auto& f) {
      for (Index first = seen.first; first < seen.last; first += block) {
        x_ = scratch_.x[static_cast<std::size_t>((first - seen.first) / block) % scratch_.blocks];
        f(first, (std::min)(block, seen.last - first));
      }
    };
    const auto load_block = [&](Index first, Index count) {
      return load(at, of_bias, row.in + first * in_step_, first, count, row.queries_left);
    };
    const bool kept = seen.last - seen.first <= softmax_kept;
    Pack<C> most = hidden();
    each_block([&](Index first, Index count) { most = larger(load_block(first, count), most); });
    C top = fold(most, [](Pack<C> a, Pack<C> b) { return larger(a, b); });
    const bool has_sink = !sinks_.empty();
    const C sink = has_sink ? static_cast<C>(sinks_[static_cast<std::size_t>(row.h)]) : C{0};
    if (is_minus_infinity(opaque(top)))
      top = sink;  // no key is seen, or NaN alone
    else if (has_sink)
      top = (std::max)(top, sink);

    const S* coming = next.in + seen.first * in_step_;
    Pack<C> sums{};
    each_block([&](Index first, Index count) {
      if (!kept) load_block(first, count);
      sums += exponentials(top, count, coming);
    });
    C sum = fold(sums, [](Pack<C> a, Pack<C> b) { return a + b; });
    if (has_sink) sum += exp_of_negative<C>(broadcast(sink - top), least_)[0];
    const C inverse = sum == 0 ? C{0} : C{1} / sum;
    each_block([&](Index first, Index count) {
      if (!kept) load_block(first, count), exponentials(top, count, coming);
      finish(row.out + first * out_step_, count, keys_ - first, inverse, next.out + first * out_step_);
    });
    clear(row, next, 0, seen.first);
    clear(row, next, seen.last, keys_);
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

  /// Whether config.causal has to ask each key: those that come in order are hidden by the range of visible
  /// ones.
  bool hides_by_key() const { return causal_ && !k_at_.is_consecutive(); }

  /// out = 0 for keys [first, last), all of which are hidden.
  void clear(const ScoreRow<S>& row, const ScoreRow<S>& next, Index first, Index last) const {
    if (first >= last) return;
    if (out_step_ == 1) {
      if (out_ahead_ > 0) prefetch(next.out, first, last - first);
      std::memset(static_cast<void*>(row.out + first), 0, static_cast<std::size_t>(last - first) * sizeof(S));
    } else {
      for (Index j = first; j < last; ++j) row.out[j * out_step_] = static_cast<S>(0);
    }
  }

  /// x = scale in + bias of keys [first, first + count), and -infinity for what is hidden and for the rest of
  /// the last pack. Returns the largest number of each place in a pack.
  Pack<C> load(const BiasRow& at, RowForm of_bias, const S* in, Index first, Index count,
               Index queries_left) {
    const Pack<C> scale = broadcast(scale_);
    if (of_bias == RowForm::zero)
      return biased(in, count, keys_ - first,
                    [&](Pack<C> scores, Index) { return multiply_add(scores, scale, Pack<C>{}); });
    if (of_bias == RowForm::distance) {
      const C* run = distances(at.head, k_at_(at.b, first) - at.query(), count, queries_left);
      return biased(in, count, keys_ - first,
                    [&](Pack<C> scores, Index j) { return multiply_add(scores, scale, load_pack(run + j)); });
    }
    run_count_ = 0;
    fill_visible(bias_, at, first, count, added_);
    if (hides_by_key())
      for (Index j = 0; j < count; ++j)
        if (at.key(first + j) > at.query()) added_[j] = minus_infinity<C>();
    std::fill(added_ + count, added_ + padded(count), minus_infinity<C>());
    return biased(in, count, keys_ - first, [&](Pack<C> scores, Index j) {
      const Pack<C> added = load_pack(added_ + j);
      return multiply_add(without_hidden<C>(scores, added), scale, added);
    });
  }

  /// The biases of `count` distances from `start` on. Those of the next query begin one place before, so they
  /// are made for several queries.
  const C* distances(Index head, Position start, Index count, Index queries_left) {
    const Index size = padded(count);
    if (head != run_head_ || start < run_start_ || start + size > run_start_ + run_count_) {
      run_count_ = (std::min)(static_cast<Index>(scratch_.biases), size + queries_left);
      run_start_ = start + size - run_count_, run_head_ = head;
      fill_distances(bias_, head, run_start_, run_count_, added_);
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
  const Positions &q_at_, &k_at_;
  std::span<const double> sinks_;
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
                                      i,
                                      (std::min)(end - n, queries - i) - 1};
                 };
                 using C = compute_t<S>;
                 SoftmaxScratch<C>().with([&](const SoftmaxScratch<C>& scratch) {
                   SoftmaxRow<S, Bias> softmax(scratch, bias, q_at, k_at, config, keys, in.stride(3),
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
void softmax(const D& device, Out& out, const Scores& scores, const Bias& bias_or_function,
             const Positions& q_at, const Positions& k_at, const SoftmaxConfig& config) {
  using S = scalar_of<Out>;
  const auto two = out_and_in("out", out, "scores", scores);
  const View<S, 4> to = as_bhqk(two.out);
  const View<const S, 4> from = as_bhqk(two.in);
  if (!is_finite(config.scale)) invalid("scale: expected a finite number, got ", config.scale);
  const auto& bias = as_bias(bias_or_function);
  require_bias("scores", bias, to, q_at, k_at);
  if (config.causal) require_axes("q_at", q_at, 1), require_axes("k_at", k_at, 1);
  if (!config.sinks.empty()) {
    require_equal("sinks", to.extent(1), static_cast<Index>(config.sinks.size()));
    for (const double sink : config.sinks)
      if (!is_finite(sink)) invalid("sinks: expected finite numbers, got ", sink);
  }
  if (to.size() == 0) return;
  softmax_views<S>(device, to, from, bias, q_at, k_at, config);
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
                       sum = multiply_add(opaque(one), static_cast<double>(to(b, h, i, j)), sum);
                   for (Index j = 0; j < keys; ++j) {
                     const double one = static_cast<double>(from(b, h, i, j));
                     const double slope =
                         one == 0 ? 0 : scale * opaque(one) * (static_cast<double>(to(b, h, i, j)) - sum);
                     to(b, h, i, j) = narrow<S>(static_cast<compute_t<S>>(slope));
                   }
                 }
               });
}

template <device D, class Dp, class P>
void sinks_vjp(const D& device, std::span<double> d_sinks, const Dp& dp, const P& p) {
  using S = scalar_of<P>;
  static_assert(rank_of<Dp> == rank_of<P>, "posenc: dp and p must have the same rank");
  const auto gradient = input_view(dp);
  const auto source = input_view(p);
  require_same_shape("dp", source, gradient);
  const View<const scalar_of<Dp>, 4> d = as_bhqk(gradient);
  const View<const S, 4> from = as_bhqk(source);
  const Index heads = d.extent(1);
  require_equal("d_sinks", heads, static_cast<Index>(d_sinks.size()));
  const double work =
      static_cast<double>(d.extent(0)) * static_cast<double>(d.extent(2)) * static_cast<double>(d.extent(3));
  parallel_for(device, heads, {2 * work * sizeof(S), 8.0, 2 * work}, [&](Index begin, Index end) {
    for (Index h = begin; h < end; ++h) {
      double all = 0;
      for (Index b = 0; b < d.extent(0); ++b)
        for (Index i = 0; i < d.extent(2); ++i) {
          double seen = 0, change = 0;
          for (Index j = 0; j < d.extent(3); ++j)
            if (const double one = static_cast<double>(from(b, h, i, j)); one != 0)
              seen += one, change = multiply_add(one, static_cast<double>(d(b, h, i, j)), change);
          all = multiply_add(seen - 1, change, all);
        }
      d_sinks[static_cast<std::size_t>(h)] += all;
    }
  });
}

}  // namespace detail

/// scores = softmax(scale scores + bias) over the last axis, in place. scores: (heads, q, k) or (batch,
/// heads, q, k); q_at and k_at are the positions of queries and keys, shared or per batch row. Throws before
/// anything is written: std::invalid_argument where the shapes don't fit or the scale is not finite,
/// std::out_of_range for heads that an Alibi doesn't have.
template <writable_tensor Scores, class Bias>
  requires(score_bias<Bias> || bias_function<Bias>)
void softmax(Scores&& scores, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config = {}) {
  detail::softmax(Eigen::DefaultDevice(), scores, scores, bias, q_at, k_at, config);
}
/// The same on a device.
template <device D, writable_tensor Scores, class Bias>
  requires(score_bias<Bias> || bias_function<Bias>)
void softmax(const D& device, Scores&& scores, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config = {}) {
  detail::softmax(device, scores, scores, bias, q_at, k_at, config);
}

/// out = softmax(scale scores + bias). out is scores itself or memory apart from it.
template <writable_tensor Out, readable_beside<Out> Scores, class Bias>
  requires(score_bias<Bias> || bias_function<Bias>)
void softmax(Out&& out, const Scores& scores, const Bias& bias, const Positions& q_at, const Positions& k_at,
             const SoftmaxConfig& config = {}) {
  detail::softmax(Eigen::DefaultDevice(), out, scores, bias, q_at, k_at, config);
}
/// The same on a device.
template <device D, writable_tensor Out, readable_beside<Out> Scores, class Bias>
  requires(score_bias<Bias> || bias_function<Bias>)
void softmax(const D& device, Out&& out, const Scores& scores, const Bias& bias, const Positions& q_at,
             const Positions& k_at, const SoftmaxConfig& config = {}) {
  detail::softmax(device, out, scores, bias, q_at, k_at, config);
}

/// A wrong call: the compiler says what is wrong with it.
template <class... Args>
  requires(sizeof...(Args) >= 4)
detail::refused<detail::Roles<detail::Role::out, detail::Role::scores>, Args...> softmax(Args&&...);

/// d = scale p (d - sum_j p d), in place: from d(loss) / d(p) to d(loss) / d(scores). p is what softmax gave,
/// of the shape of d. With scale 1 it is the gradient with respect to the biased scores, which Alibi::add_vjp
/// turns into that of the slopes.
template <writable_tensor Dp, readable_beside<Dp> P>
void softmax_vjp(Dp&& d, const P& p, double scale = 1.0) {
  detail::softmax_vjp(Eigen::DefaultDevice(), d, p, scale);
}
/// The same on a device.
template <device D, writable_tensor Dp, readable_beside<Dp> P>
void softmax_vjp(const D& device, Dp&& d, const P& p, double scale = 1.0) {
  detail::softmax_vjp(device, d, p, scale);
}

/// A wrong call: the compiler says what is wrong with it.
template <class... Args>
detail::refused<detail::Roles<detail::Role::out, detail::Role::in_of_out>, Args...> softmax_vjp(Args&&...);

/// d_sinks[h] += d(loss) / d(sink of head h), from d(loss) / d(p) and p of a softmax with sinks; before
/// softmax_vjp, which overwrites dp. With the probability s = 1 - sum_j p_j that the sink of a row took, it
/// is the sum of -s sum_j p_j dp_j. One sum in double for each head, in logical order: the same bits for any
/// number of threads. Throws std::invalid_argument where the shapes don't fit.
template <readable_tensor Dp, readable_tensor P>
void sinks_vjp(std::span<double> d_sinks, const Dp& dp, const P& p) {
  detail::sinks_vjp(Eigen::DefaultDevice(), d_sinks, dp, p);
}
/// The same on a device.
template <device D, readable_tensor Dp, readable_tensor P>
void sinks_vjp(const D& device, std::span<double> d_sinks, const Dp& dp, const P& p) {
  detail::sinks_vjp(device, d_sinks, dp, p);
}

/// A wrong call: the compiler says what is wrong with it.
template <class... Args>
detail::refused<detail::Roles<detail::Role::anything, detail::Role::in, detail::Role::in>, Args...> sinks_vjp(
    Args&&...);

}  // namespace v0
}  // namespace posenc
