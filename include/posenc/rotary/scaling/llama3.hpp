#pragma once
// The three bands of Llama 3.1 (Grattafiori et al. 2024, "The Llama 3 Herd of Models"): by the wavelength w_i
// = 2 pi / f_i of a pair against the trained length L0,
//
//   w_i < L0 / high_freq_factor     f_i' = f_i
//   w_i > L0 / low_freq_factor      f_i' = f_i / factor
//   between                         f_i' = (1 - s) f_i / factor + s f_i,
//                                   s = (L0 / w_i - low_freq_factor) / (high_freq_factor - low_freq_factor)
//
// Equal factors leave no band between: a step, as in Llama 4 Scout.

#include <cmath>
#include <numbers>
#include <utility>

#include "posenc/core/finite.hpp"
#include "posenc/rotary/frequencies.hpp"

namespace posenc {
inline namespace v0 {

/// The numbers of rope_type "llama3".
struct Llama3Config {
  double factor = 1.0;                         ///< divides the slow frequencies
  double low_freq_factor = 1.0;                ///< pairs of fewer turns within L0 are slow
  double high_freq_factor = 4.0;               ///< pairs of at least as many turns are fast
  Index original_max_position_embeddings = 0;  ///< L0
};

/// rope_type "llama3". Throws std::invalid_argument for a factor that is not positive, bands in the wrong
/// order or a missing original length.
inline RotaryFrequencies llama3_scaled(RotaryFrequencies frequencies, const Llama3Config& scaling) {
  if (!detail::is_positive(scaling.factor))
    detail::invalid("factor: expected a positive finite number, got ", scaling.factor);
  if (!detail::is_positive(scaling.low_freq_factor) ||
      !(scaling.high_freq_factor >= scaling.low_freq_factor) || !detail::is_finite(scaling.high_freq_factor))
    detail::invalid("high_freq_factor: expected finite high_freq_factor >= low_freq_factor > 0, got ",
                    scaling.high_freq_factor, " and ", scaling.low_freq_factor);
  if (scaling.original_max_position_embeddings < 1)
    detail::invalid("original_max_position_embeddings: expected at least 1, got ",
                    scaling.original_max_position_embeddings);
  const double l0 = static_cast<double>(scaling.original_max_position_embeddings);
  for (double& f : frequencies.inv_freq) {
    // L0 / w_i, whichever way the pair turns.
    const double turns = detail::quotient(detail::product(l0, (std::abs)(f)), 2 * std::numbers::pi);
    if (turns >= scaling.high_freq_factor) continue;
    const double s = turns < scaling.low_freq_factor
                         ? 0.0
                         : detail::quotient(turns - scaling.low_freq_factor,
                                            scaling.high_freq_factor - scaling.low_freq_factor);
    f = detail::quotient(detail::product(detail::opaque(1 - s), f), scaling.factor) + detail::product(s, f);
  }
  return frequencies;
}

}  // namespace v0
}  // namespace posenc
