#pragma once
// The decoder-only transformer (GPT, Llama): causal self-attention and feed-forward layers, no encoder.
//
//   x = scale E[ids] (+ positions)   ->   layers, pre-norm   ->   norm   ->   logits = h E^T or h W + b
//
//             positions   norm        activation    heads of keys   output
//   GPT-2     learned     LayerNorm   GELU (tanh)   all             tied
//   Llama     rope        RMSNorm     SwiGLU        a part          a matrix of its own, or tied
//
// A Continuation reads tokens piece by piece, any number at a time, with the keys and values of all before
// them in a cache.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
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

struct LanguageModelConfig {
  Index vocab_size = 0;
  Index d_model = 64, num_heads = 4;
  Index num_kv_heads = 0;  ///< grouped-query attention; 0: as many as num_heads
  Index num_layers = 2, d_ff = 256;
  PositionScheme positions = PositionScheme::rope;
  Index max_positions = 256;  ///< rows of a learned table
  double rope_theta = 10000.0;
  posenc::Pairing pairing = posenc::Pairing::half;                   ///< of the weights as stored
  std::optional<posenc::RotaryFrequencies> rotary_frequencies = {};  ///< in place of those of rope_theta
  posenc::SinusoidalConfig sinusoidal = {};
  Activation activation = Activation::swiglu;
  Norm norm = Norm::rms_norm;
  double norm_eps = 1e-5;
  bool attention_bias = false;
  double dropout = 0.0;
  double embedding_scale = 1.0;  ///< sqrt(d_model) in the original transformer
  OutputConfig output = {};
};

template <class Scalar>
class LanguageModel {
 public:
  /// What a forward pass keeps for the backward one.
  struct Saved {
    posenc::Positions at;
    std::vector<typename EncoderLayer<Scalar>::Saved> layers;
    typename Normalization<Scalar>::Saved norm;
    View<const Scalar, 2> hidden;  // the output of the stack
  };

  /// Initialises every parameter from the seed. Throws std::invalid_argument for a configuration that is
  /// none.
  explicit LanguageModel(const LanguageModelConfig& config, std::uint64_t seed = 1)
      : LanguageModel(config, seed, true) {}

  /// The same without memory for the parameters: their names and shapes.
  static LanguageModel outline(const LanguageModelConfig& config) { return LanguageModel(config, 0, false); }

  const LanguageModelConfig& config() const { return config_; }
  Parameters<Scalar>& parameters() { return parameters_; }
  const Parameters<Scalar>& parameters() const { return parameters_; }
  const std::vector<EncoderLayer<Scalar>>& layers() const { return layers_; }

  /// The hidden states of whole sentences, (tokens, d_model).
  View<Scalar, 2> forward(Pass<Scalar>& pass, const Sequences& sequences, Saved& saved) const {
    saved.at = sequences.positions();
    saved.layers.resize(layers_.size());
    View<Scalar, 2> x = embed(pass, sequences.ids(), saved.at);
    dropout_.apply(pass, x, sequences);
    for (std::size_t l = 0; l < layers_.size(); ++l)
      x = layers_[l].forward(pass, x, sequences, saved.at, saved.layers[l]);
    x = norm_[0].forward(pass, x, saved.norm);
    saved.hidden = x;
    return x;
  }

  /// The logits of the token after each hidden state, (tokens, vocab_size).
  View<Scalar, 2> logits(Pass<Scalar>& pass, const View<const Scalar, 2>& hidden) const {
    return output_.forward(pass, hidden);
  }

  /// Adds the gradient of every parameter to pass.gradients.
  void backward(Pass<Scalar>& pass, const View<const Scalar, 2>& d_logits, const Sequences& sequences,
                const Saved& saved) const {
    View<Scalar, 2> dx = norm_[0].backward(pass, output_.backward(pass, d_logits, saved.hidden), saved.norm);
    for (std::size_t l = layers_.size(); l-- > 0;)
      dx = layers_[l].backward(pass, dx, sequences, saved.at, saved.layers[l]);
    dropout_.apply(pass, dx, sequences);
    positions_.add_vjp(pass, dx, saved.at);
    token_embedding(pass).embed_vjp(pass.gradient_view(table_), sequences.ids(), dx);
  }

  /// The hidden states of the next tokens of several sentences, as many of each, one sentence after another:
  /// see SelfAttention::extend. caches: [layer][sentence].
  template <class Seen>
  View<Scalar, 2> extend(Pass<Scalar>& pass, std::span<const Token> ids, const posenc::Positions& at,
                         std::vector<std::vector<KeyValueCache<Scalar>>>& caches, const Seen& seen) const {
    const View<Scalar, 2> x = embed(pass, ids, at);
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const typename Workspace<Scalar>::Scope scope(pass.workspace);
      matrix(x) = matrix(layers_[l].extend(pass, x, at, std::span(caches[l]), seen));
    }
    typename Normalization<Scalar>::Saved unused;
    return norm_[0].forward(pass, x, unused);
  }

 private:
  LanguageModel(const LanguageModelConfig& config, std::uint64_t seed, bool allocate)
      : config_(checked(config)),
        parameters_(seed),
        table_(parameters_.add("embedding.weight", config_.vocab_size, config_.d_model,
                               Init::normal(1.0 / std::sqrt(static_cast<double>(config_.d_model))))),
        positions_(parameters_, "positions", position_config()),
        dropout_(config_.dropout, -1),
        output_(parameters_, "output", table_, config_.output) {
    for (Index l = 0; l < config_.num_layers; ++l)
      layers_.emplace_back(parameters_, "layers." + std::to_string(l), layer_config(), positions_);
    norm_.emplace_back(parameters_, "norm", config_.d_model, config_.norm, config_.norm_eps);
    if (allocate) parameters_.initialize();
  }

  static LanguageModelConfig checked(LanguageModelConfig config) {
    const auto require = [](bool holds, const std::string& expected, Index got) {
      if (!holds) throw std::invalid_argument("language model: " + expected + ", got " + std::to_string(got));
    };
    if (config.num_kv_heads == 0) config.num_kv_heads = config.num_heads;
    require(config.vocab_size > 0, "vocab_size: expected at least 1", config.vocab_size);
    require(config.d_model > 0, "d_model: expected at least 1", config.d_model);
    require(config.num_heads > 0 && config.d_model % config.num_heads == 0,
            "num_heads: expected a number that divides d_model = " + std::to_string(config.d_model),
            config.num_heads);
    require(config.num_kv_heads > 0 && config.num_heads % config.num_kv_heads == 0,
            "num_kv_heads: expected a number that divides num_heads = " + std::to_string(config.num_heads),
            config.num_kv_heads);
    require(config.num_layers >= 0, "num_layers: expected at least 0", config.num_layers);
    require(config.d_ff > 0, "d_ff: expected at least 1", config.d_ff);
    require(config.positions != PositionScheme::learned || config.max_positions > 0,
            "max_positions: expected at least 1", config.max_positions);
    return config;
  }

  PositionConfig position_config() const {
    return {.scheme = config_.positions,
            .d_model = config_.d_model,
            .num_heads = config_.num_heads,
            .max_positions = config_.max_positions,
            .rope_theta = config_.rope_theta,
            .pairing = config_.pairing,
            .rotary_frequencies = config_.rotary_frequencies,
            .sinusoidal = config_.sinusoidal};
  }
  LayerConfig layer_config() const {
    return {.attention = {.d_model = config_.d_model,
                          .num_heads = config_.num_heads,
                          .num_kv_heads = config_.num_kv_heads,
                          .causal = true,
                          .bias = config_.attention_bias},
            .d_ff = config_.d_ff,
            .activation = config_.activation,
            .norm = config_.norm,
            .placement = NormPlacement::pre,
            .norm_eps = config_.norm_eps,
            .dropout = config_.dropout};
  }

  posenc::TokenEmbedding<Scalar> token_embedding(const Pass<Scalar>& pass) const {
    return posenc::TokenEmbedding<Scalar>(pass.parameters.view(table_), {.scale = config_.embedding_scale});
  }
  View<Scalar, 2> embed(Pass<Scalar>& pass, std::span<const Token> ids, const posenc::Positions& at) const {
    const View<Scalar, 2> x = pass.workspace.matrix(static_cast<Index>(ids.size()), config_.d_model);
    token_embedding(pass).embed(x, ids);
    positions_.add(pass, x, at);
    return x;
  }

  LanguageModelConfig config_;
  Parameters<Scalar> parameters_;
  Slot table_;
  PositionEncoding<Scalar> positions_;
  DropoutSite dropout_;
  OutputHead<Scalar> output_;
  std::vector<EncoderLayer<Scalar>> layers_;
  std::vector<Normalization<Scalar>> norm_;  // one
};

/// The logits of every next token of one sentence, (tokens, vocab_size), without a cache.
template <class Scalar>
Matrix<Scalar> logits(const LanguageModel<Scalar>& model, std::span<const Token> tokens) {
  Workspace<Scalar> workspace;
  Pass<Scalar> pass{.parameters = model.parameters(), .workspace = workspace};
  Sequences sequences;
  sequences.append(tokens);
  typename LanguageModel<Scalar>::Saved saved;
  return matrix(model.logits(pass, model.forward(pass, sequences, saved)));
}

/// Sentences that are read and continued together. It borrows the model. After its first call nothing is
/// allocated, unless more tokens are read at once than ever before.
template <class Scalar>
class Continuation {
 public:
  /// Room for `capacity` tokens, padding included, in each of `rows` sentences.
  Continuation(const LanguageModel<Scalar>& model, Index capacity, Index rows = 1)
      : model_(&model),
        capacity_(capacity),
        next_(static_cast<std::size_t>(rows), 0),
        caches_(model.layers().size(), std::vector<KeyValueCache<Scalar>>(static_cast<std::size_t>(rows))),
        logits_(rows, model.config().vocab_size) {
    const auto& config = model.config();
    for (auto& layer : caches_)
      for (KeyValueCache<Scalar>& cache : layer)
        cache.reserve(capacity, 2 * config.num_kv_heads * (config.d_model / config.num_heads));
  }

  Index rows() const { return static_cast<Index>(next_.size()); }
  /// Tokens that are in the cache, for each row, padding included.
  Index length() const { return length_; }
  Index capacity() const { return capacity_; }

  /// Reads the next tokens of every row, (rows, n). mask: nonzero where there is a token and not padding;
  /// what is padding is never looked at, and takes no position. Returns the logits that follow the last token
  /// of each row, (rows, vocab_size), valid until the next call.
  View<const Scalar, 2> read(const View<const Token, 2>& ids, const View<const std::uint8_t, 2>& mask = {}) {
    const Index n = ids.extent(1);
    if (ids.extent(0) != rows() || n < 1)
      throw std::invalid_argument("ids: expected (" + std::to_string(rows()) + ", n), n > 0, got (" +
                                  std::to_string(ids.extent(0)) + ", " + std::to_string(n) + ")");
    if (n > capacity_ - length_)
      throw std::length_error("ids: the cache has room for " + std::to_string(capacity_ - length_) +
                              " more tokens, got " + std::to_string(n));
    if (mask.data() != nullptr) {
      if (mask.extents() != ids.extents()) throw std::invalid_argument("mask: expected the shape of the ids");
      if (seen_.empty()) seen_.assign(next_.size() * static_cast<std::size_t>(capacity_), 1);
    }
    const auto is_token = [&](Index row, Index i) { return mask.data() == nullptr || mask(row, i) != 0; };
    ids_.clear(), at_.clear();
    for (Index row = 0; row < rows(); ++row) {
      posenc::Position next = next_[static_cast<std::size_t>(row)];
      for (Index i = 0; i < n; ++i) {
        ids_.push_back(ids(row, i));
        at_.push_back(next);
        next += is_token(row, i) ? 1 : 0;
        if (!seen_.empty()) seen_[static_cast<std::size_t>(row * capacity_ + length_ + i)] = is_token(row, i);
      }
    }
    Pass<Scalar> pass{.parameters = model_->parameters(), .workspace = workspace_};
    const View<Scalar, 2> hidden =
        model_->extend(pass, ids_, posenc::borrowed_position_ids(at_), caches_,
                       [&](Index row) { return seen_.empty() ? nullptr : seen_.data() + row * capacity_; });
    for (Index row = 0; row < rows(); ++row) {
      const typename Workspace<Scalar>::Scope scope(workspace_);
      logits_.row(row) = matrix(model_->logits(pass, hidden.slice(0, (row + 1) * n - 1, 1))).row(0);
    }
    // Only now: an id that is none has thrown, and left everything as it was.
    for (Index row = 0; row < rows(); ++row)
      for (Index i = 0; i < n; ++i) next_[static_cast<std::size_t>(row)] += is_token(row, i) ? 1 : 0;
    length_ += n;
    workspace_.reset();
    return {logits_.data(), {logits_.rows(), logits_.cols()}};
  }
  /// The same for a single row.
  View<const Scalar, 2> read(std::span<const Token> tokens) {
    return read(View<const Token, 2>(tokens.data(), {1, static_cast<Index>(tokens.size())}));
  }

  /// Moves every token `delta` positions on: nothing changes but the numbers, since only distances count.
  /// Throws std::invalid_argument where positions are added to the embeddings.
  void shift(posenc::Position delta) { move(0, delta); }

  /// Forgets `count` tokens from `first` on. Those behind them take their positions, as if they had stood
  /// there: keys of the first layer are then exactly those, deeper ones still know what they saw
  /// (docs/cache.md). Not with padding.
  void erase(Index first, Index count) {
    if (!seen_.empty()) throw std::invalid_argument("erase: not in a batch with padding");
    if (first < 0 || count < 0 || count > length_ - first)
      throw std::out_of_range("erase: expected a part of " + std::to_string(length_) + " tokens, got " +
                              std::to_string(count) + " from " + std::to_string(first) + " on");
    for (auto& layer : caches_)
      for (KeyValueCache<Scalar>& cache : layer) cache.erase(first, count);
    length_ -= count;
    move(first, -static_cast<posenc::Position>(count));
  }

  /// The keys and values of one layer and row: (tokens, kv_heads keys and kv_heads values, packed).
  View<const Scalar, 2> cached(std::size_t layer, std::size_t row = 0) const {
    return caches_[layer][row].view();
  }

 private:
  void move(Index first, posenc::Position delta) {
    for (std::size_t l = 0; l < caches_.size(); ++l)
      for (KeyValueCache<Scalar>& cache : caches_[l])
        model_->layers()[l].self_attention().shift(cache, first, length_ - first, delta);
    for (posenc::Position& next : next_) next += delta;
  }

  const LanguageModel<Scalar>* model_;
  Index capacity_, length_ = 0;
  std::vector<posenc::Position> next_;                      // of each row
  std::vector<std::vector<KeyValueCache<Scalar>>> caches_;  // [layer][row]
  std::vector<std::uint8_t> seen_;                          // (rows, capacity), once there is padding
  Workspace<Scalar> workspace_;
  Matrix<Scalar> logits_;
  Tokens ids_;                        // of the call, packed
  std::vector<posenc::Position> at_;  // of the call
};

/// The index of the largest element, the first of several.
template <class Scalar>
Token most_likely(std::span<const Scalar> logits) {
  return static_cast<Token>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

/// A token drawn from softmax(logits / temperature).
template <class Scalar>
Token sampled(std::span<const Scalar> logits, double temperature, Random& random) {
  const double largest = static_cast<double>(*std::max_element(logits.begin(), logits.end()));
  const auto weight = [&](Scalar z) { return std::exp((static_cast<double>(z) - largest) / temperature); };
  double sum = 0;
  for (const Scalar z : logits) sum += weight(z);
  double left = random.uniform() * sum;
  for (std::size_t token = 0; token + 1 < logits.size(); ++token) {
    left -= weight(logits[token]);
    if (left < 0) return static_cast<Token>(token);
  }
  return static_cast<Token>(logits.size() - 1);
}

/// Row `row` of logits.
template <class Scalar>
std::span<const Scalar> row_of(const View<const Scalar, 2>& logits, Index row) {
  return {logits.data() + row * logits.stride(0), static_cast<std::size_t>(logits.extent(1))};
}

/// What follows each prompt, most likely token by most likely token: `max_new_tokens` of them, or fewer where
/// `stop` comes first (it is left out). The prompts are one batch, padded on the left.
template <class Scalar>
std::vector<Tokens> continue_greedily(const LanguageModel<Scalar>& model, std::span<const Tokens> prompts,
                                      Index max_new_tokens, Token stop) {
  const auto rows = static_cast<Index>(prompts.size());
  Index longest = 0;
  for (const Tokens& prompt : prompts) longest = (std::max)(longest, static_cast<Index>(prompt.size()));
  std::vector<Tokens> continued(prompts.size());
  if (longest == 0 || max_new_tokens < 1) return continued;
  Tokens ids(static_cast<std::size_t>(rows * longest), 0);
  std::vector<std::uint8_t> mask(ids.size(), 0);
  for (Index row = 0; row < rows; ++row) {
    const Tokens& prompt = prompts[static_cast<std::size_t>(row)];
    const auto first = (row + 1) * longest - static_cast<Index>(prompt.size());
    std::copy(prompt.begin(), prompt.end(), ids.begin() + first);
    std::fill_n(mask.begin() + first, prompt.size(), std::uint8_t{1});
  }
  Continuation<Scalar> batch(model, longest + max_new_tokens, rows);
  std::vector<bool> ended(prompts.size(), false);
  Tokens next(prompts.size());
  View<const Scalar, 2> logits = batch.read(View<const Token, 2>(ids.data(), {rows, longest}),
                                            View<const std::uint8_t, 2>(mask.data(), {rows, longest}));
  for (Index n = 0; n < max_new_tokens; ++n) {
    for (std::size_t row = 0; row < next.size(); ++row) {
      next[row] = most_likely(row_of(logits, static_cast<Index>(row)));
      ended[row] = ended[row] || next[row] == stop;
      if (!ended[row]) continued[row].push_back(next[row]);
    }
    if (n + 1 == max_new_tokens || std::find(ended.begin(), ended.end(), false) == ended.end()) break;
    logits = batch.read(View<const Token, 2>(next.data(), {rows, 1}));
  }
  return continued;
}

}  // namespace transformer
