#pragma once
// One of each, for the files of this folder. Every line that is wrong ends with the comment `wrong`.
#include <array>
#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "posenc/posenc.hpp"

using posenc::Axes;
using posenc::Pairing;
using Tensor2 = Eigen::Tensor<float, 2, Eigen::RowMajor>;
using Tensor3 = Eigen::Tensor<float, 3, Eigen::RowMajor>;
using Tensor4 = Eigen::Tensor<float, 4, Eigen::RowMajor>;
using Ids = Eigen::Tensor<std::int64_t, 2, Eigen::RowMajor>;

struct Encoders {
  const posenc::Sinusoidal& sinusoidal;
  const posenc::LearnedPositions<float>& learned;
  const posenc::TokenEmbedding<float>& token;
  const posenc::TransformerEmbedding<float>& layer;
  const posenc::Dropout& dropout;
  const posenc::Rotary& rope;
  const posenc::RotaryTable<float, 2>& table;
  const posenc::RotaryTable<float, 3>& table_of_rows;
  const posenc::Xpos& xpos;
  const posenc::KeyRebase& rebase;
  const posenc::AttentionTemperature& temperature;
  const posenc::Alibi& alibi;
  std::span<const posenc::Rotary> ropes;
  std::span<const posenc::Index> choice;
  posenc::HeadLayout heads;
};
