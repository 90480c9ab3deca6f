// Says rightly what every other file in this folder says wrongly, in the same order.
#include <complex>
#include <cstdint>
#include <vector>

#include "posenc/posenc.hpp"

void control(Eigen::Tensor<float, 3, Eigen::RowMajor>& x, Eigen::Tensor<float, 4, Eigen::RowMajor>& q,
             Eigen::Tensor<std::int64_t, 2, Eigen::RowMajor>& ids,
             const posenc::TokenEmbedding<float>& token) {
  const posenc::Sinusoidal sinusoidal({.d_model = 512});
  const posenc::Positions at = posenc::consecutive(0, x.dimension(1));

  Eigen::Tensor<float, 3, Eigen::RowMajor> twice = x * 2.0f;  // expression_as_output
  sinusoidal.add(twice, at);

  sinusoidal.add(x, at);  // const_output

  float memory[512] = {};  // temporary_owner_as_output
  sinusoidal.add(Eigen::TensorMap<Eigen::Tensor<float, 3, Eigen::RowMajor>>(memory, 1, 1, 512),
                 posenc::consecutive(0, 1));

  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 128}), posenc::Pairing::half);
  rope.rotate(q, at, posenc::Axes::bshd);  // rank_4_without_axes, rotary_without_pairing

  token.embed(x, ids);  // float_ids

  Eigen::Tensor<double, 3, Eigen::RowMajor> z(1, 1, 512);  // complex_scalar
  sinusoidal.add(z, posenc::consecutive(0, 1));
}
