// Keys that are in a cache already: shifted, re-based, and rows that keep their own frequencies.

#include <cmath>
#include <vector>

#include "posenc/rotary/axes.hpp"
#include "posenc/rotary/key_rebase.hpp"
#include "posenc/rotary/per_row.hpp"
#include "posenc/rotary/position_grids.hpp"
#include "posenc/rotary/rotary.hpp"
#include "posenc/rotary/scaling.hpp"
#include "support/support.hpp"

using namespace posenc;
using namespace posenc_test;

namespace {

template <class S>
Values<S, 4> keys(unsigned seed = 1) {
  return random_values<S>(std::array<Index, 4>{3, 21, 2, 32}, seed);
}

RotaryFrequencies scaled(double theta, double factor) {
  RotaryFrequencies f = rotary_frequencies({.head_dim = 32, .rope_theta = theta});
  f.attention_factor = factor;
  return f;
}

}  // namespace

TEMPLATE_TEST_CASE("a shifted key is a key rotated further on", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent, Pairing::adjacent_to_half})
    for (const Position delta : {Position{-1000}, Position{1}, Position{1} << 40}) {
      const Rotary rope(scaled(10000, 1.2), pairing);  // the magnitude is in the keys and must not come again
      auto cached = keys<TestType>(), fresh = cached;
      rope.rotate(cached.view(), consecutive(500, 21), Axes::bshd);
      rope.shift(cached.view(), delta, Axes::bshd);
      rope.rotate(fresh.view(), consecutive(500 + delta, 21), Axes::bshd);
      CHECK(max_difference(cached.values, fresh.values) < 16 * epsilon<TestType>);
    }
}

TEST_CASE("shifting many times keeps the norm and the phase", "[property]") {
  const Rotary rope(scaled(10000, 1.3), Pairing::half);
  auto cached = keys<float>(), fresh = cached;
  rope.rotate(cached.view(), consecutive(0, 21), Axes::bshd);
  rope.rotate(fresh.view(), consecutive(-2000, 21), Axes::bshd);
  for (int i = 0; i < 200; ++i) rope.shift(cached.view(), -10, Axes::bshd);
  CHECK(max_difference(cached.values, fresh.values) < 1e-4);
  CHECK(norm(cached.values) == Approx(norm(fresh.values)).epsilon(1e-5));
}

TEST_CASE("with several axes each is shifted by its own delta", "[property]") {
  const Rotary rope(mrope_sections(scaled(10000, 1), {4, 6, 6}), Pairing::half);
  auto cached = random_values<double>(std::array<Index, 2>{24, 32}), fresh = cached;
  const Positions at = grid_positions({2, 3, 4});
  rope.rotate(cached.view(), at);
  const std::vector<Position> deltas{100, -5, 7};
  rope.shift(cached.view(), deltas);
  std::vector<Position> moved;
  for (Index axis = 0; axis < 3; ++axis)
    for (Index i = 0; i < 24; ++i)
      moved.push_back(at.integer(axis, 0, i) + deltas[static_cast<std::size_t>(axis)]);
  rope.rotate(fresh.view(), axis_positions(View<const Position, 2>(moved.data(), {3, 24})));
  CHECK(max_difference(cached.values, fresh.values) < 1e-13);
  check_throws<std::invalid_argument>([&] { rope.shift(cached.view(), 5); }, {"deltas", "3", "1"});
}

TEMPLATE_TEST_CASE("re-based keys are keys rotated by the new frequencies", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent_to_half}) {
    const Rotary before(scaled(10000, 1.1), pairing), after(scaled(500000, 1.4), pairing);
    auto cached = keys<TestType>(), fresh = cached;
    const Positions at = consecutive(Position{1} << 33, 21);  // where a float angle would mean nothing
    before.rotate(cached.view(), at, Axes::bshd);
    KeyRebase(before, after).apply(cached.view(), at, Axes::bshd);
    after.rotate(fresh.view(), at, Axes::bshd);
    CHECK(max_difference(cached.values, fresh.values) < 16 * epsilon<TestType>);
  }
}

TEST_CASE("LongRoPE: a sequence that outgrows the short list takes its keys along", "[property]") {
  LongRopeConfig scaling{.original_max_position_embeddings = 64, .factor = 4};
  for (int i = 0; i < 16; ++i)
    scaling.short_factor.push_back(1 + 0.01 * i), scaling.long_factor.push_back(2 + i);
  const RotaryConfig config{.head_dim = 32};
  const Rotary brief(longrope_frequencies(config, scaling, LongRopeChoice::short_factor), Pairing::half);
  const Rotary far(longrope_frequencies(config, scaling, LongRopeChoice::long_factor), Pairing::half);
  auto cached = keys<double>(), fresh = cached;
  const Positions at = consecutive(40, 21);
  brief.rotate(cached.view(), at, Axes::bshd);
  KeyRebase(brief, far).apply(cached.view(), at, Axes::bshd);
  far.rotate(fresh.view(), at, Axes::bshd);
  CHECK(max_difference(cached.values, fresh.values) < 1e-13);
}

TEST_CASE("keys of a batch with positions of their own are re-based, heads wider than the buffers, too",
          "[property]") {
  const Positions at = consecutive(std::vector<Position>{5, -900, 1 << 20}, 21);
  const Rotary before(scaled(10000, 1.1), Pairing::half), after(scaled(500000, 1.4), Pairing::half);
  auto cached = keys<double>(), fresh = cached;
  before.rotate(cached.view(), at, Axes::bshd);
  KeyRebase(before, after).apply(cached.view(), at, Axes::bshd);
  after.rotate(fresh.view(), at, Axes::bshd);
  CHECK(max_difference(cached.values, fresh.values) < 1e-13);

  const auto wide = [](double theta) {
    return Rotary(rotary_frequencies({.head_dim = 4400, .rope_theta = theta}), Pairing::half);
  };
  auto x = random_values<double>(std::array<Index, 2>{2, 4400}), y = x, z = x;
  wide(1e4).rotate(x.view(), consecutive(77, 2));
  KeyRebase(wide(1e4), wide(5e5)).apply(x.view(), consecutive(77, 2));
  wide(5e5).rotate(y.view(), consecutive(77, 2));
  CHECK(max_difference(x.values, y.values) < 1e-12);
  wide(5e5).rotate(z.view(), consecutive(70, 2));
  wide(5e5).shift(z.view(), 7);
  CHECK(max_difference(z.values, y.values) < 1e-12);
}

TEST_CASE("what can't be re-based is refused") {
  const Rotary half(scaled(1e4, 1), Pairing::half), adjacent(scaled(1e4, 1), Pairing::adjacent);
  check_throws<std::invalid_argument>([&] { KeyRebase(half, adjacent); }, {"to", "pairing"});
  check_throws<std::invalid_argument>(
      [&] { KeyRebase(half, Rotary(rotary_frequencies({.head_dim = 16}), Pairing::half)); }, {"16"});
  check_throws<std::invalid_argument>(
      [&] { KeyRebase(half, Rotary(mrope_sections(scaled(1e4, 1), {8, 8}), Pairing::half)); }, {"axes"});
  check_throws<std::invalid_argument>([&] { KeyRebase(Rotary(scaled(1e4, 0), Pairing::half), half); },
                                      {"attention_factor", "0"});
  const RotaryFrequencies part = rotary_frequencies({.head_dim = 32, .rotary_dim = 16});
  check_throws<std::invalid_argument>(
      [&] { KeyRebase(Rotary(part, Pairing::half), Rotary(part, Pairing::half, Window::trailing())); },
      {"to", "window"});
  const Rotary mismatched(scaled(1e4, 1), Pairing::adjacent_mismatched);
  auto k = keys<float>();
  const Rotary other(rotary_frequencies({.head_dim = 30}), Pairing::half);
  const auto as_they_were = k;
  check_throws<std::invalid_argument>([&] { other.shift(k.view(), 1, Axes::bshd); },
                                      {"x: expected 30", "head_dim", "got 32"});
  CHECK(same_bits(k, as_they_were));
  const auto untouched = k;
  check_throws<std::invalid_argument>([&] { mismatched.shift(k.view(), 1, Axes::bshd); },
                                      {"adjacent_mismatched"});
  check_throws<std::invalid_argument>(
      [&] { KeyRebase(half, half).apply(k.view(), consecutive(0, 20), Axes::bshd); }, {"at", "21", "20"});
  CHECK(same_bits(k, untouched));
}

TEST_CASE("cache operations give the same bits on threads and in every storage", "[property][threads]") {
  const Rotary before(scaled(1e4, 1.1), Pairing::adjacent), after(scaled(5e5, 1), Pairing::adjacent);
  const KeyRebase rebase(before, after);
  const auto values = keys<float>();
  auto shifted = values, rebased = values;
  before.shift(shifted.view(), 77, Axes::bshd);
  rebase.apply(rebased.view(), consecutive(9, 21), Axes::bshd);
  for (const int threads : {1, 2, 5}) {
    auto x = values, y = values;
    before.shift(ThreadsDevice{threads}, x.view(), 77, Axes::bshd);
    rebase.apply(ThreadsDevice{threads}, y.view(), consecutive(9, 21), Axes::bshd);
    CHECK(same_bits(x, shifted));
    CHECK(same_bits(y, rebased));
  }
  in_every_storage(
      values, [&](auto& x) { before.shift(x, 77, Axes::bshd); },
      [&](const char* name, const auto& got) {
        INFO(name);
        CHECK(same_bits(got, shifted));
      });
}

TEMPLATE_TEST_CASE("rows of a batch keep their own frequencies", "[property]", float, Eigen::bfloat16) {
  const std::vector<Rotary> ropes{Rotary(scaled(1e4, 1), Pairing::half),
                                  Rotary(scaled(5e5, 1.2), Pairing::half)};
  const std::vector<Index> choice{1, 0, 1};
  const Positions at = consecutive(std::vector<Position>{5, 900, 0}, 21);
  auto x = keys<TestType>(), alone = x;
  rotate_per_row(x.view(), ropes, choice, at, Axes::bshd);
  for (Index b = 0; b < 3; ++b)
    ropes[static_cast<std::size_t>(choice[static_cast<std::size_t>(b)])].rotate(alone.view().slice(0, b, 1),
                                                                                at.row(b), Axes::bshd);
  CHECK(same_bits(x, alone));
  rotate_per_row_vjp(x.view(), ropes, choice, at, Axes::bshd);
  for (Index b = 0; b < 3; ++b)
    ropes[static_cast<std::size_t>(choice[static_cast<std::size_t>(b)])].rotate_vjp(
        alone.view().slice(0, b, 1), at.row(b), Axes::bshd);
  CHECK(same_bits(x, alone));
  const auto untouched = x;
  const std::vector<Index> wrong{0, 2, 0}, few{0, 0};
  check_throws<std::out_of_range>([&] { rotate_per_row(x.view(), ropes, wrong, at, Axes::bshd); },
                                  {"choice[1]", "2"});
  check_throws<std::invalid_argument>([&] { rotate_per_row(x.view(), ropes, few, at, Axes::bshd); },
                                      {"choice", "3", "2"});
  check_throws<std::invalid_argument>(
      [&] { rotate_per_row(x.view(), ropes, choice, consecutive(0, 4), Axes::bshd); }, {"at", "21", "4"});
  CHECK(same_bits(x, untouched));
}

TEST_CASE("no row of a batch is written when a later one is refused") {
  const Rotary rope(scaled(1e4, 1), Pairing::half);
  const Rotary wide(rotary_frequencies({.head_dim = 64}), Pairing::half);
  const Rotary image(mrope_sections(scaled(1e4, 1), {8, 8}), Pairing::half);
  const std::vector<Rotary> ropes{rope, wide, image};
  const std::vector<Index> last_is_wide{0, 0, 1}, last_is_image{0, 0, 2};
  const std::vector<Index> last_is_none{0, 0, 3}, last_is_negative{0, 0, -1};
  const Positions at = consecutive(7, 21);
  auto x = keys<float>();
  const auto untouched = x;
  const auto refused = [&](const auto& turn) {
    check_throws<std::invalid_argument>([&] { turn(last_is_wide); }, {"x", "head_dim", "64", "32"});
    CHECK(same_bits(x, untouched));
    check_throws<std::invalid_argument>([&] { turn(last_is_image); }, {"at", "2 axes", "1"});
    CHECK(same_bits(x, untouched));
    check_throws<std::out_of_range>([&] { turn(last_is_none); }, {"choice[2]", "3"});
    check_throws<std::out_of_range>([&] { turn(last_is_negative); }, {"choice[2]", "-1"});
    CHECK(same_bits(x, untouched));
  };
  refused([&](const std::vector<Index>& choice) { rotate_per_row(x.view(), ropes, choice, at, Axes::bshd); });
  refused(
      [&](const std::vector<Index>& choice) { rotate_per_row_vjp(x.view(), ropes, choice, at, Axes::bshd); });
}
