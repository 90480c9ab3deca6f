#pragma once
// Proportional RoPE (p-RoPE; Barbero et al. 2024, "Round and Round We Go! What makes Rotary Positional
// Encodings useful?", section 6; Gemma 4's full-attention layers): the lowest frequencies are set to zero, so
// those pairs carry content alone. The exponent is over head_dim, and pairs span the whole head: this is not
// partial rotary.
//
//   f_i = theta^(-2i / head_dim) / factor   for i < floor(partial_rotary_factor head_dim / 2),   else 0

#include <cmath>

#include "posenc/core/finite.hpp"
#include "posenc/rotary/frequencies.hpp"

namespace posenc {
inline namespace v0 {

/// The numbers of rope_type "proportional".
struct ProportionalConfig {
  double partial_rotary_factor = 1.0;  ///< the part of the pairs that turn
  double factor = 1.0;                 ///< divides the frequencies that are left
};

/// rope_type "proportional": head_dim / 2 frequencies, a tail of them zero. Throws std::invalid_argument
/// where the config states a rotated width as well, or a factor makes no sense.
inline RotaryFrequencies proportional_frequencies(const RotaryConfig& config,
                                                  const ProportionalConfig& scaling) {
  if (config.rotary_dim || config.partial_rotary_factor != 1.0)
    detail::invalid(
        "partial_rotary_factor: expected it in ProportionalConfig alone, got a rotated width in "
        "RotaryConfig");
  if (!detail::is_within(scaling.partial_rotary_factor, 0.0, 1.0))
    detail::invalid("partial_rotary_factor: expected a number in [0, 1], got ",
                    scaling.partial_rotary_factor);
  if (!detail::is_positive(scaling.factor))
    detail::invalid("factor: expected a positive finite number, got ", scaling.factor);
  RotaryFrequencies frequencies = rotary_frequencies(config);
  const double turning = std::floor(scaling.partial_rotary_factor * static_cast<double>(config.head_dim) / 2);
  for (std::size_t i = 0; i < frequencies.inv_freq.size(); ++i)
    frequencies.inv_freq[i] =
        static_cast<double>(i) < turning ? detail::quotient(frequencies.inv_freq[i], scaling.factor) : 0.0;
  return frequencies;
}

}  // namespace v0
}  // namespace posenc
