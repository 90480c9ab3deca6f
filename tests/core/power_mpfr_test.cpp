// Powers, logarithms and frequencies against MPFR: each is the nearest double.
#include <mpfr.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "posenc/core/power.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/rotary/frequencies.hpp"
#include "support/support.hpp"

namespace {

using namespace posenc_test;
namespace detail = posenc::detail;

class Number {
 public:
  Number() { mpfr_init2(value_, 300); }
  explicit Number(double x) : Number() { mpfr_set_d(value_, x, MPFR_RNDN); }
  ~Number() { mpfr_clear(value_); }
  Number(const Number&) = delete;
  Number& operator=(const Number&) = delete;
  operator mpfr_ptr() { return value_; }
  double nearest() const { return mpfr_get_d(value_, MPFR_RNDN); }

 private:
  mpfr_t value_;
};

/// base^(-i numerator / denominator).
double power(double base, Index i, Index numerator, Index denominator) {
  Number b(base), exponent(static_cast<double>(-i * numerator)), result;
  mpfr_div_si(exponent, exponent, denominator, MPFR_RNDN);
  mpfr_pow(result, b, exponent, MPFR_RNDN);
  return result.nearest();
}

struct Tally {
  int wrong = 0, not_as_long_double = 0, all = 0;
  double worst = 0;  // distance from long double's power, in units in the last place

  void add(const std::vector<double>& got, double base, Index numerator, Index denominator) {
    for (std::size_t n = 0; n < got.size(); ++n, ++all) {
      const Index i = static_cast<Index>(n);
      wrong += got[n] != power(base, i, numerator, denominator);
      const double before = static_cast<double>(
          std::pow(static_cast<long double>(base), -static_cast<long double>(i * numerator) / denominator));
      not_as_long_double += got[n] != before;
      worst = std::fmax(worst, std::fabs(got[n] - before) / (got[n] * 0x1p-53));
    }
  }
};

}  // namespace

TEST_CASE("power: frequencies are the nearest doubles to the powers of their base") {
  Tally tally;
  std::vector<double> bases = {1e4, 5e5, 1e6, 5e6, 1e7,  1e8,  1e9,    150000.0, 160000.0, 100.0,  10.0,
                               1.5, 1.0, 2.0, 4.0, 0.01, 0.25, 1e-300, 1e300,    3.0,      1.7e308};
  std::mt19937_64 generator(7);
  for (int n = 0; n < 80; ++n)
    bases.push_back(
        std::ldexp(1 + static_cast<double>(generator() >> 12) * 0x1p-52, int(generator() % 40) - 5));
  for (const double base : bases) {
    for (const Index d : {2, 4, 6, 20, 64, 80, 96, 128, 256, 514})
      tally.add(posenc::rotary_frequencies({.head_dim = d, .rope_theta = base}).inv_freq, base, 2, d);
    for (const Index d : {4, 10, 512})
      tally.add(
          posenc::sinusoidal_frequencies(
              {.d_model = d, .base = base, .exponent = posenc::SinusoidExponent::i_over_half_minus_one}),
          base, 1, d / 2 - 1);
    tally.add(posenc::sinusoidal_frequencies(
                  {.d_model = 511, .base = base, .odd_dim = posenc::OddDim::longer_first}),
              base, 2, 511);
  }
  WARN(tally.all << " frequencies, " << tally.not_as_long_double << " are not those of long double");
  CHECK(tally.wrong == 0);
  if constexpr (std::numeric_limits<long double>::digits >= 64) {
    // Which rounds twice.
    CHECK(tally.not_as_long_double * 500 < tally.all);
    CHECK(tally.worst <= 2);
  }
}

TEST_CASE("power: logarithms and powers are the nearest doubles") {
  std::mt19937_64 generator(8);
  const auto any = [&] {  // positive, normal
    return std::bit_cast<double>((generator() % 2046 + 1) << 52 | generator() >> 12);
  };
  int wrong = 0;
  Number result;
  for (int n = 0; n < 3000; ++n) {
    Number x(any());
    mpfr_log(result, x, MPFR_RNDN);
    wrong += detail::log_of(x.nearest()) != result.nearest();
    mpfr_log2(result, x, MPFR_RNDN);
    wrong += detail::log2_of(x.nearest()) != result.nearest();
    // Beside 1.
    Number beside(1 + (n % 2 ? 1 : -1) *
                          std::ldexp(1 + static_cast<double>(generator() >> 12) * 0x1p-52, -n % 51 - 1));
    mpfr_log(result, beside, MPFR_RNDN);
    wrong += detail::log_of(beside.nearest()) != result.nearest();
    const double e = (static_cast<double>(generator() >> 11) * 0x1p-52 - 1) * 1020;
    Number exponent(e);
    mpfr_exp2(result, exponent, MPFR_RNDN);
    wrong += detail::exp2_of(e) != result.nearest();
    const double base = std::exp2(e / 100), p = (static_cast<double>(generator() >> 11) * 0x1p-52 - 1) * 8;
    Number b(base), q(p);
    mpfr_pow(result, b, q, MPFR_RNDN);
    wrong += detail::power_of(base, p) != result.nearest();
  }
  CHECK(wrong == 0);
}
