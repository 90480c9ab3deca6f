#pragma once
// The one kernel that does all rotating. It is told the pairs and given cos and sin; where those come from
// (computed angles, a table) and which scaling made them is not its business.
//
//   pair (u, w) at angle a:   u' = u cos a - w sin a,   w' = w cos a + u sin a

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>

#include "posenc/core/angles.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/stack.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"
#include "posenc/rotary/pairing.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// Heads that turn alike: vectors at equal distances, each of its pairs by the same cos and sin.
template <scalar_type S>
struct Heads {
  const S* in;
  S* out;  // in itself, or memory apart from it
  Index count, in_stride, out_stride;
  // From a number to one that comes a little later, for `in`, and for `out` where that is apart; 0: no hint.
  Index ahead = 0, out_ahead = 0;
};

// Asks for the n numbers that come later.
template <scalar_type S>
[[gnu::always_inline]] inline void prefetch(const Heads<S>& heads, Index head, Index n) {
  if (heads.ahead != 0) prefetch(heads.in + head * heads.in_stride, heads.ahead, n);
  if (heads.out_ahead != 0) prefetch(heads.out + head * heads.out_stride, heads.out_ahead, n);
}

/// A pack of cos and one of sin, as the pairs they turn lie: apart, or side by side in two packs.
template <bool Adjacent, std::floating_point C>
struct PackTurn {
  static constexpr std::size_t packs = Adjacent ? 2 : 1;
  Pack<C> cos[packs], sin[packs];

  PackTurn() {}  // stays uninitialised
  [[gnu::always_inline]] PackTurn(Pack<C> c, Pack<C> s) {
    if constexpr (Adjacent) {
      cos[0] = interleave_half<false>(c, c), cos[1] = interleave_half<true>(c, c);
      sin[0] = interleave_half<false>(-s, s), sin[1] = interleave_half<true>(-s, s);
    } else {
      cos[0] = c, sin[0] = s;
    }
  }
  // (u[i], w[i]), or, Adjacent, (u[2i], u[2i + 1]) and the same of w.
  [[gnu::always_inline]] void operator()(Pack<C>& u, Pack<C>& w) const {
    if constexpr (Adjacent) {
      u = multiply_add(u, cos[0], swap_neighbours(u) * sin[0]);
      w = multiply_add(w, cos[1], swap_neighbours(w) * sin[1]);
    } else {
      const Pack<C> turned = multiply_add(u, cos[0], -(w * sin[0]));
      w = multiply_add(w, cos[0], u * sin[0]);
      u = turned;
    }
  }
};

/// f(0), ..., f(N - 1), written out: packs in an array only stay in registers where no loop counts them.
template <std::size_t N, class F>
[[gnu::always_inline]] inline void unrolled(const F& f) {
  [&]<std::size_t... n>(std::index_sequence<n...>)
      __attribute__((always_inline)) { (f(n), ...); }(std::make_index_sequence<N>());
}

// What a processor can do at once. All packs of a step are loaded before the first of them is stored: one
// that has to ask whether a load depends on the store just before it can be four times slower. And every pack
// of cos and sin serves several heads: four, or all, where there are registers to keep those of a whole head.
inline constexpr std::size_t heads_at_once = 4, packs_at_once = 4;
#if defined(__AVX512F__)
inline constexpr std::size_t registers_for_turns = 16;
#else
inline constexpr std::size_t registers_for_turns = 0;
#endif

// One pack of the pairs of H heads.
template <std::size_t H, bool Adjacent, scalar_type S>
[[gnu::always_inline]] inline void turn_pack(const Heads<S>& heads, Index at, Index second,
                                             const PackTurn<Adjacent, compute_t<S>>& turn) {
  Pack<compute_t<S>> x[2 * H];  // of head h: x[2 h] and x[2 h + 1]
  S* to[2 * H];
  unrolled<H>([&](std::size_t h) __attribute__((always_inline)) {
    const S* const from = heads.in + static_cast<Index>(h) * heads.in_stride + at;
    x[2 * h] = load_pack(from), x[2 * h + 1] = load_pack(from + second);
  });
  unrolled<H>([&](std::size_t h) __attribute__((always_inline)) {
    turn(x[2 * h], x[2 * h + 1]);
    to[2 * h] = heads.out + static_cast<Index>(h) * heads.out_stride + at, to[2 * h + 1] = to[2 * h] + second;
  });
  store_packs<Adjacent>(to, x);
}

// The n < pack_size pairs at the end of a head.
template <bool Adjacent, scalar_type S>
[[gnu::noinline]] void turn_rest(const S* in, S* out, Index gap, const compute_t<S>* cos,
                                 const compute_t<S>* sin, Index n) {
  using C = compute_t<S>;
  const PackTurn<Adjacent, C> turn(load_part(cos, n), load_part(sin, n));
  const Index in_u = Adjacent ? (std::min)(2 * n, pack_size<C>) : n, in_w = Adjacent ? 2 * n - in_u : n;
  const Index second = Adjacent ? in_u : gap;
  Pack<C> u = load_part(in, in_u), w = load_part(in + second, in_w);
  turn(u, w);
  store_part(out, u, in_u), store_part(out + second, w, in_w);
}

// H heads of n pairs, pack by pack.
template <std::size_t H, bool Adjacent, scalar_type S>
[[gnu::always_inline]] inline void turn_heads(const Heads<S>& heads, const compute_t<S>* cos,
                                              const compute_t<S>* sin, Index gap, Index n) {
  using C = compute_t<S>;
  constexpr Index step = pack_size<C>, width = Adjacent ? 2 : 1;
  const Index second = Adjacent ? step : gap;
  for (Index h = 0; h < static_cast<Index>(H); ++h) prefetch(heads, h, 2 * n);
  Index i = 0;
  for (; i + step <= n; i += step)
    turn_pack<H, Adjacent>(heads, width * i, second,
                           PackTurn<Adjacent, C>(load_pack(cos + i), load_pack(sin + i)));
  if (i < n)
    for (Index h = 0; h < static_cast<Index>(H); ++h)
      turn_rest<Adjacent>(heads.in + h * heads.in_stride + width * i,
                          heads.out + h * heads.out_stride + width * i, gap, cos + i, sin + i, n - i);
}

// Any number of heads of N packs of pairs, the turns in registers.
template <std::size_t N, bool Adjacent, scalar_type S>
[[gnu::always_inline]] inline void turn_heads_kept(Heads<S> heads, const compute_t<S>* cos,
                                                   const compute_t<S>* sin) {
  using C = compute_t<S>;
  constexpr Index step = pack_size<C>, width = Adjacent ? 2 : 1, second = Adjacent ? step : step * Index{N};
  constexpr std::size_t once = N < packs_at_once ? N : packs_at_once;
  PackTurn<Adjacent, C> turn[N];
  const auto at = [](std::size_t n) { return static_cast<Index>(n) * step; };
  unrolled<N>([&](std::size_t n) __attribute__((always_inline)) {
    turn[n] = PackTurn<Adjacent, C>(load_pack(cos + at(n)), load_pack(sin + at(n)));
  });
  for (; heads.count > 0; --heads.count) {
    prefetch(heads, 0, 2 * step * Index{N});
    unrolled<N / once>([&](std::size_t part) __attribute__((always_inline)) {
      constexpr std::size_t next = Adjacent ? 2 : 1, w = Adjacent ? 1 : once;  // in the order of memory
      Pack<C> x[2 * once];
      S* to[2 * once];
      unrolled<once>([&](std::size_t n) __attribute__((always_inline)) {
        const S* const from = heads.in + width * at(part * once + n);
        x[next * n] = load_pack(from), x[next * n + w] = load_pack(from + second);
      });
      unrolled<once>([&](std::size_t n) __attribute__((always_inline)) {
        turn[part * once + n](x[next * n], x[next * n + w]);
        to[next * n] = heads.out + width * at(part * once + n), to[next * n + w] = to[next * n] + second;
      });
      store_packs<true>(to, x);
    });
    heads.in += heads.in_stride, heads.out += heads.out_stride;
  }
}

/// Every head: the pairs (u[i], u[i + gap]), i in [0, n), or, Adjacent, (x[2i], x[2i + 1]), by cos[i] and
/// sin[i].
template <bool Adjacent, scalar_type S>
[[gnu::always_inline]] inline void turn_token(Heads<S> heads, const compute_t<S>* cos,
                                              const compute_t<S>* sin, Index gap, Index n) {
  const auto skip = [&](Index count) {
    heads.in += count * heads.in_stride, heads.out += count * heads.out_stride, heads.count -= count;
  };
  constexpr Index together{heads_at_once};
  for (; heads.count >= together; skip(together))
    turn_heads<heads_at_once, Adjacent>(heads, cos, sin, gap, n);
  for (; heads.count > 0; skip(1)) turn_heads<1, Adjacent>(heads, cos, sin, gap, n);
}

/// A token, or several whose heads and turns lie at equal distances.
template <scalar_type S>
struct Tokens {
  Heads<S> heads;  // of the first
  Index count, in_stride, out_stride;
  const compute_t<S>*cos, *sin;
  Index turn_stride;
};

template <bool Adjacent, scalar_type S>
void turn_tokens(Tokens<S> tokens, Index gap, Index n) {
  using C = compute_t<S>;
  const auto each_token = [&](const auto& f) __attribute__((always_inline)) {
    for (; tokens.count > 0; --tokens.count) {
      f();
      tokens.heads.in += tokens.in_stride, tokens.heads.out += tokens.out_stride;
      tokens.cos += tokens.turn_stride, tokens.sin += tokens.turn_stride;
    }
  };
  // The usual heads have a loop of their own.
  const auto of_packs = [&]<std::size_t N>(std::integral_constant<std::size_t, N>) {
    constexpr Index pairs = pack_size<C> * Index{N};
    if constexpr (2 * N * PackTurn<Adjacent, C>::packs <= registers_for_turns) {
      if (tokens.heads.count > Index{heads_at_once}) {
        each_token([&] { turn_heads_kept<N, Adjacent>(tokens.heads, tokens.cos, tokens.sin); });
        return;
      }
    }
    each_token([&] { turn_token<Adjacent>(tokens.heads, tokens.cos, tokens.sin, pairs, pairs); });
  };
  if (Adjacent || gap == n) {
    if (n == 2 * pack_size<C>) return of_packs(std::integral_constant<std::size_t, 2>());
    if (n == 4 * pack_size<C>) return of_packs(std::integral_constant<std::size_t, 4>());
    if (n == 8 * pack_size<C>) return of_packs(std::integral_constant<std::size_t, 8>());
  }
  each_token([&] { turn_token<Adjacent>(tokens.heads, tokens.cos, tokens.sin, gap, n); });
}

/// Where pair i stands in the rotated width: dimensions step i and step i + gap.
struct PairLayout {
  Index step, gap;
  bool operator==(const PairLayout&) const = default;
};

/// Pairs of a tile that is read into buffers before it is written.
template <std::floating_point C>
inline constexpr Index buffered_pairs = (std::min)(Index{1024}, Index{stack_bytes / (2 * sizeof(C))});

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
    if ((mismatched || in != out) && pairs > buffered_pairs<double>)
      invalid("rotary_dim: expected at most ", 2 * buffered_pairs<double>, " for this pairing, got ",
              2 * pairs);
  }

  /// The pairs of the transposed map: what was written is read.
  Pairs transposed() const {
    Pairs back = *this;
    std::swap(back.in, back.out);
    return back;
  }
};

/// Numbers in a tile of cos and one of sin: 8 KiB each.
template <std::floating_point C>
inline constexpr Index angle_elements = 8192 / Index{sizeof(C)};

/// What turns one tile: `positions` positions of one batch row, `count` pairs from pair `first` on.
template <std::floating_point C>
struct Turns {
  Index positions, first, count;
  const C *cos, *sin;  // (positions, count), packed
};

/// One head of one tile through packed buffers u and w, of buffered_pairs each: any scalar type, any strides,
/// any pairing.
template <scalar_type S>
void turn_tile(const View<const S, 2>& in, const View<S, 2>& out, const Pairs& pairs,
               const Turns<compute_t<S>>& turns, bool transposed, compute_t<S>* u) {
  using C = compute_t<S>;
  C* const w = u + buffered_pairs<C>;
  const auto run = [&]<class T>(const View<T, 2>& x, const PairLayout& layout,
                                Index offset) {  // one side of the pairs
    return View<T, 2>(Unchecked(),
                      x.data() + (pairs.first + layout.step * turns.first + offset) * x.stride(1),
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
    turn_token<false, C>({u, u, 1, 0, 0}, turns.cos, turns.sin, buffered_pairs<C>, all);
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
  const bool by_position =
      (std::abs)(out.stride(2)) <= (std::abs)(out.stride(1));  // a position's heads lie together
  // A tile: as many positions as cos and sin have room for; they serve all heads.
  const Index room = direct ? angle_elements<C> : buffered_pairs<C>;
  const Index width = (std::max)(Index{1}, pairs.count);
  const Index positions = (std::min)((std::max)(Index{1}, (std::min)(room / width, Index{16})), seq);
  const Index block = room / positions;
  const Index bands = (seq + positions - 1) / positions;
  constexpr Index bytes = static_cast<Index>(sizeof(S));
  const bool beyond_caches = in.size() * bytes >= prefetch_from;
  const auto turn_band = [&](Index b, Index s, const Turns<C>& turns) {
    const auto base = [&]<class T>(const View<T, 4>& x) {
      return x.data() + b * x.stride(0) + s * x.stride(1);
    };
    if (direct) {
      const Index first = pairs.first + pairs.in.step * turns.first;
      Tokens<S> tokens{{base(in) + first, base(out) + first, heads, in.stride(2), out.stride(2)},
                       turns.positions,
                       in.stride(1),
                       out.stride(1),
                       turns.cos,
                       turns.sin,
                       turns.count};
      const auto turn = [&](const Tokens<S>& some) {
        if (pairs.in.step == 2)
          turn_tokens<true, S>(some, 0, turns.count);
        else
          turn_tokens<false, S>(some, pairs.in.gap, turns.count);
      };
      const auto hint = [&](Tokens<S>& some, const auto& ahead_in) {
        some.heads.ahead = ahead_in(in);
        if (!in_place) some.heads.out_ahead = ahead_in(out);
      };
      if (by_position || !beyond_caches) {
        if (beyond_caches)
          hint(tokens, [&](const auto& x) {
            const bool packed = x.stride(2) == dim && x.stride(1) == heads * dim;
            return packed ? prefetch_ahead / bytes : x.stride(1);
          });
        turn(tokens);
        return;
      }
      // Heads far from one another: some of them by all positions, so that memory is read by runs.
      const Index together = (std::max)(Index{1}, prefetch_ahead / 2 / (dim * bytes));
      const Index rows = (std::min)(turns.positions, Index{2}), last = turns.positions - rows;
      for (Index h = 0; h < heads; h += together) {
        tokens.heads.count = (std::min)(together, heads - h);
        const auto run = [&](Index t, Index end, const auto& ahead_in) {
          Tokens<S> part = tokens;
          part.heads.in += t * in.stride(1), part.heads.out += t * out.stride(1);
          part.cos += t * turns.count, part.sin += t * turns.count;
          part.count = end - t;
          hint(part, ahead_in);
          turn(part);
        };
        run(0, last, [&](const auto& x) { return rows * x.stride(1); });
        run(last, turns.positions, [&](const auto& x) {  // the first of the next heads, or of the next tile
          return h + together < heads ? together * x.stride(2) - last * x.stride(1)
                                      : rows * x.stride(1) - h * x.stride(2);
        });
        tokens.heads.in += together * in.stride(2), tokens.heads.out += together * out.stride(2);
      }
      return;
    }
    with_buffer<C, std::size_t{2 * buffered_pairs<C>}>([&](C* buffer) {
      for (Index h = 0; h < heads; ++h) {
        const auto head = [&]<class T>(const View<T, 4>& x) {
          return View<T, 2>(Unchecked(), base(x) + h * x.stride(2), {turns.positions, dim},
                            {x.stride(1), x.stride(3)});
        };
        turn_tile<S>(head(in), head(out), pairs, turns, transposed, buffer);
      }
    });
  };

  const auto copy_rest = [&](Index b, Index s, Index count) {  // the dimensions that don't turn
    const Index end = pairs.first + 2 * pairs.count;
    for (Index h = 0; h < heads; ++h) {
      const auto part = [&]<class T>(const View<T, 4>& x, Index from, Index to) {
        return View<T, 2>(Unchecked(),
                          x.data() + b * x.stride(0) + s * x.stride(1) + h * x.stride(2) + from * x.stride(3),
                          {count, to - from}, {x.stride(1), x.stride(3)});
      };
      copy_tile<S>(part(out, 0, pairs.first), part(in, 0, pairs.first));
      copy_tile<S>(part(out, end, dim), part(in, end, dim));
    }
  };

  const auto fill_tile = [&](AngleScratch<C>& scratch, Index b, Index s, const Turns<C>& turns, C* cos,
                             C* sin) {
    fill(scratch, b, s, turns.positions, turns.first, turns.count, cos, sin, turns.count);
    if (transposed)
      for (Index i = 0; i < turns.positions * turns.count; ++i) sin[i] = -sin[i];
  };

  const double elements = static_cast<double>(positions * heads * 2 * pairs.count);
  const Cost cost{elements * sizeof(S), elements * sizeof(S),
                  elements + 20.0 * double(positions * pairs.count)};
  parallel_for(device, bands * batch, cost, [&](Index begin, Index end) {
    const auto walk = [&](AngleScratch<C>& scratch, C* cos, C* sin) {
      Index filled_band = -1, filled_first = -1;
      for (Index unit = begin; unit < end; ++unit) {
        // Where the positions are shared, the batch rows of a band come one after another and use the same
        // turns.
        const Index b = shared ? unit % batch : unit / bands, band = shared ? unit / batch : unit % bands;
        const Index s = band * positions;
        Turns<C> turns{(std::min)(positions, seq - s), 0, 0, cos, sin};
        for (; turns.first < pairs.count; turns.first += block) {
          turns.count = (std::min)(block, pairs.count - turns.first);
          if (!shared || filled_band != band || filled_first != turns.first) {
            fill_tile(scratch, b, s, turns, cos, sin);
            filled_band = band, filled_first = turns.first;
          }
          turn_band(b, s, turns);
        }
        if (!in_place && 2 * pairs.count < dim) copy_rest(b, s, turns.positions);
      }
    };
    AngleScratch<C>::with([&](AngleScratch<C>& scratch) {
      with_buffer<C, std::size_t{angle_elements<C>}>([&](C* cos) {
        with_buffer<C, std::size_t{angle_elements<C>}>([&](C* sin) { walk(scratch, cos, sin); });
      });
    });
  });
}

/// The two tensors of a rotating verb as (batch, seq, heads, dim), checked; f(out, in) does the rest. `axes`
/// name the axes of both.
template <class Out, class X, class F>
void with_heads(Out& out, const X& x, NamedAxes<rank_of<Out>> axes, const F& f) {
  const auto checked = out_and_in("out", out, "x", x);
  f(as_bshd("x", checked.out, axes), as_bshd("x", checked.in, axes));
}

inline void require_head_dim(Index expected, Index got) {
  if (expected != got)
    invalid("x: expected ", expected, " dimensions per head (head_dim) on the last axis, got ", got);
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
