// Positions from plain ids and masks, found from their header alone.

#include "posenc/core/positions.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

namespace {

/// The ids or mask {{1, 0, 5}, {0, 7, 1}} in plain storage of two axes: f(ids).
template <class F>
void with_table(const F& f) {
  const auto fill = [](auto& t) {
    t(0, 0) = 1, t(0, 1) = 0, t(0, 2) = 5, t(1, 0) = 0, t(1, 1) = 7, t(1, 2) = 1;
  };
  const auto with = [&](auto t) {
    fill(t);
    f(t);
  };
  with(Eigen::Tensor<std::int64_t, 2, Eigen::RowMajor>(2, 3));
  with(Eigen::Tensor<std::int32_t, 2>(2, 3));
  with(Eigen::MatrixXi(2, 3));
  with(Eigen::Matrix<std::int64_t, 2, 3, Eigen::RowMajor>());
  std::array<std::int64_t, 6> memory{};
  with(Eigen::TensorMap<Eigen::Tensor<std::int64_t, 2>>(memory.data(), 2, 3));
  with(Eigen::Map<Eigen::Matrix<std::int64_t, Eigen::Dynamic, Eigen::Dynamic>>(memory.data(), 2, 3));
}

/// {4, 0, 2} in plain storage of one axis.
template <class F>
void with_list(const F& f) {
  Eigen::Tensor<std::int64_t, 1> tensor(3);
  Eigen::VectorXi vector(3);
  Eigen::RowVectorXi row(3);
  std::vector<std::int64_t> list{4, 0, 2};
  std::array<int, 3> array{4, 0, 2};
  tensor.setValues({4, 0, 2});
  vector << 4, 0, 2;
  row << 4, 0, 2;
  f(tensor), f(vector), f(row), f(list), f(array);
  f(Eigen::TensorMap<Eigen::Tensor<std::int64_t, 1>>(tensor.data(), 3));
  f(Eigen::Map<Eigen::VectorXi>(vector.data(), 3));
}

void check_rows(const posenc::Positions& at, const std::vector<std::vector<posenc::Position>>& expected) {
  CHECK(at.rows() == static_cast<Index>(expected.size()));
  CHECK(at.count() == static_cast<Index>(expected[0].size()));
  for (std::size_t row = 0; row < expected.size(); ++row)
    for (std::size_t i = 0; i < expected[row].size(); ++i)
      CHECK(at(static_cast<Index>(row), static_cast<Index>(i)) == expected[row][i]);
}

}  // namespace

TEST_CASE("Positions are made from plain tables of ids and masks") {
  with_table([](const auto& ids) {
    check_rows(posenc::position_ids(ids), {{1, 0, 5}, {0, 7, 1}});
    check_rows(posenc::borrowed_position_ids(ids), {{1, 0, 5}, {0, 7, 1}});
    check_rows(posenc::positions_from_mask(ids), {{0, 0, 1}, {0, 0, 1}});
    const posenc::Position pad = posenc::padding_position;
    check_rows(posenc::key_positions_from_mask(ids), {{0, pad, 1}, {pad, 0, 1}});
    check_rows(posenc::roberta_positions(ids, 1), {{1, 2, 3}, {2, 3, 1}});
    check_rows(posenc::roberta_positions(ids, 1, 4), {{1, 6, 7}, {6, 7, 1}});
    const posenc::Positions axes = posenc::axis_positions(ids);
    CHECK(axes.axes() == 2);
    CHECK(axes.integer(0, 0, 2) == 5);
    CHECK(axes.integer(1, 0, 1) == 7);
  });
}

TEST_CASE("Positions are made from plain lists of ids") {
  with_list([](const auto& ids) {
    check_rows(posenc::position_ids(ids), {{4, 0, 2}});
    check_rows(posenc::borrowed_position_ids(ids), {{4, 0, 2}});
    check_rows(posenc::consecutive(ids, 2), {{4, 5}, {0, 1}, {2, 3}});
  });
  const std::vector<int> ends{0, 2, 3};
  Eigen::VectorXi vector(3);
  vector << 0, 2, 3;
  check_rows(posenc::positions_from_cu_seqlens(ends), {{0, 1, 0}});
  check_rows(posenc::positions_from_cu_seqlens(vector), {{0, 1, 0}});
}
