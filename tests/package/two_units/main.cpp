#include "posenc/posenc.hpp"

float first_angle_of_the_other_unit();

int main() {
  Eigen::Tensor<float, 3, Eigen::RowMajor> x(1, 2, 4);
  x.setZero();
  posenc::Sinusoidal({.d_model = 4}).add(x, posenc::consecutive(0, 2));
  return x(0, 1, 0) == first_angle_of_the_other_unit() ? 0 : 1;
}
