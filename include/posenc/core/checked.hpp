#pragma once
// Sizes and positions that a caller's numbers make: products and sums that are never wrong. A product or sum
// that does not fit 64 bits is refused by the function that would have used it.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

#include "posenc/core/error.hpp"
#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// The most bytes that a view may span: half of what a pointer difference can say, so that the distance of
/// any two elements of two views that meet is a number as well.
inline constexpr Index largest_span = (std::numeric_limits<Index>::max)() / 2;

/// The most numbers that a call allocates (8 TiB of positions) and the widest head or row. Far beyond any
/// model, and a size that is wrong is refused instead of asked from the system.
inline constexpr std::int64_t largest_allocation =
    (std::min)(std::int64_t{1} << 40, std::int64_t{largest_span});
inline constexpr Index largest_width = Index{1} << 24;

/// product = a b. False, and no product, where that does not fit.
constexpr bool multiply_fits(std::int64_t a, std::int64_t b, std::int64_t& product) {
  return !__builtin_mul_overflow(a, b, &product);
}

/// sum = a + b. False, and no sum, where that does not fit.
constexpr bool add_fits(std::int64_t a, std::int64_t b, std::int64_t& sum) {
  return !__builtin_add_overflow(a, b, &sum);
}

/// a + b, of positions. Throws std::out_of_range, naming `what`, where that does not fit.
inline std::int64_t checked_sum(const char* what, std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  if (!add_fits(a, b, sum)) out_of_range(what, ": expected a sum of 64 bits, got ", a, " + ", b);
  return sum;
}

/// The product of sizes of at least 0 that are to be allocated. Throws std::out_of_range, naming `what`,
/// beyond largest_allocation.
template <class... Sizes>
Index checked_count(const char* what, Sizes... sizes) {
  std::int64_t product = 1;
  bool fits = true, none = false;
  ((none = none || sizes == 0), ...);
  if (none) return 0;
  ((fits = fits && multiply_fits(product, sizes, product)), ...);
  if (!fits || product > largest_allocation) {
    std::string factors;
    ((factors += (factors.empty() ? "" : " * ") + text(sizes)), ...);
    out_of_range(what, ": expected at most ", largest_allocation, " numbers, got ", factors);
  }
  return static_cast<Index>(product);
}

/// Throws std::invalid_argument unless a head or a row has at most largest_width numbers.
inline void require_width(const char* what, Index width) {
  if (width > largest_width) invalid(what, ": expected at most 2^24, got ", width);
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
