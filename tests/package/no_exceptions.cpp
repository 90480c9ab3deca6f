// Built with -fno-exceptions -fno-rtti. With an argument it makes a call that must fail.
#include <cstdint>
#include <cstdio>

#include "posenc/posenc.hpp"

int main(int count, char**) {
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 4}), posenc::Pairing::adjacent);
  Eigen::Tensor<float, 4, Eigen::RowMajor> q(1, 2, 1, 4), k(1, 2, 1, 4);
  q.setConstant(1.0f);
  k.setConstant(1.0f);
  rope.rotate(q, posenc::consecutive(0, 2), posenc::Axes::bshd);
  rope.rotate_vjp(q, posenc::consecutive(0, 2), posenc::Axes::bshd);
  for (Eigen::Index i = 0; i < q.size(); ++i)
    if (q.data()[i] < 0.999999f || q.data()[i] > 1.000001f) return 1;

  Eigen::Tensor<float, 3, Eigen::RowMajor> x(1, 2, 4);
  x.setZero();
  posenc::Sinusoidal({.d_model = 4}).add(x, posenc::consecutive(0, 2));
  if (x(0, 0, 0) != 0.0f || x(0, 0, 1) != 1.0f) return 1;

  Eigen::Tensor<float, 4, Eigen::RowMajor> scores(1, 1, 2, 2);
  scores.setZero();
  posenc::Alibi(1).add(scores, posenc::consecutive(0, 2), posenc::consecutive(0, 2));
  if (scores(0, 0, 1, 1) != 0.0f || scores(0, 0, 1, 0) >= 0.0f) return 1;

  std::puts("runs");
  std::fflush(stdout);                                                           // std::abort does not
  if (count > 1) rope.rotate(k, posenc::consecutive(0, 7), posenc::Axes::bshd);  // 2 tokens, 7 positions
  return 0;
}
