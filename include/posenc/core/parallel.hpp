#pragma once
// The one place where work is split. The pool is the caller's: a verb takes an Eigen::ThreadPoolDevice, or
// anything with the same parallelFor, as an optional first argument. posenc never defines EIGEN_USE_THREADS.

#include <unsupported/Eigen/CXX11/Tensor>

#include <concepts>
#include <type_traits>

#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {

/// Something that runs f(first, last) over blocks of [0, n), from several threads if it likes:
/// Eigen::ThreadPoolDevice, Eigen::DefaultDevice (serial), or a type with the same parallelFor(n, cost, f).
template <class D>
concept device = std::same_as<std::remove_cvref_t<D>, Eigen::DefaultDevice> ||
                 requires(const D& d, Index n, const Eigen::TensorOpCost& cost, void (*f)(Index, Index)) {
                   d.parallelFor(n, cost, f);
                 };

namespace detail {

/// What one unit of work costs: bytes read and written, and cycles besides.
struct Cost {
  double bytes_read, bytes_written, cycles;
};

/// Calls f(first, last) for blocks that cover [0, n). f must not throw: all checks come before.
template <device D, class F>
void parallel_for(const D& device, Index n, const Cost& cost, const F& f) {
  if (n <= 0) return;
  if constexpr (requires { device.parallelFor(n, Eigen::TensorOpCost(), f); })
    device.parallelFor(n, Eigen::TensorOpCost(cost.bytes_read, cost.bytes_written, cost.cycles), f);
  else
    f(Index{0}, n);
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
