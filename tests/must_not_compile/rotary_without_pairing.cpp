// Which dimensions turn together is never guessed.
#include "posenc/posenc.hpp"

void mistake(Eigen::Tensor<float, 4, Eigen::RowMajor>& q) {
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 128}));
  rope.rotate(q, posenc::consecutive(0, q.dimension(1)), posenc::Axes::bshd);
}
