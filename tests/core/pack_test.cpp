// Sixteen bits: every value widens to what it says, and every float rounds to nearest, ties to even, with the
// instructions of the target and without.

#include "posenc/core/pack.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "support/support.hpp"

using namespace posenc;
using namespace posenc::detail;

namespace {

constexpr Index width = pack_size<float>;

/// What the 16 bits of `half` say, from the definition of IEEE 754 binary16.
double value_of_half(std::uint16_t half) {
  const int exponent = (half >> 10) & 31, fraction = half & 1023;
  const double sign = half & 0x8000 ? -1.0 : 1.0;
  if (exponent == 31) return fraction == 0 ? sign * posenc_test::infinity : posenc_test::quiet_nan;
  return sign * (exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25));
}

/// The bits of the half next to a finite value, ties to even, by comparing distances.
std::uint16_t nearest_half(float value) {
  const double magnitude = std::fabs(static_cast<double>(value));
  const std::uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  if (magnitude >= 65520.0) return static_cast<std::uint16_t>(sign | 0x7c00);
  std::uint16_t low = 0, high = 0x7bff;  // value_of_half(low) <= magnitude, by bisection
  while (low < high) {
    const auto middle = static_cast<std::uint16_t>((low + high + 1) / 2);
    if (value_of_half(middle) <= magnitude)
      low = middle;
    else
      high = static_cast<std::uint16_t>(middle - 1);
  }
  const auto next = static_cast<std::uint16_t>(low + 1);
  const double below = magnitude - value_of_half(low);
  const double above = (next == 0x7c00 ? 65536.0 : value_of_half(next)) - magnitude;
  const bool up = above < below || (above == below && low % 2 == 1);
  return static_cast<std::uint16_t>(sign | (up ? next : low));
}

Bits16 all(std::uint16_t bits) { return Bits16{} + bits; }

/// Floats around every rounding boundary of 16-bit types, and others from all over.
template <class F>
void for_some_floats(const F& f) {
  for (std::uint32_t top = 0; top < 0x10000; ++top)
    for (const std::uint32_t low :
         {0x0u, 0x1u, 0xfffu, 0x1000u, 0x1001u, 0x1fffu, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
      f(std::bit_cast<float>(top << 16 | low));
  std::uint32_t state = 1;
  for (int n = 0; n < 300000; ++n) f(std::bit_cast<float>(state = state * 1664525u + 1013904223u));
}

}  // namespace

TEST_CASE("every half widens to its value", "[pack][unit]") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const auto half = static_cast<std::uint16_t>(bits);
    const float one = half_to_float(all(half))[width - 1], portable = half_to_float_portable(all(half))[0];
    const double value = value_of_half(half);
    wrong += posenc_test::is_nan(value)
                 ? !(posenc_test::is_nan(one) && posenc_test::is_nan(portable))
                 : !(one == value && portable == value && std::signbit(one) == (half >> 15 == 1));
    wrong += std::bit_cast<std::uint32_t>(one) != std::bit_cast<std::uint32_t>(portable);
  }
  CHECK(wrong == 0);
}

TEST_CASE("a float rounds to the nearest half, ties to even", "[pack][unit]") {
  int wrong = 0;
  for_some_floats([&](float value) {
    const std::uint16_t one = float_to_half(broadcast(value))[0];
    const std::uint16_t portable = float_to_half_portable(broadcast(value))[width - 1];
    wrong += one != portable;
    wrong +=
        posenc_test::is_nan(value) ? !posenc_test::is_nan(value_of_half(one)) : one != nearest_half(value);
  });
  CHECK(wrong == 0);
}

TEST_CASE("a bfloat16 is the upper half of a float, rounded to nearest, ties to even", "[pack][unit]") {
  int wrong = 0;
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits)
    wrong += std::bit_cast<std::uint32_t>(bfloat16_to_float(all(static_cast<std::uint16_t>(bits)))[0]) !=
             bits << 16;
  for_some_floats([&](float value) {
    const std::uint16_t one = float_to_bfloat16(broadcast(value))[width - 1];
    const float back = std::bit_cast<float>(static_cast<std::uint32_t>(one) << 16);
    if (posenc_test::is_nan(value)) {
      wrong += !posenc_test::is_nan(back);
      return;
    }
    // Neither neighbour is nearer, and of two as near the even one was taken.
    const std::uint32_t bits = std::bit_cast<std::uint32_t>(value), rest = bits & 0xffffu;
    const bool up = rest > 0x8000u || (rest == 0x8000u && (bits >> 16) % 2 == 1);
    wrong += one != static_cast<std::uint16_t>((bits >> 16) + (up ? 1u : 0u));
  });
  CHECK(wrong == 0);
}

TEMPLATE_TEST_CASE("a part of a pack reads and writes nothing else", "[pack][unit]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using C = compute_t<TestType>;
  for (Index count = 0; count < pack_size<C>; ++count) {
    TestType from[64], to[64];
    for (int i = 0; i < 64; ++i) from[i] = static_cast<TestType>(i + 1), to[i] = static_cast<TestType>(-1);
    const Pack<C> part = load_part(from, count);
    store_part(to, part, count);
    for (Index i = 0; i < 64; ++i)
      CHECK(static_cast<float>(to[i]) == (i < count ? static_cast<float>(i + 1) : -1.0f));
    for (Index i = count; i < pack_size<C>; ++i) CHECK(part[i] == C{0});
  }
}

TEMPLATE_TEST_CASE("interleave takes turns to the last number, and writes no more", "[pack][unit]", float,
                   double) {
  for (Index n = 0; n <= 3 * pack_size<TestType>; ++n) {
    std::vector<TestType> a, b, out(static_cast<std::size_t>(2 * n + 3), TestType{-1});
    for (Index i = 0; i < n; ++i)
      a.push_back(static_cast<TestType>(2 * i)), b.push_back(static_cast<TestType>(2 * i + 1));
    interleave(a.data(), b.data(), n, out.data());
    for (Index i = 0; i < 2 * n + 3; ++i)
      CHECK(out[static_cast<std::size_t>(i)] == (i < 2 * n ? static_cast<TestType>(i) : TestType{-1}));
  }
}
