// What grows or decays with the position beside the rotation.

#include <cmath>
#include <limits>
#include <vector>

#include "posenc/rotary/attention_temperature.hpp"
#include "posenc/rotary/axes.hpp"
#include "posenc/rotary/xpos.hpp"
#include "support/support.hpp"

using namespace posenc;
using namespace posenc_test;

TEST_CASE("attention temperature: golden values of Llama 4 and Ministral 3") {
  const AttentionTemperature llama4({.rule = TemperatureRule::llama4, .scale = 0.1, .length = 8192});
  CHECK(llama4.value(8190) == 1.0);
  CHECK(llama4.value(8191) == Approx(1.0693147).epsilon(1e-7));
  CHECK(llama4.value(16383) == Approx(1.1098612).epsilon(1e-7));
  CHECK(llama4.value(65535) == Approx(1.2197225).epsilon(1e-7));
  const AttentionTemperature ministral({.rule = TemperatureRule::ministral3, .scale = 0.1, .length = 16384});
  CHECK(ministral.value(16383) == 1.0);
  CHECK(ministral.value(16384) == Approx(1.0693147).epsilon(1e-7));
  const AttentionTemperature inkling({.rule = TemperatureRule::inkling, .scale = 0.5, .length = 100});
  CHECK(inkling.value(0) == 1.0);
  CHECK(inkling.value(99) == 1.0);
  CHECK(inkling.value(199) == Approx(1 + 0.5 * std::log(2.0)));
  check_throws<std::invalid_argument>([] { AttentionTemperature({.length = 0}); }, {"length", "0"});
  check_throws<std::invalid_argument>([] { AttentionTemperature({.scale = posenc_test::quiet_nan}); },
                                      {"scale", "nan"});
}

TEMPLATE_TEST_CASE("attention temperature multiplies each query by the value at its position",
                   "[property][threads]", float, double, Eigen::half, Eigen::bfloat16) {
  const AttentionTemperature t({.length = 10});
  const auto q = random_values<TestType>(std::array<Index, 4>{2, 21, 3, 8});
  const Positions at = consecutive(std::vector<Position>{0, 1000}, 21);
  auto expected = q;
  for_each_coordinate(q.extents, [&](const auto& where, Index n) {
    const auto by = static_cast<compute_t<TestType>>(t.value(at(where[0], where[1])));
    auto& x = expected.values[static_cast<std::size_t>(n)];
    x = static_cast<TestType>(static_cast<compute_t<TestType>>(x) * by);
  });
  in_every_storage(
      q, [&](auto& x) { t.scale(x, at, Axes::bshd); },
      [&](const char* name, const auto& got) {
        INFO(name);
        CHECK(same_bits(got, expected));
      });
  for (const int threads : {1, 2, 5}) {
    auto x = q;
    t.scale(ThreadsDevice{threads}, x.view(), at, Axes::bshd);
    CHECK(same_bits(x, expected));
  }
  auto x = q;
  check_throws<std::out_of_range>([&] { t.scale(x.view(), consecutive(-1, 21), Axes::bshd); },
                                  {"at", "-1", "(0, 0)"});
  CHECK(same_bits(x, q));
}

TEST_CASE("xPos: scores depend on the distance alone and decay with it", "[property]") {
  const Xpos xpos(Rotary(rotary_frequencies({.head_dim = 32}), Pairing::adjacent));
  const auto score = [&](Position m, Position n) {
    auto q = random_values<double>(std::array<Index, 2>{1, 32}, 1),
         k = random_values<double>(std::array<Index, 2>{1, 32}, 2);
    xpos.rotate_query(q.view(), consecutive(m, 1));
    xpos.rotate_key(k.view(), consecutive(n, 1));
    return dot(q.values, k.values);
  };
  CHECK(score(10, 3) == Approx(score(1010, 1003)).epsilon(1e-9));
  CHECK(xpos.decay(0, 512) == Approx(0.4 / 1.4));
  CHECK(xpos.decay(0, 0) == 1.0);
  CHECK(xpos.decay(0, 1000) < xpos.decay(15, 1000));
}

TEST_CASE("xPos: the centre only moves magnitude from queries to keys", "[property]") {
  const Rotary rope(rotary_frequencies({.head_dim = 32}), Pairing::half);
  const auto score = [&](Position centre) {
    const Xpos xpos(rope, {.centre = centre});
    auto q = random_values<double>(std::array<Index, 2>{1, 32}, 1),
         k = random_values<double>(std::array<Index, 2>{1, 32}, 2);
    xpos.rotate_query(q.view(), consecutive(700, 1));
    xpos.rotate_key(k.view(), consecutive(650, 1));
    return dot(q.values, k.values);
  };
  CHECK(score(0) == Approx(score(600)).epsilon(1e-10));
}

TEST_CASE("xPos: at the centre queries and keys keep their size, and the decay is counted from there",
          "[property]") {
  const Rotary rope(rotary_frequencies({.head_dim = 32}), Pairing::half);
  const Xpos xpos(rope, {.scale_base = 100, .centre = 600});
  for (const Position p : {Position{600}, Position{650}, Position{-20}}) {
    auto q = random_values<double>(std::array<Index, 2>{1, 32}), k = q, plain = q;
    xpos.rotate_query(q.view(), consecutive(p, 1));
    xpos.rotate_key(k.view(), consecutive(p, 1));
    rope.rotate(plain.view(), consecutive(p, 1));
    for (Index i = 0; i < 16; ++i) {
      const double zeta =
          std::pow((2.0 * static_cast<double>(i) / 32 + 0.4) / 1.4, static_cast<double>(p - 600) / 100);
      CHECK(xpos.decay(i, p) == Approx(zeta).epsilon(1e-13));
      for (const Index d : {i, i + 16}) {
        CHECK(q.view()(0, d) == Approx(plain.view()(0, d) * zeta).epsilon(1e-13));
        CHECK(k.view()(0, d) == Approx(plain.view()(0, d) / zeta).epsilon(1e-13));
      }
    }
    if (p == 600) CHECK(same_bits(q, plain));
  }
}

TEST_CASE("xPos: golden pair by the paper's formula, and gradients are transposes", "[property]") {
  const Xpos xpos(Rotary(rotary_frequencies({.head_dim = 8}), Pairing::adjacent),
                  {.gamma = 0.4, .scale_base = 512});
  auto q = random_values<double>(std::array<Index, 2>{3, 8}, 1);
  const auto before = q;
  xpos.rotate_query(q.view(), consecutive(100, 3));
  for (Index s = 0; s < 3; ++s)
    for (Index i = 0; i < 4; ++i) {
      const double p = static_cast<double>(100 + s),
                   angle = p * std::pow(10000.0, -2.0 * static_cast<double>(i) / 8);
      const double zeta = std::pow((2.0 * static_cast<double>(i) / 8 + 0.4) / 1.4, p / 512);
      const double u = before.view()(s, 2 * i), w = before.view()(s, 2 * i + 1);
      CHECK(q.view()(s, 2 * i) == Approx(zeta * (u * std::cos(angle) - w * std::sin(angle))).margin(1e-13));
    }
  for (const bool query : {true, false}) {
    auto x = random_values<double>(std::array<Index, 2>{3, 8}, 3),
         u = random_values<double>(std::array<Index, 2>{3, 8}, 4);
    const auto x0 = x, u0 = u;
    const Positions at = consecutive(-40, 3);
    if (query)
      xpos.rotate_query(x.view(), at), xpos.rotate_query_vjp(u.view(), at);
    else
      xpos.rotate_key(x.view(), at), xpos.rotate_key_vjp(u.view(), at);
    CHECK(dot(u0.values, x.values) == Approx(dot(u.values, x0.values)).margin(1e-12));
  }
  const RotaryFrequencies eight = rotary_frequencies({.head_dim = 8});
  check_throws<std::invalid_argument>([&] { Xpos(Rotary(eight, Pairing::adjacent_mismatched)); },
                                      {"rope", "adjacent_mismatched"});
  check_throws<std::invalid_argument>([&] { Xpos(Rotary(mrope_sections(eight, {2, 2}), Pairing::half)); },
                                      {"rope: axes", "1", "2"});
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent, Pairing::adjacent_to_half})
    CHECK_NOTHROW(Xpos(Rotary(eight, pairing)));
  for (const Position centre : {largest_position + 1, -largest_position - 1})
    check_throws<std::out_of_range>([&] { Xpos(xpos.rope(), {.centre = centre}); }, {"centre", "2^60"});
  check_throws<std::invalid_argument>([&] { Xpos(xpos.rope(), {.gamma = 0}); }, {"gamma", "0"});
  for (const double wrong : {-1.0, quiet_nan, infinity}) {
    check_throws<std::invalid_argument>([&] { Xpos(xpos.rope(), {.gamma = wrong}); }, {"gamma"});
    check_throws<std::invalid_argument>([&] { Xpos(xpos.rope(), {.scale_base = wrong}); }, {"scale_base"});
  }
  check_throws<std::invalid_argument>([&] { Xpos(xpos.rope(), {.scale_base = -1}); }, {"scale_base", "-1"});
}

TEST_CASE("the decay of a pair or position that is not there is refused") {
  const posenc::Xpos xpos(posenc::Rotary(posenc::rotary_frequencies({.head_dim = 8}), posenc::Pairing::half),
                          {.centre = posenc::largest_position});
  for (const posenc::Index pair : {posenc::Index{-1}, posenc::Index{4}})
    posenc_test::check_throws<std::out_of_range>([&] { (void)xpos.decay(pair, 0); },
                                                 {"posenc: pair", "[0, 4)"});
  posenc_test::check_throws<std::out_of_range>(
      [&] { (void)xpos.decay(0, std::numeric_limits<posenc::Position>::min()); },
      {"posenc: position", "2^60"});
  CHECK(xpos.decay(0, posenc::largest_position) == 1.0);
}
