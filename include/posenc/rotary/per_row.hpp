#pragma once
// A batch whose rows turn by different frequencies: short and long sequences of a LongRoPE model side by
// side, or sequences of a dynamic NTK model that were started at different lengths. Each row keeps the choice
// it began with.

#include <span>

#include "posenc/core/mistakes.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/rotary/rotary.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

template <device D, class X>
void rotate_per_row(const D& device, X& x, std::span<const Rotary> ropes, std::span<const Index> choice,
                    const Positions& at, NamedAxes<rank_of<X>> axes, bool transposed) {
  const auto rows = as_bshd("x", output_view("x", x), axes);
  require_equal("choice: rows of the batch", rows.extent(0), static_cast<Index>(choice.size()));
  for (std::size_t b = 0; b < choice.size(); ++b) {
    if (choice[b] < 0 || choice[b] >= static_cast<Index>(ropes.size()))
      out_of_range("choice[", b, "]: expected one in [0, ", ropes.size(), "), got ", choice[b]);
    // All that a row's own call could refuse, before the first row is written.
    const Rotary& rope = ropes[static_cast<std::size_t>(choice[b])];
    if (rope.head_dim() != rows.extent(3))
      invalid("x: expected ", rope.head_dim(), " dimensions per head (head_dim) on the last axis, got ",
              rows.extent(3));
    rope.require_positions(at, rows.extent(0), rows.extent(1));
  }
  for (std::size_t b = 0; b < choice.size(); ++b) {
    const Index row = static_cast<Index>(b);
    const auto one = rows.slice(0, row, 1);
    const Positions where = at.rows() == 1 ? at : at.row(row);
    const Rotary& rope = ropes[static_cast<std::size_t>(choice[b])];
    if (transposed)
      rope.rotate_vjp(device, one, where, Axes::bshd);
    else
      rope.rotate(device, one, where, Axes::bshd);
  }
}

}  // namespace detail

/// x[b] = R(at[b]) x[b] with ropes[choice[b]], in place, for each row b of the batch. x and axes: as in
/// Rotary::rotate. Throws as Rotary::rotate does, and std::out_of_range for a choice that is not there,
/// before anything is written.
template <writable_tensor X>
void rotate_per_row(X&& x, std::span<const Rotary> ropes, std::span<const Index> choice, const Positions& at,
                    NamedAxes<rank_of<X>> axes = {}) {
  detail::rotate_per_row(Eigen::DefaultDevice(), x, ropes, choice, at, axes, false);
}
/// The same on a device.
template <device D, writable_tensor X>
void rotate_per_row(const D& device, X&& x, std::span<const Rotary> ropes, std::span<const Index> choice,
                    const Positions& at, NamedAxes<rank_of<X>> axes = {}) {
  detail::rotate_per_row(device, x, ropes, choice, at, axes, false);
}

/// A wrong call: the compiler says what is wrong with it.
template <class... Args>
detail::refused<detail::InPlace, Args...> rotate_per_row(Args&&...);

/// The transpose: the gradient with respect to x, in place.
template <writable_tensor X>
void rotate_per_row_vjp(X&& dx, std::span<const Rotary> ropes, std::span<const Index> choice,
                        const Positions& at, NamedAxes<rank_of<X>> axes = {}) {
  detail::rotate_per_row(Eigen::DefaultDevice(), dx, ropes, choice, at, axes, true);
}
/// The same on a device.
template <device D, writable_tensor X>
void rotate_per_row_vjp(const D& device, X&& dx, std::span<const Rotary> ropes, std::span<const Index> choice,
                        const Positions& at, NamedAxes<rank_of<X>> axes = {}) {
  detail::rotate_per_row(device, dx, ropes, choice, at, axes, true);
}

/// A wrong call: the compiler says what is wrong with it.
template <class... Args>
detail::refused<detail::InPlace, Args...> rotate_per_row_vjp(Args&&...);

}  // namespace v0
}  // namespace posenc
