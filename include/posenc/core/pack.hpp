#pragma once
// As many numbers as a register of the target holds, worked on together: the vector types of GCC and Clang,
// which every flag set compiles to what it has (16 bytes of SSE2 or NEON, 32 of AVX, 64 of AVX-512), also at
// -O2. What these types don't offer - one fused multiply-add, a half of IEEE - is the one use of intrinsics
// here, and has a portable form of the same bits next to it.
//
// A run that is no multiple of a pack is finished by a partial pack through the same operations, so a
// number's bits depend neither on its place nor on the length of the run.

#include <Eigen/Core>

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "posenc/core/finite.hpp"
#include "posenc/core/scalar.hpp"

#if !defined(__GNUC__)
#error "posenc: expected g++ 12 or clang 14 or newer; the kernels are written in their vector types"
#endif

#if defined(__FMA__) || defined(__F16C__) || defined(__AVX2__) || defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace posenc {
inline namespace v0 {
namespace detail {

#if defined(__AVX512F__)
inline constexpr std::size_t pack_bytes = 64;
#elif defined(__AVX__)
inline constexpr std::size_t pack_bytes = 32;
#else
inline constexpr std::size_t pack_bytes = 16;
#endif

/// Bytes / sizeof(T) numbers in a register.
template <class T, std::size_t Bytes>
struct PackOf {
  typedef T type __attribute__((vector_size(Bytes)));  // an alias can't carry the attribute in every compiler
};
template <class T>
using Pack = typename PackOf<T, pack_bytes>::type;

/// Numbers of type T in a pack.
template <class T>
inline constexpr Index pack_size = static_cast<Index>(pack_bytes / sizeof(T));

/// As many T as a pack of C has numbers.
template <class T, class C>
using PackLike = typename PackOf<T, pack_bytes / sizeof(C) * sizeof(T)>::type;

/// The bits of a pack as those of another type of its size.
template <class To, class From>
[[gnu::always_inline]] inline To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  return reinterpret_cast<To>(from);
}

/// The same number in all places.
template <class C>
[[gnu::always_inline]] inline Pack<C> broadcast(C value) {
  return value - Pack<C>{};  // a sum would lose the sign of -0
}

/// a b + c: rounded once where the hardware can, twice where it can't; the same for a number and for a pack.
/// It is written down because a compiler that is left to choose fuses one version of a loop and not the next.
[[gnu::always_inline]] inline float multiply_add(float a, float b, float c) {
#if defined(__FMA__) || defined(__AVX512F__) || defined(FP_FAST_FMAF)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
[[gnu::always_inline]] inline double multiply_add(double a, double b, double c) {
#if defined(__FMA__) || defined(__AVX512F__) || defined(FP_FAST_FMA)
  return std::fma(a, b, c);
#else
  return a * b + c;
#endif
}
[[gnu::always_inline]] inline Pack<float> multiply_add(Pack<float> a, Pack<float> b, Pack<float> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_ps(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_ps(a, b, c);
#elif defined(FP_FAST_FMAF)
  for (Index i = 0; i < pack_size<float>; ++i) a[i] = std::fma(a[i], b[i], c[i]);
  return a;
#else
  return a * b + c;
#endif
}
[[gnu::always_inline]] inline Pack<double> multiply_add(Pack<double> a, Pack<double> b, Pack<double> c) {
#if defined(__AVX512F__)
  return _mm512_fmadd_pd(a, b, c);
#elif defined(__FMA__)
  return _mm256_fmadd_pd(a, b, c);
#elif defined(FP_FAST_FMA)
  for (Index i = 0; i < pack_size<double>; ++i) a[i] = std::fma(a[i], b[i], c[i]);
  return a;
#else
  return a * b + c;
#endif
}

/// a b, rounded: no compiler fuses it with a sum that follows.
[[gnu::always_inline]] inline Pack<float> multiply(Pack<float> a, Pack<float> b) { return opaque(a * b); }
[[gnu::always_inline]] inline Pack<double> multiply(Pack<double> a, Pack<double> b) { return opaque(a * b); }

/// c + c1 x + c2 x^2 + ... by Horner's rule. Written out: g++ keeps a loop over an array of coefficients at
/// -O2.
template <std::floating_point C, class... More>
[[gnu::always_inline]] inline Pack<C> polynomial(Pack<C> x, double c, More... more) {
  if constexpr (sizeof...(More) == 0)
    return broadcast(static_cast<C>(c));
  else
    return multiply_add(polynomial<C>(x, more...), x, broadcast(static_cast<C>(c)));
}

/// a where the mask (all ones or all zeros per number) is set, else b.
template <class U>
[[gnu::always_inline]] inline U select(U mask, U a, U b) {
  return (a & mask) | (b & ~mask);
}

/// |x|.
[[gnu::always_inline]] inline Pack<double> absolute(Pack<double> x) {
  return bits_as<Pack<double>>(bits_as<Pack<std::uint64_t>>(x) & 0x7fffffffffffffffu);
}

/// (x1, x0, x3, x2, ...).
template <class P>
[[gnu::always_inline]] inline P swap_neighbours(P x) {
  constexpr std::size_t size = sizeof(P) / sizeof(x[0]);
  if constexpr (size == 2)
    return __builtin_shufflevector(x, x, 1, 0);
  else if constexpr (size == 4)
    return __builtin_shufflevector(x, x, 1, 0, 3, 2);
  else if constexpr (size == 8)
    return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6);
  else
    return __builtin_shufflevector(x, x, 1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14);
}

/// (a0, b0, a1, b1, ...): the first half of it, or the second.
template <bool Second, class P>
[[gnu::always_inline]] inline P interleave_half(P a, P b) {
  constexpr std::size_t size = sizeof(P) / sizeof(a[0]);
  constexpr int n = static_cast<int>(size), h = Second ? n / 2 : 0;
  if constexpr (size == 2)
    return __builtin_shufflevector(a, b, h, h + n);
  else if constexpr (size == 4)
    return __builtin_shufflevector(a, b, h, h + n, h + 1, h + n + 1);
  else if constexpr (size == 8)
    return __builtin_shufflevector(a, b, h, h + n, h + 1, h + n + 1, h + 2, h + n + 2, h + 3, h + n + 3);
  else
    return __builtin_shufflevector(a, b, h, h + n, h + 1, h + n + 1, h + 2, h + n + 2, h + 3, h + n + 3,
                                   h + 4, h + n + 4, h + 5, h + n + 5, h + 6, h + n + 6, h + 7, h + n + 7);
}

/// (a0, a1, ..., b0, b1, ...).
template <class P>
[[gnu::always_inline]] inline auto concatenate(P a, P b) {
  constexpr std::size_t size = sizeof(P) / sizeof(a[0]);
  if constexpr (size == 2)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3);
  else if constexpr (size == 4)
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7);
  else
    return __builtin_shufflevector(a, b, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
}

// ---- 16 bits. All float values, subnormal ones too; the rounding is to nearest, ties to even.

using Bits16 = PackLike<std::uint16_t, float>;
using Bits32 = Pack<std::uint32_t>;

// Integers of 16 bits as integers of 32, and the lower half of those again.
[[gnu::always_inline]] inline Bits32 to_32_bits(Bits16 bits) {
#if defined(__AVX512F__)
  return bits_as<Bits32>(_mm512_maskz_cvtepu16_epi32(0xffff, bits_as<__m256i>(bits)));
#elif defined(__AVX2__)
  return bits_as<Bits32>(_mm256_cvtepu16_epi32(bits_as<__m128i>(bits)));
#else
  return __builtin_convertvector(bits, Bits32);
#endif
}
[[gnu::always_inline]] inline Bits16 to_16_bits(Bits32 bits) {
#if defined(__AVX512F__)
  return bits_as<Bits16>(_mm512_maskz_cvtepi32_epi16(0xffff, bits_as<__m512i>(bits)));
#elif defined(__AVX2__)
  const auto all = bits_as<__m256i>(bits);
  return bits_as<Bits16>(_mm_packus_epi32(_mm256_castsi256_si128(all), _mm256_extracti128_si256(all, 1)));
#else
  return __builtin_convertvector(bits, Bits16);
#endif
}

/// The value of IEEE halves, without instructions for them.
[[gnu::always_inline]] inline Pack<float> half_to_float_portable(Bits16 half) {
  const Bits32 h = to_32_bits(half);
  const Bits32 sign = (h & 0x8000u) << 16, magnitude = (h & 0x7fffu) << 13;
  const Bits32 exponent = magnitude & 0x0f800000u;
  const Bits32 normal = magnitude + 0x38000000u;  // the exponent counts from -127, not from -15
  const Bits32 special = normal + 0x38000000u;    // infinity and NaN keep theirs at the top
  const auto lifted = bits_as<Pack<float>>(normal + 0x00800000u) - 0x1p-14f;  // subnormal: exact
  const auto infinite = bits_as<Bits32>(exponent == 0x0f800000u), subnormal = bits_as<Bits32>(exponent == 0u);
  const Bits32 result =
      select(infinite, special | ((magnitude & 0x007fffffu) != 0u ? Bits32{} + 0x00400000u : Bits32{}),
             select(subnormal, bits_as<Bits32>(lifted), normal));
  return bits_as<Pack<float>>(result | sign);
}

/// IEEE halves, rounded, without instructions for them.
[[gnu::always_inline]] inline Bits16 float_to_half_portable(Pack<float> values) {
  const auto f = bits_as<Bits32>(values);
  const Bits32 sign = (f >> 16) & 0x8000u, a = f & 0x7fffffffu;
  const Bits32 normal = (a + 0xc8000fffu + ((a >> 13) & 1u)) >> 13;
  // The sum rounds to 2^-24.
  const Bits32 subnormal = bits_as<Bits32>(bits_as<Pack<float>>(a) + 0.5f) - 0x3f000000u;
  const Bits32 nan = ((a >> 13) & 0x3ffu) | 0x7e00u;
  Bits32 result = select(bits_as<Bits32>(a < 0x38800000u), subnormal, normal);
  result = select(bits_as<Bits32>(a >= 0x47800000u), Bits32{} + 0x7c00u, result);
  result = select(bits_as<Bits32>(a > 0x7f800000u), nan, result);
  return to_16_bits(result | sign);
}

[[gnu::always_inline]] inline Pack<float> half_to_float(Bits16 half) {
#if defined(__AVX512F__)
  return _mm512_maskz_cvtph_ps(0xffff, bits_as<__m256i>(half));  // g++ 12 warns about its own unmasked form
#elif defined(__F16C__)
  return _mm256_cvtph_ps(bits_as<__m128i>(half));
#else
  return half_to_float_portable(half);
#endif
}

[[gnu::always_inline]] inline Bits16 float_to_half(Pack<float> values) {
#if defined(__AVX512F__)
  return bits_as<Bits16>(
      _mm512_maskz_cvtps_ph(0xffff, values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#elif defined(__F16C__)
  return bits_as<Bits16>(_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
#else
  return float_to_half_portable(values);
#endif
}

/// bfloat16 is the upper half of a float.
[[gnu::always_inline]] inline Pack<float> bfloat16_to_float(Bits16 bfloat16) {
#if defined(__AVX512BW__)
  // Word i to the upper half of number i, in one step.
  const __m512i from =
      _mm512_set_epi32(0xf0000, 0xe0000, 0xd0000, 0xc0000, 0xb0000, 0xa0000, 0x90000, 0x80000, 0x70000,
                       0x60000, 0x50000, 0x40000, 0x30000, 0x20000, 0x10000, 0);
  return bits_as<Pack<float>>(
      _mm512_maskz_permutexvar_epi16(0xaaaaaaaau, from, _mm512_castsi256_si512(bits_as<__m256i>(bfloat16))));
#else
  return bits_as<Pack<float>>(to_32_bits(bfloat16) << 16);
#endif
}

[[gnu::always_inline]] inline Bits16 float_to_bfloat16_portable(Pack<float> values) {
  const auto f = bits_as<Bits32>(values);
  const Bits32 rounded = (f + 0x7fffu + ((f >> 16) & 1u)) >> 16, nan = ((f >> 16) & 0x8000u) | 0x7fc0u;
#if defined(__FINITE_MATH_ONLY__) && __FINITE_MATH_ONLY__
  const auto is_nan = bits_as<Bits32>((f & 0x7fffffffu) > 0x7f800000u);  // one instruction more
#else
  const auto is_nan = bits_as<Bits32>(values != values);
#endif
  return to_16_bits(select(is_nan, nan, rounded));
}

// The instruction rounds as it should, but takes subnormal numbers for zero and has a NaN of its own: whether
// none of the packs holds one of these.
template <class... Packs>
[[gnu::always_inline]] inline bool bfloat16_instruction_fits([[maybe_unused]] const Packs&... packs) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  constexpr int special = 0x01 | 0x20 | 0x80;  // quiet NaN, subnormal, signalling NaN
  return __builtin_expect((0 | ... | _mm512_fpclass_ps_mask(packs, special)) == 0, 1);
#else
  return false;
#endif
}

/// The same where it fits.
[[gnu::always_inline]] inline Bits16 float_to_bfloat16_by_instruction(Pack<float> values) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  return bits_as<Bits16>(_mm512_maskz_cvtneps_pbh(0xffff, values));
#else
  return float_to_bfloat16_portable(values);
#endif
}

[[gnu::always_inline]] inline auto float_to_bfloat16_by_instruction(Pack<float> first, Pack<float> second) {
#if defined(__AVX512BF16__) && defined(__AVX512DQ__)
  return bits_as<Pack<std::uint16_t>>(_mm512_maskz_cvtne2ps_pbh(0xffffffffu, second, first));
#else
  return concatenate(float_to_bfloat16_portable(first), float_to_bfloat16_portable(second));
#endif
}

[[gnu::always_inline]] inline Bits16 float_to_bfloat16(Pack<float> values) {
  return bfloat16_instruction_fits(values) ? float_to_bfloat16_by_instruction(values)
                                           : float_to_bfloat16_portable(values);
}

// ---- memory: any alignment, any scalar type

/// pack_size<compute_t<S>> numbers, widened.
template <scalar_type S>
[[gnu::always_inline]] inline Pack<compute_t<S>> load_pack(const S* from) {
  if constexpr (std::same_as<S, compute_t<S>>) {
    Pack<S> pack;
    std::memcpy(&pack, from, sizeof pack);
    return pack;
  } else {
    Bits16 bits;
    std::memcpy(&bits, static_cast<const void*>(from), sizeof bits);
    if constexpr (std::same_as<S, Eigen::half>)
      return half_to_float(bits);
    else
      return bfloat16_to_float(bits);
  }
}

/// The same number of them, rounded.
template <scalar_type S>
[[gnu::always_inline]] inline void store_pack(S* to, Pack<compute_t<S>> pack) {
  if constexpr (std::same_as<S, compute_t<S>>) {
    std::memcpy(to, &pack, sizeof pack);
  } else {
    Bits16 bits;
    if constexpr (std::same_as<S, Eigen::half>)
      bits = float_to_half(pack);
    else
      bits = float_to_bfloat16(pack);
    std::memcpy(static_cast<void*>(to), &bits, sizeof bits);
  }
}

/// Asks for memory that will be used soon; any address will do. A processor sees a run coming by itself, but
/// not early enough, and not where the next run begins.
[[gnu::always_inline]] inline void prefetch(const void* at) { __builtin_prefetch(at, 1); }
/// The n numbers that are `ahead` of `from`.
template <class S>
[[gnu::always_inline]] inline void prefetch(const S* from, Index ahead, Index n) {
  constexpr std::uintptr_t size = sizeof(S), line = 64;
  const auto first = reinterpret_cast<std::uintptr_t>(from) + static_cast<std::uintptr_t>(ahead) * size;
  const std::uintptr_t bytes = static_cast<std::uintptr_t>(n) * size;
  for (std::uintptr_t i = 0; i < bytes; i += line) prefetch(reinterpret_cast<const void*>(first + i));
}
/// How far ahead of the work that pays, in bytes; and where smaller memory is near anyway.
inline constexpr Index prefetch_ahead = 8192, prefetch_from = 1 << 20;

/// store_pack for several packs: what has to be asked of the numbers is asked of all of them together.
/// Joined: packs 2 i and 2 i + 1 are neighbours in memory.
template <bool Joined, scalar_type S, std::size_t N>
[[gnu::always_inline]] inline void store_packs(S* const (&to)[N], const Pack<compute_t<S>> (&packs)[N]) {
  const auto store = [](void* at, auto bits)
                         __attribute__((always_inline)) { std::memcpy(at, &bits, sizeof bits); };
  [&]<std::size_t... i>(std::index_sequence<i...>) __attribute__((always_inline)) {
    if constexpr (std::same_as<S, Eigen::bfloat16>) {
      if (bfloat16_instruction_fits(packs[i]...)) {
        if constexpr (Joined)
          ((i % 2 == 0 ? store(to[i], float_to_bfloat16_by_instruction(packs[i], packs[i + 1 - i % 2]))
                       : void()),
           ...);
        else
          (store(to[i], float_to_bfloat16_by_instruction(packs[i])), ...);
      } else {
        (store(to[i], float_to_bfloat16_portable(packs[i])), ...);
      }
    } else {
      (store_pack(to[i], packs[i]), ...);
    }
  }(std::make_index_sequence<N>());
}

/// The first `count` numbers of a pack, the others zero.
template <scalar_type S>
inline Pack<compute_t<S>> load_part(const S* from, Index count) {
  S part[static_cast<std::size_t>(pack_size<compute_t<S>>)] = {};
  for (Index i = 0; i < count; ++i) part[i] = from[i];
  return load_pack(part);
}
/// Numbers [skip, skip + count) of a pack.
template <scalar_type S>
inline void store_part(S* to, Pack<compute_t<S>> pack, Index count, Index skip = 0) {
  S part[static_cast<std::size_t>(pack_size<compute_t<S>>)];
  store_pack(part, pack);
  for (Index i = 0; i < count; ++i) to[i] = part[skip + i];
}

/// to[i] = f(from[i]...) for i in [0, n): f of packs, the numbers widened before it and rounded after.
template <scalar_type To, class F, scalar_type... From>
inline void map_run(To* to, Index n, const F& f, const From*... from) {
  constexpr Index step = pack_size<compute_t<To>>;
  Index i = 0;
  for (; i + step <= n; i += step) store_pack(to + i, f(load_pack(from + i)...));
  if (i < n) store_part(to + i, f(load_part(from + i, n - i)...), n - i);
}

/// store_part, where the whole pack is the usual case.
template <std::floating_point C>
[[gnu::always_inline]] inline void store_lanes(C* to, Pack<C> pack, std::size_t skip, std::size_t count) {
  if (count == std::size_t{pack_size<C>}) {
    store_pack(to, pack);
  } else {
    store_part(to, pack, static_cast<Index>(count), static_cast<Index>(skip));
  }
}

/// Two packs of double as one of float, rounded.
[[gnu::always_inline]] inline Pack<float> narrow_packs(Pack<double> first, Pack<double> second) {
  using Half = PackLike<float, double>;
  return concatenate(__builtin_convertvector(first, Half), __builtin_convertvector(second, Half));
}

/// The first `count` numbers of a pack, as a float or double each.
template <std::floating_point C>
[[gnu::always_inline]] inline void store_doubles(C* to, Pack<double> pack, Index count) {
  const auto narrow = __builtin_convertvector(pack, PackLike<C, double>);
  if (count >= pack_size<double>) {
    std::memcpy(to, &narrow, sizeof narrow);
  } else {
    for (Index i = 0; i < count; ++i) to[i] = narrow[i];
  }
}

/// out = (a0, b0, a1, b1, ...), n of each.
template <std::floating_point C>
inline void interleave(const C* a, const C* b, Index n, C* out) {
  Index i = 0;
  for (; i + pack_size<C> <= n; i += pack_size<C>) {
    const Pack<C> x = load_pack(a + i), y = load_pack(b + i);
    store_pack(out + 2 * i, interleave_half<false>(x, y));
    store_pack(out + 2 * i + pack_size<C>, interleave_half<true>(x, y));
  }
  for (; i < n; ++i) out[2 * i] = a[i], out[2 * i + 1] = b[i];
}

// ---- what a softmax needs

/// The larger of two, b where one of them is NaN: what x86 calls maxps.
template <class P>
[[gnu::always_inline]] inline P larger(P a, P b) {
  return a > b ? a : b;
}

/// op of all numbers of a pack, by halves: always in the same order.
template <class P, class Op>
[[gnu::always_inline]] inline auto fold(P x, const Op& op) {
  constexpr int size = static_cast<int>(sizeof(P) / sizeof(x[0]));
  const auto step = [&]<int Away, int... At>(std::integral_constant<int, Away>,
                                             std::integer_sequence<int, At...>) {
    if constexpr (Away < size) x = op(x, __builtin_shufflevector(x, x, (At ^ Away)...));
  };
  constexpr auto places = std::make_integer_sequence<int, size>();
  step(std::integral_constant<int, 8>(), places);
  step(std::integral_constant<int, 4>(), places);
  step(std::integral_constant<int, 2>(), places);
  step(std::integral_constant<int, 1>(), places);
  return x[0];
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
