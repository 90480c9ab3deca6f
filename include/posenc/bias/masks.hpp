#pragma once
// Masks: biases of 0 for a key that a query sees and -infinity for one that it doesn't. sum(bias, mask, ...)
// puts several together; a key is seen where all of them let it be seen.
//
//   causal()                       key <= query
//   sliding_window(n)              query - n < key <= query: Mistral, Gemma; MaskDirection::both: |query - key| < n
//   chunked(n)                     key <= query in the same chunk of n positions: Llama 4; or both directions
//   key_padding(mask)              mask[b][j] != 0: a padded batch
//   segments(ids)                  ids[b][i] == ids[b][j]: documents packed into one row
//
// The first three compare positions; the last two know keys by their index, whatever stands at it. Only
// causal, and the other two with MaskDirection::past, hide what comes after the query.

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "posenc/bias/score_bias.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"

namespace posenc {
inline namespace v0 {

/// Where a mask lets a query look.
enum class MaskDirection {
  past,  ///< at itself and what is before it
  both   ///< at what comes after it, too
};

/// Keys whose distance key - query lies in [least, most].
class DistanceMask : public ScoreBias<DistanceMask> {
 public:
  /// Throws std::invalid_argument unless least <= most.
  DistanceMask(Position least, Position most) : least_(least), most_(most) {
    if (least > most) detail::invalid("DistanceMask: expected least <= most, got ", least, " and ", most);
  }

  /// 0, or -infinity for a hidden key.
  template <std::floating_point C>
  void fill_row(const BiasRow& row, Index first, Index count, C* values) const {
    const Position query = row.query();
    for (Index c = 0; c < count; ++c) values[c] = value<C>(row.key(first + c) - query);
  }
  /// The same by distances.
  template <std::floating_point C>
  void fill_distances(Index, Position start, Index count, C* values) const {
    for (Index c = 0; c < count; ++c) values[c] = value<C>(start + c);
  }
  /// Of keys in order, those in the window.
  KeyRange visible(const BiasRow& row, Index keys) const {
    if (keys == 0 || !row.k_at.is_consecutive()) return {0, keys};
    const Position nearest = row.key(0) - row.query();
    const auto index = [&](Position distance) {
      return static_cast<Index>((std::clamp)(distance - nearest, Position{0}, Position{keys}));
    };
    return detail::intersection({0, keys}, {index(least_), index(most_ + 1)});
  }
  /// Keys in order are hidden by the range alone.
  RowForm form(const BiasRow& row) const {
    return row.k_at.is_consecutive() ? RowForm::zero : RowForm::values;
  }

 private:
  template <std::floating_point C>
  C value(Position distance) const {
    return distance >= least_ && distance <= most_ ? C{0} : detail::minus_infinity<C>();
  }

  Position least_, most_;
};

/// key <= query.
inline DistanceMask causal() { return DistanceMask(-2 * largest_position, 0); }

/// The last n keys up to and with the query's own, or |query - key| < n. Throws std::invalid_argument for n <
/// 1.
inline DistanceMask sliding_window(Position n, MaskDirection direction = MaskDirection::past) {
  if (n < 1 || n > 2 * largest_position)
    detail::invalid("sliding_window: expected at least 1 position, and at most 2^61, got ", n);
  return DistanceMask(1 - n, direction == MaskDirection::past ? 0 : n - 1);
}

/// Keys in the chunk of the query: positions [c n, (c + 1) n).
class ChunkMask : public ScoreBias<ChunkMask> {
 public:
  /// Throws std::invalid_argument for n < 1.
  explicit ChunkMask(Position n, MaskDirection direction = MaskDirection::past)
      : n_(n), direction_(direction) {
    if (n < 1 || n > largest_position)
      detail::invalid("chunked: expected chunks of at least 1 position, and at most 2^60, got ", n);
  }

  /// 0, or -infinity for a hidden key.
  template <std::floating_point C>
  void fill_row(const BiasRow& row, Index first, Index count, C* values) const {
    const auto [begin, end] = chunk(row);
    for (Index c = 0; c < count; ++c) {
      const Position key = row.key(first + c);
      values[c] = key >= begin && key < end ? C{0} : detail::minus_infinity<C>();
    }
  }
  /// Of keys in order, those in the chunk.
  KeyRange visible(const BiasRow& row, Index keys) const {
    if (keys == 0 || !row.k_at.is_consecutive()) return {0, keys};
    const auto [begin, end] = chunk(row);
    const auto index = [&, start = row.key(0)](Position p) {
      return static_cast<Index>((std::clamp)(p - start, Position{0}, Position{keys}));
    };
    return {index(begin), index(end)};
  }
  /// Keys in order are hidden by the range alone.
  RowForm form(const BiasRow& row) const {
    return row.k_at.is_consecutive() ? RowForm::zero : RowForm::values;
  }

 private:
  // What the query sees, [begin, end).
  std::pair<Position, Position> chunk(const BiasRow& row) const {
    const Position query = row.query(), rest = query % n_, begin = query - (rest < 0 ? rest + n_ : rest);
    return {begin, direction_ == MaskDirection::past ? query + 1 : begin + n_};
  }

  Position n_;
  MaskDirection direction_;
};

/// Keys in the chunk of the query. Throws std::invalid_argument for n < 1.
inline ChunkMask chunked(Position n, MaskDirection direction = MaskDirection::past) {
  return ChunkMask(n, direction);
}

namespace detail {

/// Numbers for each batch row and token, copied: (seq), the same for every batch row, or (batch, seq).
template <class T>
class PerToken {
 public:
  PerToken() = default;
  template <class Source, class Convert>
  PerToken(const Source& source, const Convert& convert) {
    const auto v = integer_view(source);
    static_assert(decltype(v)::rank == 1 || decltype(v)::rank == 2,
                  "posenc: expected a number for each token, of shape (seq) or (batch, seq)");
    const auto all = as_axes(v, false);
    rows_ = all.extent(1), count_ = all.extent(2);
    auto values = std::make_shared<std::vector<T>>();
    values->reserve(static_cast<std::size_t>(checked_count("tokens", all.size())));
    for (Index row = 0; row < rows_; ++row)
      for (Index i = 0; i < count_; ++i) values->push_back(convert(all(0, row, i)));
    values_ = std::move(values);
  }

  Index rows() const { return rows_; }
  Index count() const { return count_; }
  /// The numbers of a batch row.
  const T* row(Index b) const { return values_->data() + (rows_ == 1 ? 0 : b) * count_; }

 private:
  Index rows_ = 0, count_ = 0;
  std::shared_ptr<const std::vector<T>> values_;
};

/// Throws unless there is a number for each token of the batch.
template <class T>
void require_tokens(const char* name, const PerToken<T>& tokens, Index batch, Index count) {
  if (tokens.count() != count)
    invalid(name, ": expected ", count, " numbers, one per token, got ", tokens.count());
  if (tokens.rows() != 1 && tokens.rows() != batch)
    invalid(name, ": expected 1 or ", batch, " rows of the batch, got ", tokens.rows());
}

}  // namespace detail

/// Keys that are tokens and no padding.
class PaddingMask : public ScoreBias<PaddingMask> {
 public:
  /// mask: bool or integers, nonzero where there is a token; (keys), or (batch, keys). Copied.
  template <class T>
    requires(mask_tensor<T> || integer_tensor<T>)
  explicit PaddingMask(const T& mask) : is_token_(mask, [](auto m) { return std::uint8_t{m != 0}; }) {
    for (Index b = 0; b < is_token_.rows(); ++b) {
      const std::uint8_t *const begin = is_token_.row(b), *const end = begin + is_token_.count();
      const auto first = std::find(begin, end, std::uint8_t{1}),
                 last = std::find(first, end, std::uint8_t{0});
      const bool one_run = std::find(last, end, std::uint8_t{1}) == end;
      ranges_.push_back({{first - begin, one_run ? last - begin : end - begin}, one_run});
    }
  }

  /// 0, or -infinity for padding.
  template <std::floating_point C>
  void fill_row(const BiasRow& row, Index first, Index count, C* values) const {
    const std::uint8_t* const is_token = is_token_.row(row.b) + first;
    for (Index c = 0; c < count; ++c) values[c] = is_token[c] != 0 ? C{0} : detail::minus_infinity<C>();
  }
  /// From the first token on; to the last, where there is no padding between them.
  KeyRange visible(const BiasRow& row, Index) const { return of(row.b).range; }
  /// Padding on the left, the right or both sides is hidden by the range alone.
  RowForm form(const BiasRow& row) const { return of(row.b).one_run ? RowForm::zero : RowForm::values; }
  /// Throws std::invalid_argument unless the mask has these keys and batch rows.
  void require_shape(Index batch, Index, Index keys) const {
    detail::require_tokens("mask", is_token_, batch, keys);
  }
  /// Reads no positions.
  void require_positions(const Positions&, const Positions&) const {}

 private:
  struct Tokens {
    KeyRange range;
    bool one_run;
  };
  const Tokens& of(Index b) const { return ranges_[static_cast<std::size_t>(is_token_.rows() == 1 ? 0 : b)]; }

  detail::PerToken<std::uint8_t> is_token_;
  std::vector<Tokens> ranges_;
};

/// Hides padding: mask is nonzero where there is a token, (keys) or (batch, keys).
template <class T>
  requires(mask_tensor<T> || integer_tensor<T>)
PaddingMask key_padding(const T& mask) {
  return PaddingMask(mask);
}

/// Keys of the query's segment.
class SegmentMask : public ScoreBias<SegmentMask> {
 public:
  /// The segment of each query and of each key: integers, (seq) or (batch, seq). Copied.
  template <integer_tensor Q, integer_tensor K>
  SegmentMask(const Q& of_queries, const K& of_keys)
      : of_queries_(of_queries, widened), of_keys_(of_keys, widened) {}

  /// 0, or -infinity for a key of another segment.
  template <std::floating_point C>
  void fill_row(const BiasRow& row, Index first, Index count, C* values) const {
    const std::int64_t segment = of_queries_.row(row.b)[row.i], *const keys = of_keys_.row(row.b) + first;
    for (Index c = 0; c < count; ++c) values[c] = keys[c] == segment ? C{0} : detail::minus_infinity<C>();
  }
  /// Throws std::invalid_argument unless there is a segment for each query and key.
  void require_shape(Index batch, Index queries, Index keys) const {
    detail::require_tokens("segments of queries", of_queries_, batch, queries);
    detail::require_tokens("segments of keys", of_keys_, batch, keys);
  }
  /// Reads no positions.
  void require_positions(const Positions&, const Positions&) const {}

 private:
  static std::int64_t widened(std::int64_t id) { return id; }

  detail::PerToken<std::int64_t> of_queries_, of_keys_;
};

/// Hides other segments: the ids of queries and keys that are the same tokens.
template <integer_tensor T>
SegmentMask segments(const T& ids) {
  return SegmentMask(ids, ids);
}
/// The same where queries and keys are not the same tokens: a cache, cross-attention.
template <integer_tensor Q, integer_tensor K>
SegmentMask segments(const Q& of_queries, const K& of_keys) {
  return SegmentMask(of_queries, of_keys);
}

}  // namespace v0
}  // namespace posenc
