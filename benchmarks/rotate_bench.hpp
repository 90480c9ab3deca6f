#pragma once
// The rotation of queries and keys, timed.

#include <array>
#include <string>

#include "posenc/rotary/rotary.hpp"
#include "support.hpp"

namespace posenc_bench {

using posenc::Axes;
using posenc::Pairing;

inline std::string rotate_name(const char* scalar, Pairing pairing, Axes axes, const Shape& shape) {
  return std::string(scalar) + (pairing == Pairing::half ? "/half" : "/adjacent") +
         (axes == Axes::bshd ? "/bshd/" : "/bhsd/") + shape.name();
}

/// Threads: 2 for both.
template <class S, int Threads = 1>
void add_rotate(const Shape& shape, Pairing pairing, Axes axes, bool in_place,
                posenc::Position first = 1000) {
  const std::string name = "rotate/" + rotate_name(scalar_name<S>(), pairing, axes, shape);
  const auto run = [=](benchmark::State& state, const auto& device) {
    const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = shape.dim}), pairing);
    const posenc::Positions at = posenc::consecutive(first, shape.seq);
    const bool bshd = axes == Axes::bshd;
    const std::array<Index, 4> extents{shape.batch, bshd ? shape.seq : shape.heads,
                                       bshd ? shape.heads : shape.seq, shape.dim};
    const auto x = posenc::view(memory<S>(Place::first, shape.size()), extents);
    const auto out = in_place ? x : posenc::view(memory<S>(Place::second, shape.size()), extents);
    for (auto _ : state) {
      if (in_place)
        rope.rotate(device, x, at, axes);
      else
        rope.rotate(device, out, x, at, axes);
      benchmark::ClobberMemory();
    }
    per_element(state, shape.size());
  };
  if constexpr (Threads == 2)
    add_threaded(name + (in_place ? "/inplace" : "/out"), run);
  else
    add(name + (in_place ? "/inplace" : "/out"), run);
}

}  // namespace posenc_bench
