// The rotation of float heads alone, quick to compile with each set of flags that a user may have, beside the
// native limit: rotate/f32/<half|adjacent>/<bshd|bhsd>/1x512x32x128/inplace and scale_inplace/f32/<bytes>.

#include <benchmark/benchmark.h>

#include <string>

#include "limits.hpp"
#include "rotate_bench.hpp"
#include "support.hpp"

int main(int argc, char** argv) {
  using namespace posenc_bench;
  for (const Shape& shape : {Shape{1, 1, 32, 128}, Shape{1, 512, 32, 128}}) {
    add("scale_inplace/f32/" + std::to_string(4 * shape.size()), [=](benchmark::State& state, const auto&) {
      float* x = memory<float>(Place::first, shape.size());
      float c = 1.0f;
      benchmark::DoNotOptimize(c);
      for (auto _ : state) {
        scale(x, static_cast<std::size_t>(shape.size()), c);
        benchmark::ClobberMemory();
      }
      per_element(state, shape.size());
    });
    for (const Pairing pairing : {Pairing::half, Pairing::adjacent})
      for (const Axes axes : {Axes::bshd, Axes::bhsd}) add_rotate<float>(shape, pairing, axes, true);
  }
  add_context();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
