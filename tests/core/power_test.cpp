#include "posenc/core/power.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "posenc/bias/alibi.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/rotary/scaling.hpp"
#include "support/support.hpp"

namespace {

using namespace posenc_test;
using posenc::detail::exp2_of;
using posenc::detail::falling_powers;
using posenc::detail::log2_of;
using posenc::detail::log_of;
using posenc::detail::power_of;

/// A sum over the bits of numbers, in order: what differs in one of them differs.
std::uint64_t digest(const std::vector<double>& values) {
  std::uint64_t sum = 0xcbf29ce484222325u;
  for (const double& value : values)
    for (int byte = 0; byte < 8; ++byte)
      sum = (sum ^ (std::bit_cast<std::uint64_t>(value) >> (8 * byte) & 0xffu)) * 0x100000001b3u;
  return sum;
}

}  // namespace

TEST_CASE("power: what is a double is exact", "[property]") {
  CHECK(power_of(10000.0, -0.25) == 0.1);
  CHECK(power_of(4.0, 0.5) == 2.0);
  CHECK(power_of(4.0, -0.5) == 0.5);
  CHECK(power_of(3.0, 4.0) == 81.0);
  CHECK(power_of(0.25, 1.5) == 0.125);
  CHECK(power_of(7.0, 0.0) == 1.0);
  CHECK(power_of(1.0, -123.456) == 1.0);
  CHECK(falling_powers(10000.0, 1, 2, 5) == std::vector<double>{1.0, 0.01, 0.0001, 1e-6, 1e-8});
  CHECK(falling_powers(4.0, 1, 2, 6) == std::vector<double>{1.0, 0.5, 0.25, 0.125, 0.0625, 0.03125});
  CHECK(falling_powers(0.25, 1, 2, 4) == std::vector<double>{1.0, 2.0, 4.0, 8.0});
  CHECK(falling_powers(1.0, 2, 7, 3) == std::vector<double>{1.0, 1.0, 1.0});
  CHECK(falling_powers(5.0, 2, 7, 0).empty());
  CHECK(falling_powers(5.0, 1, 0, 1) == std::vector<double>{1.0});
  // The square root is rounded by the processor.
  for (const double x : {2.0, 3.0, 1e4, 5e5, 0.7, 1e300, 1e-300}) CHECK(power_of(x, 0.5) == std::sqrt(x));
}

TEST_CASE("power: powers of two, subnormal ones and what is beyond", "[property]") {
  for (int n = -1022; n <= 1023; ++n) CHECK(exp2_of(n) == std::ldexp(1.0, n));
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
  for (int n = -1074; n < -1022; ++n) CHECK(bits(exp2_of(n)) == std::uint64_t{1} << (n + 1074));
  CHECK(bits(exp2_of(-1075.0)) == 0);  // the middle between 0 and the least number: to even
  CHECK(bits(exp2_of(-1074.9)) == 1);
  CHECK(bits(exp2_of(-1e300)) == 0);
  CHECK(is_infinite(exp2_of(1024.0)));
  CHECK(is_infinite(exp2_of(1e300)));
  CHECK(bits(exp2_of(std::nextafter(1024.0, 0.0))) < posenc::detail::infinity_bits<double>);
  CHECK(is_infinite(power_of(1e300, 2.0)));
  CHECK(bits(power_of(1e300, -2.0)) == 0);
}

TEST_CASE("power: logarithms", "[property]") {
  // Subnormal numbers: ln 2^-1074 = -744.4400719213812149, and 3 of them.
  CHECK(log_of(0x1p-1074) == -744.4400719213812149);
  CHECK(log_of(0x3p-1074) == -743.3414596327132);
  CHECK(log2_of(0x1p-1074) == -1074.0);
  CHECK(log2_of(0x1p-1030) == -1030.0);
  CHECK(log_of(1.0) == 0.0);
  CHECK(log_of(2.0) == 0.6931471805599453);
  CHECK(log_of(10.0) == 2.302585092994046);
  CHECK(log_of(0.1) == -2.3025850929940455);
  CHECK(log_of(1 + 0x1p-52) == 0x1.fffffffffffffp-53);
  CHECK(log_of(1 - 0x1p-53) == -0x1.0000000000000p-53);
  CHECK(log_of((std::numeric_limits<double>::max)()) == 709.782712893384);
  for (int n = -1022; n <= 1023; ++n) CHECK(log2_of(std::ldexp(1.0, n)) == n);
  CHECK(log2_of(10.0) == 3.321928094887362);
  CHECK(posenc::detail::is_minus_infinity(log_of(0.0)));
  CHECK(posenc::detail::is_minus_infinity(log2_of(0.0)));
  CHECK(is_infinite(log_of(infinity)));
  CHECK(is_infinite(log2_of(infinity)));
}

// Numbers that every platform, compiler and flag must give, bit for bit.
TEST_CASE("power: frequencies and slopes have the same bits everywhere", "[property]") {
  using namespace posenc;
  std::vector<std::pair<const char*, std::uint64_t>> got;
  const auto note = [&](const char* name, const std::vector<double>& values) {
    got.emplace_back(name, digest(values));
  };
  const RotaryConfig llama{.head_dim = 128, .rope_theta = 500000.0};
  const auto noted = [&](const char* name, const RotaryFrequencies& f) {
    auto values = f.inv_freq;
    values.push_back(f.attention_factor);
    note(name, values);
  };
  noted("plain", rotary_frequencies(llama));
  note("sinusoid 2i/d", sinusoidal_frequencies({.d_model = 512}));
  note("sinusoid i/(half-1)",
       sinusoidal_frequencies({.d_model = 512, .exponent = SinusoidExponent::i_over_half_minus_one}));
  noted("linear", linear_scaled(rotary_frequencies(llama), 3.0));
  noted("dynamic", dynamic_ntk_frequencies(llama, {.factor = 2.7, .max_position_embeddings = 4096}, 10001));
  noted("yarn", yarn_frequencies(llama, {.factor = 40, .original_max_position_embeddings = 4096}));
  noted("yarn, not whole pairs",
        yarn_frequencies(llama, {.factor = 32, .original_max_position_embeddings = 4096, .truncate = false}));
  noted("yarn, mscale", yarn_frequencies(llama, {.factor = 40,
                                                 .original_max_position_embeddings = 4096,
                                                 .mscale = 0.707,
                                                 .mscale_all_dim = 1.1}));
  noted("ggml yarn",
        ggml_yarn_frequencies(
            llama, {.freq_scale = 0.3, .n_ctx_orig = 4096, .ext_factor = 0.9, .attn_factor = 1.1}));
  noted("llama3", llama3_scaled(rotary_frequencies(llama), {.factor = 8.1,
                                                            .low_freq_factor = 1,
                                                            .high_freq_factor = 4,
                                                            .original_max_position_embeddings = 8192}));
  noted("proportional", proportional_frequencies(llama, {.partial_rotary_factor = 0.5, .factor = 7.0}));
  LongRopeConfig lists{.original_max_position_embeddings = 4096, .factor = 32};
  for (int i = 0; i < 64; ++i)
    lists.short_factor.push_back(1 + i / 64.0), lists.long_factor.push_back(1 + i * 0.3125);
  noted("longrope", longrope_frequencies(llama, lists, LongRopeChoice::long_factor));
  note("alibi 12", alibi_slopes(12));
  note("alibi 40, 7.3", alibi_slopes(40, 7.3));
  const std::vector<std::pair<const char*, std::uint64_t>> expected = {
      {"plain", 0xf725d5e8b83a0aadu},
      {"sinusoid 2i/d", 0xc528f646ee565241u},
      {"sinusoid i/(half-1)", 0xa7e4a0bb15599601u},
      {"linear", 0xe8a49ed653f6107du},
      {"dynamic", 0x3c56bde9f390eb3cu},
      {"yarn", 0x7f04f07ab01f75d4u},
      {"yarn, not whole pairs", 0xc213071c56972ec9u},
      {"yarn, mscale", 0xec490caa1bbac289u},
      {"ggml yarn", 0xc2b577f17bcf8cc1u},
      {"llama3", 0x4c05edb2c2f13797u},
      {"proportional", 0xf0bb50f8f0dde853u},
      {"longrope", 0xa29729b5d96d936fu},
      {"alibi 12", 0x5e46adf21966de95u},
      {"alibi 40, 7.3", 0xa44e9079cabfb26bu},
  };
  for (const auto& [name, value] : got)
    UNSCOPED_INFO("{\"" << name << "\", 0x" << std::hex << value << "u},");
  CHECK(got.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    INFO(expected[i].first);
    CHECK(got[i].second == expected[i].second);
  }
}
