// Positions are integers, shared or one row for each of the batch.
#include "encoders.hpp"

void mistake(const Tensor2& x, const Eigen::Tensor<int, 3>& i, float* p) {
  posenc::position_ids(x);  // wrong
  posenc::position_ids(i);  // wrong
  posenc::position_ids(5);  // wrong
  posenc::position_ids(p);  // wrong
}
