// The pairings beyond the two rotations, and what else can be turned: values, outputs, shared keys.

#include <cmath>
#include <limits>
#include <vector>

#include "posenc/rotary/convert_pairing.hpp"
#include "posenc/rotary/rotary.hpp"
#include "support/support.hpp"

using namespace posenc;
using namespace posenc_test;

namespace {

const RotaryFrequencies eight = rotary_frequencies({.head_dim = 16});

template <class S>
Values<S, 4> heads(unsigned seed = 1) {
  return random_values<S>(std::array<Index, 4>{2, 19, 3, 16}, seed);
}

}  // namespace

TEMPLATE_TEST_CASE("adjacent_to_half is `adjacent`, written as halves", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  const Positions at = consecutive(1000, 19);
  auto plain = heads<TestType>(), moved = plain, out = plain;
  Rotary(eight, Pairing::adjacent).rotate(plain.view(), at, Axes::bshd);
  const Rotary deepseek(eight, Pairing::adjacent_to_half);
  deepseek.rotate(out.view(), moved.view(), at, Axes::bshd);
  deepseek.rotate(moved.view(), at, Axes::bshd);
  CHECK(same_bits(moved, out));
  for_each_coordinate(plain.extents, [&](auto where, Index n) {
    const Index d = where[3];
    where[3] = d / 2 + d % 2 * 8;  // pair d / 2, first or second member
    CHECK(to_double(element(moved.view(), where)) == to_double(plain.values[static_cast<std::size_t>(n)]));
  });
}

TEMPLATE_TEST_CASE("every pairing's gradient is its transpose", "[property]", float, double) {
  const Positions at = consecutive(-7, 19);
  RotaryFrequencies scaled = eight;
  scaled.attention_factor = 1.25;
  for (const Pairing pairing :
       {Pairing::half, Pairing::adjacent, Pairing::adjacent_to_half, Pairing::adjacent_mismatched}) {
    const Rotary rope(scaled, pairing);
    auto x = heads<TestType>(1), u = heads<TestType>(2);
    const auto x0 = x, u0 = u;
    rope.rotate(x.view(), at, Axes::bshd);
    rope.rotate_vjp(u.view(), at, Axes::bshd);
    CHECK(dot(u0.values, x.values) == Approx(dot(u.values, x0.values)).margin(1e5 * epsilon<TestType>));
  }
}

TEMPLATE_TEST_CASE("rotate_inverse undoes rotate whatever the attention factor", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  const Positions at = consecutive(123456789, 19);
  RotaryFrequencies scaled = eight;
  scaled.attention_factor = 1.5;
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent, Pairing::adjacent_to_half}) {
    const Rotary rope(scaled, pairing);
    auto x = heads<TestType>();
    const auto before = x;
    rope.rotate(x.view(), at, Axes::bshd);
    rope.rotate_inverse(x.view(), at, Axes::bshd);
    CHECK(max_difference(x.values, before.values) < 16 * epsilon<TestType>);
  }
  auto x = heads<TestType>();
  const auto before = x;
  const Rotary mismatched(eight, Pairing::adjacent_mismatched);
  check_throws<std::invalid_argument>([&] { mismatched.rotate_inverse(x.view(), at, Axes::bshd); },
                                      {"rotate_inverse", "adjacent_mismatched"});
  RotaryFrequencies nothing = eight;
  nothing.attention_factor = 0;
  const Rotary no_way_back(nothing, Pairing::half);
  check_throws<std::invalid_argument>([&] { no_way_back.rotate_inverse(x.view(), at, Axes::bshd); },
                                      {"rotate_inverse", "attention_factor", "0"});
  CHECK(same_bits(x, before));
}

TEST_CASE("nanochat turns the other way: x1 cos + x2 sin") {
  const Rotary rope(negated(eight), Pairing::half);
  auto x = random_values<double>(std::array<Index, 2>{5, 16});
  const auto before = x;
  rope.rotate(x.view(), consecutive(3, 5));
  for (Index s = 0; s < 5; ++s)
    for (Index i = 0; i < 8; ++i) {
      const double angle = static_cast<double>(3 + s) * eight.inv_freq[static_cast<std::size_t>(i)];
      const double x1 = before.view()(s, i), x2 = before.view()(s, i + 8);
      CHECK(x.view()(s, i) == Approx(x1 * std::cos(angle) + x2 * std::sin(angle)).margin(1e-14));
      CHECK(x.view()(s, i + 8) == Approx(x2 * std::cos(angle) - x1 * std::sin(angle)).margin(1e-14));
    }
}

TEST_CASE("V-JEPA 2: adjacent pairs at the angles of a table tiled in halves") {
  const Rotary rope(eight, Pairing::adjacent_mismatched);
  auto x = random_values<double>(std::array<Index, 2>{5, 16});
  const auto before = x;
  rope.rotate(x.view(), consecutive(3, 5));
  for (Index s = 0; s < 5; ++s)
    for (Index d = 0; d < 16; ++d) {
      const double angle = static_cast<double>(3 + s) * eight.inv_freq[static_cast<std::size_t>(d % 8)];
      const double partner = d % 2 == 0 ? -before.view()(s, d + 1) : before.view()(s, d - 1);
      CHECK(x.view()(s, d) ==
            Approx(before.view()(s, d) * std::cos(angle) + partner * std::sin(angle)).margin(1e-14));
    }
}

TEST_CASE("these pairings work in every storage and scalar type, and on threads", "[property][threads]") {
  const Positions at = consecutive(50, 19);
  for (const Pairing pairing : {Pairing::adjacent_to_half, Pairing::adjacent_mismatched}) {
    const Rotary rope(eight, pairing);
    const auto values = heads<float>();
    auto expected = values;
    rope.rotate(expected.view(), at, Axes::bshd);
    in_every_storage(
        values, [&](auto& x) { rope.rotate(x, at, Axes::bshd); },
        [&](const char* name, const auto& got) {
          INFO(name);
          CHECK(same_bits(got, expected));
        });
    for (const int threads : {1, 2, 5}) {
      auto x = values;
      rope.rotate(ThreadsDevice{threads}, x.view(), at, Axes::bshd);
      CHECK(same_bits(x, expected));
    }
  }
}

TEST_CASE("heads wider than a tile are refused where a pairing must read them whole") {
  const RotaryFrequencies wide = rotary_frequencies({.head_dim = 4096});
  CHECK_NOTHROW(Rotary(wide, Pairing::half));
  check_throws<std::invalid_argument>([&] { Rotary(wide, Pairing::adjacent_to_half); },
                                      {"rotary_dim", "1920", "4096"});
  for (const Pairing pairing : {Pairing::adjacent_to_half, Pairing::adjacent_mismatched})
    check_throws<std::invalid_argument>([&] { Rotary(rotary_frequencies({.head_dim = 1922}), pairing); },
                                        {"rotary_dim", "1920", "1922"});
  const RotaryFrequencies widest = rotary_frequencies({.head_dim = 1920});
  const auto before = random_values<double>(std::array<Index, 2>{2, 1920});
  auto x = before;
  const Rotary to_half(widest, Pairing::adjacent_to_half);
  to_half.rotate(x.view(), consecutive(9, 2));
  CHECK(norm(x.values) == Approx(norm(before.values)).epsilon(1e-13));
  to_half.rotate_vjp(x.view(), consecutive(9, 2));
  CHECK(max_difference(x.values, before.values) < 1e-13);
  x = before;
  Rotary(widest, Pairing::adjacent_mismatched).rotate(x.view(), consecutive(9, 2));
  double worst = 0;
  for (Index s = 0; s < 2; ++s)
    for (Index d = 0; d < 1920; ++d) {
      const double angle = static_cast<double>(9 + s) * widest.inv_freq[static_cast<std::size_t>(d % 960)];
      const double partner = d % 2 == 0 ? -before.view()(s, d + 1) : before.view()(s, d - 1);
      const double expected = before.view()(s, d) * std::cos(angle) + partner * std::sin(angle);
      worst = (std::max)(worst, std::fabs(x.view()(s, d) - expected));
    }
  CHECK(worst < 1e-13);
}

TEST_CASE("MLA: one rotary key serves all heads, and scores depend on the distance", "[property]") {
  // q = [nope 32 | rope 16] in each of 4 heads; one k_rope of 16 for all of them.
  const Rotary query({48, eight.inv_freq, 1.0, {}}, Pairing::adjacent_to_half, Window::trailing());
  const Rotary key(eight, Pairing::adjacent_to_half);
  const auto q0 = random_values<double>(std::array<Index, 4>{1, 7, 4, 48}, 1);
  const auto k0 = random_values<double>(std::array<Index, 3>{1, 7, 16}, 2);
  const auto scores = [&](Position start) {
    auto q = q0;
    auto k = k0;
    query.rotate(q.view(), consecutive(start, 7), Axes::bshd);
    key.rotate(k.view(), consecutive(start, 7));
    std::vector<double> all;
    for (Index i = 0; i < 7; ++i)
      for (Index j = 0; j < 7; ++j)
        for (Index h = 0; h < 4; ++h) {
          double sum = 0;
          for (Index d = 0; d < 16; ++d) sum += q.view()(0, i, h, 32 + d) * k.view()(0, j, d);
          all.push_back(sum);
        }
    for (Index h = 0; h < 4; ++h)  // nope is left alone
      for (Index d = 0; d < 32; ++d) CHECK(q.view()(0, 3, h, d) == q0.view()(0, 3, h, d));
    return all;
  };
  CHECK(max_difference(scores(0), scores(Position{1} << 40)) < 1e-12);
}

TEST_CASE("float32 angles are what frameworks compute, and exact ones are not") {
  const Rotary exact(rotary_frequencies({.head_dim = 128}), Pairing::half);
  const Rotary float32(rotary_frequencies({.head_dim = 128}), Pairing::half, Window::leading(),
                       AngleMode::float32);
  const Position far = 131071;
  Eigen::Tensor<float, 2, Eigen::RowMajor> cos(1, 64), sin(1, 64), exact_cos(1, 64), exact_sin(1, 64);
  float32.cos_sin(cos, sin, consecutive(far, 1));
  exact.cos_sin(exact_cos, exact_sin, consecutive(far, 1));
  double worst = 0;
  for (Index i = 0; i < 64; ++i) {
    const float angle = static_cast<float>(far) *
                        static_cast<float>(exact.frequencies().inv_freq[static_cast<std::size_t>(i)]);
    CHECK(cos(0, i) == std::cos(angle));
    CHECK(sin(0, i) == std::sin(angle));
    worst = (std::max)(worst, std::abs(static_cast<double>(cos(0, i) - exact_cos(0, i))));
  }
  CHECK(worst > 1e-3);  // the phase that a float angle loses at this position
  CHECK(worst < 1e-2);
  RotaryFrequencies scaled = exact.frequencies();
  scaled.attention_factor = 1.5;
  Eigen::Tensor<float, 2, Eigen::RowMajor> scaled_cos(1, 64), scaled_sin(1, 64);
  Rotary(scaled, Pairing::half, Window::leading(), AngleMode::float32)
      .cos_sin(scaled_cos, scaled_sin, consecutive(far, 1));
  for (Index i = 0; i < 64; ++i) {
    CHECK(scaled_cos(0, i) == 1.5f * cos(0, i));
    CHECK(scaled_sin(0, i) == 1.5f * sin(0, i));
  }
}

TEST_CASE("a window of a head of any width is inside it or refused") {
  const Index most = std::numeric_limits<Index>::max(), least = std::numeric_limits<Index>::min();
  for (const auto& window : {Window::leading(), Window::trailing(), Window::starting_at(most)}) {
    check_throws<std::invalid_argument>([&] { (void)window.first(least, 4); }, {"posenc: window"});
    check_throws<std::invalid_argument>([&] { (void)window.first(4, most); }, {"posenc: window"});
    check_throws<std::invalid_argument>([&] { (void)window.first(4, least); }, {"posenc: window"});
  }
  CHECK(Window::trailing().first(most, 4) == most - 4);
  check_throws<std::invalid_argument>([&] { (void)Window::starting_at(most).first(8, 4); },
                                      {"posenc: window"});
}
