#include "posenc/embedding/dropout.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "embedding/properties.hpp"
#include "support/overlap.hpp"

namespace {

using namespace posenc_test;
using posenc::compute_t;
using posenc::Dropout;
using posenc::Mode;
using posenc::View;

constexpr std::uint64_t seed = 0x123456789abcdef0u;

/// mask x / (1 - p), element by element.
template <class S>
std::vector<S> by_definition(const Dropout& dropout, const std::vector<S>& x, std::uint64_t with_seed,
                             std::uint64_t first = 0) {
  using C = compute_t<S>;
  std::vector<S> y;
  for (std::size_t n = 0; n < x.size(); ++n)
    y.push_back(dropout.keeps(with_seed, first + n)
                    ? static_cast<S>(static_cast<C>(x[n]) * static_cast<C>(1.0 / (1.0 - dropout.p())))
                    : S(0.0f));
  return y;
}

/// The mask of n elements as -1 and 1, less its mean: for correlations.
std::vector<double> centred_mask(const Dropout& dropout, std::uint64_t with_seed, std::uint64_t first,
                                 std::size_t n) {
  std::vector<double> mask(n);
  for (std::size_t i = 0; i < n; ++i)
    mask[i] = (dropout.keeps(with_seed, first + i) ? 1.0 : 0.0) - (1.0 - dropout.p());
  return mask;
}

/// Of two independent masks it is normal with mean 0 and variance 1.
double correlation(const std::vector<double>& a, const std::vector<double>& b, double p) {
  return dot(a, b) / (p * (1 - p)) / std::sqrt(static_cast<double>(a.size()));
}

}  // namespace

TEST_CASE("Dropout: Philox4x32-10 has the known answers of Random123") {
  using posenc::detail::philox;
  using Four = std::array<std::uint32_t, 4>;
  CHECK(philox({0, 0, 0, 0}, {0, 0}) == Four{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, {ones, ones}) ==
        Four{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}) ==
        Four{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("Dropout: element n compares word n % 4 of block n / 4 with p") {
  // Of the known answers: seed 0, block 0.
  const std::array<double, 4> uniform = {0x6627e8d5p-32, 0xe169c58dp-32, 0xbc57ac4cp-32, 0x9b00dbd8p-32};
  for (std::uint64_t n = 0; n < 4; ++n) {
    CHECK(Dropout(uniform[n]).keeps(0, n));
    CHECK_FALSE(Dropout(uniform[n] + 0x1p-32).keeps(0, n));
  }
  // All of the seed and all of the index count.
  const Dropout half(0.5);
  const auto mask = centred_mask(half, 0, 0, 64);
  for (const std::uint64_t other : {std::uint64_t{4}, std::uint64_t{1} << 34, std::uint64_t{1} << 63}) {
    CHECK_FALSE(same_bits(centred_mask(half, other, 0, 64), mask));
    CHECK_FALSE(same_bits(centred_mask(half, 0, other, 64), mask));
  }
}

TEMPLATE_TEST_CASE("Dropout: the storage of x does not matter", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const Dropout dropout(0.3);
  for (const Index d : {7, 1030}) {
    const auto x = random_values<S, 3>({2, 19, d});
    for (const Mode mode : {Mode::train, Mode::eval}) {
      check_storages_agree(x, [&](auto& in_place) { dropout.apply(in_place, mode, seed, 3); });
      check_storages_agree(random_values<S, 3>({2, 19, d}, 2),
                           [&](auto& out) { dropout.apply(out, x.view(), mode, seed, 3); });
      check_input_storages_agree(x, [&](const auto& input) {
        auto out = random_values<S, 3>({2, 19, d}, 2);
        dropout.apply(out.view(), input, mode, seed, 3);
        return out;
      });
    }
  }
  check_matrices_agree(random_values<S, 2>({19, 7}), [&](auto& x) { dropout.apply(x, Mode::train, seed); });
}

TEMPLATE_TEST_CASE("Dropout: threads do not matter", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const Dropout dropout(0.3);
  for (const Index d : {7, 1030})
    check_threads_agree([&](const auto& device) {
      auto x = random_values<S, 3>({2, 19, d});
      dropout.apply(device, x.view(), Mode::train, seed, 1);
      Eigen::Tensor<S, 3> column_major(2, 19, d);
      fill(column_major, x);
      dropout.apply_vjp(device, column_major, Mode::train, seed + 1);
      return values_of(column_major);
    });
}

TEMPLATE_TEST_CASE("Dropout: a shard has the mask that it has in the whole", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const Dropout dropout(0.3);
  auto whole = random_values<S, 3>({4, 5, 7}), parts = whole;
  dropout.apply(whole.view(), Mode::train, seed, 2);
  for (Index b = 0; b < 4; ++b)
    for (const auto& [first, count] : {std::pair<Index, Index>{0, 3}, {3, 2}})
      dropout.apply(parts.view().slice(0, b, 1).slice(1, first, count), Mode::train, seed,
                    static_cast<std::uint64_t>(2 + (b * 5 + first) * 7));
  CHECK(same_bits(parts, whole));
}

TEMPLATE_TEST_CASE("Dropout: every rank is masked in row-major order, scaled once, in place or not",
                   "[property]", float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto x = random_values<S, 1>({120});
  const auto check = [&]<std::size_t Rank>(const std::array<Index, Rank>& extents) {
    for (const double p : {0.1, 0.5, 0.999}) {
      const Dropout dropout(p);
      const auto expected = by_definition(dropout, x.values, seed, 9);
      auto in_place = x, out = random_values<S, 1>({120}, 2), gradient = x;
      const auto shaped = [&](auto& values) { return posenc::view(values.values.data(), extents); };
      dropout.apply(shaped(in_place), Mode::train, seed, 9);
      CHECK(same_bits(in_place.values, expected));
      dropout.apply(shaped(out), shaped(x), Mode::train, seed, 9);
      CHECK(same_bits(out.values, expected));
      dropout.apply_vjp(shaped(gradient), Mode::train, seed, 9);
      CHECK(same_bits(gradient.values, expected));
      Eigen::Tensor<S, int(Rank)> column_major;
      column_major.resize(extents);
      fill(column_major, values_of(shaped(x)));
      dropout.apply(column_major, Mode::train, seed, 9);
      CHECK(same_bits(values_of(column_major).values, expected));
    }
  };
  check(std::array<Index, 1>{120});
  check(std::array<Index, 2>{24, 5});
  check(std::array<Index, 3>{4, 6, 5});
  check(std::array<Index, 4>{2, 3, 4, 5});
  check(std::array<Index, 5>{2, 2, 3, 2, 5});
}

TEMPLATE_TEST_CASE("Dropout: apply_vjp is the adjoint of apply", "[property]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const Dropout dropout(0.3);
  const auto u = random_values<S, 3>({2, 19, 7}), v = random_values<S, 3>({2, 19, 7}, 2);
  for (const Mode mode : {Mode::train, Mode::eval}) {
    auto jv = v, jtu = u;
    dropout.apply(jv.view(), mode, seed);
    dropout.apply_vjp(jtu.view(), mode, seed);
    CHECK(agree<S>(dot(u.values, jv.values), dot(jtu.values, v.values), norm(u.values) * norm(jv.values)));
  }
}

TEMPLATE_TEST_CASE("Dropout: evaluation and p = 0 are the identity, bit for bit", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  auto x = random_values<S, 3>({2, 19, 7});
  x.values[0] = S(-0.0f);
  x.values[1] = static_cast<S>(posenc_test::quiet_nan);
  x.values[2] = static_cast<S>(posenc_test::infinity);
  x.values[3] = std::numeric_limits<S>::denorm_min();
  const auto check = [&](const Dropout& dropout, Mode mode) {
    auto in_place = x, out = random_values<S, 3>({2, 19, 7}, 2);
    dropout.apply(in_place.view(), mode, seed);
    CHECK(same_bits(in_place, x));
    dropout.apply(out.view(), x.view(), mode, seed);
    CHECK(same_bits(out, x));
  };
  check(Dropout(0.5), Mode::eval);
  check(Dropout(1.0), Mode::eval);
  check(Dropout(0.0), Mode::train);
  check(Dropout(0x1p-34), Mode::train);  // below the resolution of p
}

TEMPLATE_TEST_CASE("Dropout: p = 1 leaves positive zeros, whatever was there", "[property]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  auto x = random_values<S, 3>({2, 19, 7});
  x.values[1] = static_cast<S>(posenc_test::quiet_nan);
  x.values[2] = static_cast<S>(posenc_test::infinity);
  Dropout(1.0).apply(x.view(), Mode::train, seed);
  CHECK(same_bits(x.values, std::vector<S>(x.values.size(), S(0.0f))));
  CHECK_FALSE(Dropout(1.0).keeps(seed, 0));
}

TEMPLATE_TEST_CASE("Dropout: mask_row is apply on a row", "[property]", float, double) {
  using S = TestType;
  const Dropout dropout(0.4);
  const auto x = random_values<S, 1>({77});
  for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{7},
                                    std::uint64_t{1} << 34, ~std::uint64_t{0} - 10}) {
    auto row = x, applied = x;
    dropout.mask_row(seed, first, 77, row.values.data());
    dropout.apply(applied.view(), Mode::train, seed, first);
    CHECK(same_bits(row, applied));
  }
  auto nothing = x;
  dropout.mask_row(seed, 0, 0, nothing.values.data());
  CHECK(same_bits(nothing, x));
}

TEST_CASE("Dropout: the share of elements kept is 1 - p") {
  constexpr std::size_t n = 200000;
  for (const double p : {0.001, 0.1, 0.3, 0.5, 0.9}) {
    for (const std::uint64_t first : {std::uint64_t{0}, std::uint64_t{1} << 40}) {
      const auto mask = centred_mask(Dropout(p), seed, first, n);
      double sum = 0;
      for (const double m : mask) sum += m;
      INFO("p " << p);
      CHECK(std::abs(sum) <= 5 * std::sqrt(n * p * (1 - p)));
    }
  }
}

TEST_CASE("Dropout: the mean is kept") {
  Values<double, 1> x{{200000}, std::vector<double>(200000, 1.0)};
  Dropout(0.3).apply(x.view(), Mode::train, 42);
  double sum = 0;
  for (const double value : x.values) sum += value;
  CHECK(sum / 200000 == Approx(1.0).margin(5 * std::sqrt(0.3 / 0.7 / 200000)));
}

TEST_CASE("Dropout: masks of other seeds, shards and neighbours are independent") {
  constexpr std::size_t n = 100000;
  const double p = 0.3;
  const Dropout dropout(p);
  const auto mask = centred_mask(dropout, seed, 0, n);
  CHECK(correlation(mask, mask, p) == Approx(std::sqrt(n)).epsilon(0.05));  // the measure works
  for (const std::uint64_t other : {seed + 1, seed - 1, seed ^ (std::uint64_t{1} << 32), std::uint64_t{0}})
    CHECK(std::abs(correlation(mask, centred_mask(dropout, other, 0, n), p)) <= 5);
  for (const std::uint64_t shift : {std::uint64_t{1}, std::uint64_t{2}, std::uint64_t{4}, std::uint64_t{512},
                                    std::uint64_t{n}, std::uint64_t{1} << 34})
    CHECK(std::abs(correlation(mask, centred_mask(dropout, seed, shift, n), p)) <= 5);
}

TEMPLATE_TEST_CASE("Dropout: nothing to do", "", float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  using Extents = std::array<Index, 3>;
  for (const Extents& extents : {Extents{0, 3, 4}, Extents{2, 0, 4}, Extents{2, 3, 0}})
    for (const Mode mode : {Mode::train, Mode::eval})
      in_every_storage(
          Values<S, 3>{extents, {}}, [&](auto& x) { Dropout(0.5).apply(x, mode, seed); },
          [&](const char*, const Values<S, 3>& x) { CHECK(x.values.empty()); });
}

TEST_CASE("Dropout: what is no probability is refused") {
  const auto build = [](double p) { return [=] { (void)Dropout(p); }; };
  check_throws<std::invalid_argument>(build(-0.1), {"posenc: p", "[0, 1]", "got -0.1"});
  check_throws<std::invalid_argument>(build(1.5), {"p", "[0, 1]", "got 1.5"});
  check_throws<std::invalid_argument>(build(posenc_test::quiet_nan), {"p", "[0, 1]", "got nan"});
  check_throws<std::invalid_argument>(build(posenc_test::infinity), {"p", "[0, 1]", "got inf"});
  CHECK(Dropout(0.25).p() == 0.25);
}

TEST_CASE("Dropout: a call that doesn't fit is refused and writes nothing") {
  auto x = random_values<float, 3>({2, 3, 4});
  const auto other = random_values<float, 3>({2, 3, 5});
  const auto v = x.view();
  const View<float, 3> broadcast(x.values.data(), {2, 3, 4}, {0, 4, 1});
  for (const Mode mode : {Mode::train, Mode::eval}) {
    check_refused<std::invalid_argument>(v, [&] { Dropout(0.5).apply(v, other.view(), mode, seed); },
                                         {"posenc: out", "expected shape (2, 3, 5)", "got (2, 3, 4)"});
    check_refused<std::invalid_argument>(v, [&] { Dropout(0.5).apply(broadcast, mode, seed); },
                                         {"stride 0 on axis 0", "extent 2"});
    check_refused<std::invalid_argument>(v, [&] { Dropout(0.5).apply_vjp(broadcast, mode, seed); },
                                         {"stride 0 on axis 0", "extent 2"});
  }
}

TEST_CASE("Dropout: in place or apart") {
  for (const Mode mode : {Mode::train, Mode::eval}) {
    const auto apply = [&](const auto& out, const auto& x) { Dropout(0.5).apply(out, x, mode, seed); };
    if (mode == Mode::train) keeps_memory_apart<float, 3>({3, 4, 5}, "x", apply);
    std::vector<float> memory(100, 1.0f);
    const View<float, 2> x(memory.data(), {4, 5}), moved(memory.data() + 1, {4, 5});
    const View<float, 2> columns(memory.data(), {4, 5}, {1, 4});
    check_throws<std::invalid_argument>([&] { apply(moved, x); }, {"posenc: out", "x itself"});
    check_throws<std::invalid_argument>([&] { apply(columns, x); }, {"posenc: out", "x itself"});
  }
}
