#include <posenc/posenc.hpp>

#include <cstdio>

int main() {
  using Heads = Eigen::Tensor<float, 4, Eigen::RowMajor>;  // (batch, seq, heads, head_dim)
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 8}), posenc::Pairing::half);
  const auto score = [&](posenc::Position query, posenc::Position key) {
    Heads q(1, 1, 1, 8), k(1, 1, 1, 8);
    q.setConstant(1.0f);
    k.setConstant(0.5f);
    rope.rotate(q, posenc::consecutive(query, 1), posenc::Axes::bshd);
    rope.rotate(k, posenc::consecutive(key, 1), posenc::Axes::bshd);
    float sum = 0;
    for (int c = 0; c < 8; ++c) sum += q(0, 0, 0, c) * k(0, 0, 0, c);
    return sum;
  };
  // The score depends on the distance alone, wherever the two stand.
  std::printf("distance 0       %.5f\n", score(7, 7));
  std::printf("distance 2       %.5f\n", score(2, 0));
  std::printf("the same far out %.5f\n", score(1000000002, 1000000000));

  // The two pairings of the same numbers.
  for (const auto pairing : {posenc::Pairing::half, posenc::Pairing::adjacent}) {
    Heads x(1, 1, 1, 4);
    x.setValues({{{{1, 2, 3, 4}}}});
    posenc::Rotary(posenc::rotary_frequencies({.head_dim = 4}), pairing)
        .rotate(x, posenc::consecutive(1, 1), posenc::Axes::bshd);
    std::printf("%-8s %8.5f %8.5f %8.5f %8.5f\n", pairing == posenc::Pairing::half ? "half" : "adjacent",
                x(0, 0, 0, 0), x(0, 0, 0, 1), x(0, 0, 0, 2), x(0, 0, 0, 3));
  }
}
