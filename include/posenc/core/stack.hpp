#pragma once
// Working memory of a kernel. Hot paths allocate nothing, so it lies on the stack; and a thread of musl or of
// WebAssembly has as little as 64 KiB of that. So each buffer has a function call of its own, no frame is
// larger than 16 KiB, and all buffers of a verb together take less than 48 KiB.

#include <array>
#include <cstddef>

#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// Bytes of the largest buffer.
inline constexpr std::size_t stack_bytes = 15 * 1024;

/// An uninitialised buffer of `Size` numbers, and f(its first number). Inlining would put it into the
/// caller's frame.
template <class T, std::size_t Size, class F>
[[gnu::noinline]] void with_buffer(const F& f) {
  static_assert(Size * sizeof(T) <= stack_bytes);
  alignas(64) std::array<T, Size> buffer;
  f(buffer.data());
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
