#pragma once
// How every kernel walks a tensor: it loads a tile of (positions, features) into a small packed buffer of the
// compute type, works on that, and stores it, rounding once. Only the loads and stores know about layouts and
// strides, so the arithmetic, and its bits, are the same for all of them.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdlib>

#include "posenc/core/pack.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/stack.hpp"
#include "posenc/core/tensor.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// Numbers of a tile: a buffer of 4 KiB.
template <std::floating_point C>
inline constexpr Index tile_elements = 4096 / Index{sizeof(C)};

/// f(the buffer of a tile).
template <std::floating_point C, class F>
void with_tile(const F& f) {
  with_buffer<C, static_cast<std::size_t>(tile_elements<C>)>(f);
}

/// to[i] = from[i], widened or rounded.
template <scalar_type From, scalar_type To>
inline void convert_run(const From* from, Index n, To* to) {
  map_run(to, n, [](auto pack) { return pack; }, from);
}

/// buffer[r * tile.extent(1) + c] = tile(r, c), in the order that memory likes.
template <scalar_type S>
void load_tile(const View<const S, 2>& tile, compute_t<S>* buffer) {
  const Index rows = tile.extent(0), columns = tile.extent(1);
  if (tile.stride(1) == 1) {
    for (Index r = 0; r < rows; ++r) {
      const S* from = tile.data() + r * tile.stride(0);
      compute_t<S>* to = buffer + r * columns;
      convert_run(from, columns, to);
    }
  } else {
    for (Index c = 0; c < columns; ++c) {
      const S* from = tile.data() + c * tile.stride(1);
      for (Index r = 0; r < rows; ++r) buffer[r * columns + c] = widen(from[r * tile.stride(0)]);
    }
  }
}

/// tile(r, c) = buffer[r * tile.extent(1) + c], rounded to S.
template <scalar_type S>
void store_tile(const View<S, 2>& tile, const compute_t<S>* buffer) {
  const Index rows = tile.extent(0), columns = tile.extent(1);
  if (tile.stride(1) == 1) {
    for (Index r = 0; r < rows; ++r) {
      const compute_t<S>* from = buffer + r * columns;
      S* to = tile.data() + r * tile.stride(0);
      convert_run(from, columns, to);
    }
  } else {
    for (Index c = 0; c < columns; ++c) {
      S* to = tile.data() + c * tile.stride(1);
      for (Index r = 0; r < rows; ++r) to[r * tile.stride(0)] = narrow<S>(buffer[r * columns + c]);
    }
  }
}

/// sum[n] = plus(tile(r, c), addend[n]) for n = r * tile.extent(1) + c, of packs.
template <scalar_type S, class Plus>
void add_tile(const View<const S, 2>& tile, const compute_t<S>* addend, compute_t<S>* sum, const Plus& plus) {
  const Index columns = tile.extent(1), n = tile.extent(0) * columns;
  if (tile.extent(0) == 1 && tile.stride(1) == 1) {
    map_run(sum, n, plus, tile.data(), addend);
  } else {
    load_tile(tile, sum);
    map_run(sum, n, plus, sum, addend);
  }
}

/// The sum itself.
template <scalar_type S>
void add_tile(const View<const S, 2>& tile, const compute_t<S>* addend, compute_t<S>* sum) {
  add_tile(tile, addend, sum, [](auto x, auto y) { return x + y; });
}

/// out = in, bit for bit.
template <class S>
void copy_tile(const View<S, 2>& out, const View<const S, 2>& in) {
  const bool by_rows = (std::abs)(out.stride(1)) <= (std::abs)(out.stride(0));
  const std::size_t outer = by_rows ? 0 : 1, inner = by_rows ? 1 : 0;
  for (Index i = 0; i < out.extent(outer); ++i) {
    S* to = out.data() + i * out.stride(outer);
    const S* from = in.data() + i * in.stride(outer);
    for (Index j = 0; j < out.extent(inner); ++j) to[j * out.stride(inner)] = from[j * in.stride(inner)];
  }
}

/// Rows of a tile: one where the features of a position lie together, else enough to use whole cache lines.
template <class T, std::size_t Rank>
Index tile_rows(const View<T, Rank>& x, std::size_t row_axis, std::size_t column_axis) {
  const bool by_columns = (std::abs)(x.stride(column_axis)) <= (std::abs)(x.stride(row_axis));
  return by_columns || x.extent(row_axis) == 1 ? 1 : 16;
}

/// The part of a (batch, seq, dim) tensor that one step of map_tiles works on.
struct Tile {
  Index batch, seq, rows, first, columns;

  template <class T>
  View<T, 2> of(const View<T, 3>& x) const {
    return {Unchecked(),
            x.data() + batch * x.stride(0) + seq * x.stride(1) + first * x.stride(2),
            {rows, columns},
            {x.stride(1), x.stride(2)}};
  }
};

/// The scratch of a kernel that needs none.
struct NoScratch {
  template <class F>
  static void with(const F& f) {
    NoScratch scratch;
    f(scratch);
  }
};

/// The `prepare` of what depends on no position.
struct NothingShared {};

/// For every tile of out: prepare(scratch, tile, common) fills a packed (rows, columns) buffer with what
/// depends on the position alone, finish(tile, common, result) computes the tile from it, packed, and it is
/// stored. Where `shared`, the positions are the same in every row of the batch and `prepare` runs once for
/// all of them. Where a tile of out is packed and of the compute type itself, `result` is that memory. Each
/// thread has a Scratch.
template <scalar_type S, class Scratch = NoScratch, device D, class Prepare, class Finish>
void map_tiles(const D& device, const View<S, 3>& out, bool shared, const Prepare& prepare,
               const Finish& finish) {
  using C = compute_t<S>;
  const Index batch = out.extent(0), seq = out.extent(1), dim = out.extent(2);
  if (out.size() == 0) return;
  const Index rows = tile_rows(out, 1, 2), columns = (std::min)(dim, tile_elements<C> / rows);
  // A unit of work: as many tiles, one after the other in the sequence, as the shared buffer holds. Each
  // batch row then writes a long run of its own, which is what memory is quick at.
  constexpr bool shares = !std::same_as<Prepare, NothingShared>;
  constexpr std::size_t shared_elements = shares ? stack_bytes / sizeof(C) : 1;
  const Index most = columns < dim ? 1 : shares ? Index{shared_elements} / (rows * columns) : 16;
  const Index tiles = (std::max)(Index{1}, (std::min)(Index{16}, most));
  const Index unit_rows = rows * tiles, units = (seq + unit_rows - 1) / unit_rows;
  const Index groups = shared ? 1 : batch, together = shared ? batch : 1;
  const double elements = static_cast<double>(together * unit_rows * dim);
  const Cost cost{elements * sizeof(S), elements * sizeof(S), elements};
  parallel_for(device, units * groups, cost, [&](Index begin, Index end) {
    const auto walk = [&]([[maybe_unused]] Scratch& scratch, [[maybe_unused]] C* common, C* result) {
      for (Index unit = begin; unit < end; ++unit) {
        const Index first_batch = unit / units, first_seq = unit % units * unit_rows;
        const Index last_seq = (std::min)(seq, first_seq + unit_rows);
        for (Index first = 0; first < dim; first += columns) {
          const Index width = (std::min)(columns, dim - first);
          const auto each_tile = [&](Index b, const auto& f) {
            for (Index s = first_seq; s < last_seq; s += rows)
              f(Tile{b, s, (std::min)(rows, last_seq - s), first, width},
                shares ? common + (s - first_seq) * width : nullptr);
          };
          if constexpr (shares)
            each_tile(first_batch,
                      [&](const Tile& tile, C* of_position) { prepare(scratch, tile, of_position); });
          for (Index b = first_batch; b < first_batch + together; ++b)
            each_tile(b, [&](const Tile& tile, C* of_position) {
              const View<S, 2> to = tile.of(out);
              if constexpr (std::same_as<S, C>) {
                if (tile.rows == 1 && to.stride(1) == 1) {
                  finish(tile, of_position, to.data());
                  return;
                }
              }
              finish(tile, of_position, result);
              store_tile(to, result);
            });
        }
      }
    };
    Scratch::with([&](Scratch& scratch) {
      with_buffer<C, shared_elements>(
          [&](C* common) { with_tile<C>([&](C* result) { walk(scratch, common, result); }); });
    });
  });
}

/// Entry i of the first axis.
template <class T, std::size_t Rank>
View<T, Rank - 1> entry(const View<T, Rank>& x, Index i) {
  std::array<Index, Rank - 1> extents{}, strides{};
  for (std::size_t axis = 1; axis < Rank; ++axis)
    extents[axis - 1] = x.extent(axis), strides[axis - 1] = x.stride(axis);
  return {Unchecked(), x.data() + i * x.stride(0), extents, strides};
}

/// f(row, parts...) for parts of shape (batch, seq, dim) that make up tensors of any rank and one shape;
/// `row` is the number of rows (vectors along the last axis, in logical order) before the part.
template <class F, class T, std::size_t Rank, class... More>
void for_each_bsd(const F& f, Index row, const View<T, Rank>& x, const More&... more) {
  static_assert(Rank >= 1, "posenc: expected a tensor of rank 1 or more");
  if (x.size() == 0) return;
  if constexpr (Rank <= 3) {
    f(row, as_bsd(x), as_bsd(more)...);
  } else {
    Index rows = 1;
    for (std::size_t axis = 1; axis + 1 < Rank; ++axis) rows *= x.extent(axis);
    for (Index i = 0; i < x.extent(0); ++i) for_each_bsd(f, row + i * rows, entry(x, i), entry(more, i)...);
  }
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
