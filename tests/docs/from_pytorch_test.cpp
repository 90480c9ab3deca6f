// The snippets of docs/from_pytorch.md, between lines of [name] and [/name], against the textbook's formulas
// written out. tests/docs/pages_test.cpp compares them with the page.

#include <posenc/posenc.hpp>

#include <algorithm>
#include <cmath>
#include <random>

#include "support/catch.hpp"

namespace {

using posenc::Index;
using Matrix = Eigen::Tensor<float, 2, Eigen::RowMajor>;
using Batch = Eigen::Tensor<float, 3, Eigen::RowMajor>;
using Heads = Eigen::Tensor<float, 4, Eigen::RowMajor>;

constexpr Index vocab_size = 50, batch = 2, seq = 7, d_model = 16, heads = 4, head_dim = 8, max_len = 40;

template <class Tensor>
Tensor random(Tensor tensor, unsigned seed) {
  std::mt19937 bits(seed);
  for (Index n = 0; n < tensor.size(); ++n) tensor.data()[n] = static_cast<float>(bits()) * 0x1p-31f - 1.0f;
  return tensor;
}

Eigen::Tensor<int, 2, Eigen::RowMajor> random_ids() {
  std::mt19937 bits(3);
  Eigen::Tensor<int, 2, Eigen::RowMajor> ids(batch, seq);
  for (Index n = 0; n < ids.size(); ++n) ids.data()[n] = static_cast<int>(bits() % vocab_size);
  return ids;
}

/// The encoding of "Attention Is All You Need".
double encoding_of(Index position, Index c) {
  const double angle = static_cast<double>(position) /
                       std::pow(10000.0, static_cast<double>(c / 2 * 2) / static_cast<double>(d_model));
  return c % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

/// got(b, s, c) is expected(b, s, c), within a few roundings of float.
template <class Expected>
void check_batch(const Batch& got, const Expected& expected) {
  for (Index b = 0; b < batch; ++b)
    for (Index s = 0; s < seq; ++s)
      for (Index c = 0; c < d_model; ++c) {
        CAPTURE(b, s, c);
        REQUIRE(std::abs(static_cast<double>(got(b, s, c)) - expected(b, s, c)) < 1e-6);
      }
}

/// got is expected / (1 - p) or zero, and both occur.
template <class Expected>
void check_dropped(const Batch& got, double p, const Expected& expected) {
  Index zeros = 0;
  for (Index b = 0; b < batch; ++b)
    for (Index s = 0; s < seq; ++s)
      for (Index c = 0; c < d_model; ++c) {
        const double value = static_cast<double>(got(b, s, c));
        CAPTURE(b, s, c);
        if (value == 0)
          ++zeros;
        else
          REQUIRE(std::abs(value - expected(b, s, c) / (1 - p)) < 1e-5);
      }
  CHECK(zeros > 0);
  CHECK(zeros < got.size() / 2);
}

}  // namespace

TEST_CASE("TokenEmbedding") {
  const Matrix table = random(Matrix(vocab_size, d_model), 1);
  const auto ids = random_ids();
  // [TokenEmbedding]
  const posenc::TokenEmbedding<float> embedding(table, {.scale = std::sqrt(d_model)});
  Eigen::Tensor<float, 3, Eigen::RowMajor> x(batch, seq, d_model);
  embedding.embed(x, ids);
  // [/TokenEmbedding]
  check_batch(x, [&](Index b, Index s, Index c) { return 4.0 * static_cast<double>(table(ids(b, s), c)); });
}

TEST_CASE("get_sinusoidal_encoding") {
  // [get_sinusoidal_encoding]
  const auto encoding = posenc::Sinusoidal({.d_model = d_model}).table<float>(max_len);
  // [/get_sinusoidal_encoding]
  REQUIRE(encoding.dimension(0) == max_len);
  REQUIRE(encoding.dimension(1) == d_model);
  for (Index p = 0; p < max_len; ++p)
    for (Index c = 0; c < d_model; ++c)
      REQUIRE(std::abs(static_cast<double>(encoding(p, c)) - encoding_of(p, c)) < 1e-7);
}

TEST_CASE("SinusoidalPositionalEncoding") {
  const Batch input = random(Batch(batch, seq, d_model), 2);
  const auto expected = [&](Index b, Index s, Index c) {
    return static_cast<double>(input(b, s, c)) + encoding_of(s, c);
  };
  for (const posenc::Mode mode : {posenc::Mode::eval, posenc::Mode::train}) {
    Batch x = input;
    const std::uint64_t seed = 9;
    // [SinusoidalPositionalEncoding]
    const posenc::Sinusoidal encoding({.d_model = d_model});
    const posenc::Dropout dropout(0.1);
    encoding.add(x, posenc::consecutive(0, seq));
    dropout.apply(x, mode, seed);
    // [/SinusoidalPositionalEncoding]
    if (mode == posenc::Mode::eval)
      check_batch(x, expected);
    else
      check_dropped(x, 0.1, expected);
  }
}

TEST_CASE("LearnedPositionalEmbedding") {
  const Matrix table = random(Matrix(max_len, d_model), 4);
  const Batch input = random(Batch(batch, seq, d_model), 5);
  Batch x = input;
  // [LearnedPositionalEmbedding]
  const posenc::LearnedPositions<float> positions(table);
  positions.add(x, posenc::consecutive(0, seq));
  // [/LearnedPositionalEmbedding]
  check_batch(x, [&](Index b, Index s, Index c) {
    return static_cast<double>(input(b, s, c)) + static_cast<double>(table(s, c));
  });
}

TEST_CASE("rotary_embedding") {
  const Heads input = random(Heads(batch, seq, heads, head_dim), 6);
  Heads x = input;
  // [rotary_embedding]
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = head_dim}), posenc::Pairing::adjacent);
  rope.rotate(x, posenc::consecutive(0, seq), posenc::Axes::bshd);
  // [/rotary_embedding]
  for (Index b = 0; b < batch; ++b)
    for (Index s = 0; s < seq; ++s)
      for (Index h = 0; h < heads; ++h)
        for (Index i = 0; i < head_dim / 2; ++i) {
          const double angle = static_cast<double>(s) *
                               std::pow(10000.0, -2 * static_cast<double>(i) / static_cast<double>(head_dim));
          const double even = static_cast<double>(input(b, s, h, 2 * i)),
                       odd = static_cast<double>(input(b, s, h, 2 * i + 1));
          CAPTURE(b, s, h, i);
          REQUIRE(std::abs(static_cast<double>(x(b, s, h, 2 * i)) -
                           (even * std::cos(angle) - odd * std::sin(angle))) < 1e-6);
          REQUIRE(std::abs(static_cast<double>(x(b, s, h, 2 * i + 1)) -
                           (even * std::sin(angle) + odd * std::cos(angle))) < 1e-6);
        }
}

TEST_CASE("ALiBi") {
  const Heads input = random(Heads(batch, heads, seq, seq), 7);
  Heads scores = input;
  // [ALiBi]
  const posenc::Alibi alibi(heads);
  alibi.add(scores, posenc::consecutive(0, seq), posenc::consecutive(0, seq));
  // [/ALiBi]
  for (Index b = 0; b < batch; ++b)
    for (Index h = 0; h < heads; ++h)
      for (Index i = 0; i < seq; ++i)
        for (Index j = 0; j < seq; ++j) {
          const double slope = std::pow(2.0, -8.0 * static_cast<double>(h + 1) / static_cast<double>(heads));
          CAPTURE(b, h, i, j);
          REQUIRE(std::abs(static_cast<double>(scores(b, h, i, j)) -
                           (static_cast<double>(input(b, h, i, j)) -
                            slope * std::abs(static_cast<double>(i - j)))) < 1e-6);
        }
}

TEST_CASE("TransformerEmbedding") {
  const Matrix table = random(Matrix(vocab_size, d_model), 8);
  const auto ids = random_ids();
  const auto expected = [&](Index b, Index s, Index c) {
    return 4.0 * static_cast<double>(table(ids(b, s), c)) + encoding_of(s, c);
  };
  for (const posenc::Mode mode : {posenc::Mode::eval, posenc::Mode::train}) {
    const std::uint64_t seed = 10;
    // [TransformerEmbedding]
    const posenc::TransformerEmbedding<float> layer(
        posenc::TokenEmbedding<float>(table, {.scale = std::sqrt(d_model)}),
        {.position_embedding_type = "sinusoidal", .dropout = 0.1});
    Eigen::Tensor<float, 3, Eigen::RowMajor> x(batch, seq, d_model);
    layer.embed(x, ids, posenc::consecutive(0, seq), mode, seed);
    // [/TransformerEmbedding]
    if (mode == posenc::Mode::eval)
      check_batch(x, expected);
    else
      check_dropped(x, 0.1, expected);
  }
}
