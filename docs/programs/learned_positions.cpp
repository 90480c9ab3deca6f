#include <posenc/posenc.hpp>

#include <cstdio>
#include <stdexcept>

int main() {
  // Row r of the table holds r, so that a result tells which row it came from.
  Eigen::Tensor<float, 2, Eigen::RowMajor> table(10, 2);  // (max_len, d_model)
  for (int r = 0; r < 10; ++r) table(r, 0) = table(r, 1) = static_cast<float>(r);
  const posenc::LearnedPositions<float> bert(table), opt(table, {.offset = 2});

  Eigen::Tensor<bool, 2, Eigen::RowMajor> mask(1, 5);
  mask.setValues({{false, false, true, true, true}});  // padded on the left
  Eigen::Tensor<float, 3, Eigen::RowMajor> x(1, 5, 2);
  const auto print = [&](const char* rule) {
    std::printf("%-26s %g %g %g %g %g\n", rule, x(0, 0, 0), x(0, 1, 0), x(0, 2, 0), x(0, 3, 0), x(0, 4, 0));
  };
  bert.embed(x, posenc::consecutive(0, 5)), print("BERT");
  bert.embed(x, posenc::positions_from_mask(mask)), print("GPT-2, left padding");
  opt.embed(x, posenc::positions_from_mask(mask, -1)), print("OPT");

  // A position without a row is an error, before anything is written.
  try {
    bert.add(x, posenc::consecutive(7, 5));
  } catch (const std::out_of_range& error) {
    std::printf("%s\n", error.what());
  }
}
