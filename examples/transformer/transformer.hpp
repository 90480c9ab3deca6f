#pragma once
// The transformer of "Attention Is All You Need" (Vaswani et al. 2017), figure 1: embedding, encoder,
// decoder, and an output head tied to the embedding (section 3.4), for one vocabulary shared by source and
// target.
//
//   x = dropout(sqrt(d_model) E[ids] + PE)   ->   layers   ->   logits = h E^T
//
// Models with a vocabulary for each side have two tables, and often an output head of its own
// (source_vocab_size, output). The encoder reads `source <eos>`, the decoder reads `<bos> target` and is
// asked for `target <eos>`.

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "posenc/embedding/token_embedding.hpp"
#include "transformer/layers.hpp"
#include "transformer/matrix.hpp"
#include "transformer/output_head.hpp"
#include "transformer/parameters.hpp"
#include "transformer/position_scheme.hpp"
#include "transformer/sequences.hpp"

namespace transformer {

struct TransformerConfig {
  Index vocab_size = 0;  ///< of the target, and of the source unless it has one of its own
  Index d_model = 64, num_heads = 4;
  Index num_kv_heads = 0;  ///< grouped-query attention; 0: as many as num_heads
  Index num_encoder_layers = 2, num_decoder_layers = 2, d_ff = 256;
  PositionScheme positions = PositionScheme::sinusoidal;
  Index max_positions = 256;  ///< rows of the learned tables
  double rope_theta = 10000.0;
  Activation activation = Activation::relu;
  Norm norm = Norm::layer_norm;
  NormPlacement norm_placement = NormPlacement::post;
  double norm_eps = 1e-6;
  double dropout = 0.1;
  bool attention_bias = false;     ///< the paper's projections have none
  double attention_softcap = 0.0;  ///< 0: none
  SpecialTokens special = {};
  Index source_vocab_size = 0;               ///< 0: one table for both sides
  bool source_eos = true;                    ///< whether the encoder reads `source <eos>` or `source`
  OutputConfig output = {};                  ///< tied to the table, or a matrix of its own
  posenc::SinusoidalConfig sinusoidal = {};  ///< for PositionScheme::sinusoidal; the paper's by default
};

/// The base model of the paper, table 3: about 63 million parameters with 37,000 shared tokens.
inline TransformerConfig paper_base() {
  return {.vocab_size = 37000,
          .d_model = 512,
          .num_heads = 8,
          .num_encoder_layers = 6,
          .num_decoder_layers = 6,
          .d_ff = 2048};
}

namespace detail {

inline TransformerConfig checked(TransformerConfig config) {
  const auto require = [](bool holds, const std::string& expected, Index got) {
    if (!holds) throw std::invalid_argument("transformer: " + expected + ", got " + std::to_string(got));
  };
  if (config.num_kv_heads == 0) config.num_kv_heads = config.num_heads;
  require(config.d_model > 0, "d_model: expected at least 1", config.d_model);
  require(config.num_heads > 0 && config.d_model % config.num_heads == 0,
          "num_heads: expected a number that divides d_model = " + std::to_string(config.d_model),
          config.num_heads);
  require(config.num_kv_heads > 0 && config.num_heads % config.num_kv_heads == 0,
          "num_kv_heads: expected a number that divides num_heads = " + std::to_string(config.num_heads),
          config.num_kv_heads);
  require(config.num_encoder_layers >= 0, "num_encoder_layers: expected at least 0",
          config.num_encoder_layers);
  require(config.num_decoder_layers >= 0, "num_decoder_layers: expected at least 0",
          config.num_decoder_layers);
  require(config.d_ff > 0, "d_ff: expected at least 1", config.d_ff);
  require(config.source_vocab_size >= 0, "source_vocab_size: expected at least 0", config.source_vocab_size);
  require(
      config.source_vocab_size == 0 || !config.source_eos || config.special.eos < config.source_vocab_size,
      "source_vocab_size: expected more than the special token " + std::to_string(config.special.eos),
      config.source_vocab_size);
  require(config.positions != PositionScheme::learned || config.max_positions > 0,
          "max_positions: expected at least 1", config.max_positions);
  for (const Token special : {config.special.pad, config.special.bos, config.special.eos})
    require(special >= 0 && special < config.vocab_size,
            "vocab_size: expected more than the special token " + std::to_string(special), config.vocab_size);
  return config;
}

}  // namespace detail

template <class Scalar>
class Transformer {
 public:
  /// What a forward pass keeps for the backward one.
  struct Saved {
    posenc::Positions source_at, target_at;
    std::vector<typename EncoderLayer<Scalar>::Saved> encoder;
    std::vector<typename DecoderLayer<Scalar>::Saved> decoder;
    typename Normalization<Scalar>::Saved encoder_norm, decoder_norm;
    View<const Scalar, 2> hidden;  // the decoder's output
  };

  /// Initialises every parameter from the seed. Throws std::invalid_argument for a configuration that is
  /// none.
  explicit Transformer(const TransformerConfig& config, std::uint64_t seed = 1)
      : Transformer(config, seed, true) {}

  /// The same without memory for the parameters: for counting them.
  static Transformer outline(const TransformerConfig& config) { return Transformer(config, 0, false); }

  const TransformerConfig& config() const { return config_; }
  Parameters<Scalar>& parameters() { return parameters_; }
  const Parameters<Scalar>& parameters() const { return parameters_; }

  const std::vector<EncoderLayer<Scalar>>& encoder_layers() const { return encoder_; }
  const std::vector<DecoderLayer<Scalar>>& decoder_layers() const { return decoder_; }

  /// What the encoder reads of a source sentence, and the decoder of a target.
  void append_source(Sequences& sequences, std::span<const Token> source) const {
    sequences.append(source, std::nullopt,
                     config_.source_eos ? std::optional<Token>(config_.special.eos) : std::nullopt);
  }
  void append_target(Sequences& sequences, std::span<const Token> target) const {
    sequences.append(target, config_.special.bos);
  }

  /// The encoder's output, (source tokens, d_model).
  View<Scalar, 2> encode(Pass<Scalar>& pass, const Sequences& source, Saved& saved) const {
    saved.source_at = source.positions();
    saved.encoder.resize(encoder_.size());
    View<Scalar, 2> x =
        embed(pass, source, saved.source_at, source_table(), encoder_positions_, encoder_dropout_);
    for (std::size_t l = 0; l < encoder_.size(); ++l)
      x = encoder_[l].forward(pass, x, source, saved.source_at, saved.encoder[l]);
    return final_norm() ? encoder_norm_[0].forward(pass, x, saved.encoder_norm) : x;
  }

  /// The decoder's output, (target tokens, d_model).
  View<Scalar, 2> decode(Pass<Scalar>& pass, const Sequences& target, const View<const Scalar, 2>& memory,
                         const Sequences& source, Saved& saved) const {
    saved.target_at = target.positions();
    saved.decoder.resize(decoder_.size());
    View<Scalar, 2> x = embed(pass, target, saved.target_at, table_, decoder_positions_, decoder_dropout_);
    for (std::size_t l = 0; l < decoder_.size(); ++l)
      x = decoder_[l].forward(pass, x, target, saved.target_at, memory, source, saved.decoder[l]);
    if (final_norm()) x = decoder_norm_[0].forward(pass, x, saved.decoder_norm);
    saved.hidden = x;
    return x;
  }

  /// What the output head makes of hidden states, (target tokens, vocab_size).
  View<Scalar, 2> logits(Pass<Scalar>& pass, const View<const Scalar, 2>& hidden) const {
    return output_.forward(pass, hidden);
  }

  /// Teacher forcing: the logits of every next token of every target.
  View<Scalar, 2> forward(Pass<Scalar>& pass, const Sequences& source, const Sequences& target,
                          Saved& saved) const {
    const View<Scalar, 2> memory = encode(pass, source, saved);
    return logits(pass, decode(pass, target, memory, source, saved));
  }

  /// Adds the gradient of every parameter to pass.gradients.
  void backward(Pass<Scalar>& pass, const View<const Scalar, 2>& d_logits, const Sequences& source,
                const Sequences& target, const Saved& saved) const {
    Workspace<Scalar>& workspace = pass.workspace;
    const View<Scalar, 2> dx = output_.backward(pass, d_logits, saved.hidden);
    const View<Scalar, 2> d_memory = workspace.matrix(source.tokens(), config_.d_model);
    set_zero(d_memory);
    // Each step reads dx, and leaves its own gradient there; all else that it needed is taken back.
    const auto step = [&](const View<Scalar, 2>& d, const auto& vjp) {
      const typename Workspace<Scalar>::Scope scope(workspace);
      matrix(d) = matrix(vjp());
    };
    if (final_norm()) step(dx, [&] { return decoder_norm_[0].backward(pass, dx, saved.decoder_norm); });
    for (std::size_t l = decoder_.size(); l-- > 0;)
      step(dx, [&] {
        return decoder_[l].backward(pass, d_memory, dx, target, saved.target_at, source, saved.decoder[l]);
      });
    embed_vjp(pass, dx, target, saved.target_at, table_, decoder_positions_, decoder_dropout_);
    if (final_norm())
      step(d_memory, [&] { return encoder_norm_[0].backward(pass, d_memory, saved.encoder_norm); });
    for (std::size_t l = encoder_.size(); l-- > 0;)
      step(d_memory,
           [&] { return encoder_[l].backward(pass, d_memory, source, saved.source_at, saved.encoder[l]); });
    embed_vjp(pass, d_memory, source, saved.source_at, source_table(), encoder_positions_, encoder_dropout_);
  }

  /// The hidden states of the next tokens of one sentence, which stand at `past` and after; caches: one per
  /// layer.
  View<Scalar, 2> extend(Pass<Scalar>& pass, std::span<const Token> tokens, Index past,
                         std::vector<typename DecoderLayer<Scalar>::Cache>& caches) const {
    Sequences next;
    next.append(tokens);
    View<Scalar, 2> x = embed(pass, next, posenc::consecutive(past, next.tokens()), table_,
                              decoder_positions_, decoder_dropout_);
    for (std::size_t l = 0; l < decoder_.size(); ++l) x = decoder_[l].extend(pass, x, caches[l]);
    if (!final_norm()) return x;
    typename Normalization<Scalar>::Saved unused;
    return decoder_norm_[0].forward(pass, x, unused);
  }

 private:
  Transformer(const TransformerConfig& config, std::uint64_t seed, bool allocate)
      : config_(detail::checked(config)),
        parameters_(seed),
        table_(add_table("embedding.weight", config.vocab_size)),
        source_table_(config.source_vocab_size == 0
                          ? Slot{}
                          : add_table("source_embedding.weight", config.source_vocab_size)),
        encoder_positions_(parameters_, "encoder.positions", position_config()),
        decoder_positions_(parameters_, "decoder.positions", position_config()),
        output_(parameters_, "output", table_, config.output),
        encoder_dropout_(config.dropout, -1),
        decoder_dropout_(config.dropout, -2) {
    const LayerConfig layer = layer_config();
    const auto name = [](const char* stack, Index l) { return stack + std::to_string(l); };
    for (Index l = 0; l < config_.num_encoder_layers; ++l)
      encoder_.emplace_back(parameters_, name("encoder.layers.", l), layer, encoder_positions_);
    for (Index l = 0; l < config_.num_decoder_layers; ++l)
      decoder_.emplace_back(parameters_, name("decoder.layers.", l), layer, decoder_positions_);
    if (final_norm()) {
      encoder_norm_.emplace_back(parameters_, "encoder.norm", config_.d_model, config_.norm,
                                 config_.norm_eps);
      decoder_norm_.emplace_back(parameters_, "decoder.norm", config_.d_model, config_.norm,
                                 config_.norm_eps);
    }
    if (allocate) parameters_.initialize();
  }

  bool final_norm() const { return config_.norm_placement == NormPlacement::pre; }

  Slot add_table(const char* name, Index rows) {
    return parameters_.add(name, rows, config_.d_model,
                           Init::normal(1.0 / std::sqrt(static_cast<double>(config_.d_model))));
  }
  const Slot& source_table() const { return source_table_.rows == 0 ? table_ : source_table_; }

  PositionConfig position_config() const {
    return {.scheme = config_.positions,
            .d_model = config_.d_model,
            .num_heads = config_.num_heads,
            .max_positions = config_.max_positions,
            .rope_theta = config_.rope_theta,
            .sinusoidal = config_.sinusoidal};
  }
  LayerConfig layer_config() const {
    return {.attention = {.d_model = config_.d_model,
                          .num_heads = config_.num_heads,
                          .num_kv_heads = config_.num_kv_heads,
                          .bias = config_.attention_bias,
                          .softcap = config_.attention_softcap},
            .d_ff = config_.d_ff,
            .activation = config_.activation,
            .norm = config_.norm,
            .placement = config_.norm_placement,
            .norm_eps = config_.norm_eps,
            .dropout = config_.dropout};
  }

  posenc::TokenEmbedding<Scalar> token_embedding(const Pass<Scalar>& pass, const Slot& table) const {
    return posenc::TokenEmbedding<Scalar>(pass.parameters.view(table),
                                          {.scale = std::sqrt(static_cast<double>(config_.d_model))});
  }

  View<Scalar, 2> embed(Pass<Scalar>& pass, const Sequences& sequences, const posenc::Positions& at,
                        const Slot& table, const PositionEncoding<Scalar>& positions,
                        const DropoutSite& dropout) const {
    const View<Scalar, 2> x = pass.workspace.matrix(sequences.tokens(), config_.d_model);
    token_embedding(pass, table).embed(x, sequences.ids());
    positions.add(pass, x, at);
    dropout.apply(pass, x, sequences);
    return x;
  }
  void embed_vjp(Pass<Scalar>& pass, const View<Scalar, 2>& dx, const Sequences& sequences,
                 const posenc::Positions& at, const Slot& table, const PositionEncoding<Scalar>& positions,
                 const DropoutSite& dropout) const {
    dropout.apply(pass, dx, sequences);
    positions.add_vjp(pass, dx, at);
    token_embedding(pass, table).embed_vjp(pass.gradient_view(table), sequences.ids(), dx);
  }

  TransformerConfig config_;
  Parameters<Scalar> parameters_;
  Slot table_, source_table_;  // the second one only where the source has a vocabulary of its own
  PositionEncoding<Scalar> encoder_positions_, decoder_positions_;
  OutputHead<Scalar> output_;
  DropoutSite encoder_dropout_, decoder_dropout_;
  std::vector<EncoderLayer<Scalar>> encoder_;
  std::vector<DecoderLayer<Scalar>> decoder_;
  std::vector<Normalization<Scalar>> encoder_norm_, decoder_norm_;  // one with NormPlacement::pre, else none
};

struct PartCount {
  std::string part;
  Index count;
};

/// How many parameters each part of a model has, in the order of the model; nothing is allocated for them.
inline std::vector<PartCount> parameter_counts(const TransformerConfig& config) {
  std::vector<PartCount> parts;
  const auto model = Transformer<float>::outline(config);
  for (const auto& entry : model.parameters().entries()) {
    // "encoder.layers.3.self_attention.qkv.weight" belongs to "encoder self_attention".
    std::string part = entry.name.substr(0, entry.name.find('.'));
    if (part == "encoder" || part == "decoder") {
      std::string rest = entry.name.substr(part.size() + 1);
      if (rest.starts_with("layers.")) rest = rest.substr(rest.find('.', 7) + 1);
      rest = rest.substr(0, rest.find('.'));
      part += " " + (rest.ends_with("norm") ? std::string("norms") : rest);
    }
    std::size_t i = 0;
    while (i < parts.size() && parts[i].part != part) ++i;
    if (i == parts.size()) parts.push_back({part, 0});
    parts[i].count += entry.size;
  }
  return parts;
}

/// The parameters that a scheme spends on position: the learned tables, else none.
inline Index position_parameters(const TransformerConfig& config) {
  Index count = 0;
  for (const PartCount& part : parameter_counts(config))
    if (part.part.ends_with(" positions")) count += part.count;
  return count;
}

/// Teacher-forced logits of one pair, (target tokens + 1, vocab_size): row i predicts label i of `target
/// <eos>`.
template <class Scalar>
Matrix<Scalar> logits(const Transformer<Scalar>& model, std::span<const Token> source,
                      std::span<const Token> target) {
  Workspace<Scalar> workspace;
  Pass<Scalar> pass{.parameters = model.parameters(), .workspace = workspace};
  Sequences from, to;
  model.append_source(from, source);
  model.append_target(to, target);
  typename Transformer<Scalar>::Saved saved;
  return matrix(model.forward(pass, from, to, saved));
}

}  // namespace transformer
