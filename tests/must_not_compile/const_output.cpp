// A const tensor cannot be written.
#include "posenc/posenc.hpp"

void mistake(const Eigen::Tensor<float, 3, Eigen::RowMajor>& x) {
  const posenc::Sinusoidal sinusoidal({.d_model = 512});
  sinusoidal.add(x, posenc::consecutive(0, x.dimension(1)));
}
