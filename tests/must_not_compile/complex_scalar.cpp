// float, double, half and bfloat16 are the scalars.
#include <complex>

#include "posenc/posenc.hpp"

void mistake(Eigen::Tensor<std::complex<float>, 3, Eigen::RowMajor>& z) {
  const posenc::Sinusoidal sinusoidal({.d_model = 512});
  sinusoidal.add(z, posenc::consecutive(0, z.dimension(1)));
}
