#pragma once
// What holds for every encoder, written once: the bits of a result depend on the values that go in, and on
// nothing else. And what every refused call leaves behind: nothing.

#include <initializer_list>
#include <vector>

#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "support/support.hpp"

namespace posenc_test {

/// A view with every axis reversed and gaps between its elements, which nobody may write to.
template <class S, std::size_t Rank>
struct Gapped {
  std::vector<S> memory;
  posenc::View<S, Rank> view;

  explicit Gapped(const Values<S, Rank>& values) {
    std::array<Index, Rank> strides{};
    Index step = 3;
    for (std::size_t axis = Rank; axis-- > 0;) strides[axis] = -step, step *= values.extents[axis] + 1;
    memory.assign(static_cast<std::size_t>(step), S(77.0f));
    view = posenc::View<S, Rank>(memory.data() + step - 1, values.extents, strides);
    fill(view, values);
  }

  bool gaps_are_untouched() const {
    Gapped expected(values_of(view));
    return same_bits(memory, expected.memory);
  }
};

/// f(x) changes x in place: the result is the same in every storage.
template <class S, std::size_t Rank, class F>
void check_storages_agree(const Values<S, Rank>& input, const F& f) {
  Values<S, Rank> expected = input;
  auto packed = expected.view();
  f(packed);
  in_every_storage(input, f, [&](const char* name, const Values<S, Rank>& got) {
    INFO(name);
    CHECK(same_bits(got, expected));
  });
  Gapped<S, Rank> gapped(input);
  f(gapped.view);
  CHECK(same_bits(values_of(gapped.view), expected));
  CHECK(gapped.gaps_are_untouched());
}

/// f(x) returns what it computes from x, which it only reads: the result is the same for every storage of x.
template <class S, std::size_t Rank, class F>
void check_input_storages_agree(const Values<S, Rank>& input, const F& f) {
  const auto expected = f(input.view());
  in_every_storage(
      input, [&](const auto& x) { CHECK(same_bits(f(x), expected)); },
      [&](const char* name, const Values<S, Rank>& left) {
        INFO(name);
        CHECK(same_bits(left, input));
      });
}

/// f(x) changes x in place: the result is the same in every 2-D type of Eigen, read as (seq, dim).
template <class S, class F>
void check_matrices_agree(const Values<S, 2>& input, const F& f) {
  using Matrix = Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic>;
  using Strides = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  const Index rows = input.extents[0], columns = input.extents[1];
  Values<S, 2> expected = input;
  auto packed = expected.view();
  f(packed);
  const auto with = [&](const char* name, auto&& storage) {
    fill(storage, input);
    f(storage);
    INFO(name);
    CHECK(same_bits(values_of(storage), expected));
  };
  Matrix matrix(rows, columns);
  with("column-major matrix", matrix);
  Eigen::Matrix<S, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor> row_major(rows, columns);
  with("row-major matrix", row_major);
  Eigen::Array<S, Eigen::Dynamic, Eigen::Dynamic> array(rows, columns);
  with("array", array);
  Matrix large(rows + 3, columns + 2);
  with("block", large.block(1, 2, rows, columns));
  with("ref", Eigen::Ref<Matrix>(matrix));
  const Index outer = 2 * rows + 1;
  std::vector<S> memory(static_cast<std::size_t>(outer * columns));
  with("map with strides", Eigen::Map<Matrix, 0, Strides>(memory.data(), rows, columns, Strides(outer, 2)));
}

/// f(device) returns what it computes: the same without a pool and on 1, 2 and 5 threads.
template <class F>
void check_threads_agree(const F& f) {
  const auto expected = f(Eigen::DefaultDevice());
  for (const int threads : {1, 2, 5}) {
    INFO(threads << " threads");
    CHECK(same_bits(f(ThreadsDevice{threads}), expected));
  }
}

/// The positions of `rows` rows of the batch from `row` on and `count` tokens from `first` on, one by one.
inline posenc::Positions part_of(const posenc::Positions& at, Index row, Index rows, Index first,
                                 Index count) {
  Eigen::Tensor<posenc::Position, 2> ids(rows, count);
  for (Index r = 0; r < rows; ++r)
    for (Index i = 0; i < count; ++i) ids(r, i) = at(at.rows() == 1 ? 0 : row + r, first + i);
  return posenc::position_ids(ids);
}

/// Positions for 3 rows of 21 tokens, in each way to give them: from 0 to 44.
inline std::vector<posenc::Positions> some_positions() {
  Eigen::Tensor<std::int32_t, 2> per_row(3, 21);
  Eigen::Tensor<posenc::Position, 1> shared(21);
  for (Index i = 0; i < 21; ++i) {
    shared(i) = 7 * i % 23;
    for (Index row = 0; row < 3; ++row) per_row(row, i) = static_cast<std::int32_t>((5 * i + 11 * row) % 45);
  }
  return {posenc::consecutive(4, 21), posenc::consecutive(std::vector<posenc::Position>{0, 24, 3}, 21),
          posenc::position_ids(shared), posenc::position_ids(per_row)};
}

// The properties of a verb f(device, x, at) that changes x of (batch, seq, d_model) by position.

template <class S, class F>
void check_storages_agree_by_position(Index d_model, const F& f) {
  const Eigen::DefaultDevice serial;
  const auto at = some_positions().back();
  check_storages_agree(random_values<S, 3>({3, 21, d_model}), [&](auto& x) { f(serial, x, at); });
}

template <class S, class F>
void check_matrices_agree_by_position(Index d_model, const F& f) {
  const Eigen::DefaultDevice serial;
  const auto at = posenc::consecutive(4, 21);
  check_matrices_agree(random_values<S, 2>({21, d_model}), [&](auto& x) { f(serial, x, at); });
}

template <class S, class F>
void check_threads_agree_by_position(Index d_model, const F& f) {
  for (const posenc::Positions& at : some_positions()) {
    check_threads_agree([&](const auto& device) {
      auto x = random_values<S, 3>({3, 21, d_model});
      auto packed = x.view();
      f(device, packed, at);
      return x;
    });
    check_threads_agree([&](const auto& device) {  // tiles of several positions
      Eigen::Tensor<S, 3> x(3, 21, d_model);
      fill(x, random_values<S, 3>({3, 21, d_model}));
      f(device, x, at);
      return values_of(x);
    });
  }
}

template <class S, class F>
void check_parts_make_up_the_whole(Index d_model, const F& f) {
  const Eigen::DefaultDevice serial;
  for (const posenc::Positions& at : some_positions()) {
    auto whole = random_values<S, 3>({3, 21, d_model}), parts = whole;
    auto x = whole.view();
    f(serial, x, at);
    for (const Index row : {0, 1})
      for (const Index first : {0, 1, 18}) {
        const Index rows = row == 0 ? 1 : 2, count = first == 0 ? 1 : first == 1 ? 17 : 3;
        auto part = parts.view().slice(0, row, rows).slice(1, first, count);
        f(serial, part, part_of(at, row, rows, first, count));
      }
    CHECK(same_bits(parts, whole));
  }
}

template <class S, class F>
void check_shared_positions_are_the_same_per_row(Index d_model, const F& f) {
  const Eigen::DefaultDevice serial;
  for (const posenc::Positions& at : some_positions()) {
    auto shared = random_values<S, 3>({3, 21, d_model}), per_row = shared;
    auto x = shared.view(), y = per_row.view();
    f(serial, x, at);
    f(serial, y, part_of(at, 0, 3, 0, 21));
    CHECK(same_bits(shared, per_row));
  }
}

/// <u, J v> and <J^T u, v> agree up to the rounding of S: `a` and `b` are the two, `size` is |u| |J v| or the
/// like.
template <class S>
bool agree(double a, double b, double size) {
  return std::abs(a - b) <= 4 * epsilon<S> * size;
}

/// `call` throws Exception with these parts in its message, and leaves the bits of `output` as they were.
template <class Exception, class Output, class Call>
void check_refused(const Output& output, const Call& call, std::initializer_list<const char*> parts) {
  const auto before = values_of(output);
  check_throws<Exception>(call, parts);
  CHECK(same_bits(values_of(output), before));
}

}  // namespace posenc_test
