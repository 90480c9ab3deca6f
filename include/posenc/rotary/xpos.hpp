#pragma once
// xPos (Sun et al. 2022, "A Length-Extrapolatable Transformer", section 2.3): a rotation whose pairs also
// decay with the distance. Queries are multiplied by zeta_i^n and keys by zeta_i^-n, with n = (p - centre) /
// scale_base, so that a score is damped by zeta_i^((p_q - p_k) / scale_base):
//
//   zeta_i = (2i/d + gamma) / (1 + gamma)
//
// The centre is a constant here. Implementations that take it from the length of the call change it between
// calls, and then cached keys no longer fit. Far from the centre the powers leave the range of the type: half
// needs |n| of a few.

#include <cmath>
#include <utility>
#include <vector>

#include "posenc/core/finite.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/power.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/rotary/kernel.hpp"
#include "posenc/rotary/rotary.hpp"

namespace posenc {
inline namespace v0 {

/// The numbers of the decay.
struct XposConfig {
  double gamma = 0.4;         ///< the larger, the less the fast pairs decay
  double scale_base = 512.0;  ///< positions per power of zeta
  Position centre = 0;        ///< where queries and keys keep their size
};

/// The encoder: a Rotary and its decay. An immutable value.
class Xpos {
 public:
  /// Throws std::invalid_argument unless gamma and scale_base are positive and rope has one axis and a
  /// pairing that is a rotation, std::out_of_range for a centre beyond 2^60.
  Xpos(Rotary rope, const XposConfig& config = {}) : rope_(std::move(rope)), config_(config) {
    if (!detail::is_positive(config.gamma))
      detail::invalid("gamma: expected a positive finite number, got ", config.gamma);
    if (!detail::is_positive(config.scale_base))
      detail::invalid("scale_base: expected a positive finite number, got ", config.scale_base);
    if (config.centre < -largest_position || config.centre > largest_position)
      detail::out_of_range("centre: expected a position within 2^60 of zero, got ", config.centre);
    detail::require_equal("rope: axes", Index{1}, rope_.frequencies().axes());
    if (rope_.pairing() == Pairing::adjacent_mismatched)
      detail::invalid("rope: expected a rotation, but Pairing::adjacent_mismatched is none");
    const double width = static_cast<double>(rope_.frequencies().rotary_dim());
    for (std::size_t i = 0; i < rope_.frequencies().inv_freq.size(); ++i)
      log2_zeta_.push_back(detail::log2_of(detail::quotient(
          detail::quotient(2 * static_cast<double>(i), width) + config.gamma, 1 + config.gamma)));
  }

  /// The rotation.
  const Rotary& rope() const { return rope_; }
  /// The decay.
  const XposConfig& config() const { return config_; }

  /// What pair i of a query at this position is multiplied by; a key by its reciprocal. Throws
  /// std::out_of_range for a pair that is not there or a position beyond 2^60.
  double decay(Index pair, Position position) const {
    if (pair < 0 || pair >= static_cast<Index>(log2_zeta_.size()))
      detail::out_of_range("pair: expected one in [0, ", log2_zeta_.size(), "), got ", pair);
    detail::require_position(position, "position");
    return std::exp2(log2_zeta_[static_cast<std::size_t>(pair)] *
                     static_cast<double>(position - config_.centre) / config_.scale_base);
  }

  /// q = zeta^n R(at) q and k = zeta^-n R(at) k, in place. Shapes, axes and errors: as Rotary::rotate.
  template <writable_tensor X>
  void rotate_query(X&& q, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), q, at, axes, false, 1);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void rotate_query(const D& device, X&& q, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, q, at, axes, false, 1);
  }
  /// The keys of such queries.
  template <writable_tensor X>
  void rotate_key(X&& k, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), k, at, axes, false, -1);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void rotate_key(const D& device, X&& k, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, k, at, axes, false, -1);
  }

  /// The transposes: gradients with respect to q and k, in place.
  template <writable_tensor X>
  void rotate_query_vjp(X&& dq, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dq, at, axes, true, 1);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void rotate_query_vjp(const D& device, X&& dq, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, dq, at, axes, true, 1);
  }
  /// The same for keys.
  template <writable_tensor X>
  void rotate_key_vjp(X&& dk, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(Eigen::DefaultDevice(), dk, at, axes, true, -1);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void rotate_key_vjp(const D& device, X&& dk, const Positions& at, NamedAxes<rank_of<X>> axes = {}) const {
    turn(device, dk, at, axes, true, -1);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> rotate_query(Args&&...) const;

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> rotate_key(Args&&...) const;

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> rotate_query_vjp(Args&&...) const;

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> rotate_key_vjp(Args&&...) const;

 private:
  template <device D, class X>
  void turn(const D& device, X& x, const Positions& at, NamedAxes<rank_of<X>> axes, bool transposed,
            int sign) const {
    detail::with_heads(x, x, axes, [&](const auto& to, const auto& from) {
      turn_views(device, to, from, at, transposed, sign);
    });
  }

  template <scalar_type S, device D>
  void turn_views(const D& device, const View<S, 4>& out, const View<const S, 4>& in, const Positions& at,
                  bool transposed, int sign) const {
    using C = compute_t<S>;
    detail::require_head_dim(rope_.head_dim(), out.extent(3));
    detail::require_positions("at", at, out.extent(0), out.extent(1));
    detail::rotate_pairs<S>(
        device, out, in, rope_.pairs(), transposed, at.rows() == 1,
        [&](detail::AngleScratch<C>& scratch, Index b, Index s, Index tokens, Index first, Index count,
            C* cos, C* sin, Index stride) {
          rope_.fill_cos_sin(scratch, at, b, s, tokens, first, count, cos, sin, stride,
                             rope_.frequencies().attention_factor);
          for (Index t = 0; t < tokens; ++t, cos += stride, sin += stride) {
            const double n = sign * static_cast<double>(at(b, s + t) - config_.centre) / config_.scale_base;
            for (Index j = 0; j < count; ++j) {
              const C by = static_cast<C>(std::exp2(log2_zeta_[static_cast<std::size_t>(first + j)] * n));
              cos[j] *= by, sin[j] *= by;
            }
          }
        });
  }

  Rotary rope_;
  XposConfig config_;
  std::vector<double> log2_zeta_;
};

}  // namespace v0
}  // namespace posenc
