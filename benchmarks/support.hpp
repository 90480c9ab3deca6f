#pragma once
// What the benchmarks share: names, memory, devices.

#include <benchmark/benchmark.h>

#include <unsupported/Eigen/CXX11/Tensor>

#include <array>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <new>
#include <string>

#include "posenc/core/tensor.hpp"

namespace posenc_bench {

using posenc::Index;

template <class S>
const char* scalar_name() {
  if constexpr (std::same_as<S, float>) return "f32";
  if constexpr (std::same_as<S, double>) return "f64";
  if constexpr (std::same_as<S, Eigen::half>) return "f16";
  return "bf16";
}

/// 32x100x512
inline std::string by(std::initializer_list<Index> extents) {
  std::string name;
  for (const Index extent : extents) {
    if (!name.empty()) name += 'x';
    name += std::to_string(extent);
  }
  return name;
}

/// Queries or keys: batch, seq, heads, head_dim, in memory in that order or with the heads before seq.
struct Shape {
  Index batch, seq, heads, dim;
  Index size() const { return batch * seq * heads * dim; }
  std::string name() const { return by({batch, seq, heads, dim}); }
};

/// Memory on a page boundary, the same for every benchmark that runs, and filled anew for each with numbers
/// in [-1, 1) that are far from subnormal.
enum class Place { first, second };
template <class S>
S* memory(Place place, Index size) {
  constexpr std::align_val_t page{4096};
  struct Block {
    S* data = nullptr;
    Index size = 0;
  };
  static std::array<Block, 2> blocks;
  Block& block = blocks[place == Place::first ? 0 : 1];
  if (block.size < size) {
    ::operator delete(block.data, page);
    block = {static_cast<S*>(::operator new(static_cast<std::size_t>(size) * sizeof(S), page)), size};
  }
  constexpr Index piece = 4093;  // a prime: no two rows are the same
  for (Index i = 0; i < std::min(size, piece); ++i)
    block.data[i] = static_cast<S>(static_cast<float>(i * 7919 % 4096 * 2 + 1) / 4096.0f - 1.0f);
  for (Index i = piece; i < size; i += piece)
    std::memcpy(block.data + i, block.data, static_cast<std::size_t>(std::min(piece, size - i)) * sizeof(S));
  return block.data;
}

/// The pool behind the names that end in threads:2.
inline const Eigen::ThreadPoolDevice& two_threads() {
  static Eigen::ThreadPool pool(2);
  static const Eigen::ThreadPoolDevice device(&pool, 2);
  return device;
}

/// Registers run(state, device) under the name, for one thread.
template <class Run>
void add(const std::string& name, const Run& run) {
  benchmark::RegisterBenchmark(name.c_str(),
                               [run](benchmark::State& state) { run(state, Eigen::DefaultDevice()); });
}

/// The same, and once more with two threads in wall time.
template <class Run>
void add_threaded(const std::string& name, const Run& run) {
  add(name, run);
  benchmark::RegisterBenchmark((name + "/threads:2").c_str(), [run](benchmark::State& state) {
    run(state, two_threads());
  })->UseRealTime();
}

inline void per_element(benchmark::State& state, Index elements) {
  state.counters["ns_per_element"] =
      benchmark::Counter(static_cast<double>(elements) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

/// What the figures are of, for the reader of the JSON.
inline void add_context() {
  benchmark::AddCustomContext("compiler", POSENC_BENCHMARK_COMPILER);
  benchmark::AddCustomContext("flags", POSENC_BENCHMARK_FLAGS);
  benchmark::AddCustomContext("eigen", std::to_string(EIGEN_WORLD_VERSION) + "." +
                                           std::to_string(EIGEN_MAJOR_VERSION) + "." +
                                           std::to_string(EIGEN_MINOR_VERSION));
}

void add_limits();
void add_rotary();
void add_embedding();
void add_bias();

}  // namespace posenc_bench
