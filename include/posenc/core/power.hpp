#pragma once
// Powers, exponentials and logarithms with the same bits on every platform and under every flag, -ffast-math
// included: integers of 32 bits in arrays, no libm, no long double. Rounded once, to the nearest double: the
// error before that is below 2^-140 of the value, so a double is the wrong one of two neighbours only where
// the value lies that near to the middle between them.
//
// For what is computed once per model. A kernel has its own means.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "posenc/core/finite.hpp"
#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// A number in [0, 2^32) to 2^-160: word k counts 2^(32 (k - 5)).
struct Fixed {
  std::array<std::uint32_t, 6> words{};

  std::uint32_t whole() const { return words[5]; }
  /// The first 32 bits behind the point, and all before it.
  std::uint64_t leading() const { return std::uint64_t{words[5]} << 32 | words[4]; }
  bool is_zero() const { return words == Fixed{}.words; }

  static Fixed of(std::uint32_t whole) {
    Fixed x;
    x.words[5] = whole;
    return x;
  }
  /// a / b, for b below 2^63 and a / b below 2^32.
  static Fixed ratio(std::uint64_t a, std::uint64_t b) {
    Fixed x = of(static_cast<std::uint32_t>(a / b));
    std::uint64_t rest = a % b;
    for (std::size_t k = 5; k-- > 0;)
      for (int place = 0; place < 32; ++place) {
        rest *= 2;
        x.words[k] = x.words[k] << 1 | (rest >= b ? 1u : 0u);
        if (rest >= b) rest -= b;
      }
    return x;
  }

  friend bool operator<(const Fixed& a, const Fixed& b) {
    for (std::size_t k = 6; k-- > 0;)
      if (a.words[k] != b.words[k]) return a.words[k] < b.words[k];
    return false;
  }
  friend Fixed operator+(const Fixed& a, const Fixed& b) {
    Fixed sum;
    std::uint64_t carry = 0;
    for (std::size_t k = 0; k < 6; ++k) {
      carry += std::uint64_t{a.words[k]} + b.words[k];
      sum.words[k] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    return sum;
  }
  /// a - b for b <= a.
  friend Fixed operator-(const Fixed& a, const Fixed& b) {
    Fixed difference;
    std::uint64_t borrow = 0;
    for (std::size_t k = 0; k < 6; ++k) {
      const std::uint64_t from = std::uint64_t{a.words[k]} - b.words[k] - borrow;
      difference.words[k] = static_cast<std::uint32_t>(from);
      borrow = from >> 63;
    }
    return difference;
  }
  friend Fixed operator*(const Fixed& a, const Fixed& b) {
    std::array<std::uint32_t, 12> product{};
    for (std::size_t i = 0; i < 6; ++i) {
      std::uint64_t carry = 0;
      for (std::size_t k = 0; k < 6; ++k) {
        carry += std::uint64_t{a.words[i]} * b.words[k] + product[i + k];
        product[i + k] = static_cast<std::uint32_t>(carry);
        carry >>= 32;
      }
      product[i + 6] = static_cast<std::uint32_t>(carry);
    }
    Fixed x;
    for (std::size_t k = 0; k < 6; ++k) x.words[k] = product[k + 5];
    return x;
  }
  friend Fixed operator*(const Fixed& a, std::uint32_t n) { return a * of(n); }
  friend Fixed operator/(const Fixed& a, std::uint32_t n) {
    Fixed x;
    std::uint64_t rest = 0;
    for (std::size_t k = 6; k-- > 0;) {
      rest = rest << 32 | a.words[k];
      x.words[k] = static_cast<std::uint32_t>(rest / n);
      rest %= n;
    }
    return x;
  }
  Fixed half() const {
    Fixed x;
    for (std::size_t k = 0; k < 6; ++k) x.words[k] = words[k] >> 1 | (k < 5 ? words[k + 1] << 31 : 0u);
    return x;
  }
};

inline constexpr Fixed ln_2{{0x40f34326u, 0x03f2f6afu, 0xc9e3b398u, 0xd1cf79abu, 0xb17217f7u, 0}};
inline constexpr Fixed one_over_ln_2{{0xd6aef551u, 0xd23a7d11u, 0x7d0ffda0u, 0xb82fe177u, 0x71547652u, 1}};

/// A number of either sign.
struct SignedFixed {
  bool negative = false;
  Fixed magnitude;
};

/// A positive number: mantissa 2^exponent with the mantissa in [1, 2).
struct Floating {
  Fixed mantissa = Fixed::of(1);
  std::int64_t exponent = 0;

  friend Floating operator*(const Floating& a, const Floating& b) {
    Floating x{a.mantissa * b.mantissa, a.exponent + b.exponent};
    if (x.mantissa.whole() >= 2) x.mantissa = x.mantissa.half(), ++x.exponent;
    return x;
  }
};

/// The nearest double to x; 0 or infinity where it is beyond them all.
inline double rounded(const Floating& x) {
  constexpr std::int64_t least = -1022;
  if (x.exponent < least - 54) return 0.0;
  const auto& words = x.mantissa.words;
  // 1 + 63 bits, and whether there is more.
  const std::uint64_t leading = std::uint64_t{1} << 63 | (std::uint64_t{words[4]} << 31) | (words[3] >> 1);
  const bool more = ((words[3] & 1u) | words[2] | words[1] | words[0]) != 0;
  const int cut = 11 + (x.exponent < least ? static_cast<int>(least - x.exponent) : 0);
  std::uint64_t bits = cut > 63 ? 0 : leading >> cut;
  const std::uint64_t middle = cut > 64 ? 0 : std::uint64_t{1} << (cut - 1);
  const std::uint64_t rest = cut > 63 ? leading : leading & ((std::uint64_t{1} << cut) - 1);
  if (middle != 0 && (rest > middle || (rest == middle && (more || bits % 2 == 1)))) ++bits;
  // The leading one of a normal number adds one to the exponent's field.
  if (x.exponent >= least)
    bits += static_cast<std::uint64_t>((std::min)(x.exponent, std::int64_t{1024}) - least) << 52;
  return std::bit_cast<double>((std::min)(bits, std::uint64_t{infinity_bits<double>}));
}

/// The nearest double to x.
inline double rounded(const SignedFixed& x) {
  if (x.magnitude.is_zero()) return 0.0;
  Floating y{x.magnitude, 0};
  for (; y.mantissa.whole() >= 2; ++y.exponent) y.mantissa = y.mantissa.half();
  for (; y.mantissa.whole() == 0; --y.exponent) y.mantissa = y.mantissa + y.mantissa;
  return x.negative ? -rounded(y) : rounded(y);
}

/// x, exact but for what is below 2^-160; finite and below 2^32 in magnitude.
inline SignedFixed fixed(const double& x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x), field = (bits >> 52) & 0x7ffu;
  const std::uint64_t mantissa = (bits & 0xfffffffffffffu) | (field != 0 ? std::uint64_t{1} << 52 : 0u);
  // Bit k of the mantissa counts 2^(k + place - 160).
  const std::int64_t place = static_cast<std::int64_t>(field != 0 ? field : 1) - 1075 + 160;
  SignedFixed y{bits >> 63 != 0, {}};
  for (std::int64_t k = 0; k < 53; ++k)
    if ((mantissa >> k & 1u) != 0 && k + place >= 0 && k + place < 192)
      y.magnitude.words[static_cast<std::size_t>((k + place) / 32)] |= 1u << ((k + place) % 32);
  return y;
}

/// ln x of a positive, finite x.
inline SignedFixed natural_log(const double& x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  std::int64_t exponent = static_cast<std::int64_t>(bits >> 52) - 1023;
  std::uint64_t mantissa = bits & 0xfffffffffffffu;
  constexpr std::uint64_t one = std::uint64_t{1} << 52;
  if (exponent == -1023)
    for (exponent = -1022; mantissa < one; --exponent) mantissa *= 2;
  else
    mantissa += one;
  // ln m = 2 (z + z^3 / 3 + z^5 / 5 + ...) with z = (m - 1) / (m + 1) <= 1/3.
  const Fixed z = Fixed::ratio(mantissa - one, mantissa + one), square = z * z;
  Fixed sum, power = z + z;
  for (std::uint32_t k = 1; !power.is_zero(); k += 2, power = power * square) sum = sum + power / k;
  if (exponent >= 0) return {false, sum + ln_2 * static_cast<std::uint32_t>(exponent)};
  const Fixed whole = ln_2 * static_cast<std::uint32_t>(-exponent);
  return sum < whole ? SignedFixed{true, whole - sum} : SignedFixed{false, sum - whole};
}

/// e^x.
inline Floating exponential(const SignedFixed& x) {
  // x = n ln 2 + r with r in [0, ln 2).
  constexpr std::uint64_t above_ln_2 = 0xb17217f8u;
  std::int64_t n = static_cast<std::int64_t>(x.magnitude.leading() / above_ln_2);
  Fixed r = x.magnitude - ln_2 * static_cast<std::uint32_t>(n);
  for (; !(r < ln_2); ++n) r = r - ln_2;
  if (x.negative) {
    n = -n;
    if (!r.is_zero()) r = ln_2 - r, --n;
  }
  Fixed sum = Fixed::of(1);  // 1 + r (1 + r / 2 (1 + r / 3 (...)))
  for (std::uint32_t k = 38; k > 0; --k) sum = Fixed::of(1) + sum * r / k;
  return sum.whole() < 2 ? Floating{sum, n} : Floating{sum.half(), n + 1};
}

/// The nearest double to ln x, for x that is not negative: -infinity of 0, infinity of infinity.
inline double log_of(const double& x) {
  if (std::bit_cast<std::uint64_t>(x) == 0) return minus_infinity<double>();
  return is_finite(x) ? rounded(natural_log(x)) : x;
}
/// To log2 x.
inline double log2_of(const double& x) {
  if (std::bit_cast<std::uint64_t>(x) == 0) return minus_infinity<double>();
  if (!is_finite(x)) return x;
  const SignedFixed y = natural_log(x);
  return rounded(SignedFixed{y.negative, y.magnitude * one_over_ln_2});
}
/// To 2^x, for a finite x.
inline double exp2_of(const double& x) {
  if (x >= 1024) return std::bit_cast<double>(infinity_bits<double>);
  if (x < -1080) return 0.0;
  const SignedFixed y = fixed(x);
  return rounded(exponential({y.negative, y.magnitude * ln_2}));
}
/// To base^exponent, for a positive, finite base and |exponent| < 2^16.
inline double power_of(const double& base, const double& exponent) {
  const SignedFixed a = natural_log(base), b = fixed(exponent);
  return rounded(exponential({a.negative != b.negative, a.magnitude * b.magnitude}));
}

/// To base^(-i numerator / denominator), i in [0, count): frequencies. base is positive and finite, the
/// quotient at most 2, or anything where there is no second power.
inline std::vector<double> falling_powers(const double& base, Index numerator, Index denominator,
                                          Index count) {
  if (count < 2) return std::vector<double>(static_cast<std::size_t>(count), 1.0);
  const SignedFixed log_of_base = natural_log(base);
  const Fixed exponent =
      Fixed::ratio(static_cast<std::uint64_t>(numerator), static_cast<std::uint64_t>(denominator));
  const Floating step = exponential({!log_of_base.negative, log_of_base.magnitude * exponent});
  std::vector<double> powers;
  Floating now;
  for (Index i = 0; i < count; ++i, now = now * step) powers.push_back(rounded(now));
  return powers;
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
