// libtorch, eager, one thread: Hugging Face's rotate_half, the complex form of Meta's code, tables by outer
// product, embedding, and softmax with a bias made before.

#include <torch/torch.h>

#include <cmath>
#include <memory>
#include <vector>

#include "peers.hpp"

namespace posenc_bench {
namespace {

using torch::Tensor;
using torch::indexing::None;
using torch::indexing::Slice;

Tensor wrap(const void* data, at::IntArrayRef sizes, at::ScalarType type = torch::kFloat32) {
  return torch::from_blob(const_cast<void*>(data), sizes, type);
}

/// Keeps the result of the last call alive; there is one call at a time.
struct Held {
  Tensor first, second;
};

template <class F>
Run keep(const F& f) {
  const auto held = std::make_shared<Held>();
  return [held, f]() -> Result {
    const c10::InferenceMode inference;
    *held = f();
    return {held->first.data_ptr(), held->second.defined() ? held->second.data_ptr() : nullptr};
  };
}

at::ScalarType type_of(const RotationTask& task) {
  return task.scalar == Scalar::f32   ? torch::kFloat32
         : task.scalar == Scalar::f16 ? torch::kFloat16
                                      : torch::kBFloat16;
}

Tensor queries(const RotationTask& task) {
  return wrap(task.x, {task.batch, task.seq, task.heads, task.dim}, type_of(task));
}

Tensor inverse_frequencies(Count dim) {
  return 1.0 / torch::pow(10000.0, torch::arange(0, dim, 2, torch::kFloat32) / static_cast<double>(dim));
}

Tensor angles(const RotationTask& task) {
  const Tensor at = torch::arange(task.first, task.first + task.seq, torch::kFloat32);
  return torch::outer(at, inverse_frequencies(task.dim));
}

/// (seq, dim) -> (seq, 1, dim), each half a copy of the other.
Tensor doubled(const Tensor& half) { return torch::cat({half, half}, -1).unsqueeze(1); }

Tensor rotate_half(const Tensor& x, const Tensor& cos, const Tensor& sin) {
  const Count half = x.size(-1) / 2;
  const Tensor turned =
      torch::cat({-x.index({"...", Slice(half, None)}), x.index({"...", Slice(None, half)})}, -1);
  return x * cos + turned * sin;
}

/// 16-bit numbers go through float, as in the code of the models.
Tensor rotate_complex(const Tensor& x, const Tensor& turns) {
  const Tensor wide = x.to(torch::kFloat32).reshape({x.size(0), x.size(1), x.size(2), -1, 2});
  return torch::view_as_real(torch::view_as_complex(wide) * turns).flatten(3).to(x.scalar_type());
}

}  // namespace

void add_torch() {
  at::set_num_threads(1);
  add_peer("torch_rotate_half_table", 1e-6, Pairs::half,
           [](const RotationTask& task) -> Run {
             const Tensor x = queries(task);
             const Tensor cos = doubled(wrap(task.own_cos, {task.seq, task.dim / 2}, type_of(task)).clone()),
                          sin = doubled(wrap(task.own_sin, {task.seq, task.dim / 2}, type_of(task)).clone());
             return keep([=] { return Held{rotate_half(x, cos, sin), {}}; });
           },
           {Scalar::f32, Scalar::f16, Scalar::bf16});
  add_peer("torch_rotate_half", 2e-3, Pairs::half, [](const RotationTask& task) -> Run {
    const Tensor x = queries(task);
    return keep([=] {
      const Tensor at = doubled(angles(task));
      return Held{rotate_half(x, at.cos(), at.sin()), {}};
    });
  });
  add_peer("torch_complex_table", 1e-6, Pairs::adjacent,
           [](const RotationTask& task) -> Run {
             const Tensor x = queries(task);
             const Tensor turns = torch::complex(wrap(task.cos, {task.seq, task.dim / 2}),
                                                 wrap(task.sin, {task.seq, task.dim / 2}))
                                      .unsqueeze(1);
             return keep([=] { return Held{rotate_complex(x, turns), {}}; });
           },
           {Scalar::f32, Scalar::f16, Scalar::bf16});
  add_peer("torch_complex", 2e-3, Pairs::adjacent, [](const RotationTask& task) -> Run {
    const Tensor x = queries(task);
    return keep([=] {
      const Tensor at = angles(task);
      return Held{rotate_complex(x, torch::polar(torch::ones_like(at), at).unsqueeze(1)), {}};
    });
  });
  add_peer("torch", 1e-3, [](const TableTask& task) -> Run {
    return keep([=] {
      const Tensor at =
          torch::outer(torch::arange(0, task.rows, torch::kFloat32), inverse_frequencies(task.dim));
      return Held{at.cos(), at.sin()};
    });
  });
  add_peer("torch", 1e-5, [](const EmbeddingTask& task) -> Run {
    const Tensor table = wrap(task.table, {task.vocabulary, task.dim}),
                 positions = wrap(task.positions, {task.seq, task.dim}),
                 ids = wrap(task.long_ids, {task.batch, task.seq}, torch::kInt64);
    const float scale = task.scale;
    return keep([=] { return Held{torch::embedding(table, ids) * scale + positions, {}}; });
  });
  add_peer("torch", 1e-5, [](const SoftmaxTask& task) -> Run {
    const Tensor scores = wrap(task.scores, {task.heads, task.queries, task.keys}),
                 slopes = wrap(task.slopes, {task.heads, 1, 1}).clone();
    const Tensor keys = torch::arange(0, task.keys, torch::kFloat32).unsqueeze(0),
                 queries = torch::arange(0, task.queries, torch::kFloat32).unsqueeze(1);
    const Tensor distance = (keys - queries).unsqueeze(0);
    const Tensor bias = torch::where(distance > 0, torch::full({}, -INFINITY), slopes * distance);
    return keep([=] { return Held{torch::softmax(scores + bias, -1), {}}; });
  });
}

}  // namespace posenc_bench
