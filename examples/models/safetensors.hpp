#pragma once
// The safetensors format: 8 bytes with the length of a JSON header (little-endian), the header, then the
// numbers.
//
//   {"__metadata__": {"key": "text"}, "name": {"dtype": "F16", "shape": [2, 3], "data_offsets": [0, 12]},
//   ...}
//
// Reading trusts nothing: every length is checked against the file before memory is taken for it.

#include <Eigen/Core>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "models/byte_reader.hpp"
#include "models/error.hpp"
#include "models/mapped_file.hpp"

namespace models {

/// A tensor where it lies in the file.
struct StoredTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  NumberType type = NumberType::f32;
  Bytes bytes;  // row-major, as many as shape and type need
};

/// What a file holds; the numbers are still in its bytes.
struct SafetensorsIndex {
  std::map<std::string, std::string> metadata;
  std::vector<StoredTensor> tensors;  // in the order of their data

  /// The tensor of this name, or null.
  const StoredTensor* find(std::string_view name) const {
    const auto found = std::find_if(tensors.begin(), tensors.end(),
                                    [&](const StoredTensor& tensor) { return tensor.name == name; });
    return found == tensors.end() ? nullptr : &*found;
  }
};

/// The same with all numbers read.
struct NamedTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<float> values;  // row-major
};

struct Safetensors {
  std::map<std::string, std::string> metadata;
  std::vector<NamedTensor> tensors;  // in the order of their data
};

enum class StoredAs { f32, f16 };

/// Finds the tensors, of dtype F32, F16 or BF16, in the bytes of a file, which must outlive the result.
/// Throws an InputError that starts with `path` and says what is wrong.
inline SafetensorsIndex index_safetensors(Bytes bytes, const std::string& path) {
  using Json = nlohmann::json;
  constexpr std::uint64_t most_header_bytes = std::uint64_t{1} << 24;
  ByteReader file(bytes, path);
  const auto fail = [&](const std::string& what) { file.fail("not a safetensors file: " + what); };
  if (file.size() < 8) fail("shorter than 8 bytes");
  const auto header_bytes = file.number<std::uint64_t>("header");
  if (header_bytes > most_header_bytes || header_bytes > file.left())
    fail("its header claims " + std::to_string(header_bytes) + " bytes");
  const std::string_view text = file.text(header_bytes, "header");
  const Bytes data = file.bytes(file.left(), "data");
  if (!text.starts_with('{')) fail("its header is not a JSON object");
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) fail("its header is not JSON");

  SafetensorsIndex out;
  struct Extent {
    std::uint64_t first, last;
    StoredTensor tensor;
  };
  std::vector<Extent> extents;
  for (const auto& item : header.items()) {
    const std::string& name = item.key();
    const Json& entry = item.value();
    if (name == "__metadata__") {
      if (!entry.is_object()) fail("__metadata__ is not an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) fail("__metadata__ holds something else than text");
        out.metadata[key] = value.get<std::string>();
      }
      continue;
    }
    const auto field = [&](const char* key) -> const Json& {
      if (!entry.is_object() || !entry.contains(key)) fail("tensor \"" + name + "\" has no " + key);
      return entry[key];
    };
    const Json &dtype = field("dtype"), &shape = field("shape"), &offsets = field("data_offsets");
    if (dtype != "F32" && dtype != "F16" && dtype != "BF16")
      fail("tensor \"" + name + "\": expected dtype F32, F16 or BF16");
    const NumberType type = dtype == "F32"   ? NumberType::f32
                            : dtype == "F16" ? NumberType::f16
                                             : NumberType::bf16;
    const std::uint64_t width = width_of(type);
    if (!shape.is_array() || shape.size() > 8) fail("tensor \"" + name + "\": its shape is not a short list");
    Extent extent{0, 0, {name, {}, type, {}}};
    std::uint64_t count = 1;
    for (const Json& length : shape) {
      // No length and no product of lengths may exceed what the file can hold, so nothing overflows.
      const bool fits = length.is_number_unsigned() && length.get<std::uint64_t>() <= data.size();
      if (!fits) fail("tensor \"" + name + "\": its shape is impossible");
      count *= length.get<std::uint64_t>();
      if (count > data.size()) fail("tensor \"" + name + "\": larger than the file");
      extent.tensor.shape.push_back(static_cast<std::int64_t>(length.get<std::uint64_t>()));
    }
    if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
        !offsets[1].is_number_unsigned())
      fail("tensor \"" + name + "\": data_offsets are not two numbers");
    extent.first = offsets[0].get<std::uint64_t>();
    extent.last = offsets[1].get<std::uint64_t>();
    if (extent.first > extent.last || extent.last > data.size())
      fail("tensor \"" + name + "\": its data ends beyond the end of the file");
    if (extent.last - extent.first != count * width)
      fail("tensor \"" + name + "\": its shape needs " + std::to_string(count * width) + " bytes, it has " +
           std::to_string(extent.last - extent.first));
    extents.push_back(std::move(extent));
  }

  std::sort(extents.begin(), extents.end(), [](const Extent& a, const Extent& b) {
    return a.first != b.first ? a.first < b.first : a.last < b.last;
  });
  std::uint64_t at = 0;
  for (Extent& extent : extents) {
    if (extent.first != at) fail("tensor \"" + extent.tensor.name + "\" overlaps another or leaves a gap");
    at = extent.last;
  }
  if (at != data.size()) fail("it has " + std::to_string(data.size() - at) + " bytes too many");

  for (Extent& extent : extents) {
    extent.tensor.bytes = data.subspan(extent.first, extent.last - extent.first);
    out.tensors.push_back(std::move(extent.tensor));
  }
  return out;
}

/// The numbers of a tensor, all finite; out.size() is that of the tensor.
inline void read_floats(const StoredTensor& tensor, std::span<float> out, const std::string& path) {
  if (!to_floats(tensor.bytes, tensor.type, out))
    throw InputError(path + ": tensor \"" + printable(tensor.name) + "\" holds a number that is not finite");
}

/// Reads every tensor of a file. Throws an InputError that names the file and what is wrong with it.
inline Safetensors read_safetensors(const std::string& path) {
  const MappedFile file(path);
  SafetensorsIndex index = index_safetensors(file.bytes(), path);
  Safetensors out{std::move(index.metadata), {}};
  for (StoredTensor& stored : index.tensors) {
    std::vector<float> values(stored.bytes.size() / width_of(stored.type));
    read_floats(stored, values, path);
    out.tensors.push_back({std::move(stored.name), std::move(stored.shape), std::move(values)});
  }
  return out;
}

/// Writes a file that read_safetensors() accepts. The file appears when it is complete, never half of it.
inline void write_safetensors(const std::string& path, const Safetensors& content, StoredAs stored_as) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  header["__metadata__"] = content.metadata;
  std::string data;
  for (const NamedTensor& tensor : content.tensors) {
    const std::size_t first = data.size();
    for (const float value : tensor.values) {
      char bytes[4] = {};
      std::size_t width = 4;
      if (stored_as == StoredAs::f32) {
        std::memcpy(bytes, &value, 4);
      } else {
        const Eigen::half half(value);
        std::memcpy(bytes, &half, 2);
        width = 2;
      }
      const float stored = stored_as == StoredAs::f32 ? value : static_cast<float>(Eigen::half(value));
      if (!std::isfinite(stored))
        throw InputError(path + ": not written: tensor \"" + tensor.name +
                         "\" holds a number that is not finite");
      data.append(bytes, width);
    }
    header[tensor.name] = {{"dtype", stored_as == StoredAs::f32 ? "F32" : "F16"},
                           {"shape", tensor.shape},
                           {"data_offsets", {first, data.size()}}};
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');  // the data starts at a multiple of 8
  const std::uint64_t header_bytes = text.size();
  const std::string unfinished = path + ".part";
  {
    std::ofstream file(unfinished, std::ios::binary | std::ios::trunc);
    file.write(reinterpret_cast<const char*>(&header_bytes), 8);
    file.write(text.data(), static_cast<std::streamsize>(text.size()));
    file.write(data.data(), static_cast<std::streamsize>(data.size()));
    file.close();
    if (!file) {
      std::remove(unfinished.c_str());
      throw InputError(path + ": cannot be written");
    }
  }
  std::error_code error;
  std::filesystem::rename(unfinished, path, error);
  if (error) {
    std::remove(unfinished.c_str());
    throw InputError(path + ": cannot be written");
  }
}

}  // namespace models
