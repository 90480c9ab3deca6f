#pragma once
// Writes JSON files of tensors, also broken ones, for tests and fuzzing.

#include <cstdint>
#include <cstring>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace posenc_test {

inline std::string base64(const std::vector<float>& values) {
  constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::vector<unsigned char> bytes(values.size() * sizeof(float));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  std::string text;
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const std::size_t left = bytes.size() - at;
    const auto byte = [&](std::size_t n) { return n < left ? std::uint32_t{bytes[at + n]} : 0u; };
    const std::uint32_t group = byte(0) << 16 | byte(1) << 8 | byte(2);
    for (std::size_t n = 0; n < 4; ++n) text += n > left ? '=' : digits[group >> (18 - 6 * n) & 63u];
  }
  return text;
}

/// Values that differ, in about [-1, 1].
inline std::vector<float> some_values(std::size_t count) {
  std::vector<float> values;
  for (std::size_t n = 0; n < count; ++n) values.push_back(static_cast<float>(n * 37 % 101) / 50.0f - 1.0f);
  return values;
}

inline nlohmann::ordered_json json_tensor(const std::vector<std::size_t>& shape,
                                          const std::vector<float>& values) {
  return {{"shape", shape}, {"dtype", "torch.float32"}, {"data", base64(values)}};
}

/// A whole minGPT: 3 letters, 4 wide, one layer, one head. `change` may break it.
inline std::string min_gpt_file(const std::function<void(nlohmann::ordered_json&)>& change = {}) {
  nlohmann::ordered_json file = {{"config", {{"n_layer", 1}, {"n_head", 1}}}};
  const auto add = [&](const std::string& name, const std::vector<std::size_t>& shape) {
    std::size_t count = 1;
    for (const std::size_t length : shape) count *= length;
    file[name] = json_tensor(shape, some_values(count));
  };
  add("transformer.wte.weight", {3, 4});
  add("transformer.wpe.weight", {2, 4});
  const std::string layer = "transformer.h.0.";
  for (const char* norm : {"ln_1", "ln_2"})
    add(layer + norm + ".weight", {4}), add(layer + norm + ".bias", {4});
  add(layer + "attn.bias", {1, 1, 2, 2});
  add(layer + "attn.c_attn.weight", {12, 4});
  add(layer + "attn.c_attn.bias", {12});
  add(layer + "attn.c_proj.weight", {4, 4});
  add(layer + "attn.c_proj.bias", {4});
  add(layer + "mlp.c_fc.weight", {5, 4});
  add(layer + "mlp.c_fc.bias", {5});
  add(layer + "mlp.c_proj.weight", {4, 5});
  add(layer + "mlp.c_proj.bias", {4});
  add("transformer.ln_f.weight", {4});
  add("transformer.ln_f.bias", {4});
  add("lm_head.weight", {3, 4});
  if (change) change(file);
  return file.dump();
}

}  // namespace posenc_test
