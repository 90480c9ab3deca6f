#pragma once
// A word-level language model of OpenNMT-py as CTranslate2 stores it (architecture "TransformerDecoderSpec"):
// a decoder without an encoder, pre-norm, ReLU, biases everywhere, embeddings times sqrt(d_model), an output
// matrix of its own.
//
// The file holds its position table, the paper's sinusoids (interleaved, first position 0) in float16. It is
// not used: the model computes its positions, at any place and without that rounding.

#include <cmath>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>

#include "models/ctranslate2.hpp"
#include "models/ctranslate2_weights.hpp"
#include "transformer/language_model.hpp"

namespace models {

inline constexpr const char* opennmt_position_table = "decoder/position_encodings/encodings";

/// The configuration of a decoder-only model in a file. Throws an InputError where it is something else.
inline transformer::LanguageModelConfig opennmt_lm_config(const Ctranslate2File& file) {
  if (file.spec() != "TransformerDecoderSpec")
    file.fail("expected the architecture TransformerDecoderSpec, got \"" + file.spec() + "\"");
  const auto expect = [&](const char* option, std::int64_t expected) {
    const auto got = file.option(std::string("decoder/") + option);
    if (got && *got != expected)
      file.fail("decoder/" + std::string(option) + ": expected " + std::to_string(expected) + ", got " +
                std::to_string(*got));
  };
  expect("activation", 0);  // ReLU
  expect("pre_norm", 1);
  expect("scale_embeddings", 1);
  expect("alibi", 0);
  expect("start_from_zero_embedding", 0);
  const auto heads = file.option("decoder/num_heads");
  if (!heads || *heads < 1) file.fail("it has no decoder/num_heads");

  transformer::LanguageModelConfig config;
  config.vocab_size = ctranslate2_extent(file, "decoder/embeddings/weight", 0);
  config.d_model = ctranslate2_extent(file, "decoder/embeddings/weight", 1);
  config.num_heads = static_cast<transformer::Index>(*heads);
  config.num_layers = ctranslate2_layers(file, "decoder");
  config.d_ff = ctranslate2_extent(file, "decoder/layer_0/ffn/linear_0/weight", 0);
  config.positions = transformer::PositionScheme::sinusoidal;
  config.activation = transformer::Activation::relu;
  config.norm = transformer::Norm::layer_norm;
  config.norm_eps = 1e-5;
  config.attention_bias = true;
  config.embedding_scale = std::sqrt(static_cast<double>(config.d_model));
  config.output = {.tied = false, .bias = true};
  return config;
}

/// The model of a file; nothing is allocated before all of its weights are known to be there.
template <class Scalar>
transformer::LanguageModel<Scalar> read_opennmt_lm(const Ctranslate2File& file) {
  using Model = transformer::LanguageModel<Scalar>;
  const auto config = opennmt_lm_config(file);
  try {
    require_ctranslate2_weights(file, Model::outline(config).parameters(),
                                {opennmt_position_table, "decoder/activation", "decoder/alibi",
                                 "decoder/alibi_use_positive_positions", "decoder/alignment_heads",
                                 "decoder/alignment_layer", "decoder/num_heads", "decoder/pre_norm",
                                 "decoder/scale_embeddings", "decoder/start_from_zero_embedding"});
    Model model(config);
    read_ctranslate2_weights(file, model.parameters());
    return model;
  } catch (const std::invalid_argument& error) {  // a configuration that is none
    file.fail(error.what());
  }
}

}  // namespace models
