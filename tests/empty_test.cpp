// Tensors without an element: every verb does nothing, at once, and touches no memory. They have none here,
// but strides, and the extents besides the one of zero may be large. The address and undefined behaviour
// sanitizers see what a verb would do to a null pointer.

#include <array>
#include <cstdint>
#include <vector>

#include "posenc/posenc.hpp"
#include "support/support.hpp"

namespace {

using posenc::Axes;
using posenc::consecutive;
using posenc::Index;
using posenc::Mode;
using posenc::Pairing;
using posenc::Positions;
using posenc::View;
using posenc_test::ThreadsDevice;

/// f(view) for views without memory: each axis of no entries in turn, and the first axis long.
template <std::size_t Rank, class F>
void each_empty(const std::array<Index, Rank>& extents, const F& f) {
  std::array<Index, Rank> strides{};
  Index step = 3;
  for (std::size_t axis = Rank; axis-- > 0;) strides[axis] = step, step *= 16;
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    auto none = extents;
    none[axis] = 0;
    f(View<float, Rank>(nullptr, none, strides));
  }
}

/// What a call without a device and one with one do.
template <class Call>
void both(const Call& call) {
  call(Eigen::DefaultDevice());
  call(ThreadsDevice{3});
}

}  // namespace

TEST_CASE("nothing is added to embeddings of no tokens or no features", "[empty]") {
  const posenc::Sinusoidal sinusoidal({.d_model = 4});
  const Eigen::MatrixXf table = Eigen::MatrixXf::Ones(9, 4);
  const posenc::LearnedPositions learned(table);
  const posenc::TokenEmbedding token(table);
  const posenc::TransformerEmbedding<float> layer(token, learned, {.position_embedding_type = "learned"});
  each_empty<3>({2, 3, 4}, [&](const View<float, 3>& x) {
    CHECK_NOTHROW(posenc::Dropout(0.5).apply(x, Mode::train, 1));
    CHECK_NOTHROW(posenc::Dropout(0.5).apply(View<float, 3>(x), x, Mode::eval, 1));
    if (x.extent(2) != 4) return;
    const Positions at = consecutive(0, x.extent(1));
    const View<const std::int64_t, 2> ids(nullptr, {x.extent(0), x.extent(1)}, {48, 3});
    Eigen::MatrixXf d_table = Eigen::MatrixXf::Ones(9, 4), d_positions = d_table;
    both([&](const auto& device) {
      CHECK_NOTHROW(sinusoidal.add(device, x, at));
      CHECK_NOTHROW(sinusoidal.encode(device, x, at));
      CHECK_NOTHROW(learned.add(device, x, at));
      CHECK_NOTHROW(learned.embed(device, x, at));
      CHECK_NOTHROW(learned.add_vjp(device, d_table, at, x));
      CHECK_NOTHROW(token.embed(device, x, ids));
      CHECK_NOTHROW(token.embed_vjp(device, d_table, ids, x));
      CHECK_NOTHROW(layer.embed(device, x, ids, at));
      CHECK_NOTHROW(layer.embed_vjp(device, d_table, d_positions, ids, at, x));
    });
    CHECK(sinusoidal.scale_vjp(x, at) == 0);
    CHECK(token.embed_vjp_sparse(ids, x).ids.empty());
    CHECK(d_table == Eigen::MatrixXf::Ones(9, 4));
    CHECK(d_positions == d_table);
  });
}

TEST_CASE("the head of no tokens has no logits", "[empty]") {
  const Eigen::MatrixXf table = Eigen::MatrixXf::Ones(5, 4);
  const posenc::TokenEmbedding token(table);
  for (const auto& extents : {std::array<Index, 3>{0, 3, 4}, {2, 0, 4}}) {
    const View<float, 3> h(nullptr, extents, {100, 20, 3});
    const View<float, 3> logits(nullptr, {extents[0], extents[1], 5}, {100, 20, 3});
    Eigen::MatrixXf d_table = table;
    CHECK_NOTHROW(token.logits(logits, h));
    CHECK_NOTHROW(token.logits_vjp(h, d_table, h, logits));
    CHECK(d_table == table);
  }
}

TEST_CASE("rotations of no heads, tokens or dimensions", "[empty]") {
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 6}), Pairing::half);
  const posenc::Rotary slower(posenc::rotary_frequencies({.head_dim = 6, .rope_theta = 5e5}), Pairing::half);
  const posenc::Rotary strange(posenc::rotary_frequencies({.head_dim = 6}), Pairing::adjacent_to_half);
  const Eigen::MatrixXf cos = Eigen::MatrixXf::Ones(9, 3), sin = cos;
  const posenc::RotaryTable table(cos, sin, Pairing::adjacent);
  each_empty<4>({2, 3, 5, 6}, [&](const View<float, 4>& x) {
    if (x.extent(3) != 6) return;
    const Positions at = consecutive(0, x.extent(1));
    both([&](const auto& device) {
      CHECK_NOTHROW(rope.rotate(device, x, at, Axes::bshd));
      CHECK_NOTHROW(rope.rotate(device, View<float, 4>(x), x, at, Axes::bshd));
      CHECK_NOTHROW(rope.rotate_vjp(device, x, at, Axes::bshd));
      CHECK_NOTHROW(rope.rotate_inverse(device, x, at, Axes::bshd));
      CHECK_NOTHROW(rope.shift(device, x, 5, Axes::bshd));
      CHECK_NOTHROW(strange.rotate(device, x, at, Axes::bshd));
      CHECK_NOTHROW(table.rotate(device, x, at, Axes::bshd));
      CHECK_NOTHROW(posenc::KeyRebase(rope, slower).apply(device, x, at, Axes::bshd));
      CHECK_NOTHROW(posenc::Xpos(rope).rotate_key(device, x, at, Axes::bshd));
      CHECK_NOTHROW(posenc::AttentionTemperature({}).scale(device, x, at, Axes::bshd));
    });
    const std::vector<posenc::Rotary> ropes(1, rope);
    const std::vector<Index> choice(static_cast<std::size_t>(x.extent(0)), 0);
    CHECK_NOTHROW(posenc::rotate_per_row(x, ropes, choice, at, Axes::bshd));
  });
  each_empty<2>({3, 3}, [&](const View<float, 2>& x) {
    if (x.extent(1) == 3) CHECK_NOTHROW(rope.cos_sin(x, x, consecutive(0, x.extent(0))));
  });
  each_empty<2>({6, 7}, [&](const View<float, 2>& w) {
    if (w.extent(0) == 6)
      CHECK_NOTHROW(
          posenc::convert_pairing(w, Pairing::half, Pairing::adjacent, {.num_heads = 1, .head_dim = 6}));
  });
}

TEST_CASE("biases and probabilities of no keys, queries or heads", "[empty]") {
  const posenc::Alibi alibi(4);
  std::vector<double> slopes(4);
  // A size of its own for each axis: of the queries, as many as there would be no end of.
  each_empty<4>({2, 4, Index{1} << 44, 5}, [&](const View<float, 4>& x) {
    const Positions q = consecutive(0, x.extent(2)), k = consecutive(0, x.extent(3));
    both([&](const auto& device) {
      CHECK_NOTHROW(alibi.add(device, x, q, k));
      if (x.extent(1) == 4) CHECK_NOTHROW(alibi.add_vjp(device, slopes, x, q, k));
      CHECK_NOTHROW(posenc::softmax(device, x, alibi, q, k));
      CHECK_NOTHROW(posenc::softmax(device, View<float, 4>(x), x, posenc::NoBias(), q, k));
      CHECK_NOTHROW(posenc::softmax(device, x, posenc::NoBias(), q, k, {.causal = true}));
      CHECK_NOTHROW(posenc::softmax_vjp(device, View<float, 4>(x), x));
    });
  });
  each_empty<2>({3, 5}, [&](const View<float, 2>& x) {
    CHECK_NOTHROW(alibi.tile(x, 0, consecutive(0, x.extent(0)), consecutive(0, x.extent(1))));
  });
  CHECK(slopes == std::vector<double>(4));
}

TEST_CASE("a part of a view of nothing is nothing", "[empty]") {
  const View<float, 3> none(nullptr, {4, 0, 6}, {100, 10, 1});
  const auto part = none.slice(0, 1, 3).slice(2, 2, 4);
  CHECK(part.data() == nullptr);
  CHECK(part.extents() == std::array<Index, 3>{3, 0, 4});
  CHECK(posenc::split_heads(none, 3).size() == 0);
  CHECK(none.permute({2, 0, 1}).size() == 0);
}
