// Relative biases: which row of the table each distance reads, by published examples, and what every bias promises.

#include "posenc/bias/relative.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bias/properties.hpp"
#include "posenc/bias/alibi.hpp"
#include "posenc/bias/rules/clipped.hpp"
#include "posenc/bias/rules/grid_offset.hpp"
#include "posenc/bias/rules/t5_buckets.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/rotary/position_grids.hpp"

using posenc::Clipped;
using posenc::consecutive;
using posenc::GridOffset;
using posenc::Index;
using posenc::Position;
using posenc::position_ids;
using posenc::Positions;
using posenc::RelativeBias;
using posenc::T5Buckets;
using posenc::T5Direction;
using posenc::TableOf;
using posenc_test::BiasCase;
using posenc_test::check_bias;
using posenc_test::check_bias_gradient;
using posenc_test::check_throws;
using posenc_test::random_values;
using posenc_test::Values;

TEST_CASE("T5 buckets: first distances, as every framework rounds them", "[golden]") {
  const T5Buckets encoder(T5Direction::bidirectional), decoder(T5Direction::unidirectional);
  CHECK(encoder.first_distances() ==
        std::vector<Position>{0, 1, 2, 3, 4, 5, 6, 7, 8, 12, 16, 23, 32, 46, 64, 91});
  CHECK(decoder.first_distances() == std::vector<Position>{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
                                                           11, 12, 13, 14, 15, 16, 19, 21, 24, 27, 31,
                                                           35, 40, 46, 52, 59, 67, 77, 87, 99, 113});
  CHECK(T5Buckets(T5Direction::bidirectional, 64, 256).first_distances() ==
        std::vector<Position>{0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11,  12,  13,  14,  15,
                              16, 20, 23, 27, 32, 39, 46, 54, 64, 77, 91, 108, 128, 153, 182, 216});
  const std::vector<Position> d = {-200, -128, -91, -64, -16, -8, -7, 0, 1, 7, 8, 16, 64, 128};
  const std::vector<Index> buckets = {15, 15, 15, 14, 10, 8, 7, 0, 17, 23, 24, 26, 30, 31};
  for (std::size_t n = 0; n < d.size(); ++n) CHECK(encoder.of_distance(d[n]) == buckets[n]);
  const std::vector<Position> before = {5, 0, -1, -15, -16, -19, -127, -1000};
  const std::vector<Index> of_decoder = {0, 0, 1, 15, 16, 17, 31, 31};
  for (std::size_t n = 0; n < before.size(); ++n) CHECK(decoder.of_distance(before[n]) == of_decoder[n]);
  const T5Buckets wavlm(T5Direction::bidirectional, 320, 800);
  for (const auto& [distance, bucket] : std::vector<std::pair<Position, Index>>{
           {79, 79}, {80, 80}, {82, 80}, {83, 81}, {100, 87}, {200, 111}, {400, 135}, {799, 159}, {800, 159}})
    CHECK(wavlm.of_distance(-distance) == bucket);
}

TEST_CASE("T5 buckets: where single precision and double part, the exact integers count", "[golden]") {
  const T5Buckets rule(T5Direction::bidirectional, 20, 160);
  for (const Position first : {10, 20, 80})
    CHECK(rule.of_distance(-first) == rule.of_distance(1 - first) + 1);
}

TEST_CASE("clipped distances and offsets on a grid: rows of the table", "[golden]") {
  const Clipped rule(2);
  std::vector<Index> rows;
  for (Position d = -4; d <= 4; ++d) rows.push_back(rule.of_distance(d));
  CHECK(rows == std::vector<Index>{0, 0, 0, 1, 2, 3, 4, 4, 4});

  const GridOffset window(2, 3);
  const Positions at = posenc::grid_positions({2, 3});
  std::vector<Index> index;
  for (Index i = 0; i < 6; ++i)
    for (Index j = 0; j < 6; ++j) index.push_back(window({at, at, 0, 0, i}, j));
  CHECK(index == std::vector<Index>{7,  6,  5,  2, 1, 0, 8,  7,  6,  3, 2, 1, 9,  8,  7,  4, 3, 2,
                                    12, 11, 10, 7, 6, 5, 13, 12, 11, 8, 7, 6, 14, 13, 12, 9, 8, 7});
}

TEST_CASE("relative bias: what every bias promises", "[property]") {
  const Index heads = 3;
  const Positions in_order = consecutive(4, 5), keys = consecutive(0, 11);
  const Positions ids = position_ids(std::vector<std::int64_t>{9, -200, 40, 3}),
                  key_ids = position_ids(std::vector<std::int64_t>{0, 300, -7, 12, 11, 10});
  const auto table = random_values<float, 2>({32, heads}, 1);
  for (const auto direction : {T5Direction::bidirectional, T5Direction::unidirectional}) {
    const T5Buckets rule(direction);
    const RelativeBias t5(rule, table.view(), {.scale = 0.25});
    for (const auto& [q_at, k_at] : {std::pair(in_order, keys), std::pair(ids, key_ids)})
      check_bias(BiasCase<RelativeBias<T5Buckets, float, 2>>{
          t5, 1, heads, q_at, k_at, [&, &q = q_at, &k = k_at](Index b, Index h, Index i, Index j) {
            return 0.25 * table.view()(rule.of_distance(k(b, j) - q(b, i)), h);
          }});
  }
  const auto window = random_values<float, 2>({15, heads}, 2);
  const Positions grid = posenc::grid_positions({2, 3});
  const GridOffset offset(2, 3);
  const RelativeBias swin(offset, window.view());
  check_bias(BiasCase<RelativeBias<GridOffset, float, 2>>{
      swin, 1, heads, grid, grid, [&](Index, Index h, Index i, Index j) {
        return double{window.view()(offset({grid, grid, 0, h, i}, j), h)};
      }});
}

TEST_CASE("relative bias: tables of queries and of keys", "[property]") {
  const Index batch = 2, heads = 2;
  const Positions q_at = consecutive(3, 4), k_at = consecutive(0, 6);
  const Clipped rule(2);
  const auto of_queries = random_values<float, 4>({batch, heads, 4, 5}, 3);
  const RelativeBias shaw(rule, of_queries.view(), TableOf::query);
  check_bias(BiasCase<RelativeBias<Clipped, float, 4>>{
      shaw, batch, heads, q_at, k_at, [&](Index b, Index h, Index i, Index j) {
        return double{of_queries.view()(b, h, i, rule.of_distance(k_at(b, j) - q_at(b, i)))};
      }});
  const auto of_keys = random_values<float, 4>({batch, heads, 6, 5}, 4);
  const RelativeBias p2c(rule, of_keys.view(), TableOf::key);
  check_bias(BiasCase<RelativeBias<Clipped, float, 4>>{
      p2c, batch, heads, q_at, k_at, [&](Index b, Index h, Index i, Index j) {
        return double{of_keys.view()(b, h, j, rule.of_distance(k_at(b, j) - q_at(b, i)))};
      }});
}

TEST_CASE("relative bias: gradients of all three tables", "[property]") {
  const Index batch = 2, heads = 3;
  const Positions q_at = consecutive(2, 4), k_at = consecutive(0, 6);
  const auto d = random_values<double, 4>({batch, heads, 4, 6}, 7);
  const Clipped rule(2);
  const auto check = [&](const auto& table, auto... whose) {
    const RelativeBias bias(rule, table.view(), whose..., {.scale = 0.5});
    auto gradient = table;
    std::fill(gradient.values.begin(), gradient.values.end(), 0.0);
    bias.add_vjp(gradient.view(), d.view(), q_at, k_at);
    const BiasCase<std::remove_const_t<decltype(bias)>> c{bias, batch, heads, q_at, k_at, {}};
    auto changed = table;
    check_bias_gradient(c, gradient.values, d, [&](std::size_t n, double change) {
      changed.values = table.values;
      changed.values[n] += change;
      return RelativeBias(rule, changed.view(), whose..., {.scale = 0.5});
    });
    for (const int threads : {2, 5}) {
      auto again = gradient;
      std::fill(again.values.begin(), again.values.end(), 0.0);
      bias.add_vjp(posenc_test::ThreadsDevice{threads}, again.view(), d.view(), q_at, k_at);
      CHECK(posenc_test::same_bits(again, gradient));
    }
  };
  check(random_values<double, 2>({5, heads}, 8));
  check(random_values<double, 4>({batch, heads, 4, 5}, 9), TableOf::query);
  check(random_values<double, 4>({batch, heads, 6, 5}, 10), TableOf::key);
}

TEST_CASE("relative bias: a shard of the heads is a part of the whole", "[property]") {
  const auto table = random_values<float, 2>({32, 6}, 1);
  const T5Buckets rule(T5Direction::bidirectional);
  const Positions at = consecutive(0, 9);
  Eigen::Tensor<float, 3, Eigen::RowMajor> whole(6, 9, 9), shard(2, 9, 9);
  whole.setZero(), shard.setZero();
  RelativeBias(rule, table.view()).add(whole, at, at);
  RelativeBias(rule, table.view(), {.head_offset = 3}).add(shard, at, at);
  for (Index n = 0; n < shard.size(); ++n) CHECK(shard.data()[n] == whole.data()[3 * 81 + n]);
  // The same as probabilities, and the gradient goes to the shard's columns of the table alone.
  posenc::softmax(whole.setZero(), RelativeBias(rule, table.view()), at, at);
  posenc::softmax(shard.setZero(), RelativeBias(rule, table.view(), {.head_offset = 3}), at, at);
  for (Index n = 0; n < shard.size(); ++n) CHECK(shard.data()[n] == whole.data()[3 * 81 + n]);
  auto gradient = table, all = table;
  std::fill(gradient.values.begin(), gradient.values.end(), 0.0f), all = gradient;
  RelativeBias(rule, table.view(), {.head_offset = 3}).add_vjp(gradient.view(), shard, at, at);
  RelativeBias(rule, table.view()).add_vjp(all.view(), whole, at, at);
  for (Index r = 0; r < 32; ++r)
    for (Index h = 0; h < 6; ++h)
      CHECK(gradient.view()(r, h) == (h == 3 || h == 4 ? all.view()(r, h) : 0.0f));
}

TEST_CASE("relative bias: of more keys than a tile or a block holds", "[property]") {
  const Index keys = 2500;
  const T5Buckets rule(T5Direction::bidirectional);
  const auto table = random_values<double, 2>({32, 1}, 1);
  const RelativeBias t5(rule, table.view());
  const posenc::Alibi alibi(1);
  const Positions q_at = consecutive(1200, 2), k_at = consecutive(0, keys);
  const auto both = [&](Index i, Index j) {
    const Position d = k_at(0, j) - q_at(0, i);
    return table.view()(rule.of_distance(d), 0) + alibi.value(0, 0, d);
  };
  Eigen::Tensor<double, 2, Eigen::RowMajor> p(2, keys), d(2, keys);
  posenc::softmax(p.setZero(), posenc::sum(t5, alibi), q_at, k_at);
  double worst = 0;
  for (Index i = 0; i < 2; ++i) {
    double sum = 0;
    for (Index j = 0; j < keys; ++j) sum += std::exp(both(i, j));
    for (Index j = 0; j < keys; ++j)
      worst = (std::max)(worst, std::fabs(p(i, j) - std::exp(both(i, j)) / sum));
  }
  CHECK(worst < 1e-15);
  std::vector<double> expected(32);
  for (Index i = 0; i < 2; ++i)
    for (Index j = 0; j < keys; ++j) {
      d(i, j) = static_cast<double>((7 * i + 3 * j) % 11) - 5;
      expected[static_cast<std::size_t>(rule.of_distance(k_at(0, j) - q_at(0, i)))] += d(i, j);
    }
  Values<double, 2> gradient{{32, 1}, std::vector<double>(32)};
  t5.add_vjp(gradient.view(), d, q_at, k_at);
  CHECK(gradient.values == expected);  // sums of integers
}

TEST_CASE("relative bias: what does not fit is refused by name") {
  const auto table = random_values<float, 2>({31, 4}, 1);
  const T5Buckets rule(T5Direction::bidirectional);
  check_throws<std::invalid_argument>([&] { (void)RelativeBias(rule, table.view()); },
                                      {"table", "32 rows", "got 31"});
  const auto longer = random_values<float, 2>({33, 4}, 1);
  check_throws<std::invalid_argument>([&] { (void)RelativeBias(rule, longer.view()); },
                                      {"table", "32 rows", "got 33"});
  CHECK_THROWS_AS(T5Buckets(T5Direction::bidirectional, 31), std::invalid_argument);
  CHECK_THROWS_AS(T5Buckets(T5Direction::unidirectional, 32, 16), std::invalid_argument);
  CHECK_THROWS_AS(Clipped(-1), std::invalid_argument);
  CHECK_THROWS_AS(GridOffset(0, 3), std::invalid_argument);
  const auto good = random_values<float, 2>({32, 4}, 1);
  const RelativeBias t5(rule, good.view());
  Eigen::Tensor<float, 3> scores(5, 2, 2);
  scores.setZero();
  check_throws<std::out_of_range>([&] { t5.add(scores, consecutive(0, 2), consecutive(0, 2)); },
                                  {"heads", "4", "got 4"});
  const auto window = random_values<float, 2>({15, 5}, 1);
  const RelativeBias swin(GridOffset(2, 3), window.view());
  check_throws<std::invalid_argument>([&] { swin.add(scores, consecutive(0, 2), consecutive(0, 2)); },
                                      {"q_at", "2 axes"});
  Eigen::Tensor<float, 3> wide(5, 8, 8);
  wide.setZero();
  const Positions grid = posenc::grid_positions({2, 4});
  check_throws<std::out_of_range>([&] { swin.add(wide, grid, grid); }, {"columns", "window of 3"});
  // One farther than the window is wide, to either side; as far as it is wide less one, fine.
  Eigen::Tensor<float, 3> one(5, 1, 1);
  one.setZero();
  const auto place = [](Position row) { return posenc::grid_positions({1, 1}, row); };
  const auto nine = random_values<float, 2>({9, 5}, 1);
  const RelativeBias square(GridOffset(2, 2), nine.view());
  CHECK_NOTHROW(square.add(one, place(1), place(0)));
  CHECK_NOTHROW(square.add(one, place(0), place(1)));
  check_throws<std::out_of_range>([&] { square.add(one, place(2), place(0)); }, {"rows", "window of 2"});
  check_throws<std::out_of_range>([&] { square.add(one, place(0), place(2)); }, {"rows", "window of 2"});
  // A table of queries, or of keys, is one of this call.
  const auto of_three = random_values<float, 4>({1, 5, 3, 5}, 3);
  const Positions two = consecutive(0, 2);
  for (const TableOf whose : {TableOf::query, TableOf::key})
    check_throws<std::invalid_argument>(
        [&] { RelativeBias(Clipped(2), of_three.view(), whose).add(scores, two, two); },
        {whose == TableOf::query ? "table: queries" : "table: keys", "expected 2", "got 3"});
}
