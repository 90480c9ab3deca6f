#pragma once
// Rotation by cos and sin that somebody else computed: the interchange form of ONNX's RotaryEmbedding
// (cos_cache, sin_cache), flash-attention (cos, sin of width d/2) and Hugging Face (position_embeddings of
// width d).
//
// Rotary needs no table and loses no accuracy at long positions; use this one to match another runtime's
// numbers.

#include <utility>

#include "posenc/core/mistakes.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/table.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/rotary/kernel.hpp"
#include "posenc/rotary/pairing.hpp"

namespace posenc {
inline namespace v0 {

/// How wide a given table is.
enum class TableWidth {
  pairs,  ///< one column per pair, rotary_dim / 2: ONNX, flash-attention
  dims    ///< one column per dimension, rotary_dim, each value twice: Hugging Face. c0 c0 c1 c1 ... for
          ///< Pairing::adjacent, c0 c1 ... c0 c1 ... for the others
};

/// cos and sin of a rank-2 table (max_pos, width), a row per position, or of a rank-3 one (batch, seq,
/// width), a row per token. Owned or borrowed as in TokenEmbedding: a tensor is copied, a moved one taken, a
/// map or view borrowed.
template <scalar_type Scalar, std::size_t Rank>
class RotaryTable {
 public:
  static_assert(Rank == 2 || Rank == 3, "posenc: expected tables of (max_pos, width) or (batch, seq, width)");

  /// Throws std::invalid_argument where cos and sin differ in shape, or the width is odd for
  /// TableWidth::dims.
  template <readable_tensor Cos, readable_tensor Sin>
    requires(rank_of<Cos> == Rank && rank_of<Sin> == Rank && std::same_as<scalar_of<Cos>, Scalar> &&
             std::same_as<scalar_of<Sin>, Scalar>)
  RotaryTable(Cos&& cos, Sin&& sin, Pairing pairing, Window window = Window::leading(),
              TableWidth width = TableWidth::pairs)
      : cos_(std::forward<Cos>(cos)),
        sin_(std::forward<Sin>(sin)),
        pairing_(pairing),
        window_(window),
        pairs_(cos_.view().extent(Rank - 1)) {
    detail::require_same_shape("sin", cos_.view(), sin_.view());
    detail::require_width("cos", pairs_);
    if (width == TableWidth::pairs) return;
    if (pairs_ % 2 != 0) detail::invalid("cos: expected an even width for TableWidth::dims, got ", pairs_);
    pairs_ /= 2;
    // HF repeats c0 c0 c1 c1 for adjacent and [c, c] for all others: adjacent_to_half and adjacent_mismatched,
    // too, turn by the table of halves.
    column_step_ = pairing == Pairing::adjacent ? 2 : 1;
  }

  /// A wrong call: which dimensions turn together is never guessed.
  template <class Cos, class Sin>
  RotaryTable(const Cos&, const Sin&)
      __attribute__((unavailable("posenc: a RotaryTable needs its Pairing, half (i, i + d/2) or adjacent "
                                 "(2i, 2i + 1), as the weights are stored")));

  /// How many dimensions turn.
  Index rotary_dim() const { return 2 * pairs_; }

  /// x = R x, in place. Rank-2 tables: `at` picks the row of each token. Axes as in Rotary::rotate. The head
  /// is as wide as x says; what the window leaves out stays as it is. Throws std::invalid_argument where the
  /// shapes don't fit, std::out_of_range for the first position without a row, before anything is written.
  template <writable_tensor X>
    requires(Rank == 2)
  void rotate(X&& x, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), x, x, at, axes, false);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
    requires(Rank == 2)
  void rotate(const D& device, X&& x, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, x, x, at, axes, false);
  }
  /// out = R x. out is x itself or memory apart from it.
  template <writable_tensor Out, readable_beside<Out> X>
    requires(Rank == 2)
  void rotate(Out&& out, const X& x, const Positions& at, NamedAxes<rank_of<Out>> axes = {}) const {
    turn(Eigen::DefaultDevice(), out, x, at, axes, false);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_beside<Out> X>
    requires(Rank == 2)
  void rotate(const D& device, Out&& out, const X& x, const Positions& at,
              NamedAxes<rank_of<Out>> axes = {}) const {
    turn(device, out, x, at, axes, false);
  }

  /// Rank-3 tables: token (b, s) takes row (b, s); a batch of 1 in the table serves every row.
  template <writable_tensor X>
    requires(Rank == 3)
  void rotate(X&& x, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), x, x, axes, false);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
    requires(Rank == 3)
  void rotate(const D& device, X&& x, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, x, x, axes, false);
  }
  /// out = R x with a rank-3 table.
  template <writable_tensor Out, readable_beside<Out> X>
    requires(Rank == 3)
  void rotate(Out&& out, const X& x, NamedAxes<rank_of<Out>> axes = {}) const {
    turn(Eigen::DefaultDevice(), out, x, axes, false);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_beside<Out> X>
    requires(Rank == 3)
  void rotate(const D& device, Out&& out, const X& x, NamedAxes<rank_of<Out>> axes = {}) const {
    turn(device, out, x, axes, false);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InOrOutOfPlace, Args...> rotate(Args&&...) const;

  /// dx = R^T dx, in place: the exact transpose of rotate.
  template <writable_tensor X>
    requires(Rank == 2)
  void rotate_vjp(X&& dx, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dx, dx, at, axes, true);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
    requires(Rank == 2)
  void rotate_vjp(const D& device, X&& dx, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, dx, dx, at, axes, true);
  }
  /// The same with a rank-3 table.
  template <writable_tensor X>
    requires(Rank == 3)
  void rotate_vjp(X&& dx, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dx, dx, axes, true);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
    requires(Rank == 3)
  void rotate_vjp(const D& device, X&& dx, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, dx, dx, axes, true);
  }

  /// dx = R^T dy, out of place.
  template <writable_tensor Dx, readable_beside<Dx> Dy>
    requires(Rank == 2)
  void rotate_vjp(Dx&& dx, const Dy& dy, const Positions& at, NamedAxes<rank_of<Dx>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dx, dy, at, axes, true);
  }
  /// The same on a device.
  template <device D, writable_tensor Dx, readable_beside<Dx> Dy>
    requires(Rank == 2)
  void rotate_vjp(const D& device, Dx&& dx, const Dy& dy, const Positions& at,
                  NamedAxes<rank_of<Dx>> axes = {}) const {
    turn(device, dx, dy, at, axes, true);
  }
  /// The same with a rank-3 table.
  template <writable_tensor Dx, readable_beside<Dx> Dy>
    requires(Rank == 3)
  void rotate_vjp(Dx&& dx, const Dy& dy, NamedAxes<rank_of<Dx>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dx, dy, axes, true);
  }
  /// The same with a rank-3 table, on a device.
  template <device D, writable_tensor Dx, readable_beside<Dx> Dy>
    requires(Rank == 3)
  void rotate_vjp(const D& device, Dx&& dx, const Dy& dy, NamedAxes<rank_of<Dx>> axes = {}) const {
    turn(device, dx, dy, axes, true);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InOrOutOfPlace, Args...> rotate_vjp(Args&&...) const;

 private:
  // cos and sin from where a row starts in the table.
  template <std::floating_point C>
  void load(Index cos_offset, Index sin_offset, Index first, Index count, C* cos, C* sin) const {
    const auto row = [&](const View<const Scalar, Rank>& table, Index offset) {
      const Index step = column_step_ * table.stride(Rank - 1);
      return View<const Scalar, 2>(detail::Unchecked(), table.data() + offset + first * step, {1, count},
                                   {0, step});
    };
    detail::load_tile(row(cos_.view(), cos_offset), cos);
    detail::load_tile(row(sin_.view(), sin_offset), sin);
  }

  template <device D, class Out, class X>
  void turn(const D& device, Out& out, const X& x, const Positions& at, NamedAxes<rank_of<Out>> axes,
            bool transposed) const {
    detail::with_heads(out, x, axes, [&](const auto& to, const auto& from) {
      turn_views(device, to, from, at, transposed);
    });
  }
  template <device D, class Out, class X>
  void turn(const D& device, Out& out, const X& x, NamedAxes<rank_of<Out>> axes, bool transposed) const {
    detail::with_heads(out, x, axes,
                       [&](const auto& to, const auto& from) { turn_views(device, to, from, transposed); });
  }

  // The verbs end here whatever tensor they were called with, so each scalar type compiles the kernel once.
  template <scalar_type S, device D>
  void turn_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in, const Positions& at,
                  bool transposed) const {
    using C = compute_t<S>;
    const detail::Pairs pairs = pairs_of<S>(out);
    detail::require_positions("at", at, out.extent(0), out.extent(1));
    const Index max_pos = cos_.view().extent(0);
    for (Index b = 0; b < (out.size() == 0 ? 0 : at.rows()); ++b)
      for (Index s = 0; s < at.count(); ++s)
        if (const Position p = at(b, s); p < 0 || p >= max_pos)
          detail::out_of_range("at: expected positions in [0, ", max_pos, "), the rows of the table, got ", p,
                               " at (", b, ", ", s, ")");
    detail::rotate_pairs<S>(device, out, in, pairs, transposed, at.rows() == 1,
                            [&](detail::AngleScratch<C>&, Index b, Index s, Index tokens, Index first,
                                Index count, C* cos, C* sin, Index stride) {
                              for (Index t = 0; t < tokens; ++t) {
                                const Position p = at(b, s + t);
                                load(p * cos_.view().stride(0), p * sin_.view().stride(0), first, count,
                                     cos + t * stride, sin + t * stride);
                              }
                            });
  }
  template <scalar_type S, device D>
  void turn_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in, bool transposed) const {
    using C = compute_t<S>;
    const detail::Pairs pairs = pairs_of<S>(out);
    const Index table_batch = cos_.view().extent(0);
    detail::require_equal("cos: rows per sequence", out.extent(1), cos_.view().extent(1));
    if (table_batch != 1 && table_batch != out.extent(0))
      detail::invalid("cos: expected a batch of 1 or ", out.extent(0), ", got ", table_batch);
    detail::rotate_pairs<S>(device, out, in, pairs, transposed, table_batch == 1,
                            [&](detail::AngleScratch<C>&, Index b, Index s, Index tokens, Index first,
                                Index count, C* cos, C* sin, Index stride) {
                              const Index row = table_batch == 1 ? 0 : b;
                              for (Index t = 0; t < tokens; ++t)
                                load(row * cos_.view().stride(0) + (s + t) * cos_.view().stride(1),
                                     row * sin_.view().stride(0) + (s + t) * sin_.view().stride(1), first,
                                     count, cos + t * stride, sin + t * stride);
                            });
  }

  // The head is as wide as x: its window decides which pairs turn.
  template <scalar_type S>
  detail::Pairs pairs_of(const View<S, 4>& x) const {
    static_assert(std::same_as<compute_t<S>, compute_t<Scalar>>,
                  "posenc: a table of double goes with tensors of double, the others with each other");
    detail::require_apart("x", x, "cos", cos_.view());
    detail::require_apart("x", x, "sin", sin_.view());
    return detail::Pairs(pairing_, window_.first(x.extent(3), rotary_dim()), pairs_);
  }

  detail::Held<Scalar, Rank> cos_, sin_;
  Pairing pairing_;
  Window window_;
  Index pairs_;
  Index column_step_ = 1;
};

/// Scalar type and rank are those of the tables.
template <readable_tensor Cos, readable_tensor Sin, class... Options>
RotaryTable(Cos&&, Sin&&, Pairing, Options...) -> RotaryTable<scalar_of<Cos>, rank_of<Cos>>;

/// The same without a pairing, which the constructor refuses.
template <readable_tensor Cos, readable_tensor Sin>
RotaryTable(const Cos&, const Sin&) -> RotaryTable<scalar_of<Cos>, rank_of<Cos>>;

}  // namespace v0
}  // namespace posenc
