#pragma once
// Learned absolute positions: row p of a trained table is added to the token at position p (Gehring et al.
// 2017; BERT, GPT-2).
//
// Models differ in which row a token gets. The rule is a value, made before the call:
//
//   GPT-2, BERT     consecutive(past, n)
//   BART            consecutive(past, n) with {.offset = 2}
//   OPT             positions_from_mask(mask, -1) with {.offset = 2}
//   RoBERTa         roberta_positions(ids, padding_idx)

#include <algorithm>
#include <cstdint>
#include <optional>
#include <utility>

#include "posenc/core/mistakes.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/table.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

namespace posenc {
inline namespace v0 {

/// Which row of the table a position looks up.
struct LearnedPositionsConfig {
  Position offset = 0;  ///< position p looks up row p + offset: 2 in BART and OPT
  std::optional<Position> padding_idx = std::nullopt;  ///< the row that gets no gradient, offset counted
                                                       ///< in: position padding_idx - offset
};

/// The encoder. Holds a (max_len, d_model) table: a copy of a tensor or matrix, the contents of a moved one,
/// or, for a TensorMap, Map, Ref, Block, Transpose or View, the caller's memory itself, which must then
/// outlive the encoder.
template <scalar_type Scalar>
class LearnedPositions {
 public:
  /// table: (max_len, d_model). Throws std::out_of_range for an offset beyond 2^60 and for a padding_idx
  /// outside the table.
  template <readable_tensor T>
    requires(rank_of<T> == 2 && std::same_as<scalar_of<T>, Scalar>)
  explicit LearnedPositions(T&& table, const LearnedPositionsConfig& config = {})
      : table_(std::forward<T>(table)), config_(config) {
    if (config.offset < -largest_position || config.offset > largest_position)
      detail::out_of_range("offset: expected a position within 2^60 of zero, got ", config.offset);
    if (config.padding_idx && (*config.padding_idx < 0 || *config.padding_idx >= table_.rows()))
      detail::out_of_range("padding_idx: expected a row in [0, ", table_.rows(), "), got ",
                           *config.padding_idx);
  }

  /// The rows of the table.
  Index max_len() const { return table_.rows(); }
  /// The width of a row.
  Index d_model() const { return table_.width(); }
  /// What it was made with.
  const LearnedPositionsConfig& config() const { return config_; }

  /// x += table[at], in place. x: (seq, d_model) or (batch, seq, d_model); `at` has seq positions, shared or
  /// per row. Throws std::invalid_argument where the shapes don't fit, std::out_of_range for the first
  /// position beyond the table. The gradient with respect to x is the identity.
  template <writable_tensor X>
  void add(X&& x, const Positions& at) const {
    add(Eigen::DefaultDevice(), x, x, at);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void add(const D& device, X&& x, const Positions& at) const {
    add(device, x, x, at);
  }

  /// out = x + table[at]. out is x itself or memory apart from it.
  template <writable_tensor Out, readable_beside<Out> X>
  void add(Out&& out, const X& x, const Positions& at) const {
    add(Eigen::DefaultDevice(), out, x, at);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_beside<Out> X>
  void add(const D& device, Out&& out, const X& x, const Positions& at) const {
    const auto checked = detail::out_and_in("out", out, "x", x);
    add_views<scalar_of<Out>>(device, detail::as_bsd(checked.out), detail::as_bsd(checked.in), at);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InOrOutOfPlace, Args...> add(Args&&...) const;

  /// out = table[at]. out: (seq, d_model) or (batch, seq, d_model).
  template <writable_tensor Out>
  void embed(Out&& out, const Positions& at) const {
    embed(Eigen::DefaultDevice(), out, at);
  }
  /// The same on a device.
  template <device D, writable_tensor Out>
  void embed(const D& device, Out&& out, const Positions& at) const {
    using S = scalar_of<Out>;
    embed_views<S>(device, detail::as_bsd(detail::output_view("out", out)), at);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> embed(Args&&...) const;

  /// d_table[at] += dy, the gradient of both verbs with respect to the table. d_table: (max_len, d_model),
  /// any scalar type; dy: as x. Each row is one sum in call order, rounded once: the same bits for any number
  /// of threads.
  template <writable_tensor Dt, readable_tensor Dy>
  void add_vjp(Dt&& d_table, const Positions& at, const Dy& dy) const {
    add_vjp(Eigen::DefaultDevice(), d_table, at, dy);
  }
  /// The same on a device.
  template <device D, writable_tensor Dt, readable_tensor Dy>
  void add_vjp(const D& device, Dt&& d_table, const Positions& at, const Dy& dy) const {
    const auto target = require_table("d_table", d_table);
    const View<const scalar_of<Dy>, 3> g = detail::as_bsd(detail::input_view(dy));
    require_fit(g, at, "dy");
    detail::require_apart("d_table", target, "dy", g);
    if (g.size() == 0) return;
    const detail::Lookups lookups(g.extent(0) * g.extent(1), [&](Index n) {
      const Position row = at(n / g.extent(1), n % g.extent(1)) + config_.offset;
      return row == config_.padding_idx ? Position{-1} : row;
    });
    detail::scatter_add<scalar_of<Dy>>(device, target, lookups, g, compute_t<scalar_of<Dy>>{1});
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::out, detail::Role::anything, detail::Role::in>, Args...>
  add_vjp(Args&&...) const;

  /// row[c] = table(position, first + c) for c in [0, columns), unchecked: for kernels that fuse it.
  void load_row(Position position, Index first, Index columns, compute_t<Scalar>* row) const {
    table_.load(position + config_.offset, first, columns, row);
  }

  /// Throws unless an output is apart from the table.
  template <class T, std::size_t Rank>
  void require_apart(const char* name, const View<T, Rank>& out) const {
    detail::require_apart(name, out, "the table", table_.view());
  }

  /// The view of a gradient of the table; throws unless it has the table's shape.
  template <writable_tensor Dt>
  auto require_table(const char* name, Dt&& d_table) const {
    static_assert(rank_of<Dt> == 2, "posenc: expected a gradient of shape (max_len, d_model)");
    const auto target = detail::output_view(name, d_table);
    detail::require_same_shape(name, table_.view(), target);
    return target;
  }

  /// Throws unless `at` fits (batch, seq) and every position is in the table; names the first that is not.
  void require_positions(const Positions& at, Index batch, Index seq) const {
    detail::require_positions("at", at, batch, seq);
    if (batch == 0 || seq == 0) return;
    const Position first = -config_.offset, end = max_len() - config_.offset;
    for (Index row = 0; row < at.rows(); ++row) {
      // Of consecutive positions the ends tell.
      if (at.is_consecutive() && at(row, 0) >= first && at(row, seq - 1) < end) continue;
      for (Index i = 0; i < seq; ++i)
        if (const Position p = at(row, i); p < first || p >= end)
          detail::out_of_range(
              "at: expected positions in [", first, ", ", end, ") for a table of max_len ", max_len(),
              config_.offset == 0 ? std::string() : detail::concat(" and offset ", config_.offset), ", got ",
              p, " at (", row, ", ", i, ")");
    }
  }

 private:
  template <class T>
  void require_fit(const View<T, 3>& x, const Positions& at, const char* name) const {
    if (x.extent(2) != d_model())
      detail::invalid(name, ": expected ", d_model(), " features (d_model) on the last axis, got ",
                      x.extent(2));
    require_positions(at, x.extent(0), x.extent(1));
  }

  // The verbs end here whatever tensor they were called with, so each scalar type compiles the kernel once.
  template <scalar_type S, device D>
  void add_views(const D& device, const View<S, 3>& out, const View<const S, 3>& in,
                 const Positions& at) const {
    require_fit(out, at, "x");
    require_apart("out", out);
    detail::map_tiles<S>(
        device, out, at.rows() == 1,
        [&](detail::NoScratch&, const detail::Tile& tile, compute_t<S>* rows) { load_tile(at, tile, rows); },
        [&](const detail::Tile& tile, const compute_t<S>* rows, compute_t<S>* sum) {
          detail::add_tile(tile.of(in), rows, sum);
        });
  }

  template <scalar_type S, device D>
  void embed_views(const D& device, const View<S, 3>& out, const Positions& at) const {
    require_fit(out, at, "out");
    require_apart("out", out);
    detail::map_tiles<S>(
        device, out, at.rows() == 1,
        [&](detail::NoScratch&, const detail::Tile& tile, compute_t<S>* rows) { load_tile(at, tile, rows); },
        [](const detail::Tile& tile, const compute_t<S>* rows, compute_t<S>* result) {
          std::copy_n(rows, tile.rows * tile.columns, result);
        });
  }

  template <std::floating_point C>
  void load_tile(const Positions& at, const detail::Tile& tile, C* rows) const {
    static_assert(std::same_as<C, compute_t<Scalar>>,
                  "posenc: a table of double goes with tensors of double, the others with each other");
    for (Index r = 0; r < tile.rows; ++r)
      load_row(at(tile.batch, tile.seq + r), tile.first, tile.columns, rows + r * tile.columns);
  }

  detail::Table<Scalar> table_;
  LearnedPositionsConfig config_;
};

/// The scalar type is that of the table.
template <readable_tensor T>
explicit LearnedPositions(T&&) -> LearnedPositions<scalar_of<T>>;
/// The scalar type is that of the table.
template <readable_tensor T>
explicit LearnedPositions(T&&, const LearnedPositionsConfig&) -> LearnedPositions<scalar_of<T>>;

}  // namespace v0
}  // namespace posenc
