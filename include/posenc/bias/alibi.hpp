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
// with the position and is rounded with it (3e-5 at 1024 keys), so prefer the distance. No form is causal by
// itself unless it says so: masking is another term.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "posenc/core/angles.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/power.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

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

namespace detail {

/// Scores of (heads, q, k) or (batch, heads, q, k) as the latter.
template <class T, std::size_t Rank>
View<T, 4> as_bhqk(const View<T, Rank>& x) {
  static_assert(Rank == 3 || Rank == 4,
                "posenc: expected scores of shape (heads, q, k) or (batch, heads, q, k)");
  if constexpr (Rank == 4)
    return x;
  else
    return {Unchecked(),
            x.data(),
            {1, x.extent(0), x.extent(1), x.extent(2)},
            {0, x.stride(0), x.stride(1), x.stride(2)}};
}

}  // namespace detail

/// The bias: an immutable value. No (heads, seq, seq) tensor is ever built.
class Alibi {
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
    return bias(slope(head), config_.form, i, j);
  }

  /// scores += bias, in place. scores: (heads, q, k) or (batch, heads, q, k), the heads of this shard; q_at
  /// and k_at are the positions of queries and keys, shared or per batch row. Throws before anything is
  /// written: std::invalid_argument where the shapes don't fit, std::out_of_range for heads beyond the
  /// model's. The gradient with respect to scores is the identity.
  template <writable_tensor Scores>
  void add(Scores&& scores, const Positions& q_at, const Positions& k_at) const {
    add(Eigen::DefaultDevice(), scores, scores, q_at, k_at);
  }
  /// The same on a device.
  template <device D, writable_tensor Scores>
  void add(const D& device, Scores&& scores, const Positions& q_at, const Positions& k_at) const {
    add(device, scores, scores, q_at, k_at);
  }

  /// out = scores + bias. out is scores itself or memory apart from it.
  template <writable_tensor Out, readable_tensor Scores>
  void add(Out&& out, const Scores& scores, const Positions& q_at, const Positions& k_at) const {
    add(Eigen::DefaultDevice(), out, scores, q_at, k_at);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_tensor Scores>
  void add(const D& device, Out&& out, const Scores& scores, const Positions& q_at,
           const Positions& k_at) const {
    using S = scalar_of<Out>;
    const auto checked = detail::out_and_in("out", out, "scores", scores);
    const View<S, 4> to = detail::as_bhqk(checked.out);
    const View<const S, 4> from = detail::as_bhqk(checked.in);
    require_fit("scores", to, q_at, k_at);
    if (to.size() == 0) return;
    for (Index b = 0; b < to.extent(0); ++b)
      add_views<S>(device, detail::entry(to, b), detail::entry(from, b), q_at, k_at, b);
  }

  /// out(i, j) = bias of query i and key j in one head: a tile (q, k) for an attention loop that never holds
  /// more.
  template <writable_tensor Out>
  void tile(Out&& out, Index head, const Positions& q_at, const Positions& k_at) const {
    using S = scalar_of<Out>;
    static_assert(rank_of<Out> == 2, "posenc: expected a tile of shape (q, k)");
    const auto to = detail::output_view("out", out);
    require_heads("head", head, 1);
    require_shared("q_at", q_at, to.extent(0));
    require_shared("k_at", k_at, to.extent(1));
    detail::map_tiles<S>(Eigen::DefaultDevice(), detail::as_bsd(to), false, detail::NothingShared{},
                         [&](const detail::Tile& tile, const compute_t<S>*, compute_t<S>* result) {
                           bias_tile(head, q_at, k_at, 0, tile, result);
                         });
  }

  /// out[j] = bias of query position i and key j in one head: a row for decoding. out: a list (std::vector,
  /// std::span) of k_at.count() values.
  template <detail::contiguous_list Row>
    requires(scalar_type<scalar_of<Row>> && elements_are_writable<Row> && detail::outlives_the_call<Row>)
  void row(Row&& out, Index head, Position i, const Positions& k_at) const {
    const View<scalar_of<Row>, 2> one(out.data(), {1, static_cast<Index>(out.size())});
    tile(one, head, consecutive(i, 1), k_at);
  }

  /// d_slopes[h] += sum of d_scores[b, h, i, j] d(bias) / d(m_h): the gradient of add with respect to the
  /// slopes. d_scores: as scores; d_slopes: one per head of the shard. Keys that AlibiForm::causal hides
  /// contribute nothing. Each head is one sum in double, in logical order: the same bits for any number of
  /// threads.
  template <readable_tensor Ds>
  void add_vjp(std::span<double> d_slopes, const Ds& d_scores, const Positions& q_at,
               const Positions& k_at) const {
    add_vjp(Eigen::DefaultDevice(), d_slopes, d_scores, q_at, k_at);
  }
  /// The same on a device.
  template <device D, readable_tensor Ds>
  void add_vjp(const D& device, std::span<double> d_slopes, const Ds& d_scores, const Positions& q_at,
               const Positions& k_at) const {
    using S = scalar_of<Ds>;
    const View<const S, 4> g = detail::as_bhqk(detail::input_view(d_scores));
    require_fit("d_scores", g, q_at, k_at);
    detail::require_equal("d_slopes", g.extent(1), static_cast<Index>(d_slopes.size()));
    const double elements = static_cast<double>(g.extent(0) * g.extent(2) * g.extent(3));
    detail::parallel_for(device, g.extent(1), {elements * sizeof(S), 8.0, elements},
                         [&](Index begin, Index end) {
                           for (Index h = begin; h < end; ++h) {
                             double sum = 0;
                             for (Index b = 0; b < g.extent(0); ++b)
                               for (Index i = 0; i < g.extent(2); ++i)
                                 for (Index j = 0; j < g.extent(3); ++j) {
                                   const Position q = q_at(b, i), k = k_at(b, j);
                                   if (config_.form == AlibiForm::causal && k > q) continue;
                                   sum += static_cast<double>(detail::widen(g(b, h, i, j))) *
                                          bias(config_.scale, config_.form, q, k);
                                 }
                             d_slopes[static_cast<std::size_t>(h)] += sum;
                           }
                         });
  }

  /// Throws std::out_of_range unless this shard has `count` heads.
  void require_heads(Index count) const { require_heads("scores", 0, count); }

  /// values[c] = bias of query position i and key first + c of batch row b, c in [0, count), in one head of
  /// this shard; unchecked: for kernels that fuse it.
  template <std::floating_point C>
  void fill_row(Index head, Position i, const Positions& k_at, Index b, Index first, Index count,
                C* values) const {
    if (count == 0) return;
    if (!is_run(i, k_at, b, first, count)) {
      const double m = slope(head);
      for (Index c = 0; c < count; ++c)
        values[c] = static_cast<C>(bias(m, config_.form, i, k_at(b, first + c)));
      return;
    }
    const Position j = k_at(b, first);
    fill_run(head, run_start(i, j), count, values);
    if (config_.form == AlibiForm::causal)
      for (Position c = (std::max)(Position{0}, i - j + 1); c < count; ++c)
        values[c] = detail::minus_infinity<C>();
  }

  /// Whether the biases of fill_row are those of fill_run from run_start(i, position of key `first`), but for
  /// the -infinity of the keys that AlibiForm::causal hides: where the keys come in order.
  bool is_run(Position i, const Positions& k_at, Index b, Index first, Index count) const {
    if (count == 0 || !k_at.is_consecutive()) return false;
    constexpr Position most = Position{1} << 51;  // below it, sums of positions and counts are exact doubles
    const Position j = k_at(b, first);
    return i < most && i > -most && j < most && j > -most && Position{count} < most;
  }
  /// Where query position i begins to read, in a run that begins at key position j.
  Position run_start(Position i, Position j) const {
    return config_.form == AlibiForm::key_position ? j : j - i;
  }
  /// values[c] = m x or -m |x|, by the form, for x = start + c.
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

 private:
  // One row of the batch, (heads, q, k). The verb ends here whatever tensor it was called with, so each
  // scalar type compiles the kernel once.
  template <scalar_type S, device D>
  void add_views(const D& device, const View<S, 3>& out, const View<const S, 3>& in, const Positions& q_at,
                 const Positions& k_at, Index b) const {
    detail::map_tiles<S>(device, out, false, detail::NothingShared{},
                         [&](const detail::Tile& tile, const compute_t<S>*, compute_t<S>* sum) {
                           detail::with_tile<compute_t<S>>([&](compute_t<S>* biases) {
                             bias_tile(tile.batch, q_at, k_at, b, tile, biases);
                             detail::add_tile(tile.of(in), biases, sum);
                             // A hidden key is hidden whatever its score holds; NaN - infinity would be NaN.
                             if (config_.form == AlibiForm::causal)
                               for (Index n = 0; n < tile.rows * tile.columns; ++n)
                                 if (detail::is_minus_infinity(biases[n]))
                                   sum[n] = detail::minus_infinity<compute_t<S>>();
                           });
                         });
  }

  // Inline: under -ffast-math clang takes what a function returns for finite.
  [[gnu::always_inline]] static double bias(double slope, AlibiForm form, Position i, Position j) {
    if (form == AlibiForm::key_position) return slope * static_cast<double>(j);
    if (form == AlibiForm::causal && j > i) return detail::minus_infinity<double>();
    // In unsigned arithmetic, where the distance of any two positions fits.
    const auto a = static_cast<std::uint64_t>(i), b = static_cast<std::uint64_t>(j);
    return -(slope * static_cast<double>(i < j ? b - a : a - b));
  }

  /// values(r, c) = bias of query tile.seq + r and key tile.first + c of batch row b, in one head.
  template <std::floating_point C>
  void bias_tile(Index head, const Positions& q_at, const Positions& k_at, Index b, const detail::Tile& tile,
                 C* values) const {
    for (Index r = 0; r < tile.rows; ++r, values += tile.columns)
      fill_row(head, q_at(b, tile.seq + r), k_at, b, tile.first, tile.columns, values);
  }

  double slope(Index head) const {
    return slopes_[static_cast<std::size_t>(config_.head_offset + head)] * config_.scale;
  }

  void require_heads(const char* name, Index first, Index count) const {
    if (first < 0 || count > config_.num_heads - config_.head_offset - first)
      detail::out_of_range(name, ": expected heads in [0, ", config_.num_heads - config_.head_offset,
                           ") of this shard, got ", first + (count - 1));
  }

  static void require_shared(const char* name, const Positions& at, Index count) {
    if (at.rows() != 1) detail::invalid(name, ": expected one row of positions, got ", at.rows());
    detail::require_equal(name, count, at.count());
  }

  template <class T>
  void require_fit(const char* name, const View<T, 4>& scores, const Positions& q_at,
                   const Positions& k_at) const {
    require_heads(name, 0, scores.extent(1));
    detail::require_positions("q_at", q_at, scores.extent(0), scores.extent(2));
    detail::require_positions("k_at", k_at, scores.extent(0), scores.extent(3));
  }

  AlibiConfig config_;
  std::vector<double> slopes_;
};

}  // namespace v0
}  // namespace posenc
