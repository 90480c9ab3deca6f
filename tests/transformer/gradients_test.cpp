// Every backward pass against central differences, in double, at 1e-6 relative.

#include <vector>

#include "support/catch.hpp"
#include "support/transformer.hpp"

using namespace transformer_test;

namespace {

constexpr Index d = 8;

AttentionConfig attention_config(Index kv_heads) {
  return {.d_model = d, .num_heads = 4, .num_kv_heads = kv_heads, .bias = true};
}

PositionConfig position_config(PositionScheme scheme) {
  return {.scheme = scheme, .d_model = d, .num_heads = 4, .max_positions = 9};
}

const Sequences& sentences() {
  static const Sequences three = random_sentences({3, 1, 4}, 20, 1);
  return three;
}

Matrix<double> tokens_of(const Sequences& sequences) {
  return random_matrix<double>(sequences.tokens(), d, 31);
}

/// Every gradient of a whole model on a batch of three pairs.
void check_model(const TransformerConfig& config) {
  Transformer<double> model(config, 3);
  shake(model.parameters(), 4);
  Sequences source, target;
  Tokens labels;
  for (Index s = 0; s < 3; ++s) {
    const auto n = static_cast<std::uint64_t>(s);
    model.append_source(source, random_tokens(2 + s, 11, 10 + n));
    const Tokens words = random_tokens(3 + s, 11, 20 + n);
    model.append_target(target, words);
    labels.insert(labels.end(), words.begin(), words.end());
    labels.push_back(config.special.eos);
  }
  Workspace<double> workspace;
  Vector<double> gradients = Vector<double>::Zero(model.parameters().count());
  Pass<double> pass{model.parameters(), workspace, &gradients, posenc::Mode::train, 99};
  typename Transformer<double>::Saved saved;
  View<double, 2> logits;
  const auto loss = [&] {
    workspace.reset();
    logits = model.forward(pass, source, target, saved);
    return cross_entropy(logits, labels, 0.1, 1.0).loss;
  };
  loss();
  model.backward(pass, logits, source, target, saved);
  for (const auto& entry : model.parameters().entries()) {
    CAPTURE(entry.name);
    const std::span<const double> gradient(gradients.data() + entry.offset,
                                           static_cast<std::size_t>(entry.size));
    CHECK(gradient_error(loss, model.parameters().values(entry), gradient) < 1e-6);
  }
}

}  // namespace

TEST_CASE("linear: gradient", "[property]") {
  Parameters<double> parameters;
  const Linear<double> linear(parameters, "linear", d, 5, GENERATE(false, true));
  Matrix<double> x = random_matrix<double>(6, d, 3);
  check_layer(
      parameters, x, [&](auto& pass, const auto& in) { return linear.forward(pass, in); },
      [&](auto& pass, const auto& dy) { return linear.backward(pass, dy, view_of(x)); });
}

TEST_CASE("normalization: gradient", "[property]") {
  Parameters<double> parameters;
  const Normalization<double> norm(parameters, "norm", d, GENERATE(Norm::layer_norm, Norm::rms_norm), 1e-3);
  typename Normalization<double>::Saved saved;
  check_layer(
      parameters, random_matrix<double>(6, d, 3),
      [&](auto& pass, const auto& x) { return norm.forward(pass, x, saved); },
      [&](auto& pass, const auto& dy) { return norm.backward(pass, dy, saved); });
}

TEST_CASE("feed-forward: gradient", "[property]") {
  Parameters<double> parameters;
  const FeedForward<double> feed_forward(
      parameters, "ffn", d, 12,
      GENERATE(Activation::relu, Activation::gelu, Activation::gelu_tanh, Activation::swiglu));
  typename FeedForward<double>::Saved saved;
  check_layer(
      parameters, random_matrix<double>(6, d, 3),
      [&](auto& pass, const auto& x) { return feed_forward.forward(pass, x, saved); },
      [&](auto& pass, const auto& dy) { return feed_forward.backward(pass, dy, saved); });
}

TEST_CASE("self-attention: gradient under every scheme", "[property]") {
  const PositionScheme scheme = GENERATE(PositionScheme::none, PositionScheme::rope, PositionScheme::alibi);
  AttentionConfig config = attention_config(GENERATE(Index{1}, Index{2}, Index{4}));
  config.causal = GENERATE(false, true);
  config.softcap = GENERATE(0.0, 1.5);
  config.head_width = config.softcap != 0 ? 4 : 0;  // once with heads wider than d_model / num_heads
  CAPTURE(name_of(scheme), config.num_kv_heads, config.causal, config.softcap);
  Parameters<double> parameters;
  PositionConfig of_positions = position_config(scheme);
  of_positions.d_model = config.inner();
  const PositionEncoding<double> positions(parameters, "positions", of_positions);
  const SelfAttention<double> attention(parameters, "attention", config, positions);
  const auto at = sentences().positions();
  typename SelfAttention<double>::Saved saved;
  check_layer(
      parameters, tokens_of(sentences()),
      [&](auto& pass, const auto& x) { return attention.forward(pass, x, sentences(), at, saved); },
      [&](auto& pass, const auto& dy) { return attention.backward(pass, dy, sentences(), at, saved); });
}

TEST_CASE("self-attention: gradient with key padding", "[property]") {
  Eigen::Matrix<Token, 2, 4, Eigen::RowMajor> ids;
  Eigen::Matrix<std::uint8_t, 2, 4, Eigen::RowMajor> mask;
  ids.setConstant(5);
  mask << 1, 1, 0, 0, 0, 1, 1, 1;
  const Sequences padded = Sequences::padded(posenc::view(ids), posenc::view(mask));
  AttentionConfig config = attention_config(2);
  config.causal = GENERATE(false, true);
  Parameters<double> parameters;
  const PositionEncoding<double> positions(parameters, "positions", position_config(PositionScheme::rope));
  const SelfAttention<double> attention(parameters, "attention", config, positions);
  const auto at = padded.positions();
  typename SelfAttention<double>::Saved saved;
  check_layer(
      parameters, tokens_of(padded),
      [&](auto& pass, const auto& x) { return attention.forward(pass, x, padded, at, saved); },
      [&](auto& pass, const auto& dy) { return attention.backward(pass, dy, padded, at, saved); });
}

TEST_CASE("cross-attention: gradient of both inputs", "[property]") {
  AttentionConfig config = attention_config(GENERATE(Index{2}, Index{4}));
  config.head_width = config.num_kv_heads == 2 ? 3 : 0;
  const Sequences source = random_sentences({2, 5, 3}, 20, 8);
  Matrix<double> memory = random_matrix<double>(source.tokens(), d, 41);
  Matrix<double> x = tokens_of(sentences());
  Parameters<double> parameters;
  const CrossAttention<double> attention(parameters, "attention", config);
  typename CrossAttention<double>::Saved saved;
  const auto with_memory_gradient = [&](auto& pass, const auto& dy) {
    const View<double, 2> d_memory = pass.workspace.matrix(source.tokens(), d);
    matrix(d_memory).setZero();
    const auto dx = attention.backward(pass, d_memory, dy, sentences(), source, saved);
    return std::pair(dx, d_memory);
  };
  SECTION("x") {
    check_layer(
        parameters, x,
        [&](auto& pass, const auto& in) {
          return attention.forward(pass, in, sentences(), view_of(memory), source, saved);
        },
        [&](auto& pass, const auto& dy) { return with_memory_gradient(pass, dy).first; });
  }
  SECTION("memory") {
    check_layer(
        parameters, memory,
        [&](auto& pass, const auto& in) {
          return attention.forward(pass, view_of(x), sentences(), in, source, saved);
        },
        [&](auto& pass, const auto& dy) { return with_memory_gradient(pass, dy).second; });
  }
}

TEST_CASE("layers: gradient, pre- and post-norm, with dropout", "[property]") {
  LayerConfig config{.attention = attention_config(2), .d_ff = 12, .dropout = GENERATE(0.0, 0.4)};
  config.placement = GENERATE(NormPlacement::post, NormPlacement::pre);
  config.norm_eps = 1e-3;
  const auto mode = posenc::Mode::train;
  const auto at = sentences().positions();
  Parameters<double> parameters;
  const PositionEncoding<double> positions(parameters, "positions", position_config(PositionScheme::rope));
  SECTION("encoder") {
    const EncoderLayer<double> layer(parameters, "encoder", config, positions);
    typename EncoderLayer<double>::Saved saved;
    check_layer(
        parameters, tokens_of(sentences()),
        [&](auto& pass, const auto& x) { return layer.forward(pass, x, sentences(), at, saved); },
        [&](auto& pass, const auto& dy) { return layer.backward(pass, dy, sentences(), at, saved); }, mode);
  }
  SECTION("decoder") {
    const Sequences source = random_sentences({2, 5, 3}, 20, 8);
    const Matrix<double> memory = random_matrix<double>(source.tokens(), d, 41);
    const DecoderLayer<double> layer(parameters, "decoder", config, positions);
    typename DecoderLayer<double>::Saved saved;
    check_layer(
        parameters, tokens_of(sentences()),
        [&](auto& pass, const auto& x) {
          return layer.forward(pass, x, sentences(), at, view_of(memory), source, saved);
        },
        [&](auto& pass, const auto& dy) {
          const View<double, 2> d_memory = pass.workspace.matrix(source.tokens(), d);
          matrix(d_memory).setZero();
          return layer.backward(pass, d_memory, dy, sentences(), at, source, saved);
        },
        mode);
  }
}

TEST_CASE("cross-entropy: gradient of the logits", "[property]") {
  const Tokens labels = {2, 0, 6, 3};
  const double smoothing = GENERATE(0.0, 0.1);
  Matrix<double> z = random_matrix<double>(4, 7, 9);
  const auto loss = [&] {
    Matrix<double> scratch = z;
    return cross_entropy(View<double, 2>(scratch.data(), {4, 7}), labels, smoothing, 1.0).loss;
  };
  Matrix<double> gradient = z;
  cross_entropy(View<double, 2>(gradient.data(), {4, 7}), labels, smoothing, 1.0);
  CHECK(gradient_error(loss, {z.data(), 28}, {gradient.data(), 28}) < 1e-6);
}

TEST_CASE("model: gradient of every parameter under every scheme", "[property]") {
  const PositionScheme scheme =
      GENERATE(PositionScheme::none, PositionScheme::sinusoidal, PositionScheme::learned,
               PositionScheme::rope, PositionScheme::alibi);
  const int variant = GENERATE(0, 1, 2, 3);
  CAPTURE(name_of(scheme), variant);
  TransformerConfig config{.vocab_size = 11, .d_model = d, .num_heads = 4, .d_ff = 12, .positions = scheme};
  config.max_positions = 7;
  config.norm_eps = 1e-3;
  config.dropout = 0.0;
  if (variant == 1) {  // dropout, replayed from a fixed seed
    config.dropout = 0.3;
    config.activation = Activation::gelu;
    config.attention_bias = true;
  }
  if (variant == 2) {
    config.norm_placement = NormPlacement::pre;
    config.activation = Activation::swiglu;
    config.norm = Norm::rms_norm;
    config.num_kv_heads = 2;
  }
  if (variant == 3) config.attention_softcap = 2.0;
  check_model(config);
}

TEST_CASE("model: gradient of every parameter with tables and an output head of its own", "[property]") {
  const bool tied = GENERATE(false, true);
  CAPTURE(tied);
  check_model({.vocab_size = 11,
               .d_model = d,
               .num_heads = 4,
               .num_encoder_layers = 1,
               .num_decoder_layers = 1,
               .d_ff = 12,
               .norm_placement = NormPlacement::pre,
               .norm_eps = 1e-3,
               .dropout = 0.0,
               .source_vocab_size = 13,
               .source_eos = tied,
               .output = {.tied = tied, .bias = true},
               .sinusoidal = {.exponent = posenc::SinusoidExponent::i_over_half_minus_one,
                              .layout = posenc::SinusoidLayout::halves,
                              .first_position = 1}});
}
