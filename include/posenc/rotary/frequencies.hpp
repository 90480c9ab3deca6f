#pragma once
// Rotary frequencies: how fast each pair of a head turns. A value, made once per model from its config and,
// where the model scales them, passed through one pure function per scaling scheme; the rotation itself knows
// none of that.
//
// RoFormer (Su et al. 2021), section 3.2.2, for a rotated width of d = rotary_dim:
//
//   theta_i = rope_theta^(-2i/d),   i = 0 .. d/2 - 1

#include <optional>
#include <vector>

#include "posenc/core/checked.hpp"
#include "posenc/core/error.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/power.hpp"
#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {

/// The words of Hugging Face's config.json.
struct RotaryConfig {
  Index head_dim = 0;           ///< dimensions of a head
  double rope_theta = 10000.0;  ///< the base
  double partial_rotary_factor =
      1.0;  ///< the part of head_dim that is rotated: int(head_dim * factor), as HF truncates
  std::optional<Index> rotary_dim =
      std::nullopt;  ///< the same as a number of dimensions (GPT-J), in place of the factor
};

/// What a Rotary is made of: the frequencies in radians per position, pair 0 first.
struct RotaryFrequencies {
  Index head_dim = 0;                 ///< dimensions of a head, those that do not turn included
  std::vector<double> inv_freq = {};  ///< rotary_dim / 2 of them
  double attention_factor = 1.0;      ///< multiplies cos and sin (YaRN, LongRoPE); scores grow by its square
  std::vector<int> axis =
      {};  ///< which coordinate of a token drives each pair; empty: there is one (rotary/axes.hpp)

  /// How many dimensions turn: two for each frequency.
  Index rotary_dim() const { return 2 * static_cast<Index>(inv_freq.size()); }

  /// How many coordinates a token must have.
  Index axes() const {
    int most = 0;
    for (const int a : axis) most = a > most ? a : most;
    return Index{most} + 1;
  }
};

namespace detail {

/// How many dimensions of a head a config turns, unchecked but for the factor, which is in (0, 1].
inline Index rotated_width(const RotaryConfig& config) {
  if (config.rotary_dim) return *config.rotary_dim;
  if (config.partial_rotary_factor == 1.0) return config.head_dim;
  return static_cast<Index>(static_cast<double>(config.head_dim) * config.partial_rotary_factor);
}

}  // namespace detail

/// The unscaled frequencies of a config. Throws std::invalid_argument for a head_dim beyond 2^24, a width that
/// is not even, not positive or beyond head_dim, a base that is not positive, or two statements of the width.
inline RotaryFrequencies rotary_frequencies(const RotaryConfig& config) {
  if (config.head_dim <= 0) detail::invalid("head_dim: expected at least 2, got ", config.head_dim);
  detail::require_width("head_dim", config.head_dim);
  if (!detail::is_positive(config.rope_theta))
    detail::invalid("rope_theta: expected a positive finite number, got ", config.rope_theta);
  if (!detail::is_positive(config.partial_rotary_factor) || config.partial_rotary_factor > 1)
    detail::invalid("partial_rotary_factor: expected a number in (0, 1], got ", config.partial_rotary_factor);
  if (config.rotary_dim && config.partial_rotary_factor != 1.0)
    detail::invalid("rotary_dim: expected either rotary_dim or partial_rotary_factor, got ",
                    *config.rotary_dim, " and ", config.partial_rotary_factor);
  const Index width = detail::rotated_width(config);
  if (!config.rotary_dim && (width < 2 || width % 2 != 0))
    detail::invalid(config.partial_rotary_factor == 1.0 ? "head_dim" : "partial_rotary_factor",
                    ": expected an even number of dimensions to turn of head_dim = ", config.head_dim,
                    ", got ", width);
  if (width < 2 || width % 2 != 0 || width > config.head_dim)
    detail::invalid("rotary_dim: expected an even number in [2, head_dim = ", config.head_dim, "], got ",
                    width);
  RotaryFrequencies frequencies;
  frequencies.head_dim = config.head_dim;
  frequencies.inv_freq = detail::falling_powers(config.rope_theta, 2, width, width / 2);
  return frequencies;
}

/// The same frequencies turning the other way, x cos + [x2, -x1] sin: nanochat.
inline RotaryFrequencies negated(RotaryFrequencies frequencies) {
  for (double& f : frequencies.inv_freq) f = -f;
  return frequencies;
}

}  // namespace v0
}  // namespace posenc
