// What the docstrings of frequencies, scalings, positions and encoders say they throw, and no other test asks for.

#include <array>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "posenc/rotary/attention_temperature.hpp"
#include "posenc/rotary/axes.hpp"
#include "posenc/rotary/key_rebase.hpp"
#include "posenc/rotary/position_grids.hpp"
#include "posenc/rotary/rotary.hpp"
#include "posenc/rotary/scaling.hpp"
#include "posenc/rotary/xpos.hpp"
#include "support/support.hpp"

using namespace posenc;
using posenc_test::check_throws;
using posenc_test::infinity;
using posenc_test::quiet_nan;
using posenc_test::random_values;
using posenc_test::same_bits;

namespace {

using std::invalid_argument;
using std::out_of_range;

const RotaryConfig eight{.head_dim = 8};

/// scaled_frequencies throws as the scheme's own function, which is called too.
template <class Scheme, class Own>
void refused(const Scheme& scheme, const Own& own, std::initializer_list<const char*> parts,
             const RotaryConfig& config = eight) {
  check_throws<invalid_argument>([&] { own(config, scheme); }, parts);
  check_throws<invalid_argument>([&] { (void)scaled_frequencies(config, scheme, 1000); }, parts);
}

}  // namespace

TEST_CASE("linear, dynamic and proportional scaling: factors and lengths without a meaning", "[promises]") {
  const auto linear = [](const RotaryConfig& c, const LinearConfig& s) {
    (void)linear_scaled(rotary_frequencies(c), s.factor);
  };
  for (const double factor : {0.0, -2.0, infinity, -infinity, quiet_nan})
    refused(LinearConfig{factor}, linear, {"factor", "positive finite"});

  const auto dynamic = [](const RotaryConfig& c, const DynamicNtkConfig& s) {
    (void)dynamic_ntk_frequencies(c, s, 1000);
  };
  for (const double factor : {0.99, 0.0, -2.0, infinity, quiet_nan})
    refused(DynamicNtkConfig{factor, 8}, dynamic, {"factor", "at least 1"});
  for (const Index length : {0, -1})
    refused(DynamicNtkConfig{2, length}, dynamic, {"max_position_embeddings", "at least 1"});
  refused(DynamicNtkConfig{2, 8}, dynamic, {"rotary_dim", "more than 2"}, {.head_dim = 2});

  const auto alpha = [](const RotaryConfig& c, const NtkAlphaConfig& s) {
    (void)ntk_alpha_frequencies(c, s.alpha);
  };
  for (const double value : {0.0, -1.0, infinity, quiet_nan})
    refused(NtkAlphaConfig{value}, alpha, {"alpha", "positive finite"});
  refused(NtkAlphaConfig{2}, alpha, {"rotary_dim", "more than 2"}, {.head_dim = 2});

  const auto proportional = [](const RotaryConfig& c, const ProportionalConfig& s) {
    (void)proportional_frequencies(c, s);
  };
  for (const double part : {-0.1, 1.1, infinity})
    refused(ProportionalConfig{part, 1}, proportional, {"partial_rotary_factor", "[0, 1]"});
  for (const double factor : {0.0, -2.0, infinity, quiet_nan})
    refused(ProportionalConfig{0.5, factor}, proportional, {"factor", "positive finite"});
  for (const RotaryConfig& stated : {RotaryConfig{.head_dim = 8, .partial_rotary_factor = 0.5},
                                     RotaryConfig{.head_dim = 8, .rotary_dim = 4}})
    refused(ProportionalConfig{0.5, 1}, proportional, {"ProportionalConfig", "RotaryConfig"}, stated);
}

TEST_CASE("YaRN, Llama 3 and LongRoPE: numbers without a meaning", "[promises]") {
  const auto yarn = [](const RotaryConfig& c, const YarnConfig& s) { (void)yarn_frequencies(c, s); };
  const YarnConfig good{.factor = 2, .original_max_position_embeddings = 8};
  CHECK_NOTHROW(yarn_frequencies(eight, good));
  const auto but = [](auto config, const auto& change) {
    change(config);
    return config;
  };
  for (const double factor : {0.5, 0.0, -2.0, infinity, quiet_nan})
    refused(but(good, [&](YarnConfig& c) { c.factor = factor; }), yarn, {"factor", "at least 1"});
  for (const Index length : {0, -8})
    refused(but(good, [&](YarnConfig& c) { c.original_max_position_embeddings = length; }), yarn,
            {"original_max_position_embeddings"});
  for (const auto& [fast, slow] : {std::pair{1.0, 2.0}, {32.0, 0.0}, {32.0, -1.0}, {infinity, 1.0}})
    refused(but(good, [&, f = fast, s = slow](YarnConfig& c) { c.beta_fast = f, c.beta_slow = s; }), yarn,
            {"beta_fast", "beta_slow > 0"});

  const auto llama3 = [](const RotaryConfig& c, const Llama3Config& s) {
    (void)llama3_scaled(rotary_frequencies(c), s);
  };
  const Llama3Config bands{.factor = 8, .original_max_position_embeddings = 8192};
  CHECK_NOTHROW(llama3_scaled(rotary_frequencies(eight), bands));
  for (const double factor : {0.0, -8.0, infinity, quiet_nan})
    refused(but(bands, [&](Llama3Config& c) { c.factor = factor; }), llama3, {"factor", "positive finite"});
  for (const auto& [low, high] : {std::pair{0.0, 4.0}, {-1.0, 4.0}, {5.0, 4.0}, {1.0, infinity}})
    refused(but(bands,
                [&, l = low, h = high](Llama3Config& c) { c.low_freq_factor = l, c.high_freq_factor = h; }),
            llama3, {"high_freq_factor", "low_freq_factor > 0"});
  for (const Index length : {0, -1})
    refused(but(bands, [&](Llama3Config& c) { c.original_max_position_embeddings = length; }), llama3,
            {"original_max_position_embeddings"});

  const auto longrope = [](const RotaryConfig& c, const LongRopeConfig& s) {
    (void)longrope_frequencies(c, s, longrope_choice(s, 1000));
  };
  const LongRopeConfig lists{.short_factor = {1, 1, 1, 1},
                             .long_factor = {1, 2, 3, 4},
                             .original_max_position_embeddings = 8,
                             .factor = 2};
  CHECK_NOTHROW(longrope_frequencies(eight, lists, LongRopeChoice::long_factor));
  for (const Index length : {1, 0, -8})
    refused(but(lists, [&](LongRopeConfig& c) { c.original_max_position_embeddings = length; }), longrope,
            {"original_max_position_embeddings", "at least 2"});
  for (const double factor : {0.0, -2.0, infinity, quiet_nan})
    refused(but(lists, [&](LongRopeConfig& c) { c.factor = factor; }), longrope,
            {"factor", "positive finite"});
  for (const double divisor : {0.0, -1.0, infinity, quiet_nan}) {
    refused(but(lists, [&](LongRopeConfig& c) { c.short_factor[2] = divisor; }), longrope,
            {"short_factor[2]", "positive finite"});
    refused(but(lists, [&](LongRopeConfig& c) { c.long_factor[3] = divisor; }), longrope,
            {"long_factor[3]", "positive finite"});
  }
  refused(but(lists, [](LongRopeConfig& c) { c.short_factor.pop_back(); }), longrope,
          {"short_factor", "4", "3"});
  refused(but(lists, [](LongRopeConfig& c) { c.long_factor.push_back(1); }), longrope,
          {"long_factor", "4", "5"});
}

TEST_CASE("explicit frequencies: no divisor and no period is zero or NaN", "[promises]") {
  const RotaryFrequencies plain = rotary_frequencies({.head_dim = 4});
  for (const double wrong : {0.0, -0.0, quiet_nan}) {
    const std::vector<double> list{1.0, wrong};
    check_throws<invalid_argument>([&] { (void)frequencies_from_periods(4, list); }, {"periods[1]", "zero"});
    check_throws<invalid_argument>([&] { (void)divided_frequencies(plain, list); },
                                   {"freq_factors[1]", "zero"});
  }
  const std::vector<double> three{1.0, 2.0, 3.0};
  check_throws<invalid_argument>([&] { (void)divided_frequencies(plain, three); },
                                 {"freq_factors", "2", "3"});
}

TEST_CASE("axes, rows and grids that are not there", "[promises]") {
  check_throws<invalid_argument>([] { (void)axial_frequencies({.head_dim = 8, .axes = 0}); },
                                 {"axes", "at least 1"});
  check_throws<invalid_argument>([] { (void)merge_block_positions(1, -2, 2, 1); },
                                 {"merge_block_positions", "-2"});
  for (const Index merge : {0, -1, 3})
    check_throws<invalid_argument>([&] { (void)merge_block_positions(1, 4, 4, merge); }, {"merge", "4"});
  for (const auto& [rows, columns] : {std::pair<Index, Index>{0, 2}, {2, 0}, {-1, 2}})
    check_throws<invalid_argument>([&, r = rows, c = columns] { (void)patch_centers(r, c); }, {"at least 1"});

  const Positions two_rows = consecutive(std::vector<Position>{0, 5}, 3);
  const Positions two_axes = grid_positions({2, 3});
  for (const Index which : {-1, 2}) {
    check_throws<out_of_range>([&] { (void)two_rows.row(which); }, {"row", "[0, 2)"});
    check_throws<out_of_range>([&] { (void)two_axes.axis(which); }, {"axis", "[0, 2)"});
  }
  const Positions fractions = coordinates(std::vector<double>{0.5, 1.5});
  check_throws<invalid_argument>([&] { (void)fractions.shifted(1); }, {"shifted", "integer"});
  check_throws<invalid_argument>([&] { (void)on_axes(two_axes, 3); }, {"on_axes", "1 axis", "2"});
  check_throws<invalid_argument>([&] { (void)on_axes(two_rows, 0); }, {"on_axes", "at least 1"});

  for (const MropeSegment& wrong : {MropeSegment{.text = -1}, MropeSegment{.frames = 1, .rows = 2},
                                    MropeSegment{.frames = 1, .rows = 2, .columns = -2}})
    check_throws<invalid_argument>([&] { (void)mrope_positions({&wrong, 1}); }, {"segments[0]", "either"});
  for (const double interval : {-0.5, infinity, quiet_nan}) {
    const MropeSegment wrong{.frames = 2, .rows = 1, .columns = 1, .interval = interval};
    check_throws<invalid_argument>([&] { (void)mrope_positions({&wrong, 1}); }, {"segments[0].interval"});
  }
}

TEST_CASE("inverse, shift and change of base of what can't be turned back", "[promises]") {
  RotaryFrequencies silent = rotary_frequencies(eight);
  silent.attention_factor = 0;
  auto x = random_values<float, 4>({1, 3, 2, 8});
  const auto before = x;
  const Positions at = consecutive(0, 3);
  check_throws<invalid_argument>(
      [&] { Rotary(silent, Pairing::half).rotate_inverse(x.view(), at, Axes::bshd); },
      {"rotate_inverse", "attention_factor", "0"});
  const Rotary wide(rotary_frequencies({.head_dim = 16}), Pairing::half);
  check_throws<invalid_argument>([&] { wide.shift(x.view(), 1, Axes::bshd); }, {"x", "16", "8"});
  check_throws<invalid_argument>([&] { wide.rotate_inverse(x.view(), at, Axes::bshd); }, {"16", "8"});
  const Rotary narrow(rotary_frequencies({.head_dim = 8, .rotary_dim = 4}), Pairing::half),
      last(rotary_frequencies({.head_dim = 8, .rotary_dim = 4}), Pairing::half, Window::trailing()),
      whole(rotary_frequencies(eight), Pairing::half);
  check_throws<invalid_argument>([&] { KeyRebase(narrow, last); }, {"to", "window"});
  check_throws<invalid_argument>([&] { KeyRebase(narrow, whole); }, {});
  CHECK(same_bits(x, before));
}

TEST_CASE("xPos and the attention temperature refuse what does not fit, and leave it as it is",
          "[promises]") {
  const Xpos xpos(Rotary(rotary_frequencies(eight), Pairing::half));
  auto x = random_values<float, 4>({2, 3, 2, 6});
  auto fits = random_values<float, 4>({2, 3, 2, 8});
  const auto before = x, fits_before = fits;
  const auto each = [&](auto& values, const Positions& at, std::initializer_list<const char*> parts) {
    const auto v = values.view();
    check_throws<invalid_argument>([&] { xpos.rotate_query(v, at, Axes::bshd); }, parts);
    check_throws<invalid_argument>([&] { xpos.rotate_key(v, at, Axes::bshd); }, parts);
    check_throws<invalid_argument>([&] { xpos.rotate_query_vjp(v, at, Axes::bshd); }, parts);
    check_throws<invalid_argument>([&] { xpos.rotate_key_vjp(v, at, Axes::bshd); }, parts);
  };
  each(x, consecutive(0, 3), {"x", "8", "6"});
  each(fits, consecutive(0, 4), {"at", "3 positions", "4"});
  each(fits, consecutive(std::vector<Position>{0, 0, 0}, 3), {"at", "1 or 2 rows", "3"});
  each(fits, on_axes(consecutive(0, 3), 2), {"at", "1 axis", "2"});
  each(fits, coordinates(std::vector<double>{0.5, 1.5, 2.5}), {"at", "integer"});

  const AttentionTemperature temperature(AttentionTemperatureConfig{});
  const auto scaled = [&](const Positions& at) { temperature.scale(fits.view(), at, Axes::bshd); };
  check_throws<invalid_argument>([&] { scaled(consecutive(0, 4)); }, {"at", "3 positions", "4"});
  check_throws<invalid_argument>([&] { scaled(on_axes(consecutive(0, 3), 2)); }, {"at", "1 axis"});
  check_throws<out_of_range>([&] { scaled(consecutive(std::vector<Position>{0, -2}, 3)); },
                             {"at", "-2", "(1, 0)"});
  for (const double wrong : {0.0, -1.0, infinity, quiet_nan})
    check_throws<invalid_argument>([&] { AttentionTemperature({.length = wrong}); },
                                   {"length", "positive finite"});
  check_throws<invalid_argument>([&] { AttentionTemperature({.scale = infinity}); }, {"scale", "finite"});
  CHECK(same_bits(x, before));
  CHECK(same_bits(fits, fits_before));
}
