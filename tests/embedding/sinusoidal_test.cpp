#include "posenc/embedding/sinusoidal.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "embedding/properties.hpp"
#include "support/overlap.hpp"

namespace {

using namespace posenc_test;
using posenc::compute_t;
using posenc::consecutive;
using posenc::OddDim;
using posenc::Position;
using posenc::Sinusoidal;
using posenc::SinusoidalConfig;
using posenc::SinusoidExponent;
using posenc::SinusoidLayout;
using posenc::SinusoidOrder;

/// The definition, in long double: column c of PE(p).
long double by_definition(const SinusoidalConfig& config, Position p, Index c) {
  const Index d = *config.d_model;
  const Position table_row = p + config.first_position;
  if (table_row == config.padding_idx) return 0;
  if (d % 2 != 0 && config.odd_dim == OddDim::zero_last && c == d - 1) return 0;
  const Index half = config.odd_dim == OddDim::longer_first ? (d + 1) / 2 : d / 2;
  const bool interleaved = config.layout == SinusoidLayout::interleaved;
  const Index i = interleaved ? c / 2 : c % half;
  const bool second = interleaved ? c % 2 == 1 : c >= half;
  const auto over = [](Index a, Index b) {
    return static_cast<long double>(a) / static_cast<long double>(b);
  };
  const long double exponent = config.exponent == SinusoidExponent::two_i_over_d ? over(2 * i, d)
                               : config.exponent == SinusoidExponent::i_over_half_minus_one
                                   ? over(i, std::max(half - 1, Index{1}))
                                   : over(i, half);
  const long double angle =
      static_cast<long double>(table_row) * std::pow(static_cast<long double>(config.base), -exponent);
  const bool sine = (config.order == SinusoidOrder::sin_first) != second;
  return config.scale * (sine ? std::sin(angle) : std::cos(angle));
}

template <class S>
std::vector<S> row_of(const SinusoidalConfig& config, Position p) {
  std::vector<S> row(static_cast<std::size_t>(*config.d_model));
  Sinusoidal(config).encode(posenc::view(row.data(), std::array<Index, 1>{*config.d_model}),
                            consecutive(p, 1));
  return row;
}

/// fairseq's table: M2M-100, FSMT, Whisper.
SinusoidalConfig fairseq(Index d_model) {
  return {.d_model = d_model,
          .exponent = SinusoidExponent::i_over_half_minus_one,
          .layout = SinusoidLayout::halves};
}

/// The published numbers have four to six digits.
void check_row(const SinusoidalConfig& config, Position p, const std::vector<double>& published,
               double tolerance) {
  std::vector<double> row = row_of<double>(config, p);
  row.resize(published.size());
  INFO("position " << p);
  CHECK(max_difference(row, published) <= tolerance);
}

/// What the properties are tested for: one block of pairs, a remainder of every kind, several tiles.
const std::vector<SinusoidalConfig> configs = {
    {.d_model = 34},
    {.d_model = 7,
     .layout = SinusoidLayout::halves,
     .order = SinusoidOrder::cos_first,
     .odd_dim = OddDim::longer_first,
     .padding_idx = 5,
     .scale = 0.3},
    {.d_model = 2050, .layout = SinusoidLayout::halves},
};

}  // namespace

TEMPLATE_TEST_CASE("Sinusoidal: the storage of x does not matter", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  for (const SinusoidalConfig& config : configs) {
    const Sinusoidal encoder(config);
    check_storages_agree_by_position<S>(
        *config.d_model, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
    check_storages_agree_by_position<S>(
        *config.d_model, [&](const auto& device, auto& x, const auto& at) { encoder.encode(device, x, at); });
    const auto at = consecutive(2, 21);
    check_input_storages_agree(random_values<S, 3>({3, 21, *config.d_model}), [&](const auto& x) {
      auto out = random_values<S, 3>({3, 21, *config.d_model});
      encoder.add(out.view(), x, at);
      return out;
    });
  }
}

TEMPLATE_TEST_CASE("Sinusoidal: matrices are (seq, dim)", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  const Sinusoidal encoder(configs.front());
  check_matrices_agree_by_position<TestType>(
      34, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
}

TEMPLATE_TEST_CASE("Sinusoidal: threads do not matter", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  for (const SinusoidalConfig& config : configs) {
    const Sinusoidal encoder(config);
    check_threads_agree_by_position<TestType>(
        *config.d_model, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
    check_threads_agree_by_position<TestType>(
        *config.d_model, [&](const auto& device, auto& x, const auto& at) { encoder.encode(device, x, at); });
  }
}

TEMPLATE_TEST_CASE("Sinusoidal: parts of the batch and of the sequence make up the whole", "[property]",
                   float, double, Eigen::half, Eigen::bfloat16) {
  for (const SinusoidalConfig& config : configs) {
    const Sinusoidal encoder(config);
    check_parts_make_up_the_whole<TestType>(
        *config.d_model, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
  }
}

TEMPLATE_TEST_CASE("Sinusoidal: shared positions are the same positions per row", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  for (const SinusoidalConfig& config : configs) {
    const Sinusoidal encoder(config);
    check_shared_positions_are_the_same_per_row<TestType>(
        *config.d_model, [&](const auto& device, auto& x, const auto& at) { encoder.add(device, x, at); });
  }
}

TEMPLATE_TEST_CASE("Sinusoidal: add is one sum in the compute type, rounded once, in place or not",
                   "[property]", float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  using C = compute_t<S>;
  for (const SinusoidalConfig& config : configs) {
    const Sinusoidal encoder(config);
    const Index d = *config.d_model;
    const auto x = random_values<S, 3>({2, 5, d});
    const auto at = consecutive(3, 5);
    auto expected = x, in_place = x, out = random_values<S, 3>({2, 5, d}, 2), encoded = out;
    std::vector<C> row(static_cast<std::size_t>(d));
    for (Index s = 0; s < 5; ++s) {
      encoder.encode_row(3 + s, 0, d, row.data());
      for (Index b = 0; b < 2; ++b)
        for (Index c = 0; c < d; ++c) {
          const C p = row[static_cast<std::size_t>(c)];
          expected.view()(b, s, c) = static_cast<S>(static_cast<C>(x.view()(b, s, c)) + p);
          encoded.view()(b, s, c) = static_cast<S>(p);
        }
    }
    encoder.add(in_place.view(), at);
    encoder.add(out.view(), x.view(), at);
    CHECK(same_bits(in_place, expected));
    CHECK(same_bits(out, expected));
    encoder.encode(out.view(), at);
    CHECK(same_bits(out, encoded));
  }
}

TEMPLATE_TEST_CASE("Sinusoidal: scale_vjp is the adjoint of the scale", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  for (SinusoidalConfig config : configs) {
    for (const posenc::Positions& at : some_positions()) {
      const auto u = random_values<S, 3>({3, 21, *config.d_model});
      config.scale = 0.7;
      const double gradient = Sinusoidal(config).scale_vjp(u.view(), at);
      config.scale = 1.0;
      auto encoding = random_values<double, 3>({3, 21, *config.d_model});
      Sinusoidal(config).encode(encoding.view(), at);
      CHECK(agree<double>(gradient, dot(u.values, encoding.values), norm(u.values) * norm(encoding.values)));
      check_input_storages_agree(
          u, [&](const auto& dy) { return std::vector<double>{Sinusoidal(config).scale_vjp(dy, at)}; });
    }
  }
}

TEST_CASE("Sinusoidal: scale_vjp against finite differences", "[property]") {
  const auto u = random_values<double, 2>({6, 34});
  const auto at = consecutive(-2, 6);
  const auto loss = [&](double scale) {
    auto out = random_values<double, 2>({6, 34});
    Sinusoidal({.d_model = 34, .scale = scale}).encode(out.view(), at);
    return dot(u.values, out.values);
  };
  const double difference = (loss(1.5) - loss(0.5)) / 1.0;
  CHECK(Sinusoidal({.d_model = 34, .scale = 0.9}).scale_vjp(u.view(), at) ==
        Approx(difference).epsilon(1e-13));
}

TEST_CASE("Sinusoidal: every combination of options is what its definition says") {
  const auto exponent = GENERATE(SinusoidExponent::two_i_over_d, SinusoidExponent::i_over_half_minus_one,
                                 SinusoidExponent::i_over_half);
  const auto layout = GENERATE(SinusoidLayout::interleaved, SinusoidLayout::halves);
  const auto order = GENERATE(SinusoidOrder::sin_first, SinusoidOrder::cos_first);
  const auto odd_dim = GENERATE(OddDim::refuse, OddDim::zero_last, OddDim::longer_first);
  for (const Index d : {1, 2, 3, 4, 5, 6, 7, 8, 127, 128, 129, 130, 131, 257, 1024, 1025, 2049, 2050, 2115}) {
    if (d % 2 != 0 && odd_dim == OddDim::refuse) continue;
    const SinusoidalConfig config{.d_model = d,
                                  .base = 5000.0,
                                  .exponent = exponent,
                                  .layout = layout,
                                  .order = order,
                                  .odd_dim = odd_dim,
                                  .first_position = 2,
                                  .padding_idx = 4,
                                  .scale = 0.75};
    for (const Position p : {-3, 0, 1, 2, 4, 10}) {
      std::vector<double> expected;
      for (Index c = 0; c < d; ++c) expected.push_back(static_cast<double>(by_definition(config, p, c)));
      INFO("d_model " << d << ", position " << p);
      CHECK(max_difference(row_of<double>(config, p), expected) <= 4e-15);  // of the rounded frequency
      CHECK(max_difference(row_of<float>(config, p), expected) <= 4e-8);
    }
  }
}

TEMPLATE_TEST_CASE("Sinusoidal: a window of a row is that window of the whole row", "[property]", float,
                   double) {
  using C = TestType;
  for (const SinusoidalConfig& config :
       {SinusoidalConfig{.d_model = 263, .odd_dim = OddDim::longer_first},
        SinusoidalConfig{.d_model = 263, .layout = SinusoidLayout::halves, .odd_dim = OddDim::zero_last},
        SinusoidalConfig{.d_model = 130, .order = SinusoidOrder::cos_first}}) {
    const Sinusoidal encoder(config);
    const auto whole = row_of<C>(config, 77);
    bool agree_everywhere = true;
    for (Index first = 0; first <= *config.d_model; ++first)
      for (Index columns = 0; columns <= *config.d_model - first; columns += 1 + columns / 5) {
        std::vector<C> part(static_cast<std::size_t>(columns) + 1, C{9});
        encoder.encode_row(77, first, columns, part.data());
        std::vector<C> expected(whole.begin() + first, whole.begin() + first + columns);
        expected.push_back(C{9});  // nothing is written beyond the window
        agree_everywhere = agree_everywhere && same_bits(part, expected);
      }
    CHECK(agree_everywhere);
  }
}

TEST_CASE("Sinusoidal: the defaults are the formula of the paper") {
  const SinusoidalConfig paper{.d_model = 512};
  check_row(paper, 1, {0.841, 0.540, 0.822, 0.570}, 5e-4);
  for (const Position p : {0, 1, 5, 100, 511}) {
    const auto row = row_of<float>(paper, p);
    const auto wide = row_of<double>(paper, p);
    double most = 0, most_wide = 0;
    for (int i = 0; i < 256; ++i) {
      const long double angle = static_cast<long double>(p) / std::pow(10000.0L, 2.0L * i / 512.0L);
      const auto at = [&](const auto& values, int c) {
        return static_cast<long double>(values[static_cast<std::size_t>(c)]);
      };
      most = std::fmax(most, static_cast<double>(std::fabs(at(row, 2 * i) - std::sin(angle))));
      most = std::fmax(most, static_cast<double>(std::fabs(at(row, 2 * i + 1) - std::cos(angle))));
      most_wide = std::fmax(most_wide, static_cast<double>(std::fabs(at(wide, 2 * i) - std::sin(angle))));
      most_wide = std::fmax(most_wide, static_cast<double>(std::fabs(at(wide, 2 * i + 1) - std::cos(angle))));
    }
    CHECK(most <= 3.3e-8);
    CHECK(most_wide <= 4e-16 + 1.2e-16 * static_cast<double>(p));  // the frequency is rounded to double
  }
}

TEST_CASE("Sinusoidal: low dimensions turn fast, high dimensions slowly") {
  const auto frequencies = posenc::sinusoidal_frequencies({.d_model = 512});
  REQUIRE(frequencies.size() == 256);
  CHECK(frequencies.front() == 1.0);
  CHECK(frequencies.back() == Approx(1.0366329284376979e-4).epsilon(1e-14));  // 10000^(-510/512)
  for (std::size_t i = 1; i < 256; ++i) CHECK(frequencies[i] < frequencies[i - 1]);
}

TEST_CASE("Sinusoidal: RoFormer, Marian: published rows") {
  const SinusoidalConfig marian{.d_model = 6, .layout = SinusoidLayout::halves};
  check_row(marian, 0, {0, 0, 0, 1, 1, 1}, 0);
  check_row(marian, 1, {.8415, .0464, .0022, .5403, .9989, 1}, 6e-5);
  const SinusoidalConfig wide{.d_model = 512, .layout = SinusoidLayout::halves};
  check_row(wide, 1, {.8415, .8219, .8020, .7819, .7617}, 6e-5);
  check_row(wide, 2, {.9093, .9364, .9581, .9749, .9870}, 6e-5);
}

TEST_CASE("Sinusoidal: FSMT, fairseq: published rows, and the row of padding is zero") {
  SinusoidalConfig fsmt = fairseq(6);
  fsmt.padding_idx = 1;
  Eigen::Matrix<int, 1, 3> ids_row(4, 10, 1);  // two tokens and padding
  const Eigen::MatrixXi ids = ids_row;
  auto out = random_values<double, 2>({3, 6});
  Sinusoidal(fsmt).encode(out.view(), posenc::roberta_positions(ids, 1));
  const std::vector<double> published = {.90930, .019999, .0002, -.41615, .9998,  1,   //
                                         .14112, .029995, .0003, -.98999, .99955, 1,   //
                                         0,      0,       0,     0,       0,      0};  //
  CHECK(max_difference(out.values, published) <= 1e-5);
  for (std::size_t i = 12; i < 18; ++i) CHECK(out.values[i] == 0.0);
}

TEST_CASE("Sinusoidal: Whisper: published row") {
  check_row(fairseq(8), 1, {.841471, .046399, .002154, .0001, .540302, .998923, .999998, 1}, 6e-7);
  // The last frequency is exactly 1 / base.
  CHECK(posenc::sinusoidal_frequencies(fairseq(8)).back() == 1e-4);
}

TEST_CASE("Sinusoidal: MusicGen has the cosines first, Whisper's rows otherwise") {
  SinusoidalConfig musicgen = fairseq(8);
  musicgen.order = SinusoidOrder::cos_first;
  check_row(musicgen, 1, {.540302, .998923, .999998, 1, .841471, .046399, .002154, .0001}, 6e-7);
}

TEST_CASE("Sinusoidal: tensor2tensor counts from 1") {
  SinusoidalConfig tensor2tensor = fairseq(8);
  tensor2tensor.first_position = 1;
  CHECK(same_bits(row_of<float>(tensor2tensor, 0), row_of<float>(fairseq(8), 1)));
}

TEST_CASE("Sinusoidal: XGLM starts with row 2 of fairseq's table, and position -1 is its row of padding") {
  SinusoidalConfig xglm = fairseq(4);
  xglm.first_position = 2, xglm.padding_idx = 1;
  // sin and cos of 2, 3 and 4, and of their 1e-4, to 12 digits.
  check_row(xglm, 0, {.909297426826, .000199999999, -.416146836547, .999999980000}, 1e-12);
  check_row(xglm, 1, {.141120008060, .000299999996, -.989992496600, .999999955000}, 1e-12);
  check_row(xglm, 2, {-.756802495308, .000399999989, -.653643620864, .999999920000}, 1e-12);
  CHECK(row_of<double>(xglm, -1) == std::vector<double>(4, 0.0));
  CHECK(Sinusoidal(xglm).table<double>(1, -1)(0, 2) == 0.0);
  // What is zero has no part in the gradient of the scale.
  const auto dy = random_values<double, 2>({1, 4});
  CHECK(Sinusoidal(xglm).scale_vjp(dy.view(), consecutive(-1, 1)) == 0.0);
  CHECK(Sinusoidal(xglm).scale_vjp(dy.view(), consecutive(1, 1)) != 0.0);
}

TEST_CASE("Sinusoidal: a single frequency is 1 whatever the exponent") {
  // tensor2tensor divides by max(num_timescales - 1, 1).
  CHECK(posenc::sinusoidal_frequencies(fairseq(2)) == std::vector<double>{1.0});
  for (const auto layout : {SinusoidLayout::interleaved, SinusoidLayout::halves}) {
    SinusoidalConfig two = fairseq(2);
    two.layout = layout;
    check_row(two, 0, {0, 1}, 0);
    check_row(two, 3, {.141120008060, -.989992496600}, 1e-12);
  }
  SinusoidalConfig three = fairseq(3);
  three.odd_dim = OddDim::zero_last;
  check_row(three, 3, {.141120008060, -.989992496600, 0}, 1e-12);
}

TEST_CASE("Sinusoidal: Florence-2's exponent is the paper's where d_model is even") {
  SinusoidalConfig florence{
      .d_model = 10, .exponent = SinusoidExponent::i_over_half, .layout = SinusoidLayout::halves};
  const auto frequencies = posenc::sinusoidal_frequencies(florence);
  CHECK(same_bits(frequencies, posenc::sinusoidal_frequencies({.d_model = 10})));
}

TEST_CASE("Sinusoidal: table holds the rows of consecutive positions") {
  const Sinusoidal encoder({.d_model = 10});
  const auto table = encoder.table(4, 3);
  CHECK(table.dimension(0) == 4);
  CHECK(table.dimension(1) == 10);
  for (Index p = 0; p < 4; ++p) {
    const auto row = row_of<float>(encoder.config(), 3 + p);
    for (Index c = 0; c < 10; ++c) CHECK(table(p, c) == row[static_cast<std::size_t>(c)]);
  }
  CHECK(encoder.table<double>(2)(1, 0) == Approx(0.8414709848078965).epsilon(1e-15));
  CHECK(encoder.table<Eigen::bfloat16>(2)(1, 0) == Eigen::bfloat16(0.8414709848078965f));
  CHECK(encoder.table(0).size() == 0);
}

TEST_CASE("Sinusoidal: with frequencies of one's own") {
  const Sinusoidal encoder({.d_model = 4, .scale = 2.0}, {0.5, 0.25});
  const auto table = encoder.table<double>(3);
  CHECK(table(2, 0) == Approx(2 * std::sin(1.0)).epsilon(1e-15));
  CHECK(table(2, 1) == Approx(2 * std::cos(1.0)).epsilon(1e-15));
  CHECK(table(2, 2) == Approx(2 * std::sin(0.5)).epsilon(1e-15));
  CHECK(table(2, 3) == Approx(2 * std::cos(0.5)).epsilon(1e-15));
  // Those of the rule give the encoder of the rule.
  const auto rule = posenc::sinusoidal_frequencies({.d_model = 512});
  CHECK(same_bits(values_of(Sinusoidal({.d_model = 512}, rule).table(5)),
                  values_of(Sinusoidal({.d_model = 512}).table(5))));
}

TEST_CASE("Sinusoidal: a negative position has the sines of the positive one negated", "[property]") {
  for (const Position p : {1, 17, 131071}) {
    const auto ahead = row_of<float>({.d_model = 64}, p), behind = row_of<float>({.d_model = 64}, -p);
    for (std::size_t i = 0; i < 64; i += 2) {
      CHECK(behind[i] == -ahead[i]);
      CHECK(behind[i + 1] == ahead[i + 1]);
    }
  }
}

TEST_CASE("Sinusoidal: huge positions keep their phase") {
  const auto frequencies = posenc::sinusoidal_frequencies({.d_model = 64});
  for (const Position p :
       {Position{1} << 40, -(Position{1} << 40), Position{1025} << 40, Position{1} << 60}) {
    const auto row = row_of<float>({.d_model = 64}, p);
    const auto wide = row_of<double>({.d_model = 64}, p);
    for (std::size_t i = 0; i < 32; ++i) {
      const posenc_test::CosSinOfProduct exact(p, frequencies[i]);
      INFO("position " << p << ", frequency " << i);
      CHECK(std::abs(wide[2 * i] - exact.sin) <= 4e-16 + 3e-16);
      CHECK(std::abs(wide[2 * i + 1] - exact.cos) <= 4e-16 + 3e-16);
      CHECK(std::abs(double(row[2 * i]) - exact.sin) <= 3.2e-8);
      CHECK(std::abs(double(row[2 * i + 1]) - exact.cos) <= 3.2e-8);
    }
  }
}

TEMPLATE_TEST_CASE("Sinusoidal: nothing to do, and next to nothing", "", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const Sinusoidal encoder({.d_model = 6});
  using Extents = std::array<Index, 3>;
  for (const Extents& extents : {Extents{0, 5, 6}, Extents{2, 0, 6}, Extents{0, 0, 6}}) {
    in_every_storage(
        Values<S, 3>{extents, {}}, [&](auto& x) { encoder.add(x, consecutive(0, extents[1])); },
        [&](const char*, const Values<S, 3>& x) { CHECK(x.values.empty()); });
    const Values<S, 3> empty{extents, {}};
    CHECK(encoder.scale_vjp(empty.view(), consecutive(0, extents[1])) == 0.0);
  }
  auto one = random_values<S, 1>({6});
  const auto before = one;
  encoder.add(one.view(), consecutive(0, 1));
  for (std::size_t c = 0; c < 6; ++c)
    CHECK(one.values[c] ==
          static_cast<S>(static_cast<compute_t<S>>(before.values[c]) + static_cast<compute_t<S>>(c % 2)));
}

TEST_CASE("Sinusoidal: a configuration without a meaning is refused") {
  static const double nan = posenc_test::quiet_nan;
  const auto refuse = [](const SinusoidalConfig& config, std::initializer_list<const char*> parts) {
    check_throws<std::invalid_argument>([&] { (void)Sinusoidal(config); }, parts);
    check_throws<std::invalid_argument>([&] { (void)posenc::sinusoidal_frequencies(config); }, parts);
    check_throws<std::invalid_argument>([&] { (void)Sinusoidal(config, {1.0, 0.5}); }, parts);
  };
  refuse({}, {"posenc: d_model", "the width of a row", "got nothing"});
  refuse({.d_model = 0}, {"d_model", "at least 1", "got 0"});
  refuse({.d_model = -4}, {"d_model", "at least 1", "got -4"});
  refuse({.d_model = 5}, {"d_model", "even number", "odd_dim", "got 5"});
  refuse({.d_model = 4, .base = 0.0}, {"base", "positive finite", "got 0"});
  refuse({.d_model = 4, .base = -2.0}, {"base", "positive finite", "got -2"});
  refuse({.d_model = 4, .base = infinity}, {"base", "positive finite", "got inf"});
  refuse({.d_model = 4, .base = nan}, {"base", "positive finite", "got nan"});
  refuse({.d_model = 4, .scale = infinity}, {"scale", "finite", "got inf"});
  refuse({.d_model = 4, .scale = nan}, {"scale", "finite", "got nan"});

  const auto beyond = [](Position first) {
    check_throws<std::out_of_range>([&] { (void)Sinusoidal({.d_model = 4, .first_position = first}); },
                                    {"first_position", "2^60", std::to_string(first).c_str()});
  };
  beyond(posenc::largest_position + 1);
  beyond(-posenc::largest_position - 1);
  CHECK_NOTHROW(Sinusoidal({.d_model = 4, .first_position = posenc::largest_position}));

  // Of a base below 1 the frequencies grow.
  check_throws<std::invalid_argument>([&] { (void)Sinusoidal({.d_model = 64, .base = 1e-30}); },
                                      {"frequencies[", "finite", "2^64"});
}

TEST_CASE("Sinusoidal: frequencies that don't fit are refused") {
  check_throws<std::invalid_argument>([] { (void)Sinusoidal({.d_model = 4}, {1.0}); },
                                      {"frequencies", "expected 2", "got 1"});
  check_throws<std::invalid_argument>([] { (void)Sinusoidal({.d_model = 4}, {1.0, posenc_test::infinity}); },
                                      {"frequencies[1]", "finite", "got inf"});
  check_throws<std::invalid_argument>(
      [] { (void)Sinusoidal({.d_model = 5, .odd_dim = OddDim::longer_first}, {1.0, 0.5}); },
      {"frequencies", "expected 3", "got 2"});
}

TEST_CASE("Sinusoidal: a call that doesn't fit is refused and writes nothing") {
  using S = float;
  const Sinusoidal encoder({.d_model = 6});
  auto x = random_values<S, 3>({2, 4, 6});
  const auto v = x.view();
  const auto at = consecutive(0, 4);
  using std::invalid_argument;

  auto narrow = v.slice(2, 0, 5);
  check_refused<invalid_argument>(v, [&] { encoder.add(narrow, at); },
                                  {"posenc: x", "expected 6 features (d_model)", "got 5"});
  check_refused<invalid_argument>(v, [&] { encoder.encode(narrow, at); },
                                  {"out", "expected 6 features (d_model)", "got 5"});
  check_throws<invalid_argument>([&] { (void)encoder.scale_vjp(narrow, at); },
                                 {"dy", "expected 6 features (d_model)", "got 5"});

  const auto short_at = consecutive(0, 3);
  check_refused<invalid_argument>(v, [&] { encoder.add(v, short_at); },
                                  {"at", "expected 4 positions", "got 3"});
  check_refused<invalid_argument>(v, [&] { encoder.encode(v, short_at); },
                                  {"at", "expected 4 positions", "got 3"});
  check_throws<invalid_argument>([&] { (void)encoder.scale_vjp(v, short_at); },
                                 {"at", "expected 4 positions", "got 3"});

  const auto three_rows = consecutive(std::vector<Position>{0, 0, 0}, 4);
  check_refused<invalid_argument>(v, [&] { encoder.add(v, three_rows); }, {"at", "1 or 2 rows", "got 3"});

  const auto other = random_values<S, 3>({2, 5, 6});
  check_refused<invalid_argument>(v, [&] { encoder.add(v, other.view(), at); },
                                  {"out", "expected shape (2, 5, 6)", "got (2, 4, 6)"});

  const posenc::View<S, 3> broadcast(x.values.data(), {2, 4, 6}, {0, 6, 1});
  check_refused<invalid_argument>(v, [&] { encoder.add(broadcast, at); }, {"stride 0 on axis 0", "extent 2"});
  check_refused<invalid_argument>(v, [&] { encoder.encode(broadcast, at); },
                                  {"out", "stride 0 on axis 0", "extent 2"});

  check_throws<invalid_argument>([&] { (void)encoder.table(-1); }, {"count", "at least 0", "got -1"});
}

TEST_CASE("Sinusoidal: a broadcast input is fine") {
  const Sinusoidal encoder({.d_model = 6});
  const auto row = random_values<float, 2>({4, 6});
  const posenc::View<const float, 3> broadcast(row.values.data(), {2, 4, 6}, {0, 6, 1});
  auto out = random_values<float, 3>({2, 4, 6}, 3), expected = values_of(broadcast);
  encoder.add(out.view(), broadcast, consecutive(0, 4));
  encoder.add(expected.view(), consecutive(0, 4));
  CHECK(same_bits(out, expected));
}

TEST_CASE("Sinusoidal: in place or apart") {
  const Sinusoidal sinusoidal({.d_model = 6});
  keeps_memory_apart<float, 3>(
      {3, 4, 6}, "x", [&](const auto& out, const auto& x) { sinusoidal.add(out, x, consecutive(1, 4)); });
}

TEST_CASE("Sinusoidal: widths and tables that no memory holds are refused") {
  const Index most = std::numeric_limits<Index>::max();
  check_throws<std::invalid_argument>([&] { (void)Sinusoidal({.d_model = most - 1}); },
                                      {"posenc: d_model", "at most 2^24"});
  check_throws<std::out_of_range>([&] { (void)Sinusoidal({.d_model = 4}).table(Index{1} << 60); },
                                  {"posenc: table", "at most", "got 1152921504606846976 * 4"});
}

namespace {

/// The table that an implementation with these options builds, row by row in double: PE of row r.
std::vector<double> reference_row(const SinusoidalConfig& config, Position r) {
  const Index d = *config.d_model, half = config.odd_dim == OddDim::longer_first ? (d + 1) / 2 : d / 2;
  std::vector<double> row;
  if (r == config.padding_idx) return std::vector<double>(static_cast<std::size_t>(d), 0.0);
  std::vector<double> one, two;  // the first and the second function of each pair
  for (Index i = 0; i < half; ++i) {
    const double n = static_cast<double>(i), h = static_cast<double>(half);
    const double exponent = config.exponent == SinusoidExponent::two_i_over_d ? 2 * n / static_cast<double>(d)
                            : config.exponent == SinusoidExponent::i_over_half ? n / h
                            : half > 1                                         ? n / (h - 1)
                                                                               : 0;
    const double angle = static_cast<double>(r) * std::pow(config.base, -exponent);
    one.push_back(config.order == SinusoidOrder::sin_first ? std::sin(angle) : std::cos(angle));
    two.push_back(config.order == SinusoidOrder::sin_first ? std::cos(angle) : std::sin(angle));
  }
  if (config.layout == SinusoidLayout::halves) {
    row = one;
    row.insert(row.end(), two.begin(), two.end());
  } else {
    for (std::size_t i = 0; i < one.size(); ++i) row.push_back(one[i]), row.push_back(two[i]);
  }
  row.resize(static_cast<std::size_t>(d), 0.0);  // one less of the second function, or a zero at the end
  for (double& value : row) value *= config.scale;
  return row;
}

}  // namespace

TEST_CASE("Sinusoidal: any two options act independently", "[property]") {
  using Change = void (*)(SinusoidalConfig&);
  // One list an option: of two lists, every pair of entries.
  const std::vector<std::vector<Change>> options = {
      {[](auto& c) { c.d_model = 1, c.odd_dim = OddDim::longer_first; }, [](auto& c) { c.d_model = 2; },
       [](auto& c) { c.d_model = 3, c.odd_dim = OddDim::zero_last; },
       [](auto& c) { c.d_model = 9, c.odd_dim = OddDim::longer_first; },
       [](auto& c) { c.d_model = 9, c.odd_dim = OddDim::zero_last; }},
      {[](auto& c) { c.exponent = SinusoidExponent::i_over_half_minus_one; },
       [](auto& c) { c.exponent = SinusoidExponent::i_over_half; }},
      {[](auto& c) { c.layout = SinusoidLayout::halves; }},
      {[](auto& c) { c.order = SinusoidOrder::cos_first; }},
      {[](auto& c) { c.base = 100; }, [](auto& c) { c.base = 0.5; }},
      {[](auto& c) { c.first_position = 1; }, [](auto& c) { c.first_position = 2; },
       [](auto& c) { c.first_position = -3; }},
      {[](auto& c) { c.padding_idx = 0; }, [](auto& c) { c.padding_idx = 1; },
       [](auto& c) { c.padding_idx = -2; }, [](auto& c) { c.padding_idx = 4; }},
      {[](auto& c) { c.scale = 0.5; }, [](auto& c) { c.scale = -3; }, [](auto& c) { c.scale = 0; }}};
  const auto dy = random_values<double, 2>({11, 9}, 3);
  for (std::size_t a = 0; a < options.size(); ++a)
    for (std::size_t b = a + 1; b < options.size(); ++b)
      for (std::size_t m = 0; m < options[a].size(); ++m)
        for (std::size_t n = 0; n < options[b].size(); ++n) {
          SinusoidalConfig config{.d_model = 8};
          options[a][m](config), options[b][n](config);
          INFO("options " << a << "." << m << " and " << b << "." << n);
          const Sinusoidal encoder(config);
          const Index d = encoder.d_model();
          const auto table = encoder.table<double>(11, -5);
          double most = 0, gradient = 0, values = 0;
          for (Index s = 0; s < 11; ++s) {
            const std::vector<double> row = reference_row(config, s - 5 + config.first_position);
            SinusoidalConfig unscaled = config;
            unscaled.scale = 1;
            const std::vector<double> slope = reference_row(unscaled, s - 5 + config.first_position);
            for (Index c = 0; c < d; ++c) {
              const auto at = static_cast<std::size_t>(c);
              most = std::max(most, std::fabs(table(s, c) - row[at]));
              gradient += dy.view()(s, c) * slope[at];
              values += std::fabs(dy.view()(s, c));
            }
          }
          CHECK(most <= 2e-14 * std::max(1.0, std::fabs(config.scale)));
          CHECK(std::fabs(encoder.scale_vjp(dy.view().slice(1, 0, d), consecutive(-5, 11)) - gradient) <=
                2e-14 * values);
        }
}
