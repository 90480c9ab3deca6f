#pragma once
// Frequencies that a checkpoint brings along. Three projects spell them in three ways, and one taken for
// another still looks like frequencies: so each has a name.

#include <span>
#include <utility>

#include "posenc/core/finite.hpp"
#include "posenc/rotary/frequencies.hpp"

namespace posenc {
inline namespace v0 {

/// Hugging Face's inv_freq: radians per position, f_i = inv_freq_i.
inline RotaryFrequencies frequencies_from_inv_freq(Index head_dim, std::span<const double> inv_freq,
                                                   double attention_factor = 1.0) {
  return {head_dim, {inv_freq.begin(), inv_freq.end()}, attention_factor};
}

/// MLX's freqs: positions per radian, f_i = 1 / freqs_i. An infinite period is a pair that does not turn.
/// Throws std::invalid_argument for a period of zero or NaN.
inline RotaryFrequencies frequencies_from_periods(Index head_dim, std::span<const double> periods) {
  RotaryFrequencies frequencies{head_dim, {}, 1.0};
  for (std::size_t i = 0; i < periods.size(); ++i) {
    if (periods[i] == 0 || detail::is_nan(periods[i]))
      detail::invalid("periods[", i, "]: expected anything but zero, got ", periods[i]);
    frequencies.inv_freq.push_back(detail::quotient(1, periods[i]));
  }
  return frequencies;
}

/// ggml's freq_factors (the tensor rope_freqs of a GGUF file): divisors of the config's own frequencies,
/// f_i' = f_i / freq_factors_i. Throws std::invalid_argument unless there is one for each pair, none zero.
inline RotaryFrequencies divided_frequencies(RotaryFrequencies frequencies,
                                             std::span<const double> freq_factors) {
  if (freq_factors.size() != frequencies.inv_freq.size())
    detail::invalid("freq_factors: expected ", frequencies.inv_freq.size(), " divisors, one per pair, got ",
                    freq_factors.size());
  for (std::size_t i = 0; i < freq_factors.size(); ++i) {
    if (freq_factors[i] == 0 || detail::is_nan(freq_factors[i]))
      detail::invalid("freq_factors[", i, "]: expected anything but zero, got ", freq_factors[i]);
    frequencies.inv_freq[i] = detail::quotient(frequencies.inv_freq[i], freq_factors[i]);
  }
  return frequencies;
}

}  // namespace v0
}  // namespace posenc
