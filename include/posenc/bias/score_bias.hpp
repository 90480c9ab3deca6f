#pragma once
// What is added to attention scores. A bias says what one row of scores gets; the verbs are written here,
// once:
//
//   bias.add(scores, q_at, k_at)            scores[b, h, i, j] += bias(h, i, j)
//   bias.tile(out, head, q_at, k_at)        one head, (q, k)
//   bias.row(out, head, i, k_at)            one query, for decoding
//   bias.add_vjp(d_parameters, d_scores, q_at, k_at)
//   softmax(scores, bias, q_at, k_at)       (bias/softmax.hpp) without a matrix of the bias
//
// A mask is a bias of 0 and -infinity (bias/masks.hpp). sum(a, b, ...) is the sum of several in one pass.
//
// Convention: the bias meets scores that were divided by sqrt(head_dim) already. A model that adds it before
// has `scale` = 1/sqrt(head_dim) in its bias. -infinity hides a key whatever its score holds, NaN included.

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "posenc/core/finite.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/stack.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

namespace posenc {
inline namespace v0 {

/// One row of scores: query i of batch row b against all keys, in one head. i, j and b are indices; query()
/// and key() are the positions that stand there.
struct BiasRow {
  const Positions& q_at;  ///< of the queries
  const Positions& k_at;  ///< of the keys
  Index b = 0;            ///< row of the batch
  Index head = 0;         ///< of this process, which may hold a shard of the model's heads
  Index i = 0;            ///< which query

  /// The position of the query, on one of several axes.
  Position query(Index axis = 0) const { return q_at.integer(axis, b, i); }
  /// The position of key j.
  Position key(Index j, Index axis = 0) const { return k_at.integer(axis, b, j); }
};

/// Keys [first, last) of a row.
struct KeyRange {
  Index first = 0;  ///< the first of them
  Index last = 0;   ///< the first behind them
};

/// What a row of a bias is made of, within the keys that it lets be seen.
enum class RowForm {
  zero,      ///< 0: a mask whose hidden keys all lie outside KeyRange
  distance,  ///< a function of the head and of key - query alone, and the keys come in order: fill_distances
  values     ///< anything else: fill_row
};

/// What `softmax`, `sum` and the verbs ask of a bias:
///
///   fill_row(row, first, count, values)      values[c] = bias of key first + c, for c in [0, count)
///
/// where it doesn't take any scores:
///
///   require_heads(name, first, count)        throws unless it has heads first .. first + count
///   require_shape(batch, queries, keys)      throws unless it fits these
///   require_positions(q_at, k_at)            throws unless it can read them; without it, they have one axis of integers
///
/// and where it can be quicker than key by key:
///
///   visible(row, keys)                       a KeyRange: no key outside it is seen
///   form(row)                                a RowForm
///   fill_distances(head, start, count, values)   values[c] = bias of key - query = start + c
template <class B>
concept score_bias = requires(const B& bias, const BiasRow& row, Index n, float* f, double* d) {
  bias.fill_row(row, n, n, f);
  bias.fill_row(row, n, n, d);
};

/// Any function of (head, position of the query, position of the key) that gives a number.
template <class F>
concept bias_function = !score_bias<F> && requires(const F& f, Index head, Position i, Position j) {
  { f(head, i, j) } -> std::convertible_to<double>;
};

namespace detail {

/// Scores of (q, k), (heads, q, k) or (batch, heads, q, k) as the latter.
template <class T, std::size_t Rank>
View<T, 4> as_bhqk(const View<T, Rank>& x) {
  static_assert(Rank >= 2 && Rank <= 4,
                "posenc: expected scores of shape (q, k), (heads, q, k) or (batch, heads, q, k)");
  if constexpr (Rank == 4)
    return x;
  else if constexpr (Rank == 3)
    return {Unchecked(),
            x.data(),
            {1, x.extent(0), x.extent(1), x.extent(2)},
            {0, x.stride(0), x.stride(1), x.stride(2)}};
  else
    return {Unchecked(), x.data(), {1, 1, x.extent(0), x.extent(1)}, {0, 0, x.stride(0), x.stride(1)}};
}

// What a bias leaves unsaid.
template <class B>
KeyRange visible(const B& bias, const BiasRow& row, Index keys) {
  if constexpr (requires { bias.visible(row, keys); })
    return bias.visible(row, keys);
  else
    return {0, keys};
}
template <class B>
RowForm form(const B& bias, const BiasRow& row) {
  if constexpr (requires { bias.form(row); })
    return bias.form(row);
  else
    return RowForm::values;
}
template <class B, std::floating_point C>
void fill_distances(const B& bias, Index head, Position start, Index count, C* values) {
  if constexpr (requires { bias.fill_distances(head, start, count, values); })
    bias.fill_distances(head, start, count, values);
  else
    std::fill_n(values, count, C{0});  // of RowForm::zero
}
/// fill_row for keys that are visible: what has RowForm::zero need not be filled.
template <class B, std::floating_point C>
void fill_visible(const B& bias, const BiasRow& row, Index first, Index count, C* values) {
  if constexpr (requires { bias.fill_visible(row, first, count, values); })
    bias.fill_visible(row, first, count, values);
  else
    bias.fill_row(row, first, count, values);
}

/// Keys in both.
inline KeyRange intersection(const KeyRange& a, const KeyRange& b) {
  const Index first = (std::max)(a.first, b.first);
  return {first, (std::max)(first, (std::min)(a.last, b.last))};
}

/// Whether key - query can be counted from one key to the next: the keys come in order, and all distances are
/// exact doubles.
inline bool counts_distances(const BiasRow& row) {
  constexpr Position most = Position{1} << 51;
  const auto is_exact = [](Position p) { return p > -most && p < most; };
  return row.k_at.is_consecutive() && row.k_at.count() > 0 && is_exact(row.query()) && is_exact(row.key(0)) &&
         Position{row.k_at.count()} < most;
}

/// The scores, and 0 for those that the bias hides: -infinity added to NaN would be NaN.
template <std::floating_point C>
[[gnu::always_inline]] inline Pack<C> without_hidden(Pack<C> scores, Pack<C> bias) {
  using Bits = Pack<BitsOf<C>>;
  const auto is_hidden = bits_as<Bits>(bits_as<Bits>(bias) == (infinity_bits<C> | sign_bit<C>));
  return opaque(bits_as<Pack<C>>(bits_as<Bits>(scores) & ~is_hidden));
}

/// Throws unless the bias has heads first_head on for these scores (batch, heads, q, k), and fits their
/// positions.
template <class B, class T>
void require_bias(const char* name, const B& bias, const View<T, 4>& scores, const Positions& q_at,
                  const Positions& k_at, Index first_head = 0) {
  if constexpr (requires { bias.require_heads(name, first_head, scores.extent(1)); })
    bias.require_heads(name, first_head, scores.extent(1));
  else if (first_head < 0)
    out_of_range(name, ": expected a head of at least 0, got ", first_head);
  require_counts("q_at", q_at, scores.extent(0), scores.extent(2));
  require_counts("k_at", k_at, scores.extent(0), scores.extent(3));
  if constexpr (requires { bias.require_positions(q_at, k_at); }) {
    bias.require_positions(q_at, k_at);
  } else {
    require_positions("q_at", q_at, scores.extent(0), scores.extent(2));
    require_positions("k_at", k_at, scores.extent(0), scores.extent(3));
  }
  if constexpr (requires { bias.require_shape(Index{}, Index{}, Index{}); })
    bias.require_shape(scores.extent(0), scores.extent(2), scores.extent(3));
}

}  // namespace detail

/// The verbs of a bias. For add_vjp, Bias has also
///
///   parameters()                                   how many numbers a head has
///   accumulate_row(row, first, count, d, sums)     sums[n] += d[c] d(bias of key first + c) / d(parameter n)
///   gradient_view(d_parameters, heads)             the gradient as a View (parameters, heads), checked
template <class Bias>
class ScoreBias {
 public:
  /// scores += bias, in place. scores: (q, k), (heads, q, k) or (batch, heads, q, k), the heads of this
  /// process; q_at and k_at are the positions of queries and keys, shared or per batch row. Throws before
  /// anything is written: std::invalid_argument where shapes or positions don't fit, std::out_of_range for
  /// heads that the bias doesn't have. The gradient with respect to scores is the identity.
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
  template <writable_tensor Out, readable_beside<Out> Scores>
  void add(Out&& out, const Scores& scores, const Positions& q_at, const Positions& k_at) const {
    add(Eigen::DefaultDevice(), out, scores, q_at, k_at);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_beside<Out> Scores>
  void add(const D& device, Out&& out, const Scores& scores, const Positions& q_at,
           const Positions& k_at) const {
    using S = scalar_of<Out>;
    const auto two = detail::out_and_in("out", out, "scores", scores);
    const View<S, 4> to = detail::as_bhqk(two.out);
    const View<const S, 4> from = detail::as_bhqk(two.in);
    detail::require_bias("scores", bias(), to, q_at, k_at);
    if (to.size() == 0) return;
    for (Index b = 0; b < to.extent(0); ++b)
      add_views<S>(device, detail::entry(to, b), detail::entry(from, b), q_at, k_at, b);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InOrOutOfPlace, Args...> add(Args&&...) const;

  /// out(i, j) = bias of query i and key j in one head: a tile (q, k) for an attention loop that never holds
  /// more. Throws as add does, and std::invalid_argument for positions per batch row.
  template <writable_tensor Out>
  void tile(Out&& out, Index head, const Positions& q_at, const Positions& k_at) const {
    tile(Eigen::DefaultDevice(), out, head, q_at, k_at);
  }
  /// The same on a device.
  template <device D, writable_tensor Out>
  void tile(const D& device, Out&& out, Index head, const Positions& q_at, const Positions& k_at) const {
    using S = scalar_of<Out>;
    static_assert(rank_of<Out> == 2, "posenc: expected a tile of shape (q, k)");
    const auto to = detail::output_view("out", out);
    if (q_at.rows() != 1) detail::invalid("q_at: expected one row of positions, got ", q_at.rows());
    if (k_at.rows() != 1) detail::invalid("k_at: expected one row of positions, got ", k_at.rows());
    detail::require_bias("head", bias(), detail::as_bhqk(to), q_at, k_at, head);
    detail::map_tiles<S>(device, detail::as_bsd(to), false, detail::NothingShared{},
                         [&](const detail::Tile& part, const compute_t<S>*, compute_t<S>* result) {
                           fill_tile({q_at, k_at, 0, head, part.seq}, part, result);
                         });
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> tile(Args&&...) const;

  /// out[j] = bias of query position i and key j in one head: a row for decoding. out: a list (std::vector,
  /// std::span) of k_at.count() values.
  template <detail::contiguous_list Row>
    requires(scalar_type<scalar_of<Row>> && elements_are_writable<Row> && detail::outlives_the_call<Row>)
  void row(Row&& out, Index head, Position i, const Positions& k_at) const {
    const View<scalar_of<Row>, 2> one(out.data(), {1, static_cast<Index>(out.size())});
    tile(one, head, consecutive(i, 1), k_at);
  }

  /// d_parameters += sum of d_scores d(bias) / d(parameters): the gradient of add with respect to what was
  /// learned. d_scores: as scores. Hidden keys contribute nothing. Each number is one sum in double, in
  /// logical order, rounded once: the same bits for any number of threads.
  template <class Gradient, readable_tensor Ds>
  void add_vjp(Gradient&& d_parameters, const Ds& d_scores, const Positions& q_at,
               const Positions& k_at) const {
    add_vjp(Eigen::DefaultDevice(), d_parameters, d_scores, q_at, k_at);
  }
  /// The same on a device.
  template <device D, class Gradient, readable_tensor Ds>
  void add_vjp(const D& device, Gradient&& d_parameters, const Ds& d_scores, const Positions& q_at,
               const Positions& k_at) const {
    using S = scalar_of<Ds>;
    using C = compute_t<S>;
    const View<const S, 4> g = detail::as_bhqk(detail::input_view(d_scores));
    detail::require_bias("d_scores", bias(), g, q_at, k_at);
    const auto target = bias().gradient_view(d_parameters, g.extent(1));
    detail::require_apart("d_parameters", target, "d_scores", g);
    if (g.size() == 0) return;
    const Index keys = g.extent(3);
    const double elements =
        static_cast<double>(g.extent(0)) * static_cast<double>(g.extent(2)) * static_cast<double>(keys);
    detail::parallel_for(
        device, g.extent(1), {elements * sizeof(S), 8.0, elements}, [&](Index begin, Index end) {
          // A slope, or the rows of a small table, are summed up on the stack.
          const Index parameters = bias().parameters();
          const auto each_head = [&](std::span<double> sums) {
            detail::with_tile<C>([&](C* d) {
              for (Index h = begin; h < end; ++h) {
                std::fill(sums.begin(), sums.end(), 0.0);
                for (Index b = 0; b < g.extent(0); ++b)
                  for (Index i = 0; i < g.extent(2); ++i)
                    for (Index first = 0; first < keys; first += detail::tile_elements<C>) {
                      const Index count = (std::min)(detail::tile_elements<C>, keys - first);
                      const View<const S, 2> row = detail::entry(detail::entry(g, b), h).slice(0, i, 1);
                      detail::load_tile(row.slice(1, first, count), d);
                      bias().accumulate_row({q_at, k_at, b, h, i}, first, count, d, sums);
                    }
                for (Index n = 0; n < parameters; ++n) {
                  auto& element = target(n, h);
                  using G = std::remove_reference_t<decltype(element)>;
                  const double sum =
                      static_cast<double>(detail::widen(element)) + sums[static_cast<std::size_t>(n)];
                  element = detail::narrow<G>(static_cast<compute_t<G>>(sum));
                }
              }
            });
          };
          const auto size = static_cast<std::size_t>(parameters);
          if (parameters <= detail::tile_elements<double>) {
            detail::with_tile<double>([&](double* sums) { each_head({sums, size}); });
          } else {
            std::vector<double> sums(size);
            each_head(sums);
          }
        });
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::anything, detail::Role::in>, Args...> add_vjp(Args&&...) const;

 private:
  friend Bias;
  ScoreBias() = default;
  const Bias& bias() const { return static_cast<const Bias&>(*this); }

  // One row of the batch, (heads, q, k). The verb ends here whatever tensor it was called with, so each
  // scalar type compiles the kernel once.
  template <scalar_type S, device D>
  void add_views(const D& device, const View<S, 3>& out, const View<const S, 3>& in, const Positions& q_at,
                 const Positions& k_at, Index b) const {
    using C = compute_t<S>;
    detail::map_tiles<S>(
        device, out, false, detail::NothingShared{}, [&](const detail::Tile& part, const C*, C* sum) {
          detail::with_tile<C>([&](C* values) {
            fill_tile({q_at, k_at, b, part.batch, part.seq}, part, values);
            detail::add_tile(part.of(in), values, sum,
                             [](auto x, auto y) { return detail::without_hidden<C>(x, y) + y; });
          });
        });
  }

  template <std::floating_point C>
  void fill_tile(BiasRow row, const detail::Tile& part, C* values) const {
    for (Index r = 0; r < part.rows; ++r, ++row.i, values += part.columns)
      bias().fill_row(row, part.first, part.columns, values);
  }
};

/// No bias.
class NoBias : public ScoreBias<NoBias> {
 public:
  NoBias() = default;

  /// 0 for every key.
  template <std::floating_point C>
  void fill_row(const BiasRow&, Index, Index count, C* values) const {
    std::fill_n(values, count, C{0});
  }
  /// Nothing need be added.
  RowForm form(const BiasRow&) const { return RowForm::zero; }
};

/// A function of (head, position of the query, position of the key) as a bias. Called once for each score.
template <class F>
class FunctionBias : public ScoreBias<FunctionBias<F>> {
 public:
  /// Holds a copy of the function.
  explicit FunctionBias(F function) : function_(std::move(function)) {}

  /// values[c] = f(head, query, key first + c).
  template <std::floating_point C>
  void fill_row(const BiasRow& row, Index first, Index count, C* values) const {
    for (Index c = 0; c < count; ++c)
      values[c] = static_cast<C>(function_(row.head, row.query(), row.key(first + c)));
  }

 private:
  F function_;
};

namespace detail {

/// A bias as it is, or a function as a bias.
template <score_bias B>
const B& as_bias(const B& bias) {
  return bias;
}
template <bias_function F>
FunctionBias<F> as_bias(const F& function) {
  return FunctionBias<F>(function);
}

}  // namespace detail

/// The sum of several biases. What one of them hides is hidden. The gradient is that of each part: they get
/// the same d_scores.
template <score_bias... Parts>
class SumBias : public ScoreBias<SumBias<Parts...>> {
 public:
  /// Holds a copy of each part.
  explicit SumBias(Parts... parts) : parts_(std::move(parts)...) {}

  /// values[c] = the sum for key first + c, in the order of the parts.
  template <std::floating_point C>
  void fill_row(const BiasRow& row, Index first, Index count, C* values) const {
    add_parts(first, count, values, [&](const auto& part, Index from, Index n, C* to) {
      part.fill_row(row, from, n, to);
      return true;
    });
  }
  /// The same of visible keys.
  template <std::floating_point C>
  void fill_visible(const BiasRow& row, Index first, Index count, C* values) const {
    add_parts(first, count, values, [&](const auto& part, Index from, Index n, C* to) {
      if (detail::form(part, row) == RowForm::zero) return false;
      detail::fill_visible(part, row, from, n, to);
      return true;
    });
  }
  /// The same of distances, where all parts know no more than those.
  template <std::floating_point C>
  void fill_distances(Index head, Position start, Index count, C* values) const {
    add_parts(Index{0}, count, values, [&](const auto& part, Index from, Index n, C* to) {
      detail::fill_distances(part, head, start + from, n, to);
      return true;
    });
  }
  /// Keys that every part lets be seen.
  KeyRange visible(const BiasRow& row, Index keys) const {
    KeyRange range{0, keys};
    each([&](const auto& part) { range = detail::intersection(range, detail::visible(part, row, keys)); });
    return range;
  }
  /// What the least simple part is.
  RowForm form(const BiasRow& row) const {
    RowForm all = RowForm::zero;
    each([&](const auto& part) { all = (std::max)(all, detail::form(part, row)); });
    return all;
  }

  /// Throw as each part does.
  void require_heads(const char* name, Index first, Index count) const {
    each([&](const auto& part) {
      if constexpr (requires { part.require_heads(name, first, count); })
        part.require_heads(name, first, count);
    });
    if (first < 0) detail::out_of_range(name, ": expected a head of at least 0, got ", first);
  }
  /// Throws as each part does.
  void require_shape(Index batch, Index queries, Index keys) const {
    each([&](const auto& part) {
      if constexpr (requires { part.require_shape(batch, queries, keys); })
        part.require_shape(batch, queries, keys);
    });
  }
  /// Throws as each part does.
  void require_positions(const Positions& q_at, const Positions& k_at) const {
    each([&](const auto& part) {
      if constexpr (requires { part.require_positions(q_at, k_at); }) {
        part.require_positions(q_at, k_at);
      } else {
        detail::require_axes("q_at", q_at, 1);
        detail::require_axes("k_at", k_at, 1);
      }
    });
  }

 private:
  template <class F>
  void each(const F& f) const {
    std::apply([&](const Parts&... parts) { (f(parts), ...); }, parts_);
  }

  // fill(part, first, n, to) says whether the part has anything to add.
  template <std::floating_point C, class Fill>
  void add_parts(Index first, Index count, C* values, const Fill& fill) const {
    constexpr Index block = 256;
    alignas(64) std::array<C, std::size_t{block}> addends;
    for (Index from = 0; from < count; from += block) {
      const Index n = (std::min)(block, count - from);
      C* const to = values + from;
      std::fill_n(to, n, C{0});
      each([&](const auto& part) {
        if (!fill(part, first + from, n, addends.data())) return;
        detail::map_run(
            to, n, [](auto x, auto y) { return x + y; }, static_cast<const C*>(to),
            static_cast<const C*>(addends.data()));
      });
    }
  }

  std::tuple<Parts...> parts_;
};

/// The sum of several biases, masks and functions in one pass: softmax(scores, sum(t5, causal(),
/// key_padding(mask)), q_at, k_at). Copies them; a bias that holds a table shares it with its copies.
template <class... Parts>
  requires((score_bias<Parts> || bias_function<Parts>) && ...)
auto sum(const Parts&... parts) {
  return SumBias<std::remove_cvref_t<decltype(detail::as_bias(parts))>...>(detail::as_bias(parts)...);
}

}  // namespace v0
}  // namespace posenc
