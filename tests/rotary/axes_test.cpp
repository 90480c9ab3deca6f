// Several coordinates per token: which coordinate drives which pair, and that the pairs turn by it.

#include "posenc/rotary/axes.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "posenc/rotary/position_grids.hpp"
#include "posenc/rotary/rotary.hpp"
#include "support/support.hpp"

using namespace posenc;
using namespace posenc_test;

namespace {

/// The axes of the pairs as letters: "ttthhw".
std::string letters(const RotaryFrequencies& frequencies, const std::string& names) {
  std::string word;
  for (const int axis : frequencies.axis) word += names[static_cast<std::size_t>(axis)];
  return word;
}

std::string repeated(const std::string& word, int times) {
  std::string all;
  for (int i = 0; i < times; ++i) all += word;
  return all;
}

RotaryFrequencies pairs(Index n) { return rotary_frequencies({.head_dim = 2 * n}); }

/// Rows of ones turned by `rope`, against the definition in double.
void check_turns(const Rotary& rope, const Positions& at) {
  const RotaryFrequencies& f = rope.frequencies();
  Eigen::Tensor<double, 2, Eigen::RowMajor> x(at.count(), f.head_dim);
  x.setConstant(1.0);
  rope.rotate(x, at);
  const Index n = static_cast<Index>(f.inv_freq.size());
  for (Index s = 0; s < at.count(); ++s)
    for (Index i = 0; i < n; ++i) {
      const double angle =
          at.coordinate(rope.axis_of(i), 0, s).value() * f.inv_freq[static_cast<std::size_t>(i)];
      INFO("token " << s << ", pair " << i);
      CHECK(x(s, i) == Approx(std::cos(angle) - std::sin(angle)).margin(1e-13));
      CHECK(x(s, i + n) == Approx(std::cos(angle) + std::sin(angle)).margin(1e-13));
    }
}

}  // namespace

TEST_CASE("M-RoPE deals the pairs out as Qwen2-VL, Qwen3-VL, ERNIE and Hunyuan do") {
  CHECK(letters(mrope_sections(pairs(64), {16, 24, 24}), "thw") ==
        repeated("t", 16) + repeated("h", 24) + repeated("w", 24));
  CHECK(letters(mrope_interleaved(pairs(64), {24, 20, 20}), "thw") == repeated("thw", 20) + "tttt");
  CHECK(letters(mrope_interleaved(pairs(32), {11, 11, 10}), "thw") == repeated("thw", 10) + "th");
  CHECK(letters(ernie_sections(pairs(64), {22, 22, 20}), "thw") == repeated("hw", 22) + repeated("t", 20));
  CHECK(letters(mrope_sections(pairs(64), {16, 16, 16, 16}), "twhi") ==
        repeated("t", 16) + repeated("w", 16) + repeated("h", 16) + repeated("i", 16));
}

TEST_CASE("sections that don't sum to the pairs are refused") {
  check_throws<std::invalid_argument>([] { mrope_sections(pairs(64), {16, 24, 23}); },
                                      {"sections", "64", "63"});
  check_throws<std::invalid_argument>([] { mrope_sections(pairs(8), {16, -8}); }, {"sections[1]", "-8"});
  check_throws<std::invalid_argument>([] { mrope_sections(pairs(8), {-1, 9}); }, {"sections[0]", "-1"});
  check_throws<std::invalid_argument>([] { mrope_interleaved(pairs(8), {4, 4}); }, {"sections", "3", "2"});
  check_throws<std::invalid_argument>([] { ernie_sections(pairs(8), {2, 4, 2}); }, {"sections[1]", "2", "4"});
  check_throws<std::invalid_argument>([] { ernie_sections(pairs(8), {4, 4}); }, {"sections", "3", "2"});
  check_throws<std::invalid_argument>([] { ernie_sections(pairs(8), {2, 2, 3}); }, {"sections", "8", "7"});
  check_throws<std::invalid_argument>([] { mrope_interleaved(pairs(8), {2, 2, 2, 2}); },
                                      {"sections", "3", "4"});
}

TEST_CASE("interleaved sections are dealt out as they stand, or refused with what would become of them") {
  check_throws<std::invalid_argument>([] { mrope_interleaved(pairs(64), {16, 24, 24}); },
                                      {"sections", "16, 24, 24", "22, 21, 21"});
  // Every split of a few pairs: accepted exactly where each axis gets what its section says.
  int accepted = 0;
  for (Index n = 1; n <= 11; ++n)
    for (Index h = 0; h <= n; ++h)
      for (Index w = 0; h + w <= n; ++w) {
        INFO(n << " pairs, " << h << " and " << w);
        Index of_h = 0, of_w = 0;
        for (Index i = 0; i < n; ++i) of_h += i % 3 == 1 && i < 3 * h, of_w += i % 3 == 2 && i < 3 * w;
        if (of_h == h && of_w == w) {
          const std::string word = letters(mrope_interleaved(pairs(n), {n - h - w, h, w}), "thw");
          CHECK(std::count(word.begin(), word.end(), 'h') == h);
          CHECK(std::count(word.begin(), word.end(), 'w') == w);
          ++accepted;
        } else {
          check_throws<std::invalid_argument>([&] { mrope_interleaved(pairs(n), {n - h - w, h, w}); },
                                              {"sections"});
        }
      }
  CHECK(accepted == 99);  // sum over n of (floor((n + 1) / 3) + 1) (floor(n / 3) + 1)
}

TEST_CASE("vision ladders: golden frequencies of four families") {
  const auto qwen = axial_frequencies({.head_dim = 16});
  CHECK(letters(qwen, "hw") == "hhhhwwww");
  const auto pixtral = pixtral_frequencies(16);
  CHECK(letters(pixtral, "hw") == "hhhhwwww");
  const std::vector<double> ladder{1, .1, .01, .001},
      odd{.316227766, .0316227766, .00316227766, .000316227766};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(qwen.inv_freq[i] == Approx(ladder[i]));
    CHECK(qwen.inv_freq[i + 4] == Approx(ladder[i]));
    CHECK(pixtral.inv_freq[i] == Approx(ladder[i]));
    CHECK(pixtral.inv_freq[i + 4] == Approx(odd[i]));
  }
  const auto dino = dinov3_frequencies(64);
  for (const auto& [i, f] :
       {std::pair<std::size_t, double>{0, 1}, {5, .237137}, {10, .056234}, {15, .013335}})
    CHECK(dino.inv_freq[i] / (2 * std::numbers::pi) == Approx(f).epsilon(4e-5));
  CHECK(letters(axial_frequencies({.head_dim = 8, .order = AxialOrder::interleaved}), "wh") == "whwh");
  const auto video =
      axial_frequencies({.head_dim = 128, .axes = 3});  // MiniMax-M3: 42 dimensions each, 2 left over
  CHECK(video.rotary_dim() == 126);
  CHECK(letters(video, "thw") == repeated("t", 21) + repeated("h", 21) + repeated("w", 21));
  check_throws<std::invalid_argument>([] { axial_frequencies({.head_dim = 4, .axes = 3}); },
                                      {"head_dim", "6", "4"});
  check_throws<std::invalid_argument>([] { pixtral_frequencies(6); }, {"head_dim", "4", "6"});
  check_throws<std::invalid_argument>([] { dinov3_frequencies(6); }, {"head_dim", "4", "6"});
}

TEST_CASE("each pair turns by its own coordinate", "[property]") {
  check_turns(Rotary(mrope_sections(pairs(8), {2, 3, 3}), Pairing::half), grid_positions({2, 3, 4}, 7));
  check_turns(Rotary(mrope_interleaved(pairs(8), {4, 2, 2}), Pairing::half), grid_positions({2, 3, 4}, -5));
  check_turns(Rotary(axial_frequencies({.head_dim = 16}), Pairing::half), merge_block_positions(1, 4, 6, 2));
  check_turns(Rotary(dinov3_frequencies(16), Pairing::half), patch_centers(5, 7));
  check_turns(Rotary(pairs(4), Pairing::half), coordinates(std::vector<double>{0.1, -2.75, 1e-9, 12345.678}));
  // More pairs than the kernel keeps angles of.
  check_turns(Rotary(mrope_sections(pairs(2200), {100, 1100, 1000}), Pairing::half),
              grid_positions({1, 2, 2}, 3));
}

TEST_CASE("text on all axes is plain RoPE, bit for bit", "[property]") {
  const Positions at = consecutive(1000, 20);
  auto plain = random_values<float>(std::array<Index, 4>{2, 20, 3, 16}), several = plain;
  Rotary(pairs(8), Pairing::half).rotate(plain.view(), at, Axes::bshd);
  Rotary(mrope_sections(pairs(8), {2, 3, 3}), Pairing::half)
      .rotate(several.view(), on_axes(at, 3), Axes::bshd);
  CHECK(same_bits(plain, several));
}

TEST_CASE("scores depend on the distance along every axis", "[property]") {
  const Rotary rope(mrope_interleaved(pairs(16), {6, 5, 5}), Pairing::adjacent);
  const auto score = [&](const std::array<Position, 3>& m, const std::array<Position, 3>& n) {
    auto q = random_values<double>(std::array<Index, 2>{1, 32}, 1),
         k = random_values<double>(std::array<Index, 2>{1, 32}, 2);
    const auto at = [](const std::array<Position, 3>& p) {
      return axis_positions(View<const Position, 2>(p.data(), {3, 1}));
    };
    rope.rotate(q.view(), at(m)), rope.rotate(k.view(), at(n));
    return dot(q.values, k.values);
  };
  const double here = score({3, 1, 4}, {1, 5, 9});
  CHECK(score({3 + 1000, 1 - 77, 4 + (Position{1} << 40)}, {1 + 1000, 5 - 77, 9 + (Position{1} << 40)}) ==
        Approx(here).margin(1e-12));
  CHECK(std::abs(score({3, 1, 4}, {1, 5, 10}) - here) > 1e-3);
}

TEST_CASE("a model of several axes refuses positions of one, and the reverse") {
  Eigen::Tensor<float, 2> x(4, 16);
  x.setConstant(1.0f);
  const Rotary three(mrope_sections(pairs(8), {2, 3, 3}), Pairing::half), one(pairs(8), Pairing::half);
  check_throws<std::invalid_argument>([&] { three.rotate(x, consecutive(0, 4)); },
                                      {"at", "3 axes", "1", "on_axes"});
  check_throws<std::invalid_argument>([&] { one.rotate(x, on_axes(consecutive(0, 4), 2)); },
                                      {"at", "1 axes", "2"});
  RotaryFrequencies wrong = pairs(8);
  wrong.axis = {0, 1};
  check_throws<std::invalid_argument>([&] { Rotary(wrong, Pairing::half); }, {"axis", "8", "2"});
  wrong.axis.assign(8, -1);
  check_throws<std::invalid_argument>([&] { Rotary(wrong, Pairing::half); }, {"axis[0]", "-1"});
}

TEST_CASE("axes with a part of the head each: windows side by side (Gemma 4 vision)", "[property]") {
  // x turns the first half of the head, y the second, each with its own half-split pairs.
  const RotaryFrequencies half = {
      16, rotary_frequencies({.head_dim = 8, .rope_theta = 100}).inv_freq, 1.0, {}};
  const Rotary by_x(half, Pairing::half, Window::leading()), by_y(half, Pairing::half, Window::trailing());
  const Positions at = grid_positions({3, 5});
  auto x = random_values<double>(std::array<Index, 2>{15, 16});
  const auto before = x;
  by_x.rotate(x.view(), at.axis(1)), by_y.rotate(x.view(), at.axis(0));
  for (Index s = 0; s < 15; ++s)
    for (Index i = 0; i < 4; ++i)
      for (const Index window : {0, 8}) {
        const double angle =
            static_cast<double>(window == 0 ? s % 5 : s / 5) * half.inv_freq[static_cast<std::size_t>(i)];
        const double u = before.view()(s, window + i), w = before.view()(s, window + i + 4);
        CHECK(x.view()(s, window + i) == Approx(u * std::cos(angle) - w * std::sin(angle)).margin(1e-13));
      }
}

TEST_CASE("sections and axes of any size are refused, not summed wrongly") {
  const Index most = std::numeric_limits<Index>::max();
  const auto f = posenc::rotary_frequencies({.head_dim = 8});
  // Modulo 2^64 these sum to 4.
  check_throws<std::invalid_argument>([&] { (void)posenc::mrope_sections(f, {most, most, 6}); },
                                      {"posenc: sections", "number of pairs, 4, got more than 2^63"});
  check_throws<std::invalid_argument>([&] { (void)posenc::axial_frequencies({.head_dim = 8, .axes = most}); },
                                      {"posenc: head_dim", "at least 2 * 9223372036854775807", "got 8"});
  check_throws<std::invalid_argument>([&] { (void)posenc::axial_frequencies({.head_dim = most, .axes = 2}); },
                                      {"posenc: head_dim", "at most 2^24"});
}
