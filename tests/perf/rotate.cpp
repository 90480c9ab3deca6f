// Rotates a tensor in place a number of times, for a tool that counts instructions.
//   posenc_perf_rotate f32|f16 half|adjacent BATCH SEQ HEADS HEAD_DIM TIMES

#include <array>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "posenc/rotary/rotary.hpp"

namespace {

template <class S>
void rotate(const std::array<posenc::Index, 4>& shape, posenc::Pairing pairing, int times) {
  std::vector<S> values(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]), S(1.0f));
  const auto x = posenc::view(values.data(), shape);
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = shape[3]}), pairing);
  const posenc::Positions at = posenc::consecutive(1000, shape[1]);
  for (int i = 0; i < times; ++i) rope.rotate(x, at, posenc::Axes::bshd);
  std::printf("%g\n", static_cast<double>(static_cast<float>(values[1])));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) {
    std::fprintf(stderr,
                 "posenc_perf_rotate: expected f32|f16 half|adjacent BATCH SEQ HEADS HEAD_DIM TIMES\n");
    return 2;
  }
  const std::string scalar = argv[1];
  const auto pairing = std::string(argv[2]) == "half" ? posenc::Pairing::half : posenc::Pairing::adjacent;
  const std::array<posenc::Index, 4> shape{std::atoi(argv[3]), std::atoi(argv[4]), std::atoi(argv[5]),
                                           std::atoi(argv[6])};
  const int times = std::atoi(argv[7]);
  if (scalar == "f16")
    rotate<Eigen::half>(shape, pairing, times);
  else
    rotate<float>(shape, pairing, times);
}
