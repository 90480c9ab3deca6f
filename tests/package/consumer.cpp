// What a user of the package writes. The exit code says whether a rotation turned the vector by one radian.
#include <posenc/posenc.hpp>

#include <cmath>

int main() {
  Eigen::Tensor<float, 2, Eigen::RowMajor> q(2, 2);
  q.setValues({{1.0f, 0.0f}, {1.0f, 0.0f}});
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 2}), posenc::Pairing::half);
  rope.rotate(q, posenc::consecutive(0, 2));
  const bool turned = std::abs(q(1, 0) - 0.5403023f) < 1e-6f && std::abs(q(1, 1) - 0.8414710f) < 1e-6f;
  return turned && POSENC_VERSION_MAJOR >= 0 ? 0 : 1;
}
