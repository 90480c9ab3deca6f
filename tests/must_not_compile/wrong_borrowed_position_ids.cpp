// Ids that are borrowed must be there when they are read.
#include "encoders.hpp"

void mistake(const Tensor2& x) {
  posenc::borrowed_position_ids(x);                     // wrong
  posenc::borrowed_position_ids(std::vector<int>());    // wrong
  posenc::borrowed_position_ids(std::array<int, 3>());  // wrong
  posenc::borrowed_position_ids(Eigen::VectorXi(3));    // wrong
  posenc::borrowed_position_ids(Ids(1, 1));             // wrong
}
