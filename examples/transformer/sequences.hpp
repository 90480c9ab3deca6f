#pragma once
// A batch of sentences of different lengths, packed one after another without padding: a token is a row of
// every activation, and only attention has to know where a sentence ends. A padded batch is the special case
// of equal lengths and a mask.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "posenc/core/positions.hpp"
#include "transformer/matrix.hpp"

namespace transformer {

using Token = std::int32_t;
using Tokens = std::vector<Token>;

/// A sentence and its translation: plain word ids, without <bos> and <eos>.
struct Pair {
  Tokens source, target;
};

/// Ids that the vocabulary keeps free.
struct SpecialTokens {
  Token pad = 0, bos = 1, eos = 2;
};

class Sequences {
 public:
  Sequences() = default;

  /// Adds a sentence: `first` (if any), the tokens, `last` (if any).
  void append(std::span<const Token> tokens, std::optional<Token> first = {},
              std::optional<Token> last = {}) {
    if (first) ids_.push_back(*first);
    ids_.insert(ids_.end(), tokens.begin(), tokens.end());
    if (last) ids_.push_back(*last);
    starts_.push_back(static_cast<Index>(ids_.size()));
  }

  /// Sentences of equal length with padding in them: mask is nonzero where there is a token. Padding is never
  /// looked at, and its own outputs mean nothing.
  static Sequences padded(const View<const Token, 2>& ids, const View<const std::uint8_t, 2>& mask) {
    if (ids.extents() != mask.extents()) throw std::invalid_argument("mask: expected the shape of the ids");
    Sequences batch;
    for (Index row = 0; row < ids.extent(0); ++row) {
      for (Index i = 0; i < ids.extent(1); ++i) {
        batch.ids_.push_back(ids(row, i));
        batch.mask_.push_back(mask(row, i) != 0);
      }
      batch.starts_.push_back(static_cast<Index>(batch.ids_.size()));
    }
    return batch;
  }

  void clear() { ids_.clear(), mask_.clear(), starts_.assign(1, 0), first_token_ = 0; }

  std::span<const Token> ids() const { return ids_; }
  Index count() const { return static_cast<Index>(starts_.size()) - 1; }
  Index tokens() const { return static_cast<Index>(ids_.size()); }
  Index start(Index sentence) const { return starts_[static_cast<std::size_t>(sentence)]; }
  Index length(Index sentence) const { return start(sentence + 1) - start(sentence); }

  /// The mask of a sentence, or null where all of it is tokens.
  const std::uint8_t* mask(Index sentence) const {
    return mask_.empty() ? nullptr : mask_.data() + start(sentence);
  }

  /// Where each token stands in its sentence, from 0.
  posenc::Positions positions() const {
    if (mask_.empty()) return posenc::positions_from_cu_seqlens(starts_);
    const Index rows = count(), length_of_all = rows == 0 ? 0 : length(0);
    const auto padded =
        posenc::positions_from_mask(View<const std::uint8_t, 2>(mask_.data(), {rows, length_of_all}));
    std::vector<posenc::Position> packed;
    for (Index row = 0; row < rows; ++row)
      for (Index i = 0; i < length_of_all; ++i) packed.push_back(padded(row, i));
    return posenc::position_ids(packed);
  }

  /// Tokens of the whole batch before this part of it: dropout then draws the same mask however the batch is
  /// split.
  Index first_token() const { return first_token_; }
  void set_first_token(Index before) { first_token_ = before; }

 private:
  Tokens ids_;
  std::vector<Index> starts_ = {0};
  std::vector<std::uint8_t> mask_;
  Index first_token_ = 0;
};

}  // namespace transformer
