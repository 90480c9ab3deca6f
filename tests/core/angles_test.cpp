#include "posenc/core/angles.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>
#include <random>
#include <vector>

#include "support/support.hpp"

namespace {

using namespace posenc_test;
using posenc::Position;
using posenc::detail::Angles;
using posenc::detail::Turn;
using posenc::detail::turn_per_position;

/// The errors that the header promises, at every position a 64-bit integer can hold.
template <class C>
constexpr double promised = std::is_same_v<C, float> ? 3.2e-8 : 4e-16;

template <class C>
struct CosSin {
  std::vector<C> cos, sin;
};

template <class C>
CosSin<C> cos_sin(const std::vector<double>& frequencies, Position p, double scale = 1.0) {
  CosSin<C> row{std::vector<C>(frequencies.size()), std::vector<C>(frequencies.size())};
  Angles(frequencies)
      .cos_sin(p, 0, static_cast<Index>(frequencies.size()), row.cos.data(), row.sin.data(), scale);
  return row;
}

/// Those of a rotary head of 128, some fast ones, some of either sign, and the edges.
std::vector<double> frequencies() {
  std::vector<double> all = {0.0,
                             -0.0,
                             1.0,
                             -1.0,
                             0x1p-1074,
                             0x1p-1022,
                             1e-300,
                             0x1p-64,
                             0x1p-70,
                             1e3,
                             -1e10,
                             1e19,
                             0x1.fffffffffffffp63,
                             -0x1.fffffffffffffp63};
  for (int i = 0; i < 64; ++i) all.push_back(std::pow(500000.0, -i / 64.0));
  std::mt19937_64 generator(3);
  std::uniform_real_distribution<double> uniform(-10.0, 10.0);
  for (int i = 0; i < 50; ++i) all.push_back(uniform(generator));
  return all;
}

constexpr Position first_position = std::numeric_limits<Position>::min();
constexpr Position last_position = std::numeric_limits<Position>::max();

/// Positions of every size and sign.
std::vector<Position> positions() {
  std::vector<Position> all = {first_position, first_position + 1, last_position, 0};
  for (int bits = 0; bits < 63; ++bits)
    for (const Position offset : {-1, 0, 1}) {
      all.push_back((Position{1} << bits) + offset);
      all.push_back(-(Position{1} << bits) + offset);
    }
  std::mt19937_64 generator(4);
  for (int i = 0; i < 100; ++i) all.push_back(static_cast<Position>(generator() >> (i % 60)));
  return all;
}

/// The sum of two turns, modulo a whole one.
Turn operator+(const Turn& a, const Turn& b) {
  Turn sum;
  sum.low = a.low + b.low;
  sum.high = a.high + b.high + (sum.low < a.low ? 1u : 0u);
  return sum;
}

}  // namespace

TEST_CASE("angles: one radian is 1 / 2 pi of a turn") {
  // The hexadecimal digits of 1 / 2 pi: 0.28BE60DB 9391054A 7F09D5F4 7D4D3770 36D8A566 4F10E410 ...
  const Turn radian = turn_per_position(1.0);
  CHECK(radian.high == 0x28be60db9391054au);
  CHECK(radian.low == 0x7f09d5f47d4d3770u);
  const Turn fast = turn_per_position(0x1p63);  // 63 digits later
  CHECK(fast.high == ((0x9391054aull << 63) | (0x7f09d5f47d4d3770ull >> 1)));
  const Turn slow = turn_per_position(0x1p-64);
  CHECK(slow.high == 0u);
  CHECK(slow.low == 0x28be60db9391054au);
  const Turn still = turn_per_position(0.0);
  CHECK((still.high == 0 && still.low == 0));
}

TEST_CASE("angles: turns double with the frequency and change sign with it", "[property]") {
  for (const double f : frequencies()) {
    INFO("frequency " << f);
    const Turn turn = turn_per_position(f);
    const Turn back = turn_per_position(-f);
    CHECK(((turn + back).high == 0 && (turn + back).low == 0));
    if (f > 0 && f < 0x1p63) {
      const Turn twice = turn_per_position(2 * f), sum = turn + turn;
      CHECK(twice.high == sum.high);
      CHECK(twice.low - sum.low <= 1);  // one digit more
    }
  }
}

TEMPLATE_TEST_CASE("angles: cos and sin of the exact angle", "[property]", float, double) {
  using C = TestType;
  const auto f = frequencies();
  double most = 0;
  for (const Position small : {0, 1, -1, 2, 3, -5, 127, 1000, 2047, -2047})
    for (const int shift : {0, 1, 6, 21, 29, 40, 49, 52}) {
      const Position p = small * (Position{1} << shift);
      const auto row = cos_sin<C>(f, p);
      for (std::size_t i = 0; i < f.size(); ++i) {
        const CosSinOfProduct exact(p, f[i]);
        most = std::fmax(most, std::fabs(static_cast<double>(row.cos[i]) - exact.cos));
        most = std::fmax(most, std::fabs(static_cast<double>(row.sin[i]) - exact.sin));
      }
    }
  CHECK(most <= promised<C> + 3e-16);  // what the comparison rounds
}

TEMPLATE_TEST_CASE("angles: cos is even and sin is odd, bit for bit", "[property]", float, double) {
  using C = TestType;
  const auto f = frequencies();
  for (const Position p : positions()) {
    if (p <= 0) continue;
    const auto ahead = cos_sin<C>(f, p);
    auto behind = cos_sin<C>(f, -p);
    for (C& s : behind.sin) s = -s;
    INFO("position " << p);
    CHECK(same_bits(ahead.cos, behind.cos));
    CHECK(same_bits(ahead.sin, behind.sin));
  }
}

TEST_CASE("angles: angles add up", "[property]") {
  const auto f = frequencies();
  for (const Position p : positions())
    for (const Position step : {Position{1}, Position{12345}, (Position{1} << 32) + 7}) {
      const Position q = p < 0 ? p + step : p - step;
      const auto at_p = cos_sin<double>(f, p), at_q = cos_sin<double>(f, q),
                 between = cos_sin<double>(f, p < 0 ? -step : step);
      double most = 0;
      for (std::size_t i = 0; i < f.size(); ++i) {
        const double cos = at_q.cos[i] * between.cos[i] - at_q.sin[i] * between.sin[i];
        const double sin = at_q.sin[i] * between.cos[i] + at_q.cos[i] * between.sin[i];
        most = std::fmax(most, std::fmax(std::fabs(at_p.cos[i] - cos), std::fabs(at_p.sin[i] - sin)));
      }
      INFO("positions " << p << " and " << q);
      CHECK(most <= 1.5e-15);
    }
}

TEST_CASE("angles: float is double, rounded", "[property]") {
  const auto f = frequencies();
  for (const Position p : positions()) {
    const auto narrow = cos_sin<float>(f, p);
    const auto wide = cos_sin<double>(f, p);
    INFO("position " << p);
    CHECK(max_difference(narrow.cos, wide.cos) <= promised<float>);
    CHECK(max_difference(narrow.sin, wide.sin) <= promised<float>);
    double most = 0;
    for (std::size_t i = 0; i < f.size(); ++i)
      most = std::fmax(most, std::fabs(wide.cos[i] * wide.cos[i] + wide.sin[i] * wide.sin[i] - 1));
    CHECK(most <= 1e-15);
  }
}

TEST_CASE("angles: a quarter of a turn per position keeps its phase") {
  // The double nearest to pi / 2 falls short of it by 6.123233995736766e-17 (which is also cos of it). So at
  // position 4 n all that is left of n turns is what 4 n of these errors add up to.
  const std::vector<double> f = {std::numbers::pi / 2, -std::numbers::pi / 2};
  for (const Position n :
       {Position{1}, Position{1000}, Position{1} << 30, Position{1} << 50, Position{1} << 60}) {
    const double left = 4 * static_cast<double>(n) * 6.123233995736766e-17;
    const auto row = cos_sin<double>(f, 4 * n);
    INFO("turns " << n);
    CHECK(std::fabs(row.cos[0] - std::cos(left)) <= 4e-16 + 1e-15 * left);
    CHECK(std::fabs(row.sin[0] + std::sin(left)) <= 4e-16 + 1e-15 * left);
    CHECK(std::fabs(row.sin[1] + row.sin[0]) <= 4e-16);
  }
  const auto quarter = cos_sin<float>(f, 1);
  CHECK(quarter.sin[0] == 1.0f);
  CHECK(std::fabs(quarter.cos[0]) <= 1e-9f);
}

TEMPLATE_TEST_CASE("angles: position 0 and frequency 0 are exact", "", float, double) {
  using C = TestType;
  const auto f = frequencies();
  const std::vector<C> ones(f.size(), C{1}), zeros(f.size(), C{0});
  const auto start = cos_sin<C>(f, 0);
  CHECK(same_bits(start.cos, ones));
  CHECK(same_bits(start.sin, zeros));
  for (const Position p : positions()) {
    const auto still = cos_sin<C>({0.0}, p);
    CHECK(still.cos[0] == C{1});
    CHECK(still.sin[0] == C{0});
  }
}

TEMPLATE_TEST_CASE("angles: a block of a row has the bits of the whole row", "[property]", float, double) {
  using C = TestType;
  const auto f = frequencies();
  const auto n = static_cast<Index>(f.size());
  const Angles angles(f);
  CHECK(angles.size() == n);
  for (const Position p :
       {Position{0}, Position{77}, -(Position{1} << 31), Position{1} << 32, Position{1} << 45}) {
    const auto whole = cos_sin<C>(f, p, 0.7);
    bool agree = true;
    for (Index first = 0; first <= n; ++first)
      for (const Index count : {Index{0}, Index{1}, Index{5}, Index{64}, n - first}) {
        if (first + count > n) continue;
        const C guard{9};
        std::vector<C> cos(static_cast<std::size_t>(count) + 1, guard), sin = cos;
        angles.cos_sin(p, first, count, cos.data(), sin.data(), 0.7);
        agree = agree && cos.back() == guard && sin.back() == guard &&
                std::equal(cos.begin(), cos.end() - 1, whole.cos.begin() + first) &&
                std::equal(sin.begin(), sin.end() - 1, whole.sin.begin() + first);
      }
    CHECK(agree);
  }
}

TEMPLATE_TEST_CASE("angles: the scale multiplies before the rounding", "", float, double) {
  using C = TestType;
  const auto f = frequencies();
  for (const Position p : {Position{3}, Position{1} << 40}) {
    const auto wide = cos_sin<double>(f, p);
    for (const double scale : {1.2302585093, -3.0, 0.0, 1e5}) {
      const auto row = cos_sin<C>(f, p, scale);
      for (std::size_t i = 0; i < f.size(); ++i) {
        CHECK(std::fabs(double(row.cos[i]) - wide.cos[i] * scale) <= 2 * promised<C> * std::fabs(scale));
        CHECK(std::fabs(double(row.sin[i]) - wide.sin[i] * scale) <= 2 * promised<C> * std::fabs(scale));
      }
    }
    const auto once = cos_sin<C>(f, p), twice = cos_sin<C>(f, p, 2.0);
    for (std::size_t i = 0; i < f.size(); ++i) CHECK(twice.cos[i] == 2 * once.cos[i]);
  }
}

TEMPLATE_TEST_CASE("angles: rows computed one after another have the bits of each alone", "[property]", float,
                   double) {
  using C = TestType;
  // More pairs than are kept from one call to the next, and two sets of them.
  std::vector<double> ladder, other;
  for (int i = 0; i < 1100; ++i) {
    ladder.push_back(std::pow(10000.0, -i / 1100.0));
    other.push_back(0.1 + i / 1100.0);
  }
  const Angles one(ladder), two(other);
  // Up, down, over zero, again, and far apart.
  const std::vector<Position> at = {0,  1,  2,  14, 15,   16,   17,      31,         32,  33, 15,
                                    14, 3,  1,  0,  -1,   -2,   -15,     -16,        -17, 3,  -3,
                                    3,  19, 35, 19, 1000, 1001, 1 << 20, -(1 << 20), 5,   5,  5};
  const auto rows = static_cast<Index>(at.size());
  bool agree = true;
  posenc::detail::AngleScratch<C>::with([&](posenc::detail::AngleScratch<C>& scratch) {
    const auto compare = [&](const Angles& angles, Index first, Index count, double scale) {
      std::vector<C> cos(static_cast<std::size_t>(rows * count)), sin = cos;
      const auto position = [&](Index r) { return at[static_cast<std::size_t>(r)]; };
      angles.cos_sin_rows(scratch, position, rows, first, count, cos.data(), sin.data(), count, scale);
      std::vector<C> c(static_cast<std::size_t>(count)), s = c;
      for (Index r = 0; r < rows; ++r) {
        for (Index part = 0; part < count; part += 500)  // a few pairs at a time
          angles.cos_sin(position(r), first + part, std::min<Index>(500, count - part), c.data() + part,
                         s.data() + part, scale);
        agree = agree && std::equal(c.begin(), c.end(), cos.begin() + r * count) &&
                std::equal(s.begin(), s.end(), sin.begin() + r * count);
      }
    };
    compare(one, 0, 1100, 1);
    compare(two, 0, 1100, 1);  // from the multiple of 16 that the last one ended with
    compare(two, 0, 1100, 2);
    for (const Index count : {40, 41, 64}) compare(two, 0, count, 2);
    for (const Index first : {0, 16, 3}) compare(one, first, 64, 2);
    compare(two, 3, 64, 2);
  });
  CHECK(agree);
}

TEMPLATE_TEST_CASE("angles: a call reads nothing that another one left", "[property]", float, double) {
  using C = TestType;
  std::vector<double> ladder;
  for (int i = 0; i < 40; ++i) ladder.push_back(1.0 / (1 + i));
  const Angles one(std::vector<double>(40, 0.3)), two(ladder);
  posenc::detail::AngleScratch<C>::with([&](posenc::detail::AngleScratch<C>& scratch) {
    const auto row = [&](const Angles& angles, Position p, Index first, Index count, double scale) {
      std::vector<C> cos(static_cast<std::size_t>(count)), sin = cos, c = cos, s = cos;
      angles.cos_sin_rows(
          scratch, [&](Index) { return p; }, 1, first, count, cos.data(), sin.data(), 0, scale);
      angles.cos_sin(p, first, count, c.data(), s.data(), scale);
      CHECK((cos == c && sin == s));
    };
    row(one, 20, 0, 40, 1);
    row(two, 20, 0, 40, 1);   // other frequencies
    row(two, 20, 0, 40, 3);   // another scale
    row(two, 40, 0, 1, 3);    // another multiple of 16, and fewer pairs
    row(two, 40, 0, 40, 3);   // more again
    row(two, 40, 9, 31, 3);   // another first one
    row(two, -40, 9, 31, 3);  // the other side
  });
}

TEMPLATE_TEST_CASE("angles: each pair at a coordinate of its own", "[property]", float, double) {
  using C = TestType;
  // Coordinates and frequencies of few bits, so that a product is exact; whole turns per position among them.
  std::vector<double> f;
  std::vector<posenc::Coordinate> at;
  for (int i = 0; i < 50; ++i) {
    f.push_back((i % 3 == 1 ? -1 : 1) * (i % 2 == 0 ? 20.25 + i : 0.0625 * i));
    at.push_back(i % 5 == 0 ? posenc::Coordinate(Position{i} * 1000 - 3)
                            : posenc::Coordinate::of((i % 4 - 2) * 40.375 + 0.25 * i));
  }
  f[4] = -1e-20, f[5] = 1e-20;  // less than 2^-64 of a turn
  const Angles angles(f);
  for (const Index first : {0, 1, 15, 16, 17})
    for (const Index count : {1, 15, 16, 17, 33}) {
      std::vector<C> cos(static_cast<std::size_t>(count)), sin = cos;
      angles.cos_sin_at([&](Index j) { return at[static_cast<std::size_t>(first + j)]; }, first, count,
                        cos.data(), sin.data(), 0.5);
      double most = 0;
      for (Index j = 0; j < count; ++j) {
        const auto i = static_cast<std::size_t>(first + j), n = static_cast<std::size_t>(j);
        const double angle = f[i] * at[i].value();
        most = std::max({most, std::fabs(double(cos[n]) - 0.5 * std::cos(angle)),
                         std::fabs(double(sin[n]) - 0.5 * std::sin(angle))});
      }
      INFO(count << " pairs from " << first);
      CHECK(most <= promised<C>);
    }
}

TEST_CASE("angles: no frequencies") {
  const Angles none;
  CHECK(none.size() == 0);
  none.cos_sin(5, 0, 0, static_cast<float*>(nullptr), static_cast<float*>(nullptr));
  CHECK(Angles(std::vector<double>()).size() == 0);
}

TEST_CASE("angles: a frequency that is no number of radians is refused with its index") {
  const auto refused = [](double f, const char* got) {
    check_throws<std::invalid_argument>([&] { (void)Angles(std::vector<double>{1.0, 0.5, f, 0.1}); },
                                        {"posenc: frequencies[2]", "finite", "below 2^64", got});
  };
  refused(posenc_test::quiet_nan, "nan");
  refused(posenc_test::infinity, "got inf");
  refused(-posenc_test::infinity, "got -inf");
  refused(0x1p64, "got 1.8446744073709552e+19");
  refused(-0x1p64, "got -1.8446744073709552e+19");
  CHECK_NOTHROW(Angles(std::vector<double>{0x1.fffffffffffffp63}));
}
