#include "posenc/embedding/token_embedding.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "embedding/properties.hpp"
#include "support/overlap.hpp"

namespace {

using namespace posenc_test;
using posenc::compute_t;
using posenc::Position;
using posenc::ScaleRounding;
using posenc::TokenEmbedding;
using posenc::TokenEmbeddingConfig;
using posenc::View;

template <std::size_t Rank, class Id = std::int32_t>
Values<Id, Rank> some_ids(const std::array<Index, Rank>& extents, Index vocabulary) {
  std::mt19937 generator(5);
  Values<Id, Rank> ids{extents, std::vector<Id>(static_cast<std::size_t>(product(extents)))};
  for (Id& id : ids.values) id = static_cast<Id>(generator() % static_cast<unsigned>(vocabulary));
  return ids;
}

template <class S>
Values<S, 2> zeros(Index rows, Index columns) {
  return {{rows, columns}, std::vector<S>(static_cast<std::size_t>(rows * columns))};
}

/// scale E[id] of a float or wider product, rounded once to S.
template <class S, class T>
std::vector<S> by_definition(const Values<T, 2>& table, const std::vector<std::int32_t>& ids, double scale) {
  using C = compute_t<T>;
  std::vector<S> x;
  for (const std::int32_t id : ids)
    for (Index c = 0; c < table.extents[1]; ++c)
      x.push_back(static_cast<S>(static_cast<C>(table.view()(id, c)) * static_cast<C>(scale)));
  return x;
}

/// A table of T embedded into x of S.
template <class T, class S>
void check_mixed() {
  const auto table = random_values<T, 2>({11, 37});
  const auto ids = some_ids<2>({3, 8}, 11);
  for (const double scale : {1.0, 0.3, std::sqrt(37.0)}) {
    auto x = random_values<S, 3>({3, 8, 37});
    TokenEmbedding<T>(table.view(), {.scale = scale}).embed(x.view(), ids.view());
    CHECK(same_bits(x.values, by_definition<S>(table, ids.values, scale)));
  }
}

/// Every kind of embed_vjp's result in one list.
template <class Encoder, class Device, class Ids, class Dy>
auto gradients(const Encoder& encoder, const Device& device, const Ids& ids, const Dy& dy) {
  using S = posenc::scalar_of<Dy>;
  auto dense = zeros<S>(encoder.vocabulary(), encoder.d_model());
  encoder.embed_vjp(device, dense.view(), ids, dy);
  const auto sparse = encoder.embed_vjp_sparse(device, ids, dy);
  std::vector<double> all;
  for (const S value : dense.values) all.push_back(to_double(value));
  for (const Position id : sparse.ids) all.push_back(static_cast<double>(id));
  for (Index i = 0; i < sparse.rows.size(); ++i) all.push_back(to_double(sparse.rows.data()[i]));
  return all;
}

/// dh and d_table in one list.
template <class Encoder, class Device, class H, class Dl>
auto head_gradients(const Encoder& encoder, const Device& device, const H& h, const Dl& dlogits) {
  using S = posenc::scalar_of<H>;
  auto d_table = zeros<S>(encoder.vocabulary(), encoder.d_model());
  auto dh = values_of(h);
  encoder.logits_vjp(device, dh.view(), d_table.view(), h, dlogits);
  d_table.values.insert(d_table.values.end(), dh.values.begin(), dh.values.end());
  return d_table.values;
}

}  // namespace

// ---- embed

TEMPLATE_TEST_CASE("TokenEmbedding: the storage of x and table does not matter", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (const Index d : {7, 1030}) {
    const auto table = random_values<S, 2>({13, d});
    const TokenEmbedding<S> encoder(table.view(), {.scale = 0.7});
    const auto ids = some_ids<2>({2, 19}, 13);
    check_storages_agree(random_values<S, 3>({2, 19, d}), [&](auto& x) { encoder.embed(x, ids.view()); });
    check_input_storages_agree(table, [&](const auto& stored) {
      auto x = random_values<S, 3>({2, 19, d});
      TokenEmbedding<S>(stored, {.scale = 0.7}).embed(x.view(), ids.view());
      return x;
    });
  }
}

TEMPLATE_TEST_CASE("TokenEmbedding: rows of a table larger than the caches are its rows", "", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const Index d = 72, vocabulary = (1 << 20) / static_cast<Index>(sizeof(S)) / d + 5;
  const auto table = random_values<S, 2>({vocabulary, d});
  const TokenEmbedding<S> encoder(table.view());
  const auto ids = some_ids<2>({3, 29}, vocabulary);
  auto x = random_values<S, 3>({3, 29, d}, 2);
  encoder.embed(x.view(), ids.view());
  bool agree = true;
  for (Index b = 0; b < 3; ++b)
    for (Index s = 0; s < 29; ++s)
      for (Index c = 0; c < d; ++c) agree = agree && x.view()(b, s, c) == table.view()(ids.view()(b, s), c);
  CHECK(agree);
}

TEMPLATE_TEST_CASE("TokenEmbedding: matrices are (seq, dim)", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({13, 7});
  const TokenEmbedding<S> encoder(table.view());
  const auto ids = some_ids<1>({19}, 13);
  check_matrices_agree(random_values<S, 2>({19, 7}), [&](auto& x) { encoder.embed(x, ids.view()); });
}

TEMPLATE_TEST_CASE("TokenEmbedding: threads do not matter", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  for (const Index d : {7, 1030}) {
    const auto table = random_values<S, 2>({13, d});
    const TokenEmbedding<S> encoder(table.view(), {.scale = 0.7});
    const auto ids = some_ids<2>({2, 19}, 13);
    const auto dy = random_values<S, 3>({2, 19, d});
    check_threads_agree([&](const auto& device) {
      auto x = random_values<S, 3>({2, 19, d});
      encoder.embed(device, x.view(), ids.view());
      return x;
    });
    check_threads_agree([&](const auto& device) {
      Eigen::Tensor<S, 3> x(2, 19, d);
      encoder.embed(device, x, ids.view());
      return values_of(x);
    });
    check_threads_agree(
        [&](const auto& device) { return gradients(encoder, device, ids.view(), dy.view()); });
  }
}

TEMPLATE_TEST_CASE("TokenEmbedding: parts of the batch and of the sequence make up the whole", "[property]",
                   float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({13, 7});
  const TokenEmbedding<S> encoder(table.view(), {.scale = 0.7});
  const auto ids = some_ids<2>({3, 21}, 13);
  auto whole = random_values<S, 3>({3, 21, 7}), parts = random_values<S, 3>({3, 21, 7}, 2);
  encoder.embed(whole.view(), ids.view());
  for (const Index row : {0, 1})
    for (const Index first : {0, 1, 18}) {
      const Index rows = row == 0 ? 1 : 2, count = first == 0 ? 1 : first == 1 ? 17 : 3;
      const auto part = [&](const auto& v) { return v.slice(0, row, rows).slice(1, first, count); };
      encoder.embed(part(parts.view()), part(ids.view()));
    }
  CHECK(same_bits(parts, whole));
}

TEMPLATE_TEST_CASE("TokenEmbedding: ids of every rank", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({13, 6});
  const TokenEmbedding<S> encoder(table.view(), {.scale = 3.0});
  const auto ids = some_ids<1>({24}, 13);
  const auto expected = by_definition<S>(table, ids.values, 3.0);
  const auto check = [&]<std::size_t Rank>(const auto& shaped_ids, const std::array<Index, Rank>& extents) {
    auto x = random_values<S, Rank>(extents);
    encoder.embed(x.view(), shaped_ids);
    CHECK(same_bits(x.values, expected));
  };
  using posenc::view;
  const std::int32_t* data = ids.values.data();
  check(view(data, std::array<Index, 1>{24}), std::array<Index, 2>{24, 6});
  check(view(data, std::array<Index, 2>{4, 6}), std::array<Index, 3>{4, 6, 6});
  check(view(data, std::array<Index, 3>{2, 3, 4}), std::array<Index, 4>{2, 3, 4, 6});
  check(view(data, std::array<Index, 4>{2, 2, 2, 3}), std::array<Index, 5>{2, 2, 2, 3, 6});

  Eigen::Tensor<S, 5> column_major(2, 2, 2, 3, 6);
  encoder.embed(column_major, view(data, std::array<Index, 4>{2, 2, 2, 3}));
  CHECK(same_bits(values_of(column_major).values, expected));
}

TEST_CASE("TokenEmbedding: the storage of ids does not matter", "[property]") {
  const auto table = random_values<float, 2>({13, 7});
  const TokenEmbedding<float> encoder(table.view());
  const auto dy = random_values<float, 3>({2, 19, 7});
  check_input_storages_agree(some_ids<2>({2, 19}, 13), [&](const auto& ids) {
    auto x = dy;
    encoder.embed(x.view(), ids);
    return x;
  });
  check_input_storages_agree(some_ids<2, std::int64_t>({2, 19}, 13), [&](const auto& ids) {
    return gradients(encoder, Eigen::DefaultDevice(), ids, dy.view());
  });
}

TEST_CASE("TokenEmbedding: ids of every kind") {
  const auto table = random_values<float, 2>({13, 6});
  const TokenEmbedding<float> encoder(table.view());
  const auto ids = some_ids<1>({24}, 13);
  const auto expected = by_definition<float>(table, ids.values, 1.0);
  const std::int32_t* data = ids.values.data();
  const auto check = [&]<std::size_t Rank>(const auto& kind, const std::array<Index, Rank>& extents) {
    auto x = random_values<float, Rank>(extents);
    encoder.embed(x.view(), kind);
    CHECK(same_bits(x.values, expected));
  };
  const std::array<Index, 2> flat{24, 6};
  check(ids.values, flat);
  check(std::span<const std::int32_t>(ids.values), flat);
  check(Eigen::Map<const Eigen::VectorXi>(data, 24), flat);
  check(Eigen::RowVectorXi(Eigen::Map<const Eigen::RowVectorXi>(data, 24)), flat);
  const std::vector<std::int64_t> wide(ids.values.begin(), ids.values.end());
  check(wide, flat);
  std::array<std::int64_t, 24> fixed;
  std::copy(wide.begin(), wide.end(), fixed.begin());
  check(fixed, flat);
  check(Eigen::Map<const Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>>(
            wide.data(), 4, 6),
        std::array<Index, 3>{4, 6, 6});
}

TEST_CASE("TokenEmbedding: the product is taken in the compute type and rounded once") {
  check_mixed<double, double>();
  check_mixed<float, float>();
  check_mixed<float, Eigen::half>();
  check_mixed<float, Eigen::bfloat16>();
  check_mixed<Eigen::half, float>();
  check_mixed<Eigen::half, Eigen::half>();
  check_mixed<Eigen::half, Eigen::bfloat16>();
  check_mixed<Eigen::bfloat16, float>();
  check_mixed<Eigen::bfloat16, Eigen::half>();
  check_mixed<Eigen::bfloat16, Eigen::bfloat16>();
}

TEST_CASE("TokenEmbedding: Gemma rounds the scale to the type of the table") {
  Eigen::Tensor<Eigen::bfloat16, 2> ones(1, 1);
  ones(0, 0) = Eigen::bfloat16(1.0f);
  const double scale = std::sqrt(3072.0);  // 55.4256
  const auto embedded = [&](const auto& table, ScaleRounding rounding) {
    Eigen::Tensor<float, 2> x(1, 1);
    posenc::TokenEmbedding(table, {.scale = scale, .scale_rounding = rounding})
        .embed(x, std::vector<std::int32_t>{0});
    return x(0, 0);
  };
  CHECK(embedded(ones, ScaleRounding::to_table_type) == 55.5f);
  CHECK(embedded(ones, ScaleRounding::none) == static_cast<float>(scale));
  const Eigen::Tensor<float, 2> wide = ones.cast<float>();
  CHECK(embedded(wide, ScaleRounding::to_table_type) == static_cast<float>(scale));
  const Eigen::Tensor<Eigen::half, 2> narrow = wide.cast<Eigen::half>();
  CHECK(embedded(narrow, ScaleRounding::to_table_type) == 55.4375f);  // of 11 bits
}

TEST_CASE("TokenEmbedding: the row of padding is read like any other") {
  const auto table = random_values<float, 2>({5, 4});
  auto x = random_values<float, 2>({1, 4}, 2);
  TokenEmbedding<float>(table.view(), {.padding_idx = 3}).embed(x.view(), std::vector<std::int32_t>{3});
  for (Index c = 0; c < 4; ++c) CHECK(x.view()(0, c) == table.view()(3, c));
}

TEST_CASE("TokenEmbedding: a table is copied, moved or borrowed") {
  const std::vector<std::int32_t> ids = {1};
  const auto first = [&](const TokenEmbedding<float>& encoder) {
    Eigen::MatrixXf x(1, 2);
    encoder.embed(x, ids);
    return x(0, 0);
  };
  Eigen::Tensor<float, 2> tensor(3, 2);
  tensor.setConstant(1.0f);
  const TokenEmbedding<float> copied(tensor);
  const posenc::TokenEmbedding borrowed(Eigen::TensorMap<Eigen::Tensor<float, 2>>(tensor.data(), 3, 2));
  tensor.setConstant(2.0f);
  CHECK(first(copied) == 1.0f);
  CHECK(first(borrowed) == 2.0f);
  const float* const memory = tensor.data();
  const posenc::TokenEmbedding moved(std::move(tensor));
  CHECK(first(moved) == 2.0f);
  CHECK(memory[0] == 2.0f);  // the same memory, still there

  // A matrix is copied, a Block or a Ref of it borrowed.
  Eigen::MatrixXf matrix = Eigen::MatrixXf::Constant(4, 4, 3.0f);
  const posenc::TokenEmbedding of_matrix(matrix);
  const posenc::TokenEmbedding of_block(matrix.topLeftCorner(3, 2));
  matrix.setConstant(4.0f);
  CHECK(of_matrix.d_model() == 4);
  CHECK(of_block.vocabulary() == 3);
  CHECK(first(of_block) == 4.0f);

  // Copies hold the table as well.
  auto original = std::make_unique<TokenEmbedding<float>>(Eigen::Tensor<float, 2>(tensor.constant(1.0f)));
  original = std::make_unique<TokenEmbedding<float>>(copied);
  const TokenEmbedding<float> copy = *original;
  original.reset();
  CHECK(first(copy) == 1.0f);
}

// ---- The gradient of embed

TEMPLATE_TEST_CASE("TokenEmbedding: embed_vjp is the adjoint of embed", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto ids = some_ids<2>({3, 8}, 11);
  const auto v = random_values<S, 2>({11, 9});
  const TokenEmbedding<S> encoder(v.view(), {.scale = 1.7});
  const auto u = random_values<S, 3>({3, 8, 9}, 2);
  auto jv = u, jtu = u;
  encoder.embed(jv.view(), ids.view());
  auto d_table = zeros<S>(11, 9);
  encoder.embed_vjp(d_table.view(), ids.view(), u.view());
  CHECK(agree<S>(dot(u.values, jv.values), dot(d_table.values, v.values), norm(u.values) * norm(jv.values)));
}

TEMPLATE_TEST_CASE("TokenEmbedding: the storage of d_table and dy does not matter", "[property]", float,
                   double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({13, 7});
  const TokenEmbedding<S> encoder(table.view(), {.scale = 0.7});
  const auto ids = some_ids<2>({2, 19}, 13);
  const auto dy = random_values<S, 3>({2, 19, 7});
  check_storages_agree(random_values<S, 2>({13, 7}, 3),
                       [&](auto& d_table) { encoder.embed_vjp(d_table, ids.view(), dy.view()); });
  check_input_storages_agree(
      dy, [&](const auto& g) { return gradients(encoder, Eigen::DefaultDevice(), ids.view(), g); });
}

TEMPLATE_TEST_CASE("TokenEmbedding: the sparse gradient holds the rows of the dense one", "[property]", float,
                   double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  using C = compute_t<S>;
  const Index width = GENERATE(Index{7}, Index{1030});  // of one tile, and of more
  const auto table = random_values<S, 2>({50, width});
  for (const auto& padding : {std::optional<Position>(), std::optional<Position>(4)}) {
    const TokenEmbedding<S> encoder(table.view(), {.scale = 0.7, .padding_idx = padding});
    auto ids = some_ids<2>({2, 19}, 50);
    ids.values[3] = ids.values[17] = 4;
    const auto dy = random_values<S, 3>({2, 19, width});
    const auto sparse = encoder.embed_vjp_sparse(ids.view(), dy.view());
    auto dense = zeros<C>(50, width), scattered = dense;
    encoder.embed_vjp(dense.view(), ids.view(), dy.view());
    REQUIRE(sparse.rows.dimension(0) == static_cast<Index>(sparse.ids.size()));
    REQUIRE(sparse.rows.dimension(1) == width);
    for (std::size_t i = 0; i < sparse.ids.size(); ++i) {
      if (i > 0) CHECK(sparse.ids[i - 1] < sparse.ids[i]);
      CHECK(sparse.ids[i] != padding);
      for (Index c = 0; c < width; ++c)
        scattered.view()(sparse.ids[i], c) = sparse.rows(static_cast<Index>(i), c);
    }
    CHECK(same_bits(dense, scattered));
    if (padding)
      for (Index c = 0; c < width; ++c) CHECK(to_double(dense.view()(4, c)) == 0.0);
  }
}

TEST_CASE("TokenEmbedding: embed_vjp against finite differences", "[property]") {
  const auto ids = some_ids<2>({3, 4}, 5);
  const auto u = random_values<double, 3>({3, 4, 3}, 2);
  auto table = random_values<double, 2>({5, 3});
  const TokenEmbeddingConfig config{.scale = 1.7};
  auto gradient = zeros<double>(5, 3);
  TokenEmbedding<double>(table.view(), config).embed_vjp(gradient.view(), ids.view(), u.view());
  const auto loss = [&] {
    auto x = u;
    TokenEmbedding<double>(table.view(), config).embed(x.view(), ids.view());
    return dot(u.values, x.values);
  };
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    const double value = table.values[i];
    table.values[i] = value + 0.5;
    const double ahead = loss();
    table.values[i] = value - 0.5;
    const double behind = loss();
    table.values[i] = value;
    CHECK(gradient.values[i] == Approx(ahead - behind).margin(1e-12));
  }
}

TEST_CASE("TokenEmbedding: each row of a gradient is one sum in call order, rounded once") {
  // In float 1e8 + 1 is 1e8, so another order has another sum.
  const std::vector<float> dy = {1e8f, 1.0f, -1e8f, 1.0f, 0.25f};
  const auto table = random_values<float, 2>({2, 1});
  const TokenEmbedding<float> encoder(table.view(), {.scale = 2.0});
  const std::vector<std::int64_t> ids(5, 1);
  float sum = 0;
  for (const float g : dy) sum += g;
  REQUIRE(sum == 1.25f);
  const posenc::View<const float, 2> g(dy.data(), {5, 1});
  const auto into = [&]<class G>(G before) {
    Values<G, 2> d_table{{2, 1}, {before, before}};
    encoder.embed_vjp(d_table.view(), ids, g);
    CHECK(d_table.values[0] == before);  // not looked up
    return d_table.values[1];
  };
  CHECK(into(3.0f) == 5.5f);  // it accumulates
  CHECK(into(3.0) == 5.5);
  CHECK(into(Eigen::half(1024.0f)) == Eigen::half(1026.0f));        // of 1026.5, a tie, to even
  CHECK(into(Eigen::bfloat16(256.0f)) == Eigen::bfloat16(258.0f));  // of 258.5
}

TEST_CASE("TokenEmbedding: padding gets no gradient") {
  const auto table = random_values<float, 2>({5, 4});
  const TokenEmbedding<float> encoder(table.view(), {.padding_idx = 2});
  const auto dy = random_values<float, 2>({3, 4});
  auto d_table = zeros<float>(5, 4);
  encoder.embed_vjp(d_table.view(), std::vector<std::int32_t>{2, 0, 2}, dy.view());
  for (Index c = 0; c < 4; ++c) {
    CHECK(d_table.view()(0, c) == dy.view()(1, c));
    CHECK(d_table.view()(2, c) == 0.0f);
  }
}

// ---- The tied head

TEMPLATE_TEST_CASE("TokenEmbedding: logits against the naive product", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  // Beyond one tile in each direction, within one, and a single row and column.
  for (const auto& [rows, vocabulary, d] : {std::array<Index, 3>{70, 130, 300}, {3, 5, 7}, {1, 1, 1}}) {
    const auto table = random_values<S, 2>({vocabulary, d});
    const auto h = random_values<S, 2>({rows, d}, 2);
    auto out = random_values<S, 2>({rows, vocabulary}, 3);
    TokenEmbedding<S>(table.view(), {.scale = 9.0}).logits(out.view(), h.view());  // without the scale
    bool close = true;
    for (Index r = 0; r < rows; ++r)
      for (Index v = 0; v < vocabulary; ++v) {
        double sum = 0, size = 0;
        for (Index k = 0; k < d; ++k) {
          const double product = to_double(h.view()(r, k)) * to_double(table.view()(v, k));
          sum += product, size += std::abs(product);
        }
        const double rounding = epsilon<S> / 2 * std::abs(sum);
        const double arithmetic = epsilon<compute_t<S>> * std::sqrt(double(d)) * size;
        close = close && std::abs(to_double(out.view()(r, v)) - sum) <= 1.01 * rounding + 2 * arithmetic;
      }
    CHECK(close);
  }
}

TEMPLATE_TEST_CASE("TokenEmbedding: the strides and rank of the head's tensors do not matter", "[property]",
                   float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  using posenc::view;  // one type, so one kernel to compile
  const auto table = random_values<S, 2>({70, 33});
  const TokenEmbedding<S> encoder(table.view());
  const auto h = random_values<S, 3>({2, 35, 33}, 2);
  const auto dlogits = random_values<S, 3>({2, 35, 70}, 3);
  check_storages_agree(random_values<S, 3>({2, 35, 70}),
                       [&](auto& out) { encoder.logits(view(out), h.view()); });
  check_input_storages_agree(h, [&](const auto& hidden) {
    auto out = random_values<S, 3>({2, 35, 70});
    encoder.logits(out.view(), View<const S, 3>(view(hidden)));
    return out;
  });
  check_input_storages_agree(table, [&](const auto& stored) {
    auto out = random_values<S, 3>({2, 35, 70});
    TokenEmbedding<S>(stored).logits(out.view(), h.view());
    return out;
  });
  check_storages_agree(random_values<S, 2>({70, 33}, 4), [&](auto& d_table) {
    auto dh = h;
    encoder.logits_vjp(dh.view(), view(d_table), h.view(), dlogits.view());
  });
  check_input_storages_agree(dlogits, [&](const auto& g) {
    return head_gradients(encoder, Eigen::DefaultDevice(), h.view(), View<const S, 3>(view(g)));
  });

  auto flat = random_values<S, 2>({70, 70}), whole = flat;
  encoder.logits(view(whole.values.data(), std::array<Index, 3>{2, 35, 70}), h.view());
  encoder.logits(flat.view(), view(h.values.data(), std::array<Index, 2>{70, 33}));
  CHECK(same_bits(flat, whole));
  auto one = random_values<S, 1>({70});
  encoder.logits(one.view(), view(h.values.data(), std::array<Index, 1>{33}));
  CHECK(max_difference(one.values, std::vector<S>(whole.values.begin(), whole.values.begin() + 70)) <=
        epsilon<S> * 64);
}

TEST_CASE("TokenEmbedding: the head takes tensors and matrices of each kind") {
  const auto table = random_values<float, 2>({7, 3});
  const TokenEmbedding<float> encoder(table.view());
  const auto h = random_values<float, 2>({4, 3}, 2);
  check_storages_agree(random_values<float, 2>({4, 7}), [&](auto& out) { encoder.logits(out, h.view()); });
  check_matrices_agree(random_values<float, 2>({4, 7}), [&](auto& out) { encoder.logits(out, h.view()); });
}

TEMPLATE_TEST_CASE("TokenEmbedding: threads do not matter to the head", "[property][threads]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({150, 270});
  const TokenEmbedding<S> encoder(table.view());
  const auto h = random_values<S, 2>({140, 270}, 2);
  const auto dlogits = random_values<S, 2>({140, 150}, 3);
  check_threads_agree([&](const auto& device) {
    auto out = random_values<S, 2>({140, 150});
    encoder.logits(device, out.view(), h.view());
    return out;
  });
  check_threads_agree(
      [&](const auto& device) { return head_gradients(encoder, device, h.view(), dlogits.view()); });
}

TEMPLATE_TEST_CASE("TokenEmbedding: logits_vjp is the adjoint of logits in both arguments", "[property]",
                   float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({70, 33});
  const TokenEmbedding<S> encoder(table.view());
  const auto h = random_values<S, 2>({66, 33}, 2);
  const auto u = random_values<S, 2>({66, 70}, 3);
  auto out = u, dh = h;
  encoder.logits(out.view(), h.view());
  auto d_table = zeros<S>(70, 33);
  encoder.logits_vjp(dh.view(), d_table.view(), h.view(), u.view());
  const double loss = dot(u.values, out.values), size = norm(u.values) * norm(out.values);
  CHECK(agree<S>(loss, dot(dh.values, h.values), size));  // logits are linear in h and in the table
  CHECK(agree<S>(loss, dot(d_table.values, table.values), size));

  auto in_place = h, again = zeros<S>(70, 33);
  encoder.logits_vjp(in_place.view(), again.view(), in_place.view(), u.view());
  CHECK(same_bits(in_place, dh));
  CHECK(same_bits(again, d_table));
}

TEST_CASE("TokenEmbedding: logits_vjp against finite differences", "[property]") {
  auto table = random_values<double, 2>({5, 3}), h = random_values<double, 2>({4, 3}, 2);
  const auto u = random_values<double, 2>({4, 5}, 3);
  auto d_table = zeros<double>(5, 3), dh = zeros<double>(4, 3);
  TokenEmbedding<double>(table.view()).logits_vjp(dh.view(), d_table.view(), h.view(), u.view());
  const auto loss = [&] {
    auto out = u;
    TokenEmbedding<double>(table.view()).logits(out.view(), h.view());
    return dot(u.values, out.values);
  };
  const auto check = [&](std::vector<double>& values, const std::vector<double>& gradient) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double value = values[i];
      values[i] = value + 0.5;
      const double ahead = loss();
      values[i] = value - 0.5;
      const double behind = loss();
      values[i] = value;
      CHECK(gradient[i] == Approx(ahead - behind).margin(1e-12));
    }
  };
  check(table.values, d_table.values);
  check(h.values, dh.values);
}

TEST_CASE("TokenEmbedding: a tied table gets the sum of both gradients") {
  const auto table = random_values<float, 2>({5, 3}), h = random_values<float, 2>({4, 3}, 2);
  const auto dlogits = random_values<float, 2>({4, 5}, 3);
  const std::vector<std::int32_t> ids = {0, 4, 4, 1};
  const TokenEmbedding<float> encoder(table.view(), {.scale = 2.0});
  auto input = zeros<float>(5, 3), head = input, both = input, dh = h;
  encoder.embed_vjp(input.view(), ids, h.view());
  encoder.logits_vjp(dh.view(), head.view(), h.view(), dlogits.view());
  encoder.logits_vjp(dh.view(), both.view(), h.view(), dlogits.view());
  encoder.embed_vjp(both.view(), ids, h.view());
  for (std::size_t i = 0; i < 15; ++i)
    CHECK(both.values[i] == Approx(input.values[i] + head.values[i]).epsilon(1e-6));
}

// ---- Edges and failures

TEMPLATE_TEST_CASE("TokenEmbedding: nothing to do", "", float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({5, 4});
  const TokenEmbedding<S> encoder(table.view());
  using Extents = std::array<Index, 2>;
  for (const Extents& extents : {Extents{0, 3}, Extents{2, 0}, Extents{0, 0}}) {
    const Values<std::int32_t, 2> ids{extents, {}};
    const Values<S, 3> empty{{extents[0], extents[1], 4}, {}};
    in_every_storage(
        empty, [&](auto& x) { encoder.embed(x, ids.view()); },
        [&](const char*, const Values<S, 3>& x) { CHECK(x.values.empty()); });
    auto d_table = random_values<S, 2>({5, 4});
    const auto before = d_table;
    encoder.embed_vjp(d_table.view(), ids.view(), empty.view());
    CHECK(encoder.embed_vjp_sparse(ids.view(), empty.view()).ids.empty());
    Values<S, 3> logits{{extents[0], extents[1], 5}, {}};
    encoder.logits(logits.view(), empty.view());
    auto dh = empty;
    encoder.logits_vjp(dh.view(), d_table.view(), empty.view(), logits.view());
    CHECK(same_bits(d_table, before));
  }
}

TEST_CASE("TokenEmbedding: a configuration without a meaning is refused") {
  const auto table = random_values<float, 2>({5, 4});
  const auto build = [&](const TokenEmbeddingConfig& config) {
    (void)TokenEmbedding<float>(table.view(), config);
  };
  check_throws<std::invalid_argument>([&] { build({.scale = infinity}); },
                                      {"posenc: scale", "finite", "got inf"});
  check_throws<std::invalid_argument>([&] { build({.scale = posenc_test::quiet_nan}); },
                                      {"scale", "finite", "got nan"});
  check_throws<std::out_of_range>([&] { build({.padding_idx = 5}); }, {"padding_idx", "[0, 5)", "got 5"});
  check_throws<std::out_of_range>([&] { build({.padding_idx = -1}); }, {"padding_idx", "[0, 5)", "got -1"});
  CHECK_NOTHROW(build({.padding_idx = 4}));
}

TEST_CASE("TokenEmbedding: a call that doesn't fit is refused and writes nothing") {
  using S = float;
  using std::invalid_argument, std::out_of_range;
  const auto table = random_values<S, 2>({5, 4});
  const TokenEmbedding<S> encoder(table.view());
  auto x = random_values<S, 3>({2, 3, 4});
  auto d_table = random_values<S, 2>({5, 4}, 2);
  const auto v = x.view();
  const auto d = d_table.view();
  auto ids = some_ids<2>({2, 3}, 5);

  // Shapes.
  const auto wrong = some_ids<2>({2, 4}, 5);
  check_refused<invalid_argument>(v, [&] { encoder.embed(v, wrong.view()); },
                                  {"x", "expected shape (2, 4, 4)", "got (2, 3, 4)"});
  check_refused<invalid_argument>(d, [&] { encoder.embed_vjp(d, wrong.view(), v); },
                                  {"dy", "expected shape (2, 4, 4)", "got (2, 3, 4)"});
  check_throws<invalid_argument>([&] { (void)encoder.embed_vjp_sparse(wrong.view(), v); },
                                 {"dy", "expected shape (2, 4, 4)", "got (2, 3, 4)"});
  check_refused<invalid_argument>(d, [&] { encoder.embed_vjp(d.slice(0, 0, 4), ids.view(), v); },
                                  {"d_table", "expected shape (5, 4)", "got (4, 4)"});
  const View<S, 3> broadcast(x.values.data(), {2, 3, 4}, {12, 4, 0});
  check_refused<invalid_argument>(v, [&] { encoder.embed(broadcast, ids.view()); },
                                  {"x", "stride 0 on axis 2", "extent 4"});
  const View<S, 2> broadcast_table(d_table.values.data(), {5, 4}, {0, 1});
  check_refused<invalid_argument>(d, [&] { encoder.embed_vjp(broadcast_table, ids.view(), v); },
                                  {"d_table", "stride 0 on axis 0"});

  // Ids: the first one that is out, wherever it is stored.
  for (const std::int32_t id : {5, -1, 2147483647}) {
    ids = some_ids<2>({2, 3}, 5);
    ids.values[4] = ids.values[5] = id;
    const auto got = "got " + std::to_string(id) + " at (1, 1)";
    Eigen::Tensor<std::int32_t, 2> column_major(2, 3);
    fill(column_major, ids);
    check_refused<out_of_range>(v, [&] { encoder.embed(v, column_major); }, {"ids", "[0, 5)", got.c_str()});
    check_refused<out_of_range>(d, [&] { encoder.embed_vjp(d, ids.view(), v); },
                                {"ids", "[0, 5)", got.c_str()});
    check_throws<out_of_range>([&] { (void)encoder.embed_vjp_sparse(ids.view(), v); },
                               {"ids", "[0, 5)", got.c_str()});
  }
  const std::vector<std::int64_t> wide = {0, std::int64_t{1} << 32};  // 0 in 32 bits
  const auto two = v.slice(0, 0, 1).slice(1, 0, 2);
  check_refused<out_of_range>(
      v, [&] { encoder.embed(posenc::view(two.data(), std::array<Index, 2>{2, 4}), wide); },
      {"ids", "[0, 5)", "got 4294967296 at (1)"});

  // The head.
  auto out = random_values<S, 3>({2, 3, 5}, 4);
  const auto o = out.view();
  check_refused<invalid_argument>(o, [&] { encoder.logits(o, v.slice(2, 0, 3)); },
                                  {"h", "expected 4 features (d_model)", "got 3"});
  check_refused<invalid_argument>(o, [&] { encoder.logits(o.slice(2, 0, 4), v); },
                                  {"out", "expected shape (2, 3, 5)", "got (2, 3, 4)"});
  const View<S, 3> broadcast_out(out.values.data(), {2, 3, 5}, {15, 0, 1});
  check_refused<invalid_argument>(o, [&] { encoder.logits(broadcast_out, v); },
                                  {"out", "stride 0 on axis 1"});

  auto dh = random_values<S, 3>({2, 3, 4}, 5);
  const auto g = dh.view();
  const auto refused = [&](const auto& call, std::initializer_list<const char*> parts) {
    check_refused<invalid_argument>(g,
                                    [&] {
                                      check_refused<invalid_argument>(d, call, parts);
                                      call();
                                    },
                                    {});
  };
  refused([&] { encoder.logits_vjp(g.slice(1, 0, 2), d, v, o); },
          {"dh", "expected shape (2, 3, 4)", "got (2, 2, 4)"});
  refused([&] { encoder.logits_vjp(g, d.slice(0, 0, 4), v, o); },
          {"d_table", "expected shape (5, 4)", "got (4, 4)"});
  refused([&] { encoder.logits_vjp(g, d, v.slice(2, 0, 3), o); },
          {"h", "expected 4 features (d_model)", "got 3"});
  refused([&] { encoder.logits_vjp(g, d, v, o.slice(2, 0, 4)); },
          {"dlogits", "expected shape (2, 3, 5)", "got (2, 3, 4)"});
}

TEST_CASE("TokenEmbedding: outputs are apart from what the call reads and from each other") {
  using std::invalid_argument;
  auto table = random_values<float, 2>({6, 6}, 3), h = random_values<float, 2>({4, 6}, 4);
  auto d_table = random_values<float, 2>({6, 6}, 5), other = random_values<float, 2>({4, 6}, 6);
  const auto before_table = table, before_h = h, before_d = d_table, before_other = other;
  const TokenEmbedding<float> token(table.view());
  const std::vector<int> ids = {1, 2, 3, 4};
  const View<float, 2> rows = table.view().slice(0, 1, 4), d_rows = d_table.view().slice(0, 2, 4);
  // Also where vocabulary == d_model and the shapes would fit.
  check_throws<invalid_argument>([&] { token.logits(h.view(), h.view()); }, {"posenc: out", "apart from h"});
  check_throws<invalid_argument>([&] { token.logits(rows, h.view()); }, {"out", "apart from the table"});
  check_throws<invalid_argument>([&] { token.embed(rows, ids); }, {"posenc: x", "apart from the table"});
  check_throws<invalid_argument>([&] { token.embed_vjp(d_table.view(), ids, d_rows); },
                                 {"posenc: d_table", "apart from dy"});
  const auto vjp = [&](const View<float, 2>& dh, const View<float, 2>& dt, const View<float, 2>& hidden,
                       const View<float, 2>& dlogits, const char* name, const char* apart) {
    check_throws<invalid_argument>([&] { token.logits_vjp(dh, dt, hidden, dlogits); }, {name, apart});
  };
  vjp(h.view(), d_table.view(), other.view(), h.view(), "posenc: dh", "apart from dlogits");
  vjp(d_rows, d_table.view(), h.view(), other.view(), "posenc: dh", "apart from d_table");
  vjp(rows, d_table.view(), h.view(), other.view(), "posenc: dh", "apart from the table");
  vjp(h.view(), d_table.view(), d_rows, other.view(), "posenc: d_table", "apart from h");
  vjp(h.view(), d_table.view(), other.view(), d_rows, "posenc: d_table", "apart from dlogits");
  vjp(h.view(), table.view(), h.view(), other.view(), "posenc: d_table", "apart from the table");
  // dh moved by one row from h.
  std::vector<float> memory(5 * 6, 1.0f);
  vjp(View<float, 2>(memory.data(), {4, 6}), d_table.view(), View<float, 2>(memory.data() + 6, {4, 6}),
      other.view(), "posenc: dh", "h itself");
  CHECK(memory == std::vector<float>(5 * 6, 1.0f));
  CHECK(same_bits(table, before_table));
  CHECK(same_bits(h, before_h));
  CHECK(same_bits(d_table, before_d));
  CHECK(same_bits(other, before_other));

  // dh may be h, and logits may lie beside h in one buffer.
  auto apart = before_other, in_place = before_h, d_apart = before_d, d_in_place = before_d;
  token.logits_vjp(apart.view(), d_apart.view(), h.view(), other.view());
  token.logits_vjp(in_place.view(), d_in_place.view(), in_place.view(), other.view());
  CHECK(same_bits(apart, in_place));
  CHECK(same_bits(d_apart, d_in_place));
  Values<float, 2> both{{4, 12}, std::vector<float>(48)}, expected = before_other;
  fill(both.view().slice(1, 6, 6), h);
  token.logits(both.view().slice(1, 0, 6), both.view().slice(1, 6, 6));
  token.logits(expected.view(), h.view());
  CHECK(same_bits(values_of(both.view().slice(1, 0, 6)), expected));
}

TEST_CASE("TokenEmbedding: every scale, rounding and padding_idx together", "[property]") {
  using S = Eigen::bfloat16;
  const auto table = random_values<S, 2>({5, 3});
  const auto dy = random_values<S, 2>({5, 3}, 2);
  const std::vector<std::int32_t> ids = {4, 2, 0, 1, 3};
  // 45.2548 is 45.25 in bfloat16, 0.3 is 0.30078125.
  struct Scale {
    double value, rounded;
  };
  for (const Scale scale : {Scale{1, 1}, {0, 0}, {-2, -2}, {0.3, 0.30078125}, {45.254833995939045, 45.25}})
    for (const ScaleRounding rounding : {ScaleRounding::none, ScaleRounding::to_table_type})
      for (Position padding = -1; padding < 5; ++padding) {  // -1: none
        INFO("scale " << scale.value << ", padding_idx " << padding);
        const TokenEmbedding<S> encoder(
            table.view(), {.scale = scale.value,
                           .scale_rounding = rounding,
                           .padding_idx = padding < 0 ? std::nullopt : std::optional<Position>(padding)});
        const double factor = rounding == ScaleRounding::none ? scale.value : scale.rounded;
        auto x = random_values<float, 2>({5, 3}, 3);
        encoder.embed(x.view(), ids);
        auto d_table = zeros<double>(5, 3);
        encoder.embed_vjp(d_table.view(), ids, dy.view());
        for (Index s = 0; s < 5; ++s)
          for (Index c = 0; c < 3; ++c) {
            const Index row = ids[static_cast<std::size_t>(s)];
            const double e = to_double(table.view()(row, c)), g = to_double(dy.view()(s, c));
            CHECK(std::fabs(static_cast<double>(x.view()(s, c)) - factor * e) <=
                  2e-7 * std::fabs(factor * e));
            CHECK(std::fabs(d_table.view()(row, c) - (row == padding ? 0.0 : factor * g)) <=
                  2e-7 * std::fabs(factor * g));
          }
      }
}
