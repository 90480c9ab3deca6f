// libFuzzer target for safetensors files, and for a Llama in one: two bytes with the length of a config.json,
// that text, and the file.
//
// Only models::InputError may escape the readers, and a model that was read can be run.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "fuzz/start_from.hpp"
#include "models/error.hpp"
#include "models/hf_llama.hpp"
#include "models/llama.hpp"
#include "models/safetensors.hpp"
#include "support/llama_files.hpp"
#include "transformer/language_model.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string whole = [] {
    const posenc_test::LlamaSizes sizes{.dim = 4, .hidden = 2, .layers = 1, .heads = 2, .kv_heads = 1};
    const std::string config = posenc_test::llama_config(sizes);
    std::string start;
    posenc_test::append_number(start, static_cast<std::uint16_t>(config.size()));
    return start + config + posenc_test::llama_safetensors(sizes);
  }();
  return posenc_test::start_from(whole, data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const models::Bytes all(data, size);
  if (size < 2) return 0;
  const std::size_t length = models::number_at<std::uint16_t>(all, 0);
  const models::Bytes rest = all.subspan(2);
  if (length > rest.size()) return 0;
  const std::string_view config(reinterpret_cast<const char*>(rest.data()), length);
  const models::Bytes file = rest.subspan(length);
  try {
    for (const models::StoredTensor& tensor : models::index_safetensors(file, "fuzz").tensors) {
      std::vector<float> values(tensor.bytes.size() / models::width_of(tensor.type));
      models::read_floats(tensor, values, "fuzz");
    }
  } catch (const models::InputError&) {
  }
  try {
    const auto weights = models::read_hf_llama(file, "fuzz", models::read_llama_config(config, "fuzz"));
    const auto model = models::make_llama<float>(weights);
    transformer::Continuation<float> text(model, 1);
    const transformer::Token first = 0;
    text.read(std::span(&first, 1));
  } catch (const models::InputError&) {
  }
  return 0;
}
