#pragma once
// Normalisation of every token on its own, over its d features.
//
//   LayerNorm (Ba, Kiros & Hinton 2016)   y = g (x - mean) / sqrt(var + eps) + b
//   RMSNorm (Zhang & Sennrich 2019)       y = g x / sqrt(mean(x^2) + eps)
//
// With n the normalised x and r the factor 1 / sqrt(..):
//
//   dn = g dy,   dx = r (dn - mean(dn) - n mean(dn n)),   dg = sum of dy n,   db = sum of dy
//
// where RMSNorm has no mean(dn).

#include <cmath>
#include <string>

#include "transformer/matrix.hpp"
#include "transformer/parameters.hpp"

namespace transformer {

enum class Norm { layer_norm, rms_norm };

template <class Scalar>
class Normalization {
 public:
  struct Saved {
    View<Scalar, 2> normalized, factor;  // (tokens, d), (tokens, 1)
  };

  Normalization(Parameters<Scalar>& parameters, const std::string& name, Index d, Norm norm, double eps)
      : norm_(norm),
        eps_(static_cast<Scalar>(eps)),
        gain_(parameters.add(name + ".weight", d, Init::constant(1))) {
    if (norm == Norm::layer_norm) bias_ = parameters.add(name + ".bias", d, Init::constant(0));
  }

  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& x, Saved& saved) const {
    const Index tokens = x.extent(0), d = x.extent(1);
    saved.normalized = pass.workspace.matrix(tokens, d);
    saved.factor = pass.workspace.matrix(tokens, 1);
    const View<Scalar, 2> y = pass.workspace.matrix(tokens, d);
    auto n = matrix(saved.normalized);
    auto out = matrix(y);
    const auto in = matrix(x);
    const auto gain = pass.weight(gain_);
    for (Index t = 0; t < tokens; ++t) {
      auto row = n.row(t).array();
      if (norm_ == Norm::layer_norm)
        row = in.row(t).array() - in.row(t).mean();
      else
        row = in.row(t).array();
      const Scalar factor = Scalar{1} / std::sqrt(row.square().mean() + eps_);
      saved.factor(t, 0) = factor;
      row *= factor;
      if (norm_ == Norm::layer_norm)
        out.row(t).array() = row * gain.row(0).array() + pass.weight(bias_).row(0).array();
      else
        out.row(t).array() = row * gain.row(0).array();
    }
    return y;
  }

  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<const Scalar, 2>& dy, const Saved& saved) const {
    const Index tokens = dy.extent(0), d = dy.extent(1);
    const View<Scalar, 2> dx = pass.workspace.matrix(tokens, d);
    auto out = matrix(dx);
    const auto g = matrix(dy);
    const auto n = matrix(saved.normalized);
    const auto gain = pass.weight(gain_);
    auto dgain = pass.gradient(gain_);
    for (Index t = 0; t < tokens; ++t) {
      dgain.row(0).array() += g.row(t).array() * n.row(t).array();
      auto dn = out.row(t).array();
      dn = g.row(t).array() * gain.row(0).array();
      const Scalar along = (dn * n.row(t).array()).mean();
      const Scalar mean = norm_ == Norm::layer_norm ? dn.mean() : Scalar{0};
      dn = saved.factor(t, 0) * (dn - mean - along * n.row(t).array());
    }
    if (norm_ == Norm::layer_norm) pass.gradient(bias_).row(0) += g.colwise().sum();
    return dx;
  }

 private:
  Norm norm_;
  Scalar eps_;
  Slot gain_, bias_;
};

}  // namespace transformer
