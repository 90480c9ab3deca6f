#pragma once
// minGPT (Karpathy): GPT-2's architecture under its names, here from a JSON file of tensors. Learned
// positions, pre-norm, tanh GELU, biases everywhere but in the output head, which is a matrix of its own.

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "models/json_tensors.hpp"
#include "models/named_weights.hpp"
#include "transformer/language_model.hpp"

namespace models {

/// Throws an InputError where the file is no minGPT.
template <class Scalar>
transformer::LanguageModel<Scalar> read_min_gpt(JsonTensors file) {
  const nlohmann::json json = std::move(file.config);
  NamedWeights weights(std::move(file));
  const auto integer = [&](const char* key, std::int64_t most) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_integer() || *found < 1 || *found > most)
      weights.fail("config: expected " + std::string(key) + " from 1 to " + std::to_string(most));
    return found->template get<std::int64_t>();
  };
  transformer::LanguageModelConfig config;
  config.vocab_size = weights.extent("transformer.wte.weight", 0);
  config.d_model = weights.extent("transformer.wte.weight", 1);
  config.max_positions = weights.extent("transformer.wpe.weight", 0);
  config.num_heads = integer("n_head", 1 << 12);
  config.num_layers = integer("n_layer", 1 << 10);
  if (config.d_model % config.num_heads != 0)
    weights.fail("config: n_head does not divide the width " + std::to_string(config.d_model));
  config.d_ff = weights.extent("transformer.h.0.mlp.c_fc.weight", 0);
  config.positions = transformer::PositionScheme::learned;
  config.activation = transformer::Activation::gelu_tanh;
  config.norm = transformer::Norm::layer_norm;
  config.norm_eps = 1e-5;
  config.attention_bias = true;
  config.output = {.tied = false, .bias = false};
  weights.require_numbers(transformer::LanguageModel<Scalar>::outline(config).parameters().count());

  transformer::LanguageModel<Scalar> model(config);
  auto& parameters = model.parameters();
  weights.fill(parameters, "embedding.weight", "transformer.wte.weight");
  weights.fill(parameters, "positions.weight", "transformer.wpe.weight");
  for (transformer::Index l = 0; l < config.num_layers; ++l) {
    const std::string ours = "layers." + std::to_string(l) + ".",
                      theirs = "transformer.h." + std::to_string(l) + ".";
    weights.drop(theirs + "attn.bias");  // the causal mask, as a table
    weights.fill_norm(parameters, ours + "self_attention_norm", theirs + "ln_1");
    weights.fill_linear(parameters, ours + "self_attention.qkv", theirs + "attn.c_attn");
    weights.fill_linear(parameters, ours + "self_attention.out", theirs + "attn.c_proj");
    weights.fill_norm(parameters, ours + "feed_forward_norm", theirs + "ln_2");
    weights.fill_linear(parameters, ours + "feed_forward.w1", theirs + "mlp.c_fc");
    weights.fill_linear(parameters, ours + "feed_forward.w2", theirs + "mlp.c_proj");
  }
  weights.fill_norm(parameters, "norm", "transformer.ln_f");
  weights.fill_linear(parameters, "output", "lm_head");
  weights.require_all_used();
  return model;
}

}  // namespace models
