#include "posenc/embedding/learned_positions.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "embedding/properties.hpp"
#include "support/overlap.hpp"

namespace {

using namespace posenc_test;
using posenc::compute_t;
using posenc::consecutive;
using posenc::LearnedPositions;
using posenc::LearnedPositionsConfig;
using posenc::Position;
using posenc::Positions;
using posenc::View;

/// d_model: one block, and more than one tile of 1024 columns.
const std::vector<Index> widths = {7, 1030};

/// A table in which row p holds p.
Eigen::MatrixXf counting_table(Index rows) {
  return Eigen::VectorXf::LinSpaced(rows, 0.0f, static_cast<float>(rows - 1));
}

/// The rows of the table that the positions look up.
std::vector<Index> rows_at(const LearnedPositions<float>& encoder, const Positions& at) {
  auto x = random_values<float, 3>({at.rows(), at.count(), 1});
  encoder.embed(x.view(), at);
  std::vector<Index> rows;
  for (const float value : x.values) rows.push_back(static_cast<Index>(value));
  return rows;
}

/// d_table for a dy.
template <class S, class Device>
Values<S, 2> gradient(const LearnedPositions<S>& encoder, const Device& device, const Positions& at,
                      const View<const S, 3>& dy) {
  Values<S, 2> d_table{{encoder.max_len(), encoder.d_model()}, {}};
  d_table.values.resize(static_cast<std::size_t>(encoder.max_len() * encoder.d_model()));
  encoder.add_vjp(device, d_table.view(), at, dy);
  return d_table;
}

/// A table of T looked up into x of S: the sum is taken in float or wider and rounded once.
template <class T, class S>
void check_mixed() {
  using C = compute_t<T>;
  const auto table = random_values<T, 2>({9, 5});
  const LearnedPositions<T> encoder(table.view());
  const auto x = random_values<S, 2>({9, 5}, 2);
  auto added = x, embedded = x, expected_sum = x, expected = x;
  encoder.add(added.view(), consecutive(0, 9));
  encoder.embed(embedded.view(), consecutive(0, 9));
  for (std::size_t i = 0; i < 45; ++i) {
    expected_sum.values[i] = static_cast<S>(static_cast<C>(x.values[i]) + static_cast<C>(table.values[i]));
    expected.values[i] = static_cast<S>(static_cast<C>(table.values[i]));
  }
  CHECK(same_bits(added, expected_sum));
  CHECK(same_bits(embedded, expected));
}

}  // namespace

TEMPLATE_TEST_CASE("LearnedPositions: the storage of x and of the table does not matter", "[property]", float,
                   double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (const Index d : widths) {
    const auto table = random_values<S, 2>({50, d}, 2);
    const LearnedPositions<S> encoder(table.view(), {.offset = 2});
    check_storages_agree_by_position<S>(
        d, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
    check_storages_agree_by_position<S>(
        d, [&](const auto& device, auto& x, const auto& at) { encoder.embed(device, x, at); });
    const auto x = random_values<S, 3>({2, 19, d});
    check_input_storages_agree(x, [&](const auto& input) {
      auto out = random_values<S, 3>({2, 19, d}, 3);
      encoder.add(out.view(), input, consecutive(3, 19));
      return out;
    });
    check_input_storages_agree(table, [&](const auto& stored) {
      auto out = x;
      LearnedPositions<S>(stored).add(out.view(), consecutive(3, 19));
      return out;
    });
  }
}

TEMPLATE_TEST_CASE("LearnedPositions: matrices are (seq, dim)", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  const auto table = random_values<TestType, 2>({50, 7}, 2);
  const LearnedPositions<TestType> encoder(table.view());
  check_matrices_agree_by_position<TestType>(
      7, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
}

TEMPLATE_TEST_CASE("LearnedPositions: threads do not matter", "[property][threads]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (const Index d : widths) {
    const auto table = random_values<S, 2>({50, d}, 2);
    const LearnedPositions<S> encoder(table.view());
    check_threads_agree_by_position<S>(
        d, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
    check_threads_agree_by_position<S>(
        d, [&](const auto& device, auto& x, const auto& at) { encoder.embed(device, x, at); });
    const auto dy = random_values<S, 3>({3, 21, d}, 3);
    for (const Positions& at : some_positions())
      check_threads_agree([&](const auto& device) { return gradient<S>(encoder, device, at, dy.view()); });
  }
}

TEMPLATE_TEST_CASE("LearnedPositions: parts of the batch and of the sequence make up the whole", "[property]",
                   float, double, Eigen::half, Eigen::bfloat16) {
  const auto table = random_values<TestType, 2>({50, 7}, 2);
  const LearnedPositions<TestType> encoder(table.view());
  check_parts_make_up_the_whole<TestType>(
      7, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
}

TEMPLATE_TEST_CASE("LearnedPositions: shared positions are the same positions per row", "[property]", float,
                   double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({50, 7}, 2);
  const LearnedPositions<S> encoder(table.view());
  check_shared_positions_are_the_same_per_row<S>(
      7, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
  const Eigen::DefaultDevice serial;
  const auto dy = random_values<S, 3>({3, 21, 7}, 3);
  for (const Positions& at : some_positions())
    CHECK(same_bits(gradient<S>(encoder, serial, at, dy.view()),
                    gradient<S>(encoder, serial, part_of(at, 0, 3, 0, 21), dy.view())));
}

TEST_CASE("LearnedPositions: sums are taken in the compute type and rounded once, in place or not",
          "[property]") {
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

TEMPLATE_TEST_CASE("LearnedPositions: in place is out of place, and embed is add to zero", "[property]",
                   float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({50, 7}, 2);
  const LearnedPositions<S> encoder(table.view());
  const auto x = random_values<S, 3>({3, 21, 7});
  for (const Positions& at : some_positions()) {
    auto in_place = x, out = random_values<S, 3>({3, 21, 7}, 5), zero = x, embedded = x;
    encoder.add(in_place.view(), at);
    encoder.add(out.view(), x.view(), at);
    CHECK(same_bits(out, in_place));
    for (S& value : zero.values) value = S(0.0f);
    encoder.add(zero.view(), at);
    encoder.embed(embedded.view(), at);
    CHECK(same_bits(zero, embedded));
  }
}

// ---- The gradient

TEMPLATE_TEST_CASE("LearnedPositions: add_vjp is the adjoint of the lookup", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (const Index width : widths) {
    const auto v = random_values<S, 2>({50, width}, 2);
    const LearnedPositions<S> encoder(v.view(), {.offset = 3});
    const auto u = random_values<S, 3>({3, 21, width});
    for (const Positions& at : some_positions()) {
      auto jv = u;
      encoder.embed(jv.view(), at);
      const auto jtu = gradient<S>(encoder, Eigen::DefaultDevice(), at, u.view());
      CHECK(agree<S>(dot(u.values, jv.values), dot(jtu.values, v.values), norm(u.values) * norm(jv.values)));
    }
  }
}

TEMPLATE_TEST_CASE("LearnedPositions: the storage of d_table and dy does not matter", "[property]", float,
                   double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({50, 7}, 2);
  const LearnedPositions<S> encoder(table.view());
  const auto dy = random_values<S, 3>({3, 21, 7}, 3);
  const auto at = some_positions().back();
  check_storages_agree(random_values<S, 2>({50, 7}, 4),
                       [&](auto& d_table) { encoder.add_vjp(d_table, at, dy.view()); });
  check_input_storages_agree(dy, [&](const auto& g) {
    auto d_table = table;
    encoder.add_vjp(d_table.view(), at, g);
    return d_table;
  });
}

TEST_CASE("LearnedPositions: add_vjp against finite differences", "[property]") {
  auto table = random_values<double, 2>({5, 3}, 2);
  const auto u = random_values<double, 3>({2, 4, 3});
  const Eigen::MatrixXi ids{{0, 3, 3, 1}, {2, 0, 3, 3}};
  const auto at = posenc::position_ids(ids);
  const LearnedPositionsConfig config{.offset = 1};
  const LearnedPositions<double> encoder(table.view(), config);
  const auto d_table = gradient<double>(encoder, Eigen::DefaultDevice(), at, u.view());
  const auto loss = [&] {
    auto x = u;
    encoder.add(x.view(), at);
    return dot(u.values, x.values);
  };
  for (std::size_t i = 0; i < table.values.size(); ++i) {
    const double value = table.values[i];
    table.values[i] = value + 0.5;
    const double ahead = loss();
    table.values[i] = value - 0.5;
    const double behind = loss();
    table.values[i] = value;
    CHECK(d_table.values[i] == Approx(ahead - behind).margin(1e-12));
  }
}

TEST_CASE("LearnedPositions: padding gets no gradient, and gradients accumulate") {
  // Row 1 is padding; a token at position -1 looks it up, as in OPT.
  const auto table = random_values<float, 2>({6, 2});
  const LearnedPositions<float> encoder(table.view(), {.offset = 2, .padding_idx = 1});
  const auto dy = random_values<float, 2>({3, 2});
  auto d_table = random_values<float, 2>({6, 2}, 4);
  const auto before = d_table;
  const auto at = posenc::position_ids(std::vector<Position>{-1, 0, 3});
  encoder.add_vjp(d_table.view(), at, dy.view());
  for (Index c = 0; c < 2; ++c) {
    CHECK(d_table.view()(1, c) == before.view()(1, c));
    CHECK(d_table.view()(2, c) == before.view()(2, c) + dy.view()(1, c));
    CHECK(d_table.view()(5, c) == before.view()(5, c) + dy.view()(2, c));
    for (const Index untouched : {0, 3, 4})
      CHECK(d_table.view()(untouched, c) == before.view()(untouched, c));
  }
}

TEST_CASE("LearnedPositions: each row of a gradient is one sum in call order, rounded once") {
  const std::vector<float> dy = {1e8f, 1.0f, -1e8f, 1.0f, 0.25f};  // in float 1e8 + 1 is 1e8
  const auto table = random_values<float, 2>({2, 1});
  const LearnedPositions<float> encoder(table.view());
  const auto at = posenc::position_ids(std::vector<int>(5, 1));
  const auto into = [&]<class G>(G before) {
    Values<G, 2> d_table{{2, 1}, {before, before}};
    encoder.add_vjp(d_table.view(), at, View<const float, 2>(dy.data(), {5, 1}));
    CHECK(d_table.values[0] == before);
    return d_table.values[1];
  };
  CHECK(into(3.0f) == 4.25f);
  CHECK(into(3.0) == 4.25);
  CHECK(into(Eigen::half(2048.0f)) == Eigen::half(2050.0f));        // of 2049.25
  CHECK(into(Eigen::bfloat16(256.0f)) == Eigen::bfloat16(258.0f));  // of 257.25
}

// ---- Which row a token gets

TEST_CASE("LearnedPositions: GPT-2 and BERT look up past + i") {
  const LearnedPositions<float> encoder(counting_table(8));
  CHECK(rows_at(encoder, consecutive(0, 4)) == std::vector<Index>{0, 1, 2, 3});
  CHECK(rows_at(encoder, consecutive(5, 3)) == std::vector<Index>{5, 6, 7});
}

TEST_CASE("LearnedPositions: BART looks up past + i + 2") {
  const LearnedPositions<float> encoder(counting_table(8), {.offset = 2});
  CHECK(rows_at(encoder, consecutive(0, 4)) == std::vector<Index>{2, 3, 4, 5});
  CHECK(rows_at(encoder, consecutive(3, 3)) == std::vector<Index>{5, 6, 7});
}

TEST_CASE("LearnedPositions: OPT counts the tokens of the mask from row 2, padding gets row 1") {
  const LearnedPositions<float> encoder(counting_table(8), {.offset = 2});
  const Eigen::MatrixXi mask{{0, 0, 1, 1, 1}, {1, 1, 1, 1, 1}};
  CHECK(rows_at(encoder, posenc::positions_from_mask(mask, -1)) ==
        std::vector<Index>{1, 1, 2, 3, 4, 2, 3, 4, 5, 6});
}

TEST_CASE("LearnedPositions: RoBERTa counts from padding_idx + 1, padding gets row padding_idx") {
  const LearnedPositions<float> encoder(counting_table(8));
  const Eigen::MatrixXi ids{
      {12, 31, 13, 1}};  // transformers: test_create_position_ids_respects_padding_index
  CHECK(rows_at(encoder, posenc::roberta_positions(ids, 1)) == std::vector<Index>{2, 3, 4, 1});
}

TEST_CASE("LearnedPositions: a negative offset") {
  const LearnedPositions<float> encoder(counting_table(3), {.offset = -10});
  CHECK(rows_at(encoder, consecutive(10, 3)) == std::vector<Index>{0, 1, 2});
}

TEST_CASE("LearnedPositions: a table is copied, moved or borrowed") {
  Eigen::MatrixXf matrix = counting_table(4);
  const LearnedPositions<float> copied(matrix);
  const posenc::LearnedPositions borrowed(Eigen::Ref<Eigen::MatrixXf>(matrix), {.offset = 1});
  matrix.setConstant(9.0f);
  CHECK(rows_at(copied, consecutive(2, 1)) == std::vector<Index>{2});
  CHECK(rows_at(borrowed, consecutive(2, 1)) == std::vector<Index>{9});
  CHECK(copied.max_len() == 4);
  CHECK(copied.d_model() == 1);
  CHECK(borrowed.config().offset == 1);
  auto moved = std::make_unique<LearnedPositions<float>>(std::move(matrix));
  const LearnedPositions<float> copy = *moved;
  moved.reset();
  CHECK(rows_at(copy, consecutive(3, 1)) == std::vector<Index>{9});
}

// ---- Edges and failures

TEMPLATE_TEST_CASE("LearnedPositions: nothing to do, and one", "", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({5, 4});
  const LearnedPositions<S> encoder(table.view());
  using Extents = std::array<Index, 3>;
  for (const Extents& extents : {Extents{0, 3, 4}, Extents{2, 0, 4}, Extents{0, 0, 4}}) {
    const Values<S, 3> empty{extents, {}};
    const auto at = consecutive(0, extents[1]);
    in_every_storage(
        empty, [&](auto& x) { encoder.add(x, at); },
        [&](const char*, const Values<S, 3>& x) { CHECK(x.values.empty()); });
    auto d_table = table;
    encoder.add_vjp(d_table.view(), at, empty.view());
    CHECK(same_bits(d_table, table));
  }
  auto one = random_values<S, 1>({4}, 2);
  encoder.embed(one.view(), consecutive(4, 1));
  CHECK(same_bits(one.values, std::vector<S>(table.values.begin() + 16, table.values.end())));
}

TEST_CASE("LearnedPositions: an offset that is no position is refused") {
  const auto build = [](Position offset) {
    return [=] { (void)LearnedPositions<float>(counting_table(3), {.offset = offset}); };
  };
  const Position most = posenc::largest_position;
  check_throws<std::out_of_range>(build(most + 1), {"posenc: offset", "2^60", "got 1152921504606846977"});
  check_throws<std::out_of_range>(build(-most - 1), {"offset", "2^60", "got -1152921504606846977"});
  CHECK_NOTHROW(build(most)());
  CHECK_NOTHROW(build(-most)());
}

TEST_CASE("LearnedPositions: a padding_idx outside the table is refused, whatever the offset") {
  const auto build = [](Position row, Position offset) {
    return [=] { (void)LearnedPositions<float>(counting_table(4), {.offset = offset, .padding_idx = row}); };
  };
  for (const Position offset : {-3, 0, 2}) {
    for (const Position row : {0, 3}) CHECK_NOTHROW(build(row, offset)());
    check_throws<std::out_of_range>(build(99, offset), {"posenc: padding_idx", "[0, 4)", "got 99"});
    check_throws<std::out_of_range>(build(4, offset), {"padding_idx", "[0, 4)", "got 4"});
    check_throws<std::out_of_range>(build(-1, offset), {"padding_idx", "[0, 4)", "got -1"});
  }
}

TEST_CASE("LearnedPositions: the first position beyond the table is named, and nothing is written") {
  const auto table = random_values<float, 2>({5, 4});
  const LearnedPositions<float> encoder(table.view());
  auto x = random_values<float, 3>({2, 3, 4});
  auto d_table = table;
  const auto refused = [&](const LearnedPositions<float>& learned, const Positions& at,
                           std::initializer_list<const char*> parts) {
    const auto v = x.view();
    check_refused<std::out_of_range>(v, [&] { learned.add(v, at); }, parts);
    check_refused<std::out_of_range>(v, [&] { learned.embed(v, at); }, parts);
    const auto d = d_table.view();
    check_refused<std::out_of_range>(d, [&] { learned.add_vjp(d, at, v); }, parts);
  };
  refused(encoder, consecutive(3, 3), {"posenc: at", "[0, 5)", "max_len 5", "got 5 at (0, 2)"});
  refused(encoder, consecutive(9, 3), {"[0, 5)", "got 9 at (0, 0)"});
  refused(encoder, consecutive(-1, 3), {"[0, 5)", "got -1 at (0, 0)"});
  refused(encoder, consecutive(-9, 3), {"[0, 5)", "got -9 at (0, 0)"});
  refused(encoder, consecutive(Position{1} << 40, 3), {"[0, 5)", "got 1099511627776 at (0, 0)"});
  refused(encoder, consecutive(std::vector<Position>{2, 4}, 3), {"[0, 5)", "got 5 at (1, 1)"});
  const Eigen::MatrixXi ids{{0, 4, 1}, {3, -7, 8}};
  refused(encoder, posenc::position_ids(ids), {"[0, 5)", "got -7 at (1, 1)"});

  const LearnedPositions<float> bart(table.view(), {.offset = 2});
  refused(bart, consecutive(1, 3), {"[-2, 3)", "max_len 5 and offset 2", "got 3 at (0, 2)"});
  refused(bart, consecutive(-3, 3), {"[-2, 3)", "got -3 at (0, 0)"});
  auto fits = x;
  CHECK_NOTHROW(bart.add(fits.view(), consecutive(-2, 3)));
  CHECK_NOTHROW(bart.add(fits.view(), consecutive(0, 3)));
}

TEST_CASE("LearnedPositions: a call that doesn't fit is refused and writes nothing") {
  using std::invalid_argument;
  const auto table = random_values<float, 2>({5, 4});
  const LearnedPositions<float> encoder(table.view());
  auto x = random_values<float, 3>({2, 3, 4});
  auto d_table = table;
  const auto v = x.view();
  const auto d = d_table.view();
  const auto at = consecutive(0, 3);

  const auto narrow = v.slice(2, 0, 3);
  const std::initializer_list<const char*> features = {"expected 4 features (d_model)", "got 3"};
  check_refused<invalid_argument>(v, [&] { encoder.add(narrow, at); }, features);
  check_refused<invalid_argument>(v, [&] { encoder.embed(narrow, at); }, features);
  check_refused<invalid_argument>(d, [&] { encoder.add_vjp(d, at, narrow); }, features);
  check_throws<invalid_argument>([&] { encoder.add(narrow, at); }, {"posenc: x:"});
  check_throws<invalid_argument>([&] { encoder.embed(narrow, at); }, {"posenc: out:"});
  check_throws<invalid_argument>([&] { encoder.add_vjp(d, at, narrow); }, {"posenc: dy:"});

  const auto long_at = consecutive(0, 4);
  const std::initializer_list<const char*> count = {"at", "expected 3 positions", "got 4"};
  check_refused<invalid_argument>(v, [&] { encoder.add(v, long_at); }, count);
  check_refused<invalid_argument>(v, [&] { encoder.embed(v, long_at); }, count);
  check_refused<invalid_argument>(d, [&] { encoder.add_vjp(d, long_at, v); }, count);
  const auto three = consecutive(std::vector<Position>{0, 0, 0}, 3);
  const std::initializer_list<const char*> rows = {"at", "1 or 2 rows", "got 3"};
  check_refused<invalid_argument>(v, [&] { encoder.add(v, three); }, rows);
  check_refused<invalid_argument>(d, [&] { encoder.add_vjp(d, three, v); }, rows);

  check_refused<invalid_argument>(v, [&] { encoder.add(v.slice(0, 0, 1), v, at); },
                                  {"out", "expected shape (2, 3, 4)", "got (1, 3, 4)"});
  check_refused<invalid_argument>(d, [&] { encoder.add_vjp(d.slice(0, 0, 3), at, v); },
                                  {"d_table", "expected shape (5, 4)", "got (3, 4)"});
  const View<float, 3> broadcast(x.values.data(), {2, 3, 4}, {0, 4, 1});
  check_refused<invalid_argument>(v, [&] { encoder.add(broadcast, at); }, {"stride 0 on axis 0"});
  check_refused<invalid_argument>(v, [&] { encoder.embed(broadcast, at); }, {"out", "stride 0 on axis 0"});
  const View<float, 2> broadcast_table(d_table.values.data(), {5, 4}, {0, 1});
  check_refused<invalid_argument>(d, [&] { encoder.add_vjp(broadcast_table, at, v); },
                                  {"d_table", "stride 0 on axis 0"});
}

TEST_CASE("LearnedPositions: in place or apart, and apart from the table") {
  auto table = random_values<float, 2>({9, 6}, 4);
  const LearnedPositions<float> learned(table.view());
  keeps_memory_apart<float, 3>(
      {3, 4, 6}, "x", [&](const auto& out, const auto& x) { learned.add(out, x, consecutive(1, 4)); });
  const auto before = table;
  const View<float, 2> rows = table.view().slice(0, 2, 4);
  check_throws<std::invalid_argument>([&] { learned.embed(rows, consecutive(0, 4)); },
                                      {"posenc: out", "apart from the table"});
  check_throws<std::invalid_argument>([&] { learned.add(rows, consecutive(0, 4)); },
                                      {"posenc: out", "apart from the table"});
  check_throws<std::invalid_argument>([&] { learned.add_vjp(table.view(), consecutive(0, 4), rows); },
                                      {"posenc: d_table", "apart from dy"});
  CHECK(same_bits(table, before));
}

TEST_CASE("LearnedPositions: every offset with every padding_idx", "[property]") {
  const auto table = random_values<double, 2>({6, 3});
  const auto dy = random_values<double, 2>({6, 3}, 2);
  for (const Position offset : {-4, -1, 0, 1, 2, 5})
    for (Position padding = -1; padding < 6; ++padding) {  // -1: none
      INFO("offset " << offset << ", padding_idx " << padding);
      const LearnedPositions<double> encoder(
          table.view(),
          {.offset = offset, .padding_idx = padding < 0 ? std::nullopt : std::optional<Position>(padding)});
      // Every row once, last first: token s looks up row 5 - s.
      std::vector<Position> ids;
      for (Position s = 0; s < 6; ++s) ids.push_back(5 - s - offset);
      const auto at = posenc::position_ids(ids);
      auto x = random_values<double, 2>({6, 3}, 3);
      auto sum = x;
      auto d_table = random_values<double, 2>({6, 3}, 4);
      const auto before = d_table;
      encoder.add(sum.view(), at);
      encoder.add_vjp(d_table.view(), at, dy.view());
      for (Index s = 0; s < 6; ++s)
        for (Index c = 0; c < 3; ++c) {
          const Index row = 5 - s;
          CHECK(sum.view()(s, c) == x.view()(s, c) + table.view()(row, c));
          CHECK(d_table.view()(row, c) == before.view()(row, c) + (row == padding ? 0.0 : dy.view()(s, c)));
        }
    }
}
