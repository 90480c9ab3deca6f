#pragma once
// How a call of posenc fails: with std::invalid_argument (a shape, an option) or std::out_of_range (an id, a
// position), and a message that names the argument, what was expected and what came. Nothing has been written
// to any output by then.
//
// Without exceptions (-fno-exceptions) the same message goes to stderr and the program ends with std::abort.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "posenc/core/language.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// The only place that throws.
template <class Exception>
[[noreturn]] inline void raise(const std::string& message) {
#if defined(__cpp_exceptions)
  throw Exception("posenc: " + message);
#else
  std::fprintf(stderr, "posenc: %s\n", message.c_str());
  std::abort();
#endif
}

inline std::string text(const char* value) { return value; }
inline std::string text(const std::string& value) { return value; }
inline std::string text(bool value) { return value ? "true" : "false"; }
inline std::string text(double value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%.17g", value);
  return buffer;
}
template <class Integer>
  requires std::is_integral_v<Integer>
std::string text(Integer value) {
  return std::to_string(value);
}

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string whole;
  (whole.append(text(parts)), ...);
  return whole;
}

/// A wrong shape, size, option or configuration.
template <class... Parts>
[[noreturn]] void invalid(const Parts&... parts) {
  raise<std::invalid_argument>(concat(parts...));
}

/// An id or a position beyond what the encoder knows.
template <class... Parts>
[[noreturn]] void out_of_range(const Parts&... parts) {
  raise<std::out_of_range>(concat(parts...));
}

/// "axis": expected `expected`, got `got`.
template <class Expected, class Got>
void require_equal(const char* what, const Expected& expected, const Got& got) {
  if (expected != got) invalid(what, ": expected ", expected, ", got ", got);
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
