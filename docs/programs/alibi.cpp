#include <posenc/posenc.hpp>

#include <cstdio>
#include <vector>

int main() {
  const posenc::Alibi alibi({.num_heads = 8, .form = posenc::AlibiForm::causal});
  std::printf("slopes ");
  for (const double m : alibi.slopes()) std::printf(" 1/%g", 1 / m);
  std::printf("\n");

  // Two new queries after three cached tokens: (batch, heads, queries, keys), no (seq, seq) matrix.
  Eigen::Tensor<float, 4, Eigen::RowMajor> scores(1, 8, 2, 5);
  scores.setZero();
  alibi.add(scores, posenc::consecutive(3, 2), posenc::consecutive(0, 5));
  for (int i = 0; i < 2; ++i)
    std::printf("head 0, query %d: %5.2f %5.2f %5.2f %5.2f %5.2f\n", 3 + i, scores(0, 0, i, 0),
                scores(0, 0, i, 1), scores(0, 0, i, 2), scores(0, 0, i, 3), scores(0, 0, i, 4));

  // A row for decoding, where nothing else is in memory.
  std::vector<float> row(4);
  alibi.row(row, 1, 3, posenc::consecutive(0, 4));
  std::printf("head 1, query 3: %5.2f %5.2f %5.2f %5.2f\n", row[0], row[1], row[2], row[3]);
}
