// The expressions that a user of Eigen's Tensor module writes.

#include <unsupported/Eigen/CXX11/Tensor>

#include <array>
#include <cmath>

#include "peers.hpp"

namespace posenc_bench {
namespace {

template <int Rank>
using Map = Eigen::TensorMap<Eigen::Tensor<float, Rank, Eigen::RowMajor>>;
template <int Rank>
using ConstMap = Eigen::TensorMap<const Eigen::Tensor<const float, Rank, Eigen::RowMajor>>;
template <std::size_t Rank>
using Sizes = std::array<Eigen::Index, Rank>;

Result rotate_half(const RotationTask& task) {
  const Eigen::Index pairs = task.dim / 2;
  const ConstMap<4> x(static_cast<const float*>(task.x), task.batch, task.seq, task.heads, task.dim);
  Map<4> out(static_cast<float*>(task.out), task.batch, task.seq, task.heads, task.dim);
  const ConstMap<4> cos(task.cos, 1, task.seq, 1, pairs), sin(task.sin, 1, task.seq, 1, pairs);
  const Sizes<4> size{task.batch, task.seq, task.heads, pairs}, first{0, 0, 0, 0}, second{0, 0, 0, pairs},
      times{task.batch, 1, task.heads, 1};
  out.slice(first, size) =
      x.slice(first, size) * cos.broadcast(times) - x.slice(second, size) * sin.broadcast(times);
  out.slice(second, size) =
      x.slice(second, size) * cos.broadcast(times) + x.slice(first, size) * sin.broadcast(times);
  return {task.out};
}

Result rotate_adjacent(const RotationTask& task) {
  const Eigen::Index pairs = task.dim / 2;
  const ConstMap<5> x(static_cast<const float*>(task.x), task.batch, task.seq, task.heads, pairs, 2);
  Map<5> out(static_cast<float*>(task.out), task.batch, task.seq, task.heads, pairs, 2);
  const ConstMap<4> cos(task.cos, 1, task.seq, 1, pairs), sin(task.sin, 1, task.seq, 1, pairs);
  const Sizes<4> times{task.batch, 1, task.heads, 1};
  out.chip(0, 4) = x.chip(0, 4) * cos.broadcast(times) - x.chip(1, 4) * sin.broadcast(times);
  out.chip(1, 4) = x.chip(1, 4) * cos.broadcast(times) + x.chip(0, 4) * sin.broadcast(times);
  return {task.out};
}

Result table(const TableTask& task) {
  const Eigen::Index pairs = task.dim / 2;
  Eigen::Tensor<float, 2, Eigen::RowMajor> positions(task.rows, 1), frequencies(1, pairs);
  for (Eigen::Index p = 0; p < task.rows; ++p) positions(p, 0) = static_cast<float>(p);
  for (Eigen::Index i = 0; i < pairs; ++i)
    frequencies(0, i) = std::pow(10000.0f, -2.0f * static_cast<float>(i) / static_cast<float>(task.dim));
  const auto angles = positions.broadcast(Sizes<2>{1, pairs}) * frequencies.broadcast(Sizes<2>{task.rows, 1});
  Map<2> cos(task.cos, task.rows, pairs), sin(task.sin, task.rows, pairs);
  cos = angles.unaryExpr([](float a) { return std::cos(a); });
  sin = angles.unaryExpr([](float a) { return std::sin(a); });
  return {task.cos, task.sin};
}

Result embed(const EmbeddingTask& task) {
  const ConstMap<2> rows(task.table, task.vocabulary, task.dim),
      positions(task.positions, task.seq, task.dim);
  Map<2> out(task.out, task.batch * task.seq, task.dim);
  for (Eigen::Index row = 0; row < task.batch * task.seq; ++row)
    out.chip(row, 0) = rows.chip(task.ids[row], 0) * task.scale + positions.chip(row % task.seq, 0);
  return {task.out};
}

/// The bias, with the causal mask in it, is a tensor that was made before.
Result softmax(const SoftmaxTask& task, const Eigen::Tensor<float, 3, Eigen::RowMajor>& bias) {
  const ConstMap<3> scores(task.scores, task.heads, task.queries, task.keys);
  Map<3> out(task.out, task.heads, task.queries, task.keys);
  const Sizes<3> column{task.heads, task.queries, 1}, along{1, 1, task.keys};
  const Sizes<1> keys{2};
  out = scores + bias;
  const Eigen::Tensor<float, 2, Eigen::RowMajor> peak = out.maximum(keys);
  out = (out - peak.reshape(column).broadcast(along)).exp();
  const Eigen::Tensor<float, 2, Eigen::RowMajor> sum = out.sum(keys);
  out = out / sum.reshape(column).broadcast(along);
  return {task.out};
}

}  // namespace

void add_eigen_tensor() {
  add_peer("eigen_tensor", 1e-6, Pairs::both, [](const RotationTask& task) -> Run {
    return [task] { return task.half ? rotate_half(task) : rotate_adjacent(task); };
  });
  add_peer("eigen_tensor", 1e-3, [](const TableTask& task) -> Run { return [task] { return table(task); }; });
  add_peer("eigen_tensor", 1e-5,
           [](const EmbeddingTask& task) -> Run { return [task] { return embed(task); }; });
  add_peer("eigen_tensor", 1e-5, [](const SoftmaxTask& task) -> Run {
    Eigen::Tensor<float, 3, Eigen::RowMajor> bias(task.heads, task.queries, task.keys);
    for (Eigen::Index h = 0; h < task.heads; ++h)
      for (Eigen::Index i = 0; i < task.queries; ++i)
        for (Eigen::Index j = 0; j < task.keys; ++j)
          bias(h, i, j) = j > i ? -INFINITY : task.slopes[h] * static_cast<float>(j - i);
    return [task, bias] { return softmax(task, bias); };
  });
}

}  // namespace posenc_bench
