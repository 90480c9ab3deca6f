#pragma once
// NTK-aware scaling (bloc97 2023; Peng & Quesnelle, "Dynamic NTK"): the base grows, so that low frequencies
// are interpolated and high ones hardly change. With R = rotary_dim and a ratio s,
//
//   theta' = theta s^(R / (R - 2)),   f_i = theta'^(-2i/R)
//
//   dynamic   s = factor L / L0 - (factor - 1) for L > L0 tokens, else 1; L0 = max_position_embeddings
//   alpha     s = alpha, whatever the length (Hunyuan's config says "dynamic" with an alpha)
//
// The result depends on the length given and on nothing else: no history, and the unscaled frequencies at or
// below L0. Keys that were rotated for another length keep their rotation; see rotary/key_rebase.hpp.

#include "posenc/core/finite.hpp"
#include "posenc/core/power.hpp"
#include "posenc/rotary/frequencies.hpp"

namespace posenc {
inline namespace v0 {

/// The fixed form: theta alpha^(R / (R - 2)). Throws std::invalid_argument unless alpha is positive and
/// rotary_dim > 2.
inline RotaryFrequencies ntk_alpha_frequencies(RotaryConfig config, double alpha) {
  if (!detail::is_positive(alpha)) detail::invalid("alpha: expected a positive finite number, got ", alpha);
  const double width = static_cast<double>(rotary_frequencies(config).rotary_dim());
  if (width <= 2) detail::invalid("rotary_dim: expected more than 2 for NTK scaling, got ", width);
  config.rope_theta *= detail::power_of(alpha, width / (width - 2));
  return rotary_frequencies(config);
}

/// The numbers of rope_type "dynamic".
struct DynamicNtkConfig {
  double factor = 1.0;                ///< how fast the base grows with the length
  Index max_position_embeddings = 0;  ///< L0: lengths up to it are not scaled
};

/// rope_type "dynamic" for a sequence of seq_len tokens. Throws std::invalid_argument unless factor is at
/// least 1 and the lengths make sense.
inline RotaryFrequencies dynamic_ntk_frequencies(const RotaryConfig& config, const DynamicNtkConfig& scaling,
                                                 Index seq_len) {
  if (!(scaling.factor >= 1) || !detail::is_finite(scaling.factor))
    detail::invalid("factor: expected a finite number of at least 1, got ", scaling.factor);
  if (scaling.max_position_embeddings < 1)
    detail::invalid("max_position_embeddings: expected at least 1, got ", scaling.max_position_embeddings);
  if (seq_len < 0) detail::invalid("seq_len: expected at least 0, got ", seq_len);
  if (seq_len <= scaling.max_position_embeddings) return rotary_frequencies(config);
  const double length = static_cast<double>(seq_len),
               trained = static_cast<double>(scaling.max_position_embeddings);
  return ntk_alpha_frequencies(config, detail::quotient(detail::product(scaling.factor, length), trained) -
                                           detail::opaque(scaling.factor - 1));
}

}  // namespace v0
}  // namespace posenc
