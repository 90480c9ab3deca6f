// Padding is told by the ids.
#include "encoders.hpp"

void mistake(const Tensor2& x, const std::vector<int>& list) {
  posenc::roberta_positions(x, 1);     // wrong
  posenc::roberta_positions(list, 1);  // wrong
}
