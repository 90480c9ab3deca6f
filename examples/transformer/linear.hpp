#pragma once
// A linear map of every token on its own, y = x W + b, with W (in, out). One matrix product for the batch.
//
//   dW = x^T dy,   db = sum of dy over the tokens,   dx = dy W^T

#include <string>

#include "transformer/matrix.hpp"
#include "transformer/parameters.hpp"

namespace transformer {

template <class Scalar>
class Linear {
 public:
  /// `parts` maps packed side by side (queries, keys and values), each of which starts as if it stood alone.
  Linear(Parameters<Scalar>& parameters, const std::string& name, Index in, Index out, bool bias,
         Index parts = 1)
      : weight_(parameters.add(name + ".weight", in, out, Init::xavier(in, out / parts))), has_bias_(bias) {
    if (bias) bias_ = parameters.add(name + ".bias", out, Init::constant(0));
  }

  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& x) const {
    const View<Scalar, 2> y = pass.workspace.matrix(x.extent(0), weight_.cols);
    matrix(y).noalias() = matrix(x) * pass.weight(weight_);
    if (has_bias_) matrix(y).rowwise() += pass.weight(bias_).row(0);
    return y;
  }

  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<const Scalar, 2>& dy,
                           const View<const Scalar, 2>& x) const {
    pass.gradient(weight_).noalias() += matrix(x).transpose() * matrix(dy);
    if (has_bias_) pass.gradient(bias_).row(0) += matrix(dy).colwise().sum();
    const View<Scalar, 2> dx = pass.workspace.matrix(x.extent(0), x.extent(1));
    matrix(dx).noalias() = matrix(dy) * pass.weight(weight_).transpose();
    return dx;
  }

 private:
  Slot weight_, bias_;
  bool has_bias_;
};

}  // namespace transformer
