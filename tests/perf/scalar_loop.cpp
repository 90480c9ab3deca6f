// What a rotation costs without vectors, for the test that the bounds of the others would notice it. The
// arguments are those of rotate.cpp; cos and sin are given, so that only the rotation itself is counted.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

void rotate(float* x, std::size_t rows, std::size_t pairs, std::size_t second, std::size_t step,
            const float* cos, const float* sin) {
  for (std::size_t row = 0; row < rows; ++row, x += 2 * pairs)
    for (std::size_t i = 0; i < pairs; ++i) {
      const float a = x[i * step], b = x[i * step + second];
      x[i * step] = a * cos[i] - b * sin[i];
      x[i * step + second] = b * cos[i] + a * sin[i];
    }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 8) return 2;
  const bool half = std::string(argv[2]) == "half";
  const auto rows = static_cast<std::size_t>(std::atoi(argv[3]) * std::atoi(argv[4]) * std::atoi(argv[5]));
  const auto dim = static_cast<std::size_t>(std::atoi(argv[6])), pairs = dim / 2;
  std::vector<float> x(rows * dim, 1.0f), cos(pairs, 0.6f), sin(pairs, 0.8f);
  for (int i = 0; i < std::atoi(argv[7]); ++i)
    rotate(x.data(), rows, pairs, half ? pairs : 1, half ? 1 : 2, cos.data(), sin.data());
  std::printf("%g\n", static_cast<double>(x[1]));
}
