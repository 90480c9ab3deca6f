// An expression has no memory to write to.
#include "posenc/posenc.hpp"

void mistake(Eigen::Tensor<float, 3, Eigen::RowMajor>& x) {
  const posenc::Sinusoidal sinusoidal({.d_model = 512});
  sinusoidal.add(x * 2.0f, posenc::consecutive(0, x.dimension(1)));
}
