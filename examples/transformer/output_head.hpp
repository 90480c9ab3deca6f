#pragma once
// From hidden states to logits over the vocabulary:
//
//   tied     z = h E^T + b    E: the embedding table of the tokens that are predicted (Press & Wolf 2017)
//   untied   z = h W + b      W: (d_model, vocab_size), a matrix of its own
//
// The paper ties ("Attention Is All You Need", section 3.4) and has no b.

#include <string>
#include <vector>

#include "posenc/embedding/token_embedding.hpp"
#include "transformer/linear.hpp"
#include "transformer/matrix.hpp"
#include "transformer/parameters.hpp"

namespace transformer {

struct OutputConfig {
  bool tied = true;
  bool bias = false;
};

template <class Scalar>
class OutputHead {
 public:
  /// table: (vocab_size, d_model), the embedding. Adds `name`.weight unless tied, and `name`.bias where
  /// asked.
  OutputHead(Parameters<Scalar>& parameters, const std::string& name, const Slot& table,
             const OutputConfig& config)
      : table_(table), has_bias_(config.tied && config.bias) {
    if (!config.tied) own_.emplace_back(parameters, name, table.cols, table.rows, config.bias);
    if (has_bias_) bias_ = parameters.add(name + ".bias", table.rows, Init::constant(0));
  }

  View<Scalar, 2> forward(Pass<Scalar>& pass, const View<const Scalar, 2>& hidden) const {
    if (!own_.empty()) return own_[0].forward(pass, hidden);
    const View<Scalar, 2> z = pass.workspace.matrix(hidden.extent(0), table_.rows);
    if (hidden.extent(0) == 1)  // a step of decoding: no tiles, and nothing to allocate for them
      matrix(z).noalias() = matrix(hidden) * pass.weight(table_).transpose();
    else
      embedding(pass).logits(z, hidden);
    if (has_bias_) matrix(z).rowwise() += pass.weight(bias_).row(0);
    return z;
  }

  View<Scalar, 2> backward(Pass<Scalar>& pass, const View<const Scalar, 2>& dz,
                           const View<const Scalar, 2>& hidden) const {
    if (!own_.empty()) return own_[0].backward(pass, dz, hidden);
    if (has_bias_) pass.gradient(bias_).row(0) += matrix(dz).colwise().sum();
    const View<Scalar, 2> dh = pass.workspace.matrix(hidden.extent(0), hidden.extent(1));
    embedding(pass).logits_vjp(dh, pass.gradient_view(table_), hidden, dz);
    return dh;
  }

 private:
  posenc::TokenEmbedding<Scalar> embedding(const Pass<Scalar>& pass) const {
    return posenc::TokenEmbedding<Scalar>(pass.parameters.view(table_));
  }

  Slot table_, bias_;
  bool has_bias_;
  std::vector<Linear<Scalar>> own_;  // one unless tied
};

}  // namespace transformer
