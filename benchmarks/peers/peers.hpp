#pragma once
// How a peer takes part: it prepares a task and hands back a function that does it once. Before the clock
// starts its result is compared with posenc's; what differs by more than the peer's tolerance is not timed.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <string>

namespace posenc_bench {

using Count = std::int64_t;

/// Where the result is: of the task's own scalar type.
struct Result {
  const void* first = nullptr;
  const void* second = nullptr;
};
using Run = std::function<Result()>;

enum class Scalar { f32, f16, bf16 };

/// Rotate x, which is (batch, seq, heads, dim), in place or into out. Token s is at position first + s; base
/// 10000. cos and sin are a correct table of (seq, dim / 2), for those who read one: in float, and rounded to
/// the type of x.
struct RotationTask {
  Scalar scalar;
  Count batch, seq, heads, dim, first;
  bool half;
  void *x, *out;
  const float *cos, *sin;
  const void *own_cos, *own_sin;
};

/// cos and sin of positions 0, 1, ..., each (rows, dim / 2); base 10000.
struct TableTask {
  Count rows, dim;
  float *cos, *sin;
};

/// out = scale table[ids] + positions, (batch, seq, dim). The ids are there in both integer types.
struct EmbeddingTask {
  Count batch, seq, dim, vocabulary;
  const std::int32_t* ids;
  const std::int64_t* long_ids;
  const float *table, *positions;
  float scale;
  float* out;
};

/// out = softmax over the keys of scores + slope (j - i), causal, (heads, queries, keys); queries = keys.
struct SoftmaxTask {
  Count heads, queries, keys;
  const float *slopes, *scores;
  float* out;
};

enum class Pairs { both, half, adjacent };

/// The tolerance is that of float; 16-bit results may differ by 5e-3 (half) and 4e-2 (bfloat16), or by the
/// tolerance where that is more.
void add_peer(const std::string& name, double tolerance, Pairs pairs,
              std::function<Run(const RotationTask&)> prepare,
              std::initializer_list<Scalar> scalars = {Scalar::f32});
void add_peer(const std::string& name, double tolerance, std::function<Run(const TableTask&)> prepare);
void add_peer(const std::string& name, double tolerance, std::function<Run(const EmbeddingTask&)> prepare);
void add_peer(const std::string& name, double tolerance, std::function<Run(const SoftmaxTask&)> prepare);

// A file each. What a build does not have is not there.
void add_loops();
void add_eigen_tensor();
void add_torch();
void add_onnxruntime();
void add_ggml();

}  // namespace posenc_bench
