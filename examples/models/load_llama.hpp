#pragma once
// A Llama from a file in either format, and its tokenizer.

#include <cstddef>
#include <filesystem>
#include <string>
#include <system_error>

#include "models/error.hpp"
#include "models/hf_llama.hpp"
#include "models/llama.hpp"
#include "models/llama2c.hpp"
#include "models/llama_tokenizer.hpp"
#include "models/mapped_file.hpp"

namespace models {

template <class Scalar>
struct Llama {
  transformer::LanguageModel<Scalar> network;
  transformer::Index context;  ///< the longest text that it was trained on, in tokens
};

/// Whether a file is a safetensors file, if it is one of a model at all: its JSON starts at byte 8.
inline bool looks_like_safetensors(Bytes bytes) { return bytes.size() > 8 && bytes[8] == '{'; }

/// Reads a .safetensors file with a config.json beside it, or a file of llama2.c. Throws an InputError that
/// names the file and says what is wrong.
template <class Scalar>
Llama<Scalar> load_llama(const std::string& path) {
  const MappedFile file(path);
  LlamaWeights weights;
  if (looks_like_safetensors(file.bytes())) {
    const MappedFile config(config_beside(path));
    const std::string_view text(reinterpret_cast<const char*>(config.bytes().data()), config.bytes().size());
    weights = read_hf_llama(file.bytes(), path, read_llama_config(text, config.path()));
  } else {
    weights = read_llama2c(file.bytes(), path);
  }
  return {make_llama<Scalar>(weights), weights.context};
}

/// The tokenizer of a model with so many tokens.
inline LlamaTokenizer load_llama_tokenizer(const std::string& path, transformer::Index vocab_size) {
  const MappedFile file(path);
  return LlamaTokenizer(file.bytes(), path, static_cast<std::size_t>(vocab_size));
}

/// Where a model's tokenizer usually is: in its folder, as tokenizer.bin or tok512.bin (for 512 tokens).
/// Throws an InputError where neither is there.
inline std::string tokenizer_beside(const std::string& path, transformer::Index vocab_size) {
  const auto folder = std::filesystem::path(path).parent_path();
  const std::string by_size = "tok" + std::to_string(vocab_size) + ".bin";
  for (const std::string& name : {std::string("tokenizer.bin"), by_size}) {
    std::error_code error;
    if (std::filesystem::exists(folder / name, error)) return (folder / name).string();
  }
  throw InputError(path + ": expected its tokenizer beside it, tokenizer.bin or " + by_size);
}

}  // namespace models
