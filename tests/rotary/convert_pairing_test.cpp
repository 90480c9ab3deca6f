// Query and key weights from one pairing to the other: the scores stay as they are.

#include "posenc/rotary/convert_pairing.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <vector>

#include "posenc/rotary/rotary.hpp"
#include "support/support.hpp"

using Eigen::bfloat16;
using Eigen::half;
using posenc::Axes;
using posenc::convert_pairing;
using posenc::HeadLayout;
using posenc::Index;
using posenc::Pairing;
using posenc::Position;
using posenc::Rotary;
using posenc::View;
using posenc::Window;
using posenc_test::check_throws;
using posenc_test::fill;
using posenc_test::random_values;
using posenc_test::same_bits;
using posenc_test::to_double;
using posenc_test::Values;
using posenc_test::values_of;

namespace {

/// Heads of the usual kinds: grouped queries and keys, partial widths anywhere in the head.
std::vector<HeadLayout> layouts() {
  return {{.num_heads = 1, .head_dim = 2},
          {.num_heads = 4, .head_dim = 10},
          {.num_heads = 2, .head_dim = 10},
          {.num_heads = 3, .head_dim = 80, .rotary_dim = 32},
          {.num_heads = 3, .head_dim = 21, .rotary_dim = 10, .window = Window::trailing()},
          {.num_heads = 2, .head_dim = 23, .rotary_dim = 6, .window = Window::starting_at(5)}};
}

Index width_of(const HeadLayout& layout) { return layout.rotary_dim.value_or(layout.head_dim); }

/// Where row r of the adjacent weights goes among the half ones, by the definition of the pairs.
Index half_row_of(Index r, const HeadLayout& layout) {
  const Index width = width_of(layout), first = layout.window.first(layout.head_dim, width);
  const Index d = r % layout.head_dim - first;
  if (d < 0 || d >= width) return r;
  return r - d + d / 2 + (d % 2) * (width / 2);
}

/// Weights whose elements say where they came from: whole numbers that every type holds.
template <class S>
Values<S, 2> marked(Index rows, Index columns) {
  Values<S, 2> w{{rows, columns}, {}};
  for (Index n = 0; n < rows * columns; ++n)
    w.values.push_back(static_cast<S>(static_cast<int>(n % 256) - 128));
  return w;
}

/// The permuted weights by the definition.
template <class S>
Values<S, 2> as_half(const Values<S, 2>& adjacent, const HeadLayout& layout) {
  Values<S, 2> w = adjacent;
  for (Index r = 0; r < adjacent.extents[0]; ++r)
    for (Index c = 0; c < adjacent.extents[1]; ++c)
      w.view()(half_row_of(r, layout), c) = adjacent.view()(r, c);
  return w;
}

std::string name_of(const HeadLayout& layout) {
  return std::to_string(layout.num_heads) + " heads of " + std::to_string(layout.head_dim) + ", " +
         std::to_string(width_of(layout)) + " turn";
}

}  // namespace

TEST_CASE("converted weights give the same scores", "[convert_pairing][property]") {
  // q = Wq x and k = Wk x, rotated, for grouped queries: four query heads and two key heads.
  constexpr Index features = 12, tokens = 5;
  const std::vector<HeadLayout> query_layouts = {
      {.num_heads = 4, .head_dim = 10, .rotary_dim = 10},
      {.num_heads = 4, .head_dim = 20, .rotary_dim = 6},
      {.num_heads = 4, .head_dim = 20, .rotary_dim = 6, .window = Window::trailing()},
      {.num_heads = 4, .head_dim = 20, .rotary_dim = 6, .window = Window::starting_at(3)}};
  for (const HeadLayout& query_heads : query_layouts)
    for (const bool to_half : {true, false}) {
      INFO(name_of(query_heads) << (to_half ? ", to half" : ", to adjacent"));
      const Pairing from = to_half ? Pairing::adjacent : Pairing::half;
      const Pairing to = to_half ? Pairing::half : Pairing::adjacent;
      const auto x = random_values<double, 2>({tokens, features}, 1);
      HeadLayout key_heads = query_heads;
      key_heads.num_heads = 2;
      const Index head_dim = query_heads.head_dim;
      auto wq = random_values<double, 2>({4 * head_dim, features}, 2),
           wk = random_values<double, 2>({2 * head_dim, features}, 3);
      auto bias = random_values<double, 1>({4 * head_dim}, 4);
      const auto scores = [&](Pairing pairing) {
        const Rotary rotary(
            posenc::rotary_frequencies({.head_dim = head_dim, .rotary_dim = query_heads.rotary_dim}), pairing,
            query_heads.window);
        const auto project = [&](const Values<double, 2>& w, const double* b, Index heads) {
          Values<double, 2> y{{tokens, w.extents[0]}, {}};
          for (Index t = 0; t < tokens; ++t)
            for (Index r = 0; r < w.extents[0]; ++r) {
              double sum = b ? b[r] : 0;
              for (Index i = 0; i < features; ++i) sum += w.view()(r, i) * x.view()(t, i);
              y.values.push_back(sum);
            }
          rotary.rotate(posenc::split_heads(y.view(), heads), posenc::consecutive(7, tokens), Axes::shd);
          return y;
        };
        const auto q = project(wq, bias.values.data(), 4), k = project(wk, nullptr, 2);
        std::vector<double> s;
        for (Index h = 0; h < 4; ++h)
          for (Index i = 0; i < tokens; ++i)
            for (Index j = 0; j < tokens; ++j) {
              double sum = 0;
              for (Index d = 0; d < head_dim; ++d)
                sum += q.view()(i, h * head_dim + d) * k.view()(j, h / 2 * head_dim + d);
              s.push_back(sum);
            }
        return s;
      };
      const auto expected = scores(from);
      CHECK(posenc_test::max_difference(scores(to), expected) > 0.1);  // unconverted: fluent nonsense
      convert_pairing(wq.view(), from, to, query_heads);
      convert_pairing(bias.view(), from, to, query_heads);
      convert_pairing(wk.view(), from, to, key_heads);
      CHECK(posenc_test::max_difference(scores(to), expected) <= 1e-12);
    }
}

TEST_CASE("a score is the same before and after, from every pairing to every other", "[convert_pairing]") {
  // One query at position 9 and one key at 4; the weights are the vectors themselves, one column wide.
  constexpr std::array rotations = {Pairing::half, Pairing::adjacent, Pairing::adjacent_to_half};
  const auto stored_adjacent = [](Pairing pairing) { return pairing != Pairing::half; };
  for (const HeadLayout& layout :
       {HeadLayout{.num_heads = 1, .head_dim = 16},
        HeadLayout{.num_heads = 1, .head_dim = 16, .rotary_dim = 10},
        HeadLayout{.num_heads = 1, .head_dim = 17, .rotary_dim = 6, .window = Window::trailing()}})
    for (const Pairing from : rotations)
      for (const Pairing to : rotations) {
        INFO(name_of(layout) << ", from " << static_cast<int>(from) << " to " << static_cast<int>(to));
        auto wq = random_values<double, 2>({layout.head_dim, 1}, 5),
             wk = random_values<double, 2>({layout.head_dim, 1}, 6);
        const auto before = wq;
        const auto score = [&](Pairing pairing) {
          const Rotary rope(
              posenc::rotary_frequencies({.head_dim = layout.head_dim, .rotary_dim = layout.rotary_dim}),
              pairing, layout.window);
          const std::array<Index, 2> row{1, layout.head_dim};
          auto q = wq.values, k = wk.values;
          rope.rotate(posenc::view(q.data(), row), posenc::consecutive(9, 1));
          rope.rotate(posenc::view(k.data(), row), posenc::consecutive(4, 1));
          return posenc_test::dot(q, k);
        };
        const double expected = score(from);
        convert_pairing(wq.view(), from, to, layout);
        convert_pairing(wk.view(), from, to, layout);
        CHECK(std::abs(score(to) - expected) < 1e-13);
        CHECK(same_bits(wq, before) == (stored_adjacent(from) == stored_adjacent(to)));
        convert_pairing(wq.view(), to, from, layout);
        CHECK(same_bits(wq, before));
      }
}

TEST_CASE("weights of a pairing that is no rotation are not converted", "[convert_pairing]") {
  // The mismatched angles give scores that no other pairing can.
  auto w = random_values<float, 2>({16, 3});
  const auto before = w;
  const HeadLayout layout{.num_heads = 2, .head_dim = 8};
  for (const Pairing other :
       {Pairing::half, Pairing::adjacent, Pairing::adjacent_to_half, Pairing::adjacent_mismatched}) {
    check_throws<std::invalid_argument>(
        [&] { convert_pairing(w.view(), Pairing::adjacent_mismatched, other, layout); },
        {"from", "adjacent_mismatched"});
    if (other != Pairing::adjacent_mismatched)
      check_throws<std::invalid_argument>(
          [&] { convert_pairing(w.view(), other, Pairing::adjacent_mismatched, layout); },
          {"to", "adjacent_mismatched"});
  }
  CHECK(same_bits(w, before));
}

TEMPLATE_TEST_CASE("rows move as the definition says and nothing else does", "[convert_pairing][property]",
                   float, double, half, bfloat16, std::int8_t, std::uint16_t) {
  for (const HeadLayout& layout : layouts())
    for (const Index columns : {1, 7, 64, 130}) {  // 64 at a time
      INFO(name_of(layout) << ", " << columns << " columns");
      const auto adjacent = marked<TestType>(layout.num_heads * layout.head_dim, columns);
      auto w = adjacent;
      convert_pairing(w.view(), Pairing::adjacent, Pairing::half, layout);
      CHECK(same_bits(w, as_half(adjacent, layout)));
      convert_pairing(w.view(), Pairing::half, Pairing::adjacent, layout);
      CHECK(same_bits(w, adjacent));  // undone, bit for bit
      convert_pairing(w.view(), Pairing::half, Pairing::half, layout);
      convert_pairing(w.view(), Pairing::adjacent, Pairing::adjacent, layout);
      CHECK(same_bits(w, adjacent));
    }
}

TEMPLATE_TEST_CASE("weights convert in any storage", "[convert_pairing][property]", float, double, half,
                   bfloat16) {
  const HeadLayout layout{.num_heads = 3, .head_dim = 10, .rotary_dim = 6, .window = Window::starting_at(3)};
  const auto adjacent = marked<TestType>(30, 70);
  const auto expected = as_half(adjacent, layout);
  posenc_test::in_every_storage(
      adjacent, [&](auto& w) { convert_pairing(w, Pairing::adjacent, Pairing::half, layout); },
      [&](const char* name, const Values<TestType, 2>& got) {
        INFO(name);
        CHECK(same_bits(got, expected));
      });
  Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic> matrix(40, 80);
  matrix.setConstant(TestType(7.0f));
  fill(matrix.block(5, 4, 30, 70), adjacent);
  convert_pairing(matrix.block(5, 4, 30, 70), Pairing::adjacent, Pairing::half, layout);
  CHECK(same_bits(values_of(matrix.block(5, 4, 30, 70)), expected));
  matrix.block(5, 4, 30, 70).setConstant(TestType(7.0f));
  CHECK((matrix.array() == TestType(7.0f)).all());
}

TEST_CASE("a packed projection converts its queries and keys and keeps its values", "[convert_pairing]") {
  // Rows: 4 query heads, 2 key heads, 2 value heads.
  const HeadLayout queries{.num_heads = 4, .head_dim = 10}, keys{.num_heads = 2, .head_dim = 10};
  const auto before = marked<float>(80, 3);
  auto w = before;
  convert_pairing(w.view().slice(0, 0, 40), Pairing::adjacent, Pairing::half, queries);
  convert_pairing(w.view().slice(0, 40, 20), Pairing::adjacent, Pairing::half, keys);
  const auto rows = [](const Values<float, 2>& x, Index first, Index count) {
    const auto part = values_of(x.view().slice(0, first, count));
    return Values<float, 2>{part.extents, part.values};
  };
  CHECK(same_bits(rows(w, 0, 40), as_half(rows(before, 0, 40), queries)));
  CHECK(same_bits(rows(w, 40, 20), as_half(rows(before, 40, 20), keys)));
  CHECK(same_bits(rows(w, 60, 20), rows(before, 60, 20)));
}

TEST_CASE("a bias converts as its rows do", "[convert_pairing]") {
  for (const HeadLayout& layout : layouts()) {
    INFO(name_of(layout));
    const auto adjacent = marked<float>(layout.num_heads * layout.head_dim, 1);
    const auto expected = as_half(adjacent, layout).values;
    std::vector<float> bias = adjacent.values;
    const Index n = static_cast<Index>(bias.size());
    convert_pairing(posenc::view(bias.data(), std::array<Index, 1>{n}), Pairing::adjacent, Pairing::half,
                    layout);
    CHECK(same_bits(bias, expected));
    Eigen::VectorXf vector = Eigen::Map<const Eigen::VectorXf>(adjacent.values.data(), n);
    convert_pairing(vector, Pairing::adjacent, Pairing::half, layout);
    CHECK(same_bits(values_of(vector).values, expected));
    Eigen::Tensor<float, 1> tensor(n);
    for (Index i = 0; i < n; ++i) tensor(i) = adjacent.values[static_cast<std::size_t>(i)];
    convert_pairing(tensor, Pairing::adjacent, Pairing::half, layout);
    CHECK(same_bits(values_of(tensor).values, expected));
    // Every third float of a larger buffer.
    std::vector<float> wide(3 * bias.size(), 7.0f);
    const View<float, 1> strided(wide.data(), {n}, {3});
    for (Index i = 0; i < n; ++i) strided(i) = adjacent.values[static_cast<std::size_t>(i)];
    convert_pairing(strided, Pairing::adjacent, Pairing::half, layout);
    CHECK(same_bits(values_of(strided).values, expected));
    for (std::size_t i = 0; i < wide.size(); ++i)
      if (i % 3 != 0) CHECK(wide[i] == 7.0f);
  }
}

TEST_CASE("a known permutation", "[convert_pairing]") {
  // Meta's wq of one head of 8 to Hugging Face's: 0 2 4 6 1 3 5 7.
  std::vector<int> rows(8);
  std::iota(rows.begin(), rows.end(), 0);
  const auto w = posenc::view(rows.data(), std::array<Index, 2>{8, 1});
  convert_pairing(w, Pairing::adjacent, Pairing::half, {.num_heads = 1, .head_dim = 8});
  CHECK(rows == std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7});
  std::iota(rows.begin(), rows.end(), 0);
  convert_pairing(w, Pairing::half, Pairing::adjacent, {.num_heads = 2, .head_dim = 4});
  CHECK(rows == std::vector<int>{0, 2, 1, 3, 4, 6, 5, 7});
  std::iota(rows.begin(), rows.end(), 0);  // one pair a head: both pairings are the same
  convert_pairing(w, Pairing::half, Pairing::adjacent, {.num_heads = 2, .head_dim = 4, .rotary_dim = 2});
  CHECK(rows == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7});
}

TEST_CASE("weights without columns are converted at once", "[convert_pairing]") {
  Values<float, 2> none{{20, 0}, {}};
  convert_pairing(none.view(), Pairing::adjacent, Pairing::half, {.num_heads = 2, .head_dim = 10});
  CHECK(none.values.empty());
}

TEST_CASE("a layout that does not fit the weights is refused and they stay as they are",
          "[convert_pairing]") {
  auto w = random_values<float, 2>({20, 3});
  const auto refused = [&](const HeadLayout& layout, std::initializer_list<const char*> parts) {
    const auto before = w;
    check_throws<std::invalid_argument>(
        [&] { convert_pairing(w.view(), Pairing::adjacent, Pairing::half, layout); }, parts);
    check_throws<std::invalid_argument>(
        [&] { convert_pairing(w.view(), Pairing::half, Pairing::half, layout); }, parts);
    CHECK(same_bits(w, before));
  };
  refused({}, {"num_heads and head_dim of at least 1", "got 0 and 0"});
  refused({.num_heads = 0, .head_dim = 10}, {"num_heads", "at least 1", "got 0 and 10"});
  refused({.num_heads = -2, .head_dim = -10}, {"num_heads", "at least 1", "got -2 and -10"});
  refused({.num_heads = 2, .head_dim = 0}, {"head_dim", "at least 1", "got 2 and 0"});
  refused({.num_heads = 4, .head_dim = 5}, {"rotary_dim", "an even number", "got 5"});
  refused({.num_heads = 2, .head_dim = 10, .rotary_dim = 3}, {"rotary_dim", "an even number", "got 3"});
  refused({.num_heads = 2, .head_dim = 10, .rotary_dim = 0}, {"rotary_dim", "at least 2", "got 0"});
  refused({.num_heads = 2, .head_dim = 10, .rotary_dim = -2}, {"rotary_dim", "at least 2", "got -2"});
  refused({.num_heads = 2, .head_dim = 10, .rotary_dim = 12},
          {"window", "12 rotated dimensions", "head_dim = 10"});
  refused({.num_heads = 2, .head_dim = 10, .rotary_dim = 4, .window = Window::starting_at(7)},
          {"window", "4 rotated dimensions", "from 7"});
  refused({.num_heads = 3, .head_dim = 10}, {"weights", "3 * 10", "got 20"});
  refused({.num_heads = 1, .head_dim = 10}, {"weights", "1 * 10", "got 20"});
  refused({.num_heads = 2, .head_dim = 6}, {"weights", "2 * 6", "got 20"});
  constexpr Index huge = Index{1} << 62;
  refused({.num_heads = huge, .head_dim = 8}, {"weights", "got 20"});
  refused({.num_heads = 2, .head_dim = huge, .rotary_dim = 4}, {"weights", "got 20"});
}

TEST_CASE("weights whose rows share memory are not permuted") {
  std::vector<float> memory(24, 1.0f);
  const posenc::View<float, 2> rows(memory.data(), {8, 3}, {2, 1});
  posenc_test::check_throws<std::invalid_argument>(
      [&] {
        posenc::convert_pairing(rows, posenc::Pairing::half, posenc::Pairing::adjacent,
                                {.num_heads = 2, .head_dim = 4});
      },
      {"posenc: weights", "an element for each coordinate"});
}
