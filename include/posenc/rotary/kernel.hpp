#pragma once
// The one kernel that does all rotating. It is told the pairs and given cos and sin; where those come from
// (computed angles, a table) and which scaling made them is not its business.
//
//   pair (u, w) at angle a:   u' = u cos a - w sin a,   w' = w cos a + u sin a

#include <algorithm>
#include <cmath>
#include <concepts>
#include <utility>

#include "posenc/core/parallel.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"
#include "posenc/rotary/pairing.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// a b + c d. A compiler that may fuse multiply and add chooses which product it fuses, and not the same one
/// in every version of a loop: g++ 12 -O3 -march=native left the last pairs of an adjacent row unfused. Where
/// the hardware has the fusion (<cmath> says so) it is therefore written down: every layout gets the same
/// bits.
template <std::floating_point C>
[[gnu::always_inline]] inline C sum_of_products(C a, C b, C c, C d) {
#if defined(FP_FAST_FMA) && defined(FP_FAST_FMAF)
  return std::fma(a, b, c * d);
#else
  return a * b + c * d;
#endif
}

/// The arithmetic of all rotations.
template <std::floating_point C>
[[gnu::always_inline]] inline void turn(C u, C w, C cos, C sin, C& turned_u, C& turned_w) {
  turned_u = sum_of_products(u, cos, -w, sin);
  turned_w = sum_of_products(w, cos, u, sin);
}

/// n pairs (u[i], w[i]) in place. u and w are two runs that don't overlap.
template <std::floating_point C>
void turn_runs(C* u, C* w, const C* cos, const C* sin, Index n) {
  for (Index i = 0; i < n; ++i) turn(u[i], w[i], cos[i], sin[i], u[i], w[i]);
}

/// The same out of place.
template <std::floating_point C>
void turn_runs(const C* u, const C* w, const C* cos, const C* sin, Index n, C* out_u, C* out_w) {
  for (Index i = 0; i < n; ++i) turn(u[i], w[i], cos[i], sin[i], out_u[i], out_w[i]);
}

/// n pairs (x[2i], x[2i + 1]) in place.
template <std::floating_point C>
void turn_adjacent(C* x, const C* cos, const C* sin, Index n) {
  for (Index i = 0; i < n; ++i) turn(x[2 * i], x[2 * i + 1], cos[i], sin[i], x[2 * i], x[2 * i + 1]);
}

/// The same out of place.
template <std::floating_point C>
void turn_adjacent(const C* x, const C* cos, const C* sin, Index n, C* out) {
  for (Index i = 0; i < n; ++i) turn(x[2 * i], x[2 * i + 1], cos[i], sin[i], out[2 * i], out[2 * i + 1]);
}

/// Where pair i stands in the rotated width: dimensions step i and step i + gap.
struct PairLayout {
  Index step, gap;
  bool operator==(const PairLayout&) const = default;
};

/// Which dimensions of a head are pairs: those of the rotated width, from dimension `first` on.
struct Pairs {
  Index count, first;
  PairLayout in, out;
  bool mismatched;

  Pairs(Pairing pairing, Index first_dim, Index pairs)
      : count(pairs),
        first(first_dim),
        in(pairing == Pairing::half ? PairLayout{1, pairs} : PairLayout{2, 1}),
        out(pairing == Pairing::half || pairing == Pairing::adjacent_to_half ? PairLayout{1, pairs}
                                                                             : PairLayout{2, 1}),
        mismatched(pairing == Pairing::adjacent_mismatched) {
    // These read a whole head before they write it.
    if ((mismatched || in != out) && pairs > tile_elements)
      invalid("rotary_dim: expected at most ", 2 * tile_elements, " for this pairing, got ", 2 * pairs);
  }

  /// The pairs of the transposed map: what was written is read.
  Pairs transposed() const {
    Pairs back = *this;
    std::swap(back.in, back.out);
    return back;
  }
};

/// What turns one tile: `positions` positions of one batch row, `count` pairs from pair `first` on.
template <std::floating_point C>
struct Turns {
  Index positions, first, count;
  const C *cos, *sin;  // (positions, count), packed
};

/// Rotates memory directly: features lie together and are already of the compute type.
template <bool InPlace, std::floating_point C>
void turn_row(const C* in, C* out, const Pairs& pairs, const Turns<C>& turns, Index t) {
  const C *cos = turns.cos + t * turns.count, *sin = turns.sin + t * turns.count;
  const Index at = pairs.first + pairs.in.step * turns.first, gap = pairs.in.gap;
  if (pairs.in.step == 2) {
    if constexpr (InPlace)
      turn_adjacent(out + at, cos, sin, turns.count);
    else
      turn_adjacent(in + at, cos, sin, turns.count, out + at);
  } else {
    if constexpr (InPlace)
      turn_runs(out + at, out + at + gap, cos, sin, turns.count);
    else
      turn_runs(in + at, in + at + gap, cos, sin, turns.count, out + at, out + at + gap);
  }
}

/// One head of one tile through packed buffers: any scalar type, any strides, any pairing.
template <scalar_type S>
void turn_tile(const View<const S, 2>& in, const View<S, 2>& out, const Pairs& pairs,
               const Turns<compute_t<S>>& turns, bool transposed) {
  using C = compute_t<S>;
  TileBuffer<C> u, w;
  const auto run = [&]<class T>(const View<T, 2>& x, const PairLayout& layout,
                                Index offset) {  // one side of the pairs
    return View<T, 2>(x.data() + (pairs.first + layout.step * turns.first + offset) * x.stride(1),
                      {turns.positions, turns.count}, {x.stride(0), layout.step * x.stride(1)});
  };
  load_tile(run(in, pairs.in, 0), u.data());
  load_tile(run(in, pairs.in, pairs.in.gap), w.data());
  if (pairs.mismatched) {
    for (Index t = 0; t < turns.positions; ++t) {
      const C *cos = turns.cos + t * turns.count, *sin = turns.sin + t * turns.count;
      C *const us = u.data() + t * turns.count, *const ws = w.data() + t * turns.count;
      for (Index i = 0; i < turns.count; ++i) {
        const Index a = 2 * i % turns.count, b = (2 * i + 1) % turns.count;
        const C x = us[i], y = ws[i];
        us[i] = sum_of_products(x, cos[a], -y, sin[transposed ? b : a]);
        ws[i] = sum_of_products(y, cos[b], x, sin[transposed ? a : b]);
      }
    }
  } else {
    turn_runs(u.data(), w.data(), turns.cos, turns.sin, turns.positions * turns.count);
  }
  store_tile(run(out, pairs.out, 0), u.data());
  store_tile(run(out, pairs.out, pairs.out.gap), w.data());
}

/// out = in with each pair turned, for (batch, seq, heads, dim) in any strides; out is `in` itself or apart
/// from it. rows(batch, seq, first, count, cos, sin) fills what pairs first .. first + count turn by at that
/// token; it is the same for every batch row where `shared`. Transposed: the pairs turn back (the gradient).
template <scalar_type S, device D, class Rows>
void rotate_pairs(const D& device, const View<S, 4>& out, const View<const S, 4>& in, const Pairs& forward,
                  bool transposed, bool shared, const Rows& rows) {
  using C = compute_t<S>;
  const Pairs pairs = transposed ? forward.transposed() : forward;
  const Index batch = out.extent(0), seq = out.extent(1), heads = out.extent(2), dim = out.extent(3);
  if (out.size() == 0) return;
  const bool in_place = out.data() == in.data() && out.strides() == in.strides();
  const bool direct = std::same_as<S, C> && in.stride(3) == 1 && out.stride(3) == 1 &&
                      pairs.in == pairs.out && !pairs.mismatched;
  // A tile: as many positions as fit, at most 16, so that cos and sin serve all heads of them.
  const Index most =
      (std::max)(Index{1}, (std::min)(Index{16}, tile_elements / (std::max)(Index{1}, pairs.count)));
  const Index positions = (std::min)(most, seq), block = tile_elements / positions;
  const Index bands = (seq + positions - 1) / positions;
  const bool by_position =
      std::abs(out.stride(2)) <= std::abs(out.stride(1));  // a position's heads lie together

  const auto turn_heads = [&](Index b, Index s, const Turns<C>& turns) {
    const auto base = [&]<class T>(const View<T, 4>& x) {
      return x.data() + b * x.stride(0) + s * x.stride(1);
    };
    if constexpr (std::same_as<S, C>) {
      if (direct) {
        const auto each_row = [&](const auto& turn_one) {
          const Index outer = by_position ? turns.positions : heads,
                      inner = by_position ? heads : turns.positions;
          for (Index i = 0; i < outer; ++i)
            for (Index j = 0; j < inner; ++j) turn_one(by_position ? i : j, by_position ? j : i);
        };
        const auto at = [&]<class T>(const View<T, 4>& x, Index t, Index h) {
          return base(x) + t * x.stride(1) + h * x.stride(2);
        };
        if (in_place)
          each_row([&](Index t, Index h) { turn_row<true, C>(nullptr, at(out, t, h), pairs, turns, t); });
        else
          each_row(
              [&](Index t, Index h) { turn_row<false, C>(at(in, t, h), at(out, t, h), pairs, turns, t); });
        return;
      }
    }
    for (Index h = 0; h < heads; ++h) {
      const auto head = [&]<class T>(const View<T, 4>& x) {
        return View<T, 2>(base(x) + h * x.stride(2), {turns.positions, dim}, {x.stride(1), x.stride(3)});
      };
      turn_tile<S>(head(in), head(out), pairs, turns, transposed);
    }
  };

  const auto copy_rest = [&](Index b, Index s, Index count) {  // the dimensions that don't turn
    const Index end = pairs.first + 2 * pairs.count;
    for (Index h = 0; h < heads; ++h) {
      const auto part = [&]<class T>(const View<T, 4>& x, Index from, Index to) {
        return View<T, 2>(x.data() + b * x.stride(0) + s * x.stride(1) + h * x.stride(2) + from * x.stride(3),
                          {count, to - from}, {x.stride(1), x.stride(3)});
      };
      copy_tile<S>(part(out, 0, pairs.first), part(in, 0, pairs.first));
      copy_tile<S>(part(out, end, dim), part(in, end, dim));
    }
  };

  const double elements = static_cast<double>(positions * heads * 2 * pairs.count);
  const Cost cost{elements * sizeof(S), elements * sizeof(S),
                  elements + 20.0 * double(positions * pairs.count)};
  parallel_for(device, bands * batch, cost, [&](Index begin, Index end) {
    TileBuffer<C> cos, sin;
    Index filled_band = -1, filled_first = -1;
    for (Index unit = begin; unit < end; ++unit) {
      // Where the positions are shared, the batch rows of a band come one after another and use the same
      // turns.
      const Index b = shared ? unit % batch : unit / bands, band = shared ? unit / batch : unit % bands;
      const Index s = band * positions;
      Turns<C> turns{(std::min)(positions, seq - s), 0, 0, cos.data(), sin.data()};
      for (; turns.first < pairs.count; turns.first += block) {
        turns.count = (std::min)(block, pairs.count - turns.first);
        if (!shared || filled_band != band || filled_first != turns.first) {
          for (Index t = 0; t < turns.positions; ++t)
            rows(b, s + t, turns.first, turns.count, cos.data() + t * turns.count,
                 sin.data() + t * turns.count);
          if (transposed)
            for (Index i = 0; i < turns.positions * turns.count; ++i)
              sin[static_cast<std::size_t>(i)] = -sin[static_cast<std::size_t>(i)];
          filled_band = band, filled_first = turns.first;
        }
        turn_heads(b, s, turns);
      }
      if (!in_place) copy_rest(b, s, turns.positions);
    }
  });
}

/// The two tensors of a rotating verb as (batch, seq, heads, dim), checked; f(out, in) does the rest. `axes`
/// name the axes of both.
template <class Out, class X, class F>
void with_heads(Out& out, const X& x, NamedAxes<rank_of<Out>> axes, const F& f) {
  using S = scalar_of<Out>;
  static_assert(std::same_as<S, scalar_of<X>>, "posenc: out and x must have the same scalar type");
  static_assert(rank_of<Out> == rank_of<X>, "posenc: out and x must have the same rank");
  const auto result = output_view("out", out);
  const auto input = input_view(x);
  require_same_shape("out", input, result);
  f(as_bshd("x", result, axes), as_bshd("x", input, axes));
}

inline void require_head_dim(Index expected, Index got) {
  if (expected != got)
    invalid("x: expected ", expected, " dimensions per head (head_dim) on the last axis, got ", got);
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
