// ALiBi: slopes by the published rule, and a bias that knows positions, not indices.

// Before the first include: for Eigen::ThreadPoolDevice, which posenc does not need.
#define EIGEN_USE_THREADS

#include "posenc/bias/alibi.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/overlap.hpp"
#include "support/support.hpp"

using Eigen::bfloat16;
using Eigen::half;
using posenc::Alibi;
using posenc::alibi_slopes;
using posenc::AlibiConfig;
using posenc::AlibiForm;
using posenc::consecutive;
using posenc::Index;
using posenc::Position;
using posenc::Positions;
using posenc::View;
using posenc_test::check_throws;
using posenc_test::epsilon;
using posenc_test::fill;
using posenc_test::random_values;
using posenc_test::same_bits;
using posenc_test::to_double;
using posenc_test::Values;
using posenc_test::values_of;

namespace {

const double infinity = posenc_test::infinity;
const std::array<AlibiForm, 3> all_forms = {AlibiForm::symmetric, AlibiForm::causal, AlibiForm::key_position};

/// (batch, heads, q, k).
template <class S>
using Scores = Values<S, 4>;

/// Queries and keys of a call.
struct Call {
  std::string name;
  Positions q, k;
};

/// Calls of 3 batch rows, 5 queries and 21 keys.
std::vector<Call> calls() {
  Values<std::int32_t, 2> padded{{3, 21}, {}}, queries{{3, 5}, {}};
  for (std::int32_t n = 0; n < 63; ++n)
    padded.values.push_back((std::max)(0, n % 21 - 4 * (n / 21)));  // left padding
  for (std::int32_t n = 0; n < 15; ++n) queries.values.push_back(16 + n % 5 - 4 * (n / 5));
  const std::vector<Position> shuffled = {20, 3, 7,  -5, 0,  11, 2,  8,  9,  1, 19,
                                          4,  6, 13, 10, 12, 15, 14, 18, 16, 17};
  const Position far = Position{1} << 40;
  return {{"a cache", consecutive(16, 5), consecutive(0, 21)},
          {"a cache per row", consecutive(std::vector<Position>{16, 900, -3}, 5),
           consecutive(std::vector<Position>{0, 884, -19}, 21)},
          {"left padding", posenc::position_ids(queries.view()), posenc::position_ids(padded.view())},
          {"keys out of order", consecutive(3, 5), posenc::position_ids(shuffled)},
          {"queries before the keys", consecutive(-10, 5), consecutive(0, 21)},
          {"far away", consecutive(far + 3, 5), consecutive(far - 10, 21)}};
}

/// -m |i - j| and its relatives, by the definition.
double bias_of(AlibiForm form, double m, Position i, Position j) {
  switch (form) {
    case AlibiForm::symmetric: return -m * static_cast<double>(std::max(i, j) - std::min(i, j));
    case AlibiForm::causal: return j > i ? -infinity : -m * static_cast<double>(i - j);
    case AlibiForm::key_position: return m * static_cast<double>(j);
  }
  return 0;
}

template <class S>
Scores<S> added(const Alibi& alibi, Scores<S> scores, const Positions& q_at, const Positions& k_at) {
  alibi.add(scores.view(), q_at, k_at);
  return scores;
}

template <class S>
Scores<S> part_of(const Scores<S>& x, std::size_t axis, Index first, Index count) {
  const auto part = values_of(x.view().slice(axis, first, count));
  return {part.extents, part.values};
}

std::vector<double> softmax(const std::vector<double>& x) {
  double most = -infinity, sum = 0;
  for (const double value : x) most = std::max(most, value);
  std::vector<double> p;
  for (const double value : x) p.push_back(std::exp(value - most)), sum += p.back();
  for (double& value : p) value /= sum;
  return p;
}

/// f(device, name) for devices of 1, 2 and 5 threads, our own and Eigen's.
template <class F>
void on_every_device(const F& f) {
  for (const int threads : {1, 2, 5}) {
    f(posenc_test::ThreadsDevice{threads}, std::to_string(threads) + " threads");
    Eigen::ThreadPool pool(threads);
    f(Eigen::ThreadPoolDevice(&pool, threads), "an Eigen pool of " + std::to_string(threads));
  }
}

}  // namespace

// ---- Slopes.

TEST_CASE("the slopes of any number of heads follow the published rule", "[alibi]") {
  for (Index heads = 1; heads <= 256; ++heads) {
    INFO(heads << " heads");
    // The rule from the other end: the slopes of the next higher power of two, every second one first, then
    // those between, as many as there are heads.
    Index power = 1;
    while (power < heads) power *= 2;
    std::vector<double> expected;
    if (power == heads) {
      for (Index h = 1; h <= power; ++h) expected.push_back(std::pow(2.0, -8.0 * double(h) / double(power)));
    } else {
      for (Index h = 2; h <= power; h += 2)
        expected.push_back(std::pow(2.0, -8.0 * double(h) / double(power)));
      for (Index h = 1; h <= power; h += 2)
        expected.push_back(std::pow(2.0, -8.0 * double(h) / double(power)));
      expected.resize(static_cast<std::size_t>(heads));
    }
    const auto slopes = alibi_slopes(heads);
    REQUIRE(slopes.size() == static_cast<std::size_t>(heads));
    CHECK(posenc_test::max_difference(slopes, expected) <= 1e-15);
    CHECK(Alibi(heads).slopes() == slopes);
  }
}

TEST_CASE("known slopes", "[alibi]") {
  const auto first = [](Index heads, std::size_t from, std::vector<double> expected) {
    const auto slopes = alibi_slopes(heads);
    REQUIRE(slopes.size() == static_cast<std::size_t>(heads));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      INFO("head " << from + i << " of " << heads);
      CHECK(slopes[from + i] == Approx(expected[i]).epsilon(1e-7));
    }
  };
  first(1, 0, {0.00390625});
  first(2, 0, {0.0625, 0.00390625});
  first(3, 0, {0.0625, 0.00390625, 0.25});
  first(6, 0, {0.25, 0.0625, 0.015625, 0.00390625, 0.5, 0.125});
  first(8, 0, {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625});
  first(12, 0, {0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625});
  first(12, 8, {0.70710678, 0.35355339, 0.17677670, 0.08838835});
  first(16, 0, {0.70710678, 0.5, 0.35355339});
  first(16, 15, {0.00390625});
  first(20, 16, {0.84089642, 0.59460356, 0.42044821, 0.29730178});
  first(40, 0, {0.84089642, 0.70710678});
  first(40, 32, {0.91700404, 0.77110541});
  // Powers of two are exact.
  CHECK(alibi_slopes(8) ==
        std::vector<double>{0x1p-1, 0x1p-2, 0x1p-3, 0x1p-4, 0x1p-5, 0x1p-6, 0x1p-7, 0x1p-8});
}

TEST_CASE("the largest bias is an option", "[alibi]") {
  // MPT: slopes 2^(-alibi_bias_max h / n).
  CHECK(alibi_slopes(4, 16.0) == std::vector<double>{0x1p-4, 0x1p-8, 0x1p-12, 0x1p-16});
  CHECK(Alibi({.num_heads = 4, .alibi_bias_max = 16.0}).slopes() == alibi_slopes(4, 16.0));
  CHECK(alibi_slopes(6, 4.0)[4] == Approx(std::sqrt(0.5)).epsilon(1e-15));
  CHECK(alibi_slopes(3, 0.0) == std::vector<double>{1, 1, 1});
}

// ---- The bias.

TEST_CASE("a value is minus the slope times the distance", "[alibi]") {
  const Alibi symmetric(8), causal({.num_heads = 8, .form = AlibiForm::causal}),
      bloom({.num_heads = 8, .form = AlibiForm::key_position});
  CHECK(symmetric.value(0, 10, 7) == -1.5);
  CHECK(symmetric.value(0, 7, 10) == -1.5);
  CHECK(symmetric.value(7, -3, 1) == -0.015625);
  CHECK(symmetric.value(0, 5, 5) == 0.0);
  CHECK(causal.value(0, 10, 7) == -1.5);
  CHECK(causal.value(0, 7, 7) == 0.0);
  CHECK(causal.value(0, 7, 10) == -infinity);
  CHECK(bloom.value(0, 10, 7) == 3.5);
  CHECK(bloom.value(1, 7, 10) == 2.5);
  // Exact however far from zero: a distance is a difference of integers.
  const Position far = Position{1} << 40;
  CHECK(symmetric.value(0, far + 3, far) == -1.5);
  CHECK(symmetric.value(0, -far, far) == -static_cast<double>(far));
  CHECK(causal.value(0, posenc::largest_position, posenc::largest_position - 3) == -1.5);
  CHECK(bloom.value(0, 0, far + 2) == static_cast<double>(far / 2 + 1));
  constexpr Position most = (std::numeric_limits<Position>::max)();
  CHECK(symmetric.value(0, most, -most) == -0x1p63);
  CHECK(causal.value(0, most, -most) == -0x1p63);
  CHECK(causal.value(0, -most, most) == -infinity);
}

TEST_CASE("falcon scales the bias", "[alibi]") {
  const double scale = 1 / std::sqrt(64.0);
  const Alibi plain(8), scaled({.num_heads = 8, .scale = scale});
  CHECK(scaled.value(2, 10, 3) == scale * plain.value(2, 10, 3));
  CHECK(scaled.slopes() == plain.slopes());
  // (q k + bias) / sqrt(d), as Falcon writes it, is q k / sqrt(d) + scale bias.
  const auto qk = random_values<double, 4>({1, 8, 5, 9}, 1);
  auto divided = qk;
  for (double& value : divided.values) value *= scale;
  auto falcon = added(plain, qk, consecutive(4, 5), consecutive(0, 9));
  for (double& value : falcon.values) value *= scale;
  CHECK(posenc_test::max_difference(added(scaled, divided, consecutive(4, 5), consecutive(0, 9)).values,
                                    falcon.values) <= 1e-15);
}

TEMPLATE_TEST_CASE("add is the scores and the tile rounded once", "[alibi][property]", float, double, half,
                   bfloat16) {
  using C = posenc::compute_t<TestType>;
  const auto scores = random_values<TestType, 4>({3, 6, 5, 21});
  for (const AlibiForm form : all_forms)
    for (const double scale : {1.0, 0.125}) {
      const Alibi alibi({.num_heads = 6, .form = form, .scale = scale});
      for (const Call& call : calls()) {
        INFO(call.name << ", form " << static_cast<int>(form));
        const auto sum = added(alibi, scores, call.q, call.k);
        int off = 0;
        posenc_test::for_each_coordinate(scores.extents, [&](const auto& at, Index n) {
          const Position i = call.q(at[0], at[2]), j = call.k(at[0], at[3]);
          const double value = alibi.value(at[1], i, j);
          const auto here = static_cast<std::size_t>(n);
          // The bias is rounded to the type of the arithmetic, the sum to that and then to the scores.
          const C total = static_cast<C>(scores.values[here]) + static_cast<C>(value);
          off += !(sum.values[here] == static_cast<TestType>(total));
          off += !(value == bias_of(form, alibi.slopes()[static_cast<std::size_t>(at[1])] * scale, i, j));
        });
        CHECK(off == 0);
      }
    }
}

TEMPLATE_TEST_CASE("tiles and rows hold the values bit for bit", "[alibi][property]", float, double, half,
                   bfloat16) {
  using C = posenc::compute_t<TestType>;
  for (const AlibiForm form : all_forms) {
    const Alibi alibi({.num_heads = 6, .form = form, .head_offset = 2});
    std::vector<Call> all = calls();
    // Where not every integer is a double, a distance is rounded once.
    const Position far = Position{1} << 54;
    all.push_back({"queries far from the keys", consecutive(far + 1, 5), consecutive(0, 21)});
    all.push_back({"keys far from the queries", consecutive(-2, 5), consecutive(-far - 9, 21)});
    for (const Call& call : all) {
      if (call.k.rows() != 1) continue;
      INFO(call.name << ", form " << static_cast<int>(form));
      for (const Index head : {0, 3}) {
        Values<TestType, 2> expected{{5, 21}, {}};
        for (Index q = 0; q < 5; ++q)
          for (Index k = 0; k < 21; ++k)
            expected.values.push_back(
                static_cast<TestType>(static_cast<C>(alibi.value(head, call.q(0, q), call.k(0, k)))));
        auto tile = random_values<TestType, 2>({5, 21});
        alibi.tile(tile.view(), head, call.q, call.k);
        CHECK(same_bits(tile, expected));
        for (Index q = 0; q < 5; ++q) {
          std::vector<TestType> row(21);
          alibi.row(row, head, call.q(0, q), call.k);
          CHECK(same_bits(row, values_of(tile.view().slice(0, q, 1)).values));
        }
        std::array<TestType, 21> row{};
        alibi.row(std::span<TestType>(row), head, call.q(0, 0), call.k);
        CHECK(std::memcmp(row.data(), tile.values.data(), sizeof row) == 0);
        // Tile by tile, and more keys than fit in a buffer.
        auto pieces = random_values<TestType, 2>({5, 21});
        for (Index q = 0; q < 5; ++q)
          if (call.q.is_consecutive() && call.k.is_consecutive())
            for (Index k = 0; k < 21; k += 8)
              alibi.tile(pieces.view().slice(0, q, 1).slice(1, k, std::min<Index>(8, 21 - k)), head,
                         consecutive(call.q(0, q), 1), consecutive(call.k(0, k), std::min<Index>(8, 21 - k)));
          else
            alibi.tile(pieces.view().slice(0, q, 1), head, consecutive(call.q(0, q), 1), call.k);
        CHECK(same_bits(pieces, tile));
      }
    }
    std::vector<TestType> row(2500), expected;
    alibi.row(row, 1, 2100, consecutive(3, 2500));
    for (Index j = 0; j < 2500; ++j)
      expected.push_back(static_cast<TestType>(static_cast<C>(alibi.value(1, 2100, 3 + j))));
    CHECK(same_bits(row, expected));
  }
}

TEMPLATE_TEST_CASE("add is the same in every storage", "[alibi][property]", float, double, half, bfloat16) {
  for (const AlibiForm form : all_forms) {
    const Alibi alibi({.num_heads = 6, .form = form});
    const auto scores = random_values<TestType, 4>({2, 6, 5, 21});
    const Positions q = consecutive(12, 5), k = consecutive(0, 21);
    const auto expected = added(alibi, scores, q, k);
    posenc_test::in_every_storage(
        scores, [&](auto& storage) { alibi.add(storage, q, k); },
        [&](const char* name, const Scores<TestType>& got) {
          INFO(name);
          CHECK(same_bits(got, expected));
        });
    // One batch row without its axis: (heads, q, k).
    Values<TestType, 3> one{{6, 5, 21}, part_of(scores, 0, 1, 1).values};
    alibi.add(one.view(), q, k);
    CHECK(same_bits(one.values, part_of(expected, 0, 1, 1).values));
    // Out of place, from and into strides of their own, leaving the neighbours alone.
    auto out = random_values<TestType, 4>(scores.extents, 2);
    alibi.add(out.view(), scores.view(), q, k);
    CHECK(same_bits(out, expected));
    auto wide = random_values<TestType, 4>({2, 7, 21, 9}, 3);  // (batch, heads, k, q), a part of it
    const auto before = wide;
    const auto window = [](Scores<TestType>& x) {
      return x.view().slice(1, 1, 6).slice(3, 2, 5).permute({0, 1, 3, 2});
    };
    alibi.add(window(wide), scores.view(), q, k);
    CHECK(same_bits(values_of(window(wide)), expected));
    fill(window(wide), scores);
    alibi.add(window(wide), q, k);
    CHECK(same_bits(values_of(window(wide)), expected));
    auto restored = before;
    fill(window(wide), values_of(window(restored)));
    CHECK(same_bits(wide, before));
    // Tiles into a column-major matrix.
    Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic> matrix(5, 21);
    auto tile = random_values<TestType, 2>({5, 21});
    alibi.tile(matrix, 3, q, k);
    alibi.tile(tile.view(), 3, q, k);
    CHECK(same_bits(values_of(matrix), tile));
  }
}

TEMPLATE_TEST_CASE("threads do not change a bit of a bias", "[alibi][threads][property]", float, double, half,
                   bfloat16) {
  for (const AlibiForm form : all_forms) {
    const Alibi alibi({.num_heads = 6, .form = form});
    const auto scores = random_values<TestType, 4>({3, 6, 5, 21});
    for (const Call& call : calls()) {
      const auto expected = added(alibi, scores, call.q, call.k);
      std::vector<double> slopes(6, 0.25);
      alibi.add_vjp(slopes, scores.view(), call.q, call.k);
      on_every_device([&](const auto& device, const std::string& name) {
        INFO(name << ", " << call.name);
        auto y = scores;
        alibi.add(device, y.view(), call.q, call.k);
        CHECK(same_bits(y, expected));
        auto out = random_values<TestType, 4>(scores.extents, 2);
        alibi.add(device, out.view(), scores.view(), call.q, call.k);
        CHECK(same_bits(out, expected));
        std::vector<double> d_slopes(6, 0.25);
        alibi.add_vjp(device, d_slopes, scores.view(), call.q, call.k);
        CHECK(same_bits(d_slopes, slopes));
      });
    }
  }
}

TEMPLATE_TEST_CASE("a shard of a bias is the shard of the whole bit for bit", "[alibi][property]", float,
                   double, half, bfloat16) {
  const auto scores = random_values<TestType, 4>({3, 12, 5, 21});
  for (const AlibiForm form : all_forms)
    for (const Call& call : calls()) {
      INFO(call.name << ", form " << static_cast<int>(form));
      const Alibi whole({.num_heads = 12, .form = form});
      const auto expected = added(whole, scores, call.q, call.k);
      // Heads over 3 processes: each knows the number of all heads, and where its own begin.
      auto y = scores;
      for (const Index first : {0, 5, 8}) {
        const Index count = first == 0 ? 5 : first == 5 ? 3 : 4;
        const Alibi shard({.num_heads = 12, .form = form, .head_offset = first});
        shard.add(y.view().slice(1, first, count), call.q, call.k);
        CHECK(shard.value(1, 9, 4) == whole.value(first + 1, 9, 4));
      }
      CHECK(same_bits(y, expected));
      // Batch rows, and queries one by one as a decoder has them.
      y = scores;
      for (Index b = 0; b < 3; ++b)
        for (Index q = 0; q < 5; ++q) {
          std::vector<Position> keys;
          for (Index k = 0; k < 21; ++k) keys.push_back(call.k(b, k));
          whole.add(y.view().slice(0, b, 1).slice(2, q, 1), consecutive(call.q(b, q), 1),
                    posenc::position_ids(keys));
        }
      CHECK(same_bits(y, expected));
    }
}

TEMPLATE_TEST_CASE("a bias depends on the distance alone", "[alibi][property]", float, double, half,
                   bfloat16) {
  const auto scores = random_values<TestType, 4>({1, 6, 5, 21});
  for (const AlibiForm form : {AlibiForm::symmetric, AlibiForm::causal}) {
    const Alibi alibi({.num_heads = 6, .form = form});
    const auto expected = added(alibi, scores, consecutive(16, 5), consecutive(0, 21));
    for (const Position t :
         {Position{1}, Position{-100}, Position{1} << 40, -(Position{1} << 40), Position{1} << 59})
      CHECK(same_bits(added(alibi, scores, consecutive(16 + t, 5), consecutive(t, 21)), expected));
    // A cache of which the first call saw all: the last queries of a long call.
    const auto all = random_values<TestType, 4>({1, 6, 21, 21});
    const auto whole = added(alibi, all, consecutive(0, 21), consecutive(0, 21));
    CHECK(same_bits(added(alibi, part_of(all, 2, 16, 5), consecutive(16, 5), consecutive(0, 21)),
                    part_of(whole, 2, 16, 5)));
    CHECK(same_bits(added(alibi, part_of(all, 2, 20, 1), consecutive(20, 1), consecutive(0, 21)),
                    part_of(whole, 2, 20, 1)));
  }
}

TEST_CASE("left padding does not move the tokens", "[alibi][property]") {
  const Alibi alibi(6);
  Values<std::int32_t, 2> mask{{2, 9}, {0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1}};
  const auto scores = random_values<float, 4>({2, 6, 9, 9});
  const Positions at = posenc::positions_from_mask(mask.view());
  const auto padded = added(alibi, scores, at, at);
  const auto tokens = part_of(part_of(part_of(scores, 0, 0, 1), 2, 4, 5), 3, 4, 5);
  CHECK(same_bits(added(alibi, tokens, consecutive(0, 5), consecutive(0, 5)),
                  part_of(part_of(part_of(padded, 0, 0, 1), 2, 4, 5), 3, 4, 5)));
  CHECK(same_bits(added(alibi, part_of(scores, 0, 1, 1), consecutive(0, 9), consecutive(0, 9)),
                  part_of(padded, 0, 1, 1)));
}

TEST_CASE("the forms give the same attention", "[alibi][property]") {
  const auto scores = random_values<double, 4>({1, 6, 12, 12});
  const Positions at = consecutive(30, 12);
  const auto with = [&](AlibiForm form) {
    return added(Alibi({.num_heads = 6, .form = form}), scores, at, at);
  };
  const auto symmetric = with(AlibiForm::symmetric), causal = with(AlibiForm::causal),
             bloom = with(AlibiForm::key_position);
  double worst = 0;
  for (Index h = 0; h < 6; ++h)
    for (Index i = 0; i < 12; ++i) {
      const auto row = [&](const Scores<double>& x, Index keys) {
        return values_of(x.view().slice(1, h, 1).slice(2, i, 1).slice(3, 0, keys)).values;
      };
      // Keys up to the query: what a causal mask leaves.
      const auto visible = softmax(row(symmetric, i + 1));
      worst = std::max(worst, posenc_test::max_difference(softmax(row(bloom, i + 1)), visible));
      auto hidden = softmax(row(causal, 12));
      for (Index j = i + 1; j < 12; ++j) CHECK(hidden[static_cast<std::size_t>(j)] == 0.0);
      hidden.resize(static_cast<std::size_t>(i) + 1);
      worst = std::max(worst, posenc_test::max_difference(hidden, visible));
    }
  CHECK(worst <= 1e-14);
  CHECK(posenc_test::max_difference(bloom.values, symmetric.values) > 1);  // the raw numbers differ
}

TEMPLATE_TEST_CASE("causal hides the keys after the query", "[alibi][property]", float, double, half,
                   bfloat16) {
  const Alibi alibi({.num_heads = 3, .form = AlibiForm::causal});
  const float hidden = -static_cast<float>(posenc_test::infinity);
  for (const Call& call : calls()) {
    INFO(call.name);
    auto scores = random_values<TestType, 4>({3, 3, 5, 21});
    for (Index n = 0; n < scores.size(); n += 7) {  // a mask of the caller's, and an accident of the caller's
      scores.values[static_cast<std::size_t>(n)] = static_cast<TestType>(hidden);
      scores.values[static_cast<std::size_t>(n + 1)] = static_cast<TestType>(posenc_test::quiet_nan);
    }
    const auto y = added(alibi, scores, call.q, call.k);
    int off = 0;
    posenc_test::for_each_coordinate(y.extents, [&](const auto& at, Index n) {
      const bool after = call.k(at[0], at[3]) > call.q(at[0], at[2]);
      const double value = to_double(y.values[static_cast<std::size_t>(n)]);
      if (n % 7 == 0)
        off += value != hidden;
      else if (n % 7 == 1)  // what is hidden is hidden, whatever it held
        off += after ? value != hidden : !posenc_test::is_nan(value);
      else
        off += after ? value != hidden : !posenc_test::is_finite(value);
    });
    CHECK(off == 0);
  }
}

// ---- The gradient of learned slopes.

TEST_CASE("the gradient of the slopes is that of add", "[alibi][property]") {
  const auto scores = random_values<double, 4>({3, 3, 5, 21}, 1),
             d_scores = random_values<double, 4>({3, 3, 5, 21}, 2);
  for (const AlibiForm form : all_forms)
    for (const Call& call : calls()) {
      if (call.name == "far away" && form == AlibiForm::key_position)
        continue;  // 2^40: a difference sees no 1e-3
      INFO(call.name << ", form " << static_cast<int>(form));
      const AlibiConfig config{.num_heads = 4, .form = form, .scale = 0.5, .head_offset = 1};
      std::vector<double> slopes = {9, 0.7, -0.2, 0.01};  // learned: not by the rule, of either sign
      std::vector<double> gradient = {10, 20, 30};        // added to
      Alibi(config, slopes).add_vjp(gradient, d_scores.view(), call.q, call.k);
      for (std::size_t h = 0; h < 3; ++h) {
        const auto loss = [&](double step) {
          auto moved = slopes;
          moved[h + 1] += step;
          const auto y = added(Alibi(config, moved), scores, call.q, call.k);
          double sum = 0;
          for (std::size_t n = 0; n < y.values.size(); ++n)
            if (y.values[n] != -infinity) sum += y.values[n] * d_scores.values[n];
          return sum;
        };
        const double expected =
            (loss(0.5) - loss(-0.5));  // the bias is linear in the slope: no step is too long
        CHECK(gradient[h] - 10.0 * static_cast<double>(h + 1) == Approx(expected).margin(1e-9).epsilon(1e-9));
      }
    }
}

TEMPLATE_TEST_CASE("the gradient of the slopes reads any storage", "[alibi][property]", float, double, half,
                   bfloat16) {
  const Alibi alibi({.num_heads = 3, .form = AlibiForm::causal});
  const Positions q = consecutive(4, 5), k = consecutive(0, 7);
  auto d_scores = random_values<TestType, 4>({2, 3, 5, 7});
  posenc_test::for_each_coordinate(d_scores.extents, [&](const auto& at, Index n) {
    // The gradient of a hidden score is 0 in truth, and may be anything in memory.
    if (at[3] > at[2] + 4)
      d_scores.values[static_cast<std::size_t>(n)] = static_cast<TestType>(posenc_test::quiet_nan);
  });
  std::vector<double> expected(3);
  for (Index h = 0; h < 3; ++h)
    for (Index b = 0; b < 2; ++b)
      for (Index i = 0; i < 5; ++i)
        for (Index j = 0; j <= i + 4 && j < 7; ++j)
          expected[static_cast<std::size_t>(h)] -=
              to_double(d_scores.view()(b, h, i, j)) * static_cast<double>(i + 4 - j);
  std::vector<double> packed(3);
  alibi.add_vjp(packed, d_scores.view(), q, k);
  CHECK(posenc_test::max_difference(packed, expected) <= 1e-12);
  posenc_test::in_every_storage(
      d_scores,
      [&](const auto& storage) {
        std::vector<double> gradient(3);
        alibi.add_vjp(gradient, storage, q, k);
        CHECK(same_bits(gradient, packed));
      },
      [](const char*, const auto&) {});
}

// ---- Edges and failures.

TEST_CASE("nothing to bias is no error", "[alibi]") {
  const Alibi alibi(4);
  for (const auto& extents : {std::array<Index, 4>{0, 4, 5, 6}, {2, 0, 5, 6}, {2, 4, 0, 6}, {2, 4, 5, 0}}) {
    Scores<float> none{extents, {}};
    alibi.add(none.view(), consecutive(0, extents[2]), consecutive(0, extents[3]));
    std::vector<double> gradient(static_cast<std::size_t>(extents[1]), 3.0);
    alibi.add_vjp(gradient, none.view(), consecutive(0, extents[2]), consecutive(0, extents[3]));
    for (const double value : gradient) CHECK(value == 3.0);
  }
  std::vector<float> row;
  alibi.row(row, 0, 5, consecutive(0, 0));
  Values<float, 2> tile{{0, 3}, {}};
  alibi.tile(tile.view(), 0, consecutive(0, 0), consecutive(0, 3));
  // The last process of a tensor-parallel group may have no head.
  const Alibi empty_shard({.num_heads = 4, .head_offset = 4});
  Scores<float> no_heads{{2, 0, 5, 6}, {}};
  empty_shard.add(no_heads.view(), consecutive(0, 5), consecutive(0, 6));
  // One head, one query, one key.
  CHECK(added(Alibi(1), Scores<float>{{1, 1, 1, 1}, {2.0f}}, consecutive(256, 1), consecutive(0, 1)).values ==
        std::vector<float>{1.0f});
}

TEST_CASE("an alibi that can't be is refused", "[alibi]") {
  static const double nan = posenc_test::quiet_nan;
  check_throws<std::invalid_argument>([] { alibi_slopes(0); }, {"num_heads", "at least 1", "got 0"});
  check_throws<std::invalid_argument>([] { Alibi(-3); }, {"num_heads", "at least 1", "got -3"});
  check_throws<std::invalid_argument>([] { alibi_slopes(4, nan); }, {"alibi_bias_max", "finite", "nan"});
  check_throws<std::invalid_argument>([] { Alibi({.num_heads = 4, .alibi_bias_max = infinity}); },
                                      {"alibi_bias_max", "finite", "got inf"});
  check_throws<std::invalid_argument>([] { Alibi({.num_heads = 4, .scale = nan}); },
                                      {"scale", "finite", "nan"});
  check_throws<std::invalid_argument>([] { Alibi({.num_heads = 4, .scale = -infinity}); },
                                      {"scale", "finite", "got -inf"});
  check_throws<std::invalid_argument>([] { Alibi({.num_heads = 0}, {}); },
                                      {"num_heads", "at least 1", "got 0"});
  check_throws<std::invalid_argument>([] { Alibi({.num_heads = 2}, {1, nan}); },
                                      {"slopes[1]", "finite", "nan"});
  check_throws<std::invalid_argument>([] { Alibi({.num_heads = 4}, {1, 2, 3}); },
                                      {"slopes", "expected 4", "got 3"});
  check_throws<std::out_of_range>([] { Alibi({.num_heads = 4, .head_offset = -1}); },
                                  {"head_offset", "[0, 4]", "got -1"});
  check_throws<std::out_of_range>([] { Alibi({.num_heads = 4, .head_offset = 5}); },
                                  {"head_offset", "[0, 4]", "got 5"});
}

TEST_CASE("scores that do not fit are refused and left as they are", "[alibi]") {
  const Alibi alibi(4), shard({.num_heads = 4, .head_offset = 3});
  auto scores = random_values<float, 4>({2, 4, 5, 6});
  auto out = random_values<float, 4>({2, 4, 5, 6}, 2);
  std::vector<double> gradient = {1, 2, 3, 4};
  const auto unchanged = [&](const auto& call) {
    const auto scores_before = scores, out_before = out;
    const auto gradient_before = gradient;
    call();
    CHECK(same_bits(scores, scores_before));
    CHECK(same_bits(out, out_before));
    CHECK(gradient == gradient_before);
  };
  const auto refused = [&](const auto& call, std::initializer_list<const char*> parts) {
    unchanged([&] { check_throws<std::invalid_argument>(call, parts); });
  };
  const auto beyond = [&](const auto& call, std::initializer_list<const char*> parts) {
    unchanged([&] { check_throws<std::out_of_range>(call, parts); });
  };
  const Positions q = consecutive(1, 5), k = consecutive(0, 6);
  const Positions three_rows = consecutive(std::vector<Position>{0, 0, 0}, 5);
  const View<float, 2> tile(out.values.data(), {5, 6});

  SECTION("heads that the model does not have") {
    const View<float, 4> wide(scores.values.data(), {1, 8, 5, 6});
    beyond([&] { alibi.add(wide, q, k); }, {"scores", "[0, 4)", "got 7"});
    beyond([&] { shard.add(scores.view(), q, k); }, {"scores", "[0, 1)", "got 3"});
    beyond([&] { alibi.add_vjp(gradient, wide, q, k); }, {"d_scores", "[0, 4)", "got 7"});
    beyond([&] { alibi.tile(tile, 4, q, k); }, {"head", "[0, 4)", "got 4"});
    beyond([&] { alibi.tile(tile, -1, q, k); }, {"head", "[0, 4)", "got -1"});
    beyond([&] { shard.tile(tile, 1, q, k); }, {"head", "[0, 1)", "got 1"});
    beyond([&] { alibi.row(std::span<float>(out.values.data(), 6), 4, 0, k); }, {"head", "[0, 4)", "got 4"});
    beyond([&] { (void)alibi.value(4, 0, 0); }, {"head", "[0, 4)", "got 4"});
    beyond([&] { (void)alibi.value(-1, 0, 0); }, {"head", "[0, 4)", "got -1"});
    beyond([&] { (void)shard.value(1, 0, 0); }, {"head", "[0, 1)", "got 1"});
    beyond([&] { (void)alibi.value((std::numeric_limits<Index>::max)(), 0, 0); }, {"head", "[0, 4)"});
  }
  SECTION("another number of positions") {
    refused([&] { alibi.add(scores.view(), k, k); }, {"q_at", "expected 5 positions", "got 6"});
    refused([&] { alibi.add(scores.view(), q, q); }, {"k_at", "expected 6 positions", "got 5"});
    refused([&] { alibi.add(out.view(), scores.view(), q, q); }, {"k_at", "expected 6 positions", "got 5"});
    refused([&] { alibi.add_vjp(gradient, scores.view(), k, k); }, {"q_at", "expected 5 positions", "got 6"});
    refused([&] { alibi.tile(tile, 0, k, k); }, {"q_at", "expected 5", "got 6"});
    refused([&] { alibi.tile(tile, 0, q, q); }, {"k_at", "expected 6", "got 5"});
    refused([&] { alibi.row(std::span<float>(out.values.data(), 7), 0, 3, k); },
            {"k_at", "expected 7", "got 6"});
  }
  SECTION("positions of another number of rows") {
    refused([&] { alibi.add(scores.view(), three_rows, k); }, {"q_at", "1 or 2 rows", "got 3"});
    refused([&] { alibi.add(scores.view(), q, consecutive(std::vector<Position>{0, 0, 0}, 6)); },
            {"k_at", "1 or 2 rows", "got 3"});
    refused([&] { alibi.tile(tile, 0, three_rows, k); }, {"q_at", "one row", "got 3"});
    refused([&] { alibi.tile(tile, 0, q, consecutive(std::vector<Position>{0, 0}, 6)); },
            {"k_at", "one row", "got 2"});
    const Positions at = consecutive(std::vector<Position>{0, 0}, 5);
    refused([&] { alibi.add(View<float, 3>(scores.values.data(), {4, 5, 6}), at, k); }, {"q_at", "got 2"});
  }
  SECTION("outputs of another shape") {
    refused([&] { alibi.add(out.view().slice(3, 0, 5), scores.view(), q, k); },
            {"out", "(2, 4, 5, 6)", "(2, 4, 5, 5)"});
    refused([&] { alibi.add(out.view(), scores.view().slice(1, 0, 3), q, k); },
            {"out", "(2, 3, 5, 6)", "(2, 4, 5, 6)"});
    refused([&] { alibi.add_vjp(std::span<double>(gradient.data(), 3), scores.view(), q, k); },
            {"d_slopes", "expected 4", "got 3"});
    const View<float, 4> all_heads(out.values.data(), {2, 4, 5, 6}, {30, 0, 6, 1});
    refused([&] { alibi.add(all_heads, scores.view(), q, k); }, {"stride 0 on axis 1", "extent 4"});
    refused([&] { alibi.add(all_heads, q, k); }, {"stride 0 on axis 1", "extent 4"});
    refused([&] { alibi.tile(View<float, 2>(out.values.data(), {5, 6}, {0, 1}), 0, q, k); },
            {"out", "stride 0 on axis 0", "extent 5"});
  }
}

TEST_CASE("alibi writes scores in place or apart from them", "[alibi]") {
  const Positions at = consecutive(0, 5);
  posenc_test::keeps_memory_apart<float, 3>(
      {3, 5, 5}, "scores", [&](const auto& out, const auto& x) { Alibi(3).add(out, x, at, at); });
}

TEST_CASE("alibi refuses more heads than any model has, and slopes that lie in the scores", "[alibi]") {
  check_throws<std::invalid_argument>([] { (void)alibi_slopes(std::numeric_limits<Index>::max()); },
                                      {"posenc: num_heads", "at most 2^24"});
  std::vector<double> memory(20, 1.0);
  const View<double, 3> scores(memory.data(), {2, 3, 3});
  check_throws<std::invalid_argument>(
      [&] {
        Alibi(2).add_vjp(std::span<double>(memory).subspan(17, 2), scores, consecutive(0, 3),
                         consecutive(0, 3));
      },
      {"posenc: d_parameters", "apart from d_scores"});
  CHECK(memory == std::vector<double>(20, 1.0));
}
