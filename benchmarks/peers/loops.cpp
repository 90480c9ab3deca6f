// What a C++ programmer writes without a library.

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "peers.hpp"

namespace posenc_bench {
namespace {

float frequency(Count pair, Count dim) {
  return std::pow(10000.0f, -2.0f * static_cast<float>(pair) / static_cast<float>(dim));
}

/// One head, with its cosines and sines.
void turn(float* __restrict out, const float* __restrict x, const float* __restrict cos,
          const float* __restrict sin, Count pairs, bool half) {
  if (half)
    for (Count i = 0; i < pairs; ++i) {
      out[i] = x[i] * cos[i] - x[i + pairs] * sin[i];
      out[i + pairs] = x[i + pairs] * cos[i] + x[i] * sin[i];
    }
  else
    for (Count i = 0; i < pairs; ++i) {
      out[2 * i] = x[2 * i] * cos[i] - x[2 * i + 1] * sin[i];
      out[2 * i + 1] = x[2 * i + 1] * cos[i] + x[2 * i] * sin[i];
    }
}

void turn_in_place(float* x, const float* cos, const float* sin, Count pairs, bool half) {
  const Count step = half ? 1 : 2, second = half ? pairs : 1;
  for (Count i = 0; i < pairs; ++i) {
    const float a = x[i * step], b = x[i * step + second];
    x[i * step] = a * cos[i] - b * sin[i];
    x[i * step + second] = b * cos[i] + a * sin[i];
  }
}

Result rotate_table(const RotationTask& task, bool in_place) {
  const Count pairs = task.dim / 2;
  float *x = static_cast<float*>(task.x), *out = static_cast<float*>(task.out);
  for (Count row = 0; row < task.batch * task.seq; ++row)
    for (Count h = 0; h < task.heads; ++h) {
      const Count at = (row * task.heads + h) * task.dim;
      const float *cos = task.cos + row % task.seq * pairs, *sin = task.sin + row % task.seq * pairs;
      if (in_place)
        turn_in_place(x + at, cos, sin, pairs, task.half);
      else
        turn(out + at, x + at, cos, sin, pairs, task.half);
    }
  return {in_place ? task.x : task.out};
}

float widen(std::uint16_t bits) { return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16); }

std::uint16_t narrow(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return static_cast<std::uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

/// bfloat16 by its bits, for finite numbers.
Result rotate_bf16(const RotationTask& task) {
  const Count pairs = task.dim / 2, step = task.half ? 1 : 2, second = task.half ? pairs : 1;
  auto* x = static_cast<std::uint16_t*>(task.x);
  for (Count row = 0; row < task.batch * task.seq; ++row)
    for (Count h = 0; h < task.heads; ++h, x += task.dim) {
      const float *cos = task.cos + row % task.seq * pairs, *sin = task.sin + row % task.seq * pairs;
      for (Count i = 0; i < pairs; ++i) {
        const float a = widen(x[i * step]), b = widen(x[i * step + second]);
        x[i * step] = narrow(a * cos[i] - b * sin[i]);
        x[i * step + second] = narrow(b * cos[i] + a * sin[i]);
      }
    }
  return {task.x};
}

/// Angles in float, once per position.
Result rotate_libm(const RotationTask& task, const std::vector<float>& frequencies, std::vector<float>& cos,
                   std::vector<float>& sin) {
  const Count pairs = task.dim / 2;
  for (Count row = 0; row < task.batch * task.seq; ++row) {
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      const float angle = static_cast<float>(task.first + row % task.seq) * frequencies[i];
      cos[i] = std::cos(angle), sin[i] = std::sin(angle);
    }
    for (Count h = 0; h < task.heads; ++h) {
      const Count at = (row * task.heads + h) * task.dim;
      turn(static_cast<float*>(task.out) + at, static_cast<const float*>(task.x) + at, cos.data(), sin.data(),
           pairs, task.half);
    }
  }
  return {task.out};
}

Result table_libm(const TableTask& task) {
  const Count pairs = task.dim / 2;
  for (Count p = 0; p < task.rows; ++p)
    for (Count i = 0; i < pairs; ++i) {
      const float angle = static_cast<float>(p) * frequency(i, task.dim);
      task.cos[p * pairs + i] = std::cos(angle);
      task.sin[p * pairs + i] = std::sin(angle);
    }
  return {task.cos, task.sin};
}

Result table_libm_double(const TableTask& task, const std::vector<double>& frequencies) {
  const Count pairs = task.dim / 2;
  for (Count p = 0; p < task.rows; ++p)
    for (Count i = 0; i < pairs; ++i) {
      const double angle = static_cast<double>(p) * frequencies[static_cast<std::size_t>(i)];
      task.cos[p * pairs + i] = static_cast<float>(std::cos(angle));
      task.sin[p * pairs + i] = static_cast<float>(std::sin(angle));
    }
  return {task.cos, task.sin};
}

Result embed(const EmbeddingTask& task) {
  for (Count row = 0; row < task.batch * task.seq; ++row) {
    const float* __restrict from = task.table + static_cast<Count>(task.ids[row]) * task.dim;
    const float* __restrict position = task.positions + row % task.seq * task.dim;
    float* __restrict out = task.out + row * task.dim;
    for (Count c = 0; c < task.dim; ++c) out[c] = from[c] * task.scale + position[c];
  }
  return {task.out};
}

Result softmax(const SoftmaxTask& task) {
  for (Count row = 0; row < task.heads * task.queries; ++row) {
    const Count i = row % task.queries;
    const float slope = task.slopes[row / task.queries];
    const float* scores = task.scores + row * task.keys;
    float* out = task.out + row * task.keys;
    float peak = -INFINITY, sum = 0;
    for (Count j = 0; j <= i; ++j) {
      out[j] = scores[j] + slope * static_cast<float>(j - i);
      peak = out[j] > peak ? out[j] : peak;
    }
    for (Count j = 0; j <= i; ++j) sum += out[j] = std::exp(out[j] - peak);
    const float by = 1 / sum;
    for (Count j = 0; j <= i; ++j) out[j] *= by;
    for (Count j = i + 1; j < task.keys; ++j) out[j] = 0;
  }
  return {task.out};
}

}  // namespace

void add_loops() {
  add_peer("loop_table_inplace", 1e-6, Pairs::both,
           [](const RotationTask& task) -> Run { return [task] { return rotate_table(task, true); }; });
  add_peer("loop_table", 1e-6, Pairs::both,
           [](const RotationTask& task) -> Run { return [task] { return rotate_table(task, false); }; });
  add_peer("loop_table_inplace", 1e-6, Pairs::both,
           [](const RotationTask& task) -> Run { return [task] { return rotate_bf16(task); }; },
           {Scalar::bf16});
  add_peer("loop_libm", 2e-3, Pairs::both, [](const RotationTask& task) -> Run {
    std::vector<float> frequencies;
    for (Count i = 0; i < task.dim / 2; ++i) frequencies.push_back(frequency(i, task.dim));
    return [task, frequencies, cos = std::make_shared<std::vector<float>>(frequencies),
            sin = std::make_shared<std::vector<float>>(frequencies)] {
      return rotate_libm(task, frequencies, *cos, *sin);
    };
  });
  add_peer("loop_libm_float", 1e-3,
           [](const TableTask& task) -> Run { return [task] { return table_libm(task); }; });
  add_peer("loop_libm_double", 1e-7, [](const TableTask& task) -> Run {
    std::vector<double> frequencies;
    for (Count i = 0; i < task.dim / 2; ++i)
      frequencies.push_back(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(task.dim)));
    return [task, frequencies] { return table_libm_double(task, frequencies); };
  });
  add_peer("loop", 1e-5, [](const EmbeddingTask& task) -> Run { return [task] { return embed(task); }; });
  add_peer("loop", 1e-5, [](const SoftmaxTask& task) -> Run { return [task] { return softmax(task); }; });
}

}  // namespace posenc_bench
