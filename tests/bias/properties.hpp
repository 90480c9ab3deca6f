#pragma once
// What every bias promises, whatever it is. check_bias runs all of it for one bias against its definition: a
// function (batch row, head, query, key) in double, -infinity for a hidden key.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "posenc/bias/softmax.hpp"
#include "support/support.hpp"

namespace posenc_test {

using Definition = std::function<double(Index b, Index h, Index i, Index j)>;

/// A call: these scores, these positions, this bias.
template <class Bias>
struct BiasCase {
  const Bias& bias;
  Index batch, heads;
  const posenc::Positions &q_at, &k_at;
  Definition expected;

  std::array<Index, 4> extents() const { return {batch, heads, q_at.count(), k_at.count()}; }
};

inline constexpr double hidden = -std::numeric_limits<double>::infinity();

/// The same values in memory of other orders: strides of axes (b, h, i, j), and how much memory they need.
inline std::vector<std::array<Index, 4>> layouts(const std::array<Index, 4>& n) {
  return {{n[1] * n[2] * n[3], n[2] * n[3], n[3], 1},                  // packed
          {1, n[0], n[0] * n[1], n[0] * n[1] * n[2]},                  // column-major
          {n[2] * n[1] * (n[3] + 3), n[3] + 3, n[1] * (n[3] + 3), 1},  // (b, q, h, k) with gaps
          {2 * n[1] * n[2] * n[3], 2 * n[2] * n[3], 2 * n[3], 2}};     // every other element
}

/// f(view) in each layout; check(values) with what it holds then.
template <class S, class F, class Check>
void in_every_layout(const Values<S, 4>& values, const F& f, const Check& check) {
  for (const auto& strides : layouts(values.extents)) {
    std::size_t size = 1;
    for (std::size_t axis = 0; axis < 4; ++axis)
      size += static_cast<std::size_t>((std::max)(Index{0}, values.extents[axis] - 1) * strides[axis]);
    std::vector<S> memory(size + 1, S(7));
    const posenc::View<S, 4> v(memory.data() + 1, values.extents, strides);
    fill(v, values);
    f(v);
    check(values_of(v));
  }
}

/// The bias alone is its definition, in all forms, and the same bits in every layout, on any number of
/// threads, and for a part of the queries or keys.
template <class S, class Bias>
void check_bias_forms(const BiasCase<Bias>& c) {
  const auto scores = random_values<S, 4>(c.extents(), 3);
  Values<S, 4> sums = scores;
  c.bias.add(sums.view(), c.q_at, c.k_at);
  for_each_coordinate(c.extents(), [&](const auto& at, Index n) {
    const double b = c.expected(at[0], at[1], at[2], at[3]);
    const double got = to_double(sums.values[static_cast<std::size_t>(n)]);
    const double score = to_double(scores.values[static_cast<std::size_t>(n)]);
    INFO("b " << at[0] << ", h " << at[1] << ", i " << at[2] << ", j " << at[3]);
    if (b == hidden)
      CHECK(got == hidden);
    else
      CHECK(std::fabs(got - (score + b)) <=
            epsilon<S> * (std::fabs(score + b) + std::fabs(b) + std::fabs(score)));
  });
  in_every_layout(
      scores, [&](const auto& v) { c.bias.add(v, c.q_at, c.k_at); },
      [&](const auto& got) { CHECK(same_bits(got, sums)); });
  Values<S, 4> out = scores;
  c.bias.add(out.view(), scores.view(), c.q_at, c.k_at);
  CHECK(same_bits(out, sums));
  for (const int threads : {1, 3, 8}) {
    out = scores;
    c.bias.add(ThreadsDevice{threads}, out.view(), c.q_at, c.k_at);
    CHECK(same_bits(out, sums));
  }
  // A hidden key is hidden whatever its score holds.
  out = scores;
  for_each_coordinate(c.extents(), [&](const auto& at, Index n) {
    if (c.expected(at[0], at[1], at[2], at[3]) == hidden)
      out.values[static_cast<std::size_t>(n)] = std::numeric_limits<S>::quiet_NaN();
  });
  c.bias.add(out.view(), c.q_at, c.k_at);
  CHECK(same_bits(out, sums));
}

/// One head as a tile, one query as a row.
template <class Bias>
void check_bias_tiles(const BiasCase<Bias>& c) {
  if (c.q_at.rows() != 1 || c.k_at.rows() != 1 || c.batch != 1) return;
  for (Index h = 0; h < c.heads; ++h) {
    Eigen::Tensor<double, 2> tile(c.q_at.count(), c.k_at.count());
    c.bias.tile(tile, h, c.q_at, c.k_at);
    for (Index i = 0; i < tile.dimension(0); ++i)
      for (Index j = 0; j < tile.dimension(1); ++j) {
        const double b = c.expected(0, h, i, j);
        if (b == hidden)
          CHECK(tile(i, j) == hidden);
        else
          CHECK(tile(i, j) == Approx(b).margin(1e-6));
      }
  }
}

/// softmax with the bias is the softmax of the sum, with the causal mask and without, as a part of a sum and
/// alone; the same bits in every layout and on any number of threads.
template <class S, class Bias>
void check_bias_softmax(const BiasCase<Bias>& c) {
  const auto scores = random_values<S, 4>(c.extents(), 5);
  const bool one_axis = c.q_at.axes() == 1;
  for (const bool causal : {false, true}) {
    if (causal && !one_axis) continue;
    const posenc::SoftmaxConfig config{.scale = 0.5, .causal = causal};
    Values<S, 4> p = scores;
    posenc::softmax(p.view(), c.bias, c.q_at, c.k_at, config);
    const Index keys = c.k_at.count();
    for (Index b = 0; b < c.batch; ++b)
      for (Index h = 0; h < c.heads; ++h)
        for (Index i = 0; i < c.q_at.count(); ++i) {
          const std::size_t row = static_cast<std::size_t>(((b * c.heads + h) * c.q_at.count() + i) * keys);
          std::vector<double> x(static_cast<std::size_t>(keys));
          double top = hidden, sum = 0;
          for (Index j = 0; j < keys; ++j) {
            const bool later = causal && c.k_at(b, j) > c.q_at(b, i);
            const auto n = static_cast<std::size_t>(j);
            x[n] = later ? hidden : 0.5 * to_double(scores.values[row + n]) + c.expected(b, h, i, j);
            top = (std::max)(top, x[n]);
          }
          for (const double one : x) sum += one == hidden ? 0 : std::exp(one - top);
          for (std::size_t n = 0; n < x.size(); ++n) {
            const double expected = x[n] == hidden ? 0 : std::exp(x[n] - top) / sum;
            const double got = to_double(p.values[row + n]);
            INFO("b " << b << ", h " << h << ", i " << i << ", j " << n << ", causal " << causal);
            // Biases of float are rounded, and so are the largest of them in x.
            CHECK(std::fabs(got - expected) <= epsilon<S> * expected + 2e-6);
            if (x[n] == hidden) CHECK(got == 0);
          }
        }
    in_every_layout(
        scores, [&](const auto& v) { posenc::softmax(v, c.bias, c.q_at, c.k_at, config); },
        [&](const auto& got) { CHECK(same_bits(got, p)); });
    for (const int threads : {1, 3, 8}) {
      Values<S, 4> out = scores;
      posenc::softmax(ThreadsDevice{threads}, out.view(), c.bias, c.q_at, c.k_at, config);
      CHECK(same_bits(out, p));
    }
  }
}

/// Wrong shapes are refused with nothing written.
template <class Bias>
void check_bias_refusals(const BiasCase<Bias>& c) {
  const auto refused = [&](const std::array<Index, 4>& extents) {
    const auto scores = random_values<float, 4>(extents);
    auto out = scores;
    CHECK_THROWS(c.bias.add(out.view(), c.q_at, c.k_at));
    CHECK_THROWS(posenc::softmax(out.view(), c.bias, c.q_at, c.k_at));
    CHECK(same_bits(out, scores));
  };
  const auto n = c.extents();
  refused({n[0], n[1], n[2] + 1, n[3]});
  refused({n[0], n[1], n[2], n[3] + 1});
  if (c.q_at.rows() > 1) refused({n[0] + 1, n[1], n[2], n[3]});
}

/// All of it.
template <class Bias>
void check_bias(const BiasCase<Bias>& c) {
  check_bias_forms<float>(c);
  check_bias_forms<Eigen::bfloat16>(c);
  check_bias_softmax<float>(c);
  check_bias_softmax<double>(c);
  check_bias_softmax<Eigen::half>(c);
  check_bias_tiles(c);
  check_bias_refusals(c);
}

/// The gradient of add with respect to parameters: loss = sum d (scores + bias), of which `with(n, change)`
/// is the bias whose parameter n, in the order of `gradient`, has changed.
template <class Bias, class With>
void check_bias_gradient(const BiasCase<Bias>& c, const std::vector<double>& gradient,
                         const Values<double, 4>& d, const With& with) {
  const double step = 1e-3;  // a bias is linear in its table
  for (std::size_t n = 0; n < gradient.size(); ++n) {
    const auto loss = [&](double change) {
      auto sums = Values<double, 4>{c.extents(), std::vector<double>(d.values.size())};
      with(n, change).add(sums.view(), c.q_at, c.k_at);
      double all = 0;
      for (std::size_t k = 0; k < sums.values.size(); ++k)
        if (sums.values[k] != hidden) all += d.values[k] * sums.values[k];
      return all;
    };
    INFO("parameter " << n);
    CHECK(gradient[n] == Approx((loss(step) - loss(-step)) / (2 * step)).margin(1e-6));
  }
}

}  // namespace posenc_test
