#pragma once
// Relative biases that are learned: a rule says which row of a table a query and a key read, and the table
// says what they get.
//
//   bias(h, i, j) = scale table[rule(i, j), h]               the layer's table (rows, heads): T5, Swin, BEiT
//   bias(h, i, j) = scale table[b, h, i, rule(i, j)]         the query's: q R^T, computed by the caller: Shaw
//   bias(h, i, j) = scale table[b, h, j, rule(i, j)]         the key's: k R^T: the p2c term of DeBERTa
//
// The last two have a table (batch, heads, seq, rows), so no (seq, seq, dim) tensor is ever built. The rules
// are in bias/rules/; a rule of your own is a value with rows() and operator()(const BiasRow&, Index j), or,
// where only the distance counts, of_distance(key - query).
//
// Convention: a table stored as (heads, rows), as T5X has it, is given as its transposed view. Scores that
// are scaled after the bias was added (Shaw: (q k + q r) / sqrt(head_dim)) take the bias with `scale` = 1 /
// sqrt(head_dim).

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "posenc/bias/score_bias.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/table.hpp"
#include "posenc/core/tensor.hpp"

namespace posenc {
inline namespace v0 {

/// Whose rows a table holds.
enum class TableOf {
  layer,  ///< (rows, heads): the same for all queries and keys
  query,  ///< (batch, heads, queries, rows)
  key     ///< (batch, heads, keys, rows)
};

/// A rule that knows the distance alone.
template <class R>
concept distance_rule = requires(const R& rule, Position distance) {
  { rule.rows() } -> std::convertible_to<Index>;
  { rule.of_distance(distance) } -> std::convertible_to<Index>;
};
/// A rule: which row of the table query row.i and key j read, in [0, rows()).
template <class R>
concept relative_rule = distance_rule<R> || requires(const R& rule, const BiasRow& row, Index j) {
  { rule.rows() } -> std::convertible_to<Index>;
  { rule(row, j) } -> std::convertible_to<Index>;
};

/// What else there is to say of a table.
struct RelativeBiasConfig {
  double scale = 1.0;  ///< multiplies the bias
  Index head_offset =
      0;  ///< of a layer's table: head 0 of a call is its column head_offset: tensor-parallel shards
};

/// The bias. Holds the table as TokenEmbedding does: a copy of a tensor or matrix, the contents of a moved
/// one, or, for a map or view, the caller's memory, which must then outlive the bias.
template <relative_rule Rule, scalar_type Scalar, std::size_t Rank>
class RelativeBias : public ScoreBias<RelativeBias<Rule, Scalar, Rank>> {
 public:
  static_assert(Rank == 2 || Rank == 4,
                "posenc: expected a table of (rows, heads) or (batch, heads, seq, rows)");

  /// The layer's table, (rows, heads). Throws std::invalid_argument where it doesn't have the rule's rows or
  /// the scale is not finite, std::out_of_range for a head_offset outside the table.
  template <readable_tensor T>
    requires(rank_of<T> == 2 && std::same_as<scalar_of<T>, Scalar>)
  RelativeBias(Rule rule, T&& table, const RelativeBiasConfig& config = {})
      : rule_(std::move(rule)), table_(std::forward<T>(table)), config_(config) {
    require_table(0);
    const Index heads = table_.view().extent(1);
    if (config.head_offset < 0 || config.head_offset > heads)
      detail::out_of_range("head_offset: expected a head in [0, ", heads, "], got ", config.head_offset);
  }

  /// The table of the queries or of the keys, (batch, heads, seq, rows), for the scores of this call. Throws
  /// std::invalid_argument where it doesn't have the rule's rows, or the table is said to be the layer's.
  template <readable_tensor T>
    requires(rank_of<T> == 4 && std::same_as<scalar_of<T>, Scalar>)
  RelativeBias(Rule rule, T&& table, TableOf whose, const RelativeBiasConfig& config = {})
      : rule_(std::move(rule)), table_(std::forward<T>(table)), whose_(whose), config_(config) {
    if (whose == TableOf::layer)
      detail::invalid(
          "whose: expected the query or the key of a table (batch, heads, seq, rows), got the layer");
    if (config.head_offset != 0)
      detail::invalid("head_offset: expected 0 for a table with the heads of the call, got ",
                      config.head_offset);
    require_table(3);
  }

  /// The rule.
  const Rule& rule() const { return rule_; }
  /// What it was made with.
  const RelativeBiasConfig& config() const { return config_; }

  /// values[c] = bias of key first + c.
  template <std::floating_point C>
  void fill_row(const BiasRow& row, Index first, Index count, C* values) const {
    const C scale = static_cast<C>(config_.scale);
    for (Index c = 0; c < count; ++c) {
      const Index j = first + c, r = row_of(row, j);
      const Scalar* element = nullptr;
      if constexpr (Rank == 2)
        element = &table_.view()(r, config_.head_offset + row.head);
      else
        element = &table_.view()(row.b, row.head, whose_ == TableOf::query ? row.i : j, r);
      values[c] = scale * static_cast<C>(detail::widen(*element));
    }
  }
  /// Where the distance alone counts: the same of distances.
  template <std::floating_point C>
    requires(Rank == 2 && distance_rule<Rule>)
  void fill_distances(Index head, Position start, Index count, C* values) const {
    const C scale = static_cast<C>(config_.scale);
    for (Index c = 0; c < count; ++c)
      values[c] = scale * static_cast<C>(detail::widen(
                              table_.view()(rule_.of_distance(start + c), config_.head_offset + head)));
  }
  /// Whether it does.
  RowForm form(const BiasRow& row) const {
    return Rank == 2 && distance_rule<Rule> && detail::counts_distances(row) ? RowForm::distance
                                                                             : RowForm::values;
  }

  /// Throws std::out_of_range unless the table has these heads.
  void require_heads(const char* name, Index first, Index count) const {
    const Index heads = table_.view().extent(1) - config_.head_offset;
    if (first < 0 || count > heads - first)
      detail::out_of_range(name, ": expected heads in [0, ", heads, ") of the table, got ",
                           first + (count - 1));
  }
  /// Throws std::invalid_argument unless a table of queries or keys has those of the call.
  void require_shape(Index batch, Index queries, Index keys) const {
    if constexpr (Rank == 4) {
      detail::require_equal("table: batch", batch, table_.view().extent(0));
      detail::require_equal(whose_ == TableOf::query ? "table: queries" : "table: keys",
                            whose_ == TableOf::query ? queries : keys, table_.view().extent(2));
    }
  }
  /// As the rule does; one that knows the distance wants one axis of integers.
  void require_positions(const Positions& q_at, const Positions& k_at) const {
    if constexpr (requires { rule_.require_positions(q_at, k_at); }) {
      rule_.require_positions(q_at, k_at);
    } else {
      detail::require_axes("q_at", q_at, 1);
      detail::require_axes("k_at", k_at, 1);
    }
  }

  /// Of add_vjp, whose gradient has the shape of the layer's table, any scalar type; heads that this process
  /// doesn't have stay as they are.
  Index parameters() const { return rule_.rows(); }
  /// sums[r] += d[c] d(bias of key first + c) / d(row r of the head).
  template <std::floating_point C>
  void accumulate_row(const BiasRow& row, Index first, Index count, const C* d,
                      std::span<double> sums) const {
    for (Index c = 0; c < count; ++c) {
      double& sum = sums[static_cast<std::size_t>(row_of(row, first + c))];
      sum = detail::multiply_add(config_.scale, static_cast<double>(d[c]), sum);
    }
  }
  /// The columns of d_table that belong to the heads of the call. Throws std::invalid_argument unless it has the
  /// shape of the table.
  template <writable_tensor Dt>
    requires(Rank == 2 && rank_of<Dt> == 2)
  auto gradient_view(Dt&& d_table, Index heads) const {
    const auto target = detail::output_view("d_table", d_table);
    detail::require_same_shape("d_table", table_.view(), target);
    return target.slice(1, config_.head_offset, heads);
  }

  // Constraints behind the declarator: before it, they don't keep these from hiding those.
  using ScoreBias<RelativeBias>::add_vjp;
  /// d_table += the gradient with respect to a table of queries or keys, of its shape; the caller goes on
  /// from there to q and R. Each element is one sum in double, rounded once.
  template <writable_tensor Dt, readable_tensor Ds>
  void add_vjp(Dt&& d_table, const Ds& d_scores, const Positions& q_at, const Positions& k_at) const
    requires(Rank == 4 && rank_of<Dt> == 4)
  {
    add_vjp(Eigen::DefaultDevice(), d_table, d_scores, q_at, k_at);
  }
  /// The same on a device.
  template <device D, writable_tensor Dt, readable_tensor Ds>
  void add_vjp(const D& device, Dt&& d_table, const Ds& d_scores, const Positions& q_at,
               const Positions& k_at) const
    requires(Rank == 4 && rank_of<Dt> == 4)
  {
    const auto g = detail::as_bhqk(detail::input_view(d_scores));
    const auto target = detail::output_view("d_table", d_table);
    detail::require_same_shape("d_table", table_.view(), target);
    detail::require_bias("d_scores", *this, g, q_at, k_at);
    detail::require_apart("d_table", target, "d_scores", g);
    if (g.size() == 0) return;
    const bool of_query = whose_ == TableOf::query;
    const Index heads = g.extent(1), own = g.extent(of_query ? 2 : 3), other = g.extent(of_query ? 3 : 2);
    const double work = static_cast<double>(other);
    // A row of the table belongs to one query, or to one key, so threads meet in none.
    detail::parallel_for(
        device, g.extent(0) * heads * own, {work * sizeof(double), work, work}, [&](Index begin, Index end) {
          std::vector<double> sums(static_cast<std::size_t>(rule_.rows()));
          for (Index n = begin; n < end; ++n) {
            const Index b = n / (heads * own), h = n / own % heads, at = n % own;
            std::fill(sums.begin(), sums.end(), 0.0);
            for (Index m = 0; m < other; ++m) {
              const Index i = of_query ? at : m, j = of_query ? m : at;
              double& sum = sums[static_cast<std::size_t>(row_of({q_at, k_at, b, h, i}, j))];
              const double d = static_cast<double>(detail::widen(g(b, h, i, j)));
              sum = detail::multiply_add(config_.scale, d, sum);
            }
            for (Index r = 0; r < rule_.rows(); ++r) {
              auto& element = target(b, h, at, r);
              using G = scalar_of<Dt>;
              element = detail::narrow<G>(static_cast<compute_t<G>>(
                  static_cast<double>(detail::widen(element)) + sums[static_cast<std::size_t>(r)]));
            }
          }
        });
  }

 private:
  Index row_of(const BiasRow& row, Index j) const {
    if constexpr (distance_rule<Rule>)
      return rule_.of_distance(row.key(j) - row.query());
    else
      return rule_(row, j);
  }
  void require_table(std::size_t axis) const {
    if (table_.view().extent(axis) != rule_.rows())
      detail::invalid("table: expected the ", rule_.rows(), " rows of the rule on axis ", axis, ", got ",
                      table_.view().extent(axis));
    if (!detail::is_finite(config_.scale))
      detail::invalid("scale: expected a finite number, got ", config_.scale);
  }

  Rule rule_;
  detail::Held<Scalar, Rank> table_;
  TableOf whose_ = TableOf::layer;
  RelativeBiasConfig config_;
};

/// Scalar type and rank are those of the table.
template <class Rule, readable_tensor T>
RelativeBias(Rule, T&&) -> RelativeBias<Rule, scalar_of<T>, rank_of<T>>;
/// Scalar type and rank are those of the table.
template <class Rule, readable_tensor T>
RelativeBias(Rule, T&&, const RelativeBiasConfig&) -> RelativeBias<Rule, scalar_of<T>, rank_of<T>>;
/// Scalar type and rank are those of the table.
template <class Rule, readable_tensor T>
RelativeBias(Rule, T&&, TableOf) -> RelativeBias<Rule, scalar_of<T>, rank_of<T>>;
/// Scalar type and rank are those of the table.
template <class Rule, readable_tensor T>
RelativeBias(Rule, T&&, TableOf, const RelativeBiasConfig&) -> RelativeBias<Rule, scalar_of<T>, rank_of<T>>;

}  // namespace v0
}  // namespace posenc
