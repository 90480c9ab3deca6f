#include "posenc/core/tensor.hpp"

#include <array>
#include <cstdint>
#include <limits>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "support/support.hpp"

namespace {

using namespace posenc_test;
using posenc::Axes;
using posenc::split_heads;
using posenc::view;
using posenc::View;
using std::invalid_argument;

/// Whether the view of t finds each element where t itself does.
template <class T>
bool addresses_agree(T& t) {
  using I = typename std::remove_cvref_t<T>::Index;
  const auto v = view(t);
  bool agree = true;
  for_each_coordinate(v.extents(), [&](const auto& at, Index) {
    const auto* expected = [&]<std::size_t... Axis>(std::index_sequence<Axis...>) {
      return &t(static_cast<I>(at[Axis])...);
    }(std::make_index_sequence<posenc::rank_of<T>>());
    agree = agree && &element(v, at) == expected;
  });
  return agree;
}

/// 0, 1, 2, ... as a packed (2, 3, 4, 5) tensor.
struct Counted {
  std::vector<float> memory = std::vector<float>(120);
  View<float, 4> tensor;
  Counted() {
    std::iota(memory.begin(), memory.end(), 0.0f);
    tensor = view(memory.data(), std::array<Index, 4>{2, 3, 4, 5});
  }
};

}  // namespace

TEST_CASE("tensor: a view finds the elements of a tensor of each layout and index type") {
  Eigen::Tensor<float, 3> column_major(2, 3, 4);
  Eigen::Tensor<double, 3, Eigen::RowMajor> row_major(2, 3, 4);
  Eigen::Tensor<Eigen::half, 3, Eigen::RowMajor, int> int_index(2, 3, 4);
  Eigen::Tensor<Eigen::bfloat16, 3, Eigen::ColMajor, int> int_index_column_major(2, 3, 4);
  CHECK(addresses_agree(column_major));
  CHECK(addresses_agree(row_major));
  CHECK(addresses_agree(int_index));
  CHECK(addresses_agree(int_index_column_major));
  Eigen::Tensor<float, 1> vector(7);
  Eigen::Tensor<float, 5, Eigen::RowMajor> five(2, 3, 1, 4, 2);
  CHECK(addresses_agree(vector));
  CHECK(addresses_agree(five));
  Eigen::TensorFixedSize<float, Eigen::Sizes<2, 3, 4>> fixed;
  Eigen::TensorFixedSize<float, Eigen::Sizes<2, 3, 4>, Eigen::RowMajor> fixed_row_major;
  CHECK(addresses_agree(fixed));
  CHECK(addresses_agree(fixed_row_major));
  CHECK(view(fixed).extents() == std::array<Index, 3>{2, 3, 4});
  CHECK(view(column_major).strides() == std::array<Index, 3>{1, 2, 6});
  CHECK(view(row_major).strides() == std::array<Index, 3>{12, 4, 1});
}

TEST_CASE("tensor: a view finds the elements of a map") {
  std::vector<float> memory(25);
  Eigen::TensorMap<Eigen::Tensor<float, 3>> map(memory.data() + 1, 2, 3, 4);
  const Eigen::TensorMap<Eigen::Tensor<const float, 3, Eigen::RowMajor>> of_const(memory.data() + 1, 2, 3, 4);
  CHECK(addresses_agree(map));
  CHECK(view(of_const).data() == memory.data() + 1);
  CHECK(&view(of_const)(1, 2, 3) == &of_const(1, 2, 3));
  static_assert(std::is_same_v<decltype(view(of_const)), View<const float, 3>>);
  static_assert(std::is_same_v<decltype(view(std::as_const(map))), View<float, 3>>);
}

TEST_CASE("tensor: a view finds the elements of a matrix of each kind, as (rows, columns)") {
  Eigen::MatrixXf matrix(6, 7);
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> row_major(6, 7);
  Eigen::Matrix<float, 2, 3> fixed;
  Eigen::ArrayXXf array(6, 7);
  Eigen::VectorXf column(5);
  Eigen::RowVectorXf row(5);
  CHECK(addresses_agree(matrix));
  CHECK(addresses_agree(row_major));
  CHECK(addresses_agree(fixed));
  CHECK(addresses_agree(array));
  CHECK(addresses_agree(row));
  CHECK(view(row).extents() == std::array<Index, 2>{1, 5});

  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  std::vector<float> memory(200);
  Eigen::Map<Eigen::MatrixXf> map(memory.data(), 6, 7);
  Eigen::Map<Eigen::MatrixXf, 0, Strides> strided(memory.data(), 6, 7, Strides(20, 3));
  Eigen::Map<Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>, 0, Strides>
      strided_row_major(memory.data(), 6, 7, Strides(30, 4));
  CHECK(addresses_agree(map));
  CHECK(addresses_agree(strided));
  CHECK(addresses_agree(strided_row_major));

  auto block = matrix.block(1, 2, 3, 4);
  auto of_block = block.block(1, 1, 2, 2);
  auto of_row_major = row_major.middleCols(2, 3);
  auto one_row = matrix.row(3);
  Eigen::Ref<Eigen::MatrixXf> ref(matrix);
  CHECK(addresses_agree(block));
  CHECK(addresses_agree(of_block));
  CHECK(addresses_agree(of_row_major));
  CHECK(addresses_agree(one_row));
  CHECK(addresses_agree(ref));
  CHECK(view(one_row).extents() == std::array<Index, 2>{1, 7});
}

TEST_CASE("tensor: the transpose of a matrix of each kind is seen where it lies") {
  Eigen::MatrixXf matrix(6, 7);
  const Eigen::MatrixXf& read_only = matrix;
  Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> row_major(6, 7);
  Eigen::Map<Eigen::MatrixXf, 0, Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>> strided(matrix.data(), 2, 3,
                                                                                        {14, 2});
  Eigen::Ref<Eigen::MatrixXf> ref(matrix);
  auto of_matrix = matrix.transpose();
  auto of_row_major = row_major.transpose();
  auto of_strided = strided.transpose();
  auto of_block = matrix.block(1, 2, 3, 4).transpose();
  auto of_ref = ref.transpose();
  auto rows_of_it = of_matrix.middleRows(1, 3);
  auto twice = of_matrix.transpose();
  CHECK(addresses_agree(of_matrix));
  CHECK(addresses_agree(of_row_major));
  CHECK(addresses_agree(of_strided));
  CHECK(addresses_agree(of_block));
  CHECK(addresses_agree(of_ref));
  CHECK(addresses_agree(rows_of_it));
  CHECK(addresses_agree(twice));
  CHECK(view(of_matrix).extents() == std::array<Index, 2>{7, 6});
  static_assert(std::is_same_v<decltype(view(matrix.transpose())), View<float, 2>>);
  static_assert(std::is_same_v<decltype(view(read_only.transpose())), View<const float, 2>>);
  // Heads of a token per column.
  Eigen::MatrixXf q(8, 3);
  const auto heads = split_heads(q.transpose(), 2);
  CHECK(heads.extents() == std::array<Index, 3>{3, 2, 4});
  CHECK(&heads(2, 1, 3) == &q(7, 2));
}

TEST_CASE("tensor: a vector by its type is one row") {
  const auto is_row = [](auto&& v, Index step) {
    const auto seen = view(v);
    CHECK(seen.extents() == std::array<Index, 2>{1, v.size()});
    CHECK(seen.stride(1) == step);
    for (Index i = 0; i < v.size(); ++i) CHECK(&seen(0, i) == &v(i));
  };
  Eigen::VectorXf column(5);
  Eigen::RowVectorXf row(5);
  Eigen::Vector4f fixed;
  Eigen::ArrayXf array(5);
  Eigen::MatrixXf matrix(6, 7);
  Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> row_major(6, 7);
  is_row(column, 1);
  is_row(row, 1);
  is_row(fixed, 1);
  is_row(array, 1);
  is_row(column.transpose(), 1);
  is_row(column.segment(1, 3), 1);
  is_row(Eigen::Map<Eigen::VectorXf, 0, Eigen::InnerStride<2>>(matrix.data(), 5), 2);
  is_row(matrix.col(3), 1);
  is_row(matrix.row(3), 6);
  is_row(matrix.col(3).transpose(), 1);
  is_row(matrix.transpose().col(3), 6);
  is_row(row_major.col(3), 7);
  is_row(row_major.row(3), 1);
  const auto heads = split_heads(column.head(4), 2);
  CHECK(heads.extents() == std::array<Index, 3>{1, 2, 2});
  CHECK(&heads(0, 1, 1) == &column(3));
}

TEST_CASE("tensor: const owners give views of const elements") {
  const Eigen::Tensor<float, 2> tensor(2, 3);
  const Eigen::MatrixXf matrix(2, 3);
  static_assert(std::is_same_v<decltype(view(tensor)), View<const float, 2>>);
  static_assert(std::is_same_v<decltype(view(matrix)), View<const float, 2>>);
  static_assert(std::is_same_v<decltype(view(matrix.row(0))), View<const float, 2>>);
  CHECK(addresses_agree(tensor));
  CHECK(addresses_agree(matrix));
  float x = 0;
  const View<float, 1> v(&x, {1});
  const View<const float, 1> read_only = v;
  CHECK(read_only.data() == &x);
  static_assert(!std::is_convertible_v<View<const float, 1>, View<float, 1>>);
}

TEST_CASE("tensor: a view of foreign memory is packed unless it is given strides") {
  std::vector<float> memory(100);
  const auto packed = view(memory.data(), std::array<Index, 3>{2, 3, 4});
  CHECK(packed.strides() == std::array<Index, 3>{12, 4, 1});
  CHECK(packed.size() == 24);
  const auto strided = view(memory.data() + 50, std::array<Index, 2>{3, 4}, std::array<Index, 2>{-10, 2});
  CHECK(&strided(2, 3) == memory.data() + 50 - 20 + 6);
  CHECK(view(strided).data() == strided.data());
  CHECK(view(strided).strides() == strided.strides());
}

TEST_CASE("tensor: a view needs memory and extents of at least 0") {
  float x = 0;
  check_throws<invalid_argument>([&] { (void)View<float, 2>(&x, {1, -2}); },
                                 {"posenc: View", "axis 1", "at least 0", "got -2"});
  check_throws<invalid_argument>([&] { (void)View<float, 2>(nullptr, {-1, -1}, {1, 1}); },
                                 {"axis 0", "got -1"});
  check_throws<invalid_argument>([] { (void)View<float, 2>(nullptr, {2, 3}); }, {"View", "null pointer"});
  CHECK_NOTHROW(View<float, 2>(nullptr, {2, 0}));
  CHECK(View<float, 3>().size() == 0);
}

TEST_CASE("tensor: slice takes entries of one axis") {
  const Counted x;
  const auto part = x.tensor.slice(1, 1, 2).slice(3, 2, 3);
  CHECK(part.extents() == std::array<Index, 4>{2, 2, 4, 3});
  for_each_coordinate(part.extents(), [&](const auto& at, Index) {
    CHECK(&element(part, at) == &x.tensor(at[0], at[1] + 1, at[2], at[3] + 2));
  });
  CHECK(x.tensor.slice(2, 0, 4).extents() == x.tensor.extents());
  CHECK(x.tensor.slice(2, 4, 0).size() == 0);  // nothing behind the end is nothing
}

TEST_CASE("tensor: a slice outside the view is refused") {
  const Counted x;
  const auto refused = [&](std::size_t axis, Index first, Index count,
                           std::initializer_list<const char*> parts) {
    check_throws<invalid_argument>([&] { (void)x.tensor.slice(axis, first, count); }, parts);
  };
  refused(4, 0, 1, {"View::slice", "axis below 4", "got 4"});
  refused(1, 2, 2, {"View::slice", "axis 1 has 3 entries", "first 2", "count 2"});
  refused(1, -1, 2, {"first -1"});
  refused(1, 0, -1, {"count -1"});
  refused(1, 4, 0, {"first 4"});
  refused(1, 1, std::numeric_limits<Index>::max(), {"axis 1 has 3 entries"});
}

TEST_CASE("tensor: permute names the axes in another order") {
  const Counted x;
  const auto turned = x.tensor.permute({0, 2, 3, 1});
  CHECK(turned.extents() == std::array<Index, 4>{2, 4, 5, 3});
  for_each_coordinate(turned.extents(), [&](const auto& at, Index) {
    CHECK(&element(turned, at) == &x.tensor(at[0], at[3], at[1], at[2]));
  });
  const auto refused = [&](const std::array<std::size_t, 4>& order,
                           std::initializer_list<const char*> parts) {
    check_throws<invalid_argument>([&] { (void)x.tensor.permute(order); }, parts);
  };
  refused({0, 1, 1, 3}, {"View::permute", "each axis below 4 once", "got 1 at 2"});
  refused({0, 1, 2, 4}, {"View::permute", "got 4 at 3"});
}

TEST_CASE("tensor: split_heads sees (heads, dim) in the last axis") {
  Eigen::Tensor<float, 3> column_major(2, 3, 8);
  const auto heads = split_heads(column_major, 4);
  CHECK(heads.extents() == std::array<Index, 4>{2, 3, 4, 2});
  for_each_coordinate(heads.extents(), [&](const auto& at, Index) {
    CHECK(&element(heads, at) == &column_major(at[0], at[1], 2 * at[2] + at[3]));
  });
  const Eigen::MatrixXf matrix(3, 8);
  const auto of_matrix = split_heads(matrix, 2);
  CHECK(of_matrix.extents() == std::array<Index, 3>{3, 2, 4});
  CHECK(&of_matrix(2, 1, 3) == &matrix(2, 7));
  const auto refused = [&](Index num_heads, const char* got) {
    check_throws<invalid_argument>([&] { (void)split_heads(matrix, num_heads); },
                                   {"split_heads", "divides 8", got});
  };
  refused(3, "got 3");
  refused(0, "got 0");
  refused(-2, "got -2");
}

TEST_CASE("tensor: axes by name become (batch, seq, heads, dim)") {
  const Counted x;
  using posenc::detail::as_bshd;
  const auto bshd = as_bshd<float, 4>("q", x.tensor, Axes::bshd);
  CHECK(&bshd(1, 2, 3, 4) == &x.tensor(1, 2, 3, 4));
  const auto bhsd = as_bshd<float, 4>("q", x.tensor, Axes::bhsd);
  CHECK(bhsd.extents() == std::array<Index, 4>{2, 4, 3, 5});
  CHECK(&bhsd(1, 3, 2, 4) == &x.tensor(1, 2, 3, 4));

  const auto three = view(x.tensor.data(), std::array<Index, 3>{6, 4, 5});
  const auto shd = as_bshd<float, 3>("q", three, Axes::shd);
  CHECK(shd.extents() == std::array<Index, 4>{1, 6, 4, 5});
  CHECK(&shd(0, 5, 3, 4) == &three(5, 3, 4));
  const auto hsd = as_bshd<float, 3>("q", three, Axes::hsd);
  CHECK(hsd.extents() == std::array<Index, 4>{1, 4, 6, 5});
  CHECK(&hsd(0, 3, 5, 4) == &three(5, 3, 4));
  const auto bsd = as_bshd<float, 3>("q", three, {});  // the default of rank 3
  CHECK(bsd.extents() == std::array<Index, 4>{6, 4, 1, 5});
  CHECK(&bsd(5, 3, 0, 4) == &three(5, 3, 4));

  const auto two = view(x.tensor.data(), std::array<Index, 2>{24, 5});
  const auto sd = as_bshd<float, 2>("q", two, {});  // the default of rank 2
  CHECK(sd.extents() == std::array<Index, 4>{1, 24, 1, 5});
  CHECK(&sd(0, 23, 0, 4) == &two(23, 4));
}

TEST_CASE("tensor: axes of another rank are refused by name") {
  const Counted x;
  using posenc::detail::as_bshd;
  const auto three = view(x.tensor.data(), std::array<Index, 3>{6, 4, 5});
  const auto refused = [&](Axes axes, std::initializer_list<const char*> parts) {
    check_throws<invalid_argument>([&] { (void)as_bshd<float, 3>("q", three, axes); }, parts);
  };
  refused(Axes::bshd, {"posenc: q", "rank 4", "Axes::bshd (batch, seq, heads, dim)", "got rank 3"});
  refused(Axes::bhsd, {"rank 4", "Axes::bhsd (batch, heads, seq, dim)", "got rank 3"});
  refused(Axes::sd, {"rank 2", "Axes::sd (seq, dim)", "got rank 3"});
  refused(static_cast<Axes>(17), {"unknown", "got rank 3"});
  const auto refused_four = [&](Axes axes, std::initializer_list<const char*> parts) {
    check_throws<invalid_argument>([&] { (void)as_bshd<float, 4>("q", x.tensor, axes); }, parts);
  };
  refused_four(Axes::shd, {"rank 3", "Axes::shd (seq, heads, dim)", "got rank 4"});
  refused_four(Axes::hsd, {"rank 3", "Axes::hsd (heads, seq, dim)", "got rank 4"});
  refused_four(Axes::bsd, {"rank 3", "Axes::bsd (batch, seq, dim)", "got rank 4"});
}

TEST_CASE("tensor: an output has an element for each coordinate") {
  using posenc::detail::output_view;
  std::vector<float> memory(24);
  const auto strided = [&](const std::array<Index, 2>& extents, const std::array<Index, 2>& strides) {
    return View<float, 2>(memory.data(), extents, strides);
  };
  check_throws<invalid_argument>([&] { (void)output_view("out", strided({3, 4}, {0, 1})); },
                                 {"posenc: out", "stride 0 on axis 0", "extent 3"});
  check_throws<invalid_argument>([&] { (void)output_view("out", strided({3, 4}, {1, 0})); },
                                 {"out", "stride 0 on axis 1", "extent 4"});
  CHECK_NOTHROW(output_view("out", strided({1, 4}, {0, 1})));
}

TEST_CASE("tensor: an empty output is as good as any") {
  // The packed strides of an empty tensor hold zeros: no two coordinates share an element all the same.
  using posenc::detail::output_view;
  Eigen::Tensor<float, 3> column_major(2, 0, 4);
  Eigen::Tensor<float, 3, Eigen::RowMajor> row_major(2, 0, 4);
  CHECK_NOTHROW(output_view("out", column_major));
  CHECK_NOTHROW(output_view("out", row_major));
  CHECK_NOTHROW(output_view("out", View<float, 2>(nullptr, {3, 0})));
  Eigen::Tensor<float, 3> no_batch(0, 3, 4);
  CHECK_NOTHROW(output_view("out", no_batch));
}

TEST_CASE("tensor: integers come in lists, vectors, tensors and matrices") {
  using posenc::detail::integer_view;
  const auto check = [](const auto& ids, const std::vector<std::int64_t>& expected) {
    const auto v = integer_view(ids);
    static_assert(std::is_const_v<std::remove_pointer_t<decltype(v.data())>>);
    REQUIRE(v.size() == static_cast<Index>(expected.size()));
    for_each_coordinate(v.extents(), [&](const auto& at, Index n) {
      CHECK(element(v, at) == expected[static_cast<std::size_t>(n)]);
    });
  };
  const std::vector<int> list = {1, 2, 3, 4, 5, 6};
  check(list, {1, 2, 3, 4, 5, 6});
  check(std::vector<int>(), {});
  check(std::array<std::int64_t, 2>{7, 8}, {7, 8});
  check(std::span<const int>(list).subspan(1, 2), {2, 3});
  check(Eigen::VectorXi{{1, 2, 3}}, {1, 2, 3});
  check(Eigen::RowVectorXi{{1, 2, 3}}, {1, 2, 3});
  check(Eigen::MatrixXi{{1, 2}, {3, 4}}, {1, 2, 3, 4});
  const Eigen::MatrixXi matrix{{1, 2}, {3, 4}};
  check(matrix.transpose(), {1, 3, 2, 4});
  check(matrix.row(1), {3, 4});
  check(matrix.transpose().row(1), {2, 4});
  Eigen::Tensor<std::int64_t, 2> tensor(2, 2);
  tensor.setValues({{1, 2}, {3, 4}});
  check(tensor, {1, 2, 3, 4});
  using Every = Eigen::InnerStride<2>;
  check(Eigen::Map<const Eigen::VectorXi, 0, Every>(list.data(), 3), {1, 3, 5});
  check(Eigen::Map<const Eigen::RowVectorXi, 0, Every>(list.data(), 3), {1, 3, 5});
  static_assert(posenc::detail::integer_rank<Eigen::VectorXi> == 1);
  static_assert(posenc::detail::integer_rank<Eigen::RowVectorXi> == 1);
  static_assert(posenc::detail::integer_rank<Eigen::MatrixXi> == 2);
  static_assert(posenc::detail::integer_rank<std::vector<int>> == 1);
  static_assert(posenc::detail::integer_rank<Eigen::Tensor<int, 4>> == 4);
}

TEST_CASE("tensor: a view whose sizes or strides overflow is refused") {
  float x = 0;
  const Index half = Index{1} << 32, most = std::numeric_limits<Index>::max(),
              least = std::numeric_limits<Index>::min();
  // The product of the extents would be 0.
  check_throws<invalid_argument>([&] { (void)View<float, 2>(&x, {half, half}); },
                                 {"posenc: View", "fewer than 2^62 bytes", "(4294967296, 4294967296)"});
  check_throws<invalid_argument>([&] { (void)View<float, 2>(nullptr, {half, half}); }, {"2^62 bytes"});
  check_throws<invalid_argument>([&] { (void)View<float, 2>(&x, {half, half}, {0, 0}); }, {"2^62 bytes"});
  check_throws<invalid_argument>([&] { (void)View<float, 1>(&x, {Index{1} << 61}); }, {"2^62 bytes"});
  // Extents of zero are left out, so that no product of some of them overflows.
  check_throws<invalid_argument>([&] { (void)View<float, 3>(nullptr, {half, 0, half}); }, {"2^62 bytes"});
  CHECK(View<float, 3>(nullptr, {half, 0, Index{1} << 20}).size() == 0);
  CHECK(View<const float, 2>(&x, {half, 1 << 20}, {0, 0}).size() == Index{1} << 52);
  // The last element would be somewhere else.
  const auto refused = [&](const std::array<Index, 2>& extents, const std::array<Index, 2>& strides) {
    check_throws<invalid_argument>([&] { (void)View<float, 2>(&x, extents, strides); },
                                   {"posenc: View", "last element less than 2^62 bytes away", "strides"});
  };
  refused({3, 4}, {most, 1});
  refused({3, 4}, {least, 1});
  refused({3, 4}, {Index{1} << 61, 1});
  refused({3, 4}, {1, -(Index{1} << 59)});
  refused({2, 2}, {Index{1} << 58, Index{1} << 58});
  refused({1, 4}, {least, 1});
  refused({0, 4}, {1, most});
  CHECK_NOTHROW(View<float, 2>(&x, {3, 4}, {Index{1} << 57, 1}));
  // The same through a map.
  Eigen::TensorMap<Eigen::Tensor<float, 2>> map(&x, half, half);
  check_throws<invalid_argument>([&] { (void)view(map); }, {"2^62 bytes"});
  Eigen::TensorMap<Eigen::Tensor<float, 3, Eigen::RowMajor>> empty(&x, 0, half, half);
  check_throws<invalid_argument>([&] { (void)view(empty); }, {"2^62 bytes"});
}

TEST_CASE("tensor: an output's coordinates share no element") {
  using posenc::detail::output_view;
  std::vector<float> memory(100);
  const auto strided = [&](const std::array<Index, 2>& extents, const std::array<Index, 2>& strides) {
    return View<float, 2>(memory.data() + 50, extents, strides);
  };
  const auto refused = [&](const std::array<Index, 2>& extents, const std::array<Index, 2>& strides) {
    check_throws<invalid_argument>([&] { (void)output_view("out", strided(extents, strides)); },
                                   {"posenc: out", "an element for each coordinate", "overlapping strides"});
  };
  refused({4, 4}, {1, 1});
  refused({3, 3}, {2, 1});
  refused({3, 3}, {-2, 1});
  refused({4, 4}, {3, 1});
  refused({4, 4}, {1, -3});
  refused({2, 3}, {3, 2});  // distinct by luck: refused as well
  CHECK_NOTHROW(output_view("out", strided({4, 4}, {4, 1})));
  CHECK_NOTHROW(output_view("out", strided({4, 4}, {1, -4})));
  CHECK_NOTHROW(output_view("out", strided({4, 4}, {-1, 9})));
  CHECK_NOTHROW(output_view("out", strided({1, 4}, {1, 1})));
  CHECK_NOTHROW(output_view("out", strided({3, 3}, {12, 4})));
}
