#pragma once
// The coordinates of images, videos, and text mixed with both, as Positions with several axes.
//
// These are positions for the rotation alone. Attention masks follow the order of the tokens in the sequence,
// which is another thing: after an image, rotary positions jump back.

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "posenc/core/finite.hpp"
#include "posenc/core/positions.hpp"

namespace posenc {
inline namespace v0 {

/// All points of a grid in row-major order, the last axis fastest, one axis per extent, counted from `origin`
/// (0). An image of patches is grid_positions({rows, columns}); Llama 4 counts from 1. reversed_axes() gives
/// (column, row). Throws std::out_of_range for more points than can be, or positions beyond 2^60.
template <std::size_t Axes>
Positions grid_positions(const Index (&extents)[Axes], Position origin = 0) {
  for (std::size_t axis = 0; axis < Axes; ++axis)
    if (extents[axis] < 0) detail::invalid("extents[", axis, "]: expected at least 0, got ", extents[axis]);
  detail::require_position(origin, "origin");
  const Index all = std::apply(
      [](auto... extent) { return detail::checked_count("extents", static_cast<Index>(Axes), extent...); },
      std::to_array(extents));
  const Index count = all / static_cast<Index>(Axes);
  std::vector<Position> ids(static_cast<std::size_t>(all));
  for (Index n = 0; n < count; ++n)
    for (std::size_t axis = Axes, rest = static_cast<std::size_t>(n); axis-- > 0;) {
      const auto extent = static_cast<std::size_t>(extents[axis]);
      ids[axis * static_cast<std::size_t>(count) + static_cast<std::size_t>(n)] =
          origin + static_cast<Position>(rest % extent);
      rest /= extent;
    }
  return detail::PositionsFactory::owned("grid_positions", std::move(ids), static_cast<Index>(Axes), 1,
                                         count);
}

/// Qwen's vision tower: rows and columns of each frame, in the order in which merge x merge blocks of patches
/// are merged later, blocks in row-major order and patches in row-major order within a block. Axes (row,
/// column); frames repeat. Throws std::invalid_argument unless merge divides rows and columns,
/// std::out_of_range for more patches than can be.
inline Positions merge_block_positions(Index frames, Index rows, Index columns, Index merge) {
  if (frames < 0 || rows < 0 || columns < 0)
    detail::invalid("merge_block_positions: expected extents of at least 0, got ", frames, ", ", rows, ", ",
                    columns);
  if (merge < 1 || rows % merge != 0 || columns % merge != 0)
    detail::invalid("merge: expected a divisor of ", rows, " rows and ", columns, " columns, got ", merge);
  const Index count = detail::checked_count("merge_block_positions", Index{2}, frames, rows, columns) / 2;
  if (count == 0) frames = 0;
  std::vector<Position> row_ids, column_ids;
  for (Index frame = 0; frame < frames; ++frame)
    for (Index block_row = 0; block_row < rows; block_row += merge)
      for (Index block_column = 0; block_column < columns; block_column += merge)
        for (Index row = 0; row < merge; ++row)
          for (Index column = 0; column < merge; ++column) {
            row_ids.push_back(block_row + row);
            column_ids.push_back(block_column + column);
          }
  row_ids.insert(row_ids.end(), column_ids.begin(), column_ids.end());
  return detail::PositionsFactory::owned("merge_block_positions", std::move(row_ids), 2, 1, count);
}

/// DINOv3: the centres of the patches, each axis from -1 to 1: (2 row + 1 - rows) / rows, exact to 2^-64.
/// Axes (row, column), row-major. Throws std::invalid_argument for no rows or columns, std::out_of_range for
/// more patches than can be.
inline Positions patch_centers(Index rows, Index columns) {
  if (rows < 1 || columns < 1)
    detail::invalid("patch_centers: expected at least 1 row and column, got ", rows, " and ", columns);
  const Index count = detail::checked_count("patch_centers", Index{2}, rows, columns) / 2;
  std::vector<Coordinate> centers;
  for (Index n = 0; n < count; ++n) centers.push_back(Coordinate::ratio(2 * (n / columns) + 1 - rows, rows));
  for (Index n = 0; n < count; ++n)
    centers.push_back(Coordinate::ratio(2 * (n % columns) + 1 - columns, columns));
  return coordinates(std::move(centers), 2);
}

/// A run of tokens of one kind in a sequence of a model with M-RoPE.
struct MropeSegment {
  Index text = 0;         ///< a run of so many text (or audio) tokens, or
  Index frames = 0;       ///< a vision run of so many frames
  Index rows = 0;         ///< of each frame, after merging
  Index columns = 0;      ///< of each frame, after merging
  double interval = 1.0;  ///< positions from frame to frame: tokens_per_second * seconds_per_grid
  std::optional<Position> start = std::nullopt;          ///< instead of right behind what came before
  std::optional<Position> spatial_start = std::nullopt;  ///< of rows and columns, where it is not `start`
};

/// Where the text behind an image or a video goes on. The two differ where a video has more frames, or an
/// interval between them, than it has rows and columns.
enum class MropeAdvance {
  largest_axis,  ///< behind the largest position of the run on any axis: Qwen2-VL's paper (section 2.1), its
                 ///< documented example, vLLM, transformers up to 4
  rows_and_columns  ///< max(rows, columns) behind the start of the run, frames left out: transformers 5
};

/// The positions of a whole sequence, and where decoding goes on.
struct MropePositions {
  Positions at;    ///< axes (t, h, w)
  Position delta;  ///< a token decoded at index i of the sequence stands at i + delta on all axes: the first
                   ///< one behind the largest position of the sequence, whatever the advance
};

/// The rule of Qwen2-VL and its kin (get_rope_index): text counts up on all three axes; an image or video
/// starts where the text stopped, has its frame, row and column there, and the text behind it goes on as
/// `advance` says. Throws std::invalid_argument for a segment that is both or neither, or an interval below
/// zero, std::out_of_range for positions beyond 2^60 or more tokens than can be.
inline MropePositions mrope_positions(std::span<const MropeSegment> segments,
                                      MropeAdvance advance = MropeAdvance::largest_axis) {
  std::array<std::vector<Position>, 3> ids;
  Position next = 0, largest = -largest_position;
  for (std::size_t k = 0; k < segments.size(); ++k) {
    const MropeSegment& segment = segments[k];
    const bool vision = segment.frames > 0 && segment.rows > 0 && segment.columns > 0;
    if (vision == (segment.text > 0) || segment.text < 0)
      detail::invalid("segments[", k, "]: expected either text tokens or frames, rows and columns, got ",
                      segment.text, " and (", segment.frames, ", ", segment.rows, ", ", segment.columns, ")");
    if (!(segment.interval >= 0) || !detail::is_finite(segment.interval))
      detail::invalid("segments[", k, "].interval: expected a finite number of at least 0, got ",
                      segment.interval);
    const Position start = segment.start.value_or(next);
    detail::require_position(start, "segments[", k, "]");
    const Index tokens =
        vision ? detail::checked_count("segments", segment.frames, segment.rows, segment.columns)
               : segment.text;
    (void)detail::checked_count("segments", Index{3},
                                detail::checked_sum("segments", static_cast<Index>(ids[0].size()), tokens));
    if (!vision) {
      for (Index i = 0; i < segment.text; ++i)
        for (auto& axis : ids) axis.push_back(start + i);
      next = start + segment.text;
      largest = (std::max)(largest, next - 1);
      continue;
    }
    const Position spatial = segment.spatial_start.value_or(start);
    detail::require_position(spatial, "segments[", k, "].spatial_start");
    if (const double all = segment.interval * static_cast<double>(segment.frames - 1); !(all <= 0x1p60))
      detail::out_of_range("segments[", k, "].interval: expected a last frame within 2^60 of the first, got ",
                           all);
    for (Index frame = 0; frame < segment.frames; ++frame)
      for (Index row = 0; row < segment.rows; ++row)
        for (Index column = 0; column < segment.columns; ++column) {
          ids[0].push_back(start + static_cast<Position>(segment.interval * static_cast<double>(frame)));
          ids[1].push_back(spatial + row);
          ids[2].push_back(spatial + column);
        }
    // The last token has the largest position of the run on every axis.
    const Position end = (std::max)({ids[0].back(), ids[1].back(), ids[2].back()}) + 1;
    largest = (std::max)(largest, end - 1);
    next = advance == MropeAdvance::largest_axis ? end : start + (std::max)(segment.rows, segment.columns);
  }
  const Index count = static_cast<Index>(ids[0].size());
  std::vector<Position> all;
  for (const auto& axis : ids) all.insert(all.end(), axis.begin(), axis.end());
  return {detail::PositionsFactory::owned("mrope_positions", std::move(all), 3, 1, count),
          count == 0 ? 0 : largest + 1 - count};
}

/// A batch from the positions of its rows, all with as many axes. Rows that are shorter than `count` are
/// filled up with `pad_position`, in front where `pad_left`; padding is masked by the caller. Throws
/// std::invalid_argument for rows that don't fit, std::out_of_range for more tokens than can be.
inline Positions stacked(std::span<const Positions> rows, Index count, bool pad_left,
                         Position pad_position = 0) {
  if (count < 0) detail::invalid("count: expected at least 0, got ", count);
  const Index axes = rows.empty() ? 1 : rows.front().axes();
  const Index all = detail::checked_count("stacked", axes, static_cast<Index>(rows.size()), count);
  std::vector<Position> ids;
  for (Index axis = 0; axis < (all == 0 ? 1 : axes); ++axis)  // the first checks the rows
    for (std::size_t b = 0; b < rows.size(); ++b) {
      const Positions& at = rows[b];
      if (at.axes() != axes || at.rows() != 1 || !at.is_integer() || at.count() > count)
        detail::invalid("rows[", b, "]: expected one row of at most ", count, " integer positions of ", axes,
                        " axes, got ", at.count(), " of ", at.axes());
      const Index padding = count - at.count();
      if (pad_left) ids.insert(ids.end(), static_cast<std::size_t>(padding), pad_position);
      for (Index i = 0; i < at.count(); ++i) ids.push_back(at.integer(axis, 0, i));
      if (!pad_left) ids.insert(ids.end(), static_cast<std::size_t>(padding), pad_position);
    }
  return detail::PositionsFactory::owned("stacked", std::move(ids), axes, static_cast<Index>(rows.size()),
                                         count);
}

}  // namespace v0
}  // namespace posenc
