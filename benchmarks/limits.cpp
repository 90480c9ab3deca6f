#include "limits.hpp"

#include <string.h>

#ifdef __F16C__
#include <immintrin.h>
#endif

namespace posenc_bench {

void scale(float* x, std::size_t size, float c) {
  for (std::size_t i = 0; i < size; ++i) x[i] *= c;
}

void scale(double* x, std::size_t size, double c) {
  for (std::size_t i = 0; i < size; ++i) x[i] *= c;
}

namespace {

float widen_bf16(std::uint16_t bits) {
  const std::uint32_t wide = static_cast<std::uint32_t>(bits) << 16;
  float value;
  memcpy(&value, &wide, sizeof value);
  return value;
}

std::uint16_t narrow_bf16(float value) {
  std::uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  return static_cast<std::uint16_t>((value != value ? bits | 0x400000 : rounded) >> 16);
}

}  // namespace

void scale_f16([[maybe_unused]] std::uint16_t* x, [[maybe_unused]] std::size_t size,
               [[maybe_unused]] float c) {
#ifdef __F16C__
  // Eight at a time: converting sixteen costs more than twice as much on Zen 4.
  const __m256 factor = _mm256_set1_ps(c);
  const auto product = [&](const std::uint16_t* at) {
    return _mm256_mul_ps(_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at))), factor);
  };
  const auto store = [](std::uint16_t* at, __m256 value) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at),
                     _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  };
  std::size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    const __m256 a = product(x + i), b = product(x + i + 8), d = product(x + i + 16), e = product(x + i + 24);
    store(x + i, a), store(x + i + 8, b), store(x + i + 16, d), store(x + i + 24, e);
  }
  for (; i < size; ++i)
    x[i] = static_cast<std::uint16_t>(_mm_extract_epi16(
        _mm_cvtps_ph(_mm_set_ss(_mm_cvtss_f32(_mm_cvtph_ps(_mm_cvtsi32_si128(x[i]))) * c), 0), 0));
#endif
}

bool has_f16() {
#ifdef __F16C__
  return true;
#else
  return false;
#endif
}

void scale_bf16(std::uint16_t* x, std::size_t size, float c) {
  std::size_t i = 0;
#if defined(__AVX512BF16__) && defined(__AVX512BW__)
  const __m512 factor = _mm512_set1_ps(c);
  for (; i + 32 <= size; i += 32) {
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i)));
    const __m512i high =
        _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(x + i + 16)));
    const __m512 a = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(low, 16)), factor);
    const __m512 b = _mm512_mul_ps(_mm512_castsi512_ps(_mm512_slli_epi32(high, 16)), factor);
    const __m512bh both = _mm512_cvtne2ps_pbh(b, a);
    memcpy(x + i, &both, sizeof both);
  }
#endif
  for (; i < size; ++i) x[i] = narrow_bf16(widen_bf16(x[i]) * c);
}

void gather(char* out, const char* table, const std::int32_t* ids, std::size_t rows, std::size_t row_bytes) {
  for (std::size_t i = 0; i < rows; ++i)
    memcpy(out + i * row_bytes, table + static_cast<std::size_t>(ids[i]) * row_bytes, row_bytes);
}

}  // namespace posenc_bench
