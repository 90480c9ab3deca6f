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
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "translate/error.hpp"

namespace translate {

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

namespace detail {

static_assert(std::endian::native == std::endian::little,
              "the format is little-endian, and so is this program");

inline constexpr std::uint64_t most_header_bytes = std::uint64_t{1} << 24;
inline constexpr std::uint64_t most_file_bytes = std::uint64_t{1} << 30;

/// The whole file; it must be of a sensible size.
inline std::string read_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error))
    throw InputError(path + ": not a file that can be read");
  const std::uintmax_t bytes = std::filesystem::file_size(path, error);
  if (error) throw InputError(path + ": cannot be read");
  if (bytes > most_file_bytes)
    throw InputError(path + ": larger than 1 GiB, too large for a model of this program");
  std::string content(static_cast<std::size_t>(bytes), '\0');
  std::ifstream file(path, std::ios::binary);
  if (!file.read(content.data(), static_cast<std::streamsize>(content.size())))
    throw InputError(path + ": cannot be read");
  return content;
}

}  // namespace detail

/// Reads tensors of dtype F32, F16 or BF16. Throws an InputError that names the file and what is wrong with
/// it.
inline Safetensors read_safetensors(const std::string& path) {
  using Json = nlohmann::json;
  const std::string content = detail::read_file(path);
  const auto fail = [&](const std::string& what) {
    throw InputError(path + ": not a safetensors file: " + what);
  };
  if (content.size() < 8) fail("shorter than 8 bytes");
  std::uint64_t header_bytes = 0;
  std::memcpy(&header_bytes, content.data(), 8);
  if (header_bytes > detail::most_header_bytes || header_bytes > content.size() - 8)
    fail("its header claims " + std::to_string(header_bytes) + " bytes");
  const std::string_view text = std::string_view(content).substr(8, header_bytes);
  const std::string_view data = std::string_view(content).substr(8 + header_bytes);
  if (!text.starts_with('{')) fail("its header is not a JSON object");
  const Json header = Json::parse(text, nullptr, false);
  if (!header.is_object()) fail("its header is not JSON");

  Safetensors out;
  struct Extent {
    std::uint64_t first, last;
    NamedTensor tensor;
    std::string dtype;
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
    const std::uint64_t width = dtype == "F32" ? 4 : 2;
    if (!shape.is_array() || shape.size() > 8) fail("tensor \"" + name + "\": its shape is not a short list");
    Extent extent{0, 0, {name, {}, {}}, dtype.get<std::string>()};
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
    NamedTensor& tensor = extent.tensor;
    const std::string_view bytes = data.substr(extent.first, extent.last - extent.first);
    const std::size_t width = extent.dtype == "F32" ? 4 : 2;
    tensor.values.resize(bytes.size() / width);
    for (std::size_t n = 0; n < tensor.values.size(); ++n) {
      const char* from = bytes.data() + n * width;
      if (width == 4) {
        std::memcpy(&tensor.values[n], from, 4);
      } else {
        std::uint16_t bits = 0;
        std::memcpy(&bits, from, 2);
        tensor.values[n] = extent.dtype == "F16"
                               ? static_cast<float>(Eigen::numext::bit_cast<Eigen::half>(bits))
                               : std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
      }
      if (!std::isfinite(tensor.values[n]))
        throw InputError(path + ": tensor \"" + tensor.name + "\" holds a number that is not finite");
    }
    out.tensors.push_back(std::move(tensor));
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

}  // namespace translate
