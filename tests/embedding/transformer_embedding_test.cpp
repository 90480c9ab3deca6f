#include "posenc/embedding/transformer_embedding.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "embedding/properties.hpp"

namespace {

using namespace posenc_test;
using posenc::consecutive;
using posenc::Dropout;
using posenc::LearnedPositions;
using posenc::Mode;
using posenc::Position;
using posenc::Positions;
using posenc::Sinusoidal;
using posenc::TokenEmbedding;
using posenc::TransformerEmbedding;
using posenc::View;

constexpr Index vocabulary = 13;
constexpr std::uint64_t seed = 77;

/// Token ids that depend on the positions alone, so that parts of the batch have the ids of the whole.
Values<std::int32_t, 2> ids_at(const Positions& at, Index batch) {
  Values<std::int32_t, 2> ids{{batch, at.count()}, {}};
  for (Index b = 0; b < batch; ++b)
    for (Index s = 0; s < at.count(); ++s)
      ids.values.push_back(static_cast<std::int32_t>((7 * at(at.rows() == 1 ? 0 : b, s) + 3) % vocabulary));
  return ids;
}

/// The tables of a layer, and the layer on top of them.
template <class S>
struct Layer {
  std::string name;
  Index d_model;
  double scale, dropout;
  Values<S, 2> tokens, positions;

  explicit Layer(const std::string& scheme, Index d = 8, double with_scale = 2.0, double p = 0.3)
      : name(scheme),
        d_model(d),
        scale(with_scale),
        dropout(p),
        tokens(random_values<S, 2>({vocabulary, d})),
        positions(random_values<S, 2>({50, d}, 2)) {}

  TokenEmbedding<S> token() const { return TokenEmbedding<S>(tokens.view(), {.scale = scale}); }
  LearnedPositions<S> learned() const { return LearnedPositions<S>(positions.view(), {.offset = 2}); }
  TransformerEmbedding<S> build() const {
    if (name == "learned") return {token(), learned(), {.position_embedding_type = name, .dropout = dropout}};
    return {token(), {.position_embedding_type = name, .dropout = dropout, .sinusoidal = {.scale = 0.5}}};
  }

  /// The same by its parts, one after another.
  template <class X>
  void compose(X&& x, const View<const std::int32_t, 2>& ids, const Positions& at, Mode mode) const {
    token().embed(x, ids);
    if (name == "learned") learned().add(x, at);
    if (name == "sinusoidal") Sinusoidal({.d_model = d_model, .scale = 0.5}).add(x, at);
    Dropout(dropout).apply(x, mode, seed);
  }
};

const std::vector<std::string> schemes = {"sinusoidal", "learned", "none"};

/// f(device, x, at) for the properties of a verb by position: ids follow from the positions.
template <class S>
auto embed_with(const TransformerEmbedding<S>& layer, Mode mode) {
  return [&layer, mode](const auto& device, auto& x, const Positions& at) {
    const auto extents = posenc::view(x).extents();
    const auto ids = ids_at(at, extents.size() == 3 ? extents[0] : 1);
    if constexpr (posenc::rank_of<decltype(x)> == 2)
      layer.embed(device, x, ids.values, at, mode, seed);
    else
      layer.embed(device, x, ids.view(), at, mode, seed);
  };
}

/// d_token and, for "learned", d_positions of a loss <dy, embed(..)>.
template <class S, class Device>
std::vector<S> gradients(const Layer<S>& layer, const Device& device, const Positions& at, Values<S, 3> dy,
                         Mode mode) {
  const auto ids = ids_at(at, dy.extents[0]);
  const auto zeros = [](const Values<S, 2>& like) {
    return Values<S, 2>{like.extents, std::vector<S>(like.values.size())};
  };
  auto d_token = zeros(layer.tokens), d_positions = zeros(layer.positions);
  const auto embedding = layer.build();
  if (layer.name == "learned")
    embedding.embed_vjp(device, d_token.view(), d_positions.view(), ids.view(), at, dy.view(), mode, seed);
  else
    embedding.embed_vjp(device, d_token.view(), ids.view(), at, dy.view(), mode, seed);
  d_token.values.insert(d_token.values.end(), d_positions.values.begin(), d_positions.values.end());
  return d_token.values;
}

}  // namespace

TEMPLATE_TEST_CASE("TransformerEmbedding: the storage of x does not matter", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  for (const std::string& name : schemes)
    for (const Index d : {8, 1030}) {
      const auto layer = Layer<TestType>(name, d);
      const auto embedding = layer.build();
      for (const Mode mode : {Mode::eval, Mode::train})
        check_storages_agree_by_position<TestType>(d, embed_with(embedding, mode));
    }
}

TEMPLATE_TEST_CASE("TransformerEmbedding: matrices are (seq, dim)", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  const auto layer = Layer<TestType>("sinusoidal");
  const auto embedding = layer.build();
  check_matrices_agree_by_position<TestType>(8, embed_with(embedding, Mode::train));
}

TEMPLATE_TEST_CASE("TransformerEmbedding: threads do not matter", "[property][threads]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (const std::string& name : schemes) {
    const auto layer = Layer<S>(name);
    const auto embedding = layer.build();
    check_threads_agree_by_position<S>(8, embed_with(embedding, Mode::train));
    check_threads_agree([&](const auto& device) {
      return gradients(layer, device, some_positions().back(), random_values<S, 3>({3, 21, 8}), Mode::train);
    });
  }
}

TEMPLATE_TEST_CASE("TransformerEmbedding: parts of the batch and of the sequence make up the whole",
                   "[property]", float, double, Eigen::half, Eigen::bfloat16) {
  for (const std::string& name : schemes) {
    const auto layer = Layer<TestType>(name);
    const auto embedding = layer.build();
    check_parts_make_up_the_whole<TestType>(8, embed_with(embedding, Mode::eval));
  }
}

TEMPLATE_TEST_CASE("TransformerEmbedding: shared positions are the same positions per row", "[property]",
                   float, double, Eigen::half, Eigen::bfloat16) {
  for (const std::string& name : schemes) {
    const auto layer = Layer<TestType>(name);
    const auto embedding = layer.build();
    check_shared_positions_are_the_same_per_row<TestType>(8, embed_with(embedding, Mode::train));
  }
}

// A scale of 2 is exact, so that no compiler's fused multiply-add can make a difference.
TEMPLATE_TEST_CASE("TransformerEmbedding: is the composition of its parts, bit for bit", "[property]", float,
                   double) {
  using S = TestType;
  for (const std::string& name : schemes)
    for (const Index d : {8, 1030})
      for (const double p : {0.0, 0.3, 1.0}) {
        const auto layer = Layer<S>(name, d, 2.0, p);
        for (const Positions& at : some_positions())
          for (const Mode mode : {Mode::eval, Mode::train}) {
            const auto ids = ids_at(at, 3);
            auto whole = random_values<S, 3>({3, 21, d}), composed = random_values<S, 3>({3, 21, d}, 2);
            layer.build().embed(whole.view(), ids.view(), at, mode, seed);
            layer.compose(composed.view(), ids.view(), at, mode);
            CHECK(same_bits(whole, composed));
          }
      }
}

TEMPLATE_TEST_CASE("TransformerEmbedding: is the composition in float, rounded once", "[property]",
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (const std::string& name : schemes) {
    const auto layer = Layer<S>(name);
    const auto at = some_positions().back();
    const auto ids = ids_at(at, 3);
    auto whole = random_values<S, 3>({3, 21, 8}), expected = whole;
    layer.build().embed(whole.view(), ids.view(), at, Mode::train, seed);
    auto wide = random_values<float, 3>({3, 21, 8});
    layer.compose(wide.view(), ids.view(), at, Mode::train);
    for (std::size_t i = 0; i < wide.values.size(); ++i) expected.values[i] = static_cast<S>(wide.values[i]);
    CHECK(same_bits(whole, expected));
  }
}

TEMPLATE_TEST_CASE("TransformerEmbedding: embed_vjp is the adjoint of embed in both tables", "[property]",
                   float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (const std::string& name : {std::string("learned"), std::string("none")})  // these are linear
    for (const Mode mode : {Mode::eval, Mode::train}) {
      const auto layer = Layer<S>(name);
      const auto u = random_values<S, 3>({3, 21, 8}, 5);
      for (const Positions& at : some_positions()) {
        auto jv = u;
        layer.build().embed(jv.view(), ids_at(at, 3).view(), at, mode, seed);
        const auto jtu = gradients(layer, Eigen::DefaultDevice(), at, u, mode);
        auto v = layer.tokens.values;
        v.insert(v.end(), layer.positions.values.begin(), layer.positions.values.end());
        const double size = norm(u.values) * norm(jv.values) + norm(jtu) * norm(v);
        CHECK(agree<S>(dot(u.values, jv.values), dot(jtu, v), size));
      }
    }
}

TEMPLATE_TEST_CASE("TransformerEmbedding: its gradients are those of its parts", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (const std::string& name : schemes) {
    const auto layer = Layer<S>(name);
    const auto at = some_positions().front();
    const auto ids = ids_at(at, 3);
    auto dy = random_values<S, 3>({3, 21, 8}, 5);
    const auto got = gradients(layer, Eigen::DefaultDevice(), at, dy, Mode::train);
    Dropout(layer.dropout).apply_vjp(dy.view(), Mode::train, seed);
    Values<S, 2> d_token{layer.tokens.extents, std::vector<S>(layer.tokens.values.size())};
    Values<S, 2> d_positions{layer.positions.extents, std::vector<S>(layer.positions.values.size())};
    layer.token().embed_vjp(d_token.view(), ids.view(), dy.view());
    if (name == "learned") layer.learned().add_vjp(d_positions.view(), at, dy.view());
    d_token.values.insert(d_token.values.end(), d_positions.values.begin(), d_positions.values.end());
    CHECK(same_bits(got, d_token.values));
  }
}

TEST_CASE("TransformerEmbedding: embed_vjp leaves dy masked, and adds to the gradients") {
  const auto layer = Layer<float>("none");
  const auto at = consecutive(0, 4);
  const auto ids = ids_at(at, 2);
  auto dy = random_values<float, 3>({2, 4, 8}), masked = dy;
  auto d_token = random_values<float, 2>({vocabulary, 8}, 3), expected = d_token;
  layer.build().embed_vjp(d_token.view(), ids.view(), at, dy.view(), Mode::train, seed);
  Dropout(layer.dropout).apply(masked.view(), Mode::train, seed);
  CHECK(same_bits(dy, masked));
  layer.token().embed_vjp(expected.view(), ids.view(), masked.view());
  CHECK(same_bits(d_token, expected));
}

TEST_CASE("TransformerEmbedding: one sequence, in any rank and with any ids") {
  const auto layer = Layer<float>("sinusoidal");
  const auto embedding = layer.build();
  CHECK(embedding.d_model() == 8);
  CHECK(embedding.token().vocabulary() == vocabulary);
  const std::vector<std::int64_t> ids = {3, 1, 12};
  Eigen::MatrixXf matrix(3, 8);
  embedding.embed(matrix, ids, consecutive(5, 3));
  Eigen::Tensor<float, 3> tensor(1, 3, 8);
  const Eigen::MatrixXi ids_of_batch{{3, 1, 12}};
  embedding.embed(tensor, ids_of_batch, consecutive(5, 3));
  CHECK(same_bits(values_of(matrix).values, values_of(tensor).values));
}

TEST_CASE("TransformerEmbedding: evaluation drops nothing and needs no seed") {
  const auto layer = Layer<float>("none", 8, 1.0, 1.0);
  auto x = random_values<float, 3>({1, 2, 8}, 4);
  const auto at = consecutive(0, 2);
  const auto ids = ids_at(at, 1);
  layer.build().embed(x.view(), ids.view(), at);
  for (Index s = 0; s < 2; ++s)
    for (Index c = 0; c < 8; ++c) CHECK(x.view()(0, s, c) == layer.tokens.view()(ids.view()(0, s), c));
}

TEMPLATE_TEST_CASE("TransformerEmbedding: nothing to do", "", float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  using Extents = std::array<Index, 3>;
  for (const std::string& name : schemes) {
    const auto layer = Layer<S>(name);
    for (const Extents& extents : {Extents{0, 3, 8}, Extents{2, 0, 8}}) {
      const auto at = consecutive(0, extents[1]);
      const auto ids = ids_at(at, extents[0]);
      Values<S, 3> x{extents, {}};
      CHECK_NOTHROW(layer.build().embed(x.view(), ids.view(), at, Mode::train, seed));
      Eigen::Tensor<S, 3> column_major;
      column_major.resize(extents);
      CHECK_NOTHROW(layer.build().embed(column_major, ids.view(), at, Mode::train, seed));
      const auto gradient = gradients(layer, Eigen::DefaultDevice(), at, x, Mode::train);
      CHECK(same_bits(gradient, std::vector<S>(gradient.size())));
    }
  }
}

// ---- Names and failures

TEST_CASE("TransformerEmbedding: an unknown name is refused with the valid ones") {
  const auto layer = Layer<float>("none");
  for (const char* const name : {"", "Sinusoidal", "absolute", "sinusoidal "}) {
    const auto got = std::string("got \"") + name + "\"";
    const std::initializer_list<const char*> parts = {"posenc: position_embedding_type", "\"sinusoidal\"",
                                                      "\"learned\"", "\"none\"", got.c_str()};
    check_throws<std::invalid_argument>(
        [&] { (void)TransformerEmbedding<float>(layer.token(), {.position_embedding_type = name}); }, parts);
    check_throws<std::invalid_argument>(
        [&] {
          (void)TransformerEmbedding<float>(layer.token(), layer.learned(),
                                            {.position_embedding_type = name});
        },
        parts);
  }
}

TEST_CASE("TransformerEmbedding: rope and alibi are told where they belong") {
  const auto layer = Layer<float>("none");
  const auto refused = [&](const char* name, std::initializer_list<const char*> parts) {
    check_throws<std::invalid_argument>(
        [&] { (void)TransformerEmbedding<float>(layer.token(), {.position_embedding_type = name}); }, parts);
    check_throws<std::invalid_argument>(
        [&] {
          (void)TransformerEmbedding<float>(layer.token(), layer.learned(),
                                            {.position_embedding_type = name});
        },
        parts);
  };
  refused("rope", {"position_embedding_type", "\"rope\"", "posenc::Rotary", "queries and keys", "attention",
                   "\"none\""});
  refused("rotary", {"\"rotary\"", "posenc::Rotary", "queries and keys"});
  refused("alibi", {"\"alibi\"", "posenc::Alibi", "attention scores", "\"none\""});
}

TEST_CASE("TransformerEmbedding: tables and names must go together") {
  const auto layer = Layer<float>("none");
  check_throws<std::invalid_argument>(
      [&] { (void)TransformerEmbedding<float>(layer.token(), {.position_embedding_type = "learned"}); },
      {"position_embedding_type", "\"learned\"", "pass a LearnedPositions"});
  for (const char* const name : {"sinusoidal", "none"})
    check_throws<std::invalid_argument>(
        [&] {
          (void)TransformerEmbedding<float>(layer.token(), layer.learned(),
                                            {.position_embedding_type = name});
        },
        {"position_embedding_type", name, "no LearnedPositions"});
  const auto narrow = Layer<float>("learned", 6);
  check_throws<std::invalid_argument>(
      [&] {
        (void)TransformerEmbedding<float>(layer.token(), narrow.learned(),
                                          {.position_embedding_type = "learned"});
      },
      {"positions", "expected a table of width 8", "got 6"});
  check_throws<std::invalid_argument>(
      [&] {
        (void)TransformerEmbedding<float>(
            layer.token(), {.position_embedding_type = "sinusoidal", .sinusoidal = {.d_model = 6}});
      },
      {"sinusoidal.d_model", "expected 8", "got 6"});
  check_throws<std::invalid_argument>(
      [&] {
        (void)TransformerEmbedding<float>(
            layer.token(), {.position_embedding_type = "sinusoidal", .sinusoidal = {.d_model = 0}});
      },
      {"sinusoidal.d_model", "expected 8", "got 0"});
  CHECK_NOTHROW(TransformerEmbedding<float>(
      layer.token(), {.position_embedding_type = "sinusoidal", .sinusoidal = {.d_model = 8}}));
  check_throws<std::invalid_argument>(
      [&] {
        (void)TransformerEmbedding<float>(layer.token(), {.position_embedding_type = "none", .dropout = 1.5});
      },
      {"expected a probability in [0, 1]", "got 1.5"});
  const auto odd = Layer<float>("sinusoidal", 7);
  check_throws<std::invalid_argument>([&] { (void)odd.build(); }, {"d_model", "even number", "got 7"});
}

TEST_CASE("TransformerEmbedding: a call that doesn't fit is refused and writes nothing") {
  using std::invalid_argument, std::out_of_range;
  auto x = random_values<float, 3>({2, 3, 8});
  const auto v = x.view();
  const auto at = consecutive(0, 3);
  for (const std::string& name : schemes) {
    INFO(name);
    const auto layer = Layer<float>(name);
    const auto embedding = layer.build();
    auto ids = ids_at(at, 2);
    auto d_token = layer.tokens, d_positions = layer.positions;
    const auto dt = d_token.view(), dp = d_positions.view();

    // Neither the gradients nor dy change where embed_vjp is refused.
    const auto refused_vjp = [&]<class Exception>(const Exception&, const View<float, 2>& to_token,
                                                  const View<float, 2>& to_positions, const auto& tokens,
                                                  const Positions& where, const View<float, 3>& dy,
                                                  std::initializer_list<const char*> parts) {
      const auto before = x;
      const auto before_positions = d_positions;
      check_refused<Exception>(
          dt,
          [&] {
            if (name == "learned")
              embedding.embed_vjp(to_token, to_positions, tokens, where, dy, Mode::train, seed);
            else
              embedding.embed_vjp(to_token, tokens, where, dy, Mode::train, seed);
          },
          parts);
      CHECK(same_bits(x, before));
      CHECK(same_bits(d_positions, before_positions));
    };
    const invalid_argument invalid("");
    const out_of_range out("");

    const auto narrow = v.slice(2, 0, 7);
    check_refused<invalid_argument>(v, [&] { embedding.embed(narrow, ids.view(), at); },
                                    {"x", "expected shape (2, 3, 8)", "got (2, 3, 7)"});
    refused_vjp(invalid, dt, dp, ids.view(), at, narrow, {"dy", "expected shape (2, 3, 8)", "got (2, 3, 7)"});

    const auto long_at = consecutive(0, 4);
    check_refused<invalid_argument>(v, [&] { embedding.embed(v, ids.view(), long_at); },
                                    {"at", "expected 3 positions", "got 4"});
    refused_vjp(invalid, dt, dp, ids.view(), long_at, v, {"at", "expected 3 positions", "got 4"});
    const auto three = consecutive(std::vector<Position>{0, 0, 0}, 3);
    check_refused<invalid_argument>(v, [&] { embedding.embed(v, ids.view(), three); },
                                    {"at", "1 or 2 rows", "got 3"});

    refused_vjp(invalid, dt.slice(0, 0, 5), dp, ids.view(), at, v,
                {"d_token", "expected shape (13, 8)", "got (5, 8)"});
    const View<float, 3> broadcast(x.values.data(), {2, 3, 8}, {0, 8, 1});
    check_refused<invalid_argument>(v, [&] { embedding.embed(broadcast, ids.view(), at); },
                                    {"x", "stride 0 on axis 0"});
    refused_vjp(invalid, dt, dp, ids.view(), at, broadcast, {"stride 0 on axis 0"});

    if (name == "learned") {
      const auto beyond = consecutive(47, 3);  // 50 rows, offset 2
      check_refused<out_of_range>(v, [&] { embedding.embed(v, ids.view(), beyond); },
                                  {"at", "max_len 50", "got 48 at (0, 1)"});
      refused_vjp(out, dt, dp, ids.view(), beyond, v, {"at", "max_len 50", "got 48 at (0, 1)"});
      refused_vjp(invalid, dt, dp.slice(0, 0, 5), ids.view(), at, v,
                  {"d_positions", "expected shape (50, 8)", "got (5, 8)"});
      check_refused<invalid_argument>(v, [&] { embedding.embed_vjp(dt, ids.view(), at, v); },
                                      {"embed_vjp", "\"learned\"", "d_positions"});
    } else {
      check_refused<invalid_argument>(v, [&] { embedding.embed_vjp(dt, dp, ids.view(), at, v); },
                                      {"embed_vjp", "only \"learned\"", "d_positions"});
    }

    ids.values[4] = 13;
    check_refused<out_of_range>(v, [&] { embedding.embed(v, ids.view(), at); },
                                {"ids", "[0, 13)", "got 13 at (1, 1)"});
    refused_vjp(out, dt, dp, ids.view(), at, v, {"ids", "[0, 13)", "got 13 at (1, 1)"});
  }
}

TEST_CASE("TransformerEmbedding: every scheme with dropout and padding of either table", "[property]") {
  const auto tokens = random_values<double, 2>({5, 4}), rows = random_values<double, 2>({9, 4}, 2);
  const std::vector<std::int32_t> ids = {4, 2, 0, 1, 3, 2};
  const auto at = consecutive(-2, 6);
  const auto one = [](Position row) { return row < 0 ? std::nullopt : std::optional<Position>(row); };
  for (const std::string& name : schemes)
    for (const double p : {0.0, 0.4})
      for (const Mode mode : {Mode::eval, Mode::train})
        for (const Position token_padding : {-1, 2})
          for (const Position padding : {-1, 1}) {
            INFO(name << ", dropout " << p << ", padding " << token_padding << " and " << padding);
            const TokenEmbedding<double> token(tokens.view(),
                                               {.scale = 2, .padding_idx = one(token_padding)});
            const bool learned = name == "learned";
            const auto layer =
                learned
                    ? TransformerEmbedding<double>(
                          token,
                          LearnedPositions<double>(rows.view(), {.offset = 2, .padding_idx = one(padding)}),
                          {.position_embedding_type = name, .dropout = p})
                    : TransformerEmbedding<double>(
                          token, {.position_embedding_type = name,
                                  .dropout = p,
                                  .sinusoidal = {.first_position = 2, .padding_idx = one(padding)}});
            // What survives, and by how much it grows.
            Values<double, 2> kept{{6, 4}, std::vector<double>(24, 1.0)};
            Dropout(p).apply(kept.view(), mode, seed);
            auto x = random_values<double, 2>({6, 4}, 3);
            layer.embed(x.view(), ids, at, mode, seed);
            auto dy = random_values<double, 2>({6, 4}, 4);
            const auto slopes = dy;
            Values<double, 2> d_token{{5, 4}, std::vector<double>(20, 0.0)};
            Values<double, 2> d_rows{{9, 4}, std::vector<double>(36, 0.0)}, expected_rows = d_rows;
            auto expected_token = d_token;
            if (learned)
              layer.embed_vjp(d_token.view(), d_rows.view(), ids, at, dy.view(), mode, seed);
            else
              layer.embed_vjp(d_token.view(), ids, at, dy.view(), mode, seed);
            double most = 0;
            for (Index s = 0; s < 6; ++s)
              for (Index c = 0; c < 4; ++c) {
                const Index id = ids[static_cast<std::size_t>(s)];
                // Token s stands at s - 2, which is row s of either table.
                const double angle = static_cast<double>(s) * (c < 2 ? 1.0 : 0.01);
                const double position = name == "none" ? 0
                                        : learned      ? rows.view()(s, c)
                                        : s == padding ? 0
                                        : c % 2 == 0   ? std::sin(angle)
                                                       : std::cos(angle);
                const double keep = kept.view()(s, c);
                most =
                    std::max(most, std::fabs(x.view()(s, c) - keep * (2 * tokens.view()(id, c) + position)));
                if (id != token_padding) expected_token.view()(id, c) += 2 * keep * slopes.view()(s, c);
                if (s != padding) expected_rows.view()(s, c) += keep * slopes.view()(s, c);
              }
            CHECK(most <= 1e-14);
            CHECK(max_difference(d_token.values, expected_token.values) <= 1e-14);
            if (learned) CHECK(max_difference(d_rows.values, expected_rows.values) <= 1e-14);
          }
}
