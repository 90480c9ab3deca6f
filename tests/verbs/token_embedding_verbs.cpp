// The verbs of TokenEmbedding on plain tensors, found from its header alone.

#include "posenc/embedding/token_embedding.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

namespace {

constexpr Coordinates<2> table_extents{5, 3}, x_extents{4, 3}, logits_extents{4, 5};
constexpr Numbers table_numbers{1.0};
const std::vector<int> list{4, 0, 4, 2};

double embedding(Index id, Index column) { return table_numbers(Coordinates<2>{id, column}); }
Index id(Index n) { return list[static_cast<std::size_t>(n)]; }
double zero(const Coordinates<2>&) { return 0; }

/// f(encoder, make) with a table in each storage.
template <class F>
void with_each_table(const F& f) {
  in_plain_storage<2>([&](const char* kind, const auto& make) {
    INFO(kind);
    const auto table = make(table_extents, table_numbers);
    f(posenc::TokenEmbedding(table.t, {.scale = 2.0}), make);
  });
}

}  // namespace

TEST_CASE("TokenEmbedding::embed takes plain tensors and ids") {
  const auto expected = [](const Coordinates<2>& c) { return 2 * embedding(id(c[0]), c[1]); };
  with_each_table([&](const auto& token, const auto& make) {
    const auto check_ids = [&](const auto& ids) {
      const Halves halves;
      auto x = make(x_extents, zero);
      token.embed(x.t, ids);
      check_holds(x.t, x_extents, expected);
      auto on_device = make(x_extents, zero);
      token.embed(halves, on_device.t, ids);
      check_holds(on_device.t, x_extents, expected);
      CHECK(halves.calls > 0);
    };
    check_ids(list);
    Eigen::Tensor<std::int64_t, 1> tensor(4);
    Eigen::VectorXi vector(4);
    for (Index n = 0; n < 4; ++n) tensor(n) = id(n), vector(n) = static_cast<int>(id(n));
    check_ids(tensor);
    check_ids(vector);
    check_ids(Eigen::TensorMap<Eigen::Tensor<std::int64_t, 1>>(tensor.data(), 4));
    check_ids(Eigen::Map<Eigen::VectorXi>(vector.data(), 4));
  });

  const posenc::TokenEmbedding<float> token(Eigen::MatrixXf::Identity(5, 3).eval());
  Eigen::MatrixXi ids(1, 4);
  ids << 4, 0, 4, 2;
  Eigen::Tensor<float, 3> x(1, 4, 3);
  token.embed(x, ids);
  CHECK(x(0, 1, 0) == 1.0f);
  CHECK(x(0, 0, 0) == 0.0f);
}

TEST_CASE("TokenEmbedding's gradients take plain tensors") {
  const auto gradient = [](const Coordinates<2>& c) {
    double sum = 0;
    for (Index n = 0; n < 4; ++n)
      if (id(n) == c[0]) sum += 2 * Numbers()(Coordinates<2>{n, c[1]});
    return sum;
  };
  with_each_table([&](const auto& token, const auto& make) {
    const Halves halves;
    const auto dy = make(x_extents, Numbers());
    auto d_table = make(table_extents, zero);
    token.embed_vjp(d_table.t, list, dy.t);
    check_holds(d_table.t, table_extents, gradient);
    auto on_device = make(table_extents, zero);
    token.embed_vjp(halves, on_device.t, list, dy.t);
    check_holds(on_device.t, table_extents, gradient);
    for (const auto& sparse :
         {token.embed_vjp_sparse(list, dy.t), token.embed_vjp_sparse(halves, list, dy.t)}) {
      CHECK(sparse.ids == std::vector<posenc::Position>{0, 2, 4});
      check_holds(sparse.rows, Coordinates<2>{3, 3},
                  [&](const Coordinates<2>& c) { return gradient({2 * c[0], c[1]}); });
    }
    CHECK(halves.calls == 2);
  });
}

TEST_CASE("TokenEmbedding::logits and its gradient take plain tensors") {
  const Numbers h, d{0.5};
  const auto logits = [&](const Coordinates<2>& c) {
    double sum = 0;
    for (Index k = 0; k < 3; ++k) sum += h(Coordinates<2>{c[0], k}) * embedding(c[1], k);
    return sum;
  };
  const auto d_hidden = [&](const Coordinates<2>& c) {
    double sum = 0;
    for (Index v = 0; v < 5; ++v) sum += d(Coordinates<2>{c[0], v}) * embedding(v, c[1]);
    return sum;
  };
  const auto d_embedding = [&](const Coordinates<2>& c) {
    double sum = 0;
    for (Index n = 0; n < 4; ++n) sum += d(Coordinates<2>{n, c[0]}) * h(Coordinates<2>{n, c[1]});
    return sum;
  };
  with_each_table([&](const auto& token, const auto& make) {
    const auto hidden = make(x_extents, h), d_logits = make(logits_extents, d);
    const auto check_with = [&](const auto&... device) {
      auto out = make(logits_extents, zero);
      token.logits(device..., out.t, hidden.t);
      check_holds(out.t, logits_extents, logits);
      auto dh = make(x_extents, zero), d_table = make(table_extents, zero);
      token.logits_vjp(device..., dh.t, d_table.t, hidden.t, d_logits.t);
      check_holds(dh.t, x_extents, d_hidden);
      check_holds(d_table.t, table_extents, d_embedding);
    };
    const Halves halves;
    check_with();
    check_with(halves);
    CHECK(halves.calls > 0);
  });
}
