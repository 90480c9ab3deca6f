#include <posenc/posenc.hpp>

#include <cstdio>
#include <utility>

int main() {
  const posenc::Sinusoidal paper({.d_model = 8});
  const posenc::Sinusoidal whisper({.d_model = 8,
                                    .exponent = posenc::SinusoidExponent::i_over_half_minus_one,
                                    .layout = posenc::SinusoidLayout::halves});
  for (const auto& [name, encoder] : {std::pair("paper", paper), std::pair("Whisper", whisper)}) {
    const auto row = encoder.table(1, 3);  // one row, position 3
    std::printf("%-8s", name);
    for (int c = 0; c < 8; ++c) std::printf(" %8.5f", row(0, c));
    std::printf("\n");
  }

  // Added in place, at any position: there is no table to outgrow.
  Eigen::Tensor<float, 3, Eigen::RowMajor> x(1, 2, 8);  // (batch, seq, d_model)
  x.setZero();
  paper.add(x, posenc::consecutive(4294967295, 2));
  std::printf("PE(2^32) %8.5f %8.5f\n", x(0, 1, 0), x(0, 1, 1));
}
