// Ids are integers: a float tensor of ids is a mistake upstream.
#include "posenc/posenc.hpp"

void mistake(Eigen::Tensor<float, 3, Eigen::RowMajor>& x, const Eigen::Tensor<float, 2, Eigen::RowMajor>& ids,
             const posenc::TokenEmbedding<float>& token) {
  token.embed(x, ids);
}
