#pragma once
// The architectures of GGUF files, and what their name alone says about positions: which pairs turn, and
// which layers differ from the others. llama.cpp has these facts in its code, not in the file.

#include <string>
#include <string_view>

#include "posenc/core/error.hpp"
#include "posenc/io/gguf_metadata.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// How an architecture of llama.cpp encodes position.
enum class GgufScheme {
  norm,           // rotary, adjacent pairs
  neox,           // rotary, half
  mrope,          // rotary, half, sections of axes
  imrope,         // rotary, half, interleaved axes
  norm_or_mrope,  // mrope where the file has sections
  neox_or_mrope,
  learned,
  alibi,  // with its usual slopes where the file states no other
  stated_alibi,
  baichuan,  // rotary with 32 layers, ALiBi with 40
  t5,
  t5_encoder,
  no_position,
  recurrent,
  refused
};

/// Which layers differ from the others, and in what.
enum class GgufMix : unsigned {
  alike = 0,
  periodic = 1,           // every `period`-th layer is full, the others slide
  first_full = 2,         // the first of a period is the full one, not the last
  always = 4,             // also where the file states no window
  own_base = 8,           // sliding layers: freq_base_swa, 10000 where it is not stated, and no scaling
  no_rope_full = 16,      // full layers don't rotate
  scaled_full_only = 32,  // sliding layers: no scaling, the same base
  factors_full_only = 64,
  listed = 128,      // the file must list the kind of each layer
  windowless = 256,  // the period has nothing to do with a window
  linear = 512       // all but every full_attention_interval-th layer is recurrent
};
constexpr GgufMix operator|(GgufMix a, GgufMix b) {
  return static_cast<GgufMix>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
constexpr bool has(GgufMix set, GgufMix one) {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(one)) != 0;
}

struct GgufArchitecture {
  std::string_view name;
  GgufScheme scheme;
  GgufMix mix = GgufMix::alike;
  Index period = 0;
  std::string_view reason = {};  // of a refusal
};

/// Throws for a name that is not in the list: there is no default that would not be wrong for some model.
inline const GgufArchitecture& gguf_architecture(const std::string& name) {
  using enum GgufScheme;
  using enum GgufMix;
  static constexpr GgufArchitecture known[] = {
      {"llama", norm},
      {"llada", norm},
      {"llama4", norm, periodic | always | no_rope_full, 4},
      {"llama-embed", norm},
      {"deci", norm},
      {"baichuan", GgufScheme::baichuan},
      {"internlm2", norm},
      {"minicpm", norm},
      {"xverse", norm},
      {"command-r", norm},
      {"cohere2", norm, periodic | always | no_rope_full, 4},
      {"cohere2moe", norm, periodic | always | no_rope_full, 4},
      {"olmo", norm},
      {"arctic", norm},
      {"deepseek", norm},
      {"deepseek2", norm},
      {"deepseek2-ocr", norm},
      {"deepseek32", norm},
      {"plm", norm},
      {"chatglm", norm},
      {"granite", norm},
      {"granitemoe", norm},
      {"granitehybrid", norm},
      {"chameleon", norm},
      {"bailingmoe", norm},
      {"neo-bert", norm},
      {"smollm3", norm, periodic | windowless | no_rope_full, 4},
      {"arcee", norm},
      {"ernie4_5", norm},
      {"ernie4_5-moe", norm},
      {"mistral3", norm},
      {"mistral4", norm},
      {"eagle3", norm},
      {"maincoder", norm},
      {"glm-dsa", norm},
      {"nanbeige", norm},

      {"falcon", neox},
      {"falcon-h1", neox},
      {"grok", neox},
      {"dbrx", neox},
      {"jina-bert-v3", neox},
      {"modern-bert", neox, periodic | first_full | own_base, 3},
      {"nomic-bert", neox},
      {"nomic-bert-moe", neox},
      {"eurobert", neox},
      {"stablelm", neox},
      {"bitnet", neox},
      {"qwen", neox},
      {"qwen2", neox},
      {"qwen2moe", neox},
      {"qwen3", neox},
      {"qwen3moe", neox},
      {"qwen3next", neox, linear, 4},
      {"dream", neox},
      {"llada-moe", neox},
      {"rnd1", neox},
      {"olmo2", neox, periodic | scaled_full_only, 4},
      {"olmoe", neox},
      {"phi2", neox},
      {"phi3", neox},
      {"phimoe", neox},
      {"plamo", neox},
      {"plamo2", neox},
      {"plamo3", neox, periodic | own_base, 8},
      {"gemma", neox},
      {"gemma2", neox, periodic, 2},
      {"gemma3", neox, periodic | own_base, 6},
      {"gemma-embedding", neox, periodic | own_base, 6},
      {"gemma3n", neox, periodic | always | own_base, 5},
      {"gemma4", neox, listed | own_base | factors_full_only},
      {"starcoder2", neox},
      {"openelm", neox},
      {"gptneox", neox},
      {"codeshell", neox},
      {"orion", neox},
      {"nemotron", neox},
      {"exaone", neox},
      {"exaone4", neox, periodic | no_rope_full, 4},
      {"exaone-moe", neox, periodic | no_rope_full, 4},
      {"minicpm3", neox},
      {"bailingmoe2", neox},
      {"dots1", neox},
      {"hunyuan-moe", neox},
      {"hunyuan-dense", neox},
      {"hy_v3", neox},
      {"jais2", neox},
      {"gpt-oss", neox, periodic | always, 2},
      {"lfm2", neox},
      {"lfm2moe", neox},
      {"smallthinker", neox, periodic | first_full | no_rope_full, 4},
      {"seed_oss", neox},
      {"grovemoe", neox},
      {"apertus", neox},
      {"minimax-m2", neox},
      {"minimax-m3", neox},
      {"cogvlm", neox},
      {"pangu-embedded", neox},
      {"afmoe", neox, periodic | always | no_rope_full, 4},
      {"mimo2", neox, listed | own_base},
      {"step35", neox, listed | own_base | factors_full_only},

      {"qwen2vl", mrope},
      {"paddleocr", mrope},
      {"qwen3vl", imrope},
      {"qwen3vlmoe", imrope},
      {"qwen35", imrope, linear, 4},
      {"qwen35moe", imrope, linear, 4},
      {"qwen3tts", imrope},
      {"glm4", norm_or_mrope},
      {"glm4moe", neox_or_mrope},
      {"hunyuan_vl", neox_or_mrope},

      {"gpt2", learned},
      {"starcoder", learned},  // in llama.cpp's list of adjacent pairs, but its graph only adds a table
      {"bert", learned},       // the same
      {"bloom", alibi},
      {"refact", alibi},
      {"jina-bert-v2", alibi},
      {"mpt", stated_alibi},
      {"jais", stated_alibi},
      {"t5", t5},
      {"t5encoder", t5_encoder},
      {"jamba", no_position},
      {"nemotron_h", no_position},
      {"nemotron_h_moe", no_position},
      {"kimi-linear", no_position},
      {"mamba", recurrent},
      {"mamba2", recurrent},
      {"rwkv6", recurrent},
      {"rwkv6qwen2", recurrent},
      {"rwkv7", recurrent},
      {"arwkv7", recurrent},

      {"clip", refused, alike, 0, "a vision or audio tower, whose position scheme its header does not state"},
      {"gptj", refused, alike, 0,
       "GPT-J rotates adjacent pairs, but llama.cpp lists it as having none and runs no such file"},
      {"wavtokenizer-dec", refused, alike, 0, "a convolutional audio decoder"},
      {"deepseek4", refused, alike, 0,
       "its layers take one of two frequency sets, and turn their output back"},
      {"laguna", refused, alike, 0, "its layers take different scalings, and the header does not say which"},
      {"mellum", refused, alike, 0, "its layers take different scalings, and the header does not say which"},
  };
  for (const GgufArchitecture& architecture : known)
    if (architecture.name == name) {
      if (architecture.scheme == refused)
        invalid("general.architecture: ", gguf_quoted(name),
                " is not described: ", std::string(architecture.reason));
      return architecture;
    }
  invalid("general.architecture: ", gguf_quoted(name),
          " is not known: which dimensions form a pair depends on it, so posenc does not guess");
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
