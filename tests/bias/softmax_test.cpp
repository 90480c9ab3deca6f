// Softmax with a bias: probabilities of what is seen, zeros elsewhere, the same whatever the storage.

#include "posenc/bias/softmax.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "posenc/bias/alibi.hpp"
#include "posenc/bias/relative.hpp"
#include "posenc/bias/rules/t5_buckets.hpp"
#include "support/overlap.hpp"
#include "support/support.hpp"

using Eigen::bfloat16;
using Eigen::half;
using posenc::Alibi;
using posenc::AlibiConfig;
using posenc::AlibiForm;
using posenc::consecutive;
using posenc::Index;
using posenc::NoBias;
using posenc::Position;
using posenc::position_ids;
using posenc::Positions;
using posenc::softmax;
using posenc::softmax_vjp;
using posenc::SoftmaxConfig;
using posenc_test::check_throws;
using posenc_test::epsilon;
using posenc_test::fill;
using posenc_test::in_every_storage;
using posenc_test::random_values;
using posenc_test::same_bits;
using posenc_test::ThreadsDevice;
using posenc_test::to_double;
using posenc_test::Values;

namespace {

const double infinity = posenc_test::infinity;

/// The definition, in long double, from x[b, h, i, j] in row-major order; hidden keys are -infinity.
std::vector<double> definition(const std::vector<double>& x, Index keys) {
  std::vector<double> p(x.size());
  for (std::size_t row = 0; row < x.size(); row += static_cast<std::size_t>(keys)) {
    long double sum = 0, top = -posenc_test::infinity;
    for (std::size_t j = row; j < row + static_cast<std::size_t>(keys); ++j)
      top = std::max(top, static_cast<long double>(x[j]));
    if (posenc_test::is_infinite(static_cast<double>(top))) continue;
    for (std::size_t j = row; j < row + static_cast<std::size_t>(keys); ++j)
      sum += std::exp(static_cast<long double>(x[j]) - top);
    for (std::size_t j = row; j < row + static_cast<std::size_t>(keys); ++j)
      p[j] = static_cast<double>(std::exp(static_cast<long double>(x[j]) - top) / sum);
  }
  return p;
}

/// x of the definition: the scores scaled, and the bias in double.
template <class S, class Bias>
std::vector<double> biased(const Values<S, 4>& scores, const Bias& bias, const Positions& q,
                           const Positions& k, const SoftmaxConfig& config) {
  std::vector<double> x;
  posenc_test::for_each_coordinate(scores.extents, [&](const auto& at, Index n) {
    const Position i = q(at[0], at[2]), j = k(at[0], at[3]);
    const double b = bias(at[1], i, j);
    const double s = to_double(scores.values[static_cast<std::size_t>(n)]);
    x.push_back((config.causal && j > i) || b == -infinity ? -infinity : config.scale * s + b);
  });
  return x;
}

auto value_of(const Alibi& alibi) {
  return [&alibi](Index h, Position i, Position j) { return alibi.value(h, i, j); };
}

double no_bias(Index, Position, Position) { return 0.0; }

template <class S>
double worst(const Values<S, 4>& got, const std::vector<double>& expected) {
  double most = 0;
  for (std::size_t n = 0; n < expected.size(); ++n) {
    const double off = std::fabs(to_double(got.values[n]) - expected[n]);
    if (posenc_test::is_nan(off) || off > most) most = off;
  }
  return most;
}

Positions scattered() {
  Eigen::Tensor<int, 2, Eigen::RowMajor> ids(2, 19);
  for (int b = 0; b < 2; ++b)
    for (int j = 0; j < 19; ++j) ids(b, j) = (j * 7 + 3 * b) % 23 - 4;
  return position_ids(ids);
}

}  // namespace

TEMPLATE_TEST_CASE("probabilities are those of the definition", "[softmax][property]", float, double, half,
                   bfloat16) {
  for (const AlibiForm form : {AlibiForm::symmetric, AlibiForm::causal, AlibiForm::key_position})
    for (const bool causal : {false, true})
      for (const Index keys : {Index{1}, Index{2}, Index{15}, Index{16}, Index{17}, Index{100}}) {
        INFO(keys << " keys, causal " << causal << ", form " << int(form));
        const Alibi alibi(AlibiConfig{.num_heads = 12, .form = form});
        const auto scores = random_values<TestType, 4>({2, 12, 3, keys});
        const Positions q = consecutive(keys / 2, 3), k = consecutive(0, keys);
        const SoftmaxConfig config{.scale = 0.5, .causal = causal};
        auto p = scores;
        softmax(p.view(), alibi, q, k, config);
        // One rounding of the result, and float arithmetic before it; the form of BLOOM grows with the
        // position.
        const double arithmetic = sizeof(TestType) == 8             ? 1e-14
                                  : form == AlibiForm::key_position ? 4e-6
                                                                    : 3e-7;
        CHECK(worst(p, definition(biased(scores, value_of(alibi), q, k, config), keys)) <=
              epsilon<TestType> / 2 + arithmetic);
      }
}

TEST_CASE("rows longer than the buffer, scattered positions, positions per row", "[softmax][unit]") {
  const Alibi alibi(4);
  for (const Index keys : {Index{4096}, Index{4097}, Index{9000}}) {
    const auto scores = random_values<float, 4>({1, 4, 2, keys});
    const Positions q = consecutive(keys - 2, 2), k = consecutive(0, keys);
    for (const bool causal : {false, true}) {
      auto p = scores;
      softmax(p.view(), alibi, q, k, {.causal = causal});
      CHECK(worst(p, definition(biased(scores, value_of(alibi), q, k, {.causal = causal}), keys)) <= 3e-7);
    }
  }
  const auto scores = random_values<float, 4>({2, 4, 19, 19});
  const std::vector<Position> starts{0, 40}, query_starts{3, 30};
  const Positions q = consecutive(query_starts, 19), k = consecutive(starts, 19);
  for (const bool causal : {false, true}) {
    auto p = scores;
    softmax(p.view(), alibi, q, k, {.causal = causal});
    CHECK(worst(p, definition(biased(scores, value_of(alibi), q, k, {.causal = causal}), 19)) <= 3e-7);
    p = scores;
    softmax(p.view(), alibi, scattered(), scattered(), {.causal = causal});
    CHECK(worst(p, definition(biased(scores, value_of(alibi), scattered(), scattered(), {.causal = causal}),
                              19)) <= 3e-7);
  }
}

TEST_CASE("any function is a bias, and none at all", "[softmax][unit]") {
  const auto window = [](Index h, Position i, Position j) {
    return i - j > 4 ? -infinity : 0.25 * double(h + 1);
  };
  const auto scores = random_values<float, 4>({2, 3, 7, 21});
  const Positions q = consecutive(14, 7), k = consecutive(0, 21);
  auto p = scores;
  softmax(p.view(), window, q, k, {.causal = true});
  CHECK(worst(p, definition(biased(scores, window, q, k, {.causal = true}), 21)) <= 3e-7);
  for (const double scale : {1.0, 0.25}) {
    p = scores;
    softmax(p.view(), NoBias{}, q, k, {.scale = scale});
    CHECK(worst(p, definition(biased(scores, no_bias, q, k, {.scale = scale}), 21)) <= 3e-7);
  }
  // A function is asked about each head, and about the positions of each row of the batch.
  const auto parity = [](Index h, Position i, Position j) {
    return double(h + 1) * ((i + j) % 2 == 0 ? 0.5 : -0.5) * double(j % 5);
  };
  const auto square = random_values<float, 4>({2, 3, 19, 19});
  p = square;
  softmax(p.view(), parity, scattered(), scattered(), {.scale = 0.5});
  CHECK(worst(p, definition(biased(square, parity, scattered(), scattered(), {.scale = 0.5}), 19)) <= 3e-7);
  // And in rows that are longer than the buffer.
  const auto steps = [](Index, Position, Position j) { return j < 4096 ? 0.0 : 4.0; };
  const auto wide = random_values<float, 4>({1, 1, 1, 4100});
  p = wide;
  softmax(p.view(), steps, consecutive(0, 1), consecutive(0, 4100));
  CHECK(worst(p, definition(biased(wide, steps, consecutive(0, 1), consecutive(0, 4100), {}), 4100)) <= 3e-7);
}

TEST_CASE("scores of any size have probabilities, and those of a row sum to one", "[softmax][property]") {
  for (const float most : {-3e38f, -1000.0f, 89.0f, 1000.0f, 3e38f}) {
    Values<float, 4> p{{1, 1, 1, 3}, {most, most - 1, most}};
    const auto scores = p;
    softmax(p.view(), NoBias{}, consecutive(0, 1), consecutive(0, 3));
    INFO(most);
    CHECK(worst(p, definition(biased(scores, no_bias, consecutive(0, 1), consecutive(0, 3), {}), 3)) <= 3e-7);
  }
}

TEST_CASE("keys of a cache that begins late are hidden by their positions", "[softmax][unit]") {
  // A window of the last 6 keys: positions 100 .. 105, queries 101 .. 104; the same as from 0 on.
  const auto scores = random_values<float, 4>({1, 2, 4, 6});
  for (const Position start : {Position{100}, Position{-7}, Position{1} << 40}) {
    const Positions q = consecutive(start + 1, 4), k = consecutive(start, 6);
    auto p = scores, expected = scores;
    softmax(p.view(), Alibi(2), q, k, {.causal = true});
    softmax(expected.view(), Alibi(2), consecutive(1, 4), consecutive(0, 6), {.causal = true});
    CHECK(same_bits(p, expected));
    for (Index h = 0; h < 2; ++h)
      for (Index i = 0; i < 4; ++i)
        for (Index j = 0; j < 6; ++j) CHECK((p.view()(0, h, i, j) > 0) == (j <= i + 1));
  }
}

TEST_CASE("a query far from all others does not change the biases of its neighbours", "[softmax][unit]") {
  const std::vector<Position> ids{5, Position{1} << 52, 6, -(Position{1} << 52), 7};
  const auto scores = random_values<double, 4>({1, 2, 5, 9});
  const Positions k = consecutive(0, 9);
  auto together = scores;
  softmax(together.view(), Alibi(2), position_ids(ids), k);
  for (Index i = 0; i < 5; ++i) {
    auto alone = posenc_test::values_of(scores.view().slice(2, i, 1));
    softmax(alone.view(), Alibi(2), consecutive(ids[static_cast<std::size_t>(i)], 1), k);
    CHECK(same_bits(alone, posenc_test::values_of(together.view().slice(2, i, 1))));
  }
}

TEST_CASE("what is hidden never leaks, and a query that sees nothing gets zeros", "[softmax][property]") {
  static const double nan = posenc_test::quiet_nan;
  const Alibi alibi(2);
  auto scores = random_values<double, 4>({1, 2, 4, 6});
  const Positions q = consecutive(-1, 4), k = consecutive(0, 6);  // query 0 is before every key
  const auto clean = [&] {
    auto p = scores;
    softmax(p.view(), alibi, q, k, {.causal = true});
    return p;
  }();
  for (const double poison : {nan, infinity, -infinity, 1e308}) {
    auto p = scores;
    for (Index h = 0; h < 2; ++h)
      for (Index i = 0; i < 4; ++i)
        for (Index j = i; j < 6; ++j) p.view()(0, h, i, j) = poison;
    softmax(p.view(), alibi, q, k, {.causal = true});
    CHECK(same_bits(p, clean));
    for (Index h = 0; h < 2; ++h)
      for (Index j = 0; j < 6; ++j) CHECK(p.view()(0, h, 0, j) == 0.0);
  }
  // The same where the keys come in any order, and where the bias hides them.
  const Positions ids = position_ids(std::vector<Position>{0, 1, 2, 3, 4, 5});
  const auto hiding = [&](Index h, Position i, Position j) {
    return j > i ? -infinity : alibi.value(h, i, j);
  };
  for (const double poison : {nan, infinity, -infinity, 1e308}) {
    auto p = scores;
    for (Index h = 0; h < 2; ++h)
      for (Index i = 0; i < 4; ++i)
        for (Index j = i; j < 6; ++j) p.view()(0, h, i, j) = poison;
    auto by_bias = p;
    softmax(p.view(), alibi, q, ids, {.causal = true});
    CHECK(same_bits(p, clean));
    softmax(by_bias.view(), hiding, q, k);
    CHECK(same_bits(by_bias, clean));
  }
  for (Index j = 0; j < 6; ++j) scores.view()(0, 1, 3, j) = -infinity;  // seen, and no probability
  softmax(scores.view(), alibi, q, k, {.causal = true});
  for (Index j = 0; j < 6; ++j) CHECK(scores.view()(0, 1, 3, j) == 0.0);
}

TEMPLATE_TEST_CASE("a row alone, its hidden keys and how its positions are given change no bit",
                   "[softmax][property]", float, double, half, bfloat16) {
  // Rows that end at each place of a pack, with and without room for the rest of it.
  for (const Index keys : {Index{35}, Index{48}}) {
    Eigen::Tensor<int, 1, Eigen::RowMajor> ids(keys);
    for (int j = 0; j < keys; ++j) ids(j) = j;
    const Positions at = consecutive(0, keys);
    for (const AlibiForm form : {AlibiForm::symmetric, AlibiForm::causal, AlibiForm::key_position})
      for (const bool causal : {false, true}) {
        INFO(keys << " keys, causal " << causal << ", form " << int(form));
        const bool any_hidden = causal || form == AlibiForm::causal;
        const Alibi alibi(AlibiConfig{.num_heads = 3, .form = form});
        const SoftmaxConfig config{.scale = 0.7, .causal = causal};
        auto scores = random_values<TestType, 4>({2, 3, keys, keys});
        auto expected = scores;
        softmax(expected.view(), alibi, at, at, config);
        auto one_by_one = scores;
        softmax(one_by_one.view(), alibi, at, position_ids(ids), config);
        CHECK(same_bits(one_by_one, expected));
        bool alone = true;
        for (const Index i : {Index{0}, Index{1}, Index{15}, Index{16}, Index{17}, keys - 1}) {
          Values<TestType, 4> row{{1, 3, 1, keys}, {}};
          for (Index h = 0; h < 3; ++h)
            for (Index j = 0; j < keys; ++j) row.values.push_back(scores.view()(1, h, i, j));
          softmax(row.view(), alibi, consecutive(i, 1), at, config);
          for (Index h = 0; h < 3; ++h)
            for (Index j = 0; j < keys; ++j)
              alone = alone && row.view()(0, h, 0, j) == expected.view()(1, h, i, j);
        }
        CHECK(alone);
        if (!any_hidden) continue;
        for (Index n = 0; n < 6; ++n)
          for (Index i = 0; i < keys; ++i)
            for (Index j = i + 1; j < keys; ++j)
              scores.view()(n / 3, n % 3, i, j) =
                  static_cast<TestType>(j % 2 ? posenc_test::quiet_nan : infinity);
        softmax(scores.view(), alibi, at, at, config);
        CHECK(same_bits(scores, expected));
      }
  }
}

// Not under -ffast-math, where a row that sees NaN has some value: .ci/run leaves the case out there.
TEST_CASE("NaN and infinity that are seen stay in their row, before what is hidden", "[softmax][property]") {
  const Positions q = consecutive(20, 4), k = consecutive(0, 40);
  for (const double poison : {posenc_test::quiet_nan, infinity}) {
    Values<float, 4> p{{1, 1, 4, 40}, std::vector<float>(160, 0.5f)};
    p.view()(0, 0, 1, 3) = static_cast<float>(poison);
    for (Index j = 0; j < 40; ++j) p.view()(0, 0, 2, j) = static_cast<float>(poison);
    for (Index j = 0; j < 40; ++j) p.view()(0, 0, 3, j) = static_cast<float>(-infinity);
    softmax(p.view(), Alibi(1), q, k, {.causal = true});
    for (Index j = 0; j < 40; ++j) {
      INFO(j);
      CHECK((p.view()(0, 0, 0, j) > 0) == (j <= 20));
      CHECK(posenc_test::is_nan(p.view()(0, 0, 1, j)) == (j <= 21));
      CHECK(posenc_test::is_nan(p.view()(0, 0, 2, j)) == (j <= 22));
      CHECK(p.view()(0, 0, 3, j) == 0.0f);
    }
  }
}

TEST_CASE("far keys are zero, not subnormal, and near ones sum to one", "[softmax][property]") {
  const Alibi alibi(8);
  Values<float, 4> p{{1, 8, 1, 3000}, std::vector<float>(24000, 0.0f)};
  softmax(p.view(), alibi, consecutive(2999, 1), consecutive(0, 3000), {.causal = true});
  CHECK(p.values[0] == 0.0f);
  int subnormal = 0;
  for (const float one : p.values) subnormal += std::fpclassify(one) == FP_SUBNORMAL;
  CHECK(subnormal == 0);
  for (Index h = 0; h < 8; ++h) {
    double sum = 0;
    for (Index j = 0; j < 3000; ++j) sum += static_cast<double>(p.view()(0, h, 0, j));
    CHECK(std::fabs(sum - 1) < 1e-6);
  }
}

TEMPLATE_TEST_CASE("adding the bias first changes no bit", "[softmax][property]", float, double) {
  for (const Index heads : {Index{8}, Index{12}}) {
    const Alibi alibi(heads);
    const auto scores = random_values<TestType, 4>({1, heads, 5, 37});
    const Positions q = consecutive(32, 5), k = consecutive(0, 37);
    auto fused = scores, apart = scores;
    softmax(fused.view(), alibi, q, k, {.causal = true});
    alibi.add(apart.view(), q, k);
    softmax(apart.view(), NoBias{}, q, k, {.causal = true});
    CHECK(same_bits(fused, apart));
  }
}

TEMPLATE_TEST_CASE("softmax is the same in every storage, on any number of threads",
                   "[softmax][property][threads]", float, double, half, bfloat16) {
  const Alibi alibi(6);
  const auto scores = random_values<TestType, 4>({2, 6, 5, 43});
  const Positions q = consecutive(38, 5), k = consecutive(0, 43);
  const SoftmaxConfig config{.scale = 0.7, .causal = true};
  auto expected = scores;
  softmax(expected.view(), alibi, q, k, config);
  in_every_storage(
      scores, [&](auto& storage) { softmax(storage, alibi, q, k, config); },
      [&](const char* name, const Values<TestType, 4>& p) {
        INFO(name);
        CHECK(same_bits(p, expected));
      });
  for (const int threads : {1, 2, 3, 7}) {
    auto p = scores;
    softmax(ThreadsDevice{threads}, p.view(), alibi, q, k, config);
    CHECK(same_bits(p, expected));
    Values<TestType, 4> out = scores;
    std::fill(out.values.begin(), out.values.end(), static_cast<TestType>(7));
    softmax(ThreadsDevice{threads}, out.view(), scores.view(), alibi, q, k, config);
    CHECK(same_bits(out, expected));
  }
  // One head, one query and one batch row alone.
  Values<TestType, 4> one{{1, 1, 1, 43}, {}};
  for (Index j = 0; j < 43; ++j) one.values.push_back(scores.view()(1, 4, 3, j));
  const Alibi shard(AlibiConfig{.num_heads = 6, .head_offset = 4});
  softmax(one.view(), shard, consecutive(41, 1), k, config);
  for (Index j = 0; j < 43; ++j) CHECK(one.view()(0, 0, 0, j) == expected.view()(1, 4, 3, j));
}

TEST_CASE("the gradient is that of finite differences", "[softmax][property]") {
  const Alibi alibi(3);
  const auto scores = random_values<double, 4>({1, 3, 2, 9});
  const auto weights = random_values<double, 4>({1, 3, 2, 9}, 5);
  const Positions q = consecutive(5, 2), k = consecutive(0, 9);
  const SoftmaxConfig config{.scale = 0.3, .causal = true};
  const auto loss = [&](const Values<double, 4>& x) {
    auto p = x;
    softmax(p.view(), alibi, q, k, config);
    return posenc_test::dot(p.values, weights.values);
  };
  auto p = scores, d = weights;
  softmax(p.view(), alibi, q, k, config);
  d.view()(0, 2, 0, 8) = posenc_test::quiet_nan;  // of a hidden key
  softmax_vjp(d.view(), p.view(), config.scale);
  for (std::size_t n = 0; n < scores.values.size(); ++n) {
    auto up = scores, down = scores;
    up.values[n] += 1e-6, down.values[n] -= 1e-6;
    CHECK(std::fabs(d.values[n] - (loss(up) - loss(down)) / 2e-6) < 1e-9);
  }
  auto threaded = weights;
  softmax_vjp(ThreadsDevice{3}, threaded.view(), p.view(), config.scale);
  auto alone = weights;
  softmax_vjp(alone.view(), p.view(), config.scale);
  CHECK(same_bits(threaded, alone));
}

TEST_CASE("no keys, no queries, no heads", "[softmax][unit]") {
  const Alibi alibi(4);
  for (const std::array<Index, 4> extents :
       {std::array<Index, 4>{1, 4, 3, 0}, std::array<Index, 4>{1, 4, 0, 3}, std::array<Index, 4>{1, 0, 3, 3},
        std::array<Index, 4>{0, 4, 3, 3}}) {
    Values<float, 4> p{extents, {}};
    softmax(p.view(), alibi, consecutive(0, extents[2]), consecutive(0, extents[3]));
    softmax_vjp(p.view(), p.view());
  }
}

TEST_CASE("softmax says what does not fit, and leaves the scores alone", "[softmax][unit]") {
  const Alibi alibi(4);
  const auto before = random_values<float, 4>({1, 4, 2, 3});
  auto x = before;
  check_throws<std::invalid_argument>([&] { softmax(x.view(), alibi, consecutive(0, 3), consecutive(0, 3)); },
                                      {"q_at", "2", "3"});
  check_throws<std::invalid_argument>([&] { softmax(x.view(), alibi, consecutive(0, 2), consecutive(0, 2)); },
                                      {"k_at", "3", "2"});
  check_throws<std::invalid_argument>(
      [&] {
        softmax(x.view(), alibi, consecutive(0, 2), consecutive(0, 3), {.scale = posenc_test::quiet_nan});
      },
      {"scale", "finite", "nan"});
  check_throws<std::out_of_range>([&] { softmax(x.view(), Alibi(2), consecutive(0, 2), consecutive(0, 3)); },
                                  {"scores", "2"});
  auto other = random_values<float, 4>({1, 4, 2, 4});
  check_throws<std::invalid_argument>([&] { softmax_vjp(x.view(), other.view()); }, {"d:"});
  CHECK(same_bits(x, before));
}

TEST_CASE("a sink is one key more, whose probability is dropped", "[softmax][property]") {
  const Index keys = 9;
  const auto scores = random_values<double, 4>({2, 3, 4, keys}, 3);
  const std::vector<double> sinks = {0.7, -40, 30};
  Values<double, 4> wide{{2, 3, 4, keys + 1}, std::vector<double>(2 * 3 * 4 * (keys + 1))};
  fill(wide.view().slice(3, 0, keys), scores);
  for (Index b = 0; b < 2; ++b)
    for (Index h = 0; h < 3; ++h)
      for (Index i = 0; i < 4; ++i) wide.view()(b, h, i, keys) = sinks[static_cast<std::size_t>(h)];
  const Positions q = consecutive(keys, 4), k = consecutive(0, keys);
  auto p = scores;
  softmax(p.view(), NoBias{}, q, k, {.sinks = sinks});
  softmax(wide.view(), NoBias{}, q, consecutive(0, keys + 1));
  CHECK(posenc_test::max_difference(p.values, posenc_test::values_of(wide.view().slice(3, 0, keys)).values) <
        1e-15);
  auto threaded = scores;
  softmax(ThreadsDevice{3}, threaded.view(), NoBias{}, q, k, {.sinks = sinks});
  CHECK(same_bits(threaded, p));
  // A query that sees no key gives all to the sink.
  auto none = scores;
  softmax(none.view(), NoBias{}, consecutive(0, 4), consecutive(10, keys), {.causal = true, .sinks = sinks});
  for (const double one : none.values) CHECK(one == 0);
  // A sink far above all scores takes all, one far below them nothing.
  const std::vector<double> extreme = {800, -800, 0};
  auto alone = scores, taken = scores;
  softmax(taken.view(), NoBias{}, q, k, {.sinks = extreme});
  softmax(alone.view(), NoBias{}, q, k);
  const auto head = [](const Values<double, 4>& x, Index h) {
    return posenc_test::values_of(x.view().slice(1, h, 1)).values;
  };
  for (const double one : head(taken, 0)) CHECK(one == 0);
  CHECK(same_bits(head(taken, 1), head(alone, 1)));
}

TEST_CASE("the gradients of scores and sinks are those of finite differences", "[softmax][property]") {
  const Alibi alibi(3);
  const auto scores = random_values<double, 4>({2, 3, 2, 9});
  const auto weights = random_values<double, 4>({2, 3, 2, 9}, 5);
  const Positions q = consecutive(5, 2), k = consecutive(0, 9);
  const std::vector<double> sinks = {0.7, -1, 2};
  const auto loss = [&](const Values<double, 4>& x, const std::vector<double>& s) {
    auto p = x;
    softmax(p.view(), alibi, q, k, {.scale = 0.3, .causal = true, .sinks = s});
    return posenc_test::dot(p.values, weights.values);
  };
  auto p = scores, d = weights;
  softmax(p.view(), alibi, q, k, {.scale = 0.3, .causal = true, .sinks = sinks});
  std::vector<double> d_sinks(3), threaded(3);
  posenc::sinks_vjp(d_sinks, d.view(), p.view());
  posenc::sinks_vjp(ThreadsDevice{2}, threaded, d.view(), p.view());
  CHECK(same_bits(threaded, d_sinks));
  posenc::sinks_vjp(threaded, d.view(), p.view());  // adds to what is there
  for (std::size_t h = 0; h < 3; ++h) CHECK(threaded[h] == Approx(2 * d_sinks[h]));
  softmax_vjp(d.view(), p.view(), 0.3);
  for (std::size_t h = 0; h < 3; ++h) {
    auto up = sinks, down = sinks;
    up[h] += 1e-6, down[h] -= 1e-6;
    CHECK(std::fabs(d_sinks[h] - (loss(scores, up) - loss(scores, down)) / 2e-6) < 1e-9);
  }
  for (std::size_t n = 0; n < scores.values.size(); n += 7) {
    auto up = scores, down = scores;
    up.values[n] += 1e-6, down.values[n] -= 1e-6;
    CHECK(std::fabs(d.values[n] - (loss(up, sinks) - loss(down, sinks)) / 2e-6) < 1e-9);
  }
}

TEST_CASE("sinks that don't fit are refused", "[softmax][unit]") {
  const auto before = random_values<float, 4>({1, 4, 2, 3});
  auto x = before;
  const std::vector<double> three(3), bad = {0, 0, posenc_test::quiet_nan, 0};
  const Positions q = consecutive(0, 2), k = consecutive(0, 3);
  check_throws<std::invalid_argument>([&] { softmax(x.view(), NoBias{}, q, k, {.sinks = three}); },
                                      {"sinks", "expected 4", "got 3"});
  check_throws<std::invalid_argument>([&] { softmax(x.view(), NoBias{}, q, k, {.sinks = bad}); },
                                      {"sinks", "finite"});
  std::vector<double> d_sinks(3);
  check_throws<std::invalid_argument>([&] { posenc::sinks_vjp(d_sinks, x.view(), x.view()); }, {"d_sinks"});
  CHECK(same_bits(x, before));
}

TEST_CASE("scores of one head may have rank 2", "[softmax][property]") {
  const Alibi alibi(1);
  const auto scores = random_values<float, 4>({1, 1, 5, 8});
  auto expected = scores;
  const Positions q = consecutive(3, 5), k = consecutive(0, 8);
  softmax(expected.view(), alibi, q, k, {.causal = true});
  Eigen::MatrixXf matrix =
      Eigen::Map<const Eigen::Matrix<float, 5, 8, Eigen::RowMajor>>(scores.values.data());
  softmax(matrix, alibi, q, k, {.causal = true});
  Eigen::Tensor<float, 2, Eigen::RowMajor> tensor(5, 8);
  std::copy(scores.values.begin(), scores.values.end(), tensor.data());
  softmax(tensor, alibi, q, k, {.causal = true});
  for (Index i = 0; i < 5; ++i)
    for (Index j = 0; j < 8; ++j) {
      CHECK(matrix(i, j) == expected.view()(0, 0, i, j));
      CHECK(tensor(i, j) == expected.view()(0, 0, i, j));
    }
}

TEST_CASE("a function, a mask and a table in one sum", "[softmax][property]") {
  const Index heads = 2;
  const auto scores = random_values<float, 4>({1, heads, 6, 300});
  const Positions q = consecutive(294, 6), k = consecutive(0, 300);
  const auto table = random_values<float, 2>({32, heads}, 2);
  const posenc::RelativeBias t5(posenc::T5Buckets(posenc::T5Direction::unidirectional), table.view());
  const auto function = [](Index h, Position i, Position j) { return double(h) - 0.001 * double(i - j); };
  auto whole = scores, apart = scores;
  softmax(whole.view(), posenc::sum(t5, function, posenc::sliding_window(290)), q, k, {.scale = 0.5});
  for (float& one : apart.values) one *= 0.5f;
  t5.add(apart.view(), q, k);
  softmax(
      apart.view(),
      [&](Index h, Position i, Position j) { return i - j >= 290 || j > i ? -infinity : function(h, i, j); },
      q, k);
  CHECK(posenc_test::max_difference(whole.values, apart.values) < 1e-6);
}

TEST_CASE("softmax and its gradient write scores in place or apart from them", "[softmax][unit]") {
  const Positions at = consecutive(0, 5);
  posenc_test::keeps_memory_apart<float, 3>({3, 5, 5}, "scores", [&](const auto& out, const auto& x) {
    softmax(out, x, Alibi(3), at, at, {.causal = true});
  });
  posenc_test::keeps_memory_apart<float, 4>(
      {2, 3, 5, 5}, "scores", [&](const auto& out, const auto& x) { softmax(out, x, NoBias(), at, at); });
  // d is read as well: it is the same in all calls, and p is the input.
  posenc_test::keeps_memory_apart<double, 3>({3, 4, 5}, "p", [&](const auto& d, const auto& p) {
    if (posenc::detail::are_the_same(d, p)) {  // of d = p
      const auto same = posenc_test::values_of(p);
      const auto ones = posenc_test::random_values<double, 3>({3, 4, 5}, 2);
      auto slopes = ones;
      softmax_vjp(slopes.view(), same.view());
      posenc_test::fill(d, slopes);
      return;
    }
    if (!posenc::detail::share_memory(d, p) && posenc::detail::Footprint<3>(d).is_nested())
      posenc_test::fill(d, posenc_test::random_values<double, 3>({3, 4, 5}, 2));
    softmax_vjp(d, p);
  });
}

namespace {

/// Rows of 8 keys: padding on the left and on the right, and one with a hole.
const Eigen::MatrixXi padded_mask{
    {0, 0, 0, 1, 1, 1, 1, 1}, {1, 1, 1, 1, 1, 1, 0, 0}, {1, 1, 0, 1, 0, 1, 1, 1}};

/// Softmax over the whole batch, against each row's tokens alone.
template <class Bias, class Padded>
void check_padding_is_hidden(const Bias& bias, const Padded& padded_bias, const SoftmaxConfig& config) {
  auto scores = random_values<float, 4>({3, 4, 8, 8});
  for (Index b = 0; b < 3; ++b)
    for (Index j = 0; j < 8; ++j)  // whatever padding left there
      if (padded_mask(b, j) == 0)
        for (Index h = 0; h < 4; ++h)
          for (Index i = 0; i < 8; ++i)
            scores.view()(b, h, i, j) = i % 2 == 0 ? 1e4f : static_cast<float>(posenc_test::quiet_nan);
  auto p = scores;
  softmax(p.view(), padded_bias, posenc::positions_from_mask(padded_mask),
          posenc::key_positions_from_mask(padded_mask), config);
  for (Index b = 0; b < 3; ++b) {
    std::vector<Index> tokens;
    for (Index j = 0; j < 8; ++j)
      if (padded_mask(b, j) != 0) tokens.push_back(j);
    const Index n = static_cast<Index>(tokens.size());
    auto alone = random_values<float, 4>({1, 4, n, n});
    posenc_test::for_each_coordinate(alone.extents, [&](const auto& at, Index) {
      alone.view()(0, at[1], at[2], at[3]) = scores.view()(b, at[1], tokens[static_cast<std::size_t>(at[2])],
                                                           tokens[static_cast<std::size_t>(at[3])]);
    });
    softmax(alone.view(), bias, consecutive(0, n), consecutive(0, n), config);
    double most = 0, on_padding = 0;
    for (Index h = 0; h < 4; ++h)
      for (Index i = 0; i < n; ++i) {
        const Index query = tokens[static_cast<std::size_t>(i)];
        for (Index j = 0; j < n; ++j)
          most = std::max(
              most,
              std::fabs(static_cast<double>(p.view()(b, h, query, tokens[static_cast<std::size_t>(j)])) -
                        static_cast<double>(alone.view()(0, h, i, j))));
        for (Index j = 0; j < 8; ++j)
          if (padded_mask(b, j) == 0) on_padding += std::fabs(static_cast<double>(p.view()(b, h, query, j)));
      }
    CHECK(most <= 3e-7);
    CHECK(on_padding == 0);
  }
}

}  // namespace

TEST_CASE("padding of a batch is hidden from its tokens", "[softmax][property]") {
  for (const AlibiForm form : {AlibiForm::symmetric, AlibiForm::causal, AlibiForm::key_position}) {
    const Alibi alibi(AlibiConfig{.num_heads = 4, .form = form});
    check_padding_is_hidden(alibi, alibi, {.causal = true});
    if (form == AlibiForm::causal) check_padding_is_hidden(alibi, alibi, {});
  }
  check_padding_is_hidden(NoBias(), NoBias(), {.scale = 0.5, .causal = true});
  // An encoder hides it by a bias of its own.
  check_padding_is_hidden(
      NoBias(), [](Index, Position, Position j) { return j == posenc::padding_position ? -infinity : 0.0; },
      {});
}

TEST_CASE("padding at the positions of its embeddings is seen", "[softmax][unit]") {
  const Eigen::MatrixXi mask{{0, 0, 1, 1, 1}};
  const auto weights = [&](const Positions& k_at) {
    Eigen::Tensor<double, 3, Eigen::RowMajor> scores(8, 5, 5);
    scores.setZero();
    softmax(scores, Alibi(8), posenc::positions_from_mask(mask), k_at, {.causal = true});
    return std::vector<double>{scores(0, 4, 0), scores(0, 4, 1), scores(0, 4, 2), scores(0, 4, 3),
                               scores(0, 4, 4)};
  };
  // e^(-d / 2) of the distances 2, 2, 2, 1, 0 over their sum, and of the last three.
  const auto compare = [](const std::vector<double>& got, const std::vector<double>& expected) {
    for (std::size_t j = 0; j < 5; ++j) CHECK(std::fabs(got[j] - expected[j]) <= 1e-12);
  };
  compare(weights(posenc::positions_from_mask(mask)),
          {.135740407129, .135740407129, .135740407129, .223798096527, .368980682086});
  compare(weights(posenc::key_positions_from_mask(mask)),
          {0, 0, .186323723226, .307195885718, .506480391055});
}
