#pragma once
// The header of a .gguf file: its keys, its tensors' names and places, and the few small tensors that hold
// frequencies. GGUF versions 2 and 3, little-endian.
//
//   magic "GGUF", version, tensor count, key count
//   keys     name, type, value          strings and lists carry their length
//   tensors  name, shape, type, offset  from the start of the data, which is aligned
//
// Every length is checked against the size of the file before anything is allocated.

#include <array>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <istream>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/core/error.hpp"
#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {

/// The types of values, by their number in the file.
enum class GgufType : std::uint32_t { u8, i8, u16, i16, u32, i32, f32, boolean, string, list, u64, i64, f64 };

/// A list of one type. Booleans are integers.
struct GgufList {
  GgufType type = GgufType::u8;             ///< of every element
  std::uint64_t count = 0;                  ///< elements in the file
  std::vector<std::int64_t> integers = {};  ///< the elements, where they are integers
  std::vector<double> reals = {};           ///< the elements, where they are floating-point numbers
  std::vector<std::string> strings = {};    ///< the elements, where they are strings
  bool kept = true;  ///< false: longer than any list about positions, and only its length is known
};

/// A value of the header, widened to the largest type of its kind.
using GgufValue = std::variant<bool, std::uint64_t, std::int64_t, double, std::string, GgufList>;

/// What the header says of a tensor.
struct GgufTensor {
  std::vector<std::uint64_t> shape;  ///< fastest dimension first
  std::uint32_t type = 0;            ///< 0: float32
  std::uint64_t offset = 0;          ///< from the start of the data
};

/// The header of a file. Keys of the tokenizer are checked and left out: they are most of the header and say
/// nothing about positions.
struct GgufMetadata {
  std::uint32_t version = 3;                                ///< of the format
  std::map<std::string, GgufValue> values;                  ///< by key
  std::map<std::string, GgufTensor> tensors;                ///< by name
  std::map<std::string, std::vector<double>> rope_tensors;  ///< rope_freqs, rope_factors_long and _short
};

namespace detail {

inline constexpr std::uint64_t gguf_longest_key = 65535;  // by the specification
inline constexpr std::uint64_t gguf_longest_string = std::uint64_t{1} << 24;
inline constexpr std::uint64_t gguf_longest_list = 65536;
inline constexpr Index gguf_most_layers = 1024;
inline constexpr Index gguf_widest_head = 8192;

inline const char* gguf_type_name(GgufType type) {
  constexpr std::array names = {"a u8",   "an i8",    "a u16",    "an i16", "a u32",  "an i32", "an f32",
                                "a bool", "a string", "an array", "a u64",  "an i64", "an f64"};
  return names[static_cast<std::size_t>(type)];
}

/// The size of a fixed-size type, 0 for strings and lists.
inline std::uint64_t gguf_type_size(GgufType type) {
  constexpr std::array<std::uint64_t, 13> sizes = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return sizes[static_cast<std::size_t>(type)];
}

/// Names from a file go into messages: without control characters, and not at any length.
inline std::string gguf_quoted(std::string_view name) {
  std::string quoted = "\"";
  for (const char c : name.substr(0, 80))
    quoted += static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7f ? '?' : c;
  return quoted + (name.size() > 80 ? "...\"" : "\"");
}

/// A cursor that knows how much file there is.
class GgufReader {
 public:
  GgufReader(std::istream& in, std::uint64_t size) : in_(in), size_(size) {}

  std::uint64_t at() const { return at_; }
  std::uint64_t left() const { return size_ - at_; }

  void require_bytes(std::uint64_t bytes, const std::string& what) const {
    if (bytes > left())
      invalid("gguf: ", what, ": expected ", bytes, " bytes at ", at_, ", but the file ends at ", size_);
  }

  std::uint64_t bits(std::uint64_t bytes, const std::string& what) {
    std::array<char, 8> raw{};
    take(raw.data(), bytes, what);
    std::uint64_t value = 0;
    for (std::size_t i = 0; i < bytes; ++i)
      value |= std::uint64_t{static_cast<unsigned char>(raw[i])} << (8 * i);
    return value;
  }
  std::uint32_t u32(const std::string& what) { return static_cast<std::uint32_t>(bits(4, what)); }
  std::uint64_t u64(const std::string& what) { return bits(8, what); }

  std::string string(std::uint64_t longest, const std::string& what) {
    const std::uint64_t length = u64("the length of " + what);
    require_bytes(length, what);
    if (length > longest) invalid("gguf: ", what, ": expected at most ", longest, " bytes, got ", length);
    std::string value(static_cast<std::size_t>(length), '\0');
    take(value.data(), length, what);
    return value;
  }

  void skip(std::uint64_t bytes, const std::string& what) {
    require_bytes(bytes, what);
    in_.ignore(static_cast<std::streamsize>(bytes));
    at_ += bytes;
    if (!in_) invalid("gguf: ", what, ": the file could not be read");
  }

  void seek(std::uint64_t to, const std::string& what) {
    if (to > size_)
      invalid("gguf: ", what, ": expected it before the end of the file, ", size_, ", got ", to);
    in_.seekg(static_cast<std::streamoff>(to));
    at_ = to;
  }

 private:
  void take(char* to, std::uint64_t bytes, const std::string& what) {
    require_bytes(bytes, what);
    in_.read(to, static_cast<std::streamsize>(bytes));
    at_ += bytes;
    if (!in_) invalid("gguf: ", what, ": the file could not be read");
  }

  std::istream& in_;
  std::uint64_t size_, at_ = 0;
};

inline GgufType gguf_type(std::uint32_t number, const std::string& what) {
  if (number > static_cast<std::uint32_t>(GgufType::f64))
    invalid("gguf: ", what, ": expected a type in [0, 12], got ", number);
  return static_cast<GgufType>(number);
}

inline bool is_real(GgufType type) { return type == GgufType::f32 || type == GgufType::f64; }
inline bool is_signed(GgufType type) {
  return type == GgufType::i8 || type == GgufType::i16 || type == GgufType::i32 || type == GgufType::i64;
}

inline double gguf_real(GgufReader& in, GgufType type, const std::string& what) {
  return type == GgufType::f32 ? static_cast<double>(std::bit_cast<float>(in.u32(what)))
                               : std::bit_cast<double>(in.u64(what));
}

inline std::int64_t gguf_signed(std::uint64_t bits, std::uint64_t bytes) {
  const std::uint64_t shift = 64 - 8 * bytes;
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

inline bool gguf_bool(GgufReader& in, const std::string& what) {
  const std::uint64_t value = in.bits(1, what);
  if (value > 1) invalid("gguf: ", what, ": expected a bool, 0 or 1, got ", value);
  return value == 1;
}

inline GgufList gguf_list(GgufReader& in, const std::string& what, bool keep) {
  GgufList list{.type = gguf_type(in.u32("the element type of " + what), what)};
  list.count = in.u64("the length of " + what);
  if (list.type == GgufType::list) invalid("gguf: ", what, ": expected no array of arrays");
  const std::uint64_t size = gguf_type_size(list.type);
  const std::uint64_t least = size == 0 ? 8 : size;  // a string has at least its length
  if (list.count > in.left() / least)
    invalid("gguf: ", what, ": expected at most ", in.left() / least,
            " elements in what is left of the file, got ", list.count);
  list.kept = keep && list.count <= gguf_longest_list;
  if (!list.kept && size != 0) {
    in.skip(list.count * size, what);
    return list;
  }
  for (std::uint64_t i = 0; i < list.count; ++i) {
    if (list.type == GgufType::string && !list.kept) {
      in.skip(in.u64("the length of an element of " + what), what);
    } else if (list.type == GgufType::string) {
      list.strings.push_back(in.string(gguf_longest_string, what));
    } else if (list.type == GgufType::boolean) {
      list.integers.push_back(gguf_bool(in, what) ? 1 : 0);
    } else if (is_real(list.type)) {
      list.reals.push_back(gguf_real(in, list.type, what));
    } else {
      const std::uint64_t bits = in.bits(size, what);
      if (!is_signed(list.type) && bits >> 63 != 0)
        invalid("gguf: ", what, ": expected integers below 2^63, got ", bits);
      list.integers.push_back(is_signed(list.type) ? gguf_signed(bits, size)
                                                   : static_cast<std::int64_t>(bits));
    }
  }
  return list;
}

inline GgufValue gguf_value(GgufReader& in, GgufType type, const std::string& what, bool keep) {
  if (type == GgufType::string) return in.string(gguf_longest_string, what);
  if (type == GgufType::list) return gguf_list(in, what, keep);
  if (type == GgufType::boolean) return gguf_bool(in, what);
  if (is_real(type)) return gguf_real(in, type, what);
  const std::uint64_t size = gguf_type_size(type), bits = in.bits(size, what);
  if (is_signed(type)) return gguf_signed(bits, size);
  return bits;
}

/// "rope_freqs" of "rope_freqs.weight", or nothing.
inline std::optional<std::string> rope_tensor_name(std::string name) {
  if (name.ends_with(".weight")) name.resize(name.size() - 7);
  if (name == "rope_freqs" || name == "rope_factors_long" || name == "rope_factors_short") return name;
  return std::nullopt;
}

}  // namespace detail

/// Reads the header from a stream of `size` bytes that stands at its start and can be repositioned. Throws
/// std::invalid_argument for anything that is not a GGUF header of version 2 or 3.
inline GgufMetadata read_gguf_metadata(std::istream& stream, std::uint64_t size) {
  using detail::invalid;
  detail::GgufReader in(stream, size);
  if (in.left() < 4 || in.u32("the magic number") != 0x46554747u)
    invalid("gguf: expected a file that starts with \"GGUF\"");
  GgufMetadata file;
  file.version = in.u32("the version");
  if (file.version == 0x02000000u || file.version == 0x03000000u)
    invalid("gguf: expected a little-endian file, got a big-endian one");
  if (file.version != 2 && file.version != 3) invalid("gguf: expected version 2 or 3, got ", file.version);
  const std::uint64_t tensors = in.u64("the number of tensors"), keys = in.u64("the number of keys");
  // The smallest key is a length, a type and one byte; the smallest tensor a length, a rank, a type, an
  // offset.
  if (keys > in.left() / 13)
    invalid("gguf: the number of keys: expected at most ", in.left() / 13, " in a file of ", size,
            " bytes, got ", keys);
  if (tensors > in.left() / 24)
    invalid("gguf: the number of tensors: expected at most ", in.left() / 24, " in a file of ", size,
            " bytes, got ", tensors);

  for (std::uint64_t k = 0; k < keys; ++k) {
    std::string key = in.string(detail::gguf_longest_key, detail::concat("the name of key ", k));
    const std::string what = detail::gguf_quoted(key);
    const GgufType type = detail::gguf_type(in.u32("the type of " + what), what);
    const bool keep = !key.starts_with("tokenizer.");
    GgufValue value = detail::gguf_value(in, type, what, keep);
    if (keep && !file.values.emplace(std::move(key), std::move(value)).second)
      invalid("gguf: ", what, ": expected each key once, got it twice");
  }

  for (std::uint64_t t = 0; t < tensors; ++t) {
    std::string name = in.string(detail::gguf_longest_key, detail::concat("the name of tensor ", t));
    const std::string what = "tensor " + detail::gguf_quoted(name);
    GgufTensor tensor;
    const std::uint32_t rank = in.u32("the rank of " + what);
    if (rank > 4) invalid("gguf: ", what, ": expected at most 4 dimensions, got ", rank);
    for (std::uint32_t d = 0; d < rank; ++d) tensor.shape.push_back(in.u64("the shape of " + what));
    tensor.type = in.u32("the type of " + what);
    tensor.offset = in.u64("the offset of " + what);
    if (!file.tensors.emplace(std::move(name), std::move(tensor)).second)
      invalid("gguf: ", what, ": expected each tensor once, got it twice");
  }

  std::uint64_t alignment = 32;
  if (const auto stated = file.values.find("general.alignment"); stated != file.values.end()) {
    const std::uint64_t* bytes = std::get_if<std::uint64_t>(&stated->second);
    if (bytes == nullptr || *bytes > 1u << 20 || !std::has_single_bit(*bytes))
      invalid("gguf: general.alignment: expected a power of two of at most 2^20");
    alignment = *bytes;
  }
  const std::uint64_t data = (in.at() + alignment - 1) / alignment * alignment;

  for (const auto& [name, tensor] : file.tensors) {
    const std::optional<std::string> rope = detail::rope_tensor_name(name);
    if (!rope) continue;
    const std::string what = "tensor " + detail::gguf_quoted(name);
    if (tensor.type != 0) invalid("gguf: ", what, ": expected type 0, float32, got type ", tensor.type);
    if (tensor.shape.size() != 1 || tensor.shape[0] > static_cast<std::uint64_t>(detail::gguf_widest_head))
      invalid("gguf: ", what, ": expected one dimension of at most ", detail::gguf_widest_head);
    if (tensor.offset > size || data > size)
      invalid("gguf: ", what, ": expected its data before the end of the file, ", size, ", got it at ",
              tensor.offset, " from ", data);
    if (tensor.offset % alignment != 0)
      invalid("gguf: ", what, ": expected an offset aligned to ", alignment, ", got ", tensor.offset);
    in.seek(data + tensor.offset, what);
    in.require_bytes(4 * tensor.shape[0], "the data of " + what);
    std::vector<double> factors;
    for (std::uint64_t i = 0; i < tensor.shape[0]; ++i)
      factors.push_back(detail::gguf_real(in, GgufType::f32, what));
    if (!file.rope_tensors.emplace(*rope, std::move(factors)).second)
      invalid("gguf: ", what, ": expected it once, got it twice");
  }
  return file;
}

/// Reads the header of a file. Throws std::invalid_argument also where the file can't be read.
inline GgufMetadata read_gguf_metadata(const std::filesystem::path& path) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in) detail::invalid("gguf: expected a file that can be read, got ", path.string());
  return read_gguf_metadata(in, size);
}

}  // namespace v0
}  // namespace posenc
