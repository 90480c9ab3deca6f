// posenc beside its peers, in one process and on the same memory, one thread each:
//
//   rotate/<f32|f16|bf16>/<half|adjacent>/bshd/<BxSxHxD>/<peer>     cos_sin_rows/f32/<NxD>/<peer>
//   embed/f32/<BxSxD>/<peer>                             alibi_softmax/<HxQxK>/<peer>
//
// with memcpy/<bytes> as their unit. benchmarks/report --peers prints the table.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "../support.hpp"
#include "peers.hpp"
#include "posenc/bias/alibi.hpp"
#include "posenc/bias/softmax.hpp"
#include "posenc/embedding/transformer_embedding.hpp"
#include "posenc/rotary/rotary.hpp"

namespace posenc_bench {
namespace {

using posenc::Pairing;

constexpr Count first_position = 1000;

template <class S>
double largest_difference(const S* a, const void* b_data, Index size) {
  const S* b = static_cast<const S*>(b_data);
  double largest = 0;
  for (Index i = 0; i < size; ++i) {
    const double difference = std::fabs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    largest = difference <= largest ? largest : difference;  // a NaN stays
  }
  return largest;
}

/// Times run after its first result was found to be right: check(result) is its largest error.
template <class Prepare, class Check>
void time_checked(benchmark::State& state, double tolerance, Index elements, const Prepare& prepare,
                  const Check& check, bool& checked) {
  try {
    const Run run = prepare();
    if (!checked) {
      const double error = check(run());
      if (!(error <= tolerance)) {
        state.SkipWithError(("differs from posenc by " + std::to_string(error)).c_str());
        return;
      }
      checked = true;
    }
    for (auto _ : state) {
      benchmark::DoNotOptimize(run().first);
      benchmark::ClobberMemory();
    }
  } catch (const std::exception& error) {
    state.SkipWithError(error.what());
    return;
  }
  per_element(state, elements);
}

template <class S>
void add_rotation(const std::string& name, const Shape& shape, Pairing pairing, double tolerance,
                  const std::function<Run(const RotationTask&)>& prepare) {
  const bool half = pairing == Pairing::half;
  const auto checked = std::make_shared<bool>(false);
  const std::string work =
      std::string("rotate/") + scalar_name<S>() + (half ? "/half/bshd/" : "/adjacent/bshd/");
  benchmark::RegisterBenchmark((work + shape.name() + "/" + name).c_str(), [=](benchmark::State& state) {
    const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = shape.dim}), pairing);
    const auto at = posenc::consecutive(first_position, shape.seq);
    Eigen::Tensor<float, 2, Eigen::RowMajor> cos(shape.seq, shape.dim / 2), sin(shape.seq, shape.dim / 2);
    rope.cos_sin(cos, sin, at);
    const Eigen::Tensor<S, 2, Eigen::RowMajor> own_cos = cos.template cast<S>(),
                                               own_sin = sin.template cast<S>();
    S* x = memory<S>(Place::first, shape.size());
    S* out = memory<S>(Place::second, shape.size());
    const Scalar scalar = std::same_as<S, float>         ? Scalar::f32
                          : std::same_as<S, Eigen::half> ? Scalar::f16
                                                         : Scalar::bf16;
    const RotationTask task{scalar,        shape.batch, shape.seq, shape.heads, shape.dim,  first_position,
                            half,          x,           out,       cos.data(),  sin.data(), own_cos.data(),
                            own_sin.data()};
    std::vector<S> expected;
    if (!*checked) {
      expected.assign(x, x + shape.size());
      rope.rotate(
          posenc::view(expected.data(), std::array<Index, 4>{shape.batch, shape.seq, shape.heads, shape.dim}),
          at, posenc::Axes::bshd);
    }
    const double least = scalar == Scalar::f32 ? 0 : scalar == Scalar::f16 ? 5e-3 : 4e-2;
    time_checked(
        state, std::max(tolerance, least), shape.size(), [&] { return prepare(task); },
        [&](const Result& result) { return largest_difference(expected.data(), result.first, shape.size()); },
        *checked);
  });
}

void add_table(const std::string& name, Count rows, Count dim, double tolerance,
               const std::function<Run(const TableTask&)>& prepare) {
  const auto checked = std::make_shared<bool>(false);
  benchmark::RegisterBenchmark(
      ("cos_sin_rows/f32/" + by({rows, dim}) + "/" + name).c_str(), [=](benchmark::State& state) {
        const Index half = rows * dim / 2;
        const TableTask task{rows, dim, memory<float>(Place::first, half),
                             memory<float>(Place::second, half)};
        time_checked(
            state, tolerance, 2 * half, [&] { return prepare(task); },
            [&](const Result& result) {
              Eigen::Tensor<float, 2, Eigen::RowMajor> cos(rows, dim / 2), sin(rows, dim / 2);
              posenc::Rotary(posenc::rotary_frequencies({.head_dim = dim}), Pairing::half)
                  .cos_sin(cos, sin, posenc::consecutive(0, rows));
              return std::max(largest_difference(cos.data(), result.first, half),
                              largest_difference(sin.data(), result.second, half));
            },
            *checked);
      });
}

posenc::TransformerEmbedding<float> embedding_layer(const EmbeddingTask& task) {
  const posenc::TokenEmbedding<float> token(
      posenc::view(task.table, std::array<Index, 2>{task.vocabulary, task.dim}),
      {.scale = static_cast<double>(task.scale)});
  const posenc::LearnedPositions<float> positions(
      posenc::view(task.positions, std::array<Index, 2>{task.seq, task.dim}));
  return {token, positions, {.position_embedding_type = "learned"}};
}

void embed(const posenc::TransformerEmbedding<float>& layer, const EmbeddingTask& task, float* out) {
  layer.embed(posenc::view(out, std::array<Index, 3>{task.batch, task.seq, task.dim}),
              posenc::view(task.ids, std::array<Index, 2>{task.batch, task.seq}),
              posenc::consecutive(0, task.seq));
}

void add_embedding(const std::string& name, Count batch, Count seq, Count dim, double tolerance,
                   const std::function<Run(const EmbeddingTask&)>& prepare) {
  constexpr Count vocabulary = 50000;
  const auto checked = std::make_shared<bool>(false);
  benchmark::RegisterBenchmark(
      ("embed/f32/" + by({batch, seq, dim}) + "/" + name).c_str(), [=](benchmark::State& state) {
        std::vector<std::int32_t> ids(static_cast<std::size_t>(batch * seq));
        for (std::size_t i = 0; i < ids.size(); ++i)
          ids[i] = static_cast<std::int32_t>(i * 7919 % static_cast<std::size_t>(vocabulary));
        const std::vector<std::int64_t> long_ids(ids.begin(), ids.end());
        const std::vector<float> positions(static_cast<std::size_t>(seq * dim), 0.5f);
        const EmbeddingTask task{batch,
                                 seq,
                                 dim,
                                 vocabulary,
                                 ids.data(),
                                 long_ids.data(),
                                 memory<float>(Place::first, vocabulary * dim),
                                 positions.data(),
                                 std::sqrt(static_cast<float>(dim)),
                                 memory<float>(Place::second, batch * seq * dim)};
        time_checked(
            state, tolerance, batch * seq * dim, [&] { return prepare(task); },
            [&](const Result& result) {
              std::vector<float> expected(static_cast<std::size_t>(batch * seq * dim));
              embed(embedding_layer(task), task, expected.data());
              return largest_difference(expected.data(), result.first, batch * seq * dim);
            },
            *checked);
      });
}

/// Against the definition in double, for every 37th row.
double softmax_error(const SoftmaxTask& task, const void* result_data) {
  const float* result = static_cast<const float*>(result_data);
  double largest = 0;
  std::vector<double> row(static_cast<std::size_t>(task.keys));
  for (Count r = 0; r < task.heads * task.queries; r += 37) {
    const Count head = r / task.queries, i = r % task.queries;
    double peak = -INFINITY, sum = 0;
    for (Count j = 0; j <= i; ++j) {
      row[static_cast<std::size_t>(j)] = static_cast<double>(task.scores[r * task.keys + j]) +
                                         static_cast<double>(task.slopes[head]) * static_cast<double>(j - i);
      peak = std::max(peak, row[static_cast<std::size_t>(j)]);
    }
    for (Count j = 0; j <= i; ++j) sum += std::exp(row[static_cast<std::size_t>(j)] - peak);
    for (Count j = 0; j < task.keys; ++j) {
      const double expected = j > i ? 0 : std::exp(row[static_cast<std::size_t>(j)] - peak) / sum;
      const double error = std::fabs(static_cast<double>(result[r * task.keys + j]) - expected);
      largest = error <= largest ? largest : error;
    }
  }
  return largest;
}

void add_softmax(const std::string& name, Count heads, Count queries, Count keys, double tolerance,
                 const std::function<Run(const SoftmaxTask&)>& prepare) {
  const auto checked = std::make_shared<bool>(false);
  benchmark::RegisterBenchmark(
      ("alibi_softmax/" + by({heads, queries, keys}) + "/" + name).c_str(), [=](benchmark::State& state) {
        const posenc::Alibi alibi(heads);
        std::vector<float> slopes;
        for (Count h = 0; h < heads; ++h)
          slopes.push_back(static_cast<float>(alibi.slopes()[static_cast<std::size_t>(h)]));
        const Index size = heads * queries * keys;
        const SoftmaxTask task{heads,
                               queries,
                               keys,
                               slopes.data(),
                               memory<float>(Place::first, size),
                               memory<float>(Place::second, size)};
        time_checked(
            state, tolerance, size, [&] { return prepare(task); },
            [&](const Result& result) { return softmax_error(task, result.first); }, *checked);
      });
}

template <class S>
Run rotate_posenc(const RotationTask& task, bool in_place) {
  const auto rope = std::make_shared<posenc::Rotary>(posenc::rotary_frequencies({.head_dim = task.dim}),
                                                     task.half ? Pairing::half : Pairing::adjacent);
  return [rope, task, in_place]() -> Result {
    const std::array<Index, 4> extents{task.batch, task.seq, task.heads, task.dim};
    const auto at = posenc::consecutive(task.first, task.seq);
    const auto x = posenc::view(static_cast<S*>(task.x), extents);
    if (in_place)
      rope->rotate(x, at, posenc::Axes::bshd);
    else
      rope->rotate(posenc::view(static_cast<S*>(task.out), extents), x, at, posenc::Axes::bshd);
    return {in_place ? task.x : task.out};
  };
}

/// posenc itself, through the same door.
void add_posenc() {
  const std::initializer_list<Scalar> all{Scalar::f32, Scalar::f16, Scalar::bf16};
  const auto rotate = [](bool in_place) {
    return [in_place](const RotationTask& task) -> Run {
      switch (task.scalar) {
        case Scalar::f16: return rotate_posenc<Eigen::half>(task, in_place);
        case Scalar::bf16: return rotate_posenc<Eigen::bfloat16>(task, in_place);
        default: return rotate_posenc<float>(task, in_place);
      }
    };
  };
  add_peer("posenc_inplace", 1e-6, Pairs::both, rotate(true), all);
  add_peer("posenc", 1e-6, Pairs::both, rotate(false), all);
  add_peer("posenc", 1e-7, [](const TableTask& task) -> Run {
    const auto rope =
        std::make_shared<posenc::Rotary>(posenc::rotary_frequencies({.head_dim = task.dim}), Pairing::half);
    return [rope, task]() -> Result {
      const std::array<Index, 2> extents{task.rows, task.dim / 2};
      rope->cos_sin(posenc::view(task.cos, extents), posenc::view(task.sin, extents),
                    posenc::consecutive(0, task.rows));
      return {task.cos, task.sin};
    };
  });
  // In place is what posenc offers; it takes its own result as the next scores.
  add_peer("posenc", 1e-6, [](const SoftmaxTask& task) -> Run {
    const auto alibi = std::make_shared<posenc::Alibi>(task.heads);
    std::memcpy(task.out, task.scores,
                static_cast<std::size_t>(task.heads * task.queries * task.keys) * sizeof(float));
    return [alibi, task]() -> Result {
      const auto at = posenc::consecutive(0, task.queries);
      posenc::softmax(posenc::view(task.out, std::array<Index, 3>{task.heads, task.queries, task.keys}),
                      *alibi, at, at, {.causal = true});
      return {task.out};
    };
  });
  add_peer("posenc", 1e-6, [](const EmbeddingTask& task) -> Run {
    const auto layer = std::make_shared<posenc::TransformerEmbedding<float>>(embedding_layer(task));
    return [layer, task]() -> Result {
      embed(*layer, task, task.out);
      return {task.out};
    };
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

}  // namespace

void add_peer(const std::string& name, double tolerance, Pairs pairs,
              std::function<Run(const RotationTask&)> prepare, std::initializer_list<Scalar> scalars) {
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent}) {
    if (pairs != Pairs::both && (pairs == Pairs::half) != (pairing == Pairing::half)) continue;
    for (const Shape& shape : {Shape{1, 1, 32, 128}, Shape{1, 32, 32, 128}, Shape{1, 512, 32, 128},
                               Shape{8, 128, 12, 64}, Shape{1, 4096, 32, 128}})
      for (const Scalar scalar : scalars) switch (scalar) {
          case Scalar::f32: add_rotation<float>(name, shape, pairing, tolerance, prepare); break;
          case Scalar::f16: add_rotation<Eigen::half>(name, shape, pairing, tolerance, prepare); break;
          case Scalar::bf16: add_rotation<Eigen::bfloat16>(name, shape, pairing, tolerance, prepare); break;
        }
  }
}

void add_peer(const std::string& name, double tolerance, std::function<Run(const TableTask&)> prepare) {
  add_table(name, 4096, 512, tolerance, prepare);
}

void add_peer(const std::string& name, double tolerance, std::function<Run(const EmbeddingTask&)> prepare) {
  add_embedding(name, 32, 100, 512, tolerance, prepare);
}

void add_peer(const std::string& name, double tolerance, std::function<Run(const SoftmaxTask&)> prepare) {
  add_softmax(name, 32, 1024, 1024, tolerance, prepare);
}

}  // namespace posenc_bench

int main(int argc, char** argv) {
  using namespace posenc_bench;
  for (const Index bytes : {8 << 10, 256 << 10, 1536 << 10, 4 << 20, 32 << 20, 16 << 10, 512 << 10, 3 << 20,
                            8 << 20, 64 << 20, 32 * 100 * 512 * 4, 32 * 1024 * 1024 * 4})
    add_copy(bytes);
  add_posenc();
  add_loops();
  add_eigen_tensor();
#ifdef POSENC_PEER_TORCH
  add_torch();
#endif
#ifdef POSENC_PEER_ONNXRUNTIME
  add_onnxruntime();
#endif
#ifdef POSENC_PEER_GGML
  add_ggml();
#endif
  add_context();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 1;
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
