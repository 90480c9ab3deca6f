#pragma once
// LongRoPE (Ding et al. 2024, "LongRoPE: Extending LLM Context Window Beyond 2 Million Tokens"): each pair
// has a divisor of its own, found by search, in two lists: one for sequences up to the trained length L0, one
// for longer ones.
//
//   f_i' = f_i / short_factor_i   or   f_i / long_factor_i
//
// cos and sin are multiplied by sqrt(1 + ln(factor) / ln(L0)), the same for both lists.
//
// Which list applies belongs to the sequence: choose once, when its final length is known or when it starts,
// and keep it (keys of one choice don't fit queries of the other). rotary/per_row.hpp rotates a batch that
// mixes both; rotary/key_rebase.hpp changes the choice of keys that are cached already.

#include <cmath>
#include <optional>
#include <vector>

#include "posenc/core/finite.hpp"
#include "posenc/core/power.hpp"
#include "posenc/rotary/frequencies.hpp"

namespace posenc {
inline namespace v0 {

/// The numbers of rope_type "longrope".
struct LongRopeConfig {
  std::vector<double> short_factor = {};       ///< rotary_dim / 2 divisors
  std::vector<double> long_factor = {};        ///< as many, for sequences longer than L0
  Index original_max_position_embeddings = 0;  ///< L0
  double factor = 1.0;                         ///< max_position_embeddings / L0 where the config has none
  std::optional<double> attention_factor = std::nullopt;  ///< wins over the formula
  std::optional<double> short_mscale = std::nullopt;  ///< PhiMoE: the multiplier of cos and sin, one per list
  std::optional<double> long_mscale = std::nullopt;   ///< of the long list
};

/// One of the two lists.
enum class LongRopeChoice { short_factor, long_factor };

/// The list for a sequence of seq_len tokens: long beyond L0.
inline LongRopeChoice longrope_choice(const LongRopeConfig& scaling, Index seq_len) {
  return seq_len > scaling.original_max_position_embeddings ? LongRopeChoice::long_factor
                                                            : LongRopeChoice::short_factor;
}

/// rope_type "longrope" (also "su"). Throws std::invalid_argument for lists of the wrong length, divisors
/// that are not positive, or a missing original length.
inline RotaryFrequencies longrope_frequencies(const RotaryConfig& config, const LongRopeConfig& scaling,
                                              LongRopeChoice choice) {
  RotaryFrequencies frequencies = rotary_frequencies(config);
  const Index l0 = scaling.original_max_position_embeddings;
  if (l0 < 2) detail::invalid("original_max_position_embeddings: expected at least 2, got ", l0);
  if (!detail::is_positive(scaling.factor))
    detail::invalid("factor: expected a positive finite number, got ", scaling.factor);
  const auto require_divisors = [&](const char* name, const std::vector<double>& list) {
    if (list.size() != frequencies.inv_freq.size())
      detail::invalid(name, ": expected ", frequencies.inv_freq.size(), " divisors, one per pair, got ",
                      list.size());
    for (std::size_t i = 0; i < list.size(); ++i)
      if (!detail::is_positive(list[i]))
        detail::invalid(name, "[", i, "]: expected a positive finite number, got ", list[i]);
  };
  require_divisors("short_factor", scaling.short_factor);
  require_divisors("long_factor", scaling.long_factor);
  const bool is_long = choice == LongRopeChoice::long_factor;
  const std::vector<double>& divisors = is_long ? scaling.long_factor : scaling.short_factor;
  for (std::size_t i = 0; i < divisors.size(); ++i) {
    double& f = frequencies.inv_freq[i];
    f = detail::quotient(f, divisors[i]);
  }
  const std::optional<double>& mscale = is_long ? scaling.long_mscale : scaling.short_mscale;
  frequencies.attention_factor =
      scaling.attention_factor ? *scaling.attention_factor
      : mscale                 ? *mscale
      : scaling.factor <= 1    ? 1.0
                               : std::sqrt(1 + detail::quotient(detail::log_of(scaling.factor),
                                                                detail::log_of(static_cast<double>(l0))));
  return frequencies;
}

}  // namespace v0
}  // namespace posenc
