#pragma once
// Query and key weights from one pairing to the other. Rotating `half` with permuted weights gives, dimension
// for dimension permuted, what rotating `adjacent` gives with the original ones, so all scores stay the same.
// This is what converters do to Llama's wq and wk between Meta's, Hugging Face's and ggml's files. Values and
// outputs are not rotated: leave v and o alone.

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "posenc/core/mistakes.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"
#include "posenc/rotary/pairing.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// Whether the members of a pair lie side by side in the weights. adjacent_to_half reads them so, and writes
/// halves: its weights are stored like those of `adjacent`.
inline bool stored_adjacent(const char* name, Pairing pairing) {
  switch (pairing) {
    case Pairing::half: return false;
    case Pairing::adjacent:
    case Pairing::adjacent_to_half: return true;
    case Pairing::adjacent_mismatched: break;
  }
  invalid(name,
          ": expected half, adjacent or adjacent_to_half, got adjacent_mismatched, whose scores no other ",
          "pairing gives");
}

}  // namespace detail

/// How the rows of a projection are heads. Grouped-query attention: keys have their own, smaller num_heads.
struct HeadLayout {
  Index num_heads = 0;                             ///< heads in these rows
  Index head_dim = 0;                              ///< rows of a head
  std::optional<Index> rotary_dim = std::nullopt;  ///< dimensions that turn, where it is not the whole head
  Window window = Window::leading();               ///< which part of the head turns
};

/// Permutes the rows of wq or wk, in place, from one pairing to the other. weights: (num_heads * head_dim,
/// in_features), or a bias of (num_heads * head_dim); elements of any trivially copyable type, moved and
/// never changed. `adjacent_to_half` weights are stored adjacent. Applied with `from` and `to` exchanged it
/// undoes itself. Throws std::invalid_argument where the layout does not fit the rows, and for
/// adjacent_mismatched, whose scores no other pairing gives.
template <storage_not_expression T>
  requires(elements_are_writable<T> && not_an_owning_temporary<T> && (rank_of<T> == 1 || rank_of<T> == 2) &&
           std::is_trivially_copyable_v<scalar_of<T>>)
void convert_pairing(T&& weights, Pairing from, Pairing to, const HeadLayout& layout) {
  using Element = scalar_of<T>;
  const auto v = view(weights);
  detail::require_distinct_elements("weights", v);
  View<Element, 2> rows;
  if constexpr (detail::vector_by_type<T>)
    rows = v.permute({1, 0});
  else if constexpr (rank_of<T> == 2)
    rows = v;
  else
    rows = View<Element, 2>(v.data(), {v.extent(0), 1}, {v.stride(0), 0});
  const Index width = layout.rotary_dim.value_or(layout.head_dim);
  if (layout.num_heads < 1 || layout.head_dim < 1)
    detail::invalid("layout: expected num_heads and head_dim of at least 1, got ", layout.num_heads, " and ",
                    layout.head_dim);
  if (width < 2 || width % 2 != 0)
    detail::invalid("rotary_dim: expected an even number of at least 2, got ", width);
  const Index first = layout.window.first(layout.head_dim, width);
  if (rows.extent(0) % layout.head_dim != 0 || rows.extent(0) / layout.head_dim != layout.num_heads)
    detail::invalid("weights: expected num_heads * head_dim = ", layout.num_heads, " * ", layout.head_dim,
                    " rows, got ", rows.extent(0));
  const bool from_adjacent = detail::stored_adjacent("from", from),
             to_adjacent = detail::stored_adjacent("to", to);
  if (from_adjacent == to_adjacent || rows.size() == 0) return;

  // Dimension of the n-th member of the pairs, counted u0 w0 u1 w1 ...
  const auto dim = [width](bool adjacent, Index n) { return adjacent ? n : n / 2 + (n % 2) * (width / 2); };
  constexpr Index block = 64;  // columns at a time
  std::vector<Element> buffer(static_cast<std::size_t>(width * block));
  for (Index head = 0; head < layout.num_heads; ++head)
    for (Index column = 0; column < rows.extent(1); column += block) {
      const Index columns = (std::min)(block, rows.extent(1) - column);
      const auto row = [&](Index d) {
        return rows.slice(0, head * layout.head_dim + first + d, 1).slice(1, column, columns);
      };
      for (Index n = 0; n < width; ++n)
        detail::copy_tile<Element>(View<Element, 2>(buffer.data() + n * block, {1, columns}),
                                   row(dim(from_adjacent, n)));
      for (Index n = 0; n < width; ++n)
        detail::copy_tile<Element>(row(dim(to_adjacent, n)),
                                   View<const Element, 2>(buffer.data() + n * block, {1, columns}));
    }
}

/// A wrong call: the compiler says what is wrong with it.
template <class... Args>
detail::refused<detail::Roles<detail::Role::of_any_type>, Args...> convert_pairing(Args&&...);

}  // namespace v0
}  // namespace posenc
