// The angles against MPFR: the reference is cos(p f) of the double f, to 400 bits.
#include <mpfr.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <random>
#include <vector>

#include "posenc/core/angles.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/rotary/rotary.hpp"
#include "support/support.hpp"

namespace {

using namespace posenc_test;
using posenc::consecutive;
using posenc::Position;

static_assert(sizeof(long) == sizeof(Position), "positions go to MPFR as long");

/// A number of 400 bits: p f is exact in 117, and reduces modulo 2 pi from 2^127 with room to spare.
class Number {
 public:
  Number() { mpfr_init2(value_, 400); }
  ~Number() { mpfr_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  mpfr_ptr get() { return value_; }

 private:
  mpfr_t value_;
};

/// cos and sin of p f.
class Exact {
 public:
  void compute(Position p, double f) {
    mpfr_set_si(angle_.get(), p, MPFR_RNDN);
    if (mpfr_mul_d(angle_.get(), angle_.get(), f, MPFR_RNDN) != 0) FAIL("the angle was rounded");
    mpfr_sin_cos(sin_.get(), cos_.get(), angle_.get(), MPFR_RNDN);
  }

  /// The larger error of the two.
  template <class C>
  double error(C got_cos, C got_sin) {
    const auto off = [&](mpfr_srcptr exact, double got) {
      mpfr_sub_d(difference_.get(), exact, got, MPFR_RNDN);
      return std::fabs(mpfr_get_d(difference_.get(), MPFR_RNDN));
    };
    return std::fmax(off(cos_.get(), static_cast<double>(got_cos)),
                     off(sin_.get(), static_cast<double>(got_sin)));
  }

 private:
  Number angle_, cos_, sin_, difference_;
};

/// Every frequency of heads of 64, 128 and 256 in the usual bases, and of sinusoids of 512 by both rules.
std::vector<double> model_frequencies() {
  std::vector<double> all;
  for (const double base : {1e4, 5e5, 1e6, 1e7})
    for (const Index head_dim : {64, 128, 256}) {
      const auto f = posenc::rotary_frequencies({.head_dim = head_dim, .rope_theta = base}).inv_freq;
      all.insert(all.end(), f.begin(), f.end());
    }
  for (const auto rule :
       {posenc::SinusoidExponent::two_i_over_d, posenc::SinusoidExponent::i_over_half_minus_one}) {
    const auto f = posenc::sinusoidal_frequencies({.d_model = 512, .exponent = rule});
    all.insert(all.end(), f.begin(), f.end());
  }
  return all;
}

/// Positions of [2^from, 2^to): the edges and their neighbours, of both signs, and some between.
std::vector<Position> band(int from, int to) {
  const Position low = from < 0 ? 0 : Position{1} << from, high = (Position{1} << to) - 1;
  std::vector<Position> all = {low, low + 1, -low, high, high - 1, -high, (high / 3) | 1};
  std::mt19937_64 generator(static_cast<std::uint64_t>(to));
  std::uniform_int_distribution<Position> between(low, high);
  for (int i = 0; i < 45; ++i) all.push_back(i % 4 == 3 ? -between(generator) : between(generator));
  return all;
}

struct Errors {
  double of_float = 0, of_double = 0, of_float_angle = 0;
};

/// The largest errors over all model frequencies and positions of a band.
Errors measure(int from, int to) {
  const std::vector<double> f = model_frequencies();
  const posenc::detail::Angles angles(f);
  const auto n = static_cast<Index>(f.size());
  std::vector<float> cos(f.size()), sin(f.size());
  std::vector<double> wide_cos(f.size()), wide_sin(f.size());
  Exact exact;
  Errors errors;
  for (const Position p : band(from, to)) {
    angles.cos_sin(p, 0, n, cos.data(), sin.data());
    angles.cos_sin(p, 0, n, wide_cos.data(), wide_sin.data());
    for (std::size_t i = 0; i < f.size(); ++i) {
      exact.compute(p, f[i]);
      errors.of_float = std::fmax(errors.of_float, exact.error(cos[i], sin[i]));
      errors.of_double = std::fmax(errors.of_double, exact.error(wide_cos[i], wide_sin[i]));
      const float angle = static_cast<float>(p) * static_cast<float>(f[i]);  // as the frameworks have it
      errors.of_float_angle = std::fmax(errors.of_float_angle, exact.error(std::cos(angle), std::sin(angle)));
    }
  }
  return errors;
}

const std::vector<Position> far_positions = {Position{1} << 31,           (Position{1} << 32) - 1,
                                             (Position{1} << 32) + 1,     (Position{1} << 40) + 12345,
                                             -((Position{1} << 40) + 77), posenc::largest_position - 1};

}  // namespace

TEST_CASE("angles: against MPFR, by position") {
  std::printf("max abs error of cos and sin    posenc float  posenc double  float32 angle\n");
  const std::array<int, 8> bits = {-1, 7, 17, 20, 31, 32, 40, 62};
  for (std::size_t i = 1; i < bits.size(); ++i) {
    const Errors errors = measure(bits[i - 1], bits[i]);
    std::printf("  |position| below 2^%-2d          %.2e      %.2e       %.2e\n", bits[i], errors.of_float,
                errors.of_double, errors.of_float_angle);
    INFO("positions below 2^" << bits[i]);
    CHECK(errors.of_float <= 6e-8);
    CHECK(errors.of_double <= 1e-15);
    // What the header promises.
    CHECK(errors.of_float <= 3.2e-8);
    CHECK(errors.of_double <= 4e-16);
    // And what it is there for.
    if (bits[i] >= 17) CHECK(errors.of_float_angle > 1e-3);
  }
}

TEST_CASE("angles: against MPFR, at the last positions of 64 bits and of any frequency") {
  std::vector<double> f = {
      0x1.fffffffffffffp63, 1e19, -1e15, 12345.678, 1.0, 0x1p-62, 1e-18, 1e-30, 0x1p-1074};
  std::mt19937_64 generator(11);
  for (int i = 0; i < 500; ++i)
    f.push_back(
        std::ldexp(static_cast<double>(generator() >> 11), static_cast<int>(generator() % 128) - 117));
  const posenc::detail::Angles angles(f);
  std::vector<float> cos(f.size()), sin(f.size());
  std::vector<double> wide_cos(f.size()), wide_sin(f.size());
  Exact exact;
  Errors errors;
  using limits = std::numeric_limits<Position>;
  for (const Position p : {limits::min(), limits::min() + 1, limits::max(), limits::max() - 1, Position{-1},
                           Position{999999999989}}) {
    angles.cos_sin(p, 0, static_cast<Index>(f.size()), cos.data(), sin.data());
    angles.cos_sin(p, 0, static_cast<Index>(f.size()), wide_cos.data(), wide_sin.data());
    for (std::size_t i = 0; i < f.size(); ++i) {
      exact.compute(p, f[i]);
      errors.of_float = std::fmax(errors.of_float, exact.error(cos[i], sin[i]));
      errors.of_double = std::fmax(errors.of_double, exact.error(wide_cos[i], wide_sin[i]));
    }
  }
  CHECK(errors.of_float <= 3.2e-8);
  CHECK(errors.of_double <= 4e-16);
}

TEMPLATE_TEST_CASE("angles: Rotary turns unit vectors by exact angles, at any position", "", float, double) {
  using C = TestType;
  const auto frequencies = posenc::rotary_frequencies({.head_dim = 128, .rope_theta = 5e5});
  const posenc::Rotary rotary(frequencies, posenc::Pairing::half);
  Exact exact;
  double most = 0;
  for (const Position p : far_positions) {
    Values<C, 2> x{{1, 128}, std::vector<C>(128)};
    std::fill_n(x.values.begin(), 64, C{1});  // (1, 0) in each pair
    rotary.rotate(x.view(), consecutive(p, 1));
    for (std::size_t i = 0; i < 64; ++i) {
      exact.compute(p, frequencies.inv_freq[i]);
      most = std::fmax(most, exact.error(x.values[i], x.values[64 + i]));
    }
  }
  CHECK(most <= (std::is_same_v<C, float> ? 3.2e-8 : 4e-16));
}

TEMPLATE_TEST_CASE("angles: Sinusoidal is exact at any position", "", float, double) {
  using C = TestType;
  const posenc::SinusoidalConfig config{.d_model = 512};
  const auto frequencies = posenc::sinusoidal_frequencies(config);
  const posenc::Sinusoidal sinusoidal(config);
  Exact exact;
  double most = 0;
  for (const Position p : far_positions) {
    const auto row = sinusoidal.table<C>(1, p);
    for (Index i = 0; i < 256; ++i) {
      exact.compute(p, frequencies[static_cast<std::size_t>(i)]);
      most = std::fmax(most, exact.error(row(0, 2 * i + 1), row(0, 2 * i)));
    }
  }
  CHECK(most <= (std::is_same_v<C, float> ? 3.2e-8 : 4e-16));
}
