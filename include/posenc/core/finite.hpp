#pragma once
// What has to hold under -ffast-math and -Ofast as well. These flags let a compiler take it that no number is
// NaN or infinite, so it leaves out every question whether one is, and they let it reorder sums, so it cancels
// the a in (x + a) - a. Here are the question asked of the bits, infinity made of them, and a value that no
// expression is reordered across. Nothing of it costs an instruction without these flags.
//
// Numbers are IEEE's float and double, each operation rounded to its own type.

#if defined(__FLT_EVAL_METHOD__) && __FLT_EVAL_METHOD__ != 0 && __FLT_EVAL_METHOD__ != 16
#error "posenc: expected float and double to round to themselves; with x87 say -msse2 -mfpmath=sse"
#endif

#include <bit>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "posenc/core/language.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// An unsigned integer of the size of C.
template <std::floating_point C>
using BitsOf = std::conditional_t<sizeof(C) == 4, std::uint32_t, std::uint64_t>;
/// The bits of infinity; those of NaN are beyond, without the sign.
template <std::floating_point C>
inline constexpr BitsOf<C> infinity_bits =
    static_cast<BitsOf<C>>(sizeof(C) == 4 ? 0x7f800000u : 0x7ff0000000000000u);
template <std::floating_point C>
inline constexpr BitsOf<C> sign_bit = BitsOf<C>{1} << (8 * sizeof(C) - 1);

/// x, a number or a pack of them, as a value of which the compiler knows nothing: it neither cancels what was
/// added before with what is subtracted after, nor fuses the two. An empty statement: x stays in its register.
template <class T>
[[gnu::always_inline]] inline T opaque(T x) {
#if defined(__x86_64__) || defined(__SSE2__)
  if constexpr (std::integral<T>)
    asm("" : "+r"(x));
  else
    asm("" : "+v"(x));
  return x;
#elif defined(__aarch64__)
  if constexpr (std::integral<T>)
    asm("" : "+r"(x));
  else
    asm("" : "+w"(x));
  return x;
#elif defined(__FAST_MATH__)
  volatile T kept = x;
  return kept;
#else
  return x;
#endif
}

/// a / b, rounded once: not a product with a reciprocal that was rounded before.
[[gnu::always_inline]] inline double quotient(double a, double b) {
#if defined(__x86_64__) || defined(__SSE2__)
  asm volatile("" : "+v"(b));
#elif defined(__aarch64__)
  asm volatile("" : "+w"(b));
#elif defined(__FAST_MATH__)
  volatile double kept = b;
  b = kept;
#endif
  return opaque(a / b);
}
/// a b, rounded: not fused with a sum that follows.
[[gnu::always_inline]] inline double product(double a, double b) { return opaque(a * b); }

/// The bits of x without the sign. By reference: an argument by value is one of which clang takes it that it
/// is finite.
template <std::floating_point C>
[[gnu::always_inline]] inline BitsOf<C> magnitude_bits(const C& x) {
  return opaque(std::bit_cast<BitsOf<C>>(x)) & ~sign_bit<C>;
}
/// Neither infinite nor NaN.
template <std::floating_point C>
[[gnu::always_inline]] inline bool is_finite(const C& x) {
  return magnitude_bits(x) < infinity_bits<C>;
}
template <std::floating_point C>
[[gnu::always_inline]] inline bool is_infinite(const C& x) {
  return magnitude_bits(x) == infinity_bits<C>;
}
template <std::floating_point C>
[[gnu::always_inline]] inline bool is_nan(const C& x) {
  return magnitude_bits(x) > infinity_bits<C>;
}
/// Finite and above 0.
template <std::floating_point C>
[[gnu::always_inline]] inline bool is_positive(const C& x) {
  return is_finite(x) && x > 0;
}
/// In [least, most], and so not NaN.
template <std::floating_point C>
[[gnu::always_inline]] inline bool is_within(const C& x, C least, C most) {
  return !is_nan(x) && x >= least && x <= most;
}

/// -infinity: what a hidden key has for a score.
template <std::floating_point C>
[[gnu::always_inline]] inline C minus_infinity() {
  return std::bit_cast<C>(opaque(infinity_bits<C> | sign_bit<C>));
}
/// Whether x is that.
template <std::floating_point C>
[[gnu::always_inline]] inline bool is_minus_infinity(const C& x) {
  return std::bit_cast<BitsOf<C>>(x) == (infinity_bits<C> | sign_bit<C>);
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
