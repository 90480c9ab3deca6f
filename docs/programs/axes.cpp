#include <posenc/posenc.hpp>

#include <cstdio>
#include <vector>

int main() {
  // Qwen2-VL: 64 pairs, of which 16 turn with time, 24 with the row, 24 with the column.
  const auto plain = posenc::rotary_frequencies({.head_dim = 128, .rope_theta = 1000000.0});
  const posenc::Rotary rope(posenc::mrope_sections(plain, {16, 24, 24}), posenc::Pairing::half);

  // Two words, an image of 2 x 3 patches, one word more.
  const std::vector<posenc::MropeSegment> segments{
      {.text = 2}, {.frames = 1, .rows = 2, .columns = 3}, {.text = 1}};
  const posenc::MropePositions mrope = posenc::mrope_positions(segments);
  const char* names[] = {"time", "row", "column"};
  for (int axis = 0; axis < 3; ++axis) {
    std::printf("%-7s", names[axis]);
    for (int i = 0; i < 9; ++i) std::printf(" %d", static_cast<int>(mrope.at.integer(axis, 0, i)));
    std::printf("\n");
  }
  std::printf("the next token, index 9, stands at %d\n", static_cast<int>(9 + mrope.delta));

  Eigen::Tensor<float, 4, Eigen::RowMajor> q(1, 9, 28, 128);  // (batch, seq, heads, head_dim)
  q.setConstant(1.0f);
  rope.rotate(q, mrope.at, posenc::Axes::bshd);
  std::printf("q[0, 7, 0, :]: pair 0 %.5f, pair 16 %.5f, pair 40 %.5f\n", q(0, 7, 0, 0), q(0, 7, 0, 16),
              q(0, 7, 0, 40));
}
