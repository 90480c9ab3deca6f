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
#include <span>
#include <utility>

#include "posenc/core/angles.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/rotary/frequencies.hpp"
#include "posenc/rotary/kernel.hpp"
#include "posenc/rotary/pairing.hpp"

namespace posenc {
inline namespace v0 {

/// How the angle of a pair is computed.
enum class AngleMode {
  exact,   ///< in fixed point, at any position
  float32  ///< float32(p) float32(theta_i), as PyTorch models do: wrong by 4e-3 at position 131071. For
           ///< parity tests
};

/// The encoder: an immutable value, cheap to copy, shared freely between threads.
class Rotary {
 public:
  /// Throws std::invalid_argument where the rotated width does not fit the head or a frequency is not finite.
  Rotary(RotaryFrequencies frequencies, Pairing pairing, Window window = Window::leading(),
         AngleMode angle_mode = AngleMode::exact)
      : frequencies_(std::move(frequencies)),
        pairing_(pairing),
        window_(window),
        angle_mode_(angle_mode),
        axes_(frequencies_.axes()),
        pairs_(pairing, window.first(frequencies_.head_dim, frequencies_.rotary_dim()),
               frequencies_.rotary_dim() / 2),
        angles_(frequencies_.inv_freq) {
    if (!detail::is_finite(frequencies_.attention_factor))
      detail::invalid("attention_factor: expected a finite number, got ", frequencies_.attention_factor);
    if (!frequencies_.axis.empty() && frequencies_.axis.size() != frequencies_.inv_freq.size())
      detail::invalid("axis: expected one axis per pair, ", frequencies_.inv_freq.size(), ", got ",
                      frequencies_.axis.size());
    for (std::size_t i = 0; i < frequencies_.axis.size(); ++i)
      if (frequencies_.axis[i] < 0)
        detail::invalid("axis[", i, "]: expected at least 0, got ", frequencies_.axis[i]);
  }

  /// A wrong call: which dimensions turn together is never guessed.
  explicit Rotary(const RotaryFrequencies&)
      __attribute__((unavailable("posenc: a Rotary needs its Pairing, half (i, i + d/2) or adjacent (2i, "
                                 "2i + 1), as the weights are stored")));

  /// The frequencies as they were given.
  const RotaryFrequencies& frequencies() const { return frequencies_; }
  /// Which dimensions turn together.
  Pairing pairing() const { return pairing_; }
  /// Which part of the head turns.
  Window window() const { return window_; }
  /// How angles are computed.
  AngleMode angle_mode() const { return angle_mode_; }
  /// Dimensions of a head.
  Index head_dim() const { return frequencies_.head_dim; }

  /// x = R(at) x, in place: queries or keys, any number of heads. x: rank 4 in the order that `axes` names;
  /// rank 3 is (batch, seq, dim) and rank 2 (seq, dim) unless `axes` says otherwise. `at` has seq positions,
  /// shared or per row. Throws std::invalid_argument where the shapes don't fit, before anything is written.
  template <writable_tensor X>
  void rotate(X&& x, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), x, x, at, axes, false);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void rotate(const D& device, X&& x, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, x, x, at, axes, false);
  }

  /// out = R(at) x. out is x itself or memory apart from it; `axes` names the axes of both. To write keys
  /// into a cache of another order, permute its View.
  template <writable_tensor Out, readable_beside<Out> X>
  void rotate(Out&& out, const X& x, const Positions& at, NamedAxes<rank_of<Out>> axes = {}) const {
    turn(Eigen::DefaultDevice(), out, x, at, axes, false);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_beside<Out> X>
  void rotate(const D& device, Out&& out, const X& x, const Positions& at,
              NamedAxes<rank_of<Out>> axes = {}) const {
    turn(device, out, x, at, axes, false);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InOrOutOfPlace, Args...> rotate(Args&&...) const;

  /// dx = R(at)^T dx, in place: the gradient with respect to x, and the exact transpose of rotate.
  template <writable_tensor X>
  void rotate_vjp(X&& dx, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dx, dx, at, axes, true);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void rotate_vjp(const D& device, X&& dx, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, dx, dx, at, axes, true);
  }

  /// dx = R(at)^T dy.
  template <writable_tensor Dx, readable_beside<Dx> Dy>
  void rotate_vjp(Dx&& dx, const Dy& dy, const Positions& at, NamedAxes<rank_of<Dx>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dx, dy, at, axes, true);
  }
  /// The same on a device.
  template <device D, writable_tensor Dx, readable_beside<Dx> Dy>
  void rotate_vjp(const D& device, Dx&& dx, const Dy& dy, const Positions& at,
                  NamedAxes<rank_of<Dx>> axes = {}) const {
    turn(device, dx, dy, at, axes, true);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InOrOutOfPlace, Args...> rotate_vjp(Args&&...) const;

  /// x = R(at)^-1 x, in place: turns back, and divides by attention_factor where rotate multiplies by it.
  /// DeepSeek V4 turns the output of attention back this way. Throws std::invalid_argument for
  /// Pairing::adjacent_mismatched, which is no rotation, and for an attention_factor of zero.
  template <writable_tensor X>
  void rotate_inverse(X&& x, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    rotate_inverse(Eigen::DefaultDevice(), x, at, axes);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void rotate_inverse(const D& device, X&& x, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    if (pairing_ == Pairing::adjacent_mismatched)
      detail::invalid("rotate_inverse: expected a rotation, but Pairing::adjacent_mismatched is none");
    if (frequencies_.attention_factor == 0)
      detail::invalid("rotate_inverse: expected an attention_factor other than 0, got 0");
    turn(device, x, x, at, axes, true, 1 / frequencies_.attention_factor);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> rotate_inverse(Args&&...) const;

  /// Moves keys that were rotated before: k was at position p and is at p + delta from now on, for the window
  /// of a cache that slides. A pure rotation: attention_factor, which is in k already, is not applied again.
  /// k: as x in rotate, every token by the same delta; with several axes one delta for each. Throws
  /// std::invalid_argument where the shapes don't fit, and for Pairing::adjacent_mismatched. What a shift
  /// makes exact is in docs/cache.md.
  template <writable_tensor K>
  void shift(K&& k, Position delta, NamedAxes<rank_of<K>> axes = {}) const {
    shift(Eigen::DefaultDevice(), k, std::span<const Position>(&delta, 1), axes);
  }
  /// The same on a device.
  template <device D, writable_tensor K>
  void shift(const D& device, K&& k, Position delta, NamedAxes<rank_of<K>> axes = {}) const {
    shift(device, k, std::span<const Position>(&delta, 1), axes);
  }
  /// The same with one delta for each axis.
  template <writable_tensor K>
  void shift(K&& k, std::span<const Position> deltas, NamedAxes<rank_of<K>> axes = {}) const {
    shift(Eigen::DefaultDevice(), k, deltas, axes);
  }
  /// The same on a device.
  template <device D, writable_tensor K>
  void shift(const D& device, K&& k, std::span<const Position> deltas,
             NamedAxes<rank_of<K>> axes = {}) const {
    if (static_cast<Index>(deltas.size()) != axes_)
      detail::invalid("deltas: expected ", axes_, ", one per axis, got ", deltas.size());
    detail::with_heads(k, k, axes,
                       [&](const auto& to, const auto& from) { shift_views(device, to, from, deltas); });
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> shift(Args&&...) const;

  /// Where rotated keys have their pairs: as rotate wrote them.
  detail::Pairs stored_pairs() const {
    if (pairing_ == Pairing::adjacent_mismatched)
      detail::invalid("pairing: expected a rotation, but Pairing::adjacent_mismatched is none");
    detail::Pairs stored = pairs_;
    stored.in = stored.out;
    return stored;
  }

  /// The axis that drives pair i.
  Index axis_of(Index pair) const {
    return frequencies_.axis.empty() ? Index{0} : Index{frequencies_.axis[static_cast<std::size_t>(pair)]};
  }

  /// The table that other runtimes take: cos and sin of (seq, rotary_dim / 2) or (batch, seq, rotary_dim /
  /// 2), one column per pair, attention_factor included.
  template <writable_tensor Cos, writable_tensor Sin>
  void cos_sin(Cos&& cos, Sin&& sin, const Positions& at) const {
    cos_sin(Eigen::DefaultDevice(), cos, sin, at);
  }
  /// The same on a device.
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
    require_positions(at, c.extent(0), c.extent(1));
    detail::require_apart("cos", c, "sin", s);
    if (c.size() == 0) return;
    // A tile of 16 positions by 64 pairs at a time, and four of those below each other: what the angles of 64
    // pairs have in common is then in the nearest cache.
    constexpr Index rows = 16, columns = detail::tile_elements<C> / rows, together = 4 * rows;
    const Index seq = c.extent(1), bands = (seq + together - 1) / together;
    const double numbers = static_cast<double>(together * pairs_.count);
    detail::parallel_for(
        device, c.extent(0) * bands, {2 * numbers * sizeof(S), 2 * numbers * sizeof(S), 4 * numbers},
        [&](Index begin, Index end) {
          const auto fill_tile = [&](detail::AngleScratch<C>& scratch, const detail::Tile& tile) {
            const auto to_cos = tile.of(c), to_sin = tile.of(s);
            const auto fill = [&](C* cos_out, C* sin_out, Index stride) {
              fill_cos_sin(scratch, at, tile.batch, tile.seq, tile.rows, tile.first, tile.columns, cos_out,
                           sin_out, stride, frequencies_.attention_factor);
            };
            if constexpr (std::same_as<S, C>) {
              if (to_cos.stride(1) == 1 && to_sin.stride(1) == 1 && to_cos.stride(0) == to_sin.stride(0)) {
                fill(to_cos.data(), to_sin.data(), to_cos.stride(0));
                return;
              }
            }
            detail::with_tile<C>([&](C* cos_rows) {
              detail::with_tile<C>([&](C* sin_rows) {
                fill(cos_rows, sin_rows, tile.columns);
                detail::store_tile(to_cos, cos_rows);
                detail::store_tile(to_sin, sin_rows);
              });
            });
          };
          detail::AngleScratch<C>::with([&](detail::AngleScratch<C>& scratch) {
            for (Index unit = begin; unit < end; ++unit) {
              const Index first_row = unit % bands * together,
                          last_row = (std::min)(seq, first_row + together);
              for (Index first = 0; first < pairs_.count; first += columns)
                for (Index row = first_row; row < last_row; row += rows)
                  fill_tile(scratch, {unit / bands, row, (std::min)(rows, last_row - row), first,
                                      (std::min)(columns, pairs_.count - first)});
            }
          });
        });
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::out, detail::Role::out>, Args...> cos_sin(Args&&...) const;

  /// cos[t stride + j] and sin of pairs first + j, j in [0, count), for the `tokens` tokens of a batch row
  /// from token i on, times `scale`; unchecked: for kernels that fuse the rotation.
  template <std::floating_point C>
  void fill_cos_sin(detail::AngleScratch<C>& scratch, const Positions& at, Index row, Index i, Index tokens,
                    Index first, Index count, C* cos, C* sin, Index stride, double scale) const {
    if (angle_mode_ == AngleMode::exact && axes_ == 1 && at.is_integer()) {
      const auto fill = [&](const auto& position) {
        angles_.cos_sin_rows(scratch, position, tokens, first, count, cos, sin, stride, scale);
      };
      if (at.is_consecutive())
        fill([start = at(row, i)](Index t) { return start + t; });
      else
        fill([&](Index t) { return at(row, i + t); });
      return;
    }
    for (Index t = 0; t < tokens; ++t, cos += stride, sin += stride) {
      const auto coordinate = [&](Index j) { return at.coordinate(axis_of(first + j), row, i + t); };
      if (angle_mode_ == AngleMode::exact) {
        angles_.cos_sin_at(coordinate, first, count, cos, sin, scale);
        continue;
      }
      for (Index j = 0; j < count; ++j) {
        const float f = static_cast<float>(frequencies_.inv_freq[static_cast<std::size_t>(first + j)]);
        const float angle = static_cast<float>(coordinate(j).value()) * f;
        cos[j] = static_cast<C>(std::cos(angle) * static_cast<float>(scale));
        sin[j] = static_cast<C>(std::sin(angle) * static_cast<float>(scale));
      }
    }
  }

  /// Which dimensions rotate reads and writes as pairs.
  const detail::Pairs& pairs() const { return pairs_; }

  /// Throws std::invalid_argument unless `at` has a position with all coordinates for each token of (batch,
  /// seq).
  void require_positions(const Positions& at, Index batch, Index seq) const {
    detail::require_counts("at", at, batch, seq);
    if (at.axes() != axes_)
      detail::invalid("at: expected positions of ", axes_, " axes, got ", at.axes(),
                      at.axes() == 1 ? " (on_axes repeats one)" : "");
  }

 private:
  template <device D, class Out, class X>
  void turn(const D& device, Out& out, const X& x, const Positions& at, NamedAxes<rank_of<Out>> axes,
            bool transposed) const {
    turn(device, out, x, at, axes, transposed, frequencies_.attention_factor);
  }
  template <device D, class Out, class X>
  void turn(const D& device, Out& out, const X& x, const Positions& at, NamedAxes<rank_of<Out>> axes,
            bool transposed, double scale) const {
    detail::with_heads(out, x, axes, [&](const auto& to, const auto& from) {
      turn_views(device, to, from, at, transposed, scale);
    });
  }

  // The verbs end here whatever tensor they were called with, so each scalar type compiles the kernel once.
  template <scalar_type S, device D>
  void turn_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in, const Positions& at,
                  bool transposed, double scale) const {
    using C = compute_t<S>;
    detail::require_head_dim(head_dim(), out.extent(3));
    require_positions(at, out.extent(0), out.extent(1));
    detail::rotate_pairs<S>(device, out, in, pairs_, transposed, at.rows() == 1,
                            [&](detail::AngleScratch<C>& scratch, Index b, Index s, Index tokens, Index first,
                                Index count, C* cos, C* sin, Index stride) {
                              fill_cos_sin(scratch, at, b, s, tokens, first, count, cos, sin, stride, scale);
                            });
  }

  template <scalar_type S, device D>
  void shift_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in,
                   std::span<const Position> deltas) const {
    using C = compute_t<S>;
    detail::require_head_dim(head_dim(), out.extent(3));
    detail::rotate_pairs<S>(device, out, in, stored_pairs(), false, true,
                            [&](detail::AngleScratch<C>&, Index, Index, Index tokens, Index first,
                                Index count, C* cos, C* sin, Index stride) {
                              const auto by = [&](Index j) {
                                return Coordinate(deltas[static_cast<std::size_t>(axis_of(first + j))]);
                              };
                              angles_.cos_sin_at(by, first, count, cos, sin);
                              for (Index t = 1; t < tokens; ++t) {  // all tokens turn alike
                                std::copy_n(cos, count, cos + t * stride);
                                std::copy_n(sin, count, sin + t * stride);
                              }
                            });
  }

  RotaryFrequencies frequencies_;
  Pairing pairing_;
  Window window_;
  AngleMode angle_mode_;
  Index axes_;
  detail::Pairs pairs_;
  detail::Angles angles_;
};

}  // namespace v0
}  // namespace posenc
