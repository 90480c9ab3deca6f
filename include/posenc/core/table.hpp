#pragma once
// A table of vectors looked up by id, as token embeddings and learned positions hold it: how it is owned, how
// ids are checked, and the two forms of its gradient.

#include <algorithm>
#include <array>
#include <memory>
#include <utility>
#include <vector>

#include "posenc/core/angles.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

namespace posenc {
inline namespace v0 {

/// The gradient of a table as the rows that were looked up: ids ascending and unique, rows (ids.size(),
/// width) in the compute type. An optimiser for large vocabularies touches only these.
template <scalar_type S>
struct SparseGradient {
  std::vector<Position> ids;                             ///< which rows of the table, ascending
  Eigen::Tensor<compute_t<S>, 2, Eigen::RowMajor> rows;  ///< their gradients, in the same order
};

namespace detail {

/// Memory that an encoder reads: a copy of an owner, the contents of a moved owner, or a borrowed view.
/// Copies share the elements, which nobody changes through it.
template <scalar_type S, std::size_t Rank>
class Held {
 public:
  template <readable_tensor T>
    requires(rank_of<T> == Rank && std::same_as<scalar_of<T>, S>)
  explicit Held(T&& elements) {
    if constexpr (storage_of<T>::owns) {
      auto copy = std::make_shared<const std::remove_cvref_t<T>>(std::forward<T>(elements));
      view_ = input_view(*copy);
      owner_ = std::move(copy);
    } else {
      view_ = input_view(elements);
    }
  }

  const View<const S, Rank>& view() const { return view_; }

 private:
  View<const S, Rank> view_;
  std::shared_ptr<const void> owner_;
};

/// A (rows, width) table.
template <scalar_type S>
class Table : public Held<S, 2> {
 public:
  using Held<S, 2>::Held;
  using Held<S, 2>::view;

  Index rows() const { return view().extent(0); }
  Index width() const { return view().extent(1); }

  /// row[j] = table(id, first + j) for j in [0, count), widened.
  void load(Position id, Index first, Index count, compute_t<S>* row) const {
    load_tile(View<const S, 2>(Unchecked(), at(id, first), {1, count}, {0, view().stride(1)}), row);
  }
  /// The same times `scale`, rounded, and, where there is an addend, plus addend[j], rounded.
  void load(Position id, Index first, Index count, compute_t<S>* row, compute_t<S> scale,
            const compute_t<S>* addend = nullptr) const {
    using P = Pack<compute_t<S>>;
    const P by = broadcast(scale);
    const auto run = [&](const auto* from) {
      if (addend == nullptr)
        map_run(row, count, [&](P x) { return multiply(x, by); }, from);
      else
        map_run(row, count, [&](P x, P y) { return multiply(x, by) + y; }, from, addend);
    };
    if (view().stride(1) == 1) {
      run(at(id, first));
    } else {
      load(id, first, count, row);
      run(row);
    }
  }
  /// Asks for a row that will be loaded soon.
  void expect(Position id, Index first, Index count) const {
    if (view().stride(1) == 1) prefetch(at(id, first), 0, count);
  }
  /// Whether that is worth it.
  bool is_far() const { return view().size() * static_cast<Index>(sizeof(S)) >= prefetch_from; }

 private:
  const S* at(Position id, Index column) const {
    return view().data() + id * view().stride(0) + column * view().stride(1);
  }
};

/// A tensor of any rank as rows, counted in logical (row-major) order of its leading axes.
template <class T, std::size_t Rank>
class RowsOf {
 public:
  explicit RowsOf(const View<T, Rank>& x) : x_(x) {}
  Index count() const {
    Index product = 1;
    for (std::size_t axis = 0; axis + 1 < Rank; ++axis) product *= x_.extent(axis);
    return product;
  }
  View<T, 2> row(Index r, Index first, Index columns) const {
    Index offset = first * x_.stride(Rank - 1);
    for (std::size_t axis = Rank - 1; axis-- > 0;) {
      offset += r % x_.extent(axis) * x_.stride(axis);
      r /= x_.extent(axis);
    }
    return {Unchecked(), x_.data() + offset, {1, columns}, {0, x_.stride(Rank - 1)}};
  }

 private:
  View<T, Rank> x_;
};
template <class T, std::size_t Rank>
RowsOf(const View<T, Rank>&) -> RowsOf<T, Rank>;

/// Lookups sorted by id: occurrence k of ids[g] is order[k] for k in [start[g], start[g + 1]), in call order.
struct Lookups {
  std::vector<Position> ids;
  std::vector<Index> start, order;

  /// id(n) for n in [0, count), or a negative number for a lookup without a gradient.
  template <class Id>
  Lookups(Index count, const Id& id) {
    std::vector<std::pair<Position, Index>> pairs;
    pairs.reserve(static_cast<std::size_t>(checked_count("dy", count)));
    for (Index n = 0; n < count; ++n)
      if (const Position wanted = id(n); wanted >= 0) pairs.emplace_back(wanted, n);
    std::sort(pairs.begin(), pairs.end());
    for (const auto& [wanted, n] : pairs) {
      if (ids.empty() || ids.back() != wanted) {
        ids.push_back(wanted);
        start.push_back(static_cast<Index>(order.size()));
      }
      order.push_back(n);
    }
    start.push_back(static_cast<Index>(order.size()));
  }
};

/// target(g)[j] = base + scale * sum over the occurrences of ids[g] of dy[j], for each group g on its own:
/// one sum in call order, rounded once, so the same bits for any number of threads. visit(g, first, columns,
/// sum) receives the sums, packed, in the compute type.
template <scalar_type S, std::size_t Rank, device D, class Visit>
void for_each_gradient_row(const D& device, const Lookups& lookups, const View<const S, Rank>& dy,
                           const Visit& visit) {
  using C = compute_t<S>;
  const RowsOf<const S, Rank> rows(dy);
  const Index width = dy.extent(Rank - 1), groups = static_cast<Index>(lookups.ids.size());
  const double elements = static_cast<double>(width) * static_cast<double>(lookups.order.size()) /
                          static_cast<double>((std::max)(Index{1}, groups));
  parallel_for(device, groups, Cost{elements * sizeof(S), double(width) * sizeof(C), elements},
               [&](Index begin, Index end) {
                 alignas(64) std::array<C, static_cast<std::size_t>(tile_elements<C>)> sum, row;
                 for (Index g = begin; g < end; ++g)
                   for (Index first = 0; first < width; first += tile_elements<C>) {
                     const Index columns = (std::min)(tile_elements<C>, width - first);
                     std::fill_n(sum.data(), columns, C{0});
                     for (Index k = lookups.start[static_cast<std::size_t>(g)];
                          k < lookups.start[static_cast<std::size_t>(g) + 1]; ++k) {
                       load_tile(rows.row(lookups.order[static_cast<std::size_t>(k)], first, columns),
                                 row.data());
                       for (Index j = 0; j < columns; ++j)
                         sum[static_cast<std::size_t>(j)] += row[static_cast<std::size_t>(j)];
                     }
                     visit(g, first, columns, sum.data());
                   }
               });
}

/// d_table(ids[g]) += scale * (sum of dy over the occurrences of ids[g]).
template <scalar_type S, scalar_type G, std::size_t Rank, device D>
void scatter_add(const D& device, const View<G, 2>& d_table, const Lookups& lookups,
                 const View<const S, Rank>& dy, compute_t<S> scale) {
  using C = compute_t<G>;
  for_each_gradient_row<S>(device, lookups, dy,
                           [&](Index g, Index first, Index columns, const compute_t<S>* sum) {
                             const Position id = lookups.ids[static_cast<std::size_t>(g)];
                             G* to = d_table.data() + id * d_table.stride(0) + first * d_table.stride(1);
                             for (Index j = 0; j < columns; ++j) {
                               G& element = to[j * d_table.stride(1)];
                               element = narrow<G>(widen(element) + static_cast<C>(scale * sum[j]));
                             }
                           });
}

/// The same rows on their own.
template <scalar_type S, std::size_t Rank, device D>
SparseGradient<S> gather_gradient(const D& device, Lookups lookups, const View<const S, Rank>& dy,
                                  compute_t<S> scale) {
  SparseGradient<S> gradient;
  const Index rows = static_cast<Index>(lookups.ids.size()), width = dy.extent(Rank - 1);
  (void)checked_count("dy", rows, width);
  gradient.rows.resize(rows, width);
  for_each_gradient_row<S>(device, lookups, dy,
                           [&](Index g, Index first, Index columns, const compute_t<S>* sum) {
                             for (Index j = 0; j < columns; ++j) gradient.rows(g, first + j) = scale * sum[j];
                           });
  gradient.ids = std::move(lookups.ids);
  return gradient;
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
