#include <posenc/posenc.hpp>

#include <cstdio>

int main() {
  // T5's encoder: 32 buckets, both directions. The table is (num_buckets, heads), as in its files.
  const posenc::T5Buckets rule(posenc::T5Direction::bidirectional);
  std::printf("bucket of distance -64, -8, 0, 1, 16, 128: ");
  for (const int d : {-64, -8, 0, 1, 16, 128}) std::printf(" %d", static_cast<int>(rule.of_distance(d)));
  std::printf("\n");

  Eigen::MatrixXf table(32, 2);
  for (int bucket = 0; bucket < 32; ++bucket)
    for (int head = 0; head < 2; ++head) table(bucket, head) = 0.1f * static_cast<float>(bucket + head);
  const posenc::RelativeBias t5(rule, table);
  Eigen::Tensor<float, 3, Eigen::RowMajor> scores(2, 3, 3);
  scores.setZero();
  const posenc::Positions at = posenc::consecutive(0, 3);
  t5.add(scores, at, at);
  for (int i = 0; i < 3; ++i)
    std::printf("head 0, query %d: %.1f %.1f %.1f\n", i, scores(0, i, 0), scores(0, i, 1), scores(0, i, 2));

  // Its gradient: what each bucket and head got.
  Eigen::Tensor<float, 3, Eigen::RowMajor> d_scores(2, 3, 3);
  d_scores.setConstant(1.0f);
  Eigen::MatrixXf d_table = Eigen::MatrixXf::Zero(32, 2);
  t5.add_vjp(d_table, d_scores, at, at);
  std::printf("pairs at distance 0: %g, at -1: %g, at 1: %g\n", d_table(0, 0), d_table(1, 0), d_table(17, 0));

  // A window of Swin: which of its 15 rows each pair of a 2 x 3 window reads.
  const posenc::GridOffset offset(2, 3);
  const posenc::Positions grid = posenc::grid_positions({2, 3});
  std::printf("rows read by the first place of a 2 x 3 window:");
  for (int j = 0; j < 6; ++j) std::printf(" %d", static_cast<int>(offset({grid, grid, 0, 0, 0}, j)));
  std::printf("\n");
}
