#pragma once
// What the tests of the transformer share: random matrices and sentences, and gradients by finite
// differences.

#include <cmath>
#include <functional>
#include <span>
#include <string>

#include "support/support.hpp"
#include "transformer/generation.hpp"
#include "transformer/training.hpp"
#include "transformer/transformer.hpp"

namespace transformer_test {

using namespace transformer;

template <class Scalar>
Matrix<Scalar> random_matrix(Index rows, Index cols, std::uint64_t seed) {
  Random random(seed);
  Matrix<Scalar> m(rows, cols);
  for (Index n = 0; n < m.size(); ++n) m.data()[n] = static_cast<Scalar>(random.normal());
  return m;
}

template <class Scalar>
View<const Scalar, 2> view_of(const Matrix<Scalar>& m) {
  return {m.data(), {m.rows(), m.cols()}};
}

template <class T>
auto copy_of(const View<T, 2>& x) {
  return Matrix<std::remove_const_t<T>>(strided(x));
}

template <class Scalar>
Vector<Scalar> flat(const Matrix<Scalar>& m) {
  return Eigen::Map<const Vector<Scalar>>(m.data(), m.size());
}

/// Word ids in [3, vocabulary).
inline Tokens random_tokens(Index n, Index vocabulary, std::uint64_t seed) {
  Random random(seed);
  Tokens tokens;
  for (Index i = 0; i < n; ++i)
    tokens.push_back(static_cast<Token>(3 + random.bits() % static_cast<std::uint64_t>(vocabulary - 3)));
  return tokens;
}

/// Sentences of the given lengths.
inline Sequences random_sentences(std::initializer_list<Index> lengths, Index vocabulary,
                                  std::uint64_t seed) {
  Sequences sentences;
  for (const Index n : lengths) sentences.append(random_tokens(n, vocabulary, seed++));
  return sentences;
}

/// |central difference - gradient| / |central difference|, over the given values together.
inline double gradient_error(const std::function<double()>& loss, std::span<double> values,
                             std::span<const double> gradient) {
  REQUIRE(values.size() == gradient.size());
  double wrong = 0, size = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double kept = values[i], h = 1e-5;
    values[i] = kept + h;
    const double above = loss();
    values[i] = kept - h;
    const double below = loss();
    values[i] = kept;
    const double difference = (above - below) / (2 * h);
    wrong += (difference - gradient[i]) * (difference - gradient[i]);
    size += difference * difference;
  }
  REQUIRE(size > 0);
  return std::sqrt(wrong / size);
}

/// Moves every parameter away from its start, where some are zero.
template <class Scalar>
void shake(Parameters<Scalar>& parameters, std::uint64_t seed) {
  Random random(seed);
  for (Scalar& value : parameters.flat()) value += static_cast<Scalar>(0.2 * random.normal());
}

/// Checks every gradient of parameters against finite differences of loss().
inline void check_parameters(const std::function<double()>& loss, Parameters<double>& parameters,
                             const Vector<double>& gradients) {
  for (const auto& entry : parameters.entries()) {
    CAPTURE(entry.name);
    CHECK(gradient_error(loss, parameters.values(entry),
                         {gradients.data() + entry.offset, static_cast<std::size_t>(entry.size)}) < 1e-6);
  }
}

/// A layer as y = forward(pass, x), dx = backward(pass, dy): checks dx and the gradient of every parameter,
/// for the loss <w, y> with random w.
template <class Forward, class Backward>
void check_layer(Parameters<double>& parameters, Matrix<double> x, const Forward& forward,
                 const Backward& backward, posenc::Mode mode = posenc::Mode::eval) {
  parameters.initialize();
  shake(parameters, 17);
  Workspace<double> workspace;
  Vector<double> gradients = Vector<double>::Zero(parameters.count());
  Pass<double> pass{parameters, workspace, &gradients, mode, 5};
  Matrix<double> w;
  const auto loss = [&] {
    workspace.reset();
    const auto y = matrix(forward(pass, view_of(x)));
    if (w.size() == 0) w = random_matrix<double>(y.rows(), y.cols(), 23);
    return (w.array() * y.array()).sum();
  };
  loss();
  const Matrix<double> dx = copy_of(backward(pass, view_of(w)));
  const std::size_t n = static_cast<std::size_t>(x.size());
  CHECK(gradient_error(loss, {x.data(), n}, {dx.data(), n}) < 1e-6);
  check_parameters(loss, parameters, gradients);
}

}  // namespace transformer_test
