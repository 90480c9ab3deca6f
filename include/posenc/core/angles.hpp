#pragma once
// The one place where a frequency and a position become a cosine and a sine.
//
// The angle of position p at frequency f is p f radians. In floating point that product loses its phase: a
// float angle is off by 4e-3 at position 131071. Here the frequency is kept as the fraction of a turn that
// one position advances, f / 2 pi modulo 1, as a 128-bit fixed-point number. Multiplying it by an integer
// position wraps around exactly at whole turns, so the reduction modulo 2 pi costs nothing and loses nothing,
// at any position, negative ones too. What is left, an eighth of a turn to either side, goes through two
// short polynomials in double.
//
// Error against the exact cos(p f) and sin(p f) of the double f: below 3.2e-8 for float (rounding alone
// is 3.0e-8) and 4e-16 for double, at every position a 64-bit integer can hold.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <span>
#include <vector>

#include "posenc/core/error.hpp"
#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {

/// A position in a sequence: an exact integer, negative where the scheme allows it.
using Position = std::int64_t;

/// A coordinate that need not be an integer: patch centres in [-1, 1], seconds. Fixed point with 64 bits
/// before and 64 behind the point, so that an angle is as exact for it as for an integer. An immutable value.
class Coordinate {
 public:
  Coordinate() = default;
  Coordinate(Position whole)  // NOLINT: implicit, an integer is a coordinate
      : negative_(whole < 0),
        whole_(negative_ ? ~static_cast<std::uint64_t>(whole) + 1 : static_cast<std::uint64_t>(whole)) {}

  /// The double itself (bits below 2^-64 are dropped). Throws std::out_of_range unless |value| < 2^60.
  static Coordinate of(double value) {
    if (!(std::fabs(value) < 0x1p60))
      detail::out_of_range("coordinate: expected a number within 2^60 of zero, got ", value);
    Coordinate c;
    const double magnitude = std::fabs(value), whole = std::floor(magnitude);
    c.negative_ = value < 0;
    c.whole_ = static_cast<std::uint64_t>(whole);
    c.fraction_ = static_cast<std::uint64_t>(std::ldexp(magnitude - whole, 64));
    return c;
  }

  /// numerator / denominator to 64 bits behind the point: (2 row + 1 - rows) / rows for a patch centre.
  /// Throws std::invalid_argument unless denominator > 0.
  static Coordinate ratio(Position numerator, Position denominator) {
    if (denominator <= 0) detail::invalid("denominator: expected more than 0, got ", denominator);
    Coordinate c(numerator);
    const auto d = static_cast<std::uint64_t>(denominator);
    std::uint64_t rest = c.whole_ % d;
    c.whole_ /= d;
    for (int bit = 0; bit < 64; ++bit) {  // long division; rest < d <= 2^63, so doubling it can't overflow
      rest *= 2;
      c.fraction_ = c.fraction_ << 1 | (rest >= d ? 1u : 0u);
      if (rest >= d) rest -= d;
    }
    return c;
  }

  bool negative() const { return negative_; }
  /// Of the magnitude: whole + fraction / 2^64.
  std::uint64_t whole() const { return whole_; }
  std::uint64_t fraction() const { return fraction_; }
  double value() const {
    const double magnitude = static_cast<double>(whole_) + std::ldexp(static_cast<double>(fraction_), -64);
    return negative_ ? -magnitude : magnitude;
  }

 private:
  bool negative_ = false;
  std::uint64_t whole_ = 0, fraction_ = 0;
};

namespace detail {

/// Turns in fixed point: whole + (high 2^64 + low) / 2^128, modulo 2^64 turns.
struct Turn {
  std::uint64_t whole = 0, high = 0, low = 0;
};

/// a - b.
inline Turn operator-(const Turn& a, const Turn& b) {
  Turn d;
  d.low = a.low - b.low;
  const std::uint64_t borrow = a.low < b.low ? 1 : 0;
  d.high = a.high - b.high - borrow;
  d.whole = a.whole - b.whole - (a.high < b.high || (a.high == b.high && borrow) ? 1 : 0);
  return d;
}

/// f / 2 pi, exact but for less than 2^-128. f is finite and below 2^64 in magnitude.
inline Turn turn_per_position(double f) {
  // 1 / 2 pi, the first 320 bits behind the point, most significant word first.
  constexpr std::array<std::uint32_t, 10> inverse_two_pi = {0x28be60db, 0x9391054a, 0x7f09d5f4, 0x7d4d3770,
                                                            0x36d8a566, 0x4f10e410, 0x7f9458ea, 0xf7aef158,
                                                            0x6dc91b8e, 0x909374b8};
  int exponent = 0;
  const double fraction =
      std::frexp(std::fabs(f), &exponent);  // |f| = fraction 2^exponent, 1/2 <= fraction < 1
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(fraction, 53));
  // product = mantissa / 2 pi: two words before the point and ten behind it, least significant word first.
  std::array<std::uint32_t, 12> product{};
  for (std::size_t m = 0; m < 2; ++m) {
    const std::uint64_t digit = (mantissa >> (32 * m)) & 0xffffffffu;
    std::uint64_t carry = 0;
    for (std::size_t i = 0; i < 10; ++i) {
      carry += product[i + m] + digit * inverse_two_pi[9 - i];
      product[i + m] = static_cast<std::uint32_t>(carry);
      carry >>= 32;
    }
    product[10 + m] = static_cast<std::uint32_t>(carry);
  }
  // |f| / 2 pi = product 2^(exponent - 53): bit k of the result stands `shift` places above bit k of the
  // product.
  const int shift = exponent - 53;
  const auto bit = [&](int place) {  // of weight 2^place
    const int at = place - shift + 320;
    return at < 0 || at >= 384 ? 0u : (product[static_cast<std::size_t>(at / 32)] >> (at % 32)) & 1u;
  };
  Turn turn;
  for (int place = 63; place >= 0; --place) turn.whole = turn.whole << 1 | bit(place);
  for (int place = -1; place >= -64; --place) turn.high = turn.high << 1 | bit(place);
  for (int place = -65; place >= -128; --place) turn.low = turn.low << 1 | bit(place);
  if (f < 0) return Turn{} - turn;
  return turn;
}

/// The upper 64 bits of a 64 x 64 bit product.
[[gnu::always_inline]] inline std::uint64_t multiply_high(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t half = 0xffffffffu;
  const std::uint64_t a1 = a >> 32, a0 = a & half, b1 = b >> 32, b0 = b & half;
  const std::uint64_t middle = a1 * b0 + ((a0 * b0) >> 32);
  const std::uint64_t low = a0 * b1 + (middle & half);
  return a1 * b1 + (middle >> 32) + (low >> 32);
}

/// A 52-bit integer as a double, minus 2^51; without a conversion instruction, so that plain loops vectorise.
[[gnu::always_inline]] inline double centered(std::uint64_t bits52) {
  return std::bit_cast<double>(bits52 | 0x4330000000000000u) - 0x1.8p52;
}

/// What is left of a phase beyond the nearest quarter turn, in quarter turns: [-1/2, 1/2). `phase` has an
/// eighth of a turn added, so that its two upper bits count quarters. 52 of its bits are enough for a float
/// result.
[[gnu::always_inline]] inline double remainder_52(std::uint64_t phase) {
  return centered((phase >> 10) & 0xfffffffffffffu) * 0x1p-52;
}

/// The same from all 62 bits, for a double result.
[[gnu::always_inline]] inline double remainder_62(std::uint64_t phase) {
  const double upper =
      std::bit_cast<double>(((phase >> 32) & 0x3fffffffu) | 0x4330000000000000u) - 0x1.000002p52;
  const double lower = std::bit_cast<double>((phase & 0xffffffffu) | 0x4330000000000000u) - 0x1p52;
  return (upper * 0x1p32 + lower) * 0x1p-62;
}

// sin(pi y / 2) and cos(pi y / 2) for |y| <= 1/2: minimax polynomials in z = y y (Remez), of relative error
// 4e-12 and absolute error 6e-11 for float results, 6e-18 and 4e-20 for double ones.
template <std::floating_point C>
[[gnu::always_inline]] inline double sine_of_quarters(double y, double z) {
  if constexpr (std::same_as<C, float>)
    return y * (1.5707963267881135 +
                z * (-0.6459640961485221 +
                     z * (0.07969258276016875 + z * (-0.004681266477790435 + z * 0.00015820674564440403))));
  else
    return y * (1.5707963267948966 +
                z * (-0.645964097506245 +
                     z * (0.07969262624606273 +
                          z * (-0.004681754132616294 +
                               z * (0.00016044115259864245 +
                                    z * (-3.598649340966905e-06 + z * 5.634675098050997e-08))))));
}
template <std::floating_point C>
[[gnu::always_inline]] inline double cosine_of_quarters(double z) {
  if constexpr (std::same_as<C, float>)
    return 1.0 + z * (-1.2337005433535542 +
                      z * (0.25366924403057856 + z * (-0.02086028850910887 + z * 0.0009040216682410674)));
  else
    return 1.0 + z * (-1.2337005501361697 +
                      z * (0.2536695079010469 +
                           z * (-0.020863480763315435 +
                                z * (0.0009192602742249533 +
                                     z * (-2.5202036991126816e-05 +
                                          z * (4.71061564720191e-07 + z * -6.321891380700157e-09))))));
}

/// cos and sin of one phase. `flip` is the sign bit of the position.
template <std::floating_point C>
[[gnu::always_inline]] inline void cos_sin_of_phase(std::uint64_t phase, std::uint64_t flip, double scale,
                                                    C& cos, C& sin) {
  phase += std::uint64_t{1} << 61;  // an eighth of a turn: the quarter is now the nearest one
  const std::uint64_t quarter = phase >> 62;
  const double y = std::same_as<C, float> ? remainder_52(phase) : remainder_62(phase);
  const double z = y * y;
  const auto s = std::bit_cast<std::uint64_t>(sine_of_quarters<C>(y, z) * scale);
  const auto c = std::bit_cast<std::uint64_t>(cosine_of_quarters<C>(z) * scale);
  // An odd quarter swaps the two; by masks, because a branch would keep the loop from being vectorised.
  const std::uint64_t swapped = (s ^ c) & (0 - (quarter & 1));
  const std::uint64_t sin_sign = ((quarter & 2) << 62) ^ flip, cos_sign = ((quarter + 1) & 2) << 62;
  sin = static_cast<C>(std::bit_cast<double>(s ^ swapped ^ sin_sign));
  cos = static_cast<C>(std::bit_cast<double>(c ^ swapped ^ cos_sign));
}

/// Frequencies, ready to be turned by positions. An immutable value; shared freely between threads.
class Angles {
 public:
  Angles() = default;

  /// `frequencies` in radians per position. Throws std::invalid_argument unless finite and below 2^64 in
  /// magnitude.
  explicit Angles(std::span<const double> frequencies) {
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      if (!(std::fabs(frequencies[i]) < 0x1p64))
        invalid("frequencies[", i, "]: expected a finite number of radians per position below 2^64, got ",
                frequencies[i]);
      push_back(turn_per_position(frequencies[i]));
    }
  }

  /// The difference of two sets of frequencies, exact: what re-basing a rotated key turns by.
  Angles(std::span<const double> to, std::span<const double> from) {
    const Angles a(to), b(from);
    require_equal("frequencies", a.size(), b.size());
    for (std::size_t i = 0; i < a.high_.size(); ++i) push_back(a.turn(i) - b.turn(i));
  }

  Index size() const { return static_cast<Index>(high_.size()); }

  /// cos[j] = scale cos(position f[first + j]) and sin[j] likewise, for j in [0, count). Allocates nothing.
  template <std::floating_point C>
  void cos_sin(Position position, Index first, Index count, C* cos, C* sin, double scale = 1.0) const {
    const std::uint64_t flip = static_cast<std::uint64_t>(position) & (std::uint64_t{1} << 63);
    const std::uint64_t p =
        flip ? ~static_cast<std::uint64_t>(position) + 1 : static_cast<std::uint64_t>(position);
    const std::uint64_t* high = high_.data() + first;
    const std::uint64_t* low = low_.data() + first;
    if (std::same_as<C, float> && p < (std::uint64_t{1} << 32)) {  // what `low` adds is below 2e-9 radians
      for (Index j = 0; j < count; ++j) cos_sin_of_phase(high[j] * p, flip, scale, cos[j], sin[j]);
    } else {
      for (Index j = 0; j < count; ++j)
        cos_sin_of_phase(high[j] * p + multiply_high(low[j], p), flip, scale, cos[j], sin[j]);
    }
  }

  /// The same where each pair has a coordinate of its own, at(j) for pair first + j: several axes, fractions.
  template <std::floating_point C, class At>
  void cos_sin_at(const At& at, Index first, Index count, C* cos, C* sin, double scale = 1.0) const {
    constexpr Index block = 64;
    std::array<std::uint64_t, block> phase, flip;
    for (Index from = 0; from < count; from += block) {
      const Index n = (std::min)(block, count - from);
      for (Index j = 0; j < n; ++j) {
        const Coordinate c = at(from + j);
        const Turn f = turn(static_cast<std::size_t>(first + from + j));
        const auto i = static_cast<std::size_t>(j);
        phase[i] = f.high * c.whole() + multiply_high(f.low, c.whole()) + f.whole * c.fraction() +
                   multiply_high(f.high, c.fraction());
        flip[i] = c.negative() ? std::uint64_t{1} << 63 : 0;
      }
      for (Index j = 0; j < n; ++j)
        cos_sin_of_phase(phase[static_cast<std::size_t>(j)], flip[static_cast<std::size_t>(j)], scale,
                         cos[from + j], sin[from + j]);
    }
  }

 private:
  Turn turn(std::size_t i) const { return {whole_[i], high_[i], low_[i]}; }
  void push_back(const Turn& turn) {
    whole_.push_back(turn.whole), high_.push_back(turn.high), low_.push_back(turn.low);
  }

  std::vector<std::uint64_t> whole_, high_, low_;
};

}  // namespace detail
}  // namespace v0
}  // namespace posenc
