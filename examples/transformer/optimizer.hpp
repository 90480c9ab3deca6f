#pragma once
// Adam (Kingma & Ba 2015) with the learning rate of "Attention Is All You Need", section 5.3:
//
//   m = b1 m + (1 - b1) g,   v = b2 v + (1 - b2) g^2
//   p -= lrate (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps)
//
//   lrate = d_model^-0.5 min(step^-0.5, step warmup^-1.5)      (eq. 3)
//
// That peaks at (d_model warmup)^-0.5. A peak of one's own scales it; with `total_steps` as well, the rate
// falls in a line to zero instead of with the root.

#include <algorithm>
#include <cmath>
#include <optional>

#include "transformer/matrix.hpp"

namespace transformer {

struct WarmupSchedule {
  Index warmup_steps = 4000;
  std::optional<double> peak = {};
  std::optional<Index> total_steps = {};

  /// The rate of step 1, 2, ...
  double rate(Index step, Index d_model) const {
    const double s = static_cast<double>(step),
                 warmup = static_cast<double>((std::max)(Index{1}, warmup_steps));
    const double highest = peak.value_or(1.0 / std::sqrt(static_cast<double>(d_model) * warmup));
    if (s < warmup) return highest * s / warmup;
    if (!total_steps) return highest * std::sqrt(warmup / s);
    const double total = static_cast<double>(*total_steps);
    return total <= warmup ? highest : highest * (std::max)(0.0, (total - s) / (total - warmup));
  }
};

struct AdamConfig {
  double beta1 = 0.9, beta2 = 0.98, epsilon = 1e-9;
};

template <class Scalar>
class Adam {
 public:
  Adam(const AdamConfig& config, Index parameters)
      : config_(config), m_(Vector<Scalar>::Zero(parameters)), v_(Vector<Scalar>::Zero(parameters)) {}

  /// Counts a step; then `update` every parameter once.
  void next_step() { ++step_; }
  Index step() const { return step_; }

  /// Parameters first .. first + count, given the gradient times gradient_scale.
  void update(Vector<Scalar>& parameters, const Vector<Scalar>& gradient, Index first, Index count,
              double rate, double gradient_scale = 1.0) {
    const auto b1 = static_cast<Scalar>(config_.beta1), b2 = static_cast<Scalar>(config_.beta2);
    const double t = static_cast<double>(step_);
    const auto m_scale = static_cast<Scalar>(rate / (1.0 - std::pow(config_.beta1, t)));
    const auto v_scale = static_cast<Scalar>(1.0 / (1.0 - std::pow(config_.beta2, t)));
    const auto scale = static_cast<Scalar>(gradient_scale);
    const auto g = gradient.segment(first, count).array();
    auto m = m_.segment(first, count).array(), v = v_.segment(first, count).array();
    m = b1 * m + (Scalar{1} - b1) * scale * g;
    v = b2 * v + (Scalar{1} - b2) * (scale * g).square();
    parameters.segment(first, count).array() -=
        m_scale * m / ((v_scale * v).sqrt() + static_cast<Scalar>(config_.epsilon));
  }

 private:
  AdamConfig config_;
  Index step_ = 0;
  Vector<Scalar> m_, v_;
};

}  // namespace transformer
