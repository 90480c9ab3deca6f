#pragma once
// A temperature that grows with the position: queries far out are multiplied by a little more, so that
// softmax stays sharp over long contexts. Not part of the rotation, and applied also where there is none
// (Llama 4's NoPE layers).
//
//   Llama 4      t(p) = 1 + scale ln(1 + floor((p + 1) / length))      scale 0.1, length floor_scale = 8192
//   Ministral 3  t(p) = 1 + scale ln(1 + floor(p / length))            llama_4_scaling_beta, original length
//   Inkling      t(p) = 1 + scale ln(max(1, (p + 1) / length))

#include <algorithm>
#include <cmath>

#include "posenc/core/finite.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

namespace posenc {
inline namespace v0 {

/// Whose formula.
enum class TemperatureRule { llama4, ministral3, inkling };

/// The numbers of the formula.
struct AttentionTemperatureConfig {
  TemperatureRule rule = TemperatureRule::llama4;  ///< whose formula
  double scale = 0.1;                              ///< how fast the temperature grows
  double length = 8192;                            ///< positions up to the first step
};

/// The multiplier as an immutable value.
class AttentionTemperature {
 public:
  /// Throws std::invalid_argument unless scale is finite and length positive.
  explicit AttentionTemperature(const AttentionTemperatureConfig& config) : config_(config) {
    if (!detail::is_finite(config.scale))
      detail::invalid("scale: expected a finite number, got ", config.scale);
    if (!detail::is_positive(config.length))
      detail::invalid("length: expected a positive finite number, got ", config.length);
  }

  /// What it was made from.
  const AttentionTemperatureConfig& config() const { return config_; }

  /// t(p).
  double value(Position position) const {
    const double p = static_cast<double>(position);
    switch (config_.rule) {
      case TemperatureRule::llama4:
        return 1 + config_.scale * std::log1p(std::floor((p + 1) / config_.length));
      case TemperatureRule::ministral3: return 1 + config_.scale * std::log1p(std::floor(p / config_.length));
      case TemperatureRule::inkling:
        return 1 + config_.scale * std::log((std::max)(1.0, (p + 1) / config_.length));
    }
    return 1;
  }

  /// q = t(at) q, in place. q and axes: as x in Rotary::rotate. Throws std::invalid_argument where the shapes
  /// don't fit, std::out_of_range for a negative position. It is its own transpose: the gradient is dq =
  /// t(at) dq.
  template <writable_tensor Q>
  void scale(Q&& q, const Positions& at, NamedAxes<rank_of<Q>> axes = {}) const {
    scale(Eigen::DefaultDevice(), q, at, axes);
  }
  /// The same on a device.
  template <device D, writable_tensor Q>
  void scale(const D& device, Q&& q, const Positions& at, NamedAxes<rank_of<Q>> axes = {}) const {
    using S = scalar_of<Q>;
    const View<S, 4> x = detail::as_bshd("q", detail::output_view("q", q), axes);
    detail::require_positions("at", at, x.extent(0), x.extent(1));
    if (x.size() == 0) return;
    for (Index row = 0; row < at.rows(); ++row)
      for (Index i = 0; i < at.count(); ++i)
        if (at(row, i) < 0)
          detail::out_of_range("at: expected positions of at least 0, got ", at(row, i), " at (", row, ", ",
                               i, ")");
    for (Index h = 0; h < x.extent(2); ++h) {
      const View<S, 3> head(detail::Unchecked(), x.data() + h * x.stride(2),
                            {x.extent(0), x.extent(1), x.extent(3)}, {x.stride(0), x.stride(1), x.stride(3)});
      detail::map_tiles<S>(device, head, false, detail::NothingShared{},
                           [&](const detail::Tile& tile, const compute_t<S>*, compute_t<S>* values) {
                             detail::load_tile(View<const S, 2>(tile.of(head)), values);
                             for (Index r = 0; r < tile.rows; ++r) {
                               const auto t = static_cast<compute_t<S>>(value(at(tile.batch, tile.seq + r)));
                               for (Index c = 0; c < tile.columns; ++c) values[r * tile.columns + c] *= t;
                             }
                           });
    }
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> scale(Args&&...) const;

 private:
  AttentionTemperatureConfig config_;
};

}  // namespace v0
}  // namespace posenc
