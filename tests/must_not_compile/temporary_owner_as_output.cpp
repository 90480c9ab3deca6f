// The result would be lost with the temporary.
#include "posenc/posenc.hpp"

void mistake() {
  const posenc::Sinusoidal sinusoidal({.d_model = 512});
  sinusoidal.add(Eigen::Tensor<float, 3, Eigen::RowMajor>(1, 1, 512), posenc::consecutive(0, 1));
}
