#include <posenc/posenc.hpp>

#include <cstdio>

template <class Mask>
void draw(const char* name, const Mask& mask) {
  Eigen::MatrixXf scores = Eigen::MatrixXf::Zero(6, 6);
  const posenc::Positions at = posenc::consecutive(0, 6);
  mask.add(scores, at, at);
  std::printf("%s\n", name);
  for (int i = 0; i < 6; ++i) {
    for (int j = 0; j < 6; ++j) std::printf(" %c", scores(i, j) == 0.0f ? 'x' : '.');
    std::printf("\n");
  }
}

int main() {
  Eigen::VectorXi documents(6), is_token(6);
  documents << 0, 0, 0, 1, 1, 1;
  is_token << 0, 0, 1, 1, 1, 1;
  draw("sliding_window(3)", posenc::sliding_window(3));
  draw("chunked(4)", posenc::chunked(4));
  draw("sum(causal(), segments(documents))", posenc::sum(posenc::causal(), posenc::segments(documents)));
  draw("key_padding(is_token)", posenc::key_padding(is_token));

  // A padded batch of two, left padding in the second row: one call, and padding gets no probability.
  Eigen::Tensor<bool, 2> mask(2, 4);
  mask.setValues({{true, true, true, true}, {false, false, true, true}});
  Eigen::Tensor<float, 4, Eigen::RowMajor> scores(2, 1, 4, 4);
  scores.setZero();
  const posenc::Positions at = posenc::consecutive(0, 4);
  posenc::softmax(scores, posenc::sum(posenc::causal(), posenc::key_padding(mask)), at, at);
  for (int b = 0; b < 2; ++b)
    std::printf("row %d, last query: %.3f %.3f %.3f %.3f\n", b, scores(b, 0, 3, 0), scores(b, 0, 3, 1),
                scores(b, 0, 3, 2), scores(b, 0, 3, 3));
}
