// Every primitive beside the limit of the machine, in one process: scale_inplace (read, modify, write),
// memcpy and memset over the same bytes. Read the figures as ratios within one run, with
// --benchmark_enable_random_interleaving.
//
//   rotate/<scalar>/<pairing>/<axes>/<BxSxHxD>/<inplace|out>     cos_sin_rows/<scalar>/<NxD>
//   sinusoidal_add/<scalar>/<BxSxD>    embed/<scalar>/<BxSxD>    alibi_add/<scalar>/<HxQxK>
//   scale_inplace/<scalar>/<bytes>     memcpy/<bytes>            memset/<bytes>

#include <benchmark/benchmark.h>

#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

#include "posenc/posenc.hpp"

namespace {

using posenc::Index;

/// Memory on a cache line, touched once.
template <class S>
class Buffer {
 public:
  explicit Buffer(Index size)
      : size_(size), data_(new (std::align_val_t{64}) S[static_cast<std::size_t>(size)]) {
    for (Index i = 0; i < size; ++i) data_[i] = static_cast<S>(std::sin(static_cast<float>(i % 1000)));
  }
  ~Buffer() { ::operator delete[](data_, std::align_val_t{64}); }
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;
  S* data() const { return data_; }
  Index size() const { return size_; }

 private:
  Index size_;
  S* data_;
};

struct Shape {
  Index batch, seq, heads, dim;
  Index size() const { return batch * seq * heads * dim; }
  std::string name() const {
    return std::to_string(batch) + "x" + std::to_string(seq) + "x" + std::to_string(heads) + "x" +
           std::to_string(dim);
  }
};

template <class S>
const char* scalar_name() {
  if constexpr (std::is_same_v<S, float>) return "f32";
  if constexpr (std::is_same_v<S, double>) return "f64";
  if constexpr (std::is_same_v<S, Eigen::half>) return "f16";
  return "bf16";
}

void per_element(benchmark::State& state, Index elements) {
  state.counters["ns_per_element"] =
      benchmark::Counter(static_cast<double>(elements) * 1e-9,
                         benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void benchmark_memory() {
  for (const Index bytes : {Index{16} << 10, Index{512} << 10, Index{8} << 20, Index{64} << 20}) {
    const std::string size = std::to_string(bytes);
    benchmark::RegisterBenchmark(("memcpy/" + size).c_str(), [bytes](benchmark::State& state) {
      const Buffer<char> from(bytes), to(bytes);
      for (auto _ : state) {
        std::memcpy(to.data(), from.data(), static_cast<std::size_t>(bytes));
        benchmark::ClobberMemory();
      }
      per_element(state, bytes / 4);
    });
    benchmark::RegisterBenchmark(("memset/" + size).c_str(), [bytes](benchmark::State& state) {
      const Buffer<char> to(bytes);
      for (auto _ : state) {
        std::memset(to.data(), 1, static_cast<std::size_t>(bytes));
        benchmark::ClobberMemory();
      }
      per_element(state, bytes / 4);
    });
    benchmark::RegisterBenchmark(("scale_inplace/f32/" + size).c_str(), [bytes](benchmark::State& state) {
      const Buffer<float> x(bytes / 4);
      float scale = 1.0f;
      benchmark::DoNotOptimize(scale);
      for (auto _ : state) {
        float* p = x.data();
        for (Index i = 0; i < x.size(); ++i) p[i] *= scale;
        benchmark::ClobberMemory();
      }
      per_element(state, bytes / 4);
    });
  }
}

template <class S>
void benchmark_rotate(const Shape& shape, posenc::Pairing pairing, posenc::Axes axes, bool in_place) {
  const std::string name =
      std::string("rotate/") + scalar_name<S>() + (pairing == posenc::Pairing::half ? "/half" : "/adjacent") +
      (axes == posenc::Axes::bshd ? "/bshd/" : "/bhsd/") + shape.name() + (in_place ? "/inplace" : "/out");
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = shape.dim}), pairing);
    const posenc::Positions at = posenc::consecutive(1000, shape.seq);
    const Buffer<S> x(shape.size()), out(in_place ? 0 : shape.size());
    const bool bshd = axes == posenc::Axes::bshd;
    const std::array<Index, 4> extents{shape.batch, bshd ? shape.seq : shape.heads,
                                       bshd ? shape.heads : shape.seq, shape.dim};
    const auto from = posenc::view(x.data(), extents);
    const auto to = in_place ? from : posenc::view(out.data(), extents);
    for (auto _ : state) {
      if (in_place)
        rope.rotate(from, at, axes);
      else
        rope.rotate(to, from, at, axes);
      benchmark::ClobberMemory();
    }
    per_element(state, shape.size());
  });
}

template <class S>
void benchmark_cos_sin(Index rows, Index dim) {
  const std::string name = std::string("cos_sin_rows/") + scalar_name<S>() + "/" + std::to_string(rows) +
                           "x" + std::to_string(dim);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = dim}), posenc::Pairing::half);
    const posenc::Positions at = posenc::consecutive(0, rows);
    const Buffer<S> cos(rows * dim / 2), sin(rows * dim / 2);
    const std::array<Index, 2> extents{rows, dim / 2};
    for (auto _ : state) {
      rope.cos_sin(posenc::view(cos.data(), extents), posenc::view(sin.data(), extents), at);
      benchmark::ClobberMemory();
    }
    per_element(state, rows * dim);
  });
}

template <class S>
void benchmark_embedding(Index batch, Index seq, Index d_model) {
  const std::string shape = std::string(scalar_name<S>()) + "/" + std::to_string(batch) + "x" +
                            std::to_string(seq) + "x" + std::to_string(d_model);
  benchmark::RegisterBenchmark(("sinusoidal_add/" + shape).c_str(), [=](benchmark::State& state) {
    const posenc::Sinusoidal sinusoidal({.d_model = d_model});
    const posenc::Positions at = posenc::consecutive(0, seq);
    const Buffer<S> x(batch * seq * d_model);
    const auto v = posenc::view(x.data(), std::array<Index, 3>{batch, seq, d_model});
    for (auto _ : state) {
      sinusoidal.add(v, at);
      benchmark::ClobberMemory();
    }
    per_element(state, x.size());
  });
  for (const char* scheme : {"none", "sinusoidal", "learned"}) {
    benchmark::RegisterBenchmark(("embed/" + shape + "/" + scheme).c_str(), [=](benchmark::State& state) {
      constexpr Index vocabulary = 50000;
      const Buffer<S> table(vocabulary * d_model), positions(seq * d_model), x(batch * seq * d_model);
      const posenc::TokenEmbedding<S> token(
          posenc::view(table.data(), std::array<Index, 2>{vocabulary, d_model}),
          {.scale = std::sqrt(static_cast<double>(d_model))});
      const posenc::LearnedPositions<S> learned(
          posenc::view(positions.data(), std::array<Index, 2>{seq, d_model}));
      const posenc::TransformerEmbeddingConfig config{.position_embedding_type = scheme};
      const posenc::TransformerEmbedding<S> layer =
          config.position_embedding_type == "learned"
              ? posenc::TransformerEmbedding<S>(token, learned, config)
              : posenc::TransformerEmbedding<S>(token, config);
      Eigen::Tensor<std::int32_t, 2, Eigen::RowMajor> ids(batch, seq);
      for (Index i = 0; i < ids.size(); ++i) ids.data()[i] = static_cast<std::int32_t>(i * 7919 % vocabulary);
      const posenc::Positions at = posenc::consecutive(0, seq);
      const auto v = posenc::view(x.data(), std::array<Index, 3>{batch, seq, d_model});
      for (auto _ : state) {
        layer.embed(v, ids, at);
        benchmark::ClobberMemory();
      }
      per_element(state, x.size());
    });
  }
}

template <class S>
void benchmark_alibi(Index heads, Index queries, Index keys) {
  const std::string name = std::string("alibi_add/") + scalar_name<S>() + "/" + std::to_string(heads) + "x" +
                           std::to_string(queries) + "x" + std::to_string(keys);
  benchmark::RegisterBenchmark(name.c_str(), [=](benchmark::State& state) {
    const posenc::Alibi alibi(heads);
    const Buffer<S> scores(heads * queries * keys);
    const auto v = posenc::view(scores.data(), std::array<Index, 3>{heads, queries, keys});
    const posenc::Positions q_at = posenc::consecutive(keys - queries, queries),
                            k_at = posenc::consecutive(0, keys);
    for (auto _ : state) {
      alibi.add(v, q_at, k_at);
      benchmark::ClobberMemory();
    }
    per_element(state, scores.size());
  });
}

template <class S>
void benchmark_scalar() {
  using posenc::Axes;
  using posenc::Pairing;
  for (const Shape& shape :
       {Shape{1, 1, 32, 128}, Shape{1, 32, 32, 128}, Shape{1, 512, 32, 128}, Shape{8, 128, 12, 64}})
    for (const Pairing pairing : {Pairing::half, Pairing::adjacent})
      for (const Axes axes : {Axes::bshd, Axes::bhsd})
        for (const bool in_place : {true, false}) benchmark_rotate<S>(shape, pairing, axes, in_place);
  benchmark_embedding<S>(32, 100, 512);
  benchmark_alibi<S>(32, 1024, 1024);
}

}  // namespace

int main(int argc, char** argv) {
  benchmark_memory();
  benchmark_scalar<float>();
  benchmark_scalar<double>();
  benchmark_scalar<Eigen::half>();
  benchmark_scalar<Eigen::bfloat16>();
  benchmark_rotate<float>({1, 4096, 32, 128}, posenc::Pairing::half, posenc::Axes::bshd, true);
  benchmark_rotate<float>({1, 4096, 32, 128}, posenc::Pairing::adjacent, posenc::Axes::bshd, true);
  benchmark_cos_sin<float>(4096, 512);
  benchmark_cos_sin<float>(131072, 128);
  benchmark_cos_sin<double>(4096, 512);
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
