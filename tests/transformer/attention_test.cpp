// What attention must do whatever its weights are: masks, groups, positions, and the cache.

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/transformer.hpp"

using namespace transformer_test;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

/// (tokens, heads, dim) of random numbers, and the memory behind it.
struct Heads {
  Matrix<double> rows;
  Index heads;
  Heads(Index tokens, Index number, Index dim, std::uint64_t seed)
      : rows(random_matrix<double>(tokens, number * dim, seed)), heads(number) {}
  View<double, 3> view() { return posenc::split_heads(rows, heads); }
  View<const double, 3> view() const { return posenc::split_heads(rows, heads); }
};

struct Result {
  Matrix<double> out, p, dq, dk, dv;
};

/// attend and attend_vjp for d_out = `d_out`.
Result run(const Heads& q, const Heads& k, const Heads& v, const AttentionMask& mask, const Heads& d_out,
           const AttentionOptions& options = {.scale = 0.5}) {
  const Index queries = q.rows.rows(), keys = k.rows.rows();
  Heads out = d_out, dq = q, dk = k, dv = v;
  out.rows.setConstant(not_a_number), dq.rows.setConstant(not_a_number);
  dk.rows.setZero(), dv.rows.setZero();
  Matrix<double> p(q.heads * queries, keys), capped = p, scratch(queries, keys);
  const std::array<Index, 3> shape = {q.heads, queries, keys};
  const View<double, 3> probabilities(p.data(), shape), saved(capped.data(), shape);
  attend(out.view(), q.view(), k.view(), v.view(), probabilities, saved, options, mask,
         [](const View<double, 3>&) {});
  attend_vjp<double>(dq.view(), dk.view(), dv.view(), d_out.view(), q.view(), k.view(), v.view(),
                     probabilities, saved, options, mask,
                     View<double, 3>(scratch.data(), {1, queries, keys}));
  return {out.rows, p, dq.rows, dk.rows, dv.rows};
}

/// The definition, one number at a time.
Matrix<double> by_definition(const Heads& q, const Heads& k, const Heads& v, const AttentionMask& mask,
                             const AttentionOptions& options) {
  const Index queries = q.rows.rows(), keys = k.rows.rows(), dim = q.view().extent(2),
              width = v.view().extent(2);
  Matrix<double> out = Matrix<double>::Zero(queries, q.heads * width);
  for (Index h = 0; h < q.heads; ++h)
    for (Index i = 0; i < queries; ++i) {
      const Index g = h / (q.heads / k.heads);
      std::vector<double> e(static_cast<std::size_t>(keys), 0.0);
      for (Index j = 0; j < keys; ++j) {
        if (!mask.visible(i, j)) continue;
        double s = 0;
        for (Index c = 0; c < dim; ++c) s += q.view()(i, h, c) * k.view()(j, g, c);
        s *= options.scale;
        if (options.softcap != 0) s = options.softcap * std::tanh(s / options.softcap);
        e[static_cast<std::size_t>(j)] = std::exp(s);
      }
      const double sum = std::accumulate(e.begin(), e.end(), 0.0);
      for (Index j = 0; j < keys; ++j)
        for (Index c = 0; c < width && e[static_cast<std::size_t>(j)] > 0; ++c)
          out(i, h * width + c) += e[static_cast<std::size_t>(j)] / sum * v.view()(j, g, c);
    }
  return out;
}

double difference(const Matrix<double>& a, const Matrix<double>& b) {
  return (a - b).array().abs().maxCoeff();
}

template <class Scalar>
Transformer<Scalar> small_model(PositionScheme scheme, Index kv_heads = 0) {
  Transformer<Scalar> model({.vocab_size = 20,
                             .d_model = 16,
                             .num_heads = 4,
                             .num_kv_heads = kv_heads,
                             .d_ff = 24,
                             .positions = scheme,
                             .max_positions = 64},
                            7);
  shake(model.parameters(), 8);
  return model;
}

PositionScheme any_scheme() {
  return GENERATE(PositionScheme::none, PositionScheme::sinusoidal, PositionScheme::learned,
                  PositionScheme::rope, PositionScheme::alibi);
}

}  // namespace

TEST_CASE("attention is its definition under every mask", "[property]") {
  const Index queries = GENERATE(1, 3, 5), keys = 5, kv_heads = GENERATE(1, 2, 4);
  const AttentionOptions options{.scale = 0.7, .softcap = GENERATE(0.0, 1.5)};
  const Heads q(queries, 4, 3, 1), k(keys, kv_heads, 3, 2), v(keys, kv_heads, 6, 3), d_out(queries, 4, 6, 4);
  const std::vector<std::uint8_t> tokens = {1, 0, 1, 1, 0};
  Matrix<std::uint8_t> pairs(queries, keys);
  for (Index n = 0; n < pairs.size(); ++n) pairs.data()[n] = n % 3 != 0;
  AttentionMask mask;
  if (GENERATE(false, true)) mask = AttentionMask::causal(queries, keys);
  if (GENERATE(false, true)) mask.keys = tokens.data();
  if (GENERATE(false, true)) mask.pairs = view_of(pairs);
  CHECK(difference(run(q, k, v, mask, d_out, options).out, by_definition(q, k, v, mask, options)) < 1e-13);
}

TEST_CASE("a causal mask is aligned with the last key", "[unit]") {
  const AttentionMask mask = AttentionMask::causal(2, 5);  // two new queries, three keys of the past
  for (Index j = 0; j < 5; ++j) {
    CHECK(mask.visible(0, j) == (j <= 3));
    CHECK(mask.visible(1, j));
  }
  const AttentionMask more_queries = AttentionMask::causal(4, 2);  // the first two see nothing
  CHECK_FALSE(more_queries.visible(0, 0));
  CHECK_FALSE(more_queries.visible(1, 0));
  CHECK(more_queries.visible(2, 0));
  CHECK_FALSE(more_queries.visible(2, 1));
}

TEST_CASE("a query that sees no key gets zeros, and gives no gradient", "[unit]") {
  const Heads q(4, 2, 3, 1), k(2, 2, 3, 2), v(2, 2, 3, 3), d_out(4, 2, 3, 4);
  const Result r = run(q, k, v, AttentionMask::causal(4, 2), d_out);
  CHECK(r.out.topRows(2).isZero(0));
  CHECK(r.dq.topRows(2).isZero(0));
  CHECK_FALSE(r.out.row(2).isZero(0));
  const std::vector<std::uint8_t> nothing = {0, 0};
  AttentionMask mask;
  mask.keys = nothing.data();
  const Result none = run(q, k, v, mask, d_out);
  CHECK(none.out.isZero(0));
  CHECK(none.p.isZero(0));
  CHECK(none.dk.isZero(0));
  CHECK(none.dv.isZero(0));
}

TEST_CASE("what a mask hides never leaks, not even NaN or infinity", "[unit]") {
  const bool infinite = GENERATE(false, true);
  const double poison = infinite ? std::numeric_limits<double>::infinity() : not_a_number;
  const AttentionOptions options{.scale = 0.5, .softcap = GENERATE(0.0, 1.0)};
  Heads q(3, 2, 4, 1), k(5, 2, 4, 2), v(5, 2, 4, 3), d_out(3, 2, 4, 4);
  const std::vector<std::uint8_t> tokens = {1, 1, 0, 1, 0};
  AttentionMask mask;
  mask.keys = tokens.data();
  const bool causal = GENERATE(false, true);
  if (causal) mask.causal_offset = 0;  // key 3 is then hidden as well
  const Result clean = run(q, k, v, mask, d_out, options);
  for (const Index hidden : {Index{2}, Index{4}})
    k.rows.row(hidden).setConstant(poison), v.rows.row(hidden).setConstant(poison);
  if (causal) v.rows(3, 0) = poison, k.rows(3, 5) = poison;
  const Result poisoned = run(q, k, v, mask, d_out, options);
  for (const auto part : {&Result::out, &Result::p, &Result::dq, &Result::dk, &Result::dv}) {
    CHECK((poisoned.*part).allFinite());
    CHECK(difference(clean.*part, poisoned.*part) < 1e-14);
  }
  // Visible to one query and hidden from another: only the first is hurt.
  AttentionMask staircase;
  staircase.causal_offset = 0;
  Heads other(3, 2, 4, 9);
  other.rows.row(2).setConstant(poison);
  const Result last = run(q, Heads(3, 2, 4, 2), other, staircase, d_out, options);
  CHECK(last.out.topRows(2).allFinite());
  CHECK_FALSE(last.out.row(2).allFinite());
}

TEST_CASE("grouped queries are repeated keys and values", "[property]") {
  const Index kv_heads = GENERATE(1, 2);
  const Heads q(3, 4, 2, 1), d_out(3, 4, 2, 4);
  const Heads k(5, kv_heads, 2, 2), v(5, kv_heads, 2, 3);
  const auto repeated = [&](const Heads& x) {
    Heads all(5, 4, 2, 1);
    for (Index h = 0; h < 4; ++h)
      all.rows.middleCols(2 * h, 2) = x.rows.middleCols(2 * (h / (4 / kv_heads)), 2);
    return all;
  };
  const auto summed = [&](const Matrix<double>& x) {
    Matrix<double> sum = Matrix<double>::Zero(5, kv_heads * 2);
    for (Index h = 0; h < 4; ++h) sum.middleCols(2 * (h / (4 / kv_heads)), 2) += x.middleCols(2 * h, 2);
    return sum;
  };
  const AttentionMask mask = AttentionMask::causal(3, 5);
  const Result grouped = run(q, k, v, mask, d_out), full = run(q, repeated(k), repeated(v), mask, d_out);
  CHECK(difference(grouped.out, full.out) < 1e-14);
  CHECK(difference(grouped.dq, full.dq) < 1e-14);
  CHECK(difference(grouped.dk, summed(full.dk)) < 1e-14);
  CHECK(difference(grouped.dv, summed(full.dv)) < 1e-14);
}

TEST_CASE("without positions, self-attention commutes with permutations", "[property]") {
  const PositionScheme scheme = GENERATE(PositionScheme::none, PositionScheme::rope, PositionScheme::alibi);
  const std::vector<Index> order = {3, 0, 4, 1, 2};
  Parameters<double> parameters(3);
  const PositionEncoding<double> positions(parameters, "positions",
                                           {.scheme = scheme, .d_model = 16, .num_heads = 4});
  const SelfAttention<double> attention(parameters, "attention",
                                        {.d_model = 16, .num_heads = 4, .num_kv_heads = 4}, positions);
  parameters.initialize();
  const Sequences five = random_sentences({5}, 9, 1);
  const Matrix<double> x = random_matrix<double>(5, 16, 2);
  Matrix<double> permuted(5, 16);
  for (Index i = 0; i < 5; ++i) permuted.row(i) = x.row(order[static_cast<std::size_t>(i)]);
  const auto attend_to = [&](const Matrix<double>& in) {
    Workspace<double> workspace;
    Pass<double> pass{.parameters = parameters, .workspace = workspace};
    SelfAttention<double>::Saved saved;
    return copy_of(attention.forward(pass, view_of(in), five, five.positions(), saved));
  };
  const Matrix<double> y = attend_to(x), z = attend_to(permuted);
  Matrix<double> expected(5, 16);
  for (Index i = 0; i < 5; ++i) expected.row(i) = y.row(order[static_cast<std::size_t>(i)]);
  if (scheme == PositionScheme::none)
    CHECK(difference(expected, z) < 1e-14);
  else
    CHECK(difference(expected, z) > 1e-3);
}

TEST_CASE("rope: only distances count", "[property]") {
  Parameters<double> parameters(3);
  const PositionEncoding<double> positions(parameters, "positions",
                                           {.scheme = PositionScheme::rope, .d_model = 16, .num_heads = 4});
  const SelfAttention<double> attention(parameters, "attention",
                                        {.d_model = 16, .num_heads = 4, .num_kv_heads = 2}, positions);
  parameters.initialize();
  const Sequences five = random_sentences({5}, 9, 1);
  const Matrix<double> x = random_matrix<double>(5, 16, 2);
  const auto attend_at = [&](const posenc::Positions& at) {
    Workspace<double> workspace;
    Pass<double> pass{.parameters = parameters, .workspace = workspace};
    SelfAttention<double>::Saved saved;
    return copy_of(attention.forward(pass, view_of(x), five, at, saved));
  };
  const auto here = posenc::consecutive(0, 5);
  CHECK(difference(attend_at(here), attend_at(here.shifted(100000))) < 1e-12);
  CHECK(difference(attend_at(here), attend_at(posenc::position_ids(std::vector<int>{0, 2, 4, 6, 8}))) > 1e-3);
}

TEST_CASE("cross-attention knows no order of the source under rope and alibi", "[property]") {
  const PositionScheme scheme = GENERATE(PositionScheme::rope, PositionScheme::alibi);
  const auto model = small_model<double>(scheme);
  const auto& layer = model.decoder_layers()[0].cross_attention();
  const Sequences source = random_sentences({4}, 9, 1), target = random_sentences({3}, 9, 2);
  const Matrix<double> x = random_matrix<double>(3, 16, 3), memory = random_matrix<double>(4, 16, 4);
  const Matrix<double> reversed = memory.colwise().reverse();
  const auto look_at = [&](const Matrix<double>& m) {
    Workspace<double> workspace;
    Pass<double> pass{.parameters = model.parameters(), .workspace = workspace};
    CrossAttention<double>::Saved saved;
    return copy_of(layer.forward(pass, view_of(x), target, view_of(m), source, saved));
  };
  CHECK(difference(look_at(memory), look_at(reversed)) < 1e-14);
}

TEST_CASE("a padded batch is the packed batch", "[property]") {
  const auto model = small_model<double>(any_scheme(), 2);
  const bool left = GENERATE(false, true);
  const std::vector<Index> lengths = {4, 2, 5};
  Sequences packed_source, packed_target;
  Matrix<Token> ids(3, 5), target_ids(3, 6);
  Matrix<std::uint8_t> mask(3, 5), target_mask(3, 6);
  ids.setConstant(19), target_ids.setConstant(19), mask.setZero(), target_mask.setZero();
  for (Index row = 0; row < 3; ++row) {
    const Index n = lengths[static_cast<std::size_t>(row)];
    const auto seed = static_cast<std::uint64_t>(row);
    const Tokens words = random_tokens(n, 19, seed), labels = random_tokens(n + 1, 19, seed + 5);
    packed_source.append(words), packed_target.append(labels);
    for (Index i = 0; i < n; ++i) {
      const Index column = left ? 5 - n + i : i;
      ids(row, column) = words[static_cast<std::size_t>(i)], mask(row, column) = 1;
    }
    for (Index i = 0; i <= n; ++i) {
      const Index column = left ? 5 - n + i : i;
      target_ids(row, column) = labels[static_cast<std::size_t>(i)], target_mask(row, column) = 1;
    }
  }
  const auto forward = [&](const Sequences& source, const Sequences& target) {
    Workspace<double> workspace;
    Pass<double> pass{.parameters = model.parameters(), .workspace = workspace};
    Transformer<double>::Saved saved;
    return copy_of(model.forward(pass, source, target, saved));
  };
  const Matrix<double> packed = forward(packed_source, packed_target);
  const Matrix<double> padded = forward(Sequences::padded(view_of(ids), view_of(mask)),
                                        Sequences::padded(view_of(target_ids), view_of(target_mask)));
  Index token = 0;
  for (Index row = 0; row < 3; ++row)
    for (Index i = 0; i < 6; ++i)
      if (target_mask(row, i))
        CHECK((padded.row(6 * row + i) - packed.row(token++)).array().abs().maxCoeff() < 1e-12);
  CHECK(token == packed.rows());
}

TEMPLATE_TEST_CASE("prefill, chunks and one token at a time agree", "[property]", float, double) {
  using Scalar = TestType;
  const PositionScheme scheme = any_scheme();
  const Index kv_heads = GENERATE(0, 2);
  CAPTURE(name_of(scheme), kv_heads);
  const auto model = small_model<Scalar>(scheme, kv_heads);
  const Tokens source = random_tokens(5, 20, 1), target = random_tokens(9, 20, 2);
  const Matrix<Scalar> whole = logits<Scalar>(model, source, target);  // without a cache
  Tokens read = {model.config().special.bos};
  read.insert(read.end(), target.begin(), target.end());
  const double bound = std::is_same_v<Scalar, float> ? 2e-4 : 1e-12;
  for (const std::vector<std::size_t>& chunks :
       {std::vector<std::size_t>{10}, {1, 9}, {4, 3, 3}, std::vector<std::size_t>(10, 1)}) {
    Decoding<Scalar> state = start_decoding<Scalar>(model, source);
    std::size_t first = 0;
    for (const std::size_t n : chunks) {
      const Matrix<Scalar> part = extend<Scalar>(model, state, std::span(read).subspan(first, n));
      CHECK(static_cast<double>((part - whole.middleRows(static_cast<Index>(first), static_cast<Index>(n)))
                                    .array()
                                    .abs()
                                    .maxCoeff()) < bound);
      first += n;
    }
    CHECK(state.length == 10);
  }
}

TEST_CASE("a decoding state is a value: a copy goes its own way", "[unit]") {
  const auto model = small_model<double>(PositionScheme::rope);
  const Tokens source = {4, 5}, a = {1, 6}, b = {7}, c = {8};
  Decoding<double> one = start_decoding<double>(model, source);
  extend<double>(model, one, a);
  Decoding<double> two = one;
  extend<double>(model, two, b);
  const Matrix<double> after = extend<double>(model, one, c);
  CHECK(difference(after.row(0), logits<double>(model, source, Tokens{6, 8}).row(2)) < 1e-12);
}
