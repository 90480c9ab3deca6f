// Every primitive beside the limit of the machine, in one process. Read the figures as ratios within one run,
// with --benchmark_enable_random_interleaving; benchmarks/report does so.
//
//   rotate/<f32|f16|bf16|f64>/<half|adjacent>/<bshd|bhsd>/<BxSxHxD>/<inplace|out>
//   cos_sin_rows/<f32|f64>/<NxD>                    sinusoidal_add/<f32|f16|bf16|f64>/<BxSxD>
//   embed/<f32|f16|bf16|f64>/<BxSxD>/<scheme>       alibi_add/<f32|f16|bf16>/<HxQxK>
//   alibi_softmax/[<f16|bf16>/]<HxQxK>
//
// and the limits: x *= c, copying, writing, and copying rows of a table
//
//   scale_inplace/<scalar>/<bytes>    memcpy/<bytes>    memset/<bytes>    gather/<scalar>/<BxSxD>
//
// What ends in threads:2 ran on an Eigen::ThreadPoolDevice, in wall time; all else in the thread's time.
// eigen_scale_inplace and eigen_rotate are Eigen's own arithmetic on half and bfloat16 arrays.

#include <benchmark/benchmark.h>

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>

#include "limits.hpp"
#include "support.hpp"

namespace posenc_bench {
namespace {

void scale_any(float* x, Index size, float c) { scale(x, static_cast<std::size_t>(size), c); }
void scale_any(double* x, Index size, float c) { scale(x, static_cast<std::size_t>(size), double{c}); }
void scale_any(Eigen::half* x, Index size, float c) {
  scale_f16(reinterpret_cast<std::uint16_t*>(x), static_cast<std::size_t>(size), c);
}
void scale_any(Eigen::bfloat16* x, Index size, float c) {
  scale_bf16(reinterpret_cast<std::uint16_t*>(x), static_cast<std::size_t>(size), c);
}

/// f(first, last), over all of [0, size) or over its halves at the same time.
template <class F>
void in_halves(const Eigen::DefaultDevice&, Index size, const F& f) {
  f(Index{0}, size);
}
template <class F>
void in_halves(const Eigen::ThreadPoolDevice& device, Index size, const F& f) {
  const double bytes = static_cast<double>(size);  // at least: enough for two blocks
  device.parallelFor(2, Eigen::TensorOpCost(bytes, bytes, bytes),
                     [&](Index first, Index last) { f(first * size / 2, last * size / 2); });
}

template <class S>
void add_scale(Index bytes) {
  const Index size = bytes / static_cast<Index>(sizeof(S));
  const std::string name = std::string("scale_inplace/") + scalar_name<S>() + "/" + std::to_string(bytes);
  const auto run = [=](benchmark::State& state, const auto& device) {
    if (std::same_as<S, Eigen::half> && !has_f16()) {
      state.SkipWithError("this machine has no F16C");
      return;
    }
    S* x = memory<S>(Place::first, size);
    float c = 1.0f;
    benchmark::DoNotOptimize(c);
    for (auto _ : state) {
      in_halves(device, size, [&](Index first, Index last) { scale_any(x + first, last - first, c); });
      benchmark::ClobberMemory();
    }
    per_element(state, size);
  };
  if (bytes >= 1 << 20)
    add_threaded(name, run);
  else
    add(name, run);
}

/// What a user of Eigen writes.
template <class S>
void add_eigen_scale(Index bytes) {
  const Index size = bytes / static_cast<Index>(sizeof(S));
  const std::string name =
      std::string("eigen_scale_inplace/") + scalar_name<S>() + "/" + std::to_string(bytes);
  add(name, [=](benchmark::State& state, const auto&) {
    Eigen::Map<Eigen::Array<S, Eigen::Dynamic, 1>> x(memory<S>(Place::first, size), size);
    S c(1.0f);
    benchmark::DoNotOptimize(c);
    for (auto _ : state) {
      x *= c;
      benchmark::ClobberMemory();
    }
    per_element(state, size);
  });
}

void add_copy(Index bytes) {
  add("memcpy/" + std::to_string(bytes), [=](benchmark::State& state, const auto&) {
    const float* from = memory<float>(Place::first, bytes / 4);
    float* to = memory<float>(Place::second, bytes / 4);
    for (auto _ : state) {
      std::memcpy(to, from, static_cast<std::size_t>(bytes));
      benchmark::ClobberMemory();
    }
    per_element(state, bytes / 4);
  });
}

void add_write(Index bytes) {
  add("memset/" + std::to_string(bytes), [=](benchmark::State& state, const auto&) {
    float* to = memory<float>(Place::first, bytes / 4);
    for (auto _ : state) {
      std::memset(to, 1, static_cast<std::size_t>(bytes));
      benchmark::ClobberMemory();
    }
    per_element(state, bytes / 4);
  });
}

}  // namespace

void add_limits() {
  constexpr Index KiB = 1 << 10, MiB = 1 << 20;
  // 1x1x32x128, 1x32x32x128, 8x128x12x64, 1x512x32x128, 1x4096x32x128; 32x100x512; 2^14 and 2^20 rows of 64
  for (const Index bytes : {16 * KiB, 512 * KiB, 3 * MiB, 8 * MiB, 64 * MiB, 6400 * KiB, 4 * MiB, 256 * MiB})
    add_scale<float>(bytes);
  for (const Index bytes : {32 * KiB, 1 * MiB, 6 * MiB, 16 * MiB}) add_scale<double>(bytes);
  for (const Index bytes : {8 * KiB, 256 * KiB, 1536 * KiB, 4 * MiB, 32 * MiB}) {
    add_scale<Eigen::half>(bytes);
    add_scale<Eigen::bfloat16>(bytes);
  }
  for (const Index bytes : {8 * KiB, 4 * MiB}) {
    add_eigen_scale<Eigen::half>(bytes);
    add_eigen_scale<Eigen::bfloat16>(bytes);
  }
  // The same tensors out of place, and the scores of 32x1024x1024.
  for (const Index bytes : {16 * KiB, 512 * KiB, 3 * MiB, 4 * MiB, 8 * MiB, 64 * MiB, 128 * MiB})
    add_copy(bytes);
  // cos_sin_rows: 4096x512 and 131072x128, and the first in double.
  for (const Index bytes : {8 * MiB, 64 * MiB, 16 * MiB}) add_write(bytes);
}

}  // namespace posenc_bench

int main(int argc, char** argv) {
  posenc_bench::add_limits();
  posenc_bench::add_rotary();
  posenc_bench::add_embedding();
  posenc_bench::add_bias();
  posenc_bench::add_context();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
