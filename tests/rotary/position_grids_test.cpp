// Coordinates of images, videos and mixed sequences.

#include "posenc/rotary/position_grids.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "support/support.hpp"

using namespace posenc;
using posenc_test::check_throws;

namespace {

std::vector<Position> axis(const Positions& at, Index which, Index row = 0) {
  std::vector<Position> ids;
  for (Index i = 0; i < at.count(); ++i) ids.push_back(at.integer(which, row, i));
  return ids;
}

using Ids = std::vector<Position>;

}  // namespace

TEST_CASE("grids are row-major, with the last axis fastest") {
  const Positions at = grid_positions({2, 3}, 1);
  CHECK(at.axes() == 2);
  CHECK(axis(at, 0) == Ids{1, 1, 1, 2, 2, 2});
  CHECK(axis(at, 1) == Ids{1, 2, 3, 1, 2, 3});
  CHECK(axis(at.reversed_axes(), 0) == axis(at, 1));
  CHECK(axis(at.reversed_axes(), 1) == axis(at, 0));
  CHECK(axis(at.axis(1), 0) == axis(at, 1));
  CHECK(grid_positions({0, 3}).count() == 0);
  check_throws<std::invalid_argument>([] { grid_positions({2, -1}); }, {"extents[1]", "-1"});
  check_throws<std::out_of_range>([&] { (void)at.axis(2); }, {"axis", "[0, 2)", "2"});
}

TEST_CASE("Qwen's vision tower goes block by block") {
  const Positions at = merge_block_positions(2, 4, 4, 2);
  const Ids rows{0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3, 2, 2, 3, 3},
      columns{0, 1, 0, 1, 2, 3, 2, 3, 0, 1, 0, 1, 2, 3, 2, 3};
  REQUIRE(at.count() == 32);
  for (Index i = 0; i < 32; ++i) {
    CHECK(at.integer(0, 0, i) == rows[static_cast<std::size_t>(i % 16)]);
    CHECK(at.integer(1, 0, i) == columns[static_cast<std::size_t>(i % 16)]);
  }
  check_throws<std::invalid_argument>([] { merge_block_positions(1, 4, 6, 4); }, {"merge", "4", "6"});
}

TEST_CASE("patch centres run from -1 to 1 and are symmetric, exactly") {
  const Positions at = patch_centers(3, 2);
  CHECK_FALSE(at.is_integer());
  CHECK(at.coordinate(0, 0, 0).value() == Approx(-2.0 / 3));
  CHECK(at.coordinate(0, 0, 2).value() == 0.0);
  CHECK(at.coordinate(1, 0, 0).value() == -0.5);
  CHECK(at.coordinate(1, 0, 1).value() == 0.5);
  CHECK(at.coordinate(0, 0, 0).fraction() == at.coordinate(0, 0, 5).fraction());
  check_throws<std::invalid_argument>([] { patch_centers(0, 2); }, {"patch_centers", "0"});
}

TEST_CASE("coordinates hold doubles as they are, and ratios to 64 bits") {
  for (const double value : {0.0, 0.1, -0.1, 1e-15, 123456.789, -3e17})
    CHECK(Coordinate::of(value).value() == Approx(value).epsilon(1e-15).margin(0x1p-64));
  CHECK(Coordinate::of(0.75).fraction() == std::uint64_t{3} << 62);
  CHECK(Coordinate::ratio(1, 3).fraction() == 0x5555555555555555u);
  CHECK(Coordinate::ratio(-7, 2).value() == -3.5);
  CHECK(Coordinate(Position{-5}).whole() == 5);
  check_throws<std::out_of_range>([] { (void)Coordinate::of(1e19); }, {"coordinate", "2^60"});
  for (const double value : {0x1p60, -0x1p60})
    check_throws<std::out_of_range>([&] { (void)Coordinate::of(value); }, {"coordinate", "2^60"});
  CHECK(Coordinate::of(0x1.fffffffffffffp59).value() == 0x1.fffffffffffffp59);
  check_throws<std::out_of_range>([] { (void)Coordinate::of(posenc_test::quiet_nan); },
                                  {"coordinate", "nan"});
  check_throws<std::invalid_argument>([] { (void)Coordinate::ratio(1, 0); }, {"denominator", "0"});
}

TEST_CASE("M-RoPE ids: an image between text (Qwen2-VL)") {
  const MropeSegment segments[] = {{.text = 1}, {.frames = 1, .rows = 4, .columns = 3}, {.text = 1}};
  const MropePositions ids = mrope_positions(segments);
  CHECK(axis(ids.at, 0) == Ids{0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 5});
  CHECK(axis(ids.at, 1) == Ids{0, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 5});
  CHECK(axis(ids.at, 2) == Ids{0, 1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3, 5});
  CHECK(14 + ids.delta == 6);  // the next token stands at 6 on all axes
}

TEST_CASE("M-RoPE ids: videos") {
  // Qwen2.5-VL: two frames of 4 x 3, three seconds apart.
  const MropeSegment timed[] = {
      {.text = 1}, {.frames = 2, .rows = 4, .columns = 3, .interval = 3}, {.text = 1}};
  const MropePositions at = mrope_positions(timed);
  CHECK(at.at.integer(0, 0, 1) == 1);
  CHECK(at.at.integer(0, 0, 13) == 4);
  CHECK(at.at.integer(1, 0, 24) == 4);
  CHECK(at.at.integer(0, 0, 25) == 5);
  // Qwen3-VL: each frame a run of its own behind a separator.
  const MropeSegment framed[] = {{.text = 1},
                                 {.frames = 1, .rows = 4, .columns = 3},
                                 {.text = 1},
                                 {.frames = 1, .rows = 4, .columns = 3},
                                 {.text = 1}};
  const MropePositions frames = mrope_positions(framed);
  for (const Index which : {0, 1, 2}) {
    CHECK(frames.at.integer(which, 0, 14) == 6);
    CHECK(frames.at.integer(which, 0, frames.at.count() - 1) == 10);
  }
}

TEST_CASE("M-RoPE ids: text behind a video goes on behind its largest position, frames included") {
  // Qwen2-VL's documented example: 3 frames of 2 x 2, then 5 tokens of text at 3 .. 7.
  const auto video = [](double interval, Index text, MropeAdvance advance) {
    std::vector<MropeSegment> segments{{.frames = 3, .rows = 2, .columns = 2, .interval = interval}};
    if (text > 0) segments.push_back({.text = text});
    return mrope_positions(segments, advance);
  };
  const auto behind = [&](double interval, MropeAdvance advance) {
    const MropePositions ids = video(interval, 5, advance);
    const Ids text = axis(ids.at, 0);
    for (const Index which : {1, 2}) {
      const Ids other = axis(ids.at, which);
      CHECK(std::equal(text.end() - 5, text.end(), other.end() - 5));
    }
    return Ids(text.end() - 5, text.end());
  };
  const Ids frames{0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2},
      seconds{0, 0, 0, 0, 50, 50, 50, 50, 100, 100, 100, 100};
  CHECK(axis(video(1, 0, MropeAdvance::largest_axis).at, 0) == frames);
  CHECK(axis(video(50, 0, MropeAdvance::largest_axis).at, 0) == seconds);
  CHECK(behind(1, MropeAdvance::largest_axis) == Ids{3, 4, 5, 6, 7});
  CHECK(behind(50, MropeAdvance::largest_axis) == Ids{101, 102, 103, 104, 105});
  CHECK(behind(0, MropeAdvance::largest_axis) == Ids{2, 3, 4, 5, 6});
  for (const double interval : {1.0, 50.0})  // transformers 5
    CHECK(behind(interval, MropeAdvance::rows_and_columns) == Ids{2, 3, 4, 5, 6});
  const std::vector<MropeSegment> segments{{.frames = 3, .rows = 2, .columns = 2, .interval = 50},
                                           {.text = 5}};
  CHECK(axis(mrope_positions(segments).at, 0) == axis(video(50, 5, MropeAdvance::largest_axis).at, 0));

  // The token decoded next stands behind everything that is there: transformers' rope_delta.
  for (const MropeAdvance advance : {MropeAdvance::largest_axis, MropeAdvance::rows_and_columns})
    for (const Index text : {0, 5})
      for (const double interval : {0.0, 1.0, 50.0}) {
        const MropePositions ids = video(interval, text, advance);
        Position largest = 0;
        for (const Index which : {0, 1, 2})
          for (const Position id : axis(ids.at, which)) largest = (std::max)(largest, id);
        CHECK(ids.at.count() + ids.delta == largest + 1);
      }
  const MropeSegment negative[] = {{.text = 2, .start = -10}};
  CHECK(2 + mrope_positions(negative).delta == -8);
  CHECK(mrope_positions({}).delta == 0);
}

TEST_CASE("M-RoPE ids: a run whose rows and columns start elsewhere") {
  const MropeSegment segments[] = {
      {.frames = 2, .rows = 2, .columns = 3, .interval = 4, .start = 1, .spatial_start = 20}, {.text = 1}};
  CHECK(axis(mrope_positions(segments).at, 0).back() == 23);  // columns 20, 21, 22
  CHECK(axis(mrope_positions(segments, MropeAdvance::rows_and_columns).at, 0).back() == 4);
}

TEST_CASE("M-RoPE segments that are neither text nor vision are refused") {
  const auto one = [](const MropeSegment& segment) { mrope_positions(std::vector<MropeSegment>{segment}); };
  check_throws<std::invalid_argument>([&] { one({}); }, {"segments[0]", "either"});
  check_throws<std::invalid_argument>([&] { one({.text = 1, .frames = 1, .rows = 1, .columns = 1}); },
                                      {"segments[0]"});
  check_throws<std::invalid_argument>([&] { one({.frames = 1, .rows = 1, .columns = 1, .interval = -1}); },
                                      {"interval"});
}

TEST_CASE("rows of different lengths become a batch, padded left or right") {
  const MropeSegment image[] = {{.text = 1}, {.frames = 1, .rows = 2, .columns = 1}};
  const std::vector<Positions> rows{mrope_positions(image).at, on_axes(consecutive(0, 2), 3)};
  const Positions left = stacked(rows, 4, true), right = stacked(rows, 4, false, -1);
  CHECK(left.rows() == 2);
  CHECK(left.axes() == 3);
  CHECK(axis(left, 1, 0) == Ids{0, 0, 1, 2});
  CHECK(axis(left, 1, 1) == Ids{0, 0, 0, 1});
  CHECK(axis(right, 1, 1) == Ids{0, 1, -1, -1});
  CHECK(axis(left.row(1), 2) == Ids{0, 0, 0, 1});
  check_throws<std::invalid_argument>([&] { (void)stacked(rows, 2, true); }, {"rows[0]", "2", "3"});
}

TEST_CASE("grids of more points than can be are refused") {
  const Index half = Index{1} << 32, most = std::numeric_limits<Index>::max();
  const auto refused = [](const auto& call, const char* name) {
    check_throws<std::out_of_range>(call, {"posenc: ", name, "at most 1099511627776 numbers"});
  };
  refused([&] { (void)grid_positions({half, half}); }, "extents");
  refused([&] { (void)grid_positions({most, 2, 3}); }, "extents");
  refused([&] { (void)merge_block_positions(half, half, 2, 2); }, "merge_block_positions");
  refused([&] { (void)merge_block_positions(1, most - 1, most - 1, 2); }, "merge_block_positions");
  refused([&] { (void)patch_centers(half, half); }, "patch_centers");
  refused([&] { (void)patch_centers(most, 1); }, "patch_centers");
  refused([&] { (void)stacked(std::vector<Positions>(1, consecutive(0, 1)), most, false); }, "stacked");
  check_throws<std::out_of_range>([&] { (void)grid_positions({2, 2}, most); },
                                  {"posenc: origin", "2^60", "got 9223372036854775807"});
  check_throws<std::out_of_range>([&] { (void)grid_positions({2, 2}, posenc::largest_position); },
                                  {"grid_positions", "2^60"});
  CHECK(grid_positions({most, 0, most}).count() == 0);
  CHECK(merge_block_positions(most, most - 1, 0, 2).count() == 0);
}

TEST_CASE("M-RoPE segments beyond all positions are refused") {
  const Index most = std::numeric_limits<Index>::max();
  const auto refused = [](const std::vector<MropeSegment>& segments,
                          std::initializer_list<const char*> parts) {
    check_throws<std::out_of_range>([&] { (void)mrope_positions(segments); }, parts);
  };
  for (const double interval : {1e300, 1e19, 1.2e18})
    refused({{.frames = 2, .rows = 1, .columns = 1, .interval = interval}},
            {"posenc: segments[0].interval", "2^60"});
  refused({{.frames = 3, .rows = 1, .columns = 1, .interval = 0x1p60}}, {"segments[0].interval", "2^60"});
  refused({{.text = most}}, {"posenc: segments", "at most"});
  refused({{.text = 3}, {.text = most}}, {"posenc: segments"});
  refused({{.frames = most, .rows = most, .columns = 4}}, {"posenc: segments", "at most"});
  refused({{.text = 1, .start = most}}, {"posenc: segments[0]", "2^60"});
  refused({{.text = 1}, {.frames = 1, .rows = 1, .columns = 1, .spatial_start = -most}},
          {"posenc: segments[1].spatial_start", "2^60"});
  refused({{.text = 2, .start = posenc::largest_position}}, {"mrope_positions", "2^60"});
  check_throws<std::invalid_argument>(
      [] {
        (void)mrope_positions(
            std::vector<MropeSegment>{{.frames = 2, .rows = 1, .columns = 1, .interval = NAN}});
      },
      {"segments[0].interval", "nan"});
}

TEST_CASE("a batch of a length that is none is refused") {
  check_throws<std::invalid_argument>([] { (void)stacked({}, -5, false); },
                                      {"posenc: count", "at least 0", "got -5"});
  const std::vector<Positions> rows{consecutive(0, Index{1} << 50)};
  check_throws<std::out_of_range>([&] { (void)stacked(rows, Index{1} << 50, true); },
                                  {"posenc: stacked", "at most"});
  CHECK(stacked({}, 5, true).rows() == 0);
}
