#pragma once
// Clipped distances (Shaw et al. 2018, "Self-Attention with Relative Position Representations", section 3.2):
// one row for each distance up to k on either side, and the outermost for all that is farther.
//
//   row = clip(key - query, -k, k) + k,   2 k + 1 rows

#include <algorithm>

#include "posenc/bias/score_bias.hpp"

namespace posenc {
inline namespace v0 {

/// The rule: which of 2 max_distance + 1 rows a distance reads.
class Clipped {
 public:
  /// Throws std::invalid_argument for a negative max_distance.
  explicit Clipped(Position max_distance) : max_distance_(max_distance) {
    if (max_distance < 0 || max_distance > largest_position / 4)
      detail::invalid("max_distance: expected a number in [0, 2^58], got ", max_distance);
  }

  /// Rows of the table.
  Index rows() const { return static_cast<Index>(2 * max_distance_ + 1); }
  /// The row of key - query = distance.
  Index of_distance(Position distance) const {
    return static_cast<Index>((std::clamp)(distance, -max_distance_, max_distance_) + max_distance_);
  }

 private:
  Position max_distance_;
};

}  // namespace v0
}  // namespace posenc
