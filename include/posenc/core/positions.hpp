#pragma once
// Where the tokens of a call stand: a value of its own, made before the call and handed to the verb.
//
//   consecutive(past, n)            past, past + 1, ...         the same for every row of the batch
//   consecutive(pasts, n)           one start per row           KV caches of different lengths
//   position_ids(ids)               ids (seq) or (batch, seq)   copied
//   borrowed_position_ids(ids)      the same, not copied        the ids must outlive the value
//   positions_from_mask(mask)       cumsum(mask) - 1            left or right padding
//   positions_from_cu_seqlens(cu)   0, 1, ... per sequence      ragged sequences packed one after another
//   roberta_positions(ids, pad)     pad + cumsum(id != pad)     RoBERTa, fairseq
//
// Positions are exact 64-bit integers. Negative ones are fine for rotations, sinusoids and biases; a table
// refuses them. Only borrowed_position_ids and consecutive(past, n) are free of allocations.

#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "posenc/core/angles.hpp"
#include "posenc/core/error.hpp"
#include "posenc/core/tensor.hpp"

namespace posenc {
inline namespace v0 {

/// Positions lie within [-largest_position, largest_position] (2^60), so that no sum or distance of two
/// overflows.
inline constexpr Position largest_position = Position{1} << 60;

/// The positions of count() tokens: shared by the batch (rows() == 1) or one set for each of rows() rows.
class Positions {
 public:
  Index count() const { return count_; }
  Index rows() const { return rows_; }

  /// The position of token i of a row; any row will do where the positions are shared. Unchecked.
  Position operator()(Index row, Index i) const {
    switch (kind_) {
      case Kind::consecutive: return shift_ + i;
      case Kind::starts: return shift_ + static_cast<const std::int64_t*>(data_)[row * row_stride_] + i;
      case Kind::ids64:
        return shift_ + static_cast<const std::int64_t*>(data_)[row * row_stride_ + i * stride_];
      case Kind::ids32:
        return shift_ + static_cast<const std::int32_t*>(data_)[row * row_stride_ + i * stride_];
    }
    return shift_;
  }

  /// Whether each row is start, start + 1, ...
  bool is_consecutive() const { return kind_ == Kind::consecutive || kind_ == Kind::starts; }

  /// Every position plus `by`: BART and OPT look up position + 2. Shares the ids, copies none.
  /// Throws std::out_of_range where a position would leave [-largest_position, largest_position].
  Positions shifted(Position by) const {
    if (by < -2 * largest_position || by > 2 * largest_position)
      detail::out_of_range("shifted: expected a shift within 2^61 of zero, got ", by);
    Positions moved = *this;
    moved.shift_ += by;
    moved.require_range("shifted");
    return moved;
  }

 private:
  enum class Kind : std::uint8_t { consecutive, starts, ids64, ids32 };

  void require_range(const char* name) const {
    const auto check = [&](Index row, Index i) {
      const Position p = (*this)(row, i);
      if (p < -largest_position || p > largest_position)
        detail::out_of_range(name, ": expected positions within 2^60 of zero, got ", p, " at (", row, ", ", i,
                             ")");
    };
    if (count_ == 0) return;
    for (Index row = 0; row < rows_; ++row) {
      if (is_consecutive()) {
        check(row, 0), check(row, count_ - 1);
      } else {
        for (Index i = 0; i < count_; ++i) check(row, i);
      }
    }
  }

  Kind kind_ = Kind::consecutive;
  Index rows_ = 1, count_ = 0;
  Position shift_ = 0;
  Index row_stride_ = 0, stride_ = 0;
  const void* data_ = nullptr;                          // starts or ids
  std::shared_ptr<const std::vector<Position>> owned_;  // what data_ points into, unless it is borrowed

  friend struct PositionsFactory;
};

/// How the functions below build a Positions.
struct PositionsFactory {
  static Positions consecutive(Position start, Index count) {
    if (count < 0) detail::invalid("consecutive: expected a count of at least 0, got ", count);
    if (start < -largest_position || start > largest_position || count > largest_position)
      detail::out_of_range("consecutive: expected positions within 2^60 of zero, got start ", start,
                           " and count ", count);
    Positions at;
    at.count_ = count, at.shift_ = start;
    at.require_range("consecutive");
    return at;
  }

  static Positions starts(std::vector<Position> pasts, Index count) {
    if (count < 0) detail::invalid("consecutive: expected a count of at least 0, got ", count);
    if (count > largest_position)
      detail::out_of_range("consecutive: expected a count below 2^60, got ", count);
    Positions at = owning(std::move(pasts), 0, 0);
    at.kind_ = Positions::Kind::starts;
    at.rows_ = static_cast<Index>(at.owned_->size()), at.count_ = count,
    at.row_stride_ = at.rows_ == 1 ? 0 : 1;
    for (const Position past : *at.owned_)
      if (past < -largest_position || past > largest_position)
        detail::out_of_range("consecutive: expected starts within 2^60 of zero, got ", past);
    at.require_range("consecutive");
    return at;
  }

  /// ids packed as (rows, count).
  static Positions owned(const char* name, std::vector<Position> ids, Index rows, Index count) {
    Positions at = owning(std::move(ids), rows, count);
    for (const Position id : *at.owned_)
      if (id < -largest_position || id > largest_position)
        detail::out_of_range(name, ": expected positions within 2^60 of zero, got ", id);
    return at;
  }

  template <class Id, std::size_t Rank>
  static Positions borrowed(const char* name, const View<const Id, Rank>& ids) {
    static_assert(Rank == 1 || Rank == 2, "posenc: expected position ids of shape (seq) or (batch, seq)");
    Positions at;
    at.kind_ = sizeof(Id) == 8 ? Positions::Kind::ids64 : Positions::Kind::ids32;
    at.rows_ = Rank == 2 ? ids.extent(0) : 1, at.count_ = ids.extent(Rank - 1);
    at.row_stride_ = at.rows_ == 1 ? 0 : ids.stride(0), at.stride_ = ids.stride(Rank - 1);
    at.data_ = ids.data();
    at.require_range(name);
    return at;
  }

 private:
  static Positions owning(std::vector<Position> ids, Index rows, Index count) {
    Positions at;
    at.kind_ = Positions::Kind::ids64;
    at.owned_ = std::make_shared<const std::vector<Position>>(std::move(ids));
    at.data_ = at.owned_->data();
    at.rows_ = rows, at.count_ = count, at.row_stride_ = rows == 1 ? 0 : count, at.stride_ = 1;
    return at;
  }
};

/// start, start + 1, ..., start + count - 1, the same for every row of the batch. `start` is the number of
/// tokens already in the cache (0 for a first call). Throws std::invalid_argument for a negative count.
inline Positions consecutive(Position start, Index count) {
  return PositionsFactory::consecutive(start, count);
}

/// A start for each row of the batch: starts[b], starts[b] + 1, ... `starts` has rank 1.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> == 1)
Positions consecutive(const T& starts, Index count) {
  const auto v = detail::integer_view(starts);
  std::vector<Position> pasts(static_cast<std::size_t>(v.size()));
  for (Index b = 0; b < v.size(); ++b) pasts[static_cast<std::size_t>(b)] = v(b);
  return PositionsFactory::starts(std::move(pasts), count);
}

/// Explicit positions, (seq) shared by the batch or (batch, seq), copied into the value.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> <= 2)
Positions position_ids(const T& ids) {
  const auto v = detail::integer_view(ids);
  constexpr std::size_t rank = decltype(v)::rank;
  const Index rows = rank == 2 ? v.extent(0) : 1, count = v.extent(rank - 1);
  std::vector<Position> copy;
  copy.reserve(static_cast<std::size_t>(rows * count));
  for (Index row = 0; row < rows; ++row)
    for (Index i = 0; i < count; ++i) {
      if constexpr (rank == 2)
        copy.push_back(v(row, i));
      else
        copy.push_back(v(i));
    }
  return PositionsFactory::owned("position_ids", std::move(copy), rows, count);
}

/// Explicit positions, (seq) or (batch, seq), read from the caller's memory at each use: no allocation, but
/// the ids must outlive the value, and stay as they are.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> <= 2 &&
           (std::is_lvalue_reference_v<T> || !detail::storage_of<T>::owns))
Positions borrowed_position_ids(T&& ids) {
  return PositionsFactory::borrowed("borrowed_position_ids", detail::integer_view(ids));
}

/// Positions of a padded batch: the n-th token with mask != 0 of a row stands at n (from 0), wherever the
/// padding is. mask: (batch, seq), bool or integer. Padding gets `pad_position`, whose value matters only
/// where the padding is not masked (OPT looks up pad_position + 2 = 1 for it: pass -1).
template <mask_tensor T>
  requires(rank_of<T> == 2)
Positions positions_from_mask(const T& mask, Position pad_position = 0) {
  const auto v = view(mask);
  std::vector<Position> ids;
  ids.reserve(static_cast<std::size_t>(v.size()));
  for (Index row = 0; row < v.extent(0); ++row) {
    Position next = 0;
    for (Index i = 0; i < v.extent(1); ++i) ids.push_back(v(row, i) ? next++ : pad_position);
  }
  return PositionsFactory::owned("positions_from_mask", std::move(ids), v.extent(0), v.extent(1));
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
  for (Index b = 1; b < v.size(); ++b)
    if (v(b) < v(b - 1))
      detail::invalid("cu_seqlens: expected entries that never fall, got ", v(b), " after ", v(b - 1), " at ",
                      b);
  std::vector<Position> ids;
  ids.reserve(static_cast<std::size_t>(v(v.size() - 1)));
  for (Index b = 1; b < v.size(); ++b)
    for (Position i = 0; i < v(b) - v(b - 1); ++i) ids.push_back(i);
  const Index count = static_cast<Index>(ids.size());
  return PositionsFactory::owned("positions_from_cu_seqlens", std::move(ids), 1, count);
}

/// The rule of RoBERTa and fairseq: token ids other than padding_idx count from padding_idx + 1 in each row,
/// padding stays at padding_idx. ids: (batch, seq). A table needs padding_idx + 1 more rows than the longest
/// sequence.
template <integer_tensor T>
  requires(detail::integer_rank<std::remove_cvref_t<T>> == 2)
Positions roberta_positions(const T& ids, Position padding_idx) {
  const auto v = detail::integer_view(ids);
  std::vector<Position> positions;
  positions.reserve(static_cast<std::size_t>(v.size()));
  for (Index row = 0; row < v.extent(0); ++row) {
    Position last = padding_idx;
    for (Index i = 0; i < v.extent(1); ++i)
      positions.push_back(v(row, i) == padding_idx ? padding_idx : ++last);
  }
  return PositionsFactory::owned("roberta_positions", std::move(positions), v.extent(0), v.extent(1));
}

namespace detail {

/// Checks that `at` fits a tensor of this batch and sequence length.
inline void require_positions(const char* name, const Positions& at, Index batch, Index seq) {
  if (at.count() != seq)
    invalid(name, ": expected ", seq, " positions, one per token of the sequence, got ", at.count());
  if (at.rows() != 1 && at.rows() != batch)
    invalid(name, ": expected positions for 1 or ", batch, " rows of the batch, got ", at.rows());
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
