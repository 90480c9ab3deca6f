#pragma once
// Reads a file of little-endian numbers from front to back. It trusts nothing: every read is checked against
// the bytes that are left before memory is taken for it, counts are multiplied without overflow, and what
// becomes a float must be finite. An error is one line: the file, what was expected, and what came.

#include <Eigen/Core>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "models/error.hpp"
#include "models/mapped_file.hpp"

namespace models {

static_assert(std::endian::native == std::endian::little,
              "the formats are little-endian, and so are these programs");

/// Text of a file for a message: control characters become '?', and a long text is cut. UTF-8 stays.
inline std::string printable(std::string_view text, std::size_t most = 400) {
  std::string out(text.substr(0, most));
  for (char& c : out)
    if (const auto byte = static_cast<unsigned char>(c); byte < 0x20 || byte == 0x7f) c = '?';
  return text.size() > most ? out + "..." : out;
}

/// "(2, 3)"
inline std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t n = 0; n < shape.size(); ++n) text += (n == 0 ? "" : ", ") + std::to_string(shape[n]);
  return text + ")";
}

/// How a number is stored.
enum class NumberType { f32, f16, bf16, i8, i16, i32 };

inline std::size_t width_of(NumberType type) {
  switch (type) {
    case NumberType::f32:
    case NumberType::i32: return 4;
    case NumberType::f16:
    case NumberType::bf16:
    case NumberType::i16: return 2;
    case NumberType::i8: return 1;
  }
  return 0;
}

/// Number n of packed numbers, which may lie at any address.
template <class T>
T number_at(Bytes bytes, std::size_t n) {
  static_assert(std::is_arithmetic_v<T>);
  T value;
  std::memcpy(&value, bytes.data() + n * sizeof(T), sizeof(T));
  return value;
}

/// Packed numbers of any type as floats; bytes.size() == out.size() * width_of(type). False where one of them
/// is not finite.
inline bool to_floats(Bytes bytes, NumberType type, std::span<float> out) {
  const auto each = [&](const auto& at) {
    for (std::size_t n = 0; n < out.size(); ++n) out[n] = at(n);
  };
  switch (type) {
    case NumberType::f32:
      if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size_bytes());
      break;
    case NumberType::f16:
      each([&](std::size_t n) {
        return static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(number_at<std::uint16_t>(bytes, n)));
      });
      break;
    case NumberType::bf16:  // the upper half of a float
      each([&](std::size_t n) {
        return std::bit_cast<float>(static_cast<std::uint32_t>(number_at<std::uint16_t>(bytes, n)) << 16);
      });
      break;
    case NumberType::i8:
      each([&](std::size_t n) { return static_cast<float>(number_at<std::int8_t>(bytes, n)); });
      break;
    case NumberType::i16:
      each([&](std::size_t n) { return static_cast<float>(number_at<std::int16_t>(bytes, n)); });
      break;
    case NumberType::i32:
      each([&](std::size_t n) { return static_cast<float>(number_at<std::int32_t>(bytes, n)); });
      break;
  }
  return std::all_of(out.begin(), out.end(), [](float value) { return std::isfinite(value); });
}

class ByteReader {
 public:
  /// `name` is what messages start with, usually the path. The bytes must outlive the reader.
  ByteReader(Bytes bytes, std::string name) : bytes_(bytes), name_(std::move(name)) {}
  explicit ByteReader(const MappedFile& file) : ByteReader(file.bytes(), file.path()) {}

  const std::string& name() const { return name_; }
  std::size_t size() const { return bytes_.size(); }
  std::size_t at() const { return at_; }
  std::size_t left() const { return bytes_.size() - at_; }

  /// Throws the InputError "name: what".
  [[noreturn]] void fail(const std::string& what) const { throw InputError(name_ + ": " + printable(what)); }
  void require(bool holds, const std::string& what) const {
    if (!holds) fail(what);
  }

  /// The product of counts, as long as the file could hold that many elements of `width` bytes from here on.
  std::size_t count(std::initializer_list<std::uint64_t> counts, std::size_t width,
                    std::string_view what) const {
    return count(std::span(counts.begin(), counts.size()), width, what);
  }
  std::size_t count(std::span<const std::uint64_t> counts, std::size_t width, std::string_view what) const {
    // A zero makes an empty array whatever else there is, so it is looked for first.
    std::uint64_t product = std::find(counts.begin(), counts.end(), 0u) == counts.end() ? 1 : 0;
    const std::uint64_t most = left() / width;
    std::string text;
    for (const std::uint64_t n : counts) text += (text.empty() ? "" : " x ") + std::to_string(n);
    for (const std::uint64_t n : counts) {
      if (product != 0 && n > most / product)
        fail("truncated: " + std::string(what) + " needs " + text + " numbers of " + std::to_string(width) +
             (width == 1 ? " byte, " : " bytes, ") + std::to_string(left()) + " bytes are left");
      product *= n;
    }
    return static_cast<std::size_t>(product);
  }

  /// The next n bytes.
  Bytes bytes(std::uint64_t n, std::string_view what) {
    if (n > left())
      fail("truncated: " + std::string(what) + " needs " + std::to_string(n) + " bytes, " +
           std::to_string(left()) + " are left");
    const Bytes out = bytes_.subspan(at_, static_cast<std::size_t>(n));
    at_ += out.size();
    return out;
  }
  std::string_view text(std::uint64_t n, std::string_view what) {
    const Bytes out = bytes(n, what);
    return {reinterpret_cast<const char*>(out.data()), out.size()};
  }

  /// One number: std::int32_t, std::uint16_t, float, ...
  template <class T>
  T number(std::string_view what) {
    return number_at<T>(bytes(sizeof(T), what), 0);
  }
  /// One integer from `least` to `most`.
  template <class T>
  T number(std::string_view what, std::int64_t least, std::int64_t most) {
    static_assert(std::is_integral_v<T> && (sizeof(T) < 8 || std::is_signed_v<T>));
    const T value = number<T>(what);
    if (static_cast<std::int64_t>(value) < least || static_cast<std::int64_t>(value) > most)
      fail(std::string(what) + ": expected " + std::to_string(least) + " to " + std::to_string(most) +
           ", got " + std::to_string(value));
    return value;
  }

  /// The next numbers as floats, out.size() of them, all finite.
  void floats(std::span<float> out, NumberType type, std::string_view what) {
    if (!to_floats(bytes(out.size() * width_of(type), what), type, out))
      fail(std::string(what) + " holds a number that is not finite");
  }
  std::vector<float> floats(std::initializer_list<std::uint64_t> shape, NumberType type,
                            std::string_view what) {
    std::vector<float> out(count(shape, width_of(type), what));
    floats(out, type, what);
    return out;
  }

  void skip(std::uint64_t n, std::string_view what) { bytes(n, what); }

  /// The file must end here.
  void require_end() const {
    if (left() != 0) fail("it has " + std::to_string(left()) + " bytes too many");
  }

 private:
  Bytes bytes_;
  std::size_t at_ = 0;
  std::string name_;
};

}  // namespace models
