#pragma once
// Keys of a cache from one set of frequencies to another: LongRoPE's short list to its long one, dynamic NTK
// at a new length. A key rotated at position p by frequencies f is R_f(p) k, and rotations compose, so
//
//   R_g(p) k = R_(g - f)(p) R_f(p) k
//
// one rotation by p (g - f), exact at any position, and the ratio of the two attention factors. What that
// makes exact, and what it can't, is in docs/cache.md: keys of the first layer come out as if computed with
// g; deeper ones were computed from hidden states that had seen f.

#include <utility>

#include "posenc/core/angles.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/rotary/kernel.hpp"
#include "posenc/rotary/rotary.hpp"

namespace posenc {
inline namespace v0 {

/// The change of base from one Rotary to another, made once and used for any keys. An immutable value.
class KeyRebase {
 public:
  /// Throws std::invalid_argument unless both rotate the same pairs of the same heads by the same axes, or
  /// where the first has an attention_factor of zero.
  KeyRebase(const Rotary& from, const Rotary& to)
      : to_(to),
        pairs_(to.stored_pairs()),
        angles_(to.frequencies().inv_freq, from.frequencies().inv_freq),
        scale_(to.frequencies().attention_factor / from.frequencies().attention_factor) {
    detail::require_equal("to: head_dim", from.head_dim(), to.head_dim());
    const detail::Pairs old = from.stored_pairs();
    if (old.first != pairs_.first || old.count != pairs_.count || old.out != pairs_.out)
      detail::invalid("to: expected the pairing and window of `from`");
    if (from.frequencies().axis != to.frequencies().axis) detail::invalid("to: expected the axes of `from`");
    if (from.frequencies().attention_factor == 0)
      detail::invalid("from: expected an attention_factor other than 0, got 0");
  }

  /// k = R_to(at) R_from(at)^-1 k, in place. k, axes and errors: as x in Rotary::rotate.
  template <writable_tensor K>
  void apply(K&& k, const Positions& at, NamedAxes<rank_of<K>> axes = {}) const {
    apply(Eigen::DefaultDevice(), k, at, axes);
  }
  /// The same on a device.
  template <device D, writable_tensor K>
  void apply(const D& device, K&& k, const Positions& at, NamedAxes<rank_of<K>> axes = {}) const {
    detail::with_heads(k, k, axes,
                       [&](const auto& to, const auto& from) { turn_views(device, to, from, at); });
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> apply(Args&&...) const;

 private:
  template <scalar_type S, device D>
  void turn_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in,
                  const Positions& at) const {
    using C = compute_t<S>;
    detail::require_head_dim(to_.head_dim(), out.extent(3));
    to_.require_positions(at, out.extent(0), out.extent(1));
    detail::rotate_pairs<S>(
        device, out, in, pairs_, false, at.rows() == 1,
        [&](detail::AngleScratch<C>&, Index b, Index s, Index tokens, Index first, Index count, C* cos,
            C* sin, Index stride) {
          for (Index t = 0; t < tokens; ++t) {
            const auto where = [&](Index j) { return at.coordinate(to_.axis_of(first + j), b, s + t); };
            angles_.cos_sin_at(where, first, count, cos + t * stride, sin + t * stride, scale_);
          }
        });
  }

  Rotary to_;
  detail::Pairs pairs_;
  detail::Angles angles_;
  double scale_;
};

}  // namespace v0
}  // namespace posenc
