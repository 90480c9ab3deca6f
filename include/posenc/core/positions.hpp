#pragma once
// Where the tokens of a call stand: a value of its own, made before the call and handed to the verb.
//
//   consecutive(past, n)            past, past + 1, ...         the same for every row of the batch
//   consecutive(pasts, n)           one start per row           KV caches of different lengths
//   position_ids(ids)               ids (seq) or (batch, seq)   copied
//   borrowed_position_ids(ids)      the same, not copied        the ids must outlive the value
//   positions_from_mask(mask)       cumsum(mask) - 1            left or right padding
//   key_positions_from_mask(mask)   the same, padding hidden    keys of a padded batch, in softmax
//   positions_from_cu_seqlens(cu)   0, 1, ... per sequence      ragged sequences packed one after another
//   roberta_positions(ids, pad)     pad + cumsum(id != pad)     RoBERTa, fairseq; `past` as a third argument
//   axis_positions(ids)             ids (axes, batch, seq)      images, videos: several coordinates per token
//   on_axes(at, n)                  the same on n axes          text in a model with several
//   coordinates(values)             real numbers                patch centres, seconds
//
// Positions are exact 64-bit integers, or fixed-point numbers of 128 bits where they are fractions. Negative
// ones are fine for rotations, sinusoids and biases; a table refuses them. Only borrowed_position_ids,
// consecutive(past, n) and on_axes are free of allocations. rotary/position_grids.hpp makes the coordinates
// of images and videos.

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "posenc/core/angles.hpp"
#include "posenc/core/checked.hpp"
#include "posenc/core/error.hpp"
#include "posenc/core/tensor.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {
struct PositionsFactory;
}

/// Positions lie within [-largest_position, largest_position] (2^60), so that no sum or distance of two
/// overflows.
inline constexpr Position largest_position = Position{1} << 60;

namespace detail {

inline bool is_position(Position p) { return p >= -largest_position && p <= largest_position; }

/// Throws std::out_of_range unless it is a position. `where` says where it came from.
template <class... Where>
void require_position(Position p, const Where&... where) {
  if (!is_position(p)) out_of_range(where..., ": expected a position within 2^60 of zero, got ", p);
}

}  // namespace detail

/// The positions of count() tokens: shared by the batch (rows() == 1) or one set for each of rows() rows.
/// Each token has axes() coordinates: one in text, two or more in images and videos.
class Positions {
 public:
  /// No tokens.
  Positions() = default;
  /// A wrong call: a number or a list does not say which it is, a run or explicit positions.
  template <class Ids>
    requires(std::is_arithmetic_v<Ids> || storage_not_expression<Ids> || detail::contiguous_list<Ids>)
  Positions(const Ids&)
      __attribute__((unavailable("posenc: expected Positions: consecutive(past, count) for a run of "
                                 "tokens, position_ids(ids) for explicit ones")));
  /// The same for a list in braces.
  Positions(std::initializer_list<Position>)
      __attribute__((unavailable("posenc: expected Positions: consecutive(past, count) for a run of "
                                 "tokens, position_ids(ids) for explicit ones")));

  /// How many tokens a row has.
  Index count() const { return count_; }
  /// 1 where the batch shares the positions, else one for each row of it.
  Index rows() const { return rows_; }
  /// How many coordinates a token has.
  Index axes() const { return axes_; }
  /// Whether all coordinates are integers by type; only rotations take others.
  bool is_integer() const { return kind_ != Kind::coordinates; }

  /// The position of token i of a row; any row will do where the positions are shared. Unchecked.
  Position operator()(Index row, Index i) const { return integer(0, row, i); }

  /// The same on one of several axes, for integer positions. Unchecked.
  Position integer(Index axis, Index row, Index i) const {
    const Index offset = first_ + axis * axis_stride_ + row * row_stride_;
    switch (kind_) {
      case Kind::consecutive: return shift_ + i;
      case Kind::starts: return shift_ + static_cast<const std::int64_t*>(data_)[offset] + i;
      case Kind::ids64: return shift_ + static_cast<const std::int64_t*>(data_)[offset + i * stride_];
      case Kind::ids32: return shift_ + static_cast<const std::int32_t*>(data_)[offset + i * stride_];
      case Kind::coordinates: break;
    }
    return shift_;
  }

  /// The coordinate of token i of a row on one axis. Unchecked.
  Coordinate coordinate(Index axis, Index row, Index i) const {
    if (is_integer()) return integer(axis, row, i);
    return static_cast<const Coordinate*>(
        data_)[first_ + axis * axis_stride_ + row * row_stride_ + i * stride_];
  }

  /// Whether each row is start, start + 1, ...
  bool is_consecutive() const { return kind_ == Kind::consecutive || kind_ == Kind::starts; }

  /// One of the axes, one of the rows, or the axes in reverse order, (h, w) as (w, h). Share the ids, copy
  /// none. Throw std::out_of_range for an axis or row that is not there.
  Positions axis(Index which) const {
    if (which < 0 || which >= axes_)
      detail::out_of_range("axis: expected one in [0, ", axes_, "), got ", which);
    Positions one = *this;
    one.first_ += which * axis_stride_, one.axes_ = 1;
    return one;
  }
  /// One of the rows. Throws std::out_of_range for one that is not there.
  Positions row(Index which) const {
    if (which < 0 || which >= rows_)
      detail::out_of_range("row: expected one in [0, ", rows_, "), got ", which);
    Positions one = *this;
    one.first_ += which * row_stride_, one.rows_ = 1, one.row_stride_ = 0;
    return one;
  }
  /// The axes in reverse order.
  Positions reversed_axes() const {
    Positions reversed = *this;
    reversed.first_ += (axes_ - 1) * axis_stride_, reversed.axis_stride_ = -axis_stride_;
    return reversed;
  }

  /// Every position plus `by`: BART and OPT look up position + 2. Shares the ids, copies none.
  /// Throws std::out_of_range where a position would leave [-largest_position, largest_position], for shifts
  /// that sum to more than twice that, and std::invalid_argument for fractions.
  Positions shifted(Position by) const {
    if (!is_integer()) detail::invalid("shifted: expected integer positions, got fractions");
    if (by < -2 * largest_position || by > 2 * largest_position)
      detail::out_of_range("shifted: expected a shift within 2^61 of zero, got ", by);
    Positions moved = *this;
    moved.shift_ = detail::checked_sum("shifted", shift_, by);
    if (moved.shift_ < -2 * largest_position || moved.shift_ > 2 * largest_position)
      detail::out_of_range("shifted: expected shifts that sum to within 2^61 of zero, got ", moved.shift_);
    moved.require_range("shifted");
    return moved;
  }

 private:
  enum class Kind : std::uint8_t { consecutive, starts, ids64, ids32, coordinates };

  void require_range(const char* name) const {
    const auto require_one = [&](Index axis, Index row, Index i) {
      const Coordinate c = coordinate(axis, row, i);
      if (c.whole() > static_cast<std::uint64_t>(largest_position))
        detail::out_of_range(name, ": expected positions within 2^60 of zero, got ",
                             is_integer() ? detail::text(integer(axis, row, i)) : detail::text(c.value()),
                             " at (", row, ", ", i, ")");
    };
    if (count_ == 0) return;
    // Along a stride of 0 all are the same.
    const auto each = [](Index n, Index stride) { return stride == 0 ? (std::min)(n, Index{1}) : n; };
    for (Index axis = 0; axis < each(axes_, axis_stride_); ++axis)
      for (Index row = 0; row < each(rows_, row_stride_); ++row) {
        if (is_consecutive()) {
          require_one(axis, row, 0), require_one(axis, row, count_ - 1);
        } else {
          for (Index i = 0; i < each(count_, stride_); ++i) require_one(axis, row, i);
        }
      }
  }

  Kind kind_ = Kind::consecutive;
  Index axes_ = 1, rows_ = 1, count_ = 0;
  Position shift_ = 0;
  Index first_ = 0, axis_stride_ = 0, row_stride_ = 0, stride_ = 0;
  const void* data_ = nullptr;         // starts, ids or coordinates
  std::shared_ptr<const void> owner_;  // of what data_ points into, unless it is borrowed

  friend struct detail::PositionsFactory;
};

namespace detail {

/// How the functions below build a Positions.
struct PositionsFactory {
  static Positions consecutive(Position start, Index count) {
    if (count < 0) invalid("consecutive: expected a count of at least 0, got ", count);
    if (!is_position(start) || Position{count} > largest_position)
      out_of_range("consecutive: expected positions within 2^60 of zero, got start ", start, " and count ",
                   count);
    Positions at;
    at.count_ = count, at.shift_ = start;
    at.require_range("consecutive");
    return at;
  }

  static Positions starts(std::vector<Position> pasts, Index count) {
    if (count < 0) invalid("consecutive: expected a count of at least 0, got ", count);
    if (Position{count} > largest_position)
      out_of_range("consecutive: expected a count below 2^60, got ", count);
    for (const Position past : pasts)
      if (!is_position(past)) out_of_range("consecutive: expected starts within 2^60 of zero, got ", past);
    const Index rows = static_cast<Index>(pasts.size());
    Positions at = owning(Positions::Kind::starts, std::move(pasts), 1, rows, 1);
    at.count_ = count;
    at.require_range("consecutive");
    return at;
  }

  /// ids packed as (axes, rows, count).
  static Positions owned(const char* name, std::vector<Position> ids, Index axes, Index rows, Index count) {
    Positions at = owning(Positions::Kind::ids64, std::move(ids), axes, rows, count);
    at.require_range(name);
    return at;
  }
  static Positions owned(const char* name, std::vector<Coordinate> values, Index axes, Index rows,
                         Index count) {
    Positions at = owning(Positions::Kind::coordinates, std::move(values), axes, rows, count);
    at.require_range(name);
    return at;
  }

  /// Reads the caller's memory.
  template <class Id>
  static Positions borrowed(const char* name, const View<const Id, 3>& ids) {
    Positions at;
    at.kind_ = sizeof(Id) == 8 ? Positions::Kind::ids64 : Positions::Kind::ids32;
    at.axes_ = ids.extent(0), at.rows_ = ids.extent(1), at.count_ = ids.extent(2);
    at.axis_stride_ = ids.stride(0), at.stride_ = ids.stride(2);
    at.row_stride_ = at.rows_ == 1 ? 0 : ids.stride(1);
    at.data_ = ids.data();
    at.require_range(name);
    return at;
  }

  /// The one axis of `at` seen n times.
  static Positions on_axes(const Positions& at, Index n) {
    if (n < 1) invalid("on_axes: expected at least 1 axis, got ", n);
    if (at.axes() != 1) invalid("on_axes: expected positions of 1 axis, got ", at.axes());
    Positions all = at;
    all.axes_ = n, all.axis_stride_ = 0;
    return all;
  }

 private:
  template <class T>
  static Positions owning(Positions::Kind kind, std::vector<T> values, Index axes, Index rows, Index count) {
    Positions at;
    const auto* owned = new std::vector<T>(std::move(values));
    at.owner_.reset(owned);
    at.kind_ = kind, at.data_ = owned->data();
    at.axes_ = axes, at.rows_ = rows, at.count_ = count;
    at.axis_stride_ = rows * count, at.stride_ = 1;
    at.row_stride_ = rows == 1 ? 0 : count;  // shared: every row of the batch reads the one there is
    return at;
  }
};

/// Ids as (axes, rows, count): rank 1 is (count), rank 2 (rows, count), or (axes, count) where `axes_first`.
template <class Id, std::size_t Rank>
View<const Id, 3> as_axes(const View<const Id, Rank>& ids, bool axes_first) {
  if constexpr (Rank == 1)
    return {ids.data(), {1, 1, ids.extent(0)}, {0, 0, ids.stride(0)}};
  else if constexpr (Rank == 2)
    return axes_first ? View<const Id, 3>(ids.data(), {ids.extent(0), 1, ids.extent(1)},
                                          {ids.stride(0), 0, ids.stride(1)})
                      : View<const Id, 3>(ids.data(), {1, ids.extent(0), ids.extent(1)},
                                          {0, ids.stride(0), ids.stride(1)});
  else
    return ids;
}

/// The elements in logical order, as To. `name` is said where they are too many.
template <class To, class From>
std::vector<To> copied(const char* name, const View<From, 3>& values) {
  std::vector<To> copy;
  copy.reserve(static_cast<std::size_t>(checked_count(name, values.size())));
  if (values.size() == 0) return copy;
  for (Index axis = 0; axis < values.extent(0); ++axis)
    for (Index row = 0; row < values.extent(1); ++row)
      for (Index i = 0; i < values.extent(2); ++i) copy.push_back(static_cast<To>(values(axis, row, i)));
  return copy;
}

}  // namespace detail

namespace detail {

template <class T, std::size_t Least, std::size_t Most>
concept ids_of_rank = integer_tensor<T> && integer_rank<std::remove_cvref_t<T>> >= Least &&
                      integer_rank<std::remove_cvref_t<T>> <= Most;

}  // namespace detail

/// start, start + 1, ..., start + count - 1, the same for every row of the batch. `start` is the number of
/// tokens already in the cache (0 for a first call). Throws std::invalid_argument for a negative count.
inline Positions consecutive(Position start, Index count) {
  return detail::PositionsFactory::consecutive(start, count);
}

/// A start for each row of the batch: starts[b], starts[b] + 1, ... `starts` has rank 1.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> == 1)
Positions consecutive(const T& starts, Index count) {
  const auto v = detail::integer_view(starts);
  std::vector<Position> pasts(static_cast<std::size_t>(detail::checked_count("consecutive", v.size())));
  for (Index b = 0; b < v.size(); ++b) pasts[static_cast<std::size_t>(b)] = v(b);
  return detail::PositionsFactory::starts(std::move(pasts), count);
}

/// Explicit positions, (seq) shared by the batch or (batch, seq), copied into the value.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> <= 2)
Positions position_ids(const T& ids) {
  const auto v = detail::as_axes(detail::integer_view(ids), false);
  return detail::PositionsFactory::owned("position_ids", detail::copied<Position>("position_ids", v), 1,
                                         v.extent(1), v.extent(2));
}

/// The same from a list in braces: (seq).
inline Positions position_ids(std::initializer_list<Position> ids) {
  return position_ids(std::span<const Position>(ids.begin(), ids.size()));
}
/// A wrong call: the compiler says what is wrong with it.
template <class T>
  requires(!detail::ids_of_rank<T, 0, 2>)
Positions position_ids(const T&)
    __attribute__((unavailable("posenc: position_ids expects 32- or 64-bit signed integers, (seq) or "
                               "(batch, seq)")));

namespace detail {

/// Memory that is still there after the full expression: an lvalue, or a temporary that only looks at it.
template <class T>
concept outlives_the_call =
    std::is_lvalue_reference_v<T> || (storage_of<T>::known && !storage_of<T>::owns) ||
    (!storage_of<T>::known && std::ranges::enable_borrowed_range<std::remove_cvref_t<T>>);

}  // namespace detail

/// Explicit positions, (seq) or (batch, seq), read from the caller's memory at each use: no allocation, but
/// the ids must outlive the value, and stay as they are.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> <= 2 && detail::outlives_the_call<T>)
Positions borrowed_position_ids(T&& ids) {
  return detail::PositionsFactory::borrowed("borrowed_position_ids",
                                            detail::as_axes(detail::integer_view(ids), false));
}

/// A wrong call: the compiler says what is wrong with it.
template <class T>
  requires(!(detail::ids_of_rank<T, 0, 2> && detail::outlives_the_call<T>))
Positions borrowed_position_ids(T&&)
    __attribute__((unavailable("posenc: borrowed_position_ids expects ids that outlive the call: 32- or "
                               "64-bit signed integers, (seq) or (batch, seq)")));

/// Explicit positions with several coordinates per token, (axes, seq) shared by the batch or (axes, batch,
/// seq) as Hugging Face's M-RoPE has them, copied into the value.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> == 2 ||
           detail::integer_rank<std::remove_cvref_t<T>> == 3)
Positions axis_positions(const T& ids) {
  const auto v = detail::as_axes(detail::integer_view(ids), true);
  return detail::PositionsFactory::owned("axis_positions", detail::copied<Position>("axis_positions", v),
                                         v.extent(0), v.extent(1), v.extent(2));
}

/// A wrong call: the compiler says what is wrong with it.
template <class T>
  requires(!detail::ids_of_rank<T, 2, 3>)
Positions axis_positions(const T&)
    __attribute__((unavailable("posenc: axis_positions expects 32- or 64-bit signed integers, (axes, seq) "
                               "or (axes, batch, seq)")));

/// The same position on each of n axes: text tokens of a model whose images have n coordinates. Copies
/// nothing.
inline Positions on_axes(const Positions& at, Index n) { return detail::PositionsFactory::on_axes(at, n); }

/// Real positions of one axis, shared by the batch: seconds, say. Exact as the doubles that they are.
inline Positions coordinates(std::span<const double> values) {
  std::vector<Coordinate> copy;
  for (const double value : values) copy.push_back(Coordinate::of(value));
  return detail::PositionsFactory::owned("coordinates", std::move(copy), 1, 1,
                                         static_cast<Index>(values.size()));
}

/// Fixed-point positions, `axes` coordinates per token, packed (axes, seq) and shared by the batch.
inline Positions coordinates(std::vector<Coordinate> values, Index axes) {
  const Index size = static_cast<Index>(values.size());
  if (axes < 1 || size % axes != 0)
    detail::invalid("coordinates: expected a number of values divisible by the ", axes, " axes, got ", size);
  return detail::PositionsFactory::owned("coordinates", std::move(values), axes, 1, size / axes);
}

/// Positions of a padded batch: the n-th token with mask != 0 of a row stands at n (from 0), wherever the
/// padding is. mask: (batch, seq), bool or integer. Padding gets `pad_position` (OPT looks up pad_position +
/// 2 = 1 for it: pass -1). These are positions for embeddings, rotations and queries: as the positions of keys
/// they hide no padding, for which there is key_positions_from_mask.
template <mask_tensor T>
  requires(rank_of<T> == 2)
Positions positions_from_mask(const T& mask, Position pad_position = 0) {
  const auto v = view(mask);
  std::vector<Position> ids;
  ids.reserve(static_cast<std::size_t>(detail::checked_count("positions_from_mask", v.size())));
  for (Index row = 0; row < (v.size() == 0 ? 0 : v.extent(0)); ++row) {
    Position next = 0;
    for (Index i = 0; i < v.extent(1); ++i) ids.push_back(v(row, i) ? next++ : pad_position);
  }
  return detail::PositionsFactory::owned("positions_from_mask", std::move(ids), 1, v.extent(0), v.extent(1));
}

/// A wrong call: the compiler says what is wrong with it.
template <class T>
  requires(!(mask_tensor<T> && rank_of<T> == 2))
Positions positions_from_mask(const T&, Position = 0)
    __attribute__((unavailable("posenc: positions_from_mask expects a mask of bool or integers, (batch, "
                               "seq)")));

/// Where key_positions_from_mask puts padding: after every query.
inline constexpr Position padding_position = largest_position;

/// The positions of the keys of a padded batch, for a causal softmax or AlibiForm::causal: those of
/// positions_from_mask, but padding stands at padding_position, after every query, so that being causal hides
/// it. A bias of your own sees it there as well. Rotate the keys at positions_from_mask, like the queries.
template <mask_tensor T>
  requires(rank_of<T> == 2)
Positions key_positions_from_mask(const T& mask) {
  return positions_from_mask(mask, padding_position);
}

/// Positions of ragged sequences packed one after another: sequence b is tokens cu_seqlens[b] .. cu_seqlens[b
/// + 1], and counts from 0. cu_seqlens: rank 1, starts with 0 and never falls; its last entry is the number
/// of tokens.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> == 1)
Positions positions_from_cu_seqlens(const T& cu_seqlens) {
  const auto v = detail::integer_view(cu_seqlens);
  if (v.size() == 0 || v(0) != 0)
    detail::invalid("cu_seqlens: expected a first entry of 0, got ",
                    v.size() == 0 ? std::string("an empty list") : std::to_string(v(0)));
  for (Index b = 1; b < v.size(); ++b) {
    if (v(b) < v(b - 1))
      detail::invalid("cu_seqlens: expected entries that never fall, got ", v(b), " after ", v(b - 1), " at ",
                      b);
    (void)detail::checked_count("cu_seqlens", Position{v(b)});
  }
  std::vector<Position> ids;
  ids.reserve(static_cast<std::size_t>(v(v.size() - 1)));
  for (Index b = 1; b < v.size(); ++b)
    for (Position i = 0; i < v(b) - v(b - 1); ++i) ids.push_back(i);
  const Index count = static_cast<Index>(ids.size());
  return detail::PositionsFactory::owned("positions_from_cu_seqlens", std::move(ids), 1, 1, count);
}

/// A wrong call: the compiler says what is wrong with it.
template <class T>
  requires(!detail::ids_of_rank<T, 1, 1>)
Positions positions_from_cu_seqlens(const T&)
    __attribute__((unavailable("posenc: positions_from_cu_seqlens expects 32- or 64-bit signed integers in "
                               "a list")));

/// The rule of RoBERTa and fairseq: token ids other than padding_idx count from padding_idx + past + 1 in each
/// row, padding stays at padding_idx. ids: (batch, seq); `past` is the number of tokens in the cache,
/// past_key_values_length in Hugging Face. A table needs padding_idx + 1 more rows than the longest sequence.
/// Throws std::out_of_range for a past outside [0, 2^60], and where a position leaves 2^60.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> == 2)
Positions roberta_positions(const T& ids, Position padding_idx, Position past = 0) {
  const auto v = detail::integer_view(ids);
  detail::require_position(padding_idx, "roberta_positions: padding_idx");
  if (past < 0 || past > largest_position)
    detail::out_of_range("roberta_positions: past: expected a number of tokens in [0, 2^60], got ", past);
  std::vector<Position> positions;
  positions.reserve(static_cast<std::size_t>(detail::checked_count("roberta_positions", v.size())));
  for (Index row = 0; row < (v.size() == 0 ? 0 : v.extent(0)); ++row) {
    Position last = padding_idx + past;
    for (Index i = 0; i < v.extent(1); ++i)
      positions.push_back(v(row, i) == padding_idx ? padding_idx : ++last);
  }
  return detail::PositionsFactory::owned("roberta_positions", std::move(positions), 1, v.extent(0),
                                         v.extent(1));
}

/// A wrong call: the compiler says what is wrong with it.
template <class T>
  requires(!detail::ids_of_rank<T, 2, 2>)
Positions roberta_positions(const T&, Position, Position = 0)
    __attribute__((unavailable("posenc: roberta_positions expects token ids of 32- or 64-bit signed "
                               "integers, (batch, seq)")));

namespace detail {

/// Checks that `at` fits a tensor of this batch and sequence length.
inline void require_counts(const char* name, const Positions& at, Index batch, Index seq) {
  if (at.count() != seq)
    invalid(name, ": expected ", seq, " positions, one per token of the sequence, got ", at.count());
  if (at.rows() != 1 && at.rows() != batch)
    invalid(name, ": expected positions for 1 or ", batch, " rows of the batch, got ", at.rows());
}

/// Throws std::invalid_argument unless tokens have `axes` integer coordinates.
inline void require_axes(const char* name, const Positions& at, Index axes) {
  if (at.axes() != axes)
    invalid(name, ": expected positions of ", axes, axes == 1 ? " axis" : " axes", ", got ", at.axes());
  if (!at.is_integer()) invalid(name, ": expected integer positions, got fractions");
}

/// The same for a scheme that knows one axis of integers.
inline void require_positions(const char* name, const Positions& at, Index batch, Index seq) {
  require_counts(name, at, batch, seq);
  require_axes(name, at, 1);
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
