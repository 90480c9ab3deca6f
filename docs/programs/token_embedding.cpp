#include <posenc/posenc.hpp>

#include <cmath>
#include <cstdio>

int main() {
  Eigen::Tensor<float, 2, Eigen::RowMajor> table(5, 4);  // (vocabulary, d_model)
  for (int n = 0; n < 20; ++n) table.data()[n] = 0.1f * static_cast<float>(n);
  const posenc::TokenEmbedding<float> token(table, {.scale = std::sqrt(4.0)});

  // x = scale E[ids], ids of any shape.
  Eigen::Tensor<int, 2, Eigen::RowMajor> ids(1, 3);
  ids.setValues({{3, 0, 3}});
  Eigen::Tensor<float, 3, Eigen::RowMajor> x(1, 3, 4);
  token.embed(x, ids);
  for (int s = 0; s < 3; ++s)
    std::printf("x[0, %d]  %4.1f %4.1f %4.1f %4.1f\n", s, x(0, s, 0), x(0, s, 1), x(0, s, 2), x(0, s, 3));

  // The tied output head multiplies by E itself, without the scale.
  Eigen::Tensor<float, 3, Eigen::RowMajor> logits(1, 3, 5);
  token.logits(logits, x);
  std::printf("logits[0, 1]  %5.2f %5.2f %5.2f %5.2f %5.2f\n", logits(0, 1, 0), logits(0, 1, 1),
              logits(0, 1, 2), logits(0, 1, 3), logits(0, 1, 4));

  // The gradient: row 3 was looked up twice.
  Eigen::Tensor<float, 3, Eigen::RowMajor> dx(1, 3, 4);
  dx.setConstant(1.0f);
  Eigen::Tensor<float, 2, Eigen::RowMajor> d_table(5, 4);
  d_table.setZero();
  token.embed_vjp(d_table, ids, dx);
  std::printf("d_table[:, 0]  %g %g %g %g %g\n", d_table(0, 0), d_table(1, 0), d_table(2, 0), d_table(3, 0),
              d_table(4, 0));
}
