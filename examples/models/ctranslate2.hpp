#pragma once
// The binary format of CTranslate2, versions 2 and 6, little-endian:
//
//   uint32 version, text spec, uint32 revision, uint32 count, then each variable:
//     text name, uint8 rank, uint32 dims[rank], uint8 type, uint32 size, the numbers
//   version 6 only: uint32 count of aliases, each: text alias, text name
//
//   text       uint16 length with the NUL at its end, then the characters
//   version 2  type is the width of a number (4: float32, 2: int16, 1: int8), size counts numbers
//   version 6  type is a code (0: float32, 1: int8, 2: int16, 3: int32, 4: float16, 5: bfloat16), size counts
//              bytes
//
// Quantised weights come with a variable `name`_scale: one factor for each row (int8) or one for all (int16),
// and stand for stored / factor. Linear maps are (out, in).

#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/byte_reader.hpp"
#include "models/error.hpp"

namespace models {

/// The variables of a file, by name; their numbers stay where they are, so the bytes must outlive this.
class Ctranslate2File {
 public:
  struct Variable {
    std::vector<std::int64_t> shape;
    NumberType type = NumberType::f32;
    Bytes bytes = {};

    std::size_t count() const { return bytes.size() / width_of(type); }
  };

  /// Reads and checks everything but the numbers themselves. Throws an InputError that names the file.
  Ctranslate2File(Bytes bytes, std::string name) : name_(std::move(name)) {
    ByteReader reader(bytes, name_);
    version_ = reader.number<std::uint32_t>("its version");
    if (version_ != 2 && version_ != 6)
      reader.fail("not a CTranslate2 model of binary version 2 or 6: it starts with " +
                  std::to_string(version_));
    spec_ = text(reader, "the name of its architecture");
    revision_ = reader.number<std::uint32_t>("its revision");
    const auto variables = reader.number<std::uint32_t>("its number of variables");
    reader.count({variables}, least_variable_bytes, "its list of variables");
    for (std::uint32_t n = 0; n < variables; ++n) read_variable(reader);
    if (version_ == 6) {
      const auto aliases = reader.number<std::uint32_t>("its number of aliases");
      reader.count({aliases}, 2 * least_text_bytes, "its list of aliases");
      for (std::uint32_t n = 0; n < aliases; ++n) {
        std::string alias = text(reader, "an alias");
        const std::string target = text(reader, "alias " + alias);
        const auto found = variables_.find(target);
        if (found == variables_.end()) reader.fail("alias " + alias + ": there is no variable " + target);
        add(reader, std::move(alias), Variable(found->second));
      }
    }
    reader.require_end();
  }

  const std::string& name() const { return name_; }
  std::uint32_t version() const { return version_; }
  const std::string& spec() const { return spec_; }
  std::uint32_t revision() const { return revision_; }
  const std::map<std::string, Variable>& variables() const { return variables_; }
  /// Bytes of numbers in the file; what an alias names is counted once.
  std::uint64_t stored_bytes() const { return stored_bytes_; }

  [[noreturn]] void fail(const std::string& what) const { throw InputError(name_ + ": " + printable(what)); }

  const Variable* find(const std::string& variable) const {
    const auto found = variables_.find(variable);
    return found == variables_.end() ? nullptr : &found->second;
  }

  /// The variable of this name and, unless `shape` is empty, of this shape.
  const Variable& require(const std::string& variable, std::span<const std::int64_t> shape = {}) const {
    const Variable* found = find(variable);
    if (found == nullptr) fail("it has no variable " + variable);
    if (!shape.empty() && !std::equal(shape.begin(), shape.end(), found->shape.begin(), found->shape.end()))
      fail(variable + ": expected shape " + shape_text(shape) + ", got " + shape_text(found->shape));
    return *found;
  }

  /// What a variable stands for, row-major, all finite; quantised ones are divided by their scale.
  std::vector<float> floats(const std::string& variable) const {
    const Variable& stored = require(variable);
    std::vector<float> values = widened(variable, stored);
    if (stored.type != NumberType::i8 && stored.type != NumberType::i16) return values;
    const std::string of_scale = variable + "_scale";
    const Variable& scale = require(of_scale);
    if (scale.type != NumberType::f32) fail(of_scale + ": expected float32");
    const std::size_t rows = stored.type == NumberType::i8 && !stored.shape.empty()
                                 ? static_cast<std::size_t>(stored.shape[0])
                                 : 1;
    if (scale.count() != rows)
      fail(of_scale + ": expected " + std::to_string(rows) + " numbers, got " +
           std::to_string(scale.count()));
    const std::vector<float> factors = widened(of_scale, scale);
    const std::size_t columns = rows == 0 ? 0 : values.size() / rows;
    for (std::size_t row = 0; row < rows; ++row)
      for (std::size_t n = row * columns; n < (row + 1) * columns; ++n) {
        values[n] /= factors[row];
        if (!std::isfinite(values[n])) fail(variable + " divided by its scale is not finite");
      }
    return values;
  }

  /// A number that is an option of the model, if it is there.
  std::optional<std::int64_t> option(const std::string& variable) const {
    const Variable* found = find(variable);
    if (found == nullptr) return std::nullopt;
    if (!found->shape.empty()) fail(variable + ": expected a single number");
    switch (found->type) {
      case NumberType::i8: return number_at<std::int8_t>(found->bytes, 0);
      case NumberType::i16: return number_at<std::int16_t>(found->bytes, 0);
      case NumberType::i32: return number_at<std::int32_t>(found->bytes, 0);
      default: fail(variable + ": expected an integer");
    }
  }

 private:
  static constexpr std::size_t least_text_bytes = 3;  // its length, one character or none, the NUL
  static constexpr std::size_t least_variable_bytes = least_text_bytes + 1 + 1 + 4;
  static constexpr std::int64_t most_dimensions = 8;

  static std::string text(ByteReader& reader, const std::string& what) {
    const auto length = reader.number<std::uint16_t>("the length of " + what);
    const std::string_view all = reader.text(length, what);
    if (all.empty() || all.find('\0') != all.size() - 1)
      reader.fail(what + " is not a text with a NUL at its end");
    return std::string(all.substr(0, all.size() - 1));
  }

  void read_variable(ByteReader& reader) {
    std::string variable = text(reader, "the name of a variable");
    const auto rank = reader.number<std::uint8_t>("the rank of " + variable, 0, most_dimensions);
    Variable read;
    std::vector<std::uint64_t> dims;
    for (int axis = 0; axis < rank; ++axis) {
      dims.push_back(reader.number<std::uint32_t>("the shape of " + variable));
      read.shape.push_back(static_cast<std::int64_t>(dims.back()));
    }
    read.type = number_type(reader, variable);
    const std::size_t width = width_of(read.type);
    const std::uint64_t size = reader.number<std::uint32_t>("the size of " + variable);
    const std::size_t count = reader.count(dims, width, variable);
    const std::uint64_t expected = version_ == 2 ? count : std::uint64_t{count} * width;
    if (size != expected)
      reader.fail(variable + ": its shape " + shape_text(read.shape) + " needs a size of " +
                  std::to_string(expected) + ", it has " + std::to_string(size));
    read.bytes = reader.bytes(std::uint64_t{count} * width, variable);
    stored_bytes_ += read.bytes.size();
    add(reader, std::move(variable), std::move(read));
  }

  NumberType number_type(ByteReader& reader, const std::string& variable) const {
    const auto code = reader.number<std::uint8_t>("the type of " + variable);
    const auto unknown = [&](const char* expected) {
      reader.fail(variable + ": expected a type of " + expected + ", got " + std::to_string(code));
    };
    if (version_ == 2) {
      if (code != 1 && code != 2 && code != 4) unknown("1, 2 or 4 bytes");
      return code == 4 ? NumberType::f32 : code == 2 ? NumberType::i16 : NumberType::i8;
    }
    constexpr NumberType types[] = {NumberType::f32, NumberType::i8,  NumberType::i16,
                                    NumberType::i32, NumberType::f16, NumberType::bf16};
    if (code >= std::size(types)) unknown("0 to 5");
    return types[code];
  }

  void add(const ByteReader& reader, std::string variable, Variable read) {
    const auto [at, added] = variables_.emplace(std::move(variable), std::move(read));
    if (!added) reader.fail("it has two variables " + at->first);
  }

  std::vector<float> widened(const std::string& variable, const Variable& stored) const {
    std::vector<float> values(stored.count());
    if (!to_floats(stored.bytes, stored.type, values)) fail(variable + " holds a number that is not finite");
    return values;
  }

  std::string name_, spec_;
  std::uint32_t version_ = 0, revision_ = 0;
  std::uint64_t stored_bytes_ = 0;
  std::map<std::string, Variable> variables_;
};

}  // namespace models
