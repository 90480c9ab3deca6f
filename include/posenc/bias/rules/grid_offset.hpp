#pragma once
// Offsets on a grid (Liu et al. 2021, "Swin Transformer", section 3.2): one row for each offset that two
// places of a window of R rows and C columns can have.
//
//   row = (row_q - row_k + R - 1) (2 C - 1) + (column_q - column_k + C - 1),   (2 R - 1)(2 C - 1) rows
//
// Convention: query minus key, row by row. Tokens have two coordinates, (row, column): grid_positions({R,
// C}).

#include <cstddef>
#include <limits>

#include "posenc/bias/score_bias.hpp"

namespace posenc {
inline namespace v0 {

/// The rule: which row the offset of query and key in a window reads.
class GridOffset {
 public:
  /// A window of rows by columns. Throws std::invalid_argument for a window of no rows or columns.
  GridOffset(Index rows, Index columns) : rows_(rows), columns_(columns) {
    constexpr Index most = Index{1} << 24;
    if (rows < 1 || columns < 1 || rows > most || columns > most)
      detail::invalid("GridOffset: expected rows and columns in [1, 2^24], got ", rows, " and ", columns);
  }

  /// Rows of the table.
  Index rows() const { return (2 * rows_ - 1) * (2 * columns_ - 1); }
  /// The row of key j.
  Index operator()(const BiasRow& row, Index j) const {
    const Position down = row.query(0) - row.key(j, 0), right = row.query(1) - row.key(j, 1);
    return (down + rows_ - 1) * (2 * columns_ - 1) + right + columns_ - 1;
  }
  /// Throws std::invalid_argument unless tokens have two integer coordinates, std::out_of_range where two of
  /// them are farther apart than a window is wide.
  void require_positions(const Positions& q_at, const Positions& k_at) const {
    detail::require_axes("q_at", q_at, 2);
    detail::require_axes("k_at", k_at, 2);
    for (const Index axis : {Index{0}, Index{1}}) {
      const Position extent = axis == 0 ? rows_ : columns_;
      for (Index b = 0; b < (std::max)(q_at.rows(), k_at.rows()); ++b) {
        const Ends q(q_at, axis, q_at.rows() == 1 ? 0 : b), k(k_at, axis, k_at.rows() == 1 ? 0 : b);
        if (q.most - k.least >= extent || k.most - q.least >= extent)
          detail::out_of_range(axis == 0 ? "rows" : "columns", ": expected queries and keys in a window of ",
                               extent, ", got queries in [", q.least, ", ", q.most, "] and keys in [",
                               k.least, ", ", k.most, "] in batch row ", b);
      }
    }
  }

 private:
  // The least and the greatest coordinate of a row; of none, two that fit any window.
  struct Ends {
    Ends(const Positions& at, Index axis, Index b) {
      if (at.count() == 0) return;
      least = most = at.integer(axis, b, 0);
      for (Index i = 1; i < at.count(); ++i) {
        const Position p = at.integer(axis, b, i);
        least = p < least ? p : least, most = p > most ? p : most;
      }
    }
    Position least = largest_position, most = -largest_position;
  };

  Index rows_, columns_;
};

}  // namespace v0
}  // namespace posenc
