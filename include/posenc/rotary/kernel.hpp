#pragma once
// The one kernel that does all rotating. It is told the pairs and given cos and sin; where those come from
// (computed angles, a table) and which scaling made them is not its business.
//
//   pair (u, w) at angle a:   u' = u cos a - w sin a,   w' = w cos a + u sin a

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "posenc/core/angles.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"
#include "posenc/rotary/pairing.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// Vectors that lie at equal distances and turn together: the heads of a token, by the same angles, or the
/// positions of a head, each by its own.
template <scalar_type S>
struct Rows {
  const S* in;
  S* out;  // in itself, or memory apart from it
  Index count, in_stride, out_stride;
  const compute_t<S>*cos, *sin;
  Index turn_stride;  // from the cos of a row to those of the next; 0: all turn alike
};

// Packs that are loaded before the first of them is stored: a processor that has to ask whether a load
// depends on the store just before it can be four times slower. And packs of cos, and as many of sin, that
// stay in registers while the rows go by.
#if defined(__AVX512F__)
inline constexpr std::size_t packs_at_once = 4, packs_kept = 8;
#else
inline constexpr std::size_t packs_at_once = 2, packs_kept = 4;
#endif

/// f(0), ..., f(N - 1), written out: packs in an array only stay in registers where no loop counts them.
template <std::size_t N, class F>
[[gnu::always_inline]] inline void unrolled(const F& f) {
  [&]<std::size_t... n>(std::index_sequence<n...>) __attribute__((always_inline)) { (f(n), ...); }
  (std::make_index_sequence<N>());
}

// N packs of pairs (u[i], u[i + gap]), or, Adjacent, of pairs (x[2i], x[2i + 1]), turned by cos(n) and
// sin(n).
template <std::size_t N, bool Adjacent, scalar_type S, class Cos, class Sin>
[[gnu::always_inline]] inline void turn_packs(const S* in, S* out, Index gap, const Cos& cos,
                                              const Sin& sin) {
  using C = compute_t<S>;
  Pack<C> u[N], w[N];
  unrolled<N>([&](std::size_t n) __attribute__((always_inline)) {
    const Index at = static_cast<Index>(n) * pack_size<C>;
    u[n] = load_pack(in + at);
    w[n] = Adjacent ? swap_neighbours(u[n]) : load_pack(in + gap + at);
  });
  unrolled<N>([&](std::size_t n) __attribute__((always_inline)) {
    const Index at = static_cast<Index>(n) * pack_size<C>;
    const Pack<C> c = cos(n), s = sin(n);
    if constexpr (Adjacent) {
      store_pack(out + at, multiply_add(u[n], c, w[n] * s));
    } else {
      store_pack(out + at, multiply_add(u[n], c, -(w[n] * s)));
      store_pack(out + gap + at, multiply_add(w[n], c, u[n] * s));
    }
  });
}

// The same of the n < pack_size numbers at the end of a row.
template <bool Adjacent, scalar_type S>
[[gnu::noinline]] void turn_rest(const S* in, S* out, Index gap, const compute_t<S>* cos,
                                 const compute_t<S>* sin, Index n) {
  const Pack<compute_t<S>> u = load_part(in, n), c = load_part(cos, n), s = load_part(sin, n);
  if constexpr (Adjacent) {
    store_part(out, multiply_add(u, c, swap_neighbours(u) * s), n);
  } else {
    const Pack<compute_t<S>> w = load_part(in + gap, n);
    store_part(out, multiply_add(u, c, -(w * s)), n);
    store_part(out + gap, multiply_add(w, c, u * s), n);
  }
}

// Rows of N packs. Where they turn alike, cos and sin stay in registers.
template <std::size_t N, bool Adjacent, bool Alike, scalar_type S>
[[gnu::always_inline]] inline void turn_rows_of(Rows<S> rows, Index gap) {
  using C = compute_t<S>;
  constexpr std::size_t once = N < packs_at_once ? N : packs_at_once;
  const auto at = [](std::size_t pack) { return static_cast<Index>(pack) * pack_size<C>; };
  Pack<C> cos[N], sin[N];
  if constexpr (Alike)
    unrolled<N>([&](std::size_t i) __attribute__((always_inline)) {
      cos[i] = load_pack(rows.cos + at(i)), sin[i] = load_pack(rows.sin + at(i));
    });
  for (; rows.count > 0; --rows.count) {
    unrolled<N / once>([&](std::size_t part) __attribute__((always_inline)) {
      const std::size_t i = part * once;
      turn_packs<once, Adjacent>(
          rows.in + at(i), rows.out + at(i), gap,
          [&](std::size_t n)
              __attribute__((always_inline)) { return Alike ? cos[i + n] : load_pack(rows.cos + at(i + n)); },
          [&](std::size_t n) __attribute__((always_inline)) {
            return Alike ? sin[i + n] : load_pack(rows.sin + at(i + n));
          });
    });
    rows.in += rows.in_stride, rows.out += rows.out_stride;
    if constexpr (!Alike) rows.cos += rows.turn_stride, rows.sin += rows.turn_stride;
  }
}

// Rows of any number of pairs.
template <bool Adjacent, scalar_type S>
void turn_any_rows(Rows<S> rows, Index gap, Index n) {
  using C = compute_t<S>;
  constexpr Index step = pack_size<C>, stride = static_cast<Index>(packs_at_once) * step;
  for (; rows.count > 0; --rows.count) {
    Index i = 0;
    const auto cos = [&](std::size_t m) { return load_pack(rows.cos + i + static_cast<Index>(m) * step); };
    const auto sin = [&](std::size_t m) { return load_pack(rows.sin + i + static_cast<Index>(m) * step); };
    for (; i + stride <= n; i += stride)
      turn_packs<packs_at_once, Adjacent>(rows.in + i, rows.out + i, gap, cos, sin);
    for (; i + step <= n; i += step) turn_packs<1, Adjacent>(rows.in + i, rows.out + i, gap, cos, sin);
    if (i < n) turn_rest<Adjacent>(rows.in + i, rows.out + i, gap, rows.cos + i, rows.sin + i, n - i);
    rows.in += rows.in_stride, rows.out += rows.out_stride;
    rows.cos += rows.turn_stride, rows.sin += rows.turn_stride;
  }
}

/// Every row: the pairs (u[i], u[i + gap]), i in [0, n), or, Adjacent, the pairs (x[2i], x[2i + 1]) of n
/// numbers, with cos and sin as adjacent_row makes them.
template <bool Adjacent, scalar_type S>
void turn_rows(const Rows<S>& rows, Index gap, Index n) {
  constexpr Index step = pack_size<compute_t<S>>;
  const bool alike = rows.turn_stride == 0;
  // The usual heads have a loop of their own.
  const auto turn = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
    if (alike && N <= packs_kept)
      turn_rows_of<N, Adjacent, N <= packs_kept>(rows, gap);
    else
      turn_rows_of<N, Adjacent, false>(rows, gap);
  };
  if (n == 2 * step) return turn(std::integral_constant<std::size_t, 2>());
  if (n == 4 * step) return turn(std::integral_constant<std::size_t, 4>());
  if (n == 8 * step) return turn(std::integral_constant<std::size_t, 8>());
  turn_any_rows<Adjacent>(rows, gap, n);
}

/// For pairs that lie side by side: (first x0, x0, first x1, x1, ...) of the n numbers x in the second half
/// of `row`. `first` is 1 for cos, and -1 for sin, with which the neighbour is multiplied.
template <std::floating_point C>
void adjacent_row(C* row, Index n, C first) {
  const C* x = row + n;  // what is written has always been read before
  Index i = 0;
  for (; i + pack_size<C> <= n; i += pack_size<C>) {
    const Pack<C> one = load_pack(x + i), signed_one = one * first;
    store_pack(row + 2 * i, interleave_half<false>(signed_one, one));
    store_pack(row + 2 * i + pack_size<C>, interleave_half<true>(signed_one, one));
  }
  for (; i < n; ++i) {
    const C one = x[i];
    row[2 * i] = one * first, row[2 * i + 1] = one;
  }
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

/// Numbers in a tile of cos and one of sin: 8 KiB of float each.
inline constexpr Index angle_elements = 2048;

/// What turns one tile: `positions` positions of one batch row, `count` pairs from pair `first` on.
template <std::floating_point C>
struct Turns {
  Index positions, first, count, width;
  const C *cos, *sin;  // (positions, width), packed; width is count, or 2 count as adjacent_row has it
};

/// One head of one tile through packed buffers: any scalar type, any strides, any pairing.
template <scalar_type S>
void turn_tile(const View<const S, 2>& in, const View<S, 2>& out, const Pairs& pairs,
               const Turns<compute_t<S>>& turns, bool transposed) {
  using C = compute_t<S>;
  alignas(64) std::array<C, static_cast<std::size_t>(2 * tile_elements)> both;
  C *const u = both.data(), *const w = u + tile_elements;
  const auto run = [&]<class T>(const View<T, 2>& x, const PairLayout& layout,
                                Index offset) {  // one side of the pairs
    return View<T, 2>(x.data() + (pairs.first + layout.step * turns.first + offset) * x.stride(1),
                      {turns.positions, turns.count}, {x.stride(0), layout.step * x.stride(1)});
  };
  load_tile(run(in, pairs.in, 0), u);
  load_tile(run(in, pairs.in, pairs.in.gap), w);
  if (pairs.mismatched) {
    for (Index t = 0; t < turns.positions; ++t) {
      const C *cos = turns.cos + t * turns.count, *sin = turns.sin + t * turns.count;
      C *const us = u + t * turns.count, *const ws = w + t * turns.count;
      for (Index i = 0; i < turns.count; ++i) {
        const Index a = 2 * i % turns.count, b = (2 * i + 1) % turns.count;
        const C x = us[i], y = ws[i];
        us[i] = multiply_add(x, cos[a], -(y * sin[transposed ? b : a]));
        ws[i] = multiply_add(y, cos[b], x * sin[transposed ? a : b]);
      }
    }
  } else {
    const Index all = turns.positions * turns.count;
    turn_rows<false, C>({u, u, 1, 0, 0, turns.cos, turns.sin, 0}, tile_elements, all);
  }
  store_tile(run(out, pairs.out, 0), u);
  store_tile(run(out, pairs.out, pairs.out.gap), w);
}

/// out = in with each pair turned, for (batch, seq, heads, dim) in any strides; out is `in` itself or apart
/// from it. fill(scratch, batch, seq, positions, first, count, cos, sin, stride) says what pairs first ..
/// first + count turn by at positions tokens from that one on, a row of cos and of sin each, `stride` apart;
/// it is the same for every batch row where `shared`. Transposed: the pairs turn back (the gradient).
template <scalar_type S, device D, class Fill>
void rotate_pairs(const D& device, const View<S, 4>& out, const View<const S, 4>& in, const Pairs& forward,
                  bool transposed, bool shared, const Fill& fill) {
  using C = compute_t<S>;
  const Pairs pairs = transposed ? forward.transposed() : forward;
  const Index batch = out.extent(0), seq = out.extent(1), heads = out.extent(2), dim = out.extent(3);
  if (out.size() == 0) return;
  const bool in_place = out.data() == in.data() && out.strides() == in.strides();
  const bool direct = in.stride(3) == 1 && out.stride(3) == 1 && pairs.in == pairs.out && !pairs.mismatched;
  const Index twice = direct && pairs.in.step == 2 ? 2 : 1;
  const bool by_position =
      std::abs(out.stride(2)) <= std::abs(out.stride(1));  // a position's heads lie together
  // A tile: as many positions as cos and sin have room for. They serve all heads; a head that lies apart from
  // the others is read by longer runs, which is what memory is quick at.
  const Index room = direct && !by_position ? angle_elements : tile_elements;
  const Index width = (std::max)(Index{1}, twice * pairs.count);
  const Index positions = (std::min)((std::max)(Index{1}, (std::min)(room / width, Index{16})), seq);
  const Index block = room / (positions * twice);
  const Index bands = (seq + positions - 1) / positions;
  const auto turn_heads = [&](Index b, Index s, const Turns<C>& turns) {
    const auto base = [&]<class T>(const View<T, 4>& x) {
      return x.data() + b * x.stride(0) + s * x.stride(1);
    };
    if (direct) {
      const Index first = pairs.first + pairs.in.step * turns.first;
      const S* const from = base(in) + first;
      S* const to = base(out) + first;
      const auto turn = [&](const Rows<S>& rows) {
        if (twice == 2)
          turn_rows<true, S>(rows, 0, turns.width);
        else
          turn_rows<false, S>(rows, pairs.in.gap, turns.width);
      };
      if (by_position) {
        for (Index t = 0; t < turns.positions; ++t)
          turn({from + t * in.stride(1), to + t * out.stride(1), heads, in.stride(2), out.stride(2),
                turns.cos + t * turns.width, turns.sin + t * turns.width, 0});
      } else {
        for (Index h = 0; h < heads; ++h)
          turn({from + h * in.stride(2), to + h * out.stride(2), turns.positions, in.stride(1), out.stride(1),
                turns.cos, turns.sin, turns.width});
      }
      return;
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

  const auto fill_tile = [&](AngleScratch& scratch, Index b, Index s, const Turns<C>& turns, C* cos, C* sin) {
    const Index plain = turns.width - turns.count;  // adjacent_row reads the second half of a row
    fill(scratch, b, s, turns.positions, turns.first, turns.count, cos + plain, sin + plain, turns.width);
    for (Index t = 0; t < turns.positions; ++t, cos += turns.width, sin += turns.width) {
      if (twice == 2) {
        adjacent_row(cos, turns.count, C{1});
        adjacent_row(sin, turns.count, C{-1});
      }
      if (transposed)
        for (Index i = 0; i < turns.width; ++i) sin[i] = -sin[i];
    }
  };

  const double elements = static_cast<double>(positions * heads * 2 * pairs.count);
  const Cost cost{elements * sizeof(S), elements * sizeof(S),
                  elements + 20.0 * double(positions * pairs.count)};
  parallel_for(device, bands * batch, cost, [&](Index begin, Index end) {
    alignas(64) std::array<C, static_cast<std::size_t>(angle_elements)> cos, sin;
    AngleScratch scratch;
    Index filled_band = -1, filled_first = -1;
    for (Index unit = begin; unit < end; ++unit) {
      // Where the positions are shared, the batch rows of a band come one after another and use the same
      // turns.
      const Index b = shared ? unit % batch : unit / bands, band = shared ? unit / batch : unit % bands;
      const Index s = band * positions;
      Turns<C> turns{(std::min)(positions, seq - s), 0, 0, 0, cos.data(), sin.data()};
      for (; turns.first < pairs.count; turns.first += block) {
        turns.count = (std::min)(block, pairs.count - turns.first);
        turns.width = twice * turns.count;
        if (!shared || filled_band != band || filled_first != turns.first) {
          fill_tile(scratch, b, s, turns, cos.data(), sin.data());
          filled_band = band, filled_first = turns.first;
        }
        turn_heads(b, s, turns);
      }
      if (!in_place && 2 * pairs.count < dim) copy_rest(b, s, turns.positions);
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
