#pragma once
// What the machine allows, in loops that know nothing of posenc. limits.cpp is compiled with -O3
// -march=native whatever the flags of the benchmarks beside it, and shares no inline function with them: so
// one program can hold a generic build of posenc and the native limit it is measured against.

#include <cstddef>
#include <cstdint>

namespace posenc_bench {

/// x *= c.
void scale(float* x, std::size_t size, float c);
void scale(double* x, std::size_t size, double c);
/// The same for 16-bit floats given as their bits: widened, multiplied in float, rounded to nearest even.
/// Needs F16C.
void scale_f16(std::uint16_t* x, std::size_t size, float c);
void scale_bf16(std::uint16_t* x, std::size_t size, float c);
bool has_f16();

/// Row i of out is row ids[i] of the table.
void gather(char* out, const char* table, const std::int32_t* ids, std::size_t rows, std::size_t row_bytes);

}  // namespace posenc_bench
