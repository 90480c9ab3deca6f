// Rotation by a given table of cos and sin, in the forms that other runtimes hand out.

#include "posenc/rotary/rotary_table.hpp"

#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "posenc/rotary/rotary.hpp"
#include "support/overlap.hpp"
#include "support/support.hpp"

using Eigen::bfloat16;
using Eigen::half;
using posenc::Axes;
using posenc::Index;
using posenc::Pairing;
using posenc::Position;
using posenc::Positions;
using posenc::Rotary;
using posenc::RotaryTable;
using posenc::TableWidth;
using posenc::View;
using posenc::Window;
using posenc_test::check_throws;
using posenc_test::epsilon;
using posenc_test::fill;
using posenc_test::random_values;
using posenc_test::same_bits;
using posenc_test::to_double;
using posenc_test::Values;
using posenc_test::values_of;

namespace {

/// Queries or keys as (batch, seq, heads, dim).
template <class S>
using Heads = Values<S, 4>;

/// cos and sin, a row per position (rank 2) or per token (rank 3).
template <class S, std::size_t Rank>
struct CosSin {
  Values<S, Rank> cos, sin;
};

/// Numbers that no angle has, so that nothing but these can have been used.
template <class S, std::size_t Rank>
CosSin<S, Rank> random_table(const std::array<Index, Rank>& extents) {
  return {random_values<S, Rank>(extents, 7), random_values<S, Rank>(extents, 8)};
}

/// What `rotary` turns by at positions 0 .. max_pos - 1.
template <class S>
CosSin<S, 2> table_of(const Rotary& rotary, Index max_pos) {
  CosSin<S, 2> table = random_table<S, 2>({max_pos, rotary.frequencies().rotary_dim() / 2});
  rotary.cos_sin(table.cos.view(), table.sin.view(), posenc::consecutive(0, max_pos));
  return table;
}

/// The row of each token, looked up.
template <class S>
CosSin<S, 3> looked_up(const CosSin<S, 2>& table, const Positions& at) {
  const std::array<Index, 3> extents = {at.rows(), at.count(), table.cos.extents[1]};
  CosSin<S, 3> rows{{extents, {}}, {extents, {}}};
  posenc_test::for_each_coordinate(extents, [&](const auto& i, Index) {
    const auto entry = static_cast<std::size_t>(at(i[0], i[1]) * extents[2] + i[2]);
    rows.cos.values.push_back(table.cos.values[entry]);
    rows.sin.values.push_back(table.sin.values[entry]);
  });
  return rows;
}

/// Each column twice: [c, c] for half, c0 c0 c1 c1 .. for adjacent, as Hugging Face has them.
template <class S, std::size_t Rank>
Values<S, Rank> doubled(const Values<S, Rank>& x, Pairing pairing) {
  Values<S, Rank> y{x.extents, {}};
  const Index pairs = x.extents[Rank - 1];
  y.extents[Rank - 1] = 2 * pairs;
  for (Index row = 0; row < x.size() / pairs; ++row)
    for (Index d = 0; d < 2 * pairs; ++d) {
      const Index pair = pairing == Pairing::half ? d % pairs : d / 2;
      y.values.push_back(x.values[static_cast<std::size_t>(row * pairs + pair)]);
    }
  return y;
}

template <class S, class Table, class... At>
Heads<S> rotated(const Table& table, Heads<S> x, const At&... at) {
  table.rotate(x.view(), at..., Axes::bshd);
  return x;
}

/// Positions within [0, 40), out of order and repeated, per row.
Positions some_ids(Index rows, Index count) {
  Values<std::int32_t, 2> ids{{rows, count}, {}};
  for (Index n = 0; n < rows * count; ++n) ids.values.push_back(static_cast<std::int32_t>((17 * n + 5) % 40));
  return posenc::position_ids(ids.view());
}

const std::array<Pairing, 2> both_pairings = {Pairing::half, Pairing::adjacent};

}  // namespace

TEMPLATE_TEST_CASE("a table of a rotary's angles rotates as the rotary does bit for bit",
                   "[rotary_table][property]", float, double, half, bfloat16) {
  using C = posenc::compute_t<TestType>;
  for (const Pairing pairing : both_pairings)
    for (const auto& [head_dim, rotary_dim] :
         {std::array<Index, 2>{2, 2}, {6, 6}, {20, 10}, {130, 130}, {2055, 2052}})
      for (const Window window : {Window::leading(), Window::trailing()}) {
        INFO((pairing == Pairing::half ? "half, " : "adjacent, ") << rotary_dim << " of " << head_dim);
        auto frequencies = posenc::rotary_frequencies({.head_dim = head_dim, .rotary_dim = rotary_dim});
        frequencies.attention_factor = 1.1;
        const Rotary rotary(frequencies, pairing, window);
        const auto numbers = table_of<C>(rotary, 40);
        const RotaryTable table(numbers.cos.view(), numbers.sin.view(), pairing, window);
        CHECK(table.rotary_dim() == rotary_dim);
        const auto x = random_values<TestType, 4>({2, 19, 3, head_dim});
        for (const Positions& at : {posenc::consecutive(21, 19), some_ids(2, 19)}) {
          auto expected = x, y = x;
          rotary.rotate(expected.view(), at, Axes::bshd);
          CHECK(same_bits(rotated(table, x, at), expected));
          rotary.rotate_vjp(expected.view(), x.view(), at, Axes::bshd);
          table.rotate_vjp(y.view(), at, Axes::bshd);
          CHECK(same_bits(y, expected));
        }
      }
}

TEMPLATE_TEST_CASE("a table rotates by its numbers whatever they are", "[rotary_table][property]", float,
                   double, half, bfloat16) {
  using C = posenc::compute_t<TestType>;
  const Index pairs = 5, first = 2, dim = 14;
  for (const Pairing pairing : both_pairings) {
    const auto numbers = random_table<C, 2>({40, pairs});
    const RotaryTable table(numbers.cos.view(), numbers.sin.view(), pairing, Window::starting_at(first));
    const auto x = random_values<TestType, 4>({2, 19, 2, dim});
    const Positions at = some_ids(2, 19);
    const auto y = rotated(table, x, at);
    int off = 0;
    posenc_test::for_each_coordinate(x.extents, [&](const auto& i, Index n) {
      const auto here = static_cast<std::size_t>(n);
      if (i[3] < first || i[3] >= first + 2 * pairs) {
        off += std::memcmp(&x.values[here], &y.values[here], sizeof(TestType)) != 0;
        return;
      }
      const Index d = i[3] - first;
      const bool second = pairing == Pairing::half ? d >= pairs : d % 2 == 1;
      const Index pair = pairing == Pairing::half ? d % pairs : d / 2;
      const Index partner = pairing == Pairing::half ? pairs : 1;
      const double own = to_double(x.values[here]);
      const double other = to_double(x.values[static_cast<std::size_t>(second ? n - partner : n + partner)]);
      const double c = numbers.cos.view()(at(i[0], i[1]), pair), s = numbers.sin.view()(at(i[0], i[1]), pair);
      const double expected = own * c + (second ? other * s : -other * s);
      const double size = std::fabs(own * c) + std::fabs(other * s);
      off +=
          !(std::fabs(to_double(y.values[here]) - expected) <=
            2 * epsilon<C> * size +
                (std::same_as<C, TestType> ? 0 : 0.51 * epsilon<TestType> * std::fabs(expected) + 0x1p-25));
    });
    CHECK(off == 0);

    // The gradient is the transpose, though this is no rotation.
    const auto u = random_values<TestType, 4>(x.extents, 3);
    auto back = u;
    table.rotate_vjp(back.view(), at, Axes::bshd);
    CHECK(std::fabs(posenc_test::dot(u.values, y.values) - posenc_test::dot(back.values, x.values)) <=
          4 * epsilon<TestType> * posenc_test::norm(u.values) * posenc_test::norm(x.values));
    CHECK_FALSE(same_bits(back, rotated(table, u, at)));
  }
}

TEMPLATE_TEST_CASE("a table of the width of a head is the one of its pairs", "[rotary_table][property]",
                   float, double, half, bfloat16) {
  using C = posenc::compute_t<TestType>;
  for (const Pairing pairing : both_pairings)
    for (const Index pairs : {1, 3, 40}) {
      const auto x = random_values<TestType, 4>({2, 19, 2, 2 * pairs + 3});
      const auto numbers = random_table<C, 2>({40, pairs});
      const RotaryTable narrow(numbers.cos.view(), numbers.sin.view(), pairing, Window::trailing());
      const auto wide_cos = doubled(numbers.cos, pairing), wide_sin = doubled(numbers.sin, pairing);
      const RotaryTable wide(wide_cos.view(), wide_sin.view(), pairing, Window::trailing(), TableWidth::dims);
      CHECK(wide.rotary_dim() == 2 * pairs);
      CHECK(narrow.rotary_dim() == 2 * pairs);
      const Positions at = some_ids(2, 19);
      CHECK(same_bits(rotated(wide, x, at), rotated(narrow, x, at)));

      const auto token = looked_up(numbers, at);
      const auto token_cos = doubled(token.cos, pairing), token_sin = doubled(token.sin, pairing);
      const RotaryTable per_token(token_cos.view(), token_sin.view(), pairing, Window::trailing(),
                                  TableWidth::dims);
      CHECK(same_bits(rotated(per_token, x), rotated(narrow, x, at)));
    }
}

TEST_CASE("a wide table of Hugging Face is read as each pairing's model stores it", "[rotary_table]") {
  // cat((c, c)) for half, DeepSeek V3 (adjacent_to_half) and V-JEPA 2 (adjacent_mismatched), repeat_interleave(2)
  // for adjacent.
  constexpr Index pairs = 5, rows = 12;
  const auto frequencies = posenc::rotary_frequencies({.head_dim = 2 * pairs});
  for (const Pairing pairing :
       {Pairing::half, Pairing::adjacent, Pairing::adjacent_to_half, Pairing::adjacent_mismatched}) {
    INFO("pairing " << static_cast<int>(pairing));
    Values<double, 2> cos{{rows, 2 * pairs}, {}}, sin = cos;
    for (Index p = 0; p < rows; ++p)
      for (Index c = 0; c < 2 * pairs; ++c) {
        const Index pair = pairing == Pairing::adjacent ? c / 2 : c % pairs;
        const double angle = static_cast<double>(p) * frequencies.inv_freq[static_cast<std::size_t>(pair)];
        cos.values.push_back(std::cos(angle)), sin.values.push_back(std::sin(angle));
      }
    const RotaryTable table(cos.view(), sin.view(), pairing, Window::leading(), TableWidth::dims);
    const posenc::Rotary rope(frequencies, pairing);
    const Positions at = posenc::consecutive(3, 9);
    const auto x = random_values<double, 4>({2, 9, 2, 2 * pairs});
    auto by_table = x, by_angle = x;
    table.rotate(by_table.view(), at, Axes::bshd);
    rope.rotate(by_angle.view(), at, Axes::bshd);
    CHECK(posenc_test::max_difference(by_table.values, by_angle.values) < 1e-14);
  }
}

TEMPLATE_TEST_CASE("a table of a row per token is the one of a row per position looked up",
                   "[rotary_table][property]", float, double, half, bfloat16) {
  using C = posenc::compute_t<TestType>;
  for (const Pairing pairing : both_pairings) {
    const auto numbers = random_table<C, 2>({40, 10});
    const RotaryTable by_position(numbers.cos.view(), numbers.sin.view(), pairing);
    const auto x = random_values<TestType, 4>({3, 19, 2, 20});
    for (const Index rows : {1, 3}) {
      const Positions at = some_ids(rows, 19);
      const auto token = looked_up(numbers, at);
      const RotaryTable by_token(token.cos.view(), token.sin.view(), pairing);
      const auto expected = rotated(by_position, x, at);
      CHECK(same_bits(rotated(by_token, x), expected));
      auto y = x, z = x;
      by_token.rotate(y.view(), x.view(), Axes::bshd);
      CHECK(same_bits(y, expected));
      y = x;
      by_token.rotate_vjp(y.view(), Axes::bshd);
      by_position.rotate_vjp(z.view(), at, Axes::bshd);
      CHECK(same_bits(y, z));
      auto apart = y;  // out of place
      std::fill(apart.values.begin(), apart.values.end(), static_cast<TestType>(0));
      by_token.rotate_vjp(apart.view(), x.view(), Axes::bshd);
      CHECK(same_bits(apart, y));
      std::fill(apart.values.begin(), apart.values.end(), static_cast<TestType>(0));
      by_position.rotate_vjp(Eigen::DefaultDevice(), apart.view(), x.view(), at, Axes::bshd);
      CHECK(same_bits(apart, y));
      // Other axes: heads first, and a step of decoding with a batch.
      auto heads_first = values_of(x.view().permute({0, 2, 1, 3}));
      by_token.rotate(View<TestType, 4>(heads_first.values.data(), heads_first.extents), Axes::bhsd);
      CHECK(same_bits(
          values_of(View<TestType, 4>(heads_first.values.data(), heads_first.extents).permute({0, 2, 1, 3})),
          expected));
      const auto step = looked_up(numbers, some_ids(rows, 1));
      const RotaryTable one(step.cos.view(), step.sin.view(), pairing);
      const auto last = values_of(x.view().slice(1, 18, 1));
      CHECK(same_bits(rotated(one, Heads<TestType>{last.extents, last.values}),
                      rotated(by_position, Heads<TestType>{last.extents, last.values}, some_ids(rows, 1))));
    }
  }
}

TEMPLATE_TEST_CASE("a table of sixteen bits is widened and used as it is", "[rotary_table][property]", half,
                   bfloat16) {
  for (const Pairing pairing : both_pairings) {
    const auto numbers = random_table<TestType, 2>({40, 10});
    CosSin<float, 2> wide{{numbers.cos.extents, {}}, {numbers.sin.extents, {}}};
    for (const TestType value : numbers.cos.values) wide.cos.values.push_back(static_cast<float>(value));
    for (const TestType value : numbers.sin.values) wide.sin.values.push_back(static_cast<float>(value));
    const RotaryTable table(numbers.cos.view(), numbers.sin.view(), pairing);
    const RotaryTable expected(wide.cos.view(), wide.sin.view(), pairing);
    const Positions at = some_ids(2, 19);
    const auto x = random_values<TestType, 4>({2, 19, 2, 20});
    CHECK(same_bits(rotated(table, x, at), rotated(expected, x, at)));
    const auto floats = random_values<float, 4>({2, 19, 2, 20});
    CHECK(same_bits(rotated(table, floats, at), rotated(expected, floats, at)));
  }
}

TEMPLATE_TEST_CASE("a table works in any storage", "[rotary_table][property]", float, double, half,
                   bfloat16) {
  const auto numbers = random_table<TestType, 2>({40, 10});
  const auto x = random_values<TestType, 4>({2, 19, 2, 20});
  const Positions at = some_ids(2, 19);
  const auto expected =
      rotated(RotaryTable(numbers.cos.view(), numbers.sin.view(), Pairing::adjacent), x, at);
  posenc_test::in_every_storage(
      numbers.cos,
      [&](const auto& cos) {
        CHECK(same_bits(rotated(RotaryTable(cos, numbers.sin.view(), Pairing::adjacent), x, at), expected));
      },
      [](const char*, const auto&) {});
  Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic> sin(40, 10);
  fill(sin, numbers.sin);
  CHECK(same_bits(rotated(RotaryTable(numbers.cos.view(), sin, Pairing::adjacent), x, at), expected));
  // Every storage of what is rotated is in rotary_storage_test.cpp: the kernel is the same. Here one of each.
  const RotaryTable table(numbers.cos.view(), sin, Pairing::adjacent);
  Eigen::Tensor<TestType, 4> column_major(2, 19, 2, 20);
  fill(column_major, x);
  table.rotate(column_major, at, Axes::bshd);
  CHECK(same_bits(values_of(column_major), expected));
  auto out = random_values<TestType, 4>({2, 2, 19, 20}, 9);
  table.rotate(out.view().permute({0, 2, 1, 3}), x.view(), at, Axes::bshd);
  CHECK(same_bits(values_of(out.view().permute({0, 2, 1, 3})), expected));
}

TEMPLATE_TEST_CASE("threads do not change a bit of a rotation by a table",
                   "[rotary_table][threads][property]", float, double, half, bfloat16) {
  using C = posenc::compute_t<TestType>;
  const auto numbers = random_table<C, 2>({40, 10});
  const RotaryTable table(numbers.cos.view(), numbers.sin.view(), Pairing::half);
  const auto x = random_values<TestType, 4>({3, 37, 2, 20});
  for (const Index rows : {1, 3}) {
    const Positions at = some_ids(rows, 37);
    const auto token = looked_up(numbers, at);
    const RotaryTable by_token(token.cos.view(), token.sin.view(), Pairing::half);
    const auto expected = rotated(table, x, at);
    auto back = x;
    table.rotate_vjp(back.view(), at, Axes::bshd);
    for (const int threads : {1, 2, 5}) {
      const posenc_test::ThreadsDevice device{threads};
      auto y = x;
      table.rotate(device, y.view(), at, Axes::bshd);
      CHECK(same_bits(y, expected));
      by_token.rotate(device, y.view(), x.view(), Axes::bshd);
      CHECK(same_bits(y, expected));
      table.rotate(device, y.view(), x.view(), at, Axes::bshd);
      CHECK(same_bits(y, expected));
      y = x;
      table.rotate_vjp(device, y.view(), at, Axes::bshd);
      CHECK(same_bits(y, back));
      y = x;
      by_token.rotate_vjp(device, y.view(), Axes::bshd);
      CHECK(same_bits(y, back));
      y = x;
      by_token.rotate(device, y.view(), Axes::bshd);
      CHECK(same_bits(y, expected));
    }
  }
}

TEST_CASE("a table owns tensors and borrows maps and views", "[rotary_table]") {
  const auto numbers = random_table<float, 2>({40, 10});
  const auto x = random_values<float, 4>({1, 19, 2, 20});
  const Positions at = some_ids(1, 19);
  const auto expected = rotated(RotaryTable(numbers.cos.view(), numbers.sin.view(), Pairing::half), x, at);
  Eigen::Tensor<float, 2, Eigen::RowMajor> cos(40, 10), sin(40, 10);
  fill(cos, numbers.cos);
  fill(sin, numbers.sin);
  const Eigen::TensorMap<Eigen::Tensor<float, 2, Eigen::RowMajor>> cos_map(cos.data(), 40, 10),
      sin_map(sin.data(), 40, 10);

  SECTION("a copy") {
    const RotaryTable table(cos, sin, Pairing::half);
    cos.setZero();
    sin.setZero();
    CHECK(same_bits(rotated(table, x, at), expected));
    const auto copy = std::make_unique<RotaryTable<float, 2>>(table);
    CHECK(same_bits(rotated(*copy, x, at), expected));
  }
  SECTION("a moved tensor") {
    const float* memory = cos.data();
    std::vector<RotaryTable<float, 2>> tables;
    tables.emplace_back(std::move(cos), std::move(sin), Pairing::half);
    const RotaryTable<float, 2> table = tables.front();
    tables.clear();
    CHECK(same_bits(rotated(table, x, at), expected));
    CHECK(memory[0] == numbers.cos.values[0]);  // taken, not copied: still alive
  }
  SECTION("a map") {
    const RotaryTable table(cos_map, sin_map, Pairing::half);
    CHECK(same_bits(rotated(table, x, at), expected));
    cos.setConstant(1.0f);
    sin.setZero();
    CHECK(same_bits(rotated(table, x, at), x));  // the map is read at each use
  }
}

TEST_CASE("a table of nothing rotates nothing", "[rotary_table]") {
  const auto numbers = random_table<float, 2>({0, 3});
  const RotaryTable table(numbers.cos.view(), numbers.sin.view(), Pairing::half);
  auto x = random_values<float, 4>({2, 0, 1, 6});
  table.rotate(x.view(), posenc::consecutive(0, 0), Axes::bshd);
  const auto no_pairs = random_table<float, 2>({5, 0});
  const auto y = random_values<float, 4>({2, 5, 1, 6});
  CHECK(same_bits(rotated(RotaryTable(no_pairs.cos.view(), no_pairs.sin.view(), Pairing::half), y,
                          posenc::consecutive(0, 5)),
                  y));
}

TEST_CASE("a table that can't be is refused", "[rotary_table]") {
  const auto numbers = random_table<float, 2>({8, 3});
  check_throws<std::invalid_argument>(
      [&] { RotaryTable(numbers.cos.view(), numbers.sin.view().slice(0, 0, 7), Pairing::half); },
      {"sin", "(8, 3)", "(7, 3)"});
  check_throws<std::invalid_argument>(
      [&] { RotaryTable(numbers.cos.view().slice(1, 0, 2), numbers.sin.view(), Pairing::half); },
      {"sin", "(8, 2)", "(8, 3)"});
  check_throws<std::invalid_argument>(
      [&] {
        RotaryTable(numbers.cos.view(), numbers.sin.view(), Pairing::half, Window::leading(),
                    TableWidth::dims);
      },
      {"cos", "an even width", "got 3"});
}

TEST_CASE("a tensor that does not fit the table is refused and left as it is", "[rotary_table]") {
  const auto numbers = random_table<float, 2>({8, 3});
  const auto tokens = random_table<float, 3>({2, 4, 3});
  const RotaryTable table(numbers.cos.view(), numbers.sin.view(), Pairing::half);
  const RotaryTable by_token(tokens.cos.view(), tokens.sin.view(), Pairing::half);
  auto x = random_values<float, 4>({2, 4, 3, 6});
  auto out = random_values<float, 4>({2, 4, 3, 6}, 2);
  const auto unchanged = [&](const auto& call) {
    const auto x_before = x, out_before = out;
    call();
    CHECK(same_bits(x, x_before));
    CHECK(same_bits(out, out_before));
  };
  const auto refused = [&](const auto& call, std::initializer_list<const char*> parts) {
    unchanged([&] { check_throws<std::invalid_argument>(call, parts); });
  };
  const Positions at = posenc::consecutive(4, 4);

  SECTION("positions without a row") {
    const auto beyond = [&](std::vector<Position> ids, std::initializer_list<const char*> parts) {
      const View<const Position, 2> rows(ids.data(), {static_cast<Index>(ids.size()) / 4, 4});
      const Positions positions = posenc::position_ids(rows);
      unchanged([&] {
        check_throws<std::out_of_range>([&] { table.rotate(x.view(), positions, Axes::bshd); }, parts);
      });
      unchanged([&] {
        check_throws<std::out_of_range>([&] { table.rotate(out.view(), x.view(), positions, Axes::bshd); },
                                        parts);
      });
      unchanged([&] {
        check_throws<std::out_of_range>([&] { table.rotate_vjp(x.view(), positions, Axes::bshd); }, parts);
      });
    };
    beyond({0, 1, 8, -1, 0, 1, 2, 9}, {"at: ", "[0, 8)", "got 8 at (0, 2)"});
    beyond({0, 1, 7, 0, 0, -1, 2, 9}, {"at: ", "[0, 8)", "got -1 at (1, 1)"});
    beyond({0, 1, 2, Position{1} << 40}, {"at: ", "[0, 8)", "got 1099511627776 at (0, 3)"});
    beyond({(Position{1} << 32) + 1, 1, 2, 3}, {"at: ", "got 4294967297 at (0, 0)"});
  }
  SECTION("the last row is one") {
    auto y = x;
    table.rotate(y.view(), at, Axes::bshd);
    CHECK_FALSE(same_bits(y, x));
  }
  SECTION("another number of positions or rows") {
    refused([&] { table.rotate(x.view(), posenc::consecutive(0, 5), Axes::bshd); },
            {"at: ", "expected 4 positions", "got 5"});
    refused(
        [&] { table.rotate(x.view(), posenc::consecutive(std::vector<Position>{0, 0, 0}, 4), Axes::bshd); },
        {"at: ", "1 or 2 rows", "got 3"});
    refused([&] { by_token.rotate(x.view().slice(1, 0, 3), Axes::bshd); }, {"cos", "expected 3", "got 4"});
    refused([&] { by_token.rotate(x.view(), Axes::bhsd); }, {"cos", "expected 3", "got 4"});
    refused([&] { by_token.rotate(x.view().slice(0, 0, 1), Axes::bshd); }, {"cos", "batch of 1", "got 2"});
    refused([&] { by_token.rotate_vjp(View<float, 3>(x.values.data(), {3, 4, 6})); },
            {"cos", "batch of 1 or 3", "got 2"});
  }
  SECTION("axes of another rank") {
    refused([&] { table.rotate(x.view(), at, Axes::bsd); },
            {"expected a tensor of rank 3", "Axes::bsd", "got rank 4"});
    refused([&] { by_token.rotate(x.view(), Axes::sd); },
            {"expected a tensor of rank 2", "Axes::sd", "got rank 4"});
  }
  SECTION("a head that is narrower than the window") {
    refused([&] { table.rotate(x.view().slice(3, 0, 4), at, Axes::bshd); },
            {"window", "6 rotated dimensions", "head_dim = 4"});
    const RotaryTable shifted(numbers.cos.view(), numbers.sin.view(), Pairing::half, Window::starting_at(1));
    refused([&] { shifted.rotate(x.view(), at, Axes::bshd); }, {"window", "head_dim = 6", "from 1"});
    refused([&] { by_token.rotate(x.view().slice(3, 0, 5), Axes::bshd); }, {"window", "head_dim = 5"});
  }
  SECTION("an output of another shape, or without an element for each coordinate") {
    refused([&] { table.rotate(out.view().slice(2, 0, 2), x.view(), at, Axes::bshd); },
            {"out", "(2, 4, 3, 6)", "(2, 4, 2, 6)"});
    refused([&] { by_token.rotate(out.view(), x.view().slice(2, 0, 2), Axes::bshd); },
            {"out", "(2, 4, 2, 6)", "(2, 4, 3, 6)"});
    const View<float, 4> all_heads(out.values.data(), {2, 4, 3, 6}, {24, 6, 0, 1});
    refused([&] { table.rotate(all_heads, x.view(), at, Axes::bshd); }, {"stride 0 on axis 2", "extent 3"});
    refused([&] { by_token.rotate(all_heads, Axes::bshd); }, {"stride 0 on axis 2", "extent 3"});
  }
}

TEST_CASE("a rotation by a table writes in place or apart, and apart from the table", "[rotary_table]") {
  auto cos = random_values<float, 2>({4, 3}, 2), sin = random_values<float, 2>({4, 3}, 3);
  const RotaryTable<float, 2> rope(cos.view(), sin.view(), Pairing::half);
  const Positions at = posenc::consecutive(0, 4);
  posenc_test::keeps_memory_apart<float, 3>({2, 4, 6}, "x",
                                            [&](const auto& out, const auto& x) { rope.rotate(out, x, at); });
  const auto before_cos = cos, before_sin = sin;
  const RotaryTable<float, 2> narrow(cos.view().slice(1, 0, 1), sin.view().slice(1, 0, 1), Pairing::half);
  check_throws<std::invalid_argument>([&] { narrow.rotate(cos.view(), at); },
                                      {"posenc: x", "apart from cos"});
  check_throws<std::invalid_argument>([&] { narrow.rotate(sin.view(), at); },
                                      {"posenc: x", "apart from sin"});
  CHECK(same_bits(cos, before_cos));
  CHECK(same_bits(sin, before_sin));
}

TEST_CASE("a table wider than any head is refused", "[rotary_table]") {
  const float one = 1;
  const View<const float, 2> wide(&one, {2, posenc::Index{1} << 50}, {0, 0});
  check_throws<std::invalid_argument>([&] { (void)RotaryTable<float, 2>(wide, wide, Pairing::half); },
                                      {"posenc: cos", "at most 2^24"});
}
