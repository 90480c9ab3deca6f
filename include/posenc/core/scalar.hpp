#pragma once
// The element types and the rule of their arithmetic: widen once, compute in float or wider, round once on
// store.

#include <Eigen/Core>

#include <concepts>
#include <cstdint>
#include <type_traits>

#include "posenc/core/language.hpp"

#if !EIGEN_VERSION_AT_LEAST(3, 4, 0)
#error "posenc needs Eigen 3.4 or newer"
#include "posenc/needs_eigen_3_4"  // there is no such file: see language.hpp
#endif

namespace posenc {
inline namespace v0 {

/// Sizes and indices, as Eigen counts them.
using Index = Eigen::Index;

/// float, double, Eigen::half or Eigen::bfloat16.
template <class T>
concept scalar_type = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, Eigen::half> ||
                      std::same_as<T, Eigen::bfloat16>;

/// The type the arithmetic on T is done in: double for double, float for the other three.
template <class T>
using compute_t = std::conditional_t<std::same_as<std::remove_cv_t<T>, double>, double, float>;

namespace detail {

template <scalar_type S>
compute_t<S> widen(S value) {
  return static_cast<compute_t<S>>(value);
}

/// The only rounding to S: to nearest, ties to even.
template <scalar_type S>
S narrow(compute_t<S> value) {
  return static_cast<S>(value);
}

/// A double constant (a scale, a slope) as the type of the arithmetic.
template <scalar_type S>
compute_t<S> constant(double value) {
  return static_cast<compute_t<S>>(value);
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
