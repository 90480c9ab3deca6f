#pragma once
// ALBERT (Lan et al. 2020) with its head for masked tokens, from a safetensors file of Hugging Face:
//
//   e = norm(E[ids] + P[position] + T[type])         narrow: the factorised embedding
//   x = e W + b                                      wide
//   x = layer(x), 12 times the same layer            post-norm, GELU
//   logits = norm(gelu(x W' + b')) E^T + b''         narrow again, tied
//
// E, P and T are posenc's: TransformerEmbedding adds token and learned position, TokenEmbedding the type.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "models/named_weights.hpp"
#include "posenc/embedding/transformer_embedding.hpp"
#include "transformer/layers.hpp"
#include "transformer/linear.hpp"
#include "transformer/output_head.hpp"
#include "transformer/sequences.hpp"

namespace models {

struct AlbertConfig {
  transformer::Index num_heads = 8, num_layers = 12;
  double norm_eps = 1e-12;
};

template <class Scalar>
class Albert {
 public:
  using Index = transformer::Index;
  template <class T>
  using View = transformer::View<T, 2>;

  struct Saved {
    View<Scalar> embedded;                                                  // (tokens, narrow)
    std::vector<typename transformer::EncoderLayer<Scalar>::Saved> layers;  // of each pass through the layer
  };

  /// Takes everything that the model needs out of the file. Throws an InputError where that is not there.
  Albert(NamedWeights weights, const AlbertConfig& config)
      : config_(config),
        narrow_(weights.extent(embeddings("word_embeddings.weight"), 1)),
        wide_(weights.extent(encoder("embedding_hidden_mapping_in.weight"), 0)),
        d_ff_(weights.extent(layer("ffn.weight"), 0)),
        tokens_(add_table("tokens", weights.extent(embeddings("word_embeddings.weight"), 0))),
        positions_(add_table("positions", weights.extent(embeddings("position_embeddings.weight"), 0))),
        types_(add_table("types", weights.extent(embeddings("token_type_embeddings.weight"), 0))),
        embedding_norm_(parameters_, "embedding_norm", narrow_, transformer::Norm::layer_norm,
                        config.norm_eps),
        widen_(parameters_, "widen", narrow_, wide_, true),
        no_positions_(parameters_, "", {}),
        layer_(parameters_, "layer", layer_config(weights), no_positions_),
        narrow_down_(parameters_, "narrow", wide_, narrow_, true),
        head_norm_(parameters_, "head_norm", narrow_, transformer::Norm::layer_norm, config.norm_eps),
        head_(parameters_, "head", tokens_, {.tied = true, .bias = true}) {
    weights.require_numbers(parameters_.count());
    parameters_.initialize();
    read(weights);
  }

  const transformer::Parameters<Scalar>& parameters() const { return parameters_; }
  const transformer::EncoderLayer<Scalar>& shared_layer() const { return layer_; }

  /// The hidden states of sentences, all of type 0, (tokens, wide).
  View<Scalar> forward(transformer::Pass<Scalar>& pass, const transformer::Sequences& sequences,
                       Saved& saved) const {
    const auto at = sequences.positions();
    saved.embedded = embed(pass, sequences.ids(), at);
    View<Scalar> x = widen_.forward(pass, saved.embedded);
    saved.layers.resize(static_cast<std::size_t>(config_.num_layers));
    for (auto& layer : saved.layers) x = layer_.forward(pass, x, sequences, at, layer);
    return x;
  }

  /// What stands where each token is, or is masked: (tokens, vocabulary).
  View<Scalar> logits(transformer::Pass<Scalar>& pass, const View<const Scalar>& hidden) const {
    const View<Scalar> inner = narrow_down_.forward(pass, hidden);
    auto values = transformer::matrix(inner).array();
    values = values.unaryExpr([](Scalar a) { return a * std::erfc(-a / std::sqrt(Scalar{2})) / Scalar{2}; });
    typename transformer::Normalization<Scalar>::Saved unused;
    return head_.forward(pass, head_norm_.forward(pass, inner, unused));
  }

 private:
  static std::string embeddings(const char* rest) { return std::string("albert.embeddings.") + rest; }
  static std::string encoder(const char* rest) { return std::string("albert.encoder.") + rest; }
  static std::string layer(const char* rest) {
    return std::string("albert.encoder.albert_layer_groups.0.albert_layers.0.") + rest;
  }

  transformer::Slot add_table(const char* name, Index rows) {
    return parameters_.add(std::string(name) + ".weight", rows, narrow_, transformer::Init::constant(0));
  }

  transformer::LayerConfig layer_config(const NamedWeights& weights) const {
    if (config_.num_heads < 1 || wide_ % config_.num_heads != 0)
      weights.fail("expected a number of heads that divides " + std::to_string(wide_));
    return {.attention = {.d_model = wide_,
                          .num_heads = config_.num_heads,
                          .num_kv_heads = config_.num_heads,
                          .bias = true},
            .d_ff = d_ff_,
            .activation = transformer::Activation::gelu,
            .norm = transformer::Norm::layer_norm,
            .placement = transformer::NormPlacement::post,
            .norm_eps = config_.norm_eps};
  }

  View<Scalar> embed(transformer::Pass<Scalar>& pass, std::span<const transformer::Token> ids,
                     const posenc::Positions& at) const {
    const auto n = static_cast<Index>(ids.size());
    const View<Scalar> x = pass.workspace.matrix(n, narrow_), type = pass.workspace.matrix(n, narrow_);
    const posenc::TransformerEmbedding<Scalar> token_and_position(
        posenc::TokenEmbedding<Scalar>(parameters_.view(tokens_)),
        posenc::LearnedPositions<Scalar>(parameters_.view(positions_)),
        {.position_embedding_type = "learned"});
    token_and_position.embed(x, ids, at);
    posenc::TokenEmbedding<Scalar>(parameters_.view(types_)).embed(type, transformer::Tokens(ids.size(), 0));
    transformer::matrix(x) += transformer::matrix(type);
    typename transformer::Normalization<Scalar>::Saved unused;
    return embedding_norm_.forward(pass, x, unused);
  }

  void read(NamedWeights& weights) {
    weights.fill(parameters_, "tokens.weight", embeddings("word_embeddings.weight"));
    weights.fill(parameters_, "positions.weight", embeddings("position_embeddings.weight"));
    weights.fill(parameters_, "types.weight", embeddings("token_type_embeddings.weight"));
    weights.fill_norm(parameters_, "embedding_norm", embeddings("LayerNorm"));
    weights.fill_linear(parameters_, "widen", encoder("embedding_hidden_mapping_in"));
    weights.fill_linear(parameters_, "layer.self_attention.qkv",
                        {layer("attention.query"), layer("attention.key"), layer("attention.value")});
    weights.fill_linear(parameters_, "layer.self_attention.out", layer("attention.dense"));
    weights.fill_norm(parameters_, "layer.self_attention_norm", layer("attention.LayerNorm"));
    weights.fill_linear(parameters_, "layer.feed_forward.w1", layer("ffn"));
    weights.fill_linear(parameters_, "layer.feed_forward.w2", layer("ffn_output"));
    weights.fill_norm(parameters_, "layer.feed_forward_norm", layer("full_layer_layer_norm"));
    weights.fill_linear(parameters_, "narrow", "predictions.dense");
    weights.fill_norm(parameters_, "head_norm", "predictions.LayerNorm");
    weights.fill(parameters_, "head.bias", "predictions.bias");
    const auto& bias = parameters_.entry("head.bias");  // which the file holds twice
    const std::vector<float> again = weights.take("predictions.decoder.bias", {bias.size});
    if (!std::equal(again.begin(), again.end(), parameters_.values(bias).begin()))
      weights.fail("predictions.decoder.bias: expected the numbers of predictions.bias");
    weights.drop("albert.pooler.weight");  // of a task that compares sentences
    weights.drop("albert.pooler.bias");
    weights.require_all_used();
  }

  AlbertConfig config_;
  Index narrow_, wide_, d_ff_;
  transformer::Parameters<Scalar> parameters_;
  transformer::Slot tokens_, positions_, types_;
  transformer::Normalization<Scalar> embedding_norm_;
  transformer::Linear<Scalar> widen_;
  transformer::PositionEncoding<Scalar> no_positions_;  // none inside the layer
  transformer::EncoderLayer<Scalar> layer_;
  transformer::Linear<Scalar> narrow_down_;
  transformer::Normalization<Scalar> head_norm_;
  transformer::OutputHead<Scalar> head_;
};

}  // namespace models
