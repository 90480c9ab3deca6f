// The frequencies of a config: theta_i = rope_theta^(-2i/d) over the rotated width d.

#include "posenc/rotary/frequencies.hpp"

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "posenc/rotary/pairing.hpp"
#include "support/support.hpp"

using posenc::Index;
using posenc::rotary_frequencies;
using posenc::RotaryConfig;
using posenc_test::check_throws;
using posenc_test::max_difference;

namespace {

/// The formula by another road: an exponential of a logarithm.
double theta(double base, Index pair, Index width) {
  return static_cast<double>(
      std::exp(-2.0L * static_cast<long double>(pair) / static_cast<long double>(width) *
               std::log(static_cast<long double>(base))));
}

}  // namespace

TEST_CASE("the frequencies of a config are powers of its base", "[rotary]") {
  const Index head_dim = GENERATE(Index{2}, Index{6}, Index{64}, Index{96}, Index{128}, Index{2052});
  const double base = GENERATE(10000.0, 500000.0, 1e6, 5e6, 100.0, 1.5);
  const auto frequencies = rotary_frequencies({.head_dim = head_dim, .rope_theta = base});
  CHECK(frequencies.head_dim == head_dim);
  CHECK(frequencies.rotary_dim() == head_dim);
  CHECK(frequencies.attention_factor == 1.0);
  REQUIRE(frequencies.inv_freq.size() == static_cast<std::size_t>(head_dim / 2));
  CHECK(frequencies.inv_freq.front() == 1.0);
  for (std::size_t i = 0; i < frequencies.inv_freq.size(); ++i) {
    INFO("pair " << i);
    CHECK(frequencies.inv_freq[i] == Approx(theta(base, static_cast<Index>(i), head_dim)).epsilon(4e-16));
    if (i > 0) CHECK(frequencies.inv_freq[i] < frequencies.inv_freq[i - 1]);
  }
}

TEST_CASE("the frequencies of a head of 8 are 1, 1/10, 1/100, 1/1000", "[rotary]") {
  const std::vector<double> expected = {1.0, 0.1, 0.01, 0.001};
  CHECK(max_difference(rotary_frequencies({.head_dim = 8}).inv_freq, expected) <= 1e-17);
  // Two widths in one: every second frequency of a head of 16.
  const auto wider = rotary_frequencies({.head_dim = 16}).inv_freq;
  REQUIRE(wider.size() == 8);
  CHECK(max_difference(std::vector<double>{wider[0], wider[2], wider[4], wider[6]}, expected) <= 1e-17);
  CHECK(wider[1] == Approx(0.31622776601683794).epsilon(1e-15));
}

TEST_CASE("a base of one turns all pairs alike and a smaller one speeds them up", "[rotary]") {
  for (const double frequency : rotary_frequencies({.head_dim = 10, .rope_theta = 1.0}).inv_freq)
    CHECK(frequency == 1.0);
  const std::vector<double> expected = {1.0, 10.0};
  CHECK(max_difference(rotary_frequencies({.head_dim = 4, .rope_theta = 0.01}).inv_freq, expected) <= 1e-14);
}

TEST_CASE("a partial width has the frequencies of a head of that width", "[rotary]") {
  const auto whole = rotary_frequencies({.head_dim = 32}).inv_freq;
  const auto by_factor = rotary_frequencies({.head_dim = 80, .partial_rotary_factor = 0.4});
  const auto by_number = rotary_frequencies({.head_dim = 80, .rotary_dim = 32});
  CHECK(by_factor.head_dim == 80);
  CHECK(by_factor.rotary_dim() == 32);
  CHECK(by_factor.inv_freq == whole);
  CHECK(by_number.head_dim == 80);
  CHECK(by_number.inv_freq == whole);
}

TEST_CASE("a partial factor gives the width that Hugging Face's int() gives", "[rotary]") {
  const auto width = [](Index head_dim, double factor) {
    return rotary_frequencies({.head_dim = head_dim, .partial_rotary_factor = factor}).rotary_dim();
  };
  CHECK(width(96, 0.25) == 24);   // GPT-NeoX 20B
  CHECK(width(80, 0.4) == 32);    // Phi-2
  CHECK(width(64, 0.25) == 16);   // Pythia
  CHECK(width(128, 0.5) == 64);   // GLM-4
  CHECK(width(50, 0.45) == 22);   // 22.5, cut
  CHECK(width(100, 0.29) == 28);  // 28.999999999999996 in double, cut
  CHECK(width(3, 0.67) == 2);
  CHECK(rotary_frequencies({.head_dim = 256, .rotary_dim = 64}).rotary_dim() == 64);  // GPT-J
  CHECK(rotary_frequencies({.head_dim = 7, .rotary_dim = 4}).rotary_dim() == 4);
}

TEST_CASE("a config that fits no head is refused by name", "[rotary]") {
  const auto refused = [](const RotaryConfig& config, std::initializer_list<const char*> parts) {
    check_throws<std::invalid_argument>([&] { rotary_frequencies(config); }, parts);
  };
  static const double nan = posenc_test::quiet_nan;
  static const double infinity = posenc_test::infinity;
  refused({}, {"head_dim", "at least 2", "got 0"});
  refused({.head_dim = -8}, {"head_dim", "at least 2", "got -8"});
  refused({.head_dim = 1}, {"an even number", "head_dim = 1", "got 1"});
  refused({.head_dim = 5}, {"head_dim: expected an even number", "got 5"});

  refused({.head_dim = 8, .rope_theta = 0.0}, {"rope_theta", "positive finite", "got 0"});
  refused({.head_dim = 8, .rope_theta = -1e4}, {"rope_theta", "positive finite", "got -10000"});
  refused({.head_dim = 8, .rope_theta = nan}, {"rope_theta", "positive finite", "nan"});
  refused({.head_dim = 8, .rope_theta = infinity}, {"rope_theta", "positive finite", "got inf"});

  refused({.head_dim = 8, .partial_rotary_factor = 0.0}, {"partial_rotary_factor", "(0, 1]", "got 0"});
  refused({.head_dim = 8, .partial_rotary_factor = -0.5}, {"partial_rotary_factor", "(0, 1]", "got -0.5"});
  refused({.head_dim = 8, .partial_rotary_factor = 1.5}, {"partial_rotary_factor", "(0, 1]", "got 1.5"});
  refused({.head_dim = 8, .partial_rotary_factor = nan}, {"partial_rotary_factor", "(0, 1]", "nan"});
  refused({.head_dim = 8, .partial_rotary_factor = 0.1},
          {"partial_rotary_factor", "an even number", "got 0"});
  refused({.head_dim = 100, .partial_rotary_factor = 0.25},
          {"partial_rotary_factor", "an even number", "got 25"});

  refused({.head_dim = 8, .rotary_dim = 0}, {"rotary_dim", "an even number in [2, head_dim = 8]", "got 0"});
  refused({.head_dim = 8, .partial_rotary_factor = 0.5, .rotary_dim = 0},
          {"either rotary_dim or partial_rotary_factor", "got 0 and 0.5"});
  refused({.head_dim = 8, .rotary_dim = 3}, {"rotary_dim", "an even number", "head_dim = 8", "got 3"});
  refused({.head_dim = 8, .rotary_dim = 10}, {"rotary_dim", "head_dim = 8", "got 10"});
  refused({.head_dim = 8, .rotary_dim = -2}, {"rotary_dim", "an even number", "got -2"});
  refused({.head_dim = 8, .partial_rotary_factor = 0.5, .rotary_dim = 4},
          {"either rotary_dim or partial_rotary_factor", "got 4 and 0.5"});
}

TEST_CASE("a window lies inside the head", "[rotary]") {
  using posenc::Window;
  CHECK(Window::leading().first(80, 32) == 0);
  CHECK(Window::trailing().first(80, 32) == 48);
  CHECK(Window::starting_at(7).first(80, 32) == 7);
  CHECK(Window::starting_at(48).first(80, 32) == 48);
  CHECK(Window::trailing().first(32, 32) == 0);
  check_throws<std::invalid_argument>([] { Window::starting_at(-1); },
                                      {"Window::starting_at", "at least 0", "got -1"});
  check_throws<std::invalid_argument>([] { Window::starting_at(49).first(80, 32); },
                                      {"window", "32 rotated dimensions", "head_dim = 80", "from 49"});
  check_throws<std::invalid_argument>([] { Window::leading().first(8, 10); },
                                      {"window", "10 rotated dimensions", "head_dim = 8"});
  check_throws<std::invalid_argument>([] { Window::trailing().first(8, 10); },
                                      {"window", "10 rotated dimensions", "head_dim = 8"});
  constexpr Index huge = (std::numeric_limits<Index>::max)();
  check_throws<std::invalid_argument>([] { Window::starting_at(huge).first(80, 32); }, {"window"});
}

TEST_CASE("a width that no model has is refused") {
  const Index most = std::numeric_limits<Index>::max();
  for (const Index width : {most - 1, Index{1} << 62, (Index{1} << 24) + 2})
    check_throws<std::invalid_argument>([&] { (void)posenc::rotary_frequencies({.head_dim = width}); },
                                        {"posenc: head_dim", "at most 2^24", "got"});
}

TEST_CASE("an axis may be any int") {
  posenc::RotaryFrequencies f = posenc::rotary_frequencies({.head_dim = 4});
  f.axis = {0, std::numeric_limits<int>::max()};
  CHECK(f.axes() == Index{1} << 31);
}
