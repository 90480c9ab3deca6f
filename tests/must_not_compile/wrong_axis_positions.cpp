// A coordinate for each axis.
#include "encoders.hpp"

void mistake(const Tensor2& x, const std::vector<int>& list) {
  posenc::axis_positions(x);     // wrong
  posenc::axis_positions(list);  // wrong
}
