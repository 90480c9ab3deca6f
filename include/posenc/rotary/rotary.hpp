#pragma once
// Rotary position embedding (RoFormer, Su et al. 2021, eq. 14-16): pair i of a query or key at position p is
// turned by the angle p theta_i. Scores then depend on the distance alone: <R(m) q, R(n) k> = <q, R(n - m)
// k>.
//
// Convention: with (u, w) the two dimensions of a pair (see Pairing),
//
//   u' = u cos(p theta_i) - w sin(p theta_i)
//   w' = w cos(p theta_i) + u sin(p theta_i)
//
// There is no table: the angles are computed as they are needed, exactly, at any position. So one Rotary
// serves all layers and threads, and there is no longest sequence.

#include <algorithm>
#include <cmath>
#include <concepts>
#include <utility>

#include "posenc/core/angles.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/rotary/frequencies.hpp"
#include "posenc/rotary/kernel.hpp"
#include "posenc/rotary/pairing.hpp"

namespace posenc {
inline namespace v0 {

/// The encoder: an immutable value, cheap to copy, shared freely between threads.
class Rotary {
 public:
  /// Throws std::invalid_argument where the rotated width does not fit the head or a frequency is not finite.
  Rotary(RotaryFrequencies frequencies, Pairing pairing, Window window = Window::leading())
      : frequencies_(std::move(frequencies)),
        pairing_(pairing),
        pairs_(pairing, window.first(frequencies_.head_dim, frequencies_.rotary_dim()),
               frequencies_.rotary_dim() / 2),
        angles_(frequencies_.inv_freq) {
    if (!std::isfinite(frequencies_.attention_factor))
      detail::invalid("attention_factor: expected a finite number, got ", frequencies_.attention_factor);
  }

  const RotaryFrequencies& frequencies() const { return frequencies_; }
  Pairing pairing() const { return pairing_; }
  Index head_dim() const { return frequencies_.head_dim; }

  /// x = R(at) x, in place: queries or keys, any number of heads. x: rank 4 in the order that `axes` names;
  /// rank 3 is (batch, seq, dim) and rank 2 (seq, dim) unless `axes` says otherwise. `at` has seq positions,
  /// shared or per row. Throws std::invalid_argument where the shapes don't fit, before anything is written.
  template <writable_tensor X>
  void rotate(X&& x, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), x, x, at, axes, false);
  }
  template <device D, writable_tensor X>
  void rotate(const D& device, X&& x, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, x, x, at, axes, false);
  }

  /// out = R(at) x. out is x itself or memory apart from it; `axes` names the axes of both. To write keys
  /// into a cache of another order, permute its View.
  template <writable_tensor Out, readable_tensor X>
  void rotate(Out&& out, const X& x, const Positions& at, NamedAxes<rank_of<Out>> axes = {}) const {
    turn(Eigen::DefaultDevice(), out, x, at, axes, false);
  }
  template <device D, writable_tensor Out, readable_tensor X>
  void rotate(const D& device, Out&& out, const X& x, const Positions& at,
              NamedAxes<rank_of<Out>> axes = {}) const {
    turn(device, out, x, at, axes, false);
  }

  /// dx = R(at)^T dx, in place: the gradient with respect to x, and the exact transpose of rotate.
  template <writable_tensor X>
  void rotate_vjp(X&& dx, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dx, dx, at, axes, true);
  }
  template <device D, writable_tensor X>
  void rotate_vjp(const D& device, X&& dx, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, dx, dx, at, axes, true);
  }

  /// dx = R(at)^T dy.
  template <writable_tensor Dx, readable_tensor Dy>
  void rotate_vjp(Dx&& dx, const Dy& dy, const Positions& at, NamedAxes<rank_of<Dx>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dx, dy, at, axes, true);
  }
  template <device D, writable_tensor Dx, readable_tensor Dy>
  void rotate_vjp(const D& device, Dx&& dx, const Dy& dy, const Positions& at,
                  NamedAxes<rank_of<Dx>> axes = {}) const {
    turn(device, dx, dy, at, axes, true);
  }

  /// The table that other runtimes take: cos and sin of (seq, rotary_dim / 2) or (batch, seq, rotary_dim /
  /// 2), one column per pair, attention_factor included.
  template <writable_tensor Cos, writable_tensor Sin>
  void cos_sin(Cos&& cos, Sin&& sin, const Positions& at) const {
    cos_sin(Eigen::DefaultDevice(), cos, sin, at);
  }
  template <device D, writable_tensor Cos, writable_tensor Sin>
  void cos_sin(const D& device, Cos&& cos, Sin&& sin, const Positions& at) const {
    using S = scalar_of<Cos>;
    using C = compute_t<S>;
    static_assert(std::same_as<S, scalar_of<Sin>> && rank_of<Cos> == rank_of<Sin>,
                  "posenc: cos and sin must have the same scalar type and rank");
    const auto c = detail::as_bsd(detail::output_view("cos", cos));
    const auto s = detail::as_bsd(detail::output_view("sin", sin));
    detail::require_same_shape("sin", c, s);
    if (c.extent(2) != pairs_.count)
      detail::invalid("cos: expected ", pairs_.count, " columns, one per pair, got ", c.extent(2));
    detail::require_positions("at", at, c.extent(0), c.extent(1));
    const Index seq = c.extent(1),
                columns = (std::min)(detail::tile_elements, (std::max)(Index{1}, pairs_.count));
    const double bytes = 2.0 * static_cast<double>(pairs_.count) * sizeof(S);
    detail::parallel_for(
        device, c.extent(0) * seq, {bytes, bytes, 20.0 * double(pairs_.count)}, [&](Index begin, Index end) {
          detail::TileBuffer<C> cos_row, sin_row;
          for (Index row = begin; row < end; ++row)
            for (detail::Tile tile{row / seq, row % seq, 1, 0, columns}; tile.first < pairs_.count;
                 tile.first += columns) {
              tile.columns = (std::min)(columns, pairs_.count - tile.first);
              fill(at(tile.batch, tile.seq), tile.first, tile.columns, cos_row.data(), sin_row.data());
              detail::store_tile(tile.of(c), cos_row.data());
              detail::store_tile(tile.of(s), sin_row.data());
            }
        });
  }

 private:
  template <std::floating_point C>
  void fill(Position position, Index first, Index count, C* cos, C* sin) const {
    angles_.cos_sin(position, first, count, cos, sin, frequencies_.attention_factor);
  }

  template <device D, class Out, class X>
  void turn(const D& device, Out& out, const X& x, const Positions& at, NamedAxes<rank_of<Out>> axes,
            bool transposed) const {
    detail::with_heads(out, x, axes, [&](const auto& to, const auto& from) {
      turn_views(device, to, from, at, transposed);
    });
  }

  // The verbs end here whatever tensor they were called with, so each scalar type compiles the kernel once.
  template <scalar_type S, device D>
  void turn_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in, const Positions& at,
                  bool transposed) const {
    using C = compute_t<S>;
    detail::require_head_dim(head_dim(), out.extent(3));
    detail::require_positions("at", at, out.extent(0), out.extent(1));
    detail::rotate_pairs<S>(device, out, in, pairs_, transposed, at.rows() == 1,
                            [&](Index b, Index s, Index first, Index count, C* cos, C* sin) {
                              fill(at(b, s), first, count, cos, sin);
                            });
  }

  RotaryFrequencies frequencies_;
  Pairing pairing_;
  detail::Pairs pairs_;
  detail::Angles angles_;
};

}  // namespace v0
}  // namespace posenc
