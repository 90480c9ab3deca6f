#pragma once
// ALiBi, attention with linear biases (Press et al. 2022, "Train Short, Test Long", section 3): head h adds a
// penalty that grows with the distance of query i and key j,
//
//   scores[h, i, j] += -m_h |i - j|,    m_h = 2^(-8 h / n) for h = 1 .. n and n heads, a power of two
//
// For other head counts the published rule takes the slopes of the next lower power of two, then every other
// slope of the next higher one.
//
// Convention: i and j are positions, not indices, so a cache (fewer queries than keys) needs nothing special.
// The bias meets the scores after they were divided by sqrt(head_dim); Falcon adds it before, which is scale
// = 1/sqrt(head_dim). BLOOM writes +m_h j instead. That is the same up to m_h i, a constant per row, which
// the softmax does not see, so probabilities and gradients agree while raw numbers differ; but m_h j grows
// with the position and is rounded with it (3e-5 at 1024 keys), so prefer the distance. Only
// AlibiForm::causal hides later keys; for the others, a mask is another term (bias/masks.hpp).

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "posenc/bias/masks.hpp"
#include "posenc/bias/score_bias.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/power.hpp"
#include "posenc/core/tensor.hpp"

namespace posenc {
inline namespace v0 {

/// What is added to the score of query position i and key position j.
enum class AlibiForm {
  symmetric,    ///< -m |i - j|: the paper under a causal mask, and the usual bidirectional form
  causal,       ///< -m (i - j), and -infinity for keys after the query: the bias and the mask in one
  key_position  ///< +m j: BLOOM's form
};

/// The heads of a model and the form of their bias.
struct AlibiConfig {
  Index num_heads = 0;          ///< of the whole model, also where this process holds a shard of them
  double alibi_bias_max = 8.0;  ///< m_h = 2^(-alibi_bias_max h / n) (MPT)
  AlibiForm form = AlibiForm::symmetric;  ///< which of the three
  double scale = 1.0;                     ///< multiplies the bias: 1 / sqrt(head_dim) for Falcon
  Index head_offset = 0;  ///< head 0 of a call is head `head_offset` of the model: tensor-parallel shards
};

/// The slopes m_h of `num_heads` heads by the published rule. Throws std::invalid_argument for no heads.
inline std::vector<double> alibi_slopes(Index num_heads, double alibi_bias_max = 8.0) {
  if (num_heads < 1) detail::invalid("num_heads: expected at least 1, got ", num_heads);
  detail::require_width("num_heads", num_heads);
  if (!detail::is_finite(alibi_bias_max))
    detail::invalid("alibi_bias_max: expected a finite number, got ", alibi_bias_max);
  Index power = 1;
  while (power <= num_heads / 2) power *= 2;
  std::vector<double> slopes;
  const auto slope = [&](Index h, Index n) {
    // n is a power of two, so one rounding is all there is before that of the power.
    return detail::exp2_of(-alibi_bias_max * static_cast<double>(h) / static_cast<double>(n));
  };
  for (Index h = 1; h <= power; ++h) slopes.push_back(slope(h, power));
  for (Index h = 1; power + (h + 1) / 2 <= num_heads; h += 2) slopes.push_back(slope(h, 2 * power));
  return slopes;
}

/// The bias: an immutable value. No (heads, seq, seq) tensor is ever built. Its verbs are those of ScoreBias;
/// add_vjp takes d_slopes, a std::span<double> with one number for each head of the shard.
class Alibi : public ScoreBias<Alibi> {
 public:
  /// With the published slopes. Throws as alibi_slopes does.
  explicit Alibi(Index num_heads) : Alibi(AlibiConfig{.num_heads = num_heads}) {}
  /// The same from a configuration. Throws std::out_of_range for a head_offset outside the model,
  /// std::invalid_argument for a scale that is not finite.
  explicit Alibi(const AlibiConfig& config)
      : Alibi(config, alibi_slopes(config.num_heads, config.alibi_bias_max)) {}

  /// With slopes of your own (learned ones): num_heads of them.
  Alibi(const AlibiConfig& config, std::vector<double> slopes) : config_(config), slopes_(std::move(slopes)) {
    if (config.num_heads < 1) detail::invalid("num_heads: expected at least 1, got ", config.num_heads);
    detail::require_equal("slopes", config.num_heads, static_cast<Index>(slopes_.size()));
    for (std::size_t h = 0; h < slopes_.size(); ++h)
      if (!detail::is_finite(slopes_[h]))
        detail::invalid("slopes[", h, "]: expected a finite number, got ", slopes_[h]);
    if (config.head_offset < 0 || config.head_offset > config.num_heads)
      detail::out_of_range("head_offset: expected a head in [0, ", config.num_heads, "], got ",
                           config.head_offset);
    if (!detail::is_finite(config.scale))
      detail::invalid("scale: expected a finite number, got ", config.scale);
  }

  /// What it was made from.
  const AlibiConfig& config() const { return config_; }
  /// Of the whole model, head 0 first, without the scale.
  const std::vector<double>& slopes() const { return slopes_; }

  /// The bias of query position i and key position j in head `head` of this shard. Throws std::out_of_range
  /// for a head that does not exist.
  double value(Index head, Position i, Position j) const {
    require_heads("head", head, 1);
    return bias(slope(head), i, j);
  }

  /// values[c] = bias of key first + c.
  template <std::floating_point C>
  void fill_row(const BiasRow& row, Index first, Index count, C* values) const {
    if (count == 0) return;
    const Position i = row.query();
    if (!detail::counts_distances(row)) {
      const double m = slope(row.head);
      for (Index c = 0; c < count; ++c) values[c] = static_cast<C>(bias(m, i, row.key(first + c)));
      return;
    }
    const Position j = row.key(first);
    fill_run(row.head, config_.form == AlibiForm::key_position ? j : j - i, count, values);
    if (config_.form == AlibiForm::causal)
      for (Position c = (std::max)(Position{0}, i - j + 1); c < count; ++c)
        values[c] = detail::minus_infinity<C>();
  }
  /// values[c] = bias of key - query = start + c, without what AlibiForm::causal hides.
  template <std::floating_point C>
  void fill_distances(Index head, Position start, Index count, C* values) const {
    fill_run(head, start, count, values);
  }
  /// Keys up to the query where AlibiForm::causal hides the others.
  KeyRange visible(const BiasRow& row, Index keys) const {
    return config_.form == AlibiForm::causal ? causal().visible(row, keys) : KeyRange{0, keys};
  }
  /// Keys that come in order have a bias that the distance tells, but for BLOOM's form.
  RowForm form(const BiasRow& row) const {
    return config_.form != AlibiForm::key_position && detail::counts_distances(row) ? RowForm::distance
                                                                                    : RowForm::values;
  }
  /// Throws std::out_of_range unless this shard has heads first .. first + count.
  void require_heads(const char* name, Index first, Index count) const {
    if (first < 0 || count > config_.num_heads - config_.head_offset - first)
      detail::out_of_range(name, ": expected heads in [0, ", config_.num_heads - config_.head_offset,
                           ") of this shard, got ", first + (count - 1));
  }

  /// Of add_vjp: the slope of the head.
  Index parameters() const { return 1; }
  /// sums[0] += d[c] d(bias of key first + c) / d(slope), of the keys that are seen.
  template <std::floating_point C>
  void accumulate_row(const BiasRow& row, Index first, Index count, const C* d,
                      std::span<double> sums) const {
    const Position i = row.query();
    for (Index c = 0; c < count; ++c) {
      const Position j = row.key(first + c);
      if (config_.form == AlibiForm::causal && j > i) continue;
      sums[0] = detail::multiply_add(static_cast<double>(d[c]), bias(config_.scale, i, j), sums[0]);
    }
  }
  /// d_slopes as (1, heads). Throws std::invalid_argument unless it has a number for each head.
  View<double, 2> gradient_view(std::span<double> d_slopes, Index heads) const {
    detail::require_equal("d_slopes", heads, static_cast<Index>(d_slopes.size()));
    return View<double, 2>(d_slopes.data(), {1, heads});
  }

 private:
  // Inline: under -ffast-math clang takes what a function returns for finite.
  [[gnu::always_inline]] double bias(double slope, Position i, Position j) const {
    if (config_.form == AlibiForm::key_position) return slope * static_cast<double>(j);
    if (config_.form == AlibiForm::causal && j > i) return detail::minus_infinity<double>();
    // In unsigned arithmetic, where the distance of any two positions fits.
    const auto a = static_cast<std::uint64_t>(i), b = static_cast<std::uint64_t>(j);
    return -(slope * static_cast<double>(i < j ? b - a : a - b));
  }

  // values[c] = m x or -m |x|, by the form, for x = start + c.
  template <std::floating_point C>
  void fill_run(Index head, Position start, Index count, C* values) const {
    using detail::Pack;
    constexpr Index step = detail::pack_size<double>;
    const double m = slope(head);
    Pack<double> from_first{};
    for (Index n = 0; n < step; ++n) from_first[n] = static_cast<double>(n);
    const bool by_key = config_.form == AlibiForm::key_position;
    const Pack<double> first = detail::broadcast(static_cast<double>(start));
    for (Index c = 0; c < count; c += step) {
      const Pack<double> x = first + (from_first + static_cast<double>(c));
      detail::store_doubles(values + c, by_key ? m * x : -(m * detail::absolute(x)), count - c);
    }
  }

  double slope(Index head) const {
    return slopes_[static_cast<std::size_t>(config_.head_offset + head)] * config_.scale;
  }

  AlibiConfig config_;
  std::vector<double> slopes_;
};

}  // namespace v0
}  // namespace posenc
