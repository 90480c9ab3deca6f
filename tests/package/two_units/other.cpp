#include "posenc/posenc.hpp"

// The same templates as in main.cpp, for the same types: the linker must be able to keep one of each.
float first_angle_of_the_other_unit() {
  Eigen::Tensor<float, 3, Eigen::RowMajor> x(1, 2, 4);
  x.setZero();
  posenc::Sinusoidal({.d_model = 4}).add(x, posenc::consecutive(0, 2));
  return x(0, 1, 0);
}
