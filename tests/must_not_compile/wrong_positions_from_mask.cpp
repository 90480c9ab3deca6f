// A mask has a row for each of the batch.
#include "encoders.hpp"

void mistake(const Tensor2& x, const std::vector<int>& list, const Eigen::Tensor<bool, 3>& mask) {
  posenc::positions_from_mask(x);         // wrong
  posenc::positions_from_mask(list);      // wrong
  posenc::positions_from_mask(mask, -1);  // wrong
}
