// Four axes: (batch, seq, heads, dim) or (batch, heads, seq, dim)? The caller must say.
#include "posenc/posenc.hpp"

void mistake(Eigen::Tensor<float, 4, Eigen::RowMajor>& q) {
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 128}), posenc::Pairing::half);
  rope.rotate(q, posenc::consecutive(0, q.dimension(1)));
}
