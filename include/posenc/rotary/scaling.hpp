#pragma once
// Every scaling scheme behind one name, for models whose scheme is known at run time only: a config file's
// rope_type. Code that knows its model calls the scheme's own function (rotary/scaling/).

#include <string>
#include <type_traits>
#include <utility>
#include <variant>

#include "posenc/rotary/frequencies.hpp"
#include "posenc/rotary/scaling/dynamic_ntk.hpp"
#include "posenc/rotary/scaling/explicit.hpp"
#include "posenc/rotary/scaling/linear.hpp"
#include "posenc/rotary/scaling/llama3.hpp"
#include "posenc/rotary/scaling/longrope.hpp"
#include "posenc/rotary/scaling/proportional.hpp"
#include "posenc/rotary/scaling/yarn.hpp"

namespace posenc {
inline namespace v0 {

struct DefaultScaling {};  ///< rope_type "default": none
/// linear_scaled as a value.
struct LinearConfig {
  double factor = 1.0;  ///< divides every frequency
};
/// ntk_alpha_frequencies as a value.
struct NtkAlphaConfig {
  double alpha = 1.0;  ///< the ratio s of the base
};

/// What a config file says about the frequencies, beyond theta and the width.
using RotaryScaling = std::variant<DefaultScaling, LinearConfig, DynamicNtkConfig, NtkAlphaConfig, YarnConfig,
                                   LongRopeConfig, Llama3Config, ProportionalConfig, GgmlYarnConfig>;

/// The rope_type as Hugging Face spells it.
inline std::string rope_type(const RotaryScaling& scaling) {
  constexpr const char* names[] = {"default",  "linear", "dynamic",      "dynamic (alpha)", "yarn",
                                   "longrope", "llama3", "proportional", "yarn (ggml)"};
  return names[scaling.index()];
}

/// Whether the frequencies depend on the length of the sequence: then they are chosen once per sequence and
/// kept.
inline bool depends_on_length(const RotaryScaling& scaling) {
  return std::holds_alternative<DynamicNtkConfig>(scaling) || std::holds_alternative<LongRopeConfig>(scaling);
}

/// The frequencies of a model for a sequence of seq_len tokens, prompt and answer together. Most schemes
/// ignore the length. Throws as the scheme's own function does.
inline RotaryFrequencies scaled_frequencies(const RotaryConfig& config, const RotaryScaling& scaling,
                                            Index seq_len) {
  if (const auto* linear = std::get_if<LinearConfig>(&scaling))
    return linear_scaled(rotary_frequencies(config), linear->factor);
  if (const auto* dynamic = std::get_if<DynamicNtkConfig>(&scaling))
    return dynamic_ntk_frequencies(config, *dynamic, seq_len);
  if (const auto* ntk = std::get_if<NtkAlphaConfig>(&scaling))
    return ntk_alpha_frequencies(config, ntk->alpha);
  if (const auto* yarn = std::get_if<YarnConfig>(&scaling)) return yarn_frequencies(config, *yarn);
  if (const auto* longrope = std::get_if<LongRopeConfig>(&scaling))
    return longrope_frequencies(config, *longrope, longrope_choice(*longrope, seq_len));
  if (const auto* llama3 = std::get_if<Llama3Config>(&scaling))
    return llama3_scaled(rotary_frequencies(config), *llama3);
  if (const auto* proportional = std::get_if<ProportionalConfig>(&scaling))
    return proportional_frequencies(config, *proportional);
  if (const auto* yarn = std::get_if<GgmlYarnConfig>(&scaling)) return ggml_yarn_frequencies(config, *yarn);
  return rotary_frequencies(config);  // DefaultScaling
}

}  // namespace v0
}  // namespace posenc
