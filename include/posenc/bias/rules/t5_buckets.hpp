#pragma once
// T5's relative buckets (Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified
// Text-to-Text Transformer", section 2.1): near distances have a bucket each, far ones share buckets that
// grow with the logarithm of the distance. With d = key - query and n the number of buckets of one direction,
//
//   f(x) = x                                                        x < m = n / 2
//          min(n - 1, m + floor(ln(x / m) / ln(max_distance / m) (n - m)))    otherwise
//
//   bidirectional    n = num_buckets / 2,   bucket = f(|d|), and n more where d > 0
//   unidirectional   n = num_buckets,       bucket = f(max(-d, 0)): all keys after the query are in bucket 0
//
// The first distance of each bucket is computed once, as an integer, so that no rounding of a logarithm moves
// a border.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "posenc/bias/score_bias.hpp"
#include "posenc/core/power.hpp"

namespace posenc {
inline namespace v0 {

/// Whether keys before and after the query have buckets of their own. T5: bidirectional in the encoder,
/// unidirectional in the decoder; a wrong guess reads the wrong half of the table, so there is no default.
enum class T5Direction { bidirectional, unidirectional };

/// The rule: which row of a table (num_buckets, heads) a distance reads.
class T5Buckets {
 public:
  /// num_buckets and max_distance are relative_attention_num_buckets and relative_attention_max_distance.
  /// Throws std::invalid_argument for fewer than 2 buckets in a direction, an odd number of them in two
  /// directions, or a max_distance that is not beyond the buckets of single distances.
  explicit T5Buckets(T5Direction direction, Index num_buckets = 32, Position max_distance = 128)
      : num_buckets_(num_buckets), two_sided_(direction == T5Direction::bidirectional) {
    constexpr Index most = Index{1} << 20;
    if (num_buckets < (two_sided_ ? 4 : 2) || num_buckets > most || (two_sided_ && num_buckets % 2 != 0))
      detail::invalid("num_buckets: expected ", two_sided_ ? "an even number of at least 4" : "at least 2",
                      ", and at most 2^20, got ", num_buckets);
    const Index n = per_direction(), exact = n / 2;
    if (max_distance <= exact || max_distance > largest_position)
      detail::invalid("max_distance: expected more than the ", exact,
                      " distances that have buckets of their own, and at most 2^60, got ", max_distance);
    for (Index bucket = 0; bucket < n; ++bucket) {
      const double part = static_cast<double>(bucket - exact) / static_cast<double>(n - exact);
      const double ratio = static_cast<double>(max_distance) / static_cast<double>(exact);
      // Where the border is an integer, as 16, 32 and 64 are, the power may come out a little above it.
      first_.push_back(bucket <= exact
                           ? Position{bucket}
                           : static_cast<Position>(std::ceil(static_cast<double>(exact) *
                                                             detail::power_of(ratio, part) * (1 - 1e-9))));
    }
    constexpr Position longest = 4096;  // of what is looked up instead of searched
    for (Position x = 0; x < (std::min)(longest, first_.back()); ++x) near_.push_back(search(x));
  }

  /// Rows of the table.
  Index rows() const { return num_buckets_; }
  /// The row of key - query = distance.
  Index of_distance(Position distance) const {
    if (!two_sided_) return bucket(distance < 0 ? -distance : 0);
    return distance > 0 ? per_direction() + bucket(distance) : bucket(-distance);
  }
  /// The least |distance| of each bucket of one direction, ascending.
  const std::vector<Position>& first_distances() const { return first_; }

 private:
  Index per_direction() const { return two_sided_ ? num_buckets_ / 2 : num_buckets_; }
  Index bucket(Position x) const {
    if (x < static_cast<Position>(near_.size())) return near_[static_cast<std::size_t>(x)];
    return x >= first_.back() ? static_cast<Index>(first_.size()) - 1 : search(x);
  }
  Index search(Position x) const {
    return static_cast<Index>(std::upper_bound(first_.begin(), first_.end(), x) - first_.begin()) - 1;
  }

  Index num_buckets_;
  bool two_sided_;
  std::vector<Position> first_;
  std::vector<Index> near_;
};

}  // namespace v0
}  // namespace posenc
