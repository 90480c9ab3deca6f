// Heads are seen in memory.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, Tensor4& q,
             const Eigen::MatrixXf& m) {
  posenc::split_heads(x * 2.0f, 4);                                // wrong
  posenc::split_heads(q, 4);                                       // wrong
  posenc::split_heads((2 * m).transpose(), 4);                     // wrong
  e.rope.rotate(posenc::split_heads(x * 2.0f, 4), at, Axes::shd);  // wrong
}
