#pragma once
// Linear scaling, or position interpolation (Chen et al. 2023, "Extending Context Window of Large Language
// Models via Positional Interpolation", eq. 4): positions are compressed by `factor`, which is the same as
// slower frequencies.
//
//   f_i' = f_i / factor

#include <utility>

#include "posenc/core/finite.hpp"
#include "posenc/rotary/frequencies.hpp"

namespace posenc {
inline namespace v0 {

/// rope_type "linear". Throws std::invalid_argument unless factor is positive and finite.
inline RotaryFrequencies linear_scaled(RotaryFrequencies frequencies, double factor) {
  if (!detail::is_positive(factor))
    detail::invalid("factor: expected a positive finite number, got ", factor);
  for (double& f : frequencies.inv_freq) f = detail::quotient(f, factor);
  return frequencies;
}

}  // namespace v0
}  // namespace posenc
