#pragma once
// Several coordinates per token: which coordinate drives which pair. Text has one, images two (row, column),
// videos three (frame, row, column), and every model has its own way to deal the pairs out to them. Here that
// is a list in RotaryFrequencies, `axis`, made by one of these pure functions; the rotation itself is the
// same for all.
//
//   M-RoPE, contiguous (Qwen2-VL)      ttt..hhh..www..   mrope_sections(f, {16, 24, 24})
//   M-RoPE, interleaved (Qwen3-VL)     thwthw..tttt      mrope_interleaved(f, {24, 20, 20})
//   ERNIE 4.5 VL                       hwhw..tttt        ernie_sections(f, {22, 22, 20})
//   Hunyuan (text, w, h, image)        four runs         mrope_sections(f, {16, 16, 16, 16})
//   Qwen vision                        hhh..www..        axial_frequencies({head_dim, 2, theta})
//   SAM, Llama 4 vision, axes (w, h)   www..hhh..        the same
//   Kimi vision, axes (w, h)           whwh..            the same with AxialOrder::interleaved
//   Pixtral                            hhh..www..        pixtral_frequencies(head_dim): one ladder, split
//   DINOv3, coordinates in [-1, 1]     hhh..www..        dinov3_frequencies(head_dim)
//   MiniMax-M3 vision, a rest at rest  ttt..hhh..www..   axial_frequencies({head_dim, 3, theta})
//
// Where each axis has a part of the head to itself, with pairs of its own (Gemma 4 vision, V-JEPA 2), several
// Rotary share the head, each with its Window and its at.axis(k).

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <numbers>
#include <span>
#include <utility>
#include <vector>

#include "posenc/core/checked.hpp"
#include "posenc/rotary/frequencies.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// Throws unless the sections are counts that sum to the number of pairs.
inline void require_sections(const RotaryFrequencies& frequencies, std::span<const Index> sections,
                             std::size_t least) {
  if (sections.size() < least) invalid("sections: expected ", least, " of them, got ", sections.size());
  const auto pairs = static_cast<std::int64_t>(frequencies.inv_freq.size());
  std::int64_t sum = 0;
  bool fits = true;
  for (std::size_t k = 0; k < sections.size(); ++k) {
    if (sections[k] < 0) invalid("sections[", k, "]: expected at least 0 pairs, got ", sections[k]);
    fits = fits && add_fits(sum, sections[k], sum);
  }
  if (!fits || sum != pairs)
    invalid("sections: expected them to sum to the number of pairs, ", pairs, ", got ",
            fits ? text(sum) : "more than 2^63");
}

}  // namespace detail

/// The first sections[0] pairs turn with axis 0, the next sections[1] with axis 1, and so on. Sections are
/// counted in pairs and sum to rotary_dim / 2. Throws std::invalid_argument where they don't (ggml begins again
/// with the first section, or leaves out what is too much).
inline RotaryFrequencies mrope_sections(RotaryFrequencies frequencies, std::span<const Index> sections) {
  detail::require_sections(frequencies, sections, 1);
  frequencies.axis.clear();
  for (std::size_t k = 0; k < sections.size(); ++k)
    frequencies.axis.insert(frequencies.axis.end(), static_cast<std::size_t>(sections[k]),
                            static_cast<int>(k));
  return frequencies;
}
/// The same with the sections written out.
inline RotaryFrequencies mrope_sections(RotaryFrequencies frequencies,
                                        std::initializer_list<Index> sections) {
  return mrope_sections(std::move(frequencies), std::span<const Index>(sections.begin(), sections.size()));
}

/// t h w t h w ... as long as h and w have pairs left, then t (Qwen3-VL, mrope_interleaved). Three sections, in
/// pairs, that sum to rotary_dim / 2 and that taking turns deals out as they stand: every third pair can be had,
/// so h and w have at most a third each. Throws std::invalid_argument where they don't; transformers and ggml
/// deal {16, 24, 24} as 22, 21, 21.
inline RotaryFrequencies mrope_interleaved(RotaryFrequencies frequencies, std::span<const Index> sections) {
  detail::require_sections(frequencies, sections, 3);
  detail::require_equal("sections", std::size_t{3}, sections.size());
  frequencies.axis.assign(frequencies.inv_freq.size(), 0);
  for (std::size_t i = 0; i < frequencies.axis.size(); ++i)
    for (const int axis : {1, 2})
      if (static_cast<int>(i % 3) == axis &&
          static_cast<Index>(i) < 3 * sections[static_cast<std::size_t>(axis)])
        frequencies.axis[i] = axis;
  Index dealt[3] = {};
  for (const int axis : frequencies.axis) ++dealt[axis];
  if (!std::equal(sections.begin(), sections.end(), dealt))
    detail::invalid("sections: expected what taking turns deals out, got ", sections[0], ", ", sections[1],
                    ", ", sections[2], ", which become ", dealt[0], ", ", dealt[1], ", ", dealt[2]);
  return frequencies;
}
/// The same with the sections written out.
inline RotaryFrequencies mrope_interleaved(RotaryFrequencies frequencies,
                                           std::initializer_list<Index> sections) {
  return mrope_interleaved(std::move(frequencies), std::span<const Index>(sections.begin(), sections.size()));
}

/// h w h w ..., then the last (slowest) pairs for t: ERNIE 4.5 VL. sections = {h, w, t} in pairs, h and w
/// equal; the axes of a token are (t, h, w). Throws std::invalid_argument for other sections.
inline RotaryFrequencies ernie_sections(RotaryFrequencies frequencies, std::span<const Index> sections) {
  detail::require_sections(frequencies, sections, 3);
  detail::require_equal("sections", std::size_t{3}, sections.size());
  detail::require_equal("sections[1]", sections[0], sections[1]);
  frequencies.axis.assign(frequencies.inv_freq.size(), 0);
  for (std::size_t i = 0; static_cast<Index>(i) < 2 * sections[0]; ++i)
    frequencies.axis[i] = i % 2 == 0 ? 1 : 2;
  return frequencies;
}
/// The same with the sections written out.
inline RotaryFrequencies ernie_sections(RotaryFrequencies frequencies,
                                        std::initializer_list<Index> sections) {
  return ernie_sections(std::move(frequencies), std::span<const Index>(sections.begin(), sections.size()));
}

/// The order of the pairs of several axes.
enum class AxialOrder {
  concatenated,  ///< all pairs of axis 0, then all of axis 1, ...
  interleaved    ///< pair 0 of every axis, then pair 1 of every axis, ...
};

/// A head whose pairs are shared out equally among the axes.
struct AxialConfig {
  Index head_dim = 0;                           ///< dimensions of a head
  Index axes = 2;                               ///< coordinates of a token
  double rope_theta = 10000.0;                  ///< the base of every axis
  AxialOrder order = AxialOrder::concatenated;  ///< the order of the pairs
};

/// Each axis has the same ladder, theta^(-2i/d) for i < d/2, over its share of the head, d = 2 floor(head_dim
/// / (2 axes)) dimensions. What is left over (head_dim 128 on 3 axes: 2 dimensions) does not turn. Throws
/// std::invalid_argument where an axis would get no pair.
inline RotaryFrequencies axial_frequencies(const AxialConfig& config) {
  if (config.axes < 1) detail::invalid("axes: expected at least 1, got ", config.axes);
  const Index pairs = config.head_dim / 2 / config.axes;
  std::int64_t least = 0;
  if (pairs < 1)
    detail::invalid("head_dim: expected at least ",
                    detail::multiply_fits(2, config.axes, least) ? detail::text(least)
                                                                 : "2 * " + detail::text(config.axes),
                    ", got ", config.head_dim);
  detail::require_width("head_dim", config.head_dim);
  const std::vector<double> ladder =
      rotary_frequencies({.head_dim = 2 * pairs, .rope_theta = config.rope_theta}).inv_freq;
  RotaryFrequencies frequencies;
  frequencies.head_dim = config.head_dim;
  for (Index n = 0; n < pairs * config.axes; ++n) {
    const bool concatenated = config.order == AxialOrder::concatenated;
    frequencies.inv_freq.push_back(
        ladder[static_cast<std::size_t>(concatenated ? n % pairs : n / config.axes)]);
    frequencies.axis.push_back(static_cast<int>(concatenated ? n / pairs : n % config.axes));
  }
  return frequencies;
}

/// Pixtral: one ladder over the head, theta^(-2i/head_dim); rows turn by its even members, columns by its odd
/// ones. Axes (row, column). Throws std::invalid_argument unless head_dim is divisible by 4.
inline RotaryFrequencies pixtral_frequencies(Index head_dim, double rope_theta = 10000.0) {
  if (head_dim % 4 != 0) detail::invalid("head_dim: expected a multiple of 4, got ", head_dim);
  const RotaryFrequencies ladder = rotary_frequencies({.head_dim = head_dim, .rope_theta = rope_theta});
  RotaryFrequencies frequencies;
  frequencies.head_dim = head_dim;
  for (const int axis : {0, 1})
    for (std::size_t i = static_cast<std::size_t>(axis); i < ladder.inv_freq.size(); i += 2) {
      frequencies.inv_freq.push_back(ladder.inv_freq[i]);
      frequencies.axis.push_back(axis);
    }
  return frequencies;
}

/// DINOv3: 2 pi theta^(-4i/head_dim) radians per unit of a coordinate in [-1, 1] (patch_centers). Axes (row,
/// column). Throws std::invalid_argument unless head_dim is divisible by 4.
inline RotaryFrequencies dinov3_frequencies(Index head_dim, double rope_theta = 100.0) {
  if (head_dim % 4 != 0) detail::invalid("head_dim: expected a multiple of 4, got ", head_dim);
  RotaryFrequencies frequencies =
      axial_frequencies({.head_dim = head_dim, .axes = 2, .rope_theta = rope_theta});
  for (double& f : frequencies.inv_freq) f *= 2 * std::numbers::pi;
  return frequencies;
}

}  // namespace v0
}  // namespace posenc
