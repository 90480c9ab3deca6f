// What must hold under -ffast-math too: no configuration takes NaN or infinity, and no sum is reordered.

#include "posenc/core/finite.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "posenc/posenc.hpp"
#include "support/support.hpp"

namespace {

using namespace posenc_test;
namespace detail = posenc::detail;

const std::vector<double> not_finite{quiet_nan, infinity, -infinity};
const std::vector<double> not_positive{quiet_nan, infinity, -infinity, -1.0, 0.0};

/// `make` throws for each of these values, and the message has the name and the value.
template <class Make>
void refuses(const std::vector<double>& values, const char* name, const Make& make) {
  for (const double& value : values) {
    INFO(name << " = " << value);
    const std::string got = posenc_test::is_nan(value) ? "nan" : posenc_test::is_infinite(value) ? "inf" : "";
    check_throws<std::invalid_argument>([&] { (void)make(value); }, {name, got.c_str()});
  }
}

const posenc::RotaryConfig head{.head_dim = 8};

}  // namespace

TEMPLATE_TEST_CASE("finite: bits say what a number is", "[property]", float, double) {
  using C = TestType;
  using limits = std::numeric_limits<C>;
  for (const C x : {C{0}, C{-1}, (limits::max)(), -(limits::max)(), (limits::min)(), C{1.5}}) {
    CHECK(detail::is_finite(x));
    CHECK_FALSE(detail::is_infinite(x));
    CHECK_FALSE(detail::is_nan(x));
    CHECK_FALSE(detail::is_minus_infinity(x));
    CHECK(detail::is_positive(x) == (x > 0));
  }
  for (const double& special : not_finite) {
    const C x = static_cast<C>(special);
    CHECK_FALSE(detail::is_finite(x));
    CHECK_FALSE(detail::is_positive(x));
    CHECK(detail::is_infinite(x) != detail::is_nan(x));
  }
  CHECK(detail::is_nan(static_cast<C>(quiet_nan)));
  CHECK(detail::is_nan(-static_cast<C>(quiet_nan)));
  CHECK(detail::is_minus_infinity(static_cast<C>(-infinity)));
  CHECK(detail::is_minus_infinity(detail::minus_infinity<C>()));
  CHECK_FALSE(detail::is_minus_infinity(static_cast<C>(infinity)));
  CHECK(detail::is_within(C{1}, C{0}, C{1}));
  CHECK_FALSE(detail::is_within(C{2}, C{0}, C{1}));
  CHECK_FALSE(detail::is_within(static_cast<C>(quiet_nan), C{0}, C{1}));
}

TEST_CASE("finite: nothing is cancelled across an opaque value", "[property]") {
  for (const double x : {0.3, 1.7, -2.2}) {
    const double magic = 0x1.8p52;
    CHECK(detail::opaque(x + magic) - magic == std::nearbyint(x));
  }
}

TEST_CASE("finite: no configuration of an embedding takes NaN or infinity", "[property]") {
  refuses(not_positive, "base", [](double x) { return posenc::Sinusoidal({.d_model = 4, .base = x}); });
  refuses(not_finite, "scale", [](double x) { return posenc::Sinusoidal({.d_model = 4, .scale = x}); });
  refuses(not_finite, "frequencies[1]",
          [](double x) { return posenc::Sinusoidal({.d_model = 4}, {1.0, x}); });
  refuses({quiet_nan, infinity, -infinity, -0.1, 1.1}, "p", [](double x) { return posenc::Dropout(x); });
  Eigen::Tensor<float, 2, Eigen::RowMajor> table(4, 4);
  table.setZero();
  refuses(not_finite, "scale", [&](double x) { return posenc::TokenEmbedding<float>(table, {.scale = x}); });
}

TEST_CASE("finite: no configuration of a bias or a softmax takes NaN or infinity", "[property]") {
  refuses(not_finite, "alibi_bias_max", [](double x) { return posenc::alibi_slopes(4, x); });
  refuses(not_finite, "alibi_bias_max",
          [](double x) { return posenc::Alibi({.num_heads = 4, .alibi_bias_max = x}); });
  refuses(not_finite, "scale", [](double x) { return posenc::Alibi({.num_heads = 4, .scale = x}); });
  refuses(not_finite, "slopes[1]",
          [](double x) { return posenc::Alibi(posenc::AlibiConfig{.num_heads = 2}, {1.0, x}); });
  auto scores = random_values<float, 3>({1, 2, 2});
  const auto before = scores;
  const auto at = posenc::consecutive(0, 2);
  const auto by = [&](auto&& call) {
    refuses(not_finite, "scale", [&](double x) {
      call(x);
      return 0;
    });
  };
  by([&](double x) { posenc::softmax(scores.view(), posenc::NoBias{}, at, at, {.scale = x}); });
  by([&](double x) { posenc::softmax_vjp(scores.view(), before.view(), x); });
  CHECK(same_bits(scores, before));
}

TEST_CASE("finite: no configuration of frequencies takes NaN or infinity", "[property]") {
  using namespace posenc;
  refuses(not_positive, "rope_theta",
          [](double x) { return rotary_frequencies({.head_dim = 8, .rope_theta = x}); });
  refuses(not_positive, "partial_rotary_factor",
          [](double x) { return rotary_frequencies({.head_dim = 8, .partial_rotary_factor = x}); });
  refuses(not_positive, "factor", [](double x) { return linear_scaled(rotary_frequencies(head), x); });
  refuses(not_positive, "alpha", [](double x) { return ntk_alpha_frequencies(head, x); });
  refuses(not_positive, "factor", [](double x) {
    return dynamic_ntk_frequencies(head, {.factor = x, .max_position_embeddings = 64}, 128);
  });
  refuses(not_positive, "factor", [](double x) {
    return yarn_frequencies(head, {.factor = x, .original_max_position_embeddings = 64});
  });
  refuses(not_positive, "beta_fast", [](double x) {
    return yarn_frequencies(head, {.factor = 2, .original_max_position_embeddings = 64, .beta_fast = x});
  });
  refuses({quiet_nan, infinity, -infinity, 0.0}, "beta_fast", [](double x) {
    return yarn_frequencies(head, {.factor = 2, .original_max_position_embeddings = 64, .beta_slow = x});
  });
  refuses(not_finite, "attention_factor", [](double x) {
    return Rotary(
        yarn_frequencies(head, {.factor = 2, .original_max_position_embeddings = 64, .attention_factor = x}),
        Pairing::half);
  });
  refuses(not_finite, "mscale", [](double x) {
    return yarn_frequencies(
        head, {.factor = 2, .original_max_position_embeddings = 64, .mscale = x, .mscale_all_dim = 1});
  });
  refuses(not_finite, "mscale_all_dim", [](double x) {
    return yarn_frequencies(
        head, {.factor = 2, .original_max_position_embeddings = 64, .mscale = 1, .mscale_all_dim = x});
  });
  refuses(not_positive, "freq_scale",
          [](double x) { return ggml_yarn_frequencies(head, {.freq_scale = x}); });
  refuses(not_finite, "ext_factor", [](double x) { return ggml_yarn_frequencies(head, {.ext_factor = x}); });
  refuses(not_finite, "ext_factor", [](double x) { return ggml_yarn_frequencies(head, {.attn_factor = x}); });
  const auto llama3 = [](double factor, double low, double high) {
    return llama3_scaled(rotary_frequencies(head), {.factor = factor,
                                                    .low_freq_factor = low,
                                                    .high_freq_factor = high,
                                                    .original_max_position_embeddings = 64});
  };
  refuses(not_positive, "factor", [&](double x) { return llama3(x, 1, 4); });
  refuses(not_positive, "high_freq_factor", [&](double x) { return llama3(8, x, 4); });
  refuses(not_positive, "high_freq_factor", [&](double x) { return llama3(8, 1, x); });
  refuses(not_positive, "factor", [](double x) { return proportional_frequencies(head, {.factor = x}); });
  refuses({quiet_nan, infinity, -infinity, -0.1, 1.1}, "partial_rotary_factor",
          [](double x) { return proportional_frequencies(head, {.partial_rotary_factor = x}); });
  LongRopeConfig lists{.short_factor = {1, 1, 1, 1}, .long_factor = {1, 2, 3, 4}};
  lists.original_max_position_embeddings = 64;
  refuses(not_positive, "factor", [&](double x) {
    auto config = lists;
    config.factor = x;
    return longrope_frequencies(head, config, LongRopeChoice::long_factor);
  });
  refuses(not_positive, "long_factor[2]", [&](double x) {
    auto config = lists;
    config.long_factor[2] = x;
    return longrope_frequencies(head, config, LongRopeChoice::long_factor);
  });
  refuses({quiet_nan, 0.0}, "periods[1]",
          [](double x) { return frequencies_from_periods(4, std::vector<double>{1.0, x}); });
  refuses({quiet_nan, 0.0}, "freq_factors[1]", [](double x) {
    return divided_frequencies(rotary_frequencies(head), std::vector<double>{1.0, x, 1.0, 1.0});
  });
  refuses(not_finite, "frequencies[0]", [](double x) {
    return Rotary(frequencies_from_inv_freq(2, std::vector<double>{x}), Pairing::half);
  });
  refuses(not_finite, "attention_factor", [](double x) {
    return Rotary(frequencies_from_inv_freq(2, std::vector<double>{1.0}, x), Pairing::half);
  });
}

TEST_CASE("finite: nothing else that turns takes NaN or infinity", "[property]") {
  using namespace posenc;
  const Rotary rope(rotary_frequencies(head), Pairing::half);
  refuses(not_positive, "gamma", [&](double x) { return Xpos(rope, {.gamma = x}); });
  refuses(not_positive, "scale_base", [&](double x) { return Xpos(rope, {.scale_base = x}); });
  refuses(not_finite, "scale", [](double x) { return AttentionTemperature({.scale = x}); });
  refuses(not_positive, "length", [](double x) { return AttentionTemperature({.length = x}); });
  refuses({quiet_nan, infinity, -1.0}, "segments[0].interval", [](double x) {
    return mrope_positions(std::vector<MropeSegment>{{.frames = 2, .rows = 2, .columns = 2, .interval = x}});
  });
  for (const double& x : not_finite)
    check_throws<std::out_of_range>([&] { (void)Coordinate::of(x); }, {"coordinate"});
}
