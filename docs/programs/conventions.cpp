#include <posenc/posenc.hpp>

#include <cstdio>

int main() {
  constexpr int heads = 2, head_dim = 4, seq = 3;
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = head_dim}), posenc::Pairing::half);

  // A token per column, as q = W x has it in Eigen: the transpose is (seq, heads * head_dim).
  Eigen::MatrixXf q = Eigen::MatrixXf::Ones(heads * head_dim, seq);
  rope.rotate(posenc::split_heads(q.transpose(), heads), posenc::consecutive(0, seq), posenc::Axes::shd);
  for (int t = 0; t < seq; ++t) std::printf("token %d   %8.5f %8.5f\n", t, q(0, t), q(head_dim, t));

  // A vector is one row: a single token at position 2.
  Eigen::VectorXf one = Eigen::VectorXf::Ones(head_dim);
  rope.rotate(one, posenc::consecutive(2, 1));
  std::printf("a vector  %8.5f\n", one(0));
}
