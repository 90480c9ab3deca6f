// ggml, one thread: ggml_rope_ext on angles of its own, and ggml_soft_max_ext with ALiBi's slopes and a mask
// of distances. The graph is built once; a run is ggml_graph_compute on the caller's memory.

#include <ggml-cpu.h>
#include <ggml.h>

#include <cmath>
#include <memory>
#include <vector>

#include "peers.hpp"

namespace posenc_bench {
namespace {

struct Graph {
  Graph() : context(ggml_init({std::size_t{1} << 20, nullptr, true})), graph(ggml_new_graph(context)) {}
  ~Graph() { ggml_free(context); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  void finish(ggml_tensor* result) {
    ggml_build_forward_expand(graph, result);
    plan = ggml_graph_plan(graph, 1, nullptr);
    work.resize(plan.work_size);
    plan.work_data = work.data();
  }
  void compute() { ggml_graph_compute(graph, &plan); }

  ggml_context* context;
  ggml_cgraph* graph;
  ggml_cplan plan{};
  std::vector<std::uint8_t> work;
  std::vector<std::int32_t> positions;
  std::vector<float> mask;
};

Run rope(const RotationTask& task, bool in_place) {
  const auto g = std::make_shared<Graph>();
  const ggml_type type = task.scalar == Scalar::f16 ? GGML_TYPE_F16 : GGML_TYPE_F32;
  ggml_tensor* x = ggml_new_tensor_4d(g->context, type, task.dim, task.heads, task.seq, task.batch);
  ggml_tensor* at = ggml_new_tensor_1d(g->context, GGML_TYPE_I32, task.seq);
  for (Count s = 0; s < task.seq; ++s) g->positions.push_back(static_cast<std::int32_t>(task.first + s));
  x->data = task.x;
  at->data = g->positions.data();
  const int dim = static_cast<int>(task.dim), mode = task.half ? GGML_ROPE_TYPE_NEOX : 0;
  ggml_tensor* result =
      in_place
          ? ggml_rope_ext_inplace(g->context, x, at, nullptr, dim, mode, 0, 10000.0f, 1.0f, 0, 1.0f, 0, 0)
          : ggml_rope_ext(g->context, x, at, nullptr, dim, mode, 0, 10000.0f, 1.0f, 0, 1.0f, 0, 0);
  void* out = in_place ? task.x : task.out;
  result->data = out;
  g->finish(result);
  return [g, out]() -> Result {
    g->compute();
    return {out};
  };
}

Run softmax(const SoftmaxTask& task) {
  const auto g = std::make_shared<Graph>();
  ggml_tensor* scores = ggml_new_tensor_3d(g->context, GGML_TYPE_F32, task.keys, task.queries, task.heads);
  ggml_tensor* mask = ggml_new_tensor_2d(g->context, GGML_TYPE_F32, task.keys, task.queries);
  for (Count i = 0; i < task.queries; ++i)
    for (Count j = 0; j < task.keys; ++j) g->mask.push_back(j > i ? -INFINITY : static_cast<float>(j - i));
  scores->data = const_cast<float*>(task.scores);
  mask->data = g->mask.data();
  ggml_tensor* result = ggml_soft_max_ext(g->context, scores, mask, 1.0f, 8.0f);
  result->data = task.out;
  g->finish(result);
  return [g, out = task.out]() -> Result {
    g->compute();
    return {out};
  };
}

}  // namespace

void add_ggml() {
  ggml_cpu_init();
  add_peer("ggml_inplace", 1e-2, Pairs::both, [](const RotationTask& task) { return rope(task, true); },
           {Scalar::f32, Scalar::f16});
  add_peer("ggml", 1e-2, Pairs::both, [](const RotationTask& task) { return rope(task, false); },
           {Scalar::f32, Scalar::f16});
  add_peer("ggml", 1e-5, [](const SoftmaxTask& task) { return softmax(task); });
}

}  // namespace posenc_bench
