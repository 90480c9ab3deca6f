// libFuzzer target for the GGUF reader. An even first byte: the rest is a file. An odd one: the rest chooses
// an architecture and values for keys that exist, which random bytes would hardly spell.
//
//   clang++ -std=c++20 -O1 -g -fsanitize=fuzzer,address,undefined -Iinclude -Itests -isystem <eigen>
//   gguf_config_fuzz.cpp
//
// Only std::invalid_argument and std::out_of_range may escape the library.

#include <bit>
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <stdexcept>
#include <string>
#include <variant>

#include "fuzz/choices.hpp"
#include "posenc/io/gguf_config.hpp"

namespace {

using posenc_test::Choices;

constexpr const char* architectures[] = {
    "llama",     "llama4",   "qwen2",   "qwen2vl",  "qwen3vl", "qwen35", "glm4",        "hunyuan_vl",
    "deepseek2", "mistral3", "gemma3",  "gemma4",   "cohere2", "olmo2",  "modern-bert", "step35",
    "phi3",      "granite",  "lfm2",    "baichuan", "bloom",   "mpt",    "gpt2",        "t5",
    "jamba",     "mamba",    "smollm3", "minicpm3", "gptj",    "?"};

constexpr const char* keys[] = {"block_count",
                                "context_length",
                                "embedding_length",
                                "attention.head_count",
                                "attention.head_count_kv",
                                "attention.key_length",
                                "attention.key_length_mla",
                                "attention.key_length_swa",
                                "attention.sliding_window",
                                "attention.sliding_window_pattern",
                                "attention.recurrent_layers",
                                "attention.max_alibi_bias",
                                "attention.relative_buckets_count",
                                "attention.temperature_length",
                                "attention.temperature_scale",
                                "decoder_block_count",
                                "full_attention_interval",
                                "rope.dimension_count",
                                "rope.dimension_count_swa",
                                "rope.dimension_sections",
                                "rope.freq_base",
                                "rope.freq_base_swa",
                                "rope.scale_linear",
                                "rope.scaling.type",
                                "rope.scaling.factor",
                                "rope.scaling.alpha",
                                "rope.scaling.attn_factor",
                                "rope.scaling.original_context_length",
                                "rope.scaling.finetuned",
                                "rope.scaling.yarn_log_multiplier",
                                "rope.scaling.yarn_ext_factor",
                                "rope.scaling.yarn_attn_factor",
                                "rope.scaling.yarn_beta_fast",
                                "rope.scaling.yarn_beta_slow",
                                "rope.unknown"};

constexpr const char* words[] = {"none", "linear", "yarn", "longrope", "", "other"};
constexpr double reals[] = {0, 1, 0.1, 4, 8, 32, 10000, 1e6, -1, 0.5, 1e300, 1e-300};

posenc::GgufValue value(Choices& choices) {
  switch (choices.byte() % 9) {
    case 0: return choices.byte() % 2 == 0;
    case 1: return choices.number(1);
    case 2: return choices.number(2);
    case 3: return choices.number(8);
    case 4: return static_cast<std::int64_t>(choices.number(8));
    case 5: return choices.one_of(reals);
    case 6: return std::bit_cast<double>(choices.number(8));
    case 7: return std::string(choices.one_of(words));
    default: break;
  }
  posenc::GgufList list{.type = posenc::GgufType::i32};
  const std::size_t count = choices.byte() % 9;
  for (std::size_t i = 0; i < count; ++i) list.integers.push_back(static_cast<std::int8_t>(choices.byte()));
  list.count = count;
  return list;
}

posenc::GgufMetadata metadata(Choices& choices) {
  posenc::GgufMetadata file;
  const std::string arch = choices.one_of(architectures);
  file.values["general.architecture"] = arch;
  file.values[arch + ".block_count"] = std::uint64_t{4};
  file.values[arch + ".context_length"] = std::uint64_t{4096};
  file.values[arch + ".embedding_length"] = std::uint64_t{64};
  file.values[arch + ".attention.head_count"] = std::uint64_t{4};
  const std::uint8_t tensors = choices.byte();
  const char* names[] = {"rope_freqs", "rope_factors_long", "rope_factors_short"};
  for (int i = 0; i < 3; ++i)
    if ((tensors >> i) % 2 == 1) file.rope_tensors[names[i]] = std::vector<double>(8, choices.one_of(reals));
  if ((tensors >> 3) % 2 == 1) file.tensors["position_embd.weight"] = {.shape = {64, choices.number(2)}};
  while (choices.left()) file.values[arch + "." + choices.one_of(keys)] = value(choices);
  return file;
}

/// Everything that a description promises.
void use(const posenc::ModelPositions& model) {
  for (const auto& stack : model.stacks)
    for (const auto& layer : stack.layers)
      if (const auto* rotary = std::get_if<posenc::RotaryLayer>(&layer.scheme)) {
        for (const posenc::Index length : {posenc::Index{1}, rotary->max_position_embeddings.value_or(0)}) {
          const auto frequencies = rotary->frequencies(length);
          rotary->window.first(frequencies.head_dim, frequencies.rotary_dim());
        }
      } else if (const auto* alibi = std::get_if<posenc::AlibiConfig>(&layer.scheme)) {
        if (alibi->num_heads > 0) posenc::Alibi{*alibi};
      }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  try {
    if (data[0] % 2 == 0) {
      const std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
      std::istringstream in(file);
      use(posenc::model_positions_from_gguf(posenc::read_gguf_metadata(in, file.size())));
    } else {
      Choices choices(data + 1, size - 1);
      use(posenc::model_positions_from_gguf(metadata(choices)));
    }
  } catch (const std::invalid_argument&) {
  } catch (const std::out_of_range&) {
  }
  return 0;
}
