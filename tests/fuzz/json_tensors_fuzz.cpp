// libFuzzer target for JSON files of tensors and the minGPT in them: the bytes are a file.
//
// Only models::InputError may escape the readers, and a model that was read can be run.

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "fuzz/start_from.hpp"
#include "models/error.hpp"
#include "models/json_tensors.hpp"
#include "models/min_gpt.hpp"
#include "support/json_tensors_writer.hpp"
#include "transformer/language_model.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string whole = posenc_test::min_gpt_file();
  return posenc_test::start_from(whole, data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const models::Bytes bytes(data, size);
  try {
    models::parse_json_tensors(bytes, "fuzz", models::Infinities::allowed);
    const auto model = models::read_min_gpt<float>(models::parse_json_tensors(bytes, "fuzz"));
    transformer::logits<float>(model, transformer::Tokens{0});
  } catch (const models::InputError&) {
  }
  return 0;
}
