#pragma once
// YaRN (Peng et al. 2023, "YaRN: Efficient Context Window Extension of Large Language Models", section 3):
// fast pairs, which make many turns within the trained length L0, stay; slow ones are interpolated by
// `factor`; a linear ramp over the pair index lies between. With R = rotary_dim, theta the base, and d(r) the
// (real-valued) pair that makes r turns,
//
//   d(r)  = R ln(L0 / (2 pi r)) / (2 ln theta)
//   g_i   = clamp((i - low) / (high - low), 0, 1),    low = d(beta_fast), high = d(beta_slow)
//   f_i'  = (1 - g_i) f_i + g_i f_i / factor
//
// and cos and sin are multiplied by an attention factor, by default 0.1 ln(factor) + 1.
//
// DeepSeek sets two more numbers, mscale and mscale_all_dim: cos and sin then get the ratio of two
// magnitudes, and the softmax scale of the whole head, rotated or not, gets another factor, which is a value
// of its own here: yarn_softmax_scale. Leaving it out is the usual mistake.

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "posenc/core/finite.hpp"
#include "posenc/core/power.hpp"
#include "posenc/rotary/frequencies.hpp"

namespace posenc {
inline namespace v0 {

/// The numbers of rope_type "yarn".
struct YarnConfig {
  double factor = 1.0;                         ///< divides the slow frequencies
  Index original_max_position_embeddings = 0;  ///< L0
  double beta_fast = 32.0;                     ///< pairs of more turns within L0 stay
  double beta_slow = 1.0;                      ///< pairs of fewer turns are divided by factor
  bool truncate = true;                        ///< round low down and high up to whole pairs (gpt-oss: false)
  std::optional<double> attention_factor = std::nullopt;  ///< wins over everything below
  std::optional<double> mscale =
      std::nullopt;  ///< both of these, or the default applies; 0 is as good as none
  std::optional<double> mscale_all_dim = std::nullopt;  ///< and of the softmax scale
};

/// m(s, k) = 0.1 k ln(s) + 1, and 1 for s <= 1: the magnitude that keeps the entropy of attention (YaRN, eq.
/// 22).
inline double yarn_magnitude(double factor, double mscale = 1.0) {
  return factor <= 1 ? 1.0 : detail::product(detail::product(0.1, mscale), detail::log_of(factor)) + 1.0;
}

/// DeepSeek's correction of the softmax scale, to be multiplied with 1/sqrt(head_dim): m(factor,
/// mscale_all_dim)^2, or 1 where mscale_all_dim is not set.
inline double yarn_softmax_scale(const YarnConfig& scaling) {
  if (!scaling.mscale_all_dim || *scaling.mscale_all_dim == 0) return 1.0;
  const double magnitude = yarn_magnitude(scaling.factor, *scaling.mscale_all_dim);
  return magnitude * magnitude;
}

namespace detail {

inline void require_betas(double beta_fast, double beta_slow) {
  if (!is_positive(beta_slow) || !(beta_fast >= beta_slow) || !is_finite(beta_fast))
    invalid("beta_fast: expected finite beta_fast >= beta_slow > 0, got ", beta_fast, " and ", beta_slow);
}

inline void require_valid(const YarnConfig& scaling) {
  if (!(scaling.factor >= 1) || !is_finite(scaling.factor))
    invalid("factor: expected a finite number of at least 1, got ", scaling.factor);
  if (scaling.original_max_position_embeddings < 1)
    invalid("original_max_position_embeddings: expected at least 1, got ",
            scaling.original_max_position_embeddings);
  require_betas(scaling.beta_fast, scaling.beta_slow);
  if (scaling.mscale && !is_finite(*scaling.mscale))
    invalid("mscale: expected a finite number, got ", *scaling.mscale);
  if (scaling.mscale_all_dim && !is_finite(*scaling.mscale_all_dim))
    invalid("mscale_all_dim: expected a finite number, got ", *scaling.mscale_all_dim);
}

/// How far each pair is interpolated: 0 keeps its frequency, 1 divides it by the factor. The ends can cross:
/// `low` beyond `high`, where the trained length is a few positions, or the base a few units.
struct YarnRamp {
  double low, span;

  /// transformers divides by high - low as it is, unless that is 0: crossed ends turn the ramp around.
  static YarnRamp transformers(const YarnConfig& scaling, double rope_theta, Index rotary_dim) {
    const auto length = static_cast<double>(scaling.original_max_position_embeddings);
    double low = pair_of_turns(scaling.beta_fast, length, rope_theta, rotary_dim),
           high = pair_of_turns(scaling.beta_slow, length, rope_theta, rotary_dim);
    if (scaling.truncate) low = std::floor(low), high = std::ceil(high);
    low = (std::max)(low, 0.0), high = (std::min)(high, static_cast<double>(rotary_dim - 1));
    return {low, high == low ? 0.001 : high - low};
  }

  /// ggml divides by at least 0.001: crossed ends are a step at `low`. A length of 0 makes no turns, so the ends
  /// are infinite there: all pairs but the first are slow (all of them fast for a base below 1).
  static YarnRamp ggml(Index length, double beta_fast, double beta_slow, double rope_theta,
                       Index rotary_dim) {
    const double width = static_cast<double>(rotary_dim);
    if (length == 0) return {rope_theta > 1 ? 0.0 : width, 0.001};
    const auto pair = [&](double turns) {
      return pair_of_turns(turns, static_cast<double>(length), rope_theta, rotary_dim);
    };
    const double low = (std::max)(0.0, std::floor(pair(beta_fast))),
                 high = (std::min)(width - 1, std::ceil(pair(beta_slow)));
    return {low, (std::max)(0.001, high - low)};
  }

  double operator()(Index i) const {
    return std::clamp(quotient(static_cast<double>(i) - low, span), 0.0, 1.0);
  }

 private:
  /// d(r).
  static double pair_of_turns(double turns, double length, double rope_theta, Index rotary_dim) {
    const double log_of_ratio = log_of(quotient(length, turns * 2 * std::numbers::pi));
    return quotient(product(static_cast<double>(rotary_dim), log_of_ratio), 2 * log_of(rope_theta));
  }
};

}  // namespace detail

/// rope_type "yarn". Throws std::invalid_argument for a factor below 1, a missing original length, ramp ends
/// in the wrong order, an mscale that is not finite, or a base of 1. Where the ends cross, the ramp
/// runs backwards, as in transformers.
inline RotaryFrequencies yarn_frequencies(const RotaryConfig& config, const YarnConfig& scaling) {
  detail::require_valid(scaling);
  if (config.rope_theta == 1) detail::invalid("rope_theta: expected anything but 1 for YaRN, got 1");
  RotaryFrequencies frequencies = rotary_frequencies(config);
  const auto ramp = detail::YarnRamp::transformers(scaling, config.rope_theta, frequencies.rotary_dim());
  for (std::size_t i = 0; i < frequencies.inv_freq.size(); ++i) {
    const double g = ramp(static_cast<Index>(i)), f = frequencies.inv_freq[i];
    frequencies.inv_freq[i] =
        detail::product(detail::quotient(f, scaling.factor), g) + detail::product(f, detail::opaque(1 - g));
  }
  const double mscale = scaling.mscale.value_or(0), all = scaling.mscale_all_dim.value_or(0);
  frequencies.attention_factor =
      scaling.attention_factor ? *scaling.attention_factor
      : mscale != 0 && all != 0
          ? detail::quotient(yarn_magnitude(scaling.factor, mscale), yarn_magnitude(scaling.factor, all))
          : yarn_magnitude(scaling.factor);
  return frequencies;
}

/// The parameters of ggml_rope_ext, as a GGUF file has them.
struct GgmlYarnConfig {
  double freq_scale = 1.0;   ///< 1 / factor
  Index n_ctx_orig = 0;      ///< L0; 0 is a length like any other: all pairs but the first are slow
  double ext_factor = 0.0;   ///< 0: linear scaling alone; 1: YaRN
  double attn_factor = 1.0;  ///< multiplies cos and sin
  double beta_fast = 32.0;   ///< as in YarnConfig
  double beta_slow = 1.0;    ///< as in YarnConfig
};

/// ggml's form of YaRN: the ramp is weighted by ext_factor, and where that is not zero the magnitude becomes
/// attn_factor (1 - 0.1 ln freq_scale) - on top of whatever attn_factor already holds. The ramp is never
/// narrower than 0.001 pairs, whichever way its ends lie. Throws std::invalid_argument for a freq_scale that
/// is not positive, numbers that are not finite and, where ext_factor is not zero, a negative n_ctx_orig, betas
/// in the wrong order or a base of 1.
inline RotaryFrequencies ggml_yarn_frequencies(const RotaryConfig& config, const GgmlYarnConfig& scaling) {
  if (!detail::is_positive(scaling.freq_scale))
    detail::invalid("freq_scale: expected a positive finite number, got ", scaling.freq_scale);
  if (!detail::is_finite(scaling.ext_factor) || !detail::is_finite(scaling.attn_factor))
    detail::invalid("ext_factor: expected finite ext_factor and attn_factor, got ", scaling.ext_factor,
                    " and ", scaling.attn_factor);
  RotaryFrequencies frequencies = rotary_frequencies(config);
  frequencies.attention_factor = scaling.attn_factor;
  if (scaling.ext_factor == 0) {
    for (double& f : frequencies.inv_freq) f *= scaling.freq_scale;
    return frequencies;
  }
  if (scaling.n_ctx_orig < 0) detail::invalid("n_ctx_orig: expected at least 0, got ", scaling.n_ctx_orig);
  detail::require_betas(scaling.beta_fast, scaling.beta_slow);
  if (config.rope_theta == 1) detail::invalid("rope_theta: expected anything but 1 for YaRN, got 1");
  const auto ramp = detail::YarnRamp::ggml(scaling.n_ctx_orig, scaling.beta_fast, scaling.beta_slow,
                                           config.rope_theta, frequencies.rotary_dim());
  for (std::size_t i = 0; i < frequencies.inv_freq.size(); ++i) {
    const double f = frequencies.inv_freq[i],
                 mix = detail::product(detail::opaque(1 - ramp(static_cast<Index>(i))), scaling.ext_factor);
    frequencies.inv_freq[i] =
        detail::product(detail::product(scaling.freq_scale, f), detail::opaque(1 - mix)) +
        detail::product(f, mix);
  }
  frequencies.attention_factor *=
      detail::opaque(1 + detail::product(0.1, detail::log_of(detail::quotient(1, scaling.freq_scale))));
  return frequencies;
}

}  // namespace v0
}  // namespace posenc
