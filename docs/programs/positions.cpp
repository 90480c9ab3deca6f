#include <posenc/posenc.hpp>

#include <cstdio>
#include <vector>

int main() {
  const auto print = [](const char* rule, const posenc::Positions& at) {
    for (posenc::Index row = 0; row < at.rows(); ++row) {
      std::printf("%-26s", row == 0 ? rule : "");
      for (posenc::Index i = 0; i < at.count(); ++i) std::printf(" %2d", static_cast<int>(at(row, i)));
      std::printf("\n");
    }
  };
  print("a first call", posenc::consecutive(0, 5));
  print("after 40 cached tokens", posenc::consecutive(40, 5));
  print("caches of 40 and 7", posenc::consecutive(std::vector<int>{40, 7}, 5));

  Eigen::Tensor<bool, 2, Eigen::RowMajor> mask(2, 5);
  mask.setValues({{false, false, true, true, true}, {true, true, true, true, true}});
  print("padding on the left", posenc::positions_from_mask(mask));

  Eigen::Tensor<int, 2, Eigen::RowMajor> ids(1, 5);
  ids.setValues({{0, 713, 16, 1, 1}});
  print("RoBERTa, padding_idx 1", posenc::roberta_positions(ids, 1));
  print("sequences of 2 and 3", posenc::positions_from_cu_seqlens(std::vector<int>{0, 2, 5}));
  print("40 earlier", posenc::consecutive(40, 5).shifted(-40));

  // The last query of the padded row, its scores all 0: what each of the five keys gets.
  const posenc::Alibi alibi(8);
  const auto weights = [&](const char* keys, const posenc::Positions& k_at) {
    Eigen::Tensor<float, 4, Eigen::RowMajor> scores(2, 8, 5, 5);
    scores.setZero();
    posenc::softmax(scores, alibi, posenc::positions_from_mask(mask), k_at, {.causal = true});
    std::printf("%-30s", keys);
    for (int j = 0; j < 5; ++j) std::printf(" %.3f", static_cast<double>(scores(0, 0, 4, j)));
    std::printf("\n");
  };
  weights("keys: positions_from_mask", posenc::positions_from_mask(mask));
  weights("keys: key_positions_from_mask", posenc::key_positions_from_mask(mask));
}
