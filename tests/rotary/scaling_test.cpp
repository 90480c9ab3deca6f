// The scaling schemes: one pure function each. Numbers are the formulas of the papers, computed elsewhere in
// double and checked against the snapshots of transformers' own tests; tolerances are relative, so that the
// smallest frequency counts as much as the largest.

#include "posenc/rotary/scaling.hpp"

#include <cmath>
#include <numbers>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "support/support.hpp"

using namespace posenc;
using posenc_test::check_throws;

namespace {

using Points = std::vector<std::pair<std::size_t, double>>;

/// Each listed frequency to a relative error of `tolerance` (what the printed digits leave).
void check_points(const RotaryFrequencies& frequencies, const Points& points, double tolerance) {
  for (const auto& [i, expected] : points) {
    INFO("pair " << i);
    REQUIRE(i < frequencies.inv_freq.size());
    CHECK(std::abs(frequencies.inv_freq[i] / expected - 1) < tolerance);
  }
}

const RotaryConfig llama{.head_dim = 128};

}  // namespace

TEST_CASE("linear scaling divides every frequency by the factor") {
  for (const double factor : {1.0, 2.0, 10.0, 20.0}) {
    const RotaryFrequencies plain = rotary_frequencies(llama), scaled = linear_scaled(plain, factor);
    for (std::size_t i = 0; i < plain.inv_freq.size(); ++i)
      CHECK(scaled.inv_freq[i] == plain.inv_freq[i] / factor);
    CHECK(scaled.attention_factor == 1.0);
  }
  check_throws<std::invalid_argument>([] { linear_scaled(rotary_frequencies(llama), 0); },
                                      {"factor", "positive", "0"});
  check_throws<std::invalid_argument>(
      [] { linear_scaled(rotary_frequencies(llama), posenc_test::quiet_nan); }, {"factor", "nan"});
}

TEST_CASE("dynamic NTK: golden points, and the default up to the trained length, never NaN") {
  const DynamicNtkConfig ten{.factor = 10, .max_position_embeddings = 2048};
  check_points(dynamic_ntk_frequencies(llama, ten, 16384),
               {{1, 0.80931}, {2, 0.65498}, {3, 0.53008}, {32, 1.1473e-3}, {63, 1.62645e-6}}, 1e-5);
  check_points(
      dynamic_ntk_frequencies({.head_dim = 256}, {.factor = 10, .max_position_embeddings = 131072}, 200000),
      {{1, 0.91723}, {127, 1.71696e-5}}, 1e-5);
  check_points(dynamic_ntk_frequencies({.head_dim = 8}, {.factor = 4, .max_position_embeddings = 8}, 32),
               {{1, 0.0425290370}, {2, 1.808718991e-3}, {3, 7.692307692e-5}}, 1e-9);
  for (const Index length : {0, 1, 1000, 2047, 2048})
    CHECK(dynamic_ntk_frequencies(llama, ten, length).inv_freq == rotary_frequencies(llama).inv_freq);
  check_throws<std::invalid_argument>([&] { dynamic_ntk_frequencies(llama, ten, -1); }, {"seq_len", "-1"});
  check_throws<std::invalid_argument>(
      [] { dynamic_ntk_frequencies({.head_dim = 2}, {.factor = 2, .max_position_embeddings = 8}, 16); },
      {"rotary_dim", "more than 2"});
  check_throws<std::invalid_argument>([] { dynamic_ntk_frequencies(llama, {.factor = 0.5}, 1); },
                                      {"factor", "0.5"});
  check_throws<std::invalid_argument>([] { dynamic_ntk_frequencies(llama, {.factor = 2}, 1); },
                                      {"max_position_embeddings"});
}

TEST_CASE("dynamic NTK does not depend on what was asked before") {
  const DynamicNtkConfig scaling{.factor = 4, .max_position_embeddings = 64};
  const auto first = dynamic_ntk_frequencies(llama, scaling, 100).inv_freq;
  (void)dynamic_ntk_frequencies(llama, scaling, 100000);
  CHECK(dynamic_ntk_frequencies(llama, scaling, 100).inv_freq == first);
}

TEST_CASE("NTK with a fixed alpha is a larger base at every length") {
  const double alpha = 1000;  // Hunyuan
  const auto scaled = ntk_alpha_frequencies(llama, alpha).inv_freq;
  const double theta = 10000 * std::pow(alpha, 128.0 / 126.0);
  for (std::size_t i = 0; i < scaled.size(); ++i)
    CHECK(std::abs(scaled[i] / std::pow(theta, -2.0 * static_cast<double>(i) / 128) - 1) < 1e-13);
  check_throws<std::invalid_argument>([] { ntk_alpha_frequencies(llama, 0); }, {"alpha", "0"});
}

TEST_CASE("YaRN: golden points of three models") {
  const auto yarn = yarn_frequencies(llama, {.factor = 10, .original_max_position_embeddings = 2048});
  check_points(yarn,
               {{17, 8.34789608e-2},
                {18, 6.95901826e-2},
                {31, 5.31199713e-3},
                {40, 4.30069762e-4},
                {45, 1.53992653e-4},
                {46, 1.33352143e-4},
                {63, 1.15478198e-5}},
               1e-8);
  for (std::size_t i = 0; i <= 16; ++i) CHECK(yarn.inv_freq[i] == rotary_frequencies(llama).inv_freq[i]);
  check_points(
      yarn_frequencies({.head_dim = 256}, {.factor = 10, .original_max_position_embeddings = 131072}),
      {{91, 1.4067e-3}, {127, 3.44313e-5}}, 2e-5);
  const auto deepseek =
      yarn_frequencies({.head_dim = 64}, {.factor = 40, .original_max_position_embeddings = 4096});
  check_points(
      deepseek,
      {{10, 5.62341325e-2}, {16, 5.5e-3}, {22, 1.77827941e-4}, {23, 3.33380358e-5}, {31, 3.33380358e-6}},
      2e-9);
  const auto gpt_oss =
      yarn_frequencies({.head_dim = 64, .rope_theta = 150000},
                       {.factor = 32, .original_max_position_embeddings = 4096, .truncate = false});
  check_points(gpt_oss,
               {{8, 5.08132748e-2},
                {9, 3.17056962e-2},
                {12, 6.79495949e-3},
                {16, 4.56483919e-4},
                {17, 1.29318701e-4},
                {31, 3.02351143e-7}},
               2e-9);
  CHECK(gpt_oss.attention_factor == Approx(1.3465735903).epsilon(1e-10));
}

TEST_CASE("YaRN: the ramp ends at the first and at the last pair where its ends lie beyond them") {
  // 32 turns within 128 positions: pair 64 ln(128 / 64 pi) / (2 ln 10000) = -1.57, so the ramp starts at pair 0
  // and not at -2. One turn: pair 10.47, so it ends at 11.
  const RotaryConfig config{.head_dim = 64};
  const auto plain = rotary_frequencies(config).inv_freq;
  const auto start =
      yarn_frequencies(config, {.factor = 8, .original_max_position_embeddings = 128}).inv_freq;
  CHECK(start[0] == 1.0);
  for (std::size_t i = 0; i < 32; ++i) {
    const double g = i < 11 ? static_cast<double>(i) / 11 : 1.0;
    CHECK(start[i] == Approx(plain[i] * (1 - g) + plain[i] / 8 * g).epsilon(1e-14));
  }
  // Base 10, 1000 positions: the pair of 32 turns is 2.79, that of one turn 8.81. The ramp goes from 2 to 7, the
  // rotated width less one, as transformers has it: pair 3 is a fifth on its way.
  const auto end = yarn_frequencies({.head_dim = 8, .rope_theta = 10},
                                    {.factor = 8, .original_max_position_embeddings = 1000})
                       .inv_freq;
  const double last = std::pow(10.0, -0.75);
  CHECK(end[2] == Approx(std::pow(10.0, -0.5)).epsilon(1e-14));
  CHECK(end[3] == Approx(last * 4 / 5 + last / 8 / 5).epsilon(1e-14));
}

TEST_CASE("YaRN: which attention factor wins, and DeepSeek's softmax scale apart") {
  YarnConfig scaling{.factor = 10, .original_max_position_embeddings = 2048};
  const auto factor = [&] { return yarn_frequencies(llama, scaling).attention_factor; };
  CHECK(factor() == Approx(1.2302585093).epsilon(1e-10));
  for (const auto& [s, expected] : {std::pair{2.0, 1.0693147181}, {20.0, 1.2995732274}, {1.0, 1.0}}) {
    scaling.factor = s;
    CHECK(factor() == Approx(expected).epsilon(1e-10));
  }
  scaling.factor = 40, scaling.mscale = 1.0;
  CHECK(factor() == Approx(0.1 * std::log(40.0) + 1));  // one of the two alone changes nothing
  CHECK(yarn_softmax_scale(scaling) == 1.0);
  scaling.mscale_all_dim = 1.0;
  CHECK(factor() == 1.0);
  CHECK(yarn_softmax_scale(scaling) == Approx(1.8738542071).epsilon(1e-10));
  scaling.mscale = 0.707, scaling.mscale_all_dim = std::nullopt;
  CHECK(factor() == Approx(0.1 * std::log(40.0) + 1));
  scaling.mscale = std::nullopt, scaling.mscale_all_dim = 0.707;
  CHECK(factor() == Approx(0.1 * std::log(40.0) + 1));
  scaling.mscale = 0.707, scaling.mscale_all_dim = 1.0;
  CHECK(yarn_softmax_scale(scaling) == Approx(1.8738542071).epsilon(1e-10));  // of mscale_all_dim alone
  CHECK(factor() == Approx((0.0707 * std::log(40.0) + 1) / (0.1 * std::log(40.0) + 1)));
  scaling.attention_factor = 0.5;
  CHECK(factor() == 0.5);
  for (const double s : {0.25, 1.0}) CHECK(yarn_magnitude(s, 0.5) == 1.0);
  CHECK(yarn_magnitude(40, 0.5) == Approx(0.05 * std::log(40.0) + 1));
}

TEST_CASE("YaRN refuses what it can't scale") {
  check_throws<std::invalid_argument>([] { yarn_frequencies(llama, {.factor = 2}); },
                                      {"original_max_position_embeddings", "0"});
  check_throws<std::invalid_argument>(
      [] { yarn_frequencies(llama, {.factor = 0.5, .original_max_position_embeddings = 8}); },
      {"factor", "0.5"});
  check_throws<std::invalid_argument>(
      [] {
        yarn_frequencies(
            llama, {.factor = 2, .original_max_position_embeddings = 8, .beta_fast = 1, .beta_slow = 32});
      },
      {"beta_fast", "1", "32"});
}

TEST_CASE("ggml's YaRN: its own magnitude on top of attn_factor, and linear scaling without ext_factor") {
  const GgmlYarnConfig scaling{.freq_scale = 0.1, .n_ctx_orig = 2048, .ext_factor = 1, .attn_factor = 0.5};
  const auto ggml = ggml_yarn_frequencies(llama, scaling);
  const auto hf = yarn_frequencies(llama, {.factor = 10, .original_max_position_embeddings = 2048});
  for (std::size_t i = 0; i < hf.inv_freq.size(); ++i)
    CHECK(std::abs(ggml.inv_freq[i] / hf.inv_freq[i] - 1) < 1e-14);  // the same ramp
  CHECK(ggml.attention_factor == Approx(0.5 * (1 + 0.1 * std::log(10.0))));
  const auto linear = ggml_yarn_frequencies(llama, {.freq_scale = 0.25, .attn_factor = 0.5});
  for (std::size_t i = 0; i < hf.inv_freq.size(); ++i)
    CHECK(linear.inv_freq[i] == 0.25 * rotary_frequencies(llama).inv_freq[i]);
  CHECK(linear.attention_factor == 0.5);
  check_throws<std::invalid_argument>([] { ggml_yarn_frequencies(llama, {.freq_scale = 0}); },
                                      {"freq_scale", "0"});
}

TEST_CASE("ggml's YaRN: ext_factor says how much of the ramp counts") {
  // rope_yarn: theta = theta_interp (1 - mix) + theta_extrap mix, mix = ramp ext_factor, ramp 1 for fast pairs.
  const auto plain = rotary_frequencies(llama).inv_freq;
  const auto full = ggml_yarn_frequencies(llama, {.freq_scale = 0.1, .n_ctx_orig = 2048, .ext_factor = 1});
  for (const double ext_factor : {0.25, 0.5, 2.0}) {
    const auto part =
        ggml_yarn_frequencies(llama, {.freq_scale = 0.1, .n_ctx_orig = 2048, .ext_factor = ext_factor});
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const double slow = 0.1 * plain[i], ramp = (full.inv_freq[i] - slow) / (plain[i] - slow);
      CHECK(part.inv_freq[i] == Approx(slow + ramp * ext_factor * (plain[i] - slow)).epsilon(1e-12));
    }
    CHECK(part.inv_freq[0] == Approx(0.1 + ext_factor * 0.9).epsilon(1e-14));  // the ramp is 1 there
    CHECK(part.attention_factor == full.attention_factor);
  }
}

TEST_CASE("ggml's YaRN where the ends of the ramp cross or have no width is a step, as in rope_yarn_ramp") {
  // Ratios to the unscaled frequencies; y = (i - low) / max(0.001, high - low), mix = 1 - clamp(y, 0, 1).
  const auto ratios = [](const RotaryConfig& config, GgmlYarnConfig scaling) {
    scaling.freq_scale = 0.25, scaling.ext_factor = 1;
    const auto plain = rotary_frequencies(config).inv_freq;
    auto scaled = ggml_yarn_frequencies(config, scaling).inv_freq;
    for (std::size_t i = 0; i < plain.size(); ++i) scaled[i] /= plain[i];
    return scaled;
  };
  // n_ctx_orig 4: d(32) = 64 ln(4 / 201.06) / ln 10000 = -27.2 and d(1) = -3.1, so low = 0, high = -3. At 0 to 6
  // tokens the same; 7 make one turn, and then the ends are in order again, low = 0, high = 1.
  for (Index length = 0; length <= 7; ++length) {
    INFO("n_ctx_orig " << length);
    const auto step = ratios(llama, {.n_ctx_orig = length});
    CHECK(step[0] == 1.0);
    for (std::size_t i = 1; i < 64; ++i) CHECK(step[i] == 0.25);
  }
  // theta 10: d(32) = 64 ln(65536 / 201.06) / ln 10 = 160.8 lies beyond the last pair: all are fast.
  for (const double ratio : ratios({.head_dim = 128, .rope_theta = 10}, {.n_ctx_orig = 65536}))
    CHECK(ratio == 1.0);
  // A base below 1 counts the turns the other way.
  for (const double ratio : ratios({.head_dim = 8, .rope_theta = 0.5}, {.n_ctx_orig = 0}))
    CHECK(ratio == 1.0);
  // In order, the ramp is that of the paper: head_dim 8, 64 tokens: d(4) = .4, d(1) = 1.008, so 0 to 2.
  const auto ramp = ratios({.head_dim = 8}, {.n_ctx_orig = 64, .beta_fast = 4});
  for (const auto& [i, ratio] : Points{{0, 1.0}, {1, 0.625}, {2, 0.25}, {3, 0.25}})
    CHECK(ramp[i] == Approx(ratio).epsilon(1e-15));
  const auto refused = [](const GgmlYarnConfig& scaling, const RotaryConfig& config,
                          std::initializer_list<const char*> parts) {
    check_throws<std::invalid_argument>([&] { ggml_yarn_frequencies(config, scaling); }, parts);
  };
  refused({.n_ctx_orig = -1, .ext_factor = 1}, llama, {"n_ctx_orig", "at least 0", "-1"});
  refused({.n_ctx_orig = 8, .ext_factor = 1, .beta_fast = 1, .beta_slow = 2}, llama, {"beta_fast", "1", "2"});
  refused({.n_ctx_orig = 8, .ext_factor = 1, .beta_slow = 0}, llama, {"beta_fast", "beta_slow > 0"});
  refused({.n_ctx_orig = 8, .ext_factor = posenc_test::quiet_nan}, llama, {"ext_factor", "finite"});
  refused({.n_ctx_orig = 8, .attn_factor = posenc_test::infinity}, llama, {"attn_factor", "finite"});
  refused({.n_ctx_orig = 8, .ext_factor = 1}, {.head_dim = 8, .rope_theta = 1}, {"rope_theta", "1"});
}

TEST_CASE("YaRN where the ends of the ramp cross runs backwards, as in transformers") {
  // linear_ramp_factor(low, high): clamp((i - low) / (high - low), 0, 1), and high += 0.001 where they are equal.
  const auto ratios = [](const RotaryConfig& config, const YarnConfig& scaling) {
    const auto plain = rotary_frequencies(config).inv_freq;
    auto scaled = yarn_frequencies(config, scaling).inv_freq;
    for (std::size_t i = 0; i < plain.size(); ++i) scaled[i] /= plain[i];
    return scaled;
  };
  // low = max(floor(-27.2), 0) = 0 and high = ceil(-3.1) = -3: (i - 0) / -3 is below zero, so all are kept.
  for (const double ratio : ratios(llama, {.factor = 4, .original_max_position_embeddings = 4}))
    CHECK(ratio == 1.0);
  // Equal ends, 0 and ceil(-0.16) = 0 of 6 tokens: a step behind pair 0.
  const auto step = ratios(llama, {.factor = 4, .original_max_position_embeddings = 6});
  CHECK(step[0] == 1.0);
  for (std::size_t i = 1; i < 64; ++i) CHECK(step[i] == 0.25);
  // theta 10: low = floor(160.8) = 160, high = min(ceil(257.1), 127) = 127: (i - 160) / -33 is above 1.
  for (const double ratio :
       ratios({.head_dim = 128, .rope_theta = 10}, {.factor = 4, .original_max_position_embeddings = 65536}))
    CHECK(ratio == 0.25);
  check_throws<std::invalid_argument>(
      [] {
        yarn_frequencies({.head_dim = 8, .rope_theta = 1},
                         {.factor = 2, .original_max_position_embeddings = 8});
      },
      {"rope_theta", "1"});
}

TEST_CASE("scaling does not ask which way a pair turns: scaled(negated(f)) = negated(scaled(f))",
          "[property]") {
  const std::vector<double> divisors{1.0, 2.0, 3.5, 0.5};
  const auto check = [](const RotaryFrequencies& plain, const auto& scale) {
    const RotaryFrequencies one = scale(negated(plain)), two = negated(scale(plain));
    REQUIRE(one.inv_freq.size() == two.inv_freq.size());
    for (std::size_t i = 0; i < one.inv_freq.size();
         ++i)  // equal, but for a compiler that reorders divisions
      CHECK(std::abs(one.inv_freq[i] - two.inv_freq[i]) <= 4e-16 * std::abs(two.inv_freq[i]));
    CHECK(one.attention_factor == two.attention_factor);
    CHECK(one.inv_freq != negated(plain).inv_freq);
  };
  const RotaryFrequencies small = rotary_frequencies({.head_dim = 8});
  check(small, [](const RotaryFrequencies& f) { return linear_scaled(f, 3); });
  check(small, [&](const RotaryFrequencies& f) { return divided_frequencies(f, divisors); });
  for (const double theta : {10000.0, 500000.0})
    for (const double high : {1.0, 4.0})
      check(rotary_frequencies({.head_dim = 128, .rope_theta = theta}), [&](const RotaryFrequencies& f) {
        return llama3_scaled(
            f, {.factor = 8, .high_freq_factor = high, .original_max_position_embeddings = 8192});
      });
  // nanochat's way round, pair by pair: the three bands of Llama 3.1.
  const auto turned = llama3_scaled(negated(rotary_frequencies({.head_dim = 128, .rope_theta = 500000})),
                                    {.factor = 8, .original_max_position_embeddings = 8192});
  check_points(turned, {{0, -1.0}, {28, -3.21144599e-3}, {30, -1.37189357e-3}, {63, -3.06892599e-7}}, 2e-9);
}

TEST_CASE("LongRoPE: two lists, one magnitude, chosen by length once") {
  LongRopeConfig scaling{.original_max_position_embeddings = 2048, .factor = 10};
  for (int i = 0; i < 64; ++i) scaling.short_factor.push_back(2), scaling.long_factor.push_back(i + 1);
  CHECK(longrope_choice(scaling, 2048) == LongRopeChoice::short_factor);
  CHECK(longrope_choice(scaling, 2049) == LongRopeChoice::long_factor);
  const auto plain = rotary_frequencies(llama).inv_freq;
  const auto brief = longrope_frequencies(llama, scaling, LongRopeChoice::short_factor);
  const auto far = longrope_frequencies(llama, scaling, LongRopeChoice::long_factor);
  for (std::size_t i = 0; i < 64; ++i) {
    CHECK(brief.inv_freq[i] == plain[i] / 2);
    CHECK(far.inv_freq[i] == plain[i] / static_cast<double>(i + 1));
  }
  CHECK(brief.attention_factor == far.attention_factor);
  const auto factor = [&] {
    return longrope_frequencies(llama, scaling, LongRopeChoice::long_factor).attention_factor;
  };
  CHECK(factor() == Approx(1.1410492817).epsilon(1e-10));
  scaling.factor = 2;
  CHECK(factor() == Approx(1.0444659357).epsilon(1e-10));
  scaling.factor = 20;
  CHECK(factor() == Approx(1.1802129275).epsilon(1e-10));
  scaling.factor = 32, scaling.original_max_position_embeddings = 4096;  // Phi-3-128k
  CHECK(factor() == Approx(1.1902380714).epsilon(1e-10));
  scaling.factor = 1;
  CHECK(factor() == 1.0);
  scaling.short_mscale = 1.2, scaling.long_mscale = 1.3;  // PhiMoE
  CHECK(factor() == 1.3);
  CHECK(longrope_frequencies(llama, scaling, LongRopeChoice::short_factor).attention_factor == 1.2);
  scaling.attention_factor = 0.5;
  CHECK(factor() == 0.5);
  scaling.long_factor.pop_back();
  check_throws<std::invalid_argument>(
      [&] { longrope_frequencies(llama, scaling, LongRopeChoice::short_factor); },
      {"long_factor", "64", "63"});
  scaling.long_factor.push_back(0);
  check_throws<std::invalid_argument>(
      [&] { longrope_frequencies(llama, scaling, LongRopeChoice::short_factor); }, {"long_factor[63]", "0"});
}

TEST_CASE("Llama 3: golden points of two models, three bands") {
  const auto small =
      llama3_scaled(rotary_frequencies(llama), {.factor = 10, .original_max_position_embeddings = 2048});
  check_points(small,
               {{31, 1.0730e-2},
                {32, 7.7785e-3},
                {33, 5.6009e-3},
                {36, 1.9675e-3},
                {40, 3.4539e-4},
                {41, 2.7384e-4},
                {63, 1.15478e-5}},
               3e-5);
  const auto plain = rotary_frequencies(llama).inv_freq;
  for (std::size_t i = 0; i <= 30; ++i) CHECK(small.inv_freq[i] == plain[i]);
  for (std::size_t i = 41; i < 64; ++i) CHECK(small.inv_freq[i] == plain[i] / 10);
  check_points(llama3_scaled(rotary_frequencies({.head_dim = 128, .rope_theta = 500000}),
                             {.factor = 8, .original_max_position_embeddings = 8192}),
               {{28, 3.21144599e-3},
                {29, 2.16657076e-3},
                {30, 1.37189357e-3},
                {32, 5.24846161e-4},
                {34, 1.78507813e-4},
                {35, 9.55621235e-5},
                {36, 7.78465527e-5},
                {63, 3.06892599e-7}},
               2e-9);
  const auto bands = [](double low, double high) {
    return llama3_scaled(rotary_frequencies(llama), {.factor = 8,
                                                     .low_freq_factor = low,
                                                     .high_freq_factor = high,
                                                     .original_max_position_embeddings = 8192});
  };
  const RotaryFrequencies step = bands(1, 1);  // Llama 4 Scout: nothing between the bands
  for (std::size_t i = 0; i < 64; ++i) {
    const bool kept = 8192 * plain[i] / (2 * std::numbers::pi) >= 1;
    CHECK(step.inv_freq[i] == (kept ? plain[i] : plain[i] / 8));
  }
  // A pair of exactly so many turns is fast.
  const RotaryFrequencies four_turns{.head_dim = 2, .inv_freq = {2 * std::numbers::pi * 4 / 8192}};
  for (const double low : {1.0, 4.0})
    CHECK(llama3_scaled(four_turns, {.factor = 8,
                                     .low_freq_factor = low,
                                     .high_freq_factor = 4,
                                     .original_max_position_embeddings = 8192})
              .inv_freq == four_turns.inv_freq);
  check_throws<std::invalid_argument>([&] { bands(4, 1); }, {"high_freq_factor", "1", "4"});
  check_throws<std::invalid_argument>([] { llama3_scaled(rotary_frequencies(llama), {.factor = 8}); },
                                      {"original_max_position_embeddings"});
}

TEST_CASE("proportional: exponent over the head, a tail of pairs that don't turn") {
  const auto quarter = proportional_frequencies(llama, {.partial_rotary_factor = 0.25});
  REQUIRE(quarter.inv_freq.size() == 64);
  for (std::size_t i = 0; i < 64; ++i)
    CHECK(quarter.inv_freq[i] == (i < 16 ? rotary_frequencies(llama).inv_freq[i] : 0.0));
  const auto half = proportional_frequencies(llama, {.partial_rotary_factor = 0.5, .factor = 2});
  CHECK(half.inv_freq[5] == rotary_frequencies(llama).inv_freq[5] / 2);
  // A part that is no whole number of pairs is rounded down, as int() does: 0.3 * 64 = 19.2 and 0.99 * 64 = 63.36.
  for (const auto& [part, turning] : {std::pair{0.3, 19}, {0.99, 63}, {1.0, 64}, {0.01, 0}, {0.0, 0}}) {
    const auto some = proportional_frequencies(llama, {.partial_rotary_factor = part});
    for (int i = 0; i < 64; ++i) CHECK((some.inv_freq[static_cast<std::size_t>(i)] != 0) == (i < turning));
  }
  CHECK(proportional_frequencies(llama, {.factor = 4}).inv_freq ==
        linear_scaled(rotary_frequencies(llama), 4).inv_freq);
  check_throws<std::invalid_argument>(
      [] {
        proportional_frequencies({.head_dim = 128, .partial_rotary_factor = 0.5},
                                 {.partial_rotary_factor = 0.5});
      },
      {"partial_rotary_factor", "ProportionalConfig"});
  for (const double part : {-0.25, 1.25})
    check_throws<std::invalid_argument>(
        [&] { proportional_frequencies(llama, {.partial_rotary_factor = part}); },
        {"partial_rotary_factor", "[0, 1]"});
}

TEST_CASE("explicit frequencies: multipliers, periods and divisors are three things") {
  const std::vector<double> list{1.0, 0.5, 0.25};
  CHECK(frequencies_from_inv_freq(6, list).inv_freq == list);
  CHECK(frequencies_from_inv_freq(6, list).attention_factor == 1.0);
  CHECK(frequencies_from_inv_freq(6, list, 1.5).attention_factor == 1.5);
  CHECK(frequencies_from_periods(6, list).inv_freq == std::vector<double>{1, 2, 4});
  const std::vector<double> still{1.0, posenc_test::infinity};  // MLX's way to leave a pair alone
  CHECK(frequencies_from_periods(4, still).inv_freq == std::vector<double>{1, 0});
  const RotaryFrequencies plain = rotary_frequencies({.head_dim = 6});
  const auto divided = divided_frequencies(plain, list);
  for (std::size_t i = 0; i < 3; ++i) CHECK(divided.inv_freq[i] == plain.inv_freq[i] / list[i]);
  check_throws<std::invalid_argument>([&] { divided_frequencies(plain, still); }, {"freq_factors", "3", "2"});
  for (const double wrong : {0.0, posenc_test::quiet_nan})
    check_throws<std::invalid_argument>([&] { divided_frequencies(plain, std::vector<double>{1, wrong, 1}); },
                                        {"freq_factors[1]"});
  check_throws<std::invalid_argument>([] { frequencies_from_periods(4, std::vector<double>{1, 0}); },
                                      {"periods[1]"});
}

TEST_CASE("by name at run time each scheme is what its own function gives") {
  const YarnConfig yarn{.factor = 4, .original_max_position_embeddings = 64};
  const DynamicNtkConfig dynamic{.factor = 2, .max_position_embeddings = 100};
  CHECK(scaled_frequencies(llama, DefaultScaling{}, 5).inv_freq == rotary_frequencies(llama).inv_freq);
  CHECK(scaled_frequencies(llama, LinearConfig{3}, 5).inv_freq ==
        linear_scaled(rotary_frequencies(llama), 3).inv_freq);
  CHECK(scaled_frequencies(llama, yarn, 5).inv_freq == yarn_frequencies(llama, yarn).inv_freq);
  CHECK(scaled_frequencies(llama, dynamic, 500).inv_freq ==
        dynamic_ntk_frequencies(llama, dynamic, 500).inv_freq);
  CHECK(scaled_frequencies(llama, NtkAlphaConfig{50}, 5).inv_freq ==
        ntk_alpha_frequencies(llama, 50).inv_freq);
  const Llama3Config llama3{.factor = 8, .original_max_position_embeddings = 8192};
  CHECK(scaled_frequencies(llama, llama3, 5).inv_freq ==
        llama3_scaled(rotary_frequencies(llama), llama3).inv_freq);
  const ProportionalConfig proportional{.partial_rotary_factor = 0.25};
  CHECK(scaled_frequencies(llama, proportional, 5).inv_freq ==
        proportional_frequencies(llama, proportional).inv_freq);
  const GgmlYarnConfig ggml{.freq_scale = 0.1, .n_ctx_orig = 2048, .ext_factor = 1};
  CHECK(scaled_frequencies(llama, ggml, 5).inv_freq == ggml_yarn_frequencies(llama, ggml).inv_freq);
  LongRopeConfig longrope{.original_max_position_embeddings = 2048};
  for (int i = 0; i < 64; ++i) longrope.short_factor.push_back(2), longrope.long_factor.push_back(3);
  for (const auto& [length, choice] :
       {std::pair{2048, LongRopeChoice::short_factor}, {2049, LongRopeChoice::long_factor}})
    CHECK(scaled_frequencies(llama, longrope, length).inv_freq ==
          longrope_frequencies(llama, longrope, choice).inv_freq);
  const std::vector<std::pair<RotaryScaling, const char*>> names{{DefaultScaling{}, "default"},
                                                                 {LinearConfig{}, "linear"},
                                                                 {dynamic, "dynamic"},
                                                                 {NtkAlphaConfig{}, "dynamic (alpha)"},
                                                                 {yarn, "yarn"},
                                                                 {longrope, "longrope"},
                                                                 {llama3, "llama3"},
                                                                 {proportional, "proportional"},
                                                                 {ggml, "yarn (ggml)"}};
  for (const auto& [scaling, name] : names) {
    CHECK(rope_type(scaling) == name);
    CHECK(depends_on_length(scaling) == (std::string(name) == "dynamic" || std::string(name) == "longrope"));
  }
}
