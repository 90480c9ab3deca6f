// Rotary where the memory is not plain: every storage and order of axes, slices of larger buffers, caches,
// threads. The bits never depend on any of it.

// Before the first include: for Eigen::ThreadPoolDevice, which posenc does not need.
#define EIGEN_USE_THREADS

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "posenc/rotary/rotary.hpp"
#include "support/support.hpp"

using Eigen::bfloat16;
using Eigen::half;
using posenc::Axes;
using posenc::Index;
using posenc::Pairing;
using posenc::Position;
using posenc::Positions;
using posenc::Rotary;
using posenc::View;
using posenc::Window;
using posenc_test::fill;
using posenc_test::random_values;
using posenc_test::same_bits;
using posenc_test::Values;
using posenc_test::values_of;

namespace {

/// Queries or keys as (batch, seq, heads, dim).
template <class S>
using Heads = Values<S, 4>;

Rotary make_rotary(Pairing pairing, Index head_dim, Index rotary_dim, Window window = Window::leading()) {
  return Rotary(posenc::rotary_frequencies({.head_dim = head_dim, .rotary_dim = rotary_dim}), pairing,
                window);
}

template <class S>
Heads<S> rotated(const Rotary& rotary, Heads<S> x, const Positions& at) {
  rotary.rotate(x.view(), at, Axes::bshd);
  return x;
}

/// (batch, seq, heads, dim) as a tensor of other axes; those that it lacks are taken at 0.
template <std::size_t Rank, class S>
Values<S, Rank> seen_as(const std::array<std::size_t, Rank>& order, const Heads<S>& x) {
  std::array<Index, Rank> extents{}, strides{};
  for (std::size_t axis = 0; axis < Rank; ++axis) {
    extents[axis] = x.extents[order[axis]];
    strides[axis] = x.view().stride(order[axis]);
  }
  const auto all = values_of(View<const S, Rank>(x.values.data(), extents, strides));
  return {all.extents, all.values};
}

/// rotate in every storage, in place, against the packed result; at rank 4 out of place as well.
template <std::size_t Rank, class S>
void check_storages(Axes axes, const std::array<std::size_t, Rank>& order) {
  const Rotary whole = make_rotary(Pairing::half, 10, 10);
  const Rotary part = make_rotary(Pairing::adjacent, 10, 6, Window::starting_at(3));
  const auto x = random_values<S, 4>({2, 19, 3, 10});
  const Positions at = posenc::consecutive(-7, 19);
  const auto input = seen_as(order, x);
  for (const Rotary* rotary : {&whole, &part}) {
    const auto expected = seen_as(order, rotated(*rotary, x, at));
    posenc_test::in_every_storage(
        input, [&](auto& storage) { rotary->rotate(storage, at, axes); },
        [&](const char* name, const Values<S, Rank>& got) {
          INFO(name);
          CHECK(same_bits(got, expected));
        });
    if constexpr (Rank == 4) {
      Values<S, Rank> out;
      posenc_test::in_every_storage(
          input,
          [&](const auto& storage) {
            out = random_values<S, Rank>(input.extents, 2);
            rotary->rotate(out.view(), storage, at, axes);
          },
          [&](const char* name, const Values<S, Rank>& left) {
            INFO("from a " << name);
            CHECK(same_bits(out, expected));
            CHECK(same_bits(left, input));
          });
    }
  }
}

}  // namespace

TEMPLATE_TEST_CASE("a rotation is the same in every storage of rank 4", "[rotary][property]", float, double,
                   half, bfloat16) {
  check_storages<4, TestType>(Axes::bshd, {0, 1, 2, 3});
  check_storages<4, TestType>(Axes::bhsd, {0, 2, 1, 3});
}

TEMPLATE_TEST_CASE("a tensor larger than the caches turns as its tokens do, one at a time",
                   "[rotary][property]", float, double, half, bfloat16) {
  using S = TestType;
  for (const Index dim : {64, 72, 128})
    for (const Index heads : {3, 21}) {
      const Index seq = (1 << 20) / static_cast<Index>(sizeof(S)) / (2 * heads * dim) + 3;
      const auto x = random_values<S, 4>({2, seq, heads, dim});
      for (const Pairing pairing : {Pairing::half, Pairing::adjacent}) {
        INFO(dim << " dimensions, " << heads << " heads, pairing " << static_cast<int>(pairing));
        const Rotary rotary = make_rotary(pairing, dim, dim == 72 ? 48 : dim);
        auto expected = x;
        for (Index s = 0; s < seq; ++s)
          rotary.rotate(expected.view().slice(1, s, 1), posenc::consecutive(s - 9, 1), Axes::bshd);
        const Positions at = posenc::consecutive(-9, seq);
        for (const bool by_heads : {false, true}) {
          const auto seen = [&](const Heads<S>& values) {
            return by_heads ? seen_as<4>({0, 2, 1, 3}, values) : values;
          };
          const Axes axes = by_heads ? Axes::bhsd : Axes::bshd;
          const auto input = seen(x), turned = seen(expected);
          auto in_place = input, out = random_values<S, 4>(input.extents, 2);
          rotary.rotate(in_place.view(), at, axes);
          CHECK(same_bits(in_place, turned));
          rotary.rotate(out.view(), input.view(), at, axes);
          CHECK(same_bits(out, turned));
        }
      }
    }
}

TEMPLATE_TEST_CASE("a rotation is the same in every storage of rank 3", "[rotary][property]", float, double,
                   half, bfloat16) {
  check_storages<3, TestType>(Axes::bsd, {0, 1, 3});
  check_storages<3, TestType>(Axes::shd, {1, 2, 3});
  check_storages<3, TestType>(Axes::hsd, {2, 1, 3});
}

TEMPLATE_TEST_CASE("a rotation is the same in every storage of rank 2", "[rotary][property]", float, double,
                   half, bfloat16) {
  check_storages<2, TestType>(Axes::sd, {1, 3});
}

TEMPLATE_TEST_CASE("axes that the rank leaves no doubt about may stay away", "[rotary][property]", float,
                   half) {
  const Rotary rotary = make_rotary(Pairing::half, 10, 10);
  auto x = random_values<TestType, 3>({4, 4, 10}), y = x;
  rotary.rotate(x.view(), posenc::consecutive(3, 4));
  rotary.rotate(y.view(), posenc::consecutive(3, 4), Axes::bsd);
  CHECK(same_bits(x, y));
  rotary.rotate_vjp(View<TestType, 2>(x.values.data(), {16, 10}), posenc::consecutive(3, 16));
  rotary.rotate_vjp(View<TestType, 2>(y.values.data(), {16, 10}), posenc::consecutive(3, 16), Axes::sd);
  CHECK(same_bits(x, y));
}

TEMPLATE_TEST_CASE("matrices of Eigen are (seq, dim)", "[rotary][property]", float, double, half, bfloat16) {
  using Matrix = Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic>;
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  const Rotary rotary = make_rotary(Pairing::adjacent, 10, 6, Window::trailing());
  const auto x = random_values<TestType, 2>({19, 10});
  const Positions at = posenc::consecutive(5, 19);
  auto expected = x;
  rotary.rotate(expected.view(), at);
  const auto check = [&](auto&& matrix) {
    fill(matrix, x);
    rotary.rotate(matrix, at);
    CHECK(same_bits(values_of(matrix), expected));
  };
  Matrix matrix(19, 10);
  check(matrix);
  Eigen::Matrix<TestType, 19, 10, Eigen::RowMajor> row_major;
  check(row_major);
  Eigen::Array<TestType, Eigen::Dynamic, 10> array(19, 10);
  check(array);
  check(Eigen::Ref<Matrix>(matrix));
  Matrix by_column(10, 19);  // a token per column
  check(by_column.transpose());
  Matrix around = Matrix::Constant(24, 13, TestType(7.f));
  check(around.block(2, 1, 19, 10));
  around.block(2, 1, 19, 10).setConstant(TestType(7.f));
  CHECK((around.array() == TestType(7.f)).all());
  std::vector<TestType> memory(2 * 20 * 10);
  check(Eigen::Map<Matrix, 0, Strides>(memory.data(), 19, 10, Strides(40, 2)));
  Eigen::TensorFixedSize<TestType, Eigen::Sizes<19, 10>> fixed;
  check(fixed);
  check(Eigen::TensorMap<Eigen::Tensor<TestType, 2, Eigen::RowMajor>>(memory.data(), 19, 10));
}

TEMPLATE_TEST_CASE("a vector of Eigen is one token", "[rotary][property]", float, half) {
  using Column = Eigen::Matrix<TestType, Eigen::Dynamic, 1>;
  using Row = Eigen::Matrix<TestType, 1, Eigen::Dynamic>;
  const Rotary rotary = make_rotary(Pairing::half, 10, 6, Window::trailing());
  const auto x = random_values<TestType, 2>({1, 10});
  const Positions at = posenc::consecutive(5, 1);
  auto expected = x;
  rotary.rotate(expected.view(), at);
  const auto check = [&](auto&& vector) {
    fill(vector, x);
    rotary.rotate(vector, at);
    CHECK(same_bits(values_of(vector), expected));
  };
  Column column(10);
  check(column);
  check(column.transpose());
  Row row(10);
  check(row);
  Eigen::Matrix<TestType, Eigen::Dynamic, Eigen::Dynamic> tokens(10, 4);
  check(tokens.col(2));
  check(tokens.transpose().row(1));
  row.setZero();
  fill(column, x);
  rotary.rotate(row, column, at);  // out of place, from one to the other
  CHECK(same_bits(values_of(row), expected));
}

// From here on everything is a View, so that strides differ while the types stay the same.

TEMPLATE_TEST_CASE("strides do not change a bit of a rotation", "[rotary][property]", float, double, half,
                   bfloat16) {
  // Widths of more than one tile, and tails that vector registers do not divide: here the direct path over
  // packed floats and the path through buffers must round alike.
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent})
    for (const auto& [head_dim, rotary_dim] : {std::array<Index, 2>{2, 2},
                                               {6, 6},
                                               {10, 10},
                                               {20, 20},
                                               {64, 64},
                                               {80, 32},
                                               {96, 96},
                                               {130, 130},
                                               {2055, 2052}}) {
      INFO((pairing == Pairing::half ? "half, " : "adjacent, ") << rotary_dim << " of " << head_dim);
      const Rotary rotary = make_rotary(pairing, head_dim, rotary_dim, Window::trailing());
      const std::array<Index, 4> extents = {2, 19, 2, head_dim};
      const auto x = random_values<TestType, 4>(extents);
      const Positions at = posenc::consecutive(std::array<Position, 2>{0, 1000000}, 19);
      const auto expected = rotated(rotary, x, at);
      const auto check = [&](const char* name, const std::array<Index, 4>& strides, Index first = 0) {
        INFO(name);
        Index size = first + 1;
        for (std::size_t axis = 0; axis < 4; ++axis)
          if (strides[axis] > 0) size += (extents[axis] - 1) * strides[axis];
        std::vector<TestType> memory(static_cast<std::size_t>(size));
        const View<TestType, 4> strided(memory.data() + first, extents, strides);
        fill(strided, x);
        rotary.rotate(strided, at, Axes::bshd);
        CHECK(same_bits(values_of(strided), expected));
        fill(strided, x);  // as the input, and as the output, of a rotation out of place
        auto out = random_values<TestType, 4>(extents, 2);
        rotary.rotate(out.view(), strided, at, Axes::bshd);
        CHECK(same_bits(out, expected));
        fill(strided, random_values<TestType, 4>(extents, 3));
        rotary.rotate(strided, x.view(), at, Axes::bshd);
        CHECK(same_bits(values_of(strided), expected));
      };
      const Index d = head_dim;
      check("every other element", {19 * 2 * d * 2, 2 * d * 2, d * 2, 2});
      check("dimensions slowest", {1, 2, 38, 76});
      check("heads fastest", {19 * d * 2, d * 2, 1, 2});
      check("sequence fastest", {2 * d * 19, 1, d * 19, 19});
      check("sequence backwards", {19 * 2 * d, -2 * d, d, 1}, 18 * 2 * d);
      check("dimensions backwards", {19 * 2 * d, 2 * d, d, -1}, d - 1);
      check("rows that overlap nothing but touch", {d, 4 * d, 2 * d, 1});
    }
}

TEMPLATE_TEST_CASE("queries and keys of a packed projection turn where they are", "[rotary][property]", float,
                   double, half, bfloat16) {
  // (batch, seq, q of 4 heads | k of 2 heads | v of 2 heads), as one matrix product leaves it.
  constexpr Index batch = 2, seq = 19, dim = 10;
  const Rotary rotary = make_rotary(Pairing::half, dim, 6);
  const Positions at = posenc::consecutive(std::array<Position, 2>{3, 40}, seq);
  auto packed = random_values<TestType, 3>({batch, seq, 8 * dim});
  const auto before = packed;
  const auto part = [](auto& values, Index first_head, Index heads) {
    return posenc::split_heads(values.view().slice(2, first_head * dim, heads * dim), heads);
  };
  const auto expected = [&](Index first_head, Index heads) {
    const auto copy = values_of(part(before, first_head, heads));
    return rotated(rotary, Heads<TestType>{copy.extents, copy.values}, at);
  };
  rotary.rotate(part(packed, 4, 2), at, Axes::bshd);
  CHECK(same_bits(values_of(part(packed, 4, 2)), expected(4, 2)));
  CHECK(same_bits(values_of(packed.view().slice(2, 0, 4 * dim)),
                  values_of(View<const TestType, 3>(before.view().slice(2, 0, 4 * dim)))));
  CHECK(same_bits(values_of(packed.view().slice(2, 6 * dim, 2 * dim)),
                  values_of(before.view().slice(2, 6 * dim, 2 * dim))));
  rotary.rotate(part(packed, 0, 4), at, Axes::bshd);
  CHECK(same_bits(values_of(part(packed, 0, 4)), expected(0, 4)));
  CHECK(same_bits(values_of(part(packed, 4, 2)), expected(4, 2)));
  CHECK(same_bits(values_of(packed.view().slice(2, 6 * dim, 2 * dim)),
                  values_of(before.view().slice(2, 6 * dim, 2 * dim))));
  // Out of the buffer, straight from its slice, with the partial width in a source of its own strides.
  auto q = random_values<TestType, 4>({batch, seq, 4, dim}, 2);
  rotary.rotate(q.view(), part(before, 0, 4), at, Axes::bshd);
  CHECK(same_bits(q, expected(0, 4)));
  // One sequence: (seq, heads * dim) splits into Axes::shd.
  auto one = before;
  rotary.rotate(
      posenc::split_heads(View<TestType, 2>(one.values.data(), {seq, 8 * dim}).slice(1, 0, 4 * dim), 4),
      posenc::consecutive(3, seq), Axes::shd);
  CHECK(same_bits(values_of(part(one, 0, 4).slice(0, 0, 1)), values_of(part(packed, 0, 4).slice(0, 0, 1))));
}

TEMPLATE_TEST_CASE("keys go into a cache and nothing else in it moves", "[rotary][property]", float, double,
                   half, bfloat16) {
  constexpr Index batch = 2, heads = 3, dim = 20, capacity = 50, past = 17, count = 5;
  const Rotary rotary = make_rotary(Pairing::adjacent, dim, 10, Window::trailing());
  const Positions at = posenc::consecutive(past, count);
  const auto keys = random_values<TestType, 4>({batch, count, heads, dim});
  const auto expected = rotated(rotary, keys, at);
  const auto empty =
      random_values<TestType, 4>({batch, heads, capacity, dim}, 2);  // (batch, heads, seq, dim)
  auto cache = empty;
  const auto check = [&](const char* name) {
    INFO(name);
    CHECK(same_bits(values_of(cache.view().slice(2, past, count).permute({0, 2, 1, 3})), expected));
    auto restored = cache;
    fill(restored.view().slice(2, past, count), values_of(empty.view().slice(2, past, count)));
    CHECK(same_bits(restored, empty));
  };
  rotary.rotate(cache.view().slice(2, past, count).permute({0, 2, 1, 3}), keys.view(), at, Axes::bshd);
  check("straight into the cache");
  cache = empty;
  fill(cache.view().slice(2, past, count).permute({0, 2, 1, 3}), keys);
  rotary.rotate(cache.view().slice(2, past, count), at, Axes::bhsd);
  check("in the cache, after a copy");
  cache = empty;
  for (Index token = 0; token < count; ++token)
    rotary.rotate(cache.view().slice(2, past + token, 1).permute({0, 2, 1, 3}),
                  keys.view().slice(1, token, 1), posenc::consecutive(past + token, 1), Axes::bshd);
  check("token by token");
  // Back out of it, unrotated.
  Heads<TestType> back = random_values<TestType, 4>(keys.extents, 3);
  rotary.rotate_vjp(back.view().permute({0, 2, 1, 3}), cache.view().slice(2, past, count), at, Axes::bhsd);
  CHECK(posenc_test::max_difference(back.values, keys.values) <= 12 * posenc_test::epsilon<TestType>);
}
