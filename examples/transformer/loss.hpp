#pragma once
// Label-smoothed cross-entropy (Szegedy et al. 2016; "Attention Is All You Need", section 5.4): the target is
// not the label y alone but
//
//   q(k) = (1 - eps) [k = y] + eps / V,      loss = -sum over k of q(k) log softmax(z)(k)
//
// Its gradient with respect to the logits z is softmax(z) - q.

#include <cmath>
#include <span>

#include "transformer/matrix.hpp"
#include "transformer/sequences.hpp"

namespace transformer {

struct LossSum {
  double loss = 0;    // summed over the tokens
  Index correct = 0;  // tokens whose label has the highest logit
};

/// The loss of each row of `logits` against its label. The logits are overwritten with their gradient times
/// `weight`: 1 / tokens for a mean over tokens.
template <class Scalar>
LossSum cross_entropy(const View<Scalar, 2>& logits, std::span<const Token> labels, double label_smoothing,
                      double weight) {
  LossSum sum;
  auto z = matrix(logits);
  const double vocabulary = static_cast<double>(z.cols());
  const auto smoothed = static_cast<Scalar>(label_smoothing / vocabulary);
  const auto confident = static_cast<Scalar>(1.0 - label_smoothing);
  for (Index t = 0; t < z.rows(); ++t) {
    auto row = z.row(t).array();
    const Index label = labels[static_cast<std::size_t>(t)];
    Index best = 0;
    const Scalar largest = row.maxCoeff(&best);
    row -= largest;
    const double of_label = row(label), of_all = row.sum();
    row = row.exp();
    const Scalar total = row.sum();
    const double log_total = std::log(static_cast<double>(total));
    sum.loss += log_total - (1.0 - label_smoothing) * of_label - label_smoothing * of_all / vocabulary;
    sum.correct += best == label;
    row = static_cast<Scalar>(weight) * (row / total - smoothed);
    row(label) -= static_cast<Scalar>(weight) * confident;
  }
  return sum;
}

/// log softmax(z), in place, for generation.
template <class Row>
void log_softmax(Row&& z) {
  const auto largest = z.maxCoeff();
  z.array() -= largest;
  z.array() -= std::log(z.array().exp().sum());
}

}  // namespace transformer
