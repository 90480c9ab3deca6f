#pragma once
// Token embedding: x = scale E[id], and the output head tied to the same table, logits = h E^T (Press & Wolf
// 2017).
//
//   the original transformer, BART, Marian   scale = sqrt(d_model)
//   BERT, GPT-2, Llama                       scale = 1
//   Gemma                                    scale = sqrt(hidden_size), rounded to the table's type first
//   Granite                                  scale = embedding_multiplier
//
// The scale belongs to the input side only: the tied head multiplies by E itself.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "posenc/core/angles.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/table.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

namespace posenc {
inline namespace v0 {

/// The precision of the scale.
enum class ScaleRounding {
  none,          ///< the scale is used as it is
  to_table_type  ///< the scale is rounded to the table's scalar type first: sqrt(3072) becomes 55.5 in
                 ///< bfloat16 (Gemma)
};

/// How a row becomes an embedding.
struct TokenEmbeddingConfig {
  double scale = 1.0;                                  ///< multiplies every row that is looked up
  ScaleRounding scale_rounding = ScaleRounding::none;  ///< the precision of the scale
  std::optional<Position> padding_idx = std::nullopt;  ///< the id whose row gets no gradient
};

namespace detail {

/// Checks every id before anything is written.
template <class Id, std::size_t Rank>
void require_ids(const View<const Id, Rank>& ids, Index vocabulary) {
  std::array<Index, Rank> at{};
  for (Index n = 0; n < ids.size(); ++n) {
    Index offset = 0, rest = n;
    for (std::size_t axis = Rank; axis-- > 0;) {
      at[axis] = rest % ids.extent(axis), rest /= ids.extent(axis);
      offset += at[axis] * ids.stride(axis);
    }
    if (const Id id = ids.data()[offset]; id < 0 || static_cast<Position>(id) >= vocabulary)
      out_of_range("ids: expected token ids in [0, ", vocabulary, "), got ", id, " at ", text(at));
  }
}

/// Element n of ids in logical order.
template <class Id, std::size_t Rank>
Position id_at(const View<const Id, Rank>& ids, Index n) {
  Index offset = 0;
  for (std::size_t axis = Rank; axis-- > 0;)
    offset += n % ids.extent(axis) * ids.stride(axis), n /= ids.extent(axis);
  return ids.data()[offset];
}

/// out(m, n) (+)= sum over k of a(m, k) b(k, n), in tiles of a size of their own, so that the bits depend
/// neither on the number of threads nor on the layouts. a, b: (first_row, first_column, rows, columns,
/// buffer) fills a packed tile; store receives the same with the result.
template <std::floating_point C, device D, class A, class B, class Store>
void multiply_tiles(const D& device, Index rows, Index columns, Index depth, const A& a, const B& b,
                    const Store& store) {
  constexpr Index tile = 64, slab = 256;
  using Packed = Eigen::Matrix<C, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  const Index down = (rows + tile - 1) / tile, across = (columns + tile - 1) / tile;
  const double work = static_cast<double>(tile * tile) * static_cast<double>(depth);
  parallel_for(device, down * across, Cost{work / 16, double(tile * tile) * sizeof(C), work / 8},
               [&](Index begin, Index end) {
                 Packed left, right, sum;
                 for (Index t = begin; t < end; ++t) {
                   const Index m0 = t / across * tile, n0 = t % across * tile;
                   const Index m = (std::min)(tile, rows - m0), n = (std::min)(tile, columns - n0);
                   sum.setZero(m, n);
                   for (Index k0 = 0; k0 < depth; k0 += slab) {
                     const Index k = (std::min)(slab, depth - k0);
                     left.resize(m, k), right.resize(k, n);
                     a(m0, k0, m, k, left.data());
                     b(k0, n0, k, n, right.data());
                     sum.noalias() += left * right;
                   }
                   store(m0, n0, m, n, static_cast<const C*>(sum.data()));
                 }
               });
}

}  // namespace detail

/// The encoder. Holds a (vocabulary, d_model) table: a copy of a tensor or matrix, the contents of a moved
/// one, or, for a TensorMap, Map, Ref, Block, Transpose or View, the caller's memory itself, which must then
/// outlive the encoder.
template <scalar_type Scalar>
class TokenEmbedding {
 public:
  /// The type of the arithmetic.
  using Compute = compute_t<Scalar>;

  /// table: (vocabulary, d_model). Throws std::invalid_argument for a scale that is not finite,
  /// std::out_of_range for a padding_idx outside the table.
  template <readable_tensor T>
    requires(rank_of<T> == 2 && std::same_as<scalar_of<T>, Scalar>)
  explicit TokenEmbedding(T&& table, const TokenEmbeddingConfig& config = {})
      : table_(std::forward<T>(table)), config_(config), scale_(detail::constant<Scalar>(config.scale)) {
    if (!detail::is_finite(config.scale))
      detail::invalid("scale: expected a finite number, got ", config.scale);
    if (config.scale_rounding == ScaleRounding::to_table_type)
      scale_ = detail::widen(static_cast<Scalar>(scale_));
    if (config.padding_idx && (*config.padding_idx < 0 || *config.padding_idx >= table_.rows()))
      detail::out_of_range("padding_idx: expected an id in [0, ", table_.rows(), "), got ",
                           *config.padding_idx);
  }

  /// The rows of the table.
  Index vocabulary() const { return table_.rows(); }
  /// The width of a row.
  Index d_model() const { return table_.width(); }
  /// What it was made with.
  const TokenEmbeddingConfig& config() const { return config_; }

  /// x = scale E[ids]. ids: 32- or 64-bit integers of any rank; x: the same shape and a last axis of d_model.
  /// Throws std::invalid_argument where the shapes don't fit, std::out_of_range for the first id outside
  /// [0, vocabulary), before anything is written.
  template <writable_tensor X, integer_tensor Ids>
  void embed(X&& x, const Ids& ids) const {
    embed(Eigen::DefaultDevice(), x, ids);
  }
  /// The same on a device.
  template <device D, writable_tensor X, integer_tensor Ids>
  void embed(const D& device, X&& x, const Ids& ids) const {
    using S = scalar_of<X>;
    static_assert(std::same_as<compute_t<S>, Compute>,
                  "posenc: a table of double goes with tensors of double, the others with each other");
    const auto out = detail::output_view("x", x);
    const auto tokens = detail::integer_view(ids);
    require_fit(tokens, out, "x");
    require_apart("x", out);
    detail::for_each_bsd(
        [&](Index before, const View<S, 3>& part) { embed_views(device, part, tokens, before); }, 0, out);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::out, detail::Role::ids>, Args...> embed(Args&&...) const;

  /// d_table[ids] += scale dy, the gradient with respect to the table. d_table: (vocabulary, d_model), any
  /// scalar type; dy: as x. Each row is one sum in call order, rounded once: the same bits for any number of
  /// threads.
  template <writable_tensor Dt, integer_tensor Ids, readable_tensor Dy>
  void embed_vjp(Dt&& d_table, const Ids& ids, const Dy& dy) const {
    embed_vjp(Eigen::DefaultDevice(), d_table, ids, dy);
  }
  /// The same on a device.
  template <device D, writable_tensor Dt, integer_tensor Ids, readable_tensor Dy>
  void embed_vjp(const D& device, Dt&& d_table, const Ids& ids, const Dy& dy) const {
    const auto target = require_table("d_table", d_table);
    const auto g = detail::input_view(dy);
    const detail::Lookups rows = lookups(ids, g);
    detail::require_apart("d_table", target, "dy", g);
    detail::scatter_add<scalar_of<Dy>>(device, target, rows, g, gradient_scale<scalar_of<Dy>>());
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::out, detail::Role::ids, detail::Role::in>, Args...> embed_vjp(
      Args&&...) const;

  /// The same gradient as the rows that were looked up, ids ascending and unique.
  template <integer_tensor Ids, readable_tensor Dy>
  SparseGradient<scalar_of<Dy>> embed_vjp_sparse(const Ids& ids, const Dy& dy) const {
    return embed_vjp_sparse(Eigen::DefaultDevice(), ids, dy);
  }
  /// The same on a device.
  template <device D, integer_tensor Ids, readable_tensor Dy>
  SparseGradient<scalar_of<Dy>> embed_vjp_sparse(const D& device, const Ids& ids, const Dy& dy) const {
    const auto g = detail::input_view(dy);
    return detail::gather_gradient<scalar_of<Dy>>(device, lookups(ids, g), g,
                                                  gradient_scale<scalar_of<Dy>>());
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::ids, detail::Role::in>, Args...> embed_vjp_sparse(
      Args&&...) const;

  /// The tied output head: out = h E^T, without the scale. h: (..., d_model), out: (..., vocabulary).
  template <writable_tensor Out, readable_tensor H>
  void logits(Out&& out, const H& h) const {
    logits(Eigen::DefaultDevice(), out, h);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_tensor H>
  void logits(const D& device, Out&& out, const H& h) const {
    using S = scalar_of<Out>;
    static_assert(std::same_as<compute_t<S>, Compute> && std::same_as<compute_t<scalar_of<H>>, Compute>,
                  "posenc: a table of double goes with tensors of double, the others with each other");
    const auto result = detail::output_view("out", out);
    const auto hidden = detail::input_view(h);
    require_head("out", hidden, result);
    detail::require_apart("out", result, "h", hidden);
    require_apart("out", result);
    const detail::RowsOf to(result);
    const detail::RowsOf from(hidden);
    detail::multiply_tiles<Compute>(
        device, from.count(), vocabulary(), d_model(),
        [&](Index m0, Index k0, Index m, Index k, Compute* a) { load_rows(from, m0, k0, m, k, a); },
        [&](Index k0, Index n0, Index k, Index n, Compute* b) {  // the transpose of rows n0.. of the table
          detail::load_tile(transposed_table().slice(0, k0, k).slice(1, n0, n), b);
        },
        [&](Index m0, Index n0, Index m, Index n, const Compute* c) {
          for (Index r = 0; r < m; ++r) detail::store_tile(to.row(m0 + r, n0, n), c + r * n);
        });
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::out, detail::Role::in>, Args...> logits(Args&&...) const;

  /// The gradient of the head: dh = dlogits E, and d_table += dlogits^T h. dlogits: (..., vocabulary); h, dh:
  /// (..., d_model). dh is overwritten, d_table (vocabulary, d_model) accumulates, as with embed_vjp: a tied
  /// table gets the sum of both.
  template <writable_tensor Dh, writable_tensor Dt, readable_tensor H, readable_tensor Dl>
  void logits_vjp(Dh&& dh, Dt&& d_table, const H& h, const Dl& dlogits) const {
    logits_vjp(Eigen::DefaultDevice(), dh, d_table, h, dlogits);
  }
  /// The same on a device.
  template <device D, writable_tensor Dh, writable_tensor Dt, readable_tensor H, readable_tensor Dl>
  void logits_vjp(const D& device, Dh&& dh, Dt&& d_table, const H& h, const Dl& dlogits) const {
    const auto dx = detail::output_view("dh", dh);
    const auto target = require_table("d_table", d_table);
    const auto hidden = detail::input_view(h);
    const auto g = detail::input_view(dlogits);
    require_head("dlogits", hidden, g);
    static_assert(decltype(dx)::rank == decltype(hidden)::rank, "posenc: dh and h must have the same rank");
    detail::require_same_shape("dh", hidden, dx);
    detail::require_same_or_apart("dh", dx, "h", hidden);
    detail::require_apart("dh", dx, "dlogits", g);
    detail::require_apart("dh", dx, "d_table", target);
    require_apart("dh", dx);
    detail::require_apart("d_table", target, "h", hidden);
    detail::require_apart("d_table", target, "dlogits", g);
    require_apart("d_table", target);
    const detail::RowsOf to(dx);
    const detail::RowsOf from(hidden);
    const detail::RowsOf gradient(g);
    const auto load_gradient_transposed = [&](Index m0, Index k0, Index m, Index k, Compute* a) {
      std::array<Compute, 64> row;  // m is at most a tile
      for (Index r = 0; r < k; ++r) {
        detail::load_tile(gradient.row(k0 + r, m0, m), row.data());
        for (Index c = 0; c < m; ++c) a[c * k + r] = row[static_cast<std::size_t>(c)];
      }
    };
    // The table's gradient first: it reads h, which dh may be.
    detail::multiply_tiles<Compute>(
        device, vocabulary(), d_model(), from.count(), load_gradient_transposed,
        [&](Index k0, Index n0, Index k, Index n, Compute* b) { load_rows(from, k0, n0, k, n, b); },
        [&](Index m0, Index n0, Index m, Index n, const Compute* c) {
          using G = scalar_of<Dt>;
          for (Index r = 0; r < m; ++r)
            for (Index j = 0; j < n; ++j) {
              G& element = target(m0 + r, n0 + j);
              element = detail::narrow<G>(detail::widen(element) + static_cast<compute_t<G>>(c[r * n + j]));
            }
        });
    detail::multiply_tiles<Compute>(
        device, from.count(), d_model(), vocabulary(),
        [&](Index m0, Index k0, Index m, Index k, Compute* a) { load_rows(gradient, m0, k0, m, k, a); },
        [&](Index k0, Index n0, Index k, Index n, Compute* b) {
          detail::load_tile(table_.view().slice(0, k0, k).slice(1, n0, n), b);
        },
        [&](Index m0, Index n0, Index m, Index n, const Compute* c) {
          for (Index r = 0; r < m; ++r) detail::store_tile(to.row(m0 + r, n0, n), c + r * n);
        });
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::out, detail::Role::out, detail::Role::in, detail::Role::in>,
                  Args...>
  logits_vjp(Args&&...) const;

  /// row[c] = scale E(id, first + c) for c in [0, columns), unchecked: for kernels that fuse it.
  void load_row(Position id, Index first, Index columns, Compute* row,
                const Compute* addend = nullptr) const {
    table_.load(id, first, columns, row, scale_, addend);
  }
  /// The same for token n of all, asking for the row of one that comes soon.
  template <class Id, std::size_t Rank>
  void load_token(const View<const Id, Rank>& ids, Index n, Index first, Index columns, Compute* row,
                  const Compute* addend = nullptr) const {
    const Index soon = n + detail::prefetch_ahead / (columns * static_cast<Index>(sizeof(Scalar))) + 1;
    if (table_.is_far() && soon < ids.size()) table_.expect(detail::id_at(ids, soon), first, columns);
    load_row(detail::id_at(ids, n), first, columns, row, addend);
  }

  /// Throws unless x has the shape of ids and a last axis of d_model, and every id is in the table.
  template <class Id, std::size_t Rank, class T, std::size_t RankX>
  void require_fit(const View<const Id, Rank>& ids, const View<T, RankX>& x, const char* name) const {
    static_assert(RankX == Rank + 1, "posenc: expected x with one axis more than ids: (..., d_model)");
    std::array<Index, RankX> expected{};
    for (std::size_t axis = 0; axis < Rank; ++axis) expected[axis] = ids.extent(axis);
    expected[Rank] = d_model();
    if (expected != x.extents())
      detail::invalid(name, ": expected shape ", detail::text(expected), ", got ", detail::text(x.extents()));
    detail::require_ids(ids, vocabulary());
  }

  /// Throws unless an output is apart from the table.
  template <class T, std::size_t Rank>
  void require_apart(const char* name, const View<T, Rank>& out) const {
    detail::require_apart(name, out, "the table", table_.view());
  }

  /// The view of a gradient of the table; throws unless it has the table's shape.
  template <writable_tensor Dt>
  auto require_table(const char* name, Dt&& d_table) const {
    static_assert(rank_of<Dt> == 2, "posenc: expected a gradient of shape (vocabulary, d_model)");
    const auto target = detail::output_view(name, d_table);
    detail::require_same_shape(name, table_.view(), target);
    return target;
  }

 private:
  // Rows of one part of x, ids counted from `before` on. The verb ends here whatever tensor it was called
  // with, so each scalar type compiles the kernel once.
  template <scalar_type S, device D, class Id, std::size_t Rank>
  void embed_views(const D& device, const View<S, 3>& x, const View<const Id, Rank>& ids,
                   Index before) const {
    detail::map_tiles<S>(device, x, false, detail::NothingShared{},
                         [&](const detail::Tile& tile, const Compute*, Compute* result) {
                           const Index row = before + tile.batch * x.extent(1) + tile.seq;
                           for (Index r = 0; r < tile.rows; ++r)
                             load_token(ids, row + r, tile.first, tile.columns, result + r * tile.columns);
                         });
  }

  template <class H, class L, std::size_t Rank>
  void require_head(const char* name, const View<H, Rank>& h, const View<L, Rank>& logits) const {
    auto expected = h.extents();
    if (expected[Rank - 1] != d_model())
      detail::invalid("h: expected ", d_model(), " features (d_model) on the last axis, got ",
                      expected[Rank - 1]);
    expected[Rank - 1] = vocabulary();
    if (expected != logits.extents())
      detail::invalid(name, ": expected shape ", detail::text(expected), ", got ",
                      detail::text(logits.extents()));
  }

  template <class Ids, class T, std::size_t RankX>
  detail::Lookups lookups(const Ids& ids, const View<T, RankX>& dy) const {
    const auto tokens = detail::integer_view(ids);
    require_fit(tokens, dy, "dy");
    return detail::Lookups(dy.size() == 0 ? 0 : tokens.size(), [&](Index n) {
      const Position id = detail::id_at(tokens, n);
      return id == config_.padding_idx ? Position{-1} : id;
    });
  }

  template <scalar_type S>
  compute_t<S> gradient_scale() const {
    return static_cast<compute_t<S>>(scale_);
  }

  View<const Scalar, 2> transposed_table() const { return table_.view().permute({1, 0}); }

  template <class T, std::size_t Rank>
  static void load_rows(const detail::RowsOf<T, Rank>& rows, Index first_row, Index first, Index count,
                        Index columns, Compute* packed) {
    for (Index r = 0; r < count; ++r)
      detail::load_tile(rows.row(first_row + r, first, columns), packed + r * columns);
  }

  detail::Table<Scalar> table_;
  TokenEmbeddingConfig config_;
  Compute scale_;
};

/// The scalar type is that of the table.
template <readable_tensor T>
explicit TokenEmbedding(T&&) -> TokenEmbedding<scalar_of<T>>;
/// The scalar type is that of the table.
template <readable_tensor T>
explicit TokenEmbedding(T&&, const TokenEmbeddingConfig&) -> TokenEmbedding<scalar_of<T>>;

}  // namespace v0
}  // namespace posenc
