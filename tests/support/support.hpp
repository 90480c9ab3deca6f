#pragma once
// What every test uses: random tensors, the same values in every storage, devices, and comparisons.

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "posenc/core/finite.hpp"
#include "posenc/core/tensor.hpp"
#include "support/catch.hpp"

namespace posenc_test {

using posenc::Index;

/// Distance from 1 to the next number, written down because Eigen 3.4's numeric_limits<half> is wrong by a
/// factor of 8.
template <class S>
constexpr double epsilon = 0;
template <>
inline constexpr double epsilon<double> = 0x1p-52;
template <>
inline constexpr double epsilon<float> = 0x1p-23;
template <>
inline constexpr double epsilon<Eigen::half> = 0x1p-10;
template <>
inline constexpr double epsilon<Eigen::bfloat16> = 0x1p-7;

template <class S>
double to_double(S value) {
  return static_cast<double>(static_cast<posenc::compute_t<S>>(value));
}

/// As values that a compiler does not know, so that tests mean the same under -ffast-math.
inline const double infinity =
    std::bit_cast<double>(posenc::detail::opaque(posenc::detail::infinity_bits<double>));
inline const double quiet_nan =
    std::bit_cast<double>(posenc::detail::opaque(posenc::detail::infinity_bits<double> + 1 + (1ull << 51)));
template <class S>
bool is_nan(const S& value) {
  return posenc::detail::is_nan(static_cast<const posenc::compute_t<S>&>(value));
}
template <class S>
bool is_infinite(const S& value) {
  return posenc::detail::is_infinite(static_cast<const posenc::compute_t<S>&>(value));
}
template <class S>
bool is_finite(const S& value) {
  return !is_nan(value) && !is_infinite(value);
}

/// cos and sin of p f to 3e-16, for p of at most 53 bits: p f is the exact sum of two doubles, on every
/// platform (a long double need not be longer than a double).
struct CosSinOfProduct {
  CosSinOfProduct(std::int64_t p, double f) {
    // Dekker's product, in an order that -ffast-math keeps; it may take std::fma apart.
    const auto o = [](double x) { return posenc::detail::opaque(x); };
    const auto upper = [](double x) {
      return std::bit_cast<double>(std::bit_cast<std::uint64_t>(x) & ~std::uint64_t{0x7ffffff});
    };
    const double n = static_cast<double>(p), a = o(n * f);
    const double n1 = upper(n), n0 = o(n - n1), f1 = upper(f), f0 = o(f - f1);
    const double rest = o(o(o(o(n1 * f1) - a) + o(n1 * f0)) + o(n0 * f1)) + o(n0 * f0);
    cos = std::cos(a) * std::cos(rest) - std::sin(a) * std::sin(rest);
    sin = std::sin(a) * std::cos(rest) + std::cos(a) * std::sin(rest);
  }
  double cos, sin;
};

/// Memory of some values, seen in logical coordinates; the ground that tensors are filled from and compared
/// with. values[n] is element n in row-major order.
template <class S, std::size_t Rank>
struct Values {
  std::array<Index, Rank> extents;
  std::vector<S> values;

  posenc::View<S, Rank> view() { return {values.data(), extents}; }
  posenc::View<const S, Rank> view() const { return {values.data(), extents}; }
  Index size() const { return static_cast<Index>(values.size()); }
};

template <std::size_t Rank>
Index product(const std::array<Index, Rank>& extents) {
  Index n = 1;
  for (const Index extent : extents) n *= extent;
  return n;
}

/// Normal values, reproducible.
template <class S, std::size_t Rank>
Values<S, Rank> random_values(const std::array<Index, Rank>& extents, unsigned seed = 1) {
  std::mt19937 generator(seed);
  std::normal_distribution<float> normal;
  Values<S, Rank> x{extents, std::vector<S>(static_cast<std::size_t>(product(extents)))};
  for (S& value : x.values) value = static_cast<S>(normal(generator));
  return x;
}

/// Calls f(coordinates, n) for each element in row-major order.
template <std::size_t Rank, class F>
void for_each_coordinate(const std::array<Index, Rank>& extents, const F& f) {
  std::array<Index, Rank> at{};
  for (Index n = 0; n < product(extents); ++n) {
    Index rest = n;
    for (std::size_t axis = Rank; axis-- > 0;) at[axis] = rest % extents[axis], rest /= extents[axis];
    f(at, n);
  }
}

template <class T, std::size_t Rank>
T& element(const posenc::View<T, Rank>& v, const std::array<Index, Rank>& at) {
  Index offset = 0;
  for (std::size_t axis = 0; axis < Rank; ++axis) offset += at[axis] * v.stride(axis);
  return v.data()[offset];
}

/// target = values, whatever the storage of target (a tensor, map, matrix or View of the same shape).
template <class T, class S, std::size_t Rank>
void fill(T&& target, const Values<S, Rank>& values) {
  const auto v = posenc::view(target);
  for_each_coordinate(values.extents, [&](const auto& at, Index n) {
    element(v, at) = values.values[static_cast<std::size_t>(n)];
  });
}

/// The values of any storage, in row-major order.
template <class T>
auto values_of(const T& t) {
  const auto v = posenc::view(t);
  using S = posenc::scalar_of<T>;
  Values<S, posenc::rank_of<T>> x{v.extents(), {}};
  for_each_coordinate(x.extents, [&](const auto& at, Index) { x.values.push_back(element(v, at)); });
  return x;
}

/// Whether two lists of values are the same, bit for bit.
template <class S>
bool same_bits(const std::vector<S>& a, const std::vector<S>& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(S)) == 0);
}
template <class S, std::size_t Rank>
bool same_bits(const Values<S, Rank>& a, const Values<S, Rank>& b) {
  return a.extents == b.extents && same_bits(a.values, b.values);
}

/// The largest |a - b|.
template <class A, class B>
double max_difference(const std::vector<A>& a, const std::vector<B>& b) {
  if (a.size() != b.size()) return infinity;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::abs(to_double(a[i]) - to_double(b[i]));
    if (is_nan(difference) || difference > most) most = difference;
    if (is_nan(most)) return most;
  }
  return most;
}

template <class A, class B>
double dot(const std::vector<A>& a, const std::vector<B>& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += to_double(a[i]) * to_double(b[i]);
  return sum;
}

template <class A>
double norm(const std::vector<A>& a) {
  return std::sqrt(dot(a, a));
}

/// Runs f(storage) for a tensor of each kind that holds `values`: owners and maps of both layouts and index
/// types, foreign memory at an odd address, and a strided view with gaps. f may change it; what it then holds
/// is passed to check(name, Values). f is instantiated for every kind.
template <class S, std::size_t Rank, class F, class Check>
void in_every_storage(const Values<S, Rank>& values, const F& f, const Check& check) {
  const auto with = [&](const char* name, auto& storage) {
    fill(storage, values);
    f(storage);
    check(name, values_of(storage));
  };
  Eigen::array<Index, Rank> dims;
  for (std::size_t axis = 0; axis < Rank; ++axis) dims[axis] = values.extents[axis];
  Eigen::Tensor<S, int(Rank), Eigen::RowMajor> row_major(dims);
  with("row-major tensor", row_major);
  Eigen::Tensor<S, int(Rank), Eigen::ColMajor> column_major(dims);
  with("column-major tensor", column_major);
  Eigen::array<int, Rank> int_dims;
  for (std::size_t axis = 0; axis < Rank; ++axis) int_dims[axis] = static_cast<int>(dims[axis]);
  Eigen::Tensor<S, int(Rank), Eigen::RowMajor, int> int_index(int_dims);
  with("row-major tensor with int index", int_index);
  std::vector<S> memory(static_cast<std::size_t>(values.size()) + 1);
  Eigen::TensorMap<Eigen::Tensor<S, int(Rank), Eigen::RowMajor>> map(memory.data() + 1, dims);
  with("map of unaligned memory", map);
  Eigen::TensorMap<Eigen::Tensor<S, int(Rank), Eigen::ColMajor>> column_map(memory.data(), dims);
  with("column-major map", column_map);
  // A view with gaps behind every row, and one of every other element.
  std::array<Index, Rank> strides{};
  Index step = 1;
  for (std::size_t axis = Rank; axis-- > 0;) strides[axis] = step, step *= values.extents[axis] + 3;
  std::vector<S> wide(static_cast<std::size_t>(step) + 1);
  posenc::View<S, Rank> strided(wide.data() + 1, values.extents, strides);
  with("strided view with gaps", strided);
  for (std::size_t axis = 0; axis < Rank; ++axis) strides[axis] *= 2;
  std::vector<S> wider(2 * static_cast<std::size_t>(step) + 2);
  posenc::View<S, Rank> every_other(wider.data(), values.extents, strides);
  with("view of every other element", every_other);
}

/// A device without a pool of Eigen: parallelFor on `threads` std::threads, in blocks that don't divide
/// evenly.
struct ThreadsDevice {
  int threads;

  template <class F>
  void parallelFor(Index n, const Eigen::TensorOpCost&, F f) const {
    std::vector<std::thread> running;
    for (int t = 0; t < threads; ++t) {
      const Index first = n * t / threads, last = n * (t + 1) / threads;
      if (first < last) running.emplace_back([=] { f(first, last); });
    }
    for (std::thread& thread : running) thread.join();
  }
};

/// Checks that `call` throws Exception with every one of `parts` in its message.
template <class Exception, class Call>
void check_throws(const Call& call, std::initializer_list<const char*> parts) {
  try {
    call();
    FAIL_CHECK("expected an exception");
  } catch (const Exception& error) {
    for (const char* part : parts) {
      INFO("message: " << error.what() << "\nexpected in it: " << part);
      CHECK(std::strstr(error.what(), part) != nullptr);
    }
  }
}

}  // namespace posenc_test
