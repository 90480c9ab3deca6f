#include "posenc/core/positions.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "support/support.hpp"

namespace {

using namespace posenc_test;
using posenc::borrowed_position_ids;
using posenc::consecutive;
using posenc::largest_position;
using posenc::Position;
using posenc::position_ids;
using posenc::Positions;
using posenc::View;
using std::invalid_argument, std::out_of_range;

using List = std::vector<Position>;

/// Row after row.
List list(const Positions& at) {
  List positions;
  for (Index row = 0; row < at.rows(); ++row)
    for (Index i = 0; i < at.count(); ++i) positions.push_back(at(row, i));
  return positions;
}

template <class T>
concept borrowable = requires(T&& ids) { posenc::borrowed_position_ids(std::forward<T>(ids)); };

}  // namespace

TEST_CASE("positions: consecutive from a start") {
  const auto at = consecutive(5, 3);
  CHECK(list(at) == List{5, 6, 7});
  CHECK(at.rows() == 1);
  CHECK(at.count() == 3);
  CHECK(at.is_consecutive());
  CHECK(list(consecutive(-2, 4)) == List{-2, -1, 0, 1});
  CHECK(list(consecutive(9, 0)).empty());
  CHECK(list(consecutive(Position{1} << 40, 2)) == List{1099511627776, 1099511627777});
}

TEST_CASE("positions: consecutive from a start for each row") {
  const auto at = consecutive(List{4, 0, -1}, 3);
  CHECK(list(at) == List{4, 5, 6, 0, 1, 2, -1, 0, 1});
  CHECK(at.rows() == 3);
  CHECK(at.is_consecutive());
  CHECK(list(consecutive(Eigen::VectorXi{{7, 8}}, 1)) == List{7, 8});
  CHECK(list(consecutive(std::array<int, 2>{7, 8}, 2)) == List{7, 8, 8, 9});
  CHECK(consecutive(List{}, 3).rows() == 0);
}

TEST_CASE("positions: ids of each type and layout") {
  CHECK(list(position_ids(List{3, 1, 4})) == List{3, 1, 4});
  CHECK(position_ids(List{3, 1, 4}).rows() == 1);
  CHECK_FALSE(position_ids(List{3, 1, 4}).is_consecutive());
  CHECK(list(position_ids(std::vector<int>{3, -1, 4})) == List{3, -1, 4});
  CHECK(list(position_ids(Eigen::RowVectorXi{{3, 1}})) == List{3, 1});
  const Values<std::int32_t, 2> ids{{2, 3}, {1, 2, 3, 10, 20, 30}};
  const Values<std::int64_t, 2> wide{{2, 3}, {1, 2, 3, 10, 20, Position{1} << 40}};
  const auto nothing = [](const char*, const auto&) {};
  in_every_storage(
      ids,
      [](const auto& t) {
        CHECK(list(position_ids(t)) == List{1, 2, 3, 10, 20, 30});
        CHECK(list(borrowed_position_ids(t)) == List{1, 2, 3, 10, 20, 30});
        CHECK(borrowed_position_ids(t).rows() == 2);
      },
      nothing);
  in_every_storage(
      wide,
      [](const auto& t) {
        CHECK(list(position_ids(t)) == List{1, 2, 3, 10, 20, Position{1} << 40});
        CHECK(list(borrowed_position_ids(t)) == List{1, 2, 3, 10, 20, Position{1} << 40});
      },
      nothing);
  CHECK(position_ids(List{}).count() == 0);
  CHECK(position_ids(Eigen::MatrixXi(0, 4)).rows() == 0);
  CHECK(position_ids(Eigen::MatrixXi(4, 0)).rows() == 4);
}

TEST_CASE("positions: ids are copied, or borrowed") {
  List ids = {1, 2};
  const auto copied = position_ids(ids);
  const auto borrowed = borrowed_position_ids(ids);
  ids[0] = 9;
  CHECK(list(copied) == List{1, 2});
  CHECK(list(borrowed) == List{9, 2});
  // A copy shares what the original holds, and outlives it.
  auto original = std::make_unique<Positions>(position_ids(List{5, 6}));
  const Positions copy = *original;
  const Positions shifted = original->shifted(1);
  original.reset();
  CHECK(list(copy) == List{5, 6});
  CHECK(list(shifted) == List{6, 7});
}

TEST_CASE("positions: what outlives the call can be borrowed") {  // what does not: tests/must_not_compile
  CHECK(borrowable<List&>);
  CHECK(borrowable<const List&>);
  CHECK(borrowable<View<const int, 2>>);
  CHECK(borrowable<std::span<const int>>);
  CHECK(borrowable<Eigen::TensorMap<Eigen::Tensor<int, 1>>>);
}

TEST_CASE("positions: any row will do where they are shared", "[property]") {
  const List ids = {3, 1, 4};
  const Eigen::MatrixXi one_row{{3, 1, 4}};
  const Eigen::Matrix<std::int64_t, 1, 3> one_row_of_three(3, 1, 4);
  const List starts = {3};
  for (const Positions& at :
       {consecutive(3, 3), consecutive(starts, 3), position_ids(ids), position_ids(one_row),
        borrowed_position_ids(ids), borrowed_position_ids(one_row),
        posenc::positions_from_cu_seqlens(std::vector<int>{0, 3}), posenc::roberta_positions(one_row, 3),
        posenc::positions_from_mask(Eigen::MatrixXi(one_row))}) {
    REQUIRE(at.rows() == 1);
    REQUIRE(at.count() == 3);
    for (Index row = 0; row < 4; ++row)
      for (Index i = 0; i < 3; ++i) CHECK(at(row, i) == at(0, i));
  }
}

TEST_CASE("positions: from a mask, wherever the padding is") {
  const Eigen::MatrixXi mask{{0, 0, 1, 1}, {1, 1, 0, 0}, {1, 0, 5, 1}, {0, 0, 0, 0}};
  CHECK(list(posenc::positions_from_mask(mask)) == List{0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0});
  const auto opt = posenc::positions_from_mask(mask, -1);
  CHECK(list(opt) == List{-1, -1, 0, 1, 0, 1, -1, -1, 0, -1, 1, 2, -1, -1, -1, -1});
  CHECK(opt.rows() == 4);
  CHECK(opt.count() == 4);
  // OPT looks up 2 rows further: padding row 1, tokens from row 2 on.
  CHECK(list(opt.shifted(2)) == List{1, 1, 2, 3, 2, 3, 1, 1, 2, 1, 3, 4, 1, 1, 1, 1});

  Eigen::Tensor<bool, 2, Eigen::RowMajor> of_bool(1, 3);
  of_bool.setValues({{false, true, true}});
  CHECK(list(posenc::positions_from_mask(of_bool)) == List{0, 0, 1});
  Eigen::Tensor<std::uint8_t, 2> of_bytes(1, 3);
  of_bytes.setValues({{0, 255, 1}});
  CHECK(list(posenc::positions_from_mask(of_bytes)) == List{0, 0, 1});
  CHECK(posenc::positions_from_mask(Eigen::MatrixXi(3, 0)).rows() == 3);
}

TEST_CASE("positions: as keys, padding stands after every query") {
  const Eigen::MatrixXi mask{{0, 0, 1, 1}, {1, 1, 0, 0}, {1, 0, 5, 1}, {0, 0, 0, 0}};
  const Position pad = posenc::padding_position;
  const auto at = posenc::key_positions_from_mask(mask);
  CHECK(list(at) == List{pad, pad, 0, 1, 0, 1, pad, pad, 0, pad, 1, 2, pad, pad, pad, pad});
  CHECK(at.rows() == 4);
  CHECK(pad == Position{1} << 60);
}

TEST_CASE("positions: from the ends of ragged sequences") {
  const auto at = posenc::positions_from_cu_seqlens(std::vector<int>{0, 2, 2, 5, 6});
  CHECK(list(at) == List{0, 1, 0, 1, 2, 0});
  CHECK(at.rows() == 1);
  CHECK(list(posenc::positions_from_cu_seqlens(List{0, 3})) == List{0, 1, 2});
  CHECK(list(posenc::positions_from_cu_seqlens(List{0})).empty());
}

TEST_CASE("positions: ends that are none are refused") {
  const auto refused = [](const std::vector<int>& cu_seqlens, std::initializer_list<const char*> parts) {
    check_throws<invalid_argument>([&] { (void)posenc::positions_from_cu_seqlens(cu_seqlens); }, parts);
  };
  refused({}, {"posenc: cu_seqlens", "first entry of 0", "empty"});
  refused({1, 4}, {"cu_seqlens", "first entry of 0", "got 1"});
  refused({0, 4, 3}, {"cu_seqlens", "never fall", "got 3 after 4 at 2"});
}

TEST_CASE("positions: RoBERTa's rule") {
  // transformers: test_create_position_ids_respects_padding_index
  CHECK(list(posenc::roberta_positions(Eigen::MatrixXi{{12, 31, 13, 1}}, 1)) == List{2, 3, 4, 1});
  const Eigen::MatrixXi ids{{1, 1, 7, 1, 8}, {5, 5, 5, 5, 5}};
  CHECK(list(posenc::roberta_positions(ids, 1)) == List{1, 1, 2, 1, 3, 2, 3, 4, 5, 6});
  CHECK(list(posenc::roberta_positions(Eigen::MatrixXi{{0, 4}}, 0)) == List{0, 1});
}

TEST_CASE("positions: RoBERTa's rule after a cache moves tokens, not padding") {
  // transformers: (cumsum(mask) + past_key_values_length) * mask + padding_idx
  CHECK(list(posenc::roberta_positions(Eigen::MatrixXi{{7}, {1}}, 1, 3)) == List{5, 1});
  const Eigen::MatrixXi ids{{1, 1, 7, 1, 8}, {5, 5, 5, 5, 1}};
  CHECK(list(posenc::roberta_positions(ids, 1, 10)) == List{1, 1, 12, 1, 13, 12, 13, 14, 15, 1});
  CHECK(list(posenc::roberta_positions(ids, 1, 0)) == list(posenc::roberta_positions(ids, 1)));
  check_throws<out_of_range>([&] { (void)posenc::roberta_positions(ids, 1, -1); },
                             {"posenc: roberta_positions: past", "[0, 2^60]", "got -1"});
  check_throws<out_of_range>([&] { (void)posenc::roberta_positions(ids, 1, largest_position + 1); },
                             {"roberta_positions: past", "got 1152921504606846977"});
  check_throws<out_of_range>([&] { (void)posenc::roberta_positions(ids, 1, largest_position); },
                             {"roberta_positions", "2^60", "got 1152921504606846978 at (0, 2)"});
}

TEST_CASE("positions: shifted") {
  CHECK(list(consecutive(3, 2).shifted(2)) == List{5, 6});  // BART
  CHECK(list(consecutive(List{3, 8}, 2).shifted(-3)) == List{0, 1, 5, 6});
  CHECK(list(position_ids(List{3, 1}).shifted(10).shifted(-1)) == List{12, 10});
  const std::vector<int> ids = {1, 2};
  CHECK(list(borrowed_position_ids(ids).shifted(2)) == List{3, 4});
  CHECK(consecutive(3, 2).shifted(2).is_consecutive());
}

TEST_CASE("positions: the largest ones are exact") {
  const Position most = largest_position;
  CHECK(list(consecutive(most, 1)) == List{most});
  CHECK(list(consecutive(-most, 2)) == List{-most, -most + 1});
  CHECK(list(consecutive(List{most - 1, -most}, 2)) == List{most - 1, most, -most, -most + 1});
  CHECK(list(position_ids(List{most, -most})) == List{most, -most});
  CHECK(list(position_ids(List{most}).shifted(-2 * most)) == List{-most});
}

TEST_CASE("positions: those beyond 2^60 are refused") {
  const Position most = largest_position;
  const auto refused = [](const auto& call, std::initializer_list<const char*> parts) {
    check_throws<out_of_range>(call, parts);
  };
  refused([&] { (void)consecutive(most + 1, 1); },
          {"posenc: consecutive", "2^60", "start 1152921504606846977", "count 1"});
  refused([&] { (void)consecutive(-most - 1, 1); }, {"consecutive", "2^60", "start -1152921504606846977"});
  refused([&] { (void)consecutive(0, most + 1); }, {"consecutive", "2^60", "count 1152921504606846977"});
  refused([&] { (void)consecutive(most, 2); }, {"consecutive", "2^60", "got 1152921504606846977 at (0, 1)"});
  refused([&] { (void)consecutive(std::numeric_limits<Position>::min(), 1); }, {"consecutive", "2^60"});
  refused([&] { (void)consecutive(List{0, most + 1}, 1); },
          {"consecutive", "2^60", "got 1152921504606846977"});
  refused([&] { (void)consecutive(List{0, most}, 2); },
          {"consecutive", "2^60", "got 1152921504606846977 at (1, 1)"});
  refused([&] { (void)consecutive(List{0}, most + 1); }, {"consecutive", "2^60", "got 1152921504606846977"});
  refused([&] { (void)position_ids(List{0, -most - 1}); },
          {"position_ids", "2^60", "got -1152921504606846977"});
  const Eigen::Matrix<Position, 2, 2> ids{{0, 1}, {2, most + 1}};
  refused([&] { (void)borrowed_position_ids(ids); },
          {"borrowed_position_ids", "2^60", "got 1152921504606846977 at (1, 1)"});
  refused([&] { (void)consecutive(0, 3).shifted(most - 1); },
          {"shifted", "2^60", "got 1152921504606846977 at (0, 2)"});
  refused([&] { (void)position_ids(List{0, -5}).shifted(-most); },
          {"shifted", "2^60", "got -1152921504606846981 at (0, 1)"});
  refused([&] { (void)consecutive(0, 1).shifted(std::numeric_limits<Position>::max()); },
          {"shifted", "2^61", "got 9223372036854775807"});
  refused([&] { (void)posenc::positions_from_mask(Eigen::MatrixXi{{0, 1}}, most + 1); },
          {"positions_from_mask", "2^60", "got 1152921504606846977"});
  refused([&] { (void)posenc::roberta_positions(Eigen::MatrixXi{{0, 1}}, most); },
          {"roberta_positions", "2^60", "got 1152921504606846977"});
}

TEST_CASE("positions: a negative count is refused") {
  check_throws<invalid_argument>([] { (void)consecutive(3, -1); }, {"consecutive", "at least 0", "got -1"});
  check_throws<invalid_argument>([] { (void)consecutive(List{3}, -2); },
                                 {"consecutive", "at least 0", "got -2"});
}

TEST_CASE("positions: a row, an axis, and the axes in reverse") {
  const Values<std::int64_t, 3> ids{{2, 3, 2}, {1, 2, 11, 12, 21, 22, 101, 102, 111, 112, 121, 122}};
  const Positions at = posenc::axis_positions(ids.view());  // (axes, batch, seq)
  CHECK(list(at) == List{1, 2, 11, 12, 21, 22});
  CHECK(list(at.axis(1)) == List{101, 102, 111, 112, 121, 122});
  CHECK(list(at.row(1)) == List{11, 12});
  CHECK(list(at.row(2).axis(1)) == List{121, 122});
  CHECK(list(at.axis(1).row(0)) == List{101, 102});
  CHECK(list(at.reversed_axes()) == List{101, 102, 111, 112, 121, 122});
  CHECK(list(at.reversed_axes().axis(1).row(1)) == List{11, 12});
  CHECK(list(consecutive(List{4, 0, -1}, 2).row(2)) == List{-1, 0});
  for (const Index wrong : {Index{-1}, Index{2}, Index{9}})
    check_throws<out_of_range>([&] { (void)at.axis(wrong); }, {"axis", "[0, 2)"});
  for (const Index wrong : {Index{-1}, Index{3}})
    check_throws<out_of_range>([&] { (void)at.row(wrong); }, {"row", "[0, 3)"});
}

TEST_CASE("positions: a scheme of one axis refuses several, and fractions") {
  using posenc::detail::require_positions;
  const std::vector<double> halves{0.5, 1.0};
  check_throws<invalid_argument>([] { require_positions("at", posenc::on_axes(consecutive(0, 2), 3), 1, 2); },
                                 {"at", "1 axis", "got 3"});
  check_throws<invalid_argument>([&] { require_positions("at", posenc::coordinates(halves), 1, 2); },
                                 {"at", "integer", "fractions"});
}

TEST_CASE("positions: what a verb asks of them") {
  using posenc::detail::require_positions;
  CHECK_NOTHROW(require_positions("at", consecutive(0, 3), 2, 3));
  CHECK_NOTHROW(require_positions("at", consecutive(List{0, 0}, 3), 2, 3));
  check_throws<invalid_argument>([] { require_positions("q_at", consecutive(0, 4), 2, 3); },
                                 {"posenc: q_at", "expected 3 positions", "got 4"});
  check_throws<invalid_argument>([] { require_positions("q_at", consecutive(List{0, 0, 0}, 3), 2, 3); },
                                 {"q_at", "1 or 2 rows of the batch", "got 3"});
}

TEST_CASE("positions: shifts that sum to more than any position needs are refused") {
  // Of no tokens, nothing else would end it.
  const Position most = largest_position;
  auto at = consecutive(0, 0).shifted(2 * most);
  check_throws<out_of_range>([&] { (void)at.shifted(1); },
                             {"posenc: shifted", "2^61", "got 2305843009213693953"});
  CHECK_NOTHROW(at.shifted(-2 * most).shifted(-2 * most));
  for (int n = 0; n < 3; ++n)
    check_throws<out_of_range>([&] { at = at.shifted(2 * most); }, {"posenc: shifted", "2^61"});
  check_throws<out_of_range>([&] { (void)position_ids(List{}).shifted(2 * most).shifted(2 * most); },
                             {"shifted"});
}

TEST_CASE("positions: more than can be are refused before they are asked for") {
  const Position most = std::numeric_limits<Position>::max();
  for (const Position last : {most, Position{1} << 62, Position{1} << 41})
    check_throws<out_of_range>([&] { (void)posenc::positions_from_cu_seqlens(List{0, last}); },
                               {"posenc: cu_seqlens", "at most 1099511627776 numbers", "got"});
  check_throws<out_of_range>([&] { (void)posenc::positions_from_cu_seqlens(List{0, most, most}); },
                             {"cu_seqlens"});
  // Views of one id, seen more often than memory could hold copies of it.
  const Position one = 7;
  const View<const Position, 2> many(&one, {Index{1} << 30, Index{1} << 20}, {0, 0});
  check_throws<out_of_range>([&] { (void)position_ids(many); }, {"posenc: position_ids", "numbers"});
  check_throws<out_of_range>([&] { (void)posenc::axis_positions(many); }, {"posenc: axis_positions"});
  check_throws<out_of_range>([&] { (void)posenc::positions_from_mask(many); },
                             {"posenc: positions_from_mask"});
  check_throws<out_of_range>([&] { (void)posenc::roberta_positions(many, 1); },
                             {"posenc: roberta_positions"});
  const View<const Position, 1> row(&one, {Index{1} << 50}, {0});
  check_throws<out_of_range>([&] { (void)consecutive(row, 1); }, {"posenc: consecutive"});
  // What copies nothing is no longer than its memory.
  CHECK(borrowed_position_ids(many)(3, 4) == 7);
  CHECK(borrowed_position_ids(many).shifted(3)(Index{1} << 29, 4) == 10);
  CHECK(posenc::on_axes(consecutive(0, 4), Index{1} << 62).shifted(5).integer(9, 0, 3) == 8);
  // Many rows of nothing.
  const View<const Position, 2> none(nullptr, {Index{1} << 40, 0}, {1, 1});
  CHECK(position_ids(none).rows() == Index{1} << 40);
  CHECK(posenc::positions_from_mask(none).count() == 0);
  CHECK(posenc::roberta_positions(none, 1).count() == 0);
}

TEST_CASE("positions: a padding_idx that is no position is refused") {
  const Position most = std::numeric_limits<Position>::max();
  const Eigen::MatrixXi ids{{0, 1}};
  for (const Position pad : {most, -most - 1, largest_position + 1})
    check_throws<out_of_range>([&] { (void)posenc::roberta_positions(ids, pad); },
                               {"posenc: roberta_positions: padding_idx", "2^60", "got"});
}

TEST_CASE("positions: explicit ones come in braces, too") {
  const Positions at = position_ids({4, 0, -2});
  CHECK(at.count() == 3);
  CHECK(at.rows() == 1);
  CHECK(at(0, 0) == 4);
  CHECK(at(0, 2) == -2);
}
