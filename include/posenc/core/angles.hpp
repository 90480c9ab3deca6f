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
#include "posenc/core/finite.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/scalar.hpp"
#include "posenc/core/stack.hpp"

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
    if (!detail::is_finite(value) || std::fabs(value) >= 0x1p60)
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
    for (int place = 0; place < 64;
         ++place) {  // long division; rest < d <= 2^63, so doubling it can't overflow
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
  const auto bit_of_weight = [&](int place) {  // of weight 2^place
    const int at = place - shift + 320;
    return at < 0 || at >= 384 ? 0u : (product[static_cast<std::size_t>(at / 32)] >> (at % 32)) & 1u;
  };
  Turn turn;
  for (int place = 63; place >= 0; --place) turn.whole = turn.whole << 1 | bit_of_weight(place);
  for (int place = -1; place >= -64; --place) turn.high = turn.high << 1 | bit_of_weight(place);
  for (int place = -65; place >= -128; --place) turn.low = turn.low << 1 | bit_of_weight(place);
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
    return (bits_as<Pack<double>>(bits) - 0x1.8p52) * 0x1p-52;
  } else {
    const auto upper =
        opaque(bits_as<Pack<double>>(((phase >> 32) & 0x3fffffffu) | exponent) - 0x1.000002p52);
    const auto lower = opaque(bits_as<Pack<double>>((phase & 0xffffffffu) | exponent) - 0x1p52);
    return (upper * 0x1p32 + lower) * 0x1p-62;
  }
}

// sin(pi y / 2) / y and cos(pi y / 2) for |y| <= 1/2 in z = y y: minimax polynomials (Remez), of relative
// error 4e-12 and absolute error 6e-11 for float results, 6e-18 and 4e-20 for double ones.
template <std::floating_point C>
[[gnu::always_inline]] inline Pack<double> sine_over_quarters(Pack<double> z) {
  if constexpr (std::same_as<C, float>)
    return polynomial<double>(z, 1.5707963267881135, -0.6459640961485221, 0.07969258276016875,
                              -0.004681266477790435, 0.00015820674564440403);
  else
    return polynomial<double>(z, 1.5707963267948966, -0.645964097506245, 0.07969262624606273,
                              -0.004681754132616294, 0.00016044115259864245, -3.598649340966905e-06,
                              5.634675098050997e-08);
}
template <std::floating_point C>
[[gnu::always_inline]] inline Pack<double> cosine_of_quarters(Pack<double> z) {
  if constexpr (std::same_as<C, float>)
    return polynomial<double>(z, 1.0, -1.2337005433535542, 0.25366924403057856, -0.02086028850910887,
                              0.0009040216682410674);
  else
    return polynomial<double>(z, 1.0, -1.2337005501361697, 0.2536695079010469, -0.020863480763315435,
                              0.0009192602742249533, -2.5202036991126816e-05, 4.71061564720191e-07,
                              -6.321891380700157e-09);
}

/// A cosine and a sine, of numbers or packs of them.
struct CosSin {
  Pack<double> cos, sin;
};

/// Of phases, in double, as exactly as a result of type C needs.
template <std::floating_point C>
[[gnu::always_inline]] inline CosSin cos_sin_of_phase(Phases phase) {
  constexpr std::uint64_t half_turn = std::uint64_t{1} << 63, quarter_turn = half_turn >> 1;
  phase += quarter_turn >> 1;  // an eighth of a turn: the upper two bits now count the nearest quarter
  const Pack<double> y = remainder<C>(phase), z = y * y;
  const Pack<double> s = y * sine_over_quarters<C>(z), c = cosine_of_quarters<C>(z);
  const auto odd = (phase & quarter_turn) != 0u;  // an odd quarter swaps the two
  return {bits_as<Pack<double>>(bits_as<Phases>(odd ? s : c) ^ ((phase ^ (phase << 1)) & half_turn)),
          bits_as<Pack<double>>(bits_as<Phases>(odd ? c : s) ^ (phase & half_turn))};
}

/// Of the sum of two angles.
[[gnu::always_inline]] inline CosSin operator+(const CosSin& a, const CosSin& b) {
  return {multiply_add(a.cos, b.cos, -(a.sin * b.sin)), multiply_add(a.sin, b.cos, a.cos * b.sin)};
}

class Angles;

/// What neighbouring positions have in common, kept from one call of Angles to the next: cos and sin
/// at the multiple of 16 below them. Scratch of one thread; it changes how fast a result comes, not its bits.
template <std::floating_point C>
class AngleScratch {
 public:
  /// f(a scratch).
  template <class F>
  static void with(const F& f) {
    with_buffer<double, most>([&](double* cos) {
      with_buffer<double, most>([&](double* sin) {
        AngleScratch scratch(cos, sin);
        f(scratch);
      });
    });
  }

 private:
  friend class Angles;
  static constexpr std::size_t most = 1024;
  AngleScratch(double* cos, double* sin) : cos_(cos), sin_(sin) {}

  const Angles* of_ = nullptr;
  std::uint64_t start_ = 0;
  Index first_ = 0, last_ = 0;  // pairs
  double scale_ = 0;
  double *cos_, *sin_;
};
/// Double results are computed each on its own.
template <>
class AngleScratch<double> {
 public:
  /// f(a scratch).
  template <class F>
  static void with(const F& f) {
    AngleScratch scratch;
    f(scratch);
  }
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
    for (std::size_t i = 0; i < frequencies.size(); ++i)
      if (!is_finite(frequencies[i]) || std::fabs(frequencies[i]) >= 0x1p64)
        invalid("frequencies[", i, "]: expected a finite number of radians per position below 2^64, got ",
                frequencies[i]);
    set(frequencies.size(), [&](std::size_t i) { return turn_per_position(frequencies[i]); });
  }

  /// The difference of two sets of frequencies, exact: what re-basing a rotated key turns by.
  Angles(std::span<const double> to, std::span<const double> from) {
    const Angles a(to), b(from);
    require_equal("frequencies", a.size(), b.size());
    set(a.size_, [&](std::size_t i) { return a.turn(i) - b.turn(i); });
  }

  Index size() const { return static_cast<Index>(size_); }

  /// cos[r stride + j] = scale cos(at(r) f[first + j]) and sin likewise, for rows r in [0, rows) and j in [0,
  /// count). Allocates nothing.
  template <std::floating_point C, class At>
  void cos_sin_rows([[maybe_unused]] AngleScratch<C>& scratch, const At& at, Index rows, Index first,
                    Index count, C* cos, C* sin, Index stride, double scale = 1.0) const {
    if constexpr (std::same_as<C, float>) {
      for (Index row = 0; row < rows;) {
        const Group group(at, row, rows);
        for (Index from = first; from < first + count;) {
          const Index room = AngleScratch<float>::most - static_cast<std::size_t>(from) % block;
          const Index to = (std::min)(first + count, from + room), place = row * stride + from - first;
          prepare(scratch, group.start, from, to, scale);
          turn_on(scratch, group, from, to, cos + place, sin + place, stride);
          from = to;
        }
        row += group.count;
      }
    } else {
      for (Index row = 0; row < rows; ++row) {
        const Magnitude p(at(row));
        for_packs<pack_size<double>>(
            first, first + count, [&](std::size_t pair, std::size_t skip, std::size_t n) {
              const CosSin exact = cos_sin_of_phase<double>(phase(pair, p.value));
              const Index place = row * stride + static_cast<Index>(pair + skip) - first;
              store_lanes(cos + place, exact.cos * scale, skip, n);
              store_lanes(sin + place, with_sign(exact.sin * scale, p.sign), skip, n);
            });
      }
    }
  }
  /// One row.
  template <std::floating_point C>
  void cos_sin(Position position, Index first, Index count, C* cos, C* sin, double scale = 1.0) const {
    AngleScratch<C>::with([&](AngleScratch<C>& scratch) {
      cos_sin_rows(scratch, [&](Index) { return position; }, 1, first, count, cos, sin, 0, scale);
    });
  }

  /// The same where each pair has a coordinate of its own, at(j) for pair first + j: several axes, fractions.
  template <std::floating_point C, class At>
  void cos_sin_at(const At& at, Index first, Index count, C* cos, C* sin, double scale = 1.0) const {
    constexpr Index step = pack_size<double>;
    alignas(64) std::array<std::uint64_t, block> phases, flips;
    alignas(64) Offset offset;
    for (Index from = 0; from < count; from += Index{block}) {
      const Index n = (std::min)(Index{block}, count - from);
      for (Index j = 0; j < n; ++j) {
        const Coordinate c = at(from + j);
        const auto i = static_cast<std::size_t>(j), pair = static_cast<std::size_t>(first + from + j);
        const std::size_t lane = pair % block;
        const std::uint64_t r = std::same_as<C, float> ? c.whole() % offsets : 0;
        const std::uint64_t whole = c.whole() - r;
        const Turn f = turn(pair);
        phases[i] = f.high * whole + multiply_high(f.low, whole) + f.whole * c.fraction() +
                    multiply_high(f.high, c.fraction());
        flips[i] = c.negative() ? std::uint64_t{1} << 63 : 0;
        if constexpr (std::same_as<C, float>) {
          const Offset& o = blocks_[pair / block].at[r];
          offset.cos[i] = o.cos[lane], offset.sin[i] = o.sin[lane];
        }
      }
      for (auto i = static_cast<std::size_t>(n); i % step != 0; ++i)  // the rest of the last pack
        phases[i] = flips[i] = 0, offset.cos[i] = offset.sin[i] = 0;
      for (Index j = 0; j < n; j += step) {
        CosSin result = cos_sin_of_phase<C>(load_phases(phases.data() + j));
        result.cos *= scale, result.sin *= scale;
        if constexpr (std::same_as<C, float>) result = result + offset.pack(static_cast<std::size_t>(j));
        store_doubles(cos + from + j, result.cos, n - j);
        store_doubles(sin + from + j, with_sign(result.sin, load_phases(flips.data() + j)), n - j);
      }
    }
  }

 private:
  static constexpr std::size_t offsets = 16;
  // Pairs that lie together in the tables below: a multiple of every pack, and the same whatever the flags,
  // because a value may be made in one translation unit and used in another.
  static constexpr std::size_t block = 16;
  static constexpr std::size_t half = pack_size<double>;  // of a pack of float

  /// cos and sin of one position in 0 .. 15.
  struct alignas(64) Offset {
    std::array<double, block> cos, sin;
    [[gnu::always_inline]] CosSin pack(std::size_t lane) const {
      return {load_pack(cos.data() + lane), load_pack(sin.data() + lane)};
    }
  };
  /// What there is to know about neighbouring pairs.
  struct alignas(64) Block {
    std::array<std::uint64_t, block> high{}, low{}, whole{};  // of a Turn: what one position advances
    std::array<Offset, offsets> at;
  };
  /// A position without its sign, and the sign as a bit of a double.
  struct Magnitude {
    explicit Magnitude(Position position)
        : sign(static_cast<std::uint64_t>(position) & (std::uint64_t{1} << 63)),
          value(sign != 0 ? ~static_cast<std::uint64_t>(position) + 1
                          : static_cast<std::uint64_t>(position)) {}
    std::uint64_t sign, value;
  };
  /// Rows from `row` on, of one sign, whose positions have the same multiple of 16 below them.
  struct Group {
    template <class At>
    Group(const At& at, Index row, Index rows) {
      const Magnitude p(at(row));
      sign = p.sign, start = p.value - p.value % offsets;
      for (Magnitude next = p; next.sign == sign && next.value - start < offsets;) {
        offset[static_cast<std::size_t>(count++)] = static_cast<std::uint8_t>(next.value - start);
        if (row + count == rows || count == static_cast<Index>(offsets)) break;
        next = Magnitude(at(row + count));
      }
    }
    std::uint64_t sign, start;
    Index count = 0;
    std::array<std::uint8_t, offsets> offset{};
  };

  /// f(pair, skip, n) for every pack of `Width` pairs, from `pair` on, that meets pairs [from, to): in
  /// numbers [skip, skip + n) of the pack.
  template <std::size_t Width, class F>
  [[gnu::always_inline]] static void for_packs(Index from, Index to, const F& f) {
    const auto begin = static_cast<std::size_t>(from), end = static_cast<std::size_t>(to);
    std::size_t skip = begin % Width;  // of the first pack
    for (std::size_t pair = begin - skip; pair < end; pair += Width, skip = 0)
      f(pair, skip, (std::min)(Width, end - pair) - skip);
  }
  static Phases load_phases(const std::uint64_t* from) {
    Phases pack;
    std::memcpy(&pack, from, sizeof pack);
    return pack;
  }
  template <class Sign>  // one for the pack, or one for each number
  [[gnu::always_inline]] static Pack<double> with_sign(Pack<double> x, Sign sign) {
    return bits_as<Pack<double>>(bits_as<Phases>(x) ^ sign);
  }
  /// Of position p below 2^63 at the frequencies of a pack from `pair` on: (high 2^64 + low) p / 2^64 modulo
  /// a turn.
  [[gnu::always_inline]] Phases phase(std::size_t pair, std::uint64_t p) const {
    const Block& f = blocks_[pair / block];
    const Phases position = Phases{} + p, low = load_phases(f.low.data() + pair % block);
    // The lower half of `low` adds less than one to the product where p is below 2^32.
    const Phases carried = p >> 32 == 0 ? ((low >> 32) * position) >> 32 : multiply_high(low, position);
    return load_phases(f.high.data() + pair % block) * position + carried;
  }
  // These two are functions of their own, so that each has all registers to itself.
  /// Puts cos and sin of pairs [from, to) at position `start` into the scratch, if they aren't there.
  [[gnu::noinline]] void prepare(AngleScratch<float>& scratch, std::uint64_t start, Index from, Index to,
                                 double scale) const {
    if (scratch.of_ == this && scratch.start_ == start && scratch.first_ == from && scratch.last_ == to &&
        scratch.scale_ == scale)
      return;
    for_packs<2 * half>(from, to, [&](std::size_t pair, std::size_t, std::size_t) {
      for (const std::size_t at : {pair, pair + half}) {
        const CosSin base = cos_sin_of_phase<float>(phase(at, start));
        store_pack(scratch.cos_ + at % AngleScratch<float>::most, base.cos * scale);
        store_pack(scratch.sin_ + at % AngleScratch<float>::most, base.sin * scale);
      }
    });
    scratch.of_ = this, scratch.start_ = start, scratch.first_ = from, scratch.last_ = to;
    scratch.scale_ = scale;
  }
  /// Turns what is prepared on to the positions of the group, a row each.
  [[gnu::noinline]] void turn_on(const AngleScratch<float>& scratch, const Group& group, Index from, Index to,
                                 float* cos, float* sin, Index stride) const {
    const auto sign = static_cast<std::uint32_t>(group.sign >> 32);
    for_packs<2 * half>(from, to, [&](std::size_t pair, std::size_t skip, std::size_t n) {
      const auto start = [&](std::size_t at) {
        at %= AngleScratch<float>::most;
        return CosSin{load_pack(scratch.cos_ + at), load_pack(scratch.sin_ + at)};
      };
      const CosSin first = start(pair), second = start(pair + half);
      const Offset* const on = blocks_[pair / block].at.data();
      const Index place = static_cast<Index>(pair + skip) - from;
      float *to_cos = cos + place, *to_sin = sin + place;
      for (Index r = 0; r < group.count; ++r, to_cos += stride, to_sin += stride) {
        const Offset& offset = on[group.offset[static_cast<std::size_t>(r)]];
        const CosSin a = first + offset.pack(pair % block), b = second + offset.pack(pair % block + half);
        store_lanes(to_cos, narrow_packs(a.cos, b.cos), skip, n);
        store_lanes(to_sin, bits_as<Pack<float>>(bits_as<Bits32>(narrow_packs(a.sin, b.sin)) ^ sign), skip,
                    n);
      }
    });
  }

  Turn turn(std::size_t pair) const {
    const Block& b = blocks_[pair / block];
    return {b.whole[pair % block], b.high[pair % block], b.low[pair % block]};
  }
  template <class TurnOf>
  void set(std::size_t size, const TurnOf& turn_of) {
    size_ = size;
    blocks_ = std::vector<Block>((size + block - 1) / block);
    for (std::size_t i = 0; i < size; ++i) {
      const Turn one = turn_of(i);
      Block& b = blocks_[i / block];
      b.whole[i % block] = one.whole, b.high[i % block] = one.high, b.low[i % block] = one.low;
    }
    for (std::size_t b = 0; b < blocks_.size(); ++b)
      for (std::size_t r = 0; r < offsets; ++r) {
        Offset& offset = blocks_[b].at[r];
        cos_sin(static_cast<Position>(r), static_cast<Index>(b * block), Index{block}, offset.cos.data(),
                offset.sin.data());
      }
  }

  std::size_t size_ = 0;
  std::vector<Block> blocks_;
};

}  // namespace detail
}  // namespace v0
}  // namespace posenc
