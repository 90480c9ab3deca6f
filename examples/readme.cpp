// The program of README.md: a test keeps the two the same.

#include <posenc/posenc.hpp>

#include <cmath>
#include <cstdio>

int main() {
  using Embeddings = Eigen::Tensor<float, 3, Eigen::RowMajor>;  // (batch, seq, d_model)
  using Heads = Eigen::Tensor<float, 4, Eigen::RowMajor>;       // (batch, seq, heads, head_dim)
  const Eigen::Index past = 100, n = 3, d_model = 512;
  const auto at = posenc::consecutive(past, n);  // or per token, per row, from a mask, ragged

  // Position added to token embeddings.
  Eigen::Tensor<float, 2, Eigen::RowMajor> table(1000, d_model);
  table.setConstant(0.01f);
  Eigen::Tensor<int, 2, Eigen::RowMajor> ids(1, n);
  ids.setValues({{17, 4, 256}});
  Embeddings x(1, n, d_model);
  const posenc::TokenEmbedding<float> token(table, {.scale = std::sqrt(512.0)});
  token.embed(x, ids);
  const posenc::Sinusoidal sinusoidal({.d_model = d_model});
  sinusoidal.add(x, at);
  std::printf("x[0, 0, :4]              %9.6f %9.6f %9.6f %9.6f\n", x(0, 0, 0), x(0, 0, 1), x(0, 0, 2),
              x(0, 0, 3));

  // Position turns queries and keys: in place, any number of heads, any position, no table.
  Heads q(1, n, 8, 64), k(1, n, 2, 64);
  q.setConstant(1.0f);
  k.setConstant(1.0f);
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 64, .rope_theta = 500000.0}),
                            posenc::Pairing::half);
  rope.rotate(q, at, posenc::Axes::bshd);
  rope.rotate(k, at, posenc::Axes::bshd);
  std::printf("q[0, 0, 0, :2]           %9.6f %9.6f\n", q(0, 0, 0, 0), q(0, 0, 0, 1));

  // Position added to attention scores: 3 queries, 103 keys of a cache, no (heads, seq, seq) matrix.
  Eigen::Tensor<float, 4, Eigen::RowMajor> scores(1, 8, n, past + n);
  scores.setZero();
  const posenc::Alibi alibi(8);
  alibi.add(scores, at, posenc::consecutive(0, past + n));
  std::printf("scores[0, 0, 0, 98:101]  %9.6f %9.6f %9.6f\n", scores(0, 0, 0, 98), scores(0, 0, 0, 99),
              scores(0, 0, 0, 100));

  // The gradient stands beside the forward.
  rope.rotate_vjp(q, at, posenc::Axes::bshd);  // dq = R^T dq: here it undoes the rotation
  std::printf("(R^T R q)[0, 0, 0, :2]   %9.6f %9.6f\n", q(0, 0, 0, 0), q(0, 0, 0, 1));
}
