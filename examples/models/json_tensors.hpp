#pragma once
// Tensors in a JSON file, as some projects publish small models and activations of them:
//
//   {"config": {...}, "name": {"shape": [3, 48], "dtype": "torch.float32", "data": "<base64>"}, ...}
//
// where data is the base64 (RFC 4648) of little-endian float32 numbers, row-major.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/byte_reader.hpp"
#include "models/error.hpp"
#include "models/mapped_file.hpp"

namespace models {

struct JsonTensor {
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // row-major
};

struct JsonTensors {
  std::string name;  // of the file
  nlohmann::json config;
  std::map<std::string, JsonTensor> tensors;

  const JsonTensor& at(const std::string& tensor) const {
    const auto found = tensors.find(tensor);
    if (found == tensors.end()) throw InputError(name + ": it has no tensor " + printable(tensor));
    return found->second;
  }
};

/// Weights are finite; masked scores among activations are -infinity.
enum class Infinities { refused, allowed };

namespace detail {

/// The bytes that a text in base64 stands for; false where it is none.
inline bool decode_base64(std::string_view text, std::vector<unsigned char>& bytes) {
  static constexpr auto digits = [] {
    std::array<std::int8_t, 256> of{};
    of.fill(-1);
    constexpr std::string_view alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (std::size_t n = 0; n < alphabet.size(); ++n)
      of[static_cast<unsigned char>(alphabet[n])] = static_cast<std::int8_t>(n);
    return of;
  }();
  if (text.size() % 4 != 0) return false;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with("=") ? 1 : 0;
  bytes.clear();
  bytes.reserve(text.size() / 4 * 3);
  for (std::size_t at = 0; at < text.size(); at += 4) {
    const std::size_t missing = at + 4 == text.size() ? padding : 0;
    std::uint32_t group = 0;
    for (std::size_t n = 0; n < 4; ++n) {
      const std::int8_t digit =
          n + missing >= 4 ? std::int8_t{0} : digits[static_cast<unsigned char>(text[at + n])];
      if (digit < 0) return false;
      group = group << 6 | static_cast<std::uint32_t>(digit);
    }
    for (std::size_t n = 0; n + missing < 3; ++n)
      bytes.push_back(static_cast<unsigned char>(group >> (16 - 8 * n) & 0xffu));
  }
  return true;
}

}  // namespace detail

/// Reads a file of at most 64 MiB. Throws an InputError that names it.
inline JsonTensors parse_json_tensors(Bytes bytes, const std::string& name,
                                      Infinities infinities = Infinities::refused) {
  using Json = nlohmann::json;
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  ByteReader reader(bytes, name);
  const auto fail = [&](const std::string& what) { reader.fail("not a JSON file of tensors: " + what); };
  if (reader.size() > most_bytes) fail("larger than 64 MiB");
  const Json json = Json::parse(reader.text(reader.size(), "its text"), nullptr, false);
  if (!json.is_object()) fail("it is not a JSON object");
  JsonTensors out;
  out.name = name;
  std::vector<unsigned char> decoded;
  for (const auto& item : json.items()) {
    const std::string& key = item.key();
    const Json& entry = item.value();
    if (key == "config") {
      out.config = entry;
      continue;
    }
    const auto shape = entry.find("shape"), dtype = entry.find("dtype"), data = entry.find("data");
    if (!entry.is_object() || shape == entry.end() || dtype == entry.end() || data == entry.end())
      fail(key + ": expected an object with shape, dtype and data");
    if (*dtype != "torch.float32") fail(key + ": expected dtype torch.float32");
    if (!shape->is_array() || shape->size() > 8) fail(key + ": its shape is not a short list");
    if (!data->is_string()) fail(key + ": its data is not a text");
    const std::string& base64 = data->get_ref<const std::string&>();
    JsonTensor tensor;
    std::uint64_t count = 1;
    for (const Json& length : *shape) {
      if (!length.is_number_unsigned() || length.get<std::uint64_t>() > most_bytes)
        fail(key + ": its shape is impossible");
      count *= length.get<std::uint64_t>();
      if (count > base64.size()) fail(key + ": its shape needs more than its data");
      tensor.shape.push_back(length.get<std::int64_t>());
    }
    if (!detail::decode_base64(base64, decoded)) fail(key + ": its data is not base64");
    if (decoded.size() != count * sizeof(float))
      fail(key + ": its shape " + shape_text(tensor.shape) + " needs " +
           std::to_string(count * sizeof(float)) + " bytes, it has " + std::to_string(decoded.size()));
    tensor.values.resize(count);
    const bool finite = to_floats(decoded, NumberType::f32, tensor.values);
    const auto bad = [&](float value) {
      return std::isnan(value) || (infinities == Infinities::refused && std::isinf(value));
    };
    if (!finite && std::any_of(tensor.values.begin(), tensor.values.end(), bad))
      reader.fail(key + " holds a number that is not finite");
    out.tensors.emplace(key, std::move(tensor));
  }
  return out;
}

inline JsonTensors read_json_tensors(const std::string& path, Infinities infinities = Infinities::refused) {
  const MappedFile file(path);
  return parse_json_tensors(file.bytes(), file.path(), infinities);
}

}  // namespace models
