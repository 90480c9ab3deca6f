// The decoder-only model and its cache, with random weights: however a text is read, in one piece, in chunks,
// token by token, padded in a batch, it means the same; and a window can slide.
#include "support/allocations.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/transformer.hpp"
#include "transformer/language_model.hpp"

using namespace transformer_test;

namespace {

LanguageModelConfig small(PositionScheme scheme) {
  return {.vocab_size = 13,
          .d_model = 16,
          .num_heads = 4,
          .num_kv_heads = 2,
          .num_layers = 2,
          .d_ff = 20,
          .positions = scheme,
          .max_positions = 40,
          .pairing = posenc::Pairing::adjacent,
          .norm_eps = 1e-3};
}

template <class Scalar>
LanguageModel<Scalar> random_model(const LanguageModelConfig& config) {
  LanguageModel<Scalar> model(config, 3);
  shake(model.parameters(), 4);
  return model;
}

double distance(const View<const double, 2>& row, const Matrix<double>& all, Index at) {
  return (matrix(row).row(0) - all.row(at)).cwiseAbs().maxCoeff();
}

}  // namespace

TEST_CASE("language model: gradient of every parameter", "[property]") {
  const PositionScheme scheme =
      GENERATE(PositionScheme::none, PositionScheme::sinusoidal, PositionScheme::learned,
               PositionScheme::rope, PositionScheme::alibi);
  const bool gpt = GENERATE(false, true);
  CAPTURE(name_of(scheme), gpt);
  LanguageModelConfig config = small(scheme);
  config.d_model = 8, config.d_ff = 6, config.max_positions = 7;
  config.embedding_scale = 1.5;
  if (gpt) {
    config.activation = Activation::gelu_tanh;
    config.norm = Norm::layer_norm;
    config.attention_bias = true;
    config.dropout = 0.2;
    config.output = {.tied = false, .bias = true};
  }
  auto model = random_model<double>(config);
  const Sequences sentences = random_sentences({3, 1, 5}, 13, 1);
  const Tokens labels = random_tokens(9, 13, 2);
  Workspace<double> workspace;
  Vector<double> gradients = Vector<double>::Zero(model.parameters().count());
  Pass<double> pass{model.parameters(), workspace, &gradients, posenc::Mode::train, 99};
  LanguageModel<double>::Saved saved;
  View<double, 2> scores;
  const auto loss = [&] {
    workspace.reset();
    scores = model.logits(pass, model.forward(pass, sentences, saved));
    return cross_entropy(scores, labels, 0.1, 1.0).loss;
  };
  loss();
  model.backward(pass, scores, sentences, saved);
  check_parameters(loss, model.parameters(), gradients);
}

TEST_CASE("language model: read in one piece, in chunks and token by token", "[property]") {
  const PositionScheme scheme =
      GENERATE(PositionScheme::none, PositionScheme::sinusoidal, PositionScheme::learned,
               PositionScheme::rope, PositionScheme::alibi);
  const Index chunk = GENERATE(1, 2, 5, 12);
  CAPTURE(name_of(scheme), chunk);
  const auto model = random_model<double>(small(scheme));
  const Tokens text = random_tokens(12, 13, 7);
  const Matrix<double> whole = logits(model, std::span<const Token>(text));
  Continuation<double> reader(model, 12);
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n = (std::min)(static_cast<std::size_t>(chunk), text.size() - at);
    const auto row = reader.read(std::span<const Token>(text).subspan(at, n));
    at += n;
    CHECK(distance(row, whole, static_cast<Index>(at) - 1) < 1e-12);
  }
  CHECK(reader.length() == 12);
  CHECK_THROWS_AS(reader.read(std::span<const Token>(text).first(1)), std::length_error);
  CHECK_THROWS_AS(reader.read(std::span<const Token>()), std::invalid_argument);

  // An id that is none changes nothing.
  Continuation<double> again(model, 12);
  again.read(std::span<const Token>(text).first(11));
  CHECK_THROWS_AS(again.read(std::span<const Token>(Tokens{13})), std::out_of_range);
  CHECK(again.length() == 11);
  CHECK(distance(again.read(std::span<const Token>(text).subspan(11)), whole, 11) < 1e-12);
}

TEST_CASE("language model: a padded batch gives each row what it gives alone", "[property]") {
  const PositionScheme scheme =
      GENERATE(PositionScheme::none, PositionScheme::sinusoidal, PositionScheme::learned,
               PositionScheme::rope, PositionScheme::alibi);
  CAPTURE(name_of(scheme));
  const auto model = random_model<double>(small(scheme));
  const std::vector<Tokens> prompts = {random_tokens(7, 13, 1), random_tokens(2, 13, 2),
                                       random_tokens(4, 13, 3)};
  const std::vector<Tokens> together =
      continue_greedily<double>(model, prompts, 20, -1);  // -1: there is no such token
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    CAPTURE(row);
    CHECK(together[row].size() == 20);
    CHECK(together[row] == continue_greedily<double>(model, std::span(&prompts[row], 1), 20, -1)[0]);
    // Without a cache at all.
    Tokens text = prompts[row];
    for (int n = 0; n < 20; ++n) {
      const Matrix<double> z = logits(model, std::span<const Token>(text));
      text.push_back(most_likely(std::span<const double>(&z(z.rows() - 1, 0), 13)));
    }
    CHECK(together[row] ==
          Tokens(text.begin() + static_cast<std::ptrdiff_t>(prompts[row].size()), text.end()));
  }
  // Padding in later pieces, too: rows of 2 + 3 and 3 + 1 tokens.
  const Tokens ids = {0, 5, 6, 7, 8, 9}, more = {3, 4, 5, 0, 0, 6};
  const std::vector<std::uint8_t> mask = {0, 1, 1, 1, 1, 1}, more_mask = {1, 1, 1, 0, 0, 1};
  const auto two_rows = [](const auto& values) {
    return View<const typename std::decay_t<decltype(values)>::value_type, 2>(values.data(), {2, 3});
  };
  Continuation<double> batch(model, 6, 2);
  batch.read(two_rows(ids), two_rows(mask));
  const Matrix<double> last = matrix(batch.read(two_rows(more), two_rows(more_mask)));
  const Matrix<double> first_row = logits(model, std::span<const Token>(Tokens{5, 6, 3, 4, 5}));
  const Matrix<double> second_row = logits(model, std::span<const Token>(Tokens{7, 8, 9, 6}));
  if (scheme != PositionScheme::alibi) {  // ALiBi counts the places between, padding included
    CHECK((last.row(1) - second_row.row(3)).cwiseAbs().maxCoeff() < 1e-12);
  }
  CHECK((last.row(0) - first_row.row(4)).cwiseAbs().maxCoeff() < 1e-12);
  CHECK_THROWS_AS(batch.erase(0, 1), std::invalid_argument);
}

TEST_CASE("language model: tokens can be moved and forgotten", "[property]") {
  const auto model = random_model<double>(small(PositionScheme::rope));
  const Tokens text = random_tokens(12, 13, 9);
  Continuation<double> here(model, 30), there(model, 30);
  here.read(text), there.read(text);
  // Only distances count: the whole text can stand anywhere.
  there.shift(1'000'000);
  const Matrix<double> next = matrix(here.read(std::span<const Token>(text).first(3)));
  CHECK(distance(there.read(std::span<const Token>(text).first(3)), next, 0) < 1e-9);

  // Without tokens 2 to 6: keys and values of the first layer as if they had never been, deeper ones not.
  Continuation<double> cut(model, 30), fresh(model, 30);
  cut.read(text);
  cut.erase(2, 5);
  Tokens rest = text;
  rest.erase(rest.begin() + 2, rest.begin() + 7);
  fresh.read(rest);
  CHECK(cut.length() == 7);
  const auto apart = [&](std::size_t layer) {
    return (matrix(cut.cached(layer)) - matrix(fresh.cached(layer))).cwiseAbs().maxCoeff();
  };
  CHECK(apart(0) < 1e-12);
  CHECK(apart(1) > 1e-3);
  CHECK_THROWS_AS(cut.erase(5, 3), std::out_of_range);

  // With a single layer nothing but that is left of the past, so the window slides exactly.
  LanguageModelConfig shallow_config = small(PositionScheme::rope);
  shallow_config.num_layers = 1;
  const auto shallow = random_model<double>(shallow_config);
  Continuation<double> slid(shallow, 30), anew(shallow, 30);
  slid.read(text), slid.erase(0, 5);
  anew.read(std::span<const Token>(text).subspan(5));
  const Matrix<double> expected = matrix(anew.read(std::span<const Token>(text).first(2)));
  CHECK(distance(slid.read(std::span<const Token>(text).first(2)), expected, 0) < 1e-12);

  // Positions that were added to the embeddings can't be taken out of the keys again.
  for (const PositionScheme scheme : {PositionScheme::sinusoidal, PositionScheme::learned}) {
    const auto added = random_model<double>(small(scheme));
    Continuation<double> fixed(added, 30);
    fixed.read(text);
    CHECK_THROWS_WITH(fixed.shift(1), posenc_test::contains("can't be moved"));
  }
}

TEST_CASE("language model: reading allocates nothing after the first token", "[unit]") {
  const auto model = random_model<float>(small(PositionScheme::rope));
  Continuation<float> reader(model, 300);
  Token token = 3;
  const auto step = [&] { token = most_likely(row_of(reader.read(std::span<const Token>(&token, 1)), 0)); };
  const int first = posenc_test::allocations_of(step);
  CHECK(first > 0);
  CHECK(posenc_test::allocations_of([&] {
          while (reader.length() < reader.capacity()) step();
        }) == 0);
}

TEST_CASE("language model: tokens are drawn as often as they are likely", "[property]") {
  const std::vector<double> z = {0.0, std::log(2.0), std::log(5.0)};
  Random random(1);
  std::vector<int> drawn(3, 0);
  for (int n = 0; n < 8000; ++n) ++drawn[static_cast<std::size_t>(sampled<double>(z, 1.0, random))];
  CHECK(std::abs(drawn[0] - 1000) < 150);
  CHECK(std::abs(drawn[1] - 2000) < 150);
  for (int n = 0; n < 100; ++n) CHECK(sampled<double>(z, 1e-3, random) == 2);
  CHECK(most_likely<double>(z) == 2);
}

TEST_CASE("language model: a configuration that is none is refused", "[unit]") {
  const auto refused = [](auto change, const char* why) {
    LanguageModelConfig config = small(PositionScheme::rope);
    change(config);
    CHECK_THROWS_WITH(LanguageModel<float>(config), posenc_test::contains(why));
  };
  refused([](auto& c) { c.vocab_size = 0; }, "vocab_size");
  refused([](auto& c) { c.num_heads = 3; }, "num_heads");
  refused([](auto& c) { c.num_kv_heads = 3; }, "num_kv_heads");
  refused([](auto& c) { c.d_ff = 0; }, "d_ff");
  refused([](auto& c) { c.num_layers = -1; }, "num_layers");
}
