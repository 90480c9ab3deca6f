#pragma once
// std::bit_cast for the standard library of Emscripten 3.1.6, which is older than its compiler. scripts/page
// includes this file before all others; nothing else does.

#include <version>

#if !defined(__cpp_lib_bit_cast)
namespace std {
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}
}  // namespace std
#endif
