#include <posenc/posenc.hpp>

#include <cmath>
#include <cstdio>

int main() {
  Eigen::Tensor<float, 2, Eigen::RowMajor> table(100, 4);
  table.setConstant(0.25f);
  const posenc::TransformerEmbedding<float> layer(
      posenc::TokenEmbedding<float>(table, {.scale = std::sqrt(4.0)}),
      {.position_embedding_type = "sinusoidal", .dropout = 0.5});
  Eigen::Tensor<int, 2, Eigen::RowMajor> ids(1, 3);
  ids.setValues({{5, 17, 99}});
  const auto at = posenc::consecutive(0, 3);
  Eigen::Tensor<float, 3, Eigen::RowMajor> x(1, 3, 4);
  const auto print = [&](const char* name) {
    std::printf("%s\n", name);
    for (int s = 0; s < 3; ++s)
      std::printf("  %8.5f %8.5f %8.5f %8.5f\n", x(0, s, 0), x(0, s, 1), x(0, s, 2), x(0, s, 3));
  };
  layer.embed(x, ids, at);
  print("eval: scale E[ids] + PE");
  layer.embed(x, ids, at, posenc::Mode::train, 1);
  print("train, seed 1: an element is zero or doubled");
}
