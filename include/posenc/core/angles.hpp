#pragma once
// The one place where a frequency and a position become a cosine and a sine.
//
// The angle of position p at frequency f is p f radians. In floating point that product loses its phase: a
// float angle is off by 4e-3 at position 131071. Here the frequency is kept as the fraction of a turn that
// one position advances, f / 2 pi modulo 1, as a 128-bit fixed-point number. Multiplying it by an integer
// position wraps around exactly at whole turns, so the reduction modulo 2 pi costs nothing and loses nothing,
// at any position, negative ones too. What is left, an eighth of a turn to either side, goes through two
// short polynomials in double, and neighbouring positions share that work.
//
// Error against the exact cos(p f) and sin(p f) of the double f: below 3.0e-8 for float (rounding alone
// is 2.98e-8) and 4e-16 for double, at every position a 64-bit integer can hold.

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "posenc/core/error.hpp"
#include "posenc/core/pack.hpp"
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
  /// An integer, exact.
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

  /// Whether it is below zero.
  bool negative() const { return negative_; }
  /// Of the magnitude: whole + fraction / 2^64.
  std::uint64_t whole() const { return whole_; }
  /// The part behind the point, in units of 2^-64.
  std::uint64_t fraction() const { return fraction_; }
  /// As a double, rounded.
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

using Phases = Pack<std::uint64_t>;

/// The upper 64 bits of a 64 x 64 bit product, of numbers or packs of them.
template <class U>
[[gnu::always_inline]] inline U multiply_high(U a, U b) {
  constexpr std::uint64_t half = 0xffffffffu;
  const U a1 = a >> 32, a0 = a & half, b1 = b >> 32, b0 = b & half;
  const U middle = a1 * b0 + ((a0 * b0) >> 32);
  const U low = a0 * b1 + (middle & half);
  return a1 * b1 + (middle >> 32) + (low >> 32);
}

/// What is left of a phase beyond the nearest quarter turn, in quarter turns: [-1/2, 1/2). `phase` has an
/// eighth of a turn added, so that its two upper bits count quarters. 52 of its bits are enough for a float
/// result, a double one takes all 62. The bits are put into the mantissa of a double, because few targets can
/// convert 64-bit integers in packs.
template <std::floating_point C>
[[gnu::always_inline]] inline Pack<double> remainder(Phases phase) {
  constexpr std::uint64_t exponent = 0x4330000000000000u;  // of 2^52: the mantissa counts ones
  if constexpr (std::same_as<C, float>) {
    const Phases bits = ((phase >> 10) & 0xfffffffffffffu) | exponent;
    return ((Pack<double>)bits - 0x1.8p52) * 0x1p-52;
  } else {
    const auto upper = (Pack<double>)(((phase >> 32) & 0x3fffffffu) | exponent) - 0x1.000002p52;
    const auto lower = (Pack<double>)((phase & 0xffffffffu) | exponent) - 0x1p52;
    return (upper * 0x1p32 + lower) * 0x1p-62;
  }
}

/// c[0] + z c[1] + z^2 c[2] + ... by Horner's rule.
template <std::size_t N>
[[gnu::always_inline]] inline Pack<double> polynomial(Pack<double> z, const double (&c)[N]) {
  Pack<double> sum = broadcast(c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) sum = multiply_add(sum, z, broadcast(c[i]));
  return sum;
}

// sin(pi y / 2) / y and cos(pi y / 2) for |y| <= 1/2 in z = y y: minimax polynomials (Remez), of relative
// error 4e-12 and absolute error 6e-11 for float results, 6e-18 and 4e-20 for double ones.
template <std::floating_point C>
[[gnu::always_inline]] inline Pack<double> sine_over_quarters(Pack<double> z) {
  if constexpr (std::same_as<C, float>)
    return polynomial(z, {1.5707963267881135, -0.6459640961485221, 0.07969258276016875, -0.004681266477790435,
                          0.00015820674564440403});
  else
    return polynomial(z, {1.5707963267948966, -0.645964097506245, 0.07969262624606273, -0.004681754132616294,
                          0.00016044115259864245, -3.598649340966905e-06, 5.634675098050997e-08});
}
template <std::floating_point C>
[[gnu::always_inline]] inline Pack<double> cosine_of_quarters(Pack<double> z) {
  if constexpr (std::same_as<C, float>)
    return polynomial(
        z, {1.0, -1.2337005433535542, 0.25366924403057856, -0.02086028850910887, 0.0009040216682410674});
  else
    return polynomial(
        z, {1.0, -1.2337005501361697, 0.2536695079010469, -0.020863480763315435, 0.0009192602742249533,
            -2.5202036991126816e-05, 4.71061564720191e-07, -6.321891380700157e-09});
}

/// A cosine and a sine, of numbers or packs of them.
struct CosSin {
  Pack<double> cos, sin;
};

/// Of phases, in double, as exactly as a result of type C needs.
template <std::floating_point C>
[[gnu::always_inline]] inline CosSin cos_sin_of_phase(Phases phase) {
  phase += std::uint64_t{1} << 61;  // an eighth of a turn: the quarter is now the nearest one
  const Phases quarter = phase >> 62;
  const Pack<double> y = remainder<C>(phase), z = y * y;
  const auto s = (Phases)(y * sine_over_quarters<C>(z)), c = (Phases)cosine_of_quarters<C>(z);
  const Phases swapped = (s ^ c) & (std::uint64_t{0} - (quarter & 1u));  // an odd quarter swaps the two
  const Phases sin_sign = (quarter & 2u) << 62, cos_sign = ((quarter + 1u) & 2u) << 62;
  return {(Pack<double>)(c ^ swapped ^ cos_sign), (Pack<double>)(s ^ swapped ^ sin_sign)};
}

/// Of the sum of two angles.
[[gnu::always_inline]] inline CosSin operator+(const CosSin& a, const CosSin& b) {
  return {multiply_add(a.cos, b.cos, -(a.sin * b.sin)), multiply_add(a.sin, b.cos, a.cos * b.sin)};
}

class Angles;

/// What neighbouring positions have in common, kept from one call of Angles to the next: cos and sin
/// at the multiple of 16 below them. Scratch of one thread; it changes how fast a result comes, not its bits.
class AngleScratch {
 public:
  AngleScratch() {}  // the arrays stay uninitialised

 private:
  friend class Angles;
  static constexpr Index most = 1024;
  const Angles* of_ = nullptr;
  std::uint64_t start_ = 0;
  Index first_ = 0, count_ = 0;
  double scale_ = 0;
  alignas(64) std::array<double, static_cast<std::size_t>(most)> cos_, sin_;
};

/// Frequencies, ready to be turned by positions. An immutable value; shared freely between threads.
///
/// For float results a position is split, p = 16 q + r: the angle of 16 q is computed, that of r was when the
/// value was made, and the sum of the two is one complex product in double. So a run of positions costs
/// little more than a product each, and the result is a function of p alone, whatever was asked before.
class Angles {
 public:
  Angles() = default;

  /// `frequencies` in radians per position. Throws std::invalid_argument unless finite and below 2^64 in
  /// magnitude.
  explicit Angles(std::span<const double> frequencies) {
    std::vector<Turn> turns;
    for (std::size_t i = 0; i < frequencies.size(); ++i) {
      if (!(std::fabs(frequencies[i]) < 0x1p64))
        invalid("frequencies[", i, "]: expected a finite number of radians per position below 2^64, got ",
                frequencies[i]);
      turns.push_back(turn_per_position(frequencies[i]));
    }
    set(turns);
  }

  /// The difference of two sets of frequencies, exact: what re-basing a rotated key turns by.
  Angles(std::span<const double> to, std::span<const double> from) {
    const Angles a(to), b(from);
    require_equal("frequencies", a.size(), b.size());
    std::vector<Turn> turns;
    for (std::size_t i = 0; i < a.size_; ++i) turns.push_back(a.turn(i) - b.turn(i));
    set(turns);
  }

  Index size() const { return static_cast<Index>(size_); }

  /// cos[r stride + j] = scale cos(at(r) f[first + j]) and sin likewise, for rows r in [0, rows) and j in [0,
  /// count). Allocates nothing.
  template <std::floating_point C, class At>
  void cos_sin_rows(AngleScratch& scratch, const At& at, Index rows, Index first, Index count, C* cos, C* sin,
                    Index stride, double scale = 1.0) const {
    if constexpr (std::same_as<C, float>) {
      for (Index row = 0; row < rows;) {
        // A group: rows of one sign whose positions have the same multiple of 16 below them.
        std::array<Index, static_cast<std::size_t>(offsets)> offset_of;
        const Magnitude p(at(row));
        const std::uint64_t start = p.value - p.value % offsets;
        Index group = 0;
        for (Magnitude next = p; next.sign == p.sign && next.value - start < offsets;) {
          offset_of[static_cast<std::size_t>(group++)] =
              static_cast<Index>(next.value - start) * size() + first;
          if (row + group == rows || group == static_cast<Index>(offsets)) break;
          next = Magnitude(at(row + group));
        }
        for (Index from = 0; from < count; from += AngleScratch::most) {
          const Index n = (std::min)(AngleScratch::most, count - from);
          prepare(scratch, start, first + from, n, scale);
          const Index to = row * stride + from;
          for (Index r = 0; r < group; ++r) {
            const Index offset = offset_of[static_cast<std::size_t>(r)] + from;
            const double *const one_cos = offset_cos_.data() + offset, *const one_sin =
                                                                           offset_sin_.data() + offset;
            C *const cos_row = cos + to + r * stride, *const sin_row = sin + to + r * stride;
            for (Index j = 0; j < n; j += step)
              store(CosSin{load_pack(scratch.cos_.data() + j), load_pack(scratch.sin_.data() + j)} +
                        CosSin{load_pack(one_cos + j), load_pack(one_sin + j)},
                    p.sign, n - j, cos_row + j, sin_row + j);
          }
        }
        row += group;
      }
    } else {
      for (Index row = 0; row < rows; ++row) {
        const Magnitude p(at(row));
        for (Index j = 0; j < count; j += step) {
          const CosSin exact = cos_sin_of_phase<double>(phase(first + j, p.value));
          store({exact.cos * scale, exact.sin * scale}, p.sign, count - j, cos + row * stride + j,
                sin + row * stride + j);
        }
      }
    }
  }
  /// One row.
  template <std::floating_point C>
  void cos_sin(Position position, Index first, Index count, C* cos, C* sin, double scale = 1.0) const {
    AngleScratch scratch;
    cos_sin_rows(
        scratch, [&](Index) { return position; }, 1, first, count, cos, sin, 0, scale);
  }

  /// The same where each pair has a coordinate of its own, at(j) for pair first + j: several axes, fractions.
  template <std::floating_point C, class At>
  void cos_sin_at(const At& at, Index first, Index count, C* cos, C* sin, double scale = 1.0) const {
    constexpr Index block = 64;
    alignas(64) std::array<std::uint64_t, block> phases, flips;
    alignas(64) std::array<double, block> offset_cos, offset_sin;
    for (Index from = 0; from < count; from += block) {
      const Index n = (std::min)(block, count - from);
      for (Index j = 0; j < n; ++j) {
        const Coordinate c = at(from + j);
        const auto i = static_cast<std::size_t>(j), pair = static_cast<std::size_t>(first + from + j);
        const std::uint64_t r = std::same_as<C, float> ? c.whole() % offsets : 0;
        const std::uint64_t whole = c.whole() - r;
        const Turn f = turn(pair);
        phases[i] = f.high * whole + multiply_high(f.low, whole) + f.whole * c.fraction() +
                    multiply_high(f.high, c.fraction());
        flips[i] = c.negative() ? std::uint64_t{1} << 63 : 0;
        if constexpr (std::same_as<C, float>) {
          offset_cos[i] = offset_cos_[static_cast<std::size_t>(r) * size_ + pair];
          offset_sin[i] = offset_sin_[static_cast<std::size_t>(r) * size_ + pair];
        }
      }
      for (auto i = static_cast<std::size_t>(n); i % step != 0; ++i)  // the rest of the last pack
        phases[i] = flips[i] = 0, offset_cos[i] = offset_sin[i] = 0;
      for (Index j = 0; j < n; j += step) {
        CosSin result = cos_sin_of_phase<C>(load_phases(phases.data() + j));
        result.cos *= scale, result.sin *= scale;
        if constexpr (std::same_as<C, float>)
          result = result + CosSin{load_pack(offset_cos.data() + j), load_pack(offset_sin.data() + j)};
        store(result, load_phases(flips.data() + j), n - j, cos + from + j, sin + from + j);
      }
    }
  }

 private:
  static constexpr std::uint64_t offsets = 16;
  static constexpr Index step = pack_size<double>;
  // Behind the last number, so that the last pack can be read whole. One length whatever the flags: a value
  // may be made in one translation unit and used in another.
  static constexpr std::size_t padding = 16;

  static Phases load_phases(const std::uint64_t* from) {
    Phases pack;
    std::memcpy(&pack, from, sizeof pack);
    return pack;
  }
  /// Of position p below 2^63 at the frequencies from pair j on: (high 2^64 + low) p / 2^64 modulo a turn.
  [[gnu::always_inline]] Phases phase(Index j, std::uint64_t p) const {
    const Phases position = Phases{} + p, low = load_phases(low_.data() + j);
    const Phases carried = p >> 32 == 0  // then one half of multiply_high is zero
                               ? ((low >> 32) * position + (((low & 0xffffffffu) * position) >> 32)) >> 32
                               : multiply_high(low, position);
    return load_phases(high_.data() + j) * position + carried;
  }
  /// A position without its sign, and the sign as a bit of a double.
  struct Magnitude {
    explicit Magnitude(Position position)
        : sign(static_cast<std::uint64_t>(position) & (std::uint64_t{1} << 63)),
          value(sign != 0 ? ~static_cast<std::uint64_t>(position) + 1
                          : static_cast<std::uint64_t>(position)) {}
    std::uint64_t sign, value;
  };
  /// Puts cos and sin at `start` into the scratch, if they aren't there.
  void prepare(AngleScratch& scratch, std::uint64_t start, Index first, Index count, double scale) const {
    if (scratch.of_ == this && scratch.start_ == start && scratch.first_ == first &&
        scratch.count_ == count && scratch.scale_ == scale)
      return;
    for (Index j = 0; j < count; j += step) {
      const CosSin base = cos_sin_of_phase<float>(phase(first + j, start));
      store_pack(scratch.cos_.data() + j, base.cos * scale);
      store_pack(scratch.sin_.data() + j, base.sin * scale);
    }
    scratch.of_ = this, scratch.start_ = start, scratch.first_ = first, scratch.count_ = count;
    scratch.scale_ = scale;
  }
  template <std::floating_point C, class Sign>  // Sign: one for the pack, or one for each number
  [[gnu::always_inline]] static void store(const CosSin& result, Sign sign, Index count, C* cos, C* sin) {
    store_doubles(cos, result.cos, count);
    store_doubles(sin, (Pack<double>)((Phases)result.sin ^ sign), count);
  }

  Turn turn(std::size_t i) const { return {whole_[i], high_[i], low_[i]}; }
  void set(const std::vector<Turn>& turns) {
    size_ = turns.size();
    whole_.resize(size_ + padding), high_.resize(size_ + padding), low_.resize(size_ + padding);
    for (std::size_t i = 0; i < size_; ++i)
      whole_[i] = turns[i].whole, high_[i] = turns[i].high, low_[i] = turns[i].low;
    offset_cos_.resize(offsets * size_ + padding), offset_sin_.resize(offsets * size_ + padding);
    for (std::uint64_t r = 0; r < offsets; ++r)
      cos_sin(static_cast<Position>(r), 0, size(), offset_cos_.data() + r * size_,
              offset_sin_.data() + r * size_);
  }

  std::size_t size_ = 0;
  std::vector<std::uint64_t> whole_, high_, low_;
  std::vector<double> offset_cos_, offset_sin_;  // (offsets, size_): of positions 0 .. 15
};

}  // namespace detail
}  // namespace v0
}  // namespace posenc
