// Rotary and the table of its cosines and sines, and the rotation that a user of Eigen writes for 16-bit
// heads.

#include <array>
#include <string>

#include "rotate_bench.hpp"

namespace posenc_bench {
namespace {

template <class S>
void add_cos_sin(Index rows, Index dim) {
  add_threaded(std::string("cos_sin_rows/") + scalar_name<S>() + "/" + by({rows, dim}),
               [=](benchmark::State& state, const auto& device) {
                 const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = dim}), Pairing::half);
                 const posenc::Positions at = posenc::consecutive(0, rows);
                 const std::array<Index, 2> extents{rows, dim / 2};
                 const auto cos = posenc::view(memory<S>(Place::first, rows * dim / 2), extents);
                 const auto sin = posenc::view(memory<S>(Place::second, rows * dim / 2), extents);
                 for (auto _ : state) {
                   rope.cos_sin(device, cos, sin, at);
                   benchmark::ClobberMemory();
                 }
                 per_element(state, rows * dim);
               });
}

/// With cos and sin read from tables of the same type, computed before.
template <class S>
void add_eigen_rotate(const Shape& shape, Pairing pairing) {
  add("eigen_rotate/" + rotate_name(scalar_name<S>(), pairing, Axes::bshd, shape) + "/inplace",
      [=](benchmark::State& state, const auto&) {
        using Row = Eigen::Array<S, 1, Eigen::Dynamic>;
        const Index pairs = shape.dim / 2;
        Eigen::Tensor<S, 2, Eigen::RowMajor> cos(shape.seq, pairs), sin(shape.seq, pairs);
        posenc::Rotary(posenc::rotary_frequencies({.head_dim = shape.dim}), pairing)
            .cos_sin(cos, sin, posenc::consecutive(1000, shape.seq));
        S* x = memory<S>(Place::first, shape.size());
        Row a(pairs), b(pairs);
        using Strided = Eigen::Map<Row, 0, Eigen::InnerStride<>>;
        const bool half = pairing == Pairing::half;
        for (auto _ : state) {
          for (Index row = 0; row < shape.batch * shape.seq; ++row) {
            const Eigen::Map<const Row> c(cos.data() + row % shape.seq * pairs, pairs);
            const Eigen::Map<const Row> s(sin.data() + row % shape.seq * pairs, pairs);
            for (Index head = 0; head < shape.heads; ++head) {
              S* at = x + (row * shape.heads + head) * shape.dim;
              if (half) {
                Eigen::Map<Row> first(at, pairs), second(at + pairs, pairs);
                a = first * c - second * s;
                b = second * c + first * s;
                first = a, second = b;
              } else {
                Strided first(at, pairs, Eigen::InnerStride<>(2)),
                    second(at + 1, pairs, Eigen::InnerStride<>(2));
                a = first * c - second * s;
                b = second * c + first * s;
                first = a, second = b;
              }
            }
          }
          benchmark::ClobberMemory();
        }
        per_element(state, shape.size());
      });
}

}  // namespace

void add_rotary() {
  const Shape decode{1, 1, 32, 128}, small{1, 32, 32, 128}, prefill{1, 512, 32, 128}, batch{8, 128, 12, 64},
      large{1, 4096, 32, 128};
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent})
    for (const Axes axes : {Axes::bshd, Axes::bhsd}) {
      for (const Shape& shape : {decode, small, prefill, batch, large}) {
        add_rotate<float, 2>(shape, pairing, axes, true);
        add_rotate<Eigen::half, 2>(shape, pairing, axes, true);
        add_rotate<Eigen::bfloat16, 2>(shape, pairing, axes, true);
      }
      for (const Shape& shape : {decode, small, prefill, batch}) {
        add_rotate<double, 2>(shape, pairing, axes, true);
        add_rotate<float>(shape, pairing, axes, false);
      }
      add_rotate<Eigen::half>(prefill, pairing, axes, false);
      add_rotate<Eigen::bfloat16>(prefill, pairing, axes, false);
    }
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent})
    for (const Shape& shape : {decode, prefill}) {
      add_eigen_rotate<Eigen::half>(shape, pairing);
      add_eigen_rotate<Eigen::bfloat16>(shape, pairing);
    }
  // Growth: one head, so that nothing hides the angles.
  for (const Index positions : {Index{1} << 14, Index{1} << 20})
    add_rotate<float>({1, positions, 1, 64}, Pairing::half, Axes::bshd, true, 0);

  add_cos_sin<float>(4096, 512);
  add_cos_sin<float>(131072, 128);
  add_cos_sin<double>(4096, 512);
}

}  // namespace posenc_bench
