#pragma once
// What the verbs accept, and the one view that the kernels see. This is the only header that knows Eigen's
// types.
//
// Accepted is storage, never an expression: Eigen::Tensor, TensorFixedSize and TensorMap of any layout and
// index type; 2-D Matrix, Array, Map, Ref and Block, and Transpose of these, read as (seq, dim); and
// posenc::View over foreign memory with any strides. Axes are logical: the layout changes the strides, never
// the meaning. Where a matrix has a token per column, (dim, seq), its transpose() is what the verbs take.
//
// A vector by its type (VectorXf, RowVectorXf, a column or row of a matrix) is a list, whichever way it
// stands: one row, (1, dim), for the verbs; rank 1 as ids, positions or the bias of a projection.

#include <unsupported/Eigen/CXX11/Tensor>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <type_traits>
#include <utility>

#include "posenc/core/checked.hpp"
#include "posenc/core/error.hpp"
#include "posenc/core/overlap.hpp"
#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// Says that another view has been checked and that this one is a part of it.
struct Unchecked {};

/// Of elements that lie packed, the last axis fastest, or the first. What does not fit wraps around: the
/// constructor of the View refuses the extents.
template <std::size_t Rank>
std::array<Index, Rank> packed_strides(const std::array<Index, Rank>& extents, bool row_major) {
  std::array<Index, Rank> strides{};
  std::uint64_t step = 1;
  for (std::size_t i = 0; i < Rank; ++i) {
    const std::size_t axis = row_major ? Rank - 1 - i : i;
    strides[axis] = static_cast<Index>(step);
    step *= static_cast<std::uint64_t>(extents[axis]);
  }
  return strides;
}

template <std::size_t Rank>
std::string text(const std::array<Index, Rank>& extents) {
  std::string whole = "(";
  for (std::size_t axis = 0; axis < Rank; ++axis) whole += (axis ? ", " : "") + std::to_string(extents[axis]);
  return whole + ")";
}

}  // namespace detail

/// A strided window on memory that somebody else owns: a slice of a packed QKV buffer, a KV cache with its
/// own head stride, a mapped file. Copying a View copies the window, not the elements. A View of const
/// elements is read-only. Strides count elements and may be negative.
template <class T, std::size_t Rank>
class View {
 public:
  /// The type of an element.
  using Scalar = std::remove_const_t<T>;
  /// A size or a stride for each axis.
  using Extents = std::array<Index, Rank>;
  /// How many axes there are.
  static constexpr std::size_t rank = Rank;

  View() = default;

  /// Throws std::invalid_argument for a negative extent, for a null pointer unless some extent is zero, and
  /// where the bytes of all elements (extents of zero left out) or the way to the last of them are no number
  /// below 2^62.
  View(T* data, const Extents& extents, const Extents& strides)
      : data_(data), extents_(extents), strides_(strides) {
    constexpr Index bytes = sizeof(T);
    const auto entries = [&](std::size_t axis) { return extents[axis] == 0 ? Index{1} : extents[axis]; };
    std::int64_t elements = bytes, reach = 0;  // in bytes
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      if (extents[axis] < 0)
        detail::invalid("View: axis ", axis, " expected an extent of at least 0, got ", extents[axis]);
      if (!detail::multiply_fits(elements, entries(axis), elements) || elements > detail::largest_span)
        detail::invalid("View: expected elements of fewer than 2^62 bytes, got extents ",
                        detail::text(extents));
    }
    for (std::size_t axis = 0; axis < Rank; ++axis) {  // an axis of one entry counts with its stride as well
      std::int64_t way = 0;
      if (!detail::multiply_fits(entries(axis), strides[axis], way) ||
          !detail::multiply_fits(way, bytes, way) || way > detail::largest_span ||
          way < -detail::largest_span || (reach += way < 0 ? -way : way) > detail::largest_span)
        detail::invalid("View: expected a last element less than 2^62 bytes away, got extents ",
                        detail::text(extents), " and strides ", detail::text(strides));
    }
    if (data == nullptr && size() != 0) detail::invalid("View: expected memory, got a null pointer");
  }

  /// A part of a view that was checked: for kernels.
  View(detail::Unchecked, T* data, const Extents& extents, const Extents& strides)
      : data_(data), extents_(extents), strides_(strides) {}

  /// Elements that lie packed, the last axis fastest (row-major).
  View(T* data, const Extents& extents) : View(data, extents, packed(extents)) {}

  /// A view is also a view of const elements.
  operator View<const T, Rank>() const
    requires(!std::is_const_v<T>)
  {
    View<const T, Rank> same;
    same.data_ = data_, same.extents_ = extents_, same.strides_ = strides_;  // checked already
    return same;
  }

  /// Element (0, 0, ...).
  T* data() const { return data_; }
  /// The size of every axis.
  const Extents& extents() const { return extents_; }
  /// How many elements lie between two neighbours on every axis.
  const Extents& strides() const { return strides_; }
  /// The size of one axis.
  Index extent(std::size_t axis) const { return extents_[axis]; }
  /// The stride of one axis.
  Index stride(std::size_t axis) const { return strides_[axis]; }

  /// How many elements there are.
  Index size() const {
    Index product = 1;
    for (const Index extent : extents_) product *= extent;
    return product;
  }

  /// The element at these coordinates; unchecked, like a kernel's own access.
  template <class... At>
    requires(sizeof...(At) == Rank)
  T& operator()(At... at) const {
    const Extents where{static_cast<Index>(at)...};
    Index offset = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) offset += where[axis] * strides_[axis];
    return data_[offset];
  }

  /// `count` entries of one axis from `first` on: q, k or v of a packed QKV buffer, a chunk of a cache.
  /// Throws std::invalid_argument where that is not inside the view.
  View slice(std::size_t axis, Index first, Index count) const {
    if (axis >= Rank) detail::invalid("View::slice: expected an axis below ", Rank, ", got ", axis);
    if (first < 0 || count < 0 || first > extents_[axis] - count)
      detail::invalid("View::slice: axis ", axis, " has ", extents_[axis], " entries, got first ", first,
                      " and count ", count);
    View part = *this;
    part.extents_[axis] = count;
    if (part.size() > 0) part.data_ += first * strides_[axis];  // nothing is added to a null pointer
    return part;
  }

  /// The same elements with the axes in another order: axis i of the result is axis order[i] of this view.
  View permute(const std::array<std::size_t, Rank>& order) const {
    View turned = *this;
    std::array<bool, Rank> seen{};
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      if (order[axis] >= Rank || seen[order[axis]])
        detail::invalid("View::permute: expected each axis below ", Rank, " once, got ", order[axis], " at ",
                        axis);
      seen[order[axis]] = true;
      turned.extents_[axis] = extents_[order[axis]];
      turned.strides_[axis] = strides_[order[axis]];
    }
    return turned;
  }

 private:
  template <class U, std::size_t OtherRank>
  friend class View;

  static Extents packed(const Extents& extents) { return detail::packed_strides(extents, true); }

  T* data_ = nullptr;
  Extents extents_{};
  Extents strides_{};
};

namespace detail {

// What a type is, by the name of its template: duck typing would let expressions such as Eigen::TensorRef in.
template <class T>
struct Storage {
  static constexpr bool known = false, owns = false;
  static constexpr std::size_t rank = 0;
};
template <std::size_t Rank, bool Owns>
struct KnownStorage {
  static constexpr bool known = true;
  static constexpr bool owns = Owns;
  static constexpr std::size_t rank = Rank;
};

template <class S, int Rank, int Options, class Ix>
struct Storage<Eigen::Tensor<S, Rank, Options, Ix>> : KnownStorage<std::size_t(Rank), true> {};
template <class S, class D, int Options, class Ix>
struct Storage<Eigen::TensorFixedSize<S, D, Options, Ix>> : KnownStorage<std::size_t(D::count), true> {};
template <class P, int Options, template <class> class Pointer>
struct Storage<Eigen::TensorMap<P, Options, Pointer>> : KnownStorage<std::size_t(P::NumIndices), false> {};
template <class S, int R, int C, int Options, int MaxR, int MaxC>
struct Storage<Eigen::Matrix<S, R, C, Options, MaxR, MaxC>> : KnownStorage<2, true> {};
template <class S, int R, int C, int Options, int MaxR, int MaxC>
struct Storage<Eigen::Array<S, R, C, Options, MaxR, MaxC>> : KnownStorage<2, true> {};
template <class P, int Options, class Stride>
struct Storage<Eigen::Map<P, Options, Stride>> : KnownStorage<2, false> {};
template <class P, int Options, class Stride>
struct Storage<Eigen::Ref<P, Options, Stride>> : KnownStorage<2, false> {};
template <class X, int R, int C, bool Inner>
struct Storage<Eigen::Block<X, R, C, Inner>> : KnownStorage<2, false> {};
template <class X, int Size>
struct Storage<Eigen::VectorBlock<X, Size>> : KnownStorage<2, false> {};
template <class X>  // Transpose has data() whatever it turns; of an expression that would not compile
  requires(Storage<std::remove_const_t<X>>::known && requires(X& x) { *x.data(); })
struct Storage<Eigen::Transpose<X>> : KnownStorage<2, false> {};
template <class T, std::size_t Rank>
struct Storage<View<T, Rank>> : KnownStorage<Rank, false> {};

template <class T>
using storage_of = Storage<std::remove_cvref_t<T>>;

template <class T>
using element_of = std::remove_reference_t<decltype(*std::declval<std::remove_reference_t<T>&>().data())>;

template <class T>
inline constexpr bool is_view = false;
template <class T, std::size_t Rank>
inline constexpr bool is_view<View<T, Rank>> = true;

/// A matrix of one row or one column by its type.
template <class T>
concept vector_by_type = requires {
  requires std::remove_cvref_t<T>::RowsAtCompileTime == 1 || std::remove_cvref_t<T>::ColsAtCompileTime == 1;
};

}  // namespace detail

/// Memory that a kernel can address. An expression (a * 2, a.slice(..), (a * 2).transpose()) is not: evaluate
/// it first.
template <class T>
concept storage_not_expression =
    detail::storage_of<T>::known && requires(std::remove_reference_t<T>& t) { *t.data(); };

/// The type of the elements of a tensor, matrix or View.
template <class T>
using scalar_of = std::remove_cv_t<detail::element_of<T>>;

/// How many axes it has: 2 for a matrix, and for a vector of Eigen, which is one row.
template <class T>
inline constexpr std::size_t rank_of = detail::storage_of<T>::rank;

/// A tensor or matrix of float, double, half or bfloat16 that a verb may read.
template <class T>
concept readable_tensor = storage_not_expression<T> && scalar_type<scalar_of<T>>;

/// A tensor or matrix that a verb may read beside its output: of the same scalar type and rank.
template <class T, class Out>
concept readable_beside =
    readable_tensor<T> && std::same_as<scalar_of<T>, scalar_of<Out>> && rank_of<T> == rank_of<Out>;

template <class T>
concept elements_are_writable = !std::is_const_v<detail::element_of<T>>;

/// A result written into a temporary that owns its memory would be lost with it.
template <class T>
concept not_an_owning_temporary = std::is_lvalue_reference_v<T> || !detail::storage_of<T>::owns;

/// A tensor or matrix that a verb may write: an lvalue, or a temporary that only maps memory.
template <class T>
concept writable_tensor = readable_tensor<T> && elements_are_writable<T> && not_an_owning_temporary<T>;

namespace detail {

template <class Derived, int Access>
void take_expression(const Eigen::TensorBase<Derived, Access>&);

/// Anything of Eigen's that stands for a tensor or matrix without having its elements in memory.
template <class T>
concept eigen_expression =
    !storage_not_expression<T> &&
    (std::derived_from<std::remove_cvref_t<T>, Eigen::EigenBase<std::remove_cvref_t<T>>> ||
     requires(const std::remove_cvref_t<T>& t) { take_expression(t); });

template <class T>
concept id_type = std::signed_integral<T> && (sizeof(T) == 4 || sizeof(T) == 8);

/// std::vector, std::array, std::span and their like.
template <class T>
concept contiguous_list = !storage_not_expression<T> && requires(std::remove_reference_t<T>& t) {
  { *t.data() };
  { t.size() } -> std::convertible_to<std::size_t>;
};

}  // namespace detail

/// Token ids or positions: 32- or 64-bit signed integers in a tensor, matrix, vector, View, or contiguous
/// list (rank 1).
template <class T>
concept integer_tensor = (storage_not_expression<T> || detail::contiguous_list<T>) &&
                         detail::id_type<std::remove_cv_t<detail::element_of<T>>>;

/// An attention mask: bool or integer, nonzero where there is a token.
template <class T>
concept mask_tensor = storage_not_expression<T> && std::integral<std::remove_cv_t<detail::element_of<T>>>;

/// The view of a tensor, matrix or view. Borrows: the memory must outlive the view.
template <storage_not_expression T>
auto view(T&& t) {
  using Type = std::remove_cvref_t<T>;
  using Element = detail::element_of<T>;
  constexpr std::size_t rank = rank_of<T>;
  if constexpr (detail::is_view<Type>) {
    return t;
  } else if constexpr (detail::vector_by_type<Type>) {
    const Index size = t.size(), inner = t.innerStride();
    return View<Element, 2>(t.data(), {1, size}, {size * inner, inner});
  } else if constexpr (requires { t.innerStride(); }) {  // a dense matrix
    const Index inner = t.innerStride(), outer = t.outerStride();
    const std::array<Index, 2> strides =
        Type::IsRowMajor ? std::array<Index, 2>{outer, inner} : std::array<Index, 2>{inner, outer};
    return View<Element, 2>(t.data(), {t.rows(), t.cols()}, strides);
  } else {
    std::array<Index, rank> extents{};
    // Eigen::Sizes, of a fixed-size tensor, counts its axes in signed numbers, Eigen::DSizes in unsigned
    // ones.
    using Axis = std::conditional_t<requires { Type::Dimensions::total_size; }, std::ptrdiff_t, std::size_t>;
    for (std::size_t axis = 0; axis < rank; ++axis)
      extents[axis] = static_cast<Index>(t.dimensions()[static_cast<Axis>(axis)]);
    constexpr bool row_major = static_cast<int>(Type::Layout) == static_cast<int>(Eigen::RowMajor);
    return View<Element, rank>(t.data(), extents, detail::packed_strides(extents, row_major));
  }
}

/// A view of foreign memory, packed row-major: view(pointer, std::array<Index, 4>{batch, seq, heads, dim}).
template <class T, std::size_t Rank>
View<T, Rank> view(T* data, const std::array<Index, Rank>& extents) {
  return {data, extents};
}

/// A view of foreign memory with strides of its own, counted in elements.
template <class T, std::size_t Rank>
View<T, Rank> view(T* data, const std::array<Index, Rank>& extents, const std::array<Index, Rank>& strides) {
  return {data, extents, strides};
}

/// The heads of a packed projection: (batch, seq, heads * dim) or (seq, heads * dim) seen as (..., heads,
/// dim), Axes bshd or shd. Borrows. Throws std::invalid_argument unless num_heads divides the last axis.
template <storage_not_expression T>
  requires(rank_of<T> == 2 || rank_of<T> == 3)
auto split_heads(T&& t, Index num_heads) {
  const auto x = view(t);
  constexpr std::size_t rank = rank_of<T>;
  if (num_heads < 1 || x.extent(rank - 1) % num_heads != 0)
    detail::invalid("split_heads: expected a number of heads that divides ", x.extent(rank - 1), ", got ",
                    num_heads);
  std::array<Index, rank + 1> extents{}, strides{};
  for (std::size_t axis = 0; axis + 1 < rank; ++axis)
    extents[axis] = x.extent(axis), strides[axis] = x.stride(axis);
  const Index dim = x.extent(rank - 1) / num_heads;
  extents[rank - 1] = num_heads, strides[rank - 1] = dim * x.stride(rank - 1);
  extents[rank] = dim, strides[rank] = x.stride(rank - 1);
  return View<detail::element_of<T>, rank + 1>(x.data(), extents, strides);
}

/// A wrong call: the compiler says what is wrong with it.
template <class T>
  requires(!storage_not_expression<T> || (rank_of<T> != 2 && rank_of<T> != 3))
View<float, 3> split_heads(T&&, Index)
    __attribute__((unavailable("posenc: split_heads expects a tensor or matrix in memory, of rank 2 or 3: "
                               "(batch, seq, heads * dim) or (seq, heads * dim)")));

/// The order of the axes of queries, keys or values. (batch, seq, heads, dim) and (batch, heads, seq, dim)
/// can't be told apart by their shape, and a wrong guess rotates every head by its own number: so rank 4 has
/// no default.
enum class Axes {
  bshd,  ///< (batch, seq, heads, dim)
  bhsd,  ///< (batch, heads, seq, dim)
  shd,   ///< (seq, heads, dim): one sequence, or ragged sequences packed one after another
  hsd,   ///< (heads, seq, dim)
  bsd,   ///< (batch, seq, dim)
  sd     ///< (seq, dim)
};

/// The Axes argument of a verb on a tensor of this rank. May be left out only where the shape leaves no
/// doubt: rank 2 is (seq, dim), rank 3 is (batch, seq, dim).
template <std::size_t Rank>
class NamedAxes {
 public:
  /// The order as stated.
  constexpr NamedAxes(Axes axes)  // NOLINT: implicit, so that Axes::bshd can be passed
    requires(Rank >= 2 && Rank <= 4)
      : axes_(axes) {}
  constexpr NamedAxes()
    requires(Rank == 2 || Rank == 3)
      : axes_(Rank == 2 ? Axes::sd : Axes::bsd) {}

  // Mistakes, which the compiler refuses with these words.
  __attribute__((
      unavailable("posenc: a tensor of rank 4 needs its axes named: Axes::bshd is (batch, seq, "
                  "heads, dim), Axes::bhsd is (batch, heads, seq, dim)")))
  NamedAxes()
    requires(Rank == 4);
  __attribute__((unavailable("posenc: expected a tensor of rank 2, 3 or 4"))) NamedAxes()
    requires(Rank < 2 || Rank > 4);
  __attribute__((unavailable("posenc: expected a tensor of rank 2, 3 or 4"))) NamedAxes(Axes)
    requires(Rank < 2 || Rank > 4);

  /// The order.
  constexpr Axes value() const { return axes_; }

 private:
  Axes axes_;
};

namespace detail {

inline const char* name_of(Axes axes) {
  switch (axes) {
    case Axes::bshd: return "bshd (batch, seq, heads, dim)";
    case Axes::bhsd: return "bhsd (batch, heads, seq, dim)";
    case Axes::shd: return "shd (seq, heads, dim)";
    case Axes::hsd: return "hsd (heads, seq, dim)";
    case Axes::bsd: return "bsd (batch, seq, dim)";
    case Axes::sd: return "sd (seq, dim)";
  }
  return "an unknown value";
}

/// Any q or k as (batch, seq, heads, dim): what the kernels see.
template <class T, std::size_t Rank>
View<T, 4> as_bshd(const char* name, const View<T, Rank>& x, NamedAxes<Rank> axes) {
  if constexpr (Rank == 4)
    if (axes.value() == Axes::bshd) return x;
  constexpr std::size_t none = Rank;
  std::array<std::size_t, 4> from{};
  std::size_t needed = 0;
  switch (axes.value()) {
    case Axes::bshd: from = {0, 1, 2, 3}, needed = 4; break;
    case Axes::bhsd: from = {0, 2, 1, 3}, needed = 4; break;
    case Axes::shd: from = {none, 0, 1, 2}, needed = 3; break;
    case Axes::hsd: from = {none, 1, 0, 2}, needed = 3; break;
    case Axes::bsd: from = {0, 1, none, 2}, needed = 3; break;
    case Axes::sd: from = {none, 0, none, 1}, needed = 2; break;
  }
  if (needed != Rank)
    invalid(name, ": expected a tensor of rank ", needed, " for Axes::", name_of(axes.value()), ", got rank ",
            Rank);
  std::array<Index, 4> extents{}, strides{};
  for (std::size_t axis = 0; axis < 4; ++axis) {
    const bool given = from[axis] < Rank;
    extents[axis] = given ? x.extent(from[axis]) : 1;
    strides[axis] = given ? x.stride(from[axis]) : 0;
  }
  return {Unchecked(), x.data(), extents, strides};
}

/// (dim), (seq, dim) or (batch, seq, dim) as (batch, seq, dim).
template <class T, std::size_t Rank>
View<T, 3> as_bsd(const View<T, Rank>& x) {
  static_assert(Rank >= 1 && Rank <= 3, "posenc: expected a tensor of (seq, dim) or (batch, seq, dim)");
  if constexpr (Rank == 3)
    return x;
  else if constexpr (Rank == 2)
    return {Unchecked(), x.data(), {1, x.extent(0), x.extent(1)}, {0, x.stride(0), x.stride(1)}};
  else
    return {Unchecked(), x.data(), {1, 1, x.extent(0)}, {0, 0, x.stride(0)}};
}

template <class A, class B, std::size_t Rank>
void require_same_shape(const char* name, const View<A, Rank>& expected, const View<B, Rank>& got) {
  if (expected.extents() != got.extents())
    invalid(name, ": expected shape ", text(expected.extents()), ", got ", text(got.extents()));
}

/// An output in which two coordinates share an element (a broadcast, overlapping rows) can't hold a result.
/// That no two do is known where each stride is longer than all shorter ones together reach, as in any part
/// of a packed tensor, its axes in any order; others are refused, also {3, 2} on extents {2, 3}, where the
/// elements of two axes happen to interleave.
template <class T, std::size_t Rank>
void require_distinct_elements(const char* name, const View<T, Rank>& x) {
  if (x.size() == 0) return;
  for (std::size_t axis = 0; axis < Rank; ++axis)
    if (x.extent(axis) > 1 && x.stride(axis) == 0)
      invalid(name, ": expected an element for each coordinate, got stride 0 on axis ", axis, " of extent ",
              x.extent(axis));
  if (!Footprint<Rank>(x).is_nested())
    invalid(name, ": expected an element for each coordinate, got overlapping strides ", text(x.strides()),
            " of extents ", text(x.extents()));
}

/// The view of an output, checked.
template <writable_tensor T>
auto output_view(const char* name, T&& t) {
  const auto out = view(t);
  require_distinct_elements(name, out);
  return out;
}

/// The read-only view of an input.
template <readable_tensor T>
auto input_view(const T& t) {
  return View<const scalar_of<T>, rank_of<T>>(view(t));
}

/// Throws unless an output and something else that the call reads or writes have no memory in common.
template <class A, class B>
void require_apart(const char* name, const A& out, const char* other_name, const B& other) {
  if (share_memory(out, other))
    invalid(name, ": expected memory apart from ", other_name, ", got some of it");
}

/// The same of two of one shape, which may also be one and the same.
template <class A, class B>
void require_same_or_apart(const char* name, const A& out, const char* in_name, const B& in) {
  if (!are_the_same(out, in) && share_memory(out, in))
    invalid(name, ": expected ", in_name, " itself or memory apart from it, got some of it in another place");
}

/// The output of a verb and its input, of one shape.
template <scalar_type S, std::size_t Rank>
struct OutAndIn {
  View<S, Rank> out;
  View<const S, Rank> in;
};

/// What every out of place verb asks of the two: one scalar type, rank and shape, an element of the output
/// for each coordinate, and the output being the input itself or memory apart from it. In place, `out` and
/// `in` are one object.
template <writable_tensor Out, readable_tensor In>
auto out_and_in(const char* name, Out&& out, const char* in_name, const In& in) {
  using S = scalar_of<Out>;
  static_assert(std::same_as<S, scalar_of<In>>,
                "posenc: the output and the input must have the same scalar type");
  static_assert(rank_of<Out> == rank_of<In>, "posenc: the output and the input must have the same rank");
  using Two = OutAndIn<S, rank_of<Out>>;
  const auto result = output_view(name, out);
  if (static_cast<const void*>(&out) == static_cast<const void*>(&in)) return Two{result, result};
  const auto input = input_view(in);
  require_same_shape(name, input, result);
  require_same_or_apart(name, result, in_name, input);
  return Two{result, input};
}

/// The read-only view of ids, positions or a mask; a compile-time vector or a list has rank 1.
template <class T>
auto integer_view(const T& t) {
  using Element = std::add_const_t<element_of<const T>>;
  if constexpr (!storage_not_expression<T>) {
    return View<Element, 1>(t.data(), {static_cast<Index>(t.size())});
  } else if constexpr (vector_by_type<T>) {
    return View<Element, 1>(t.data(), {t.size()}, {t.innerStride()});
  } else {
    return View<Element, rank_of<T>>(view(t));
  }
}

template <class T>
inline constexpr std::size_t integer_rank = decltype(integer_view(std::declval<const T&>()))::rank;

}  // namespace detail
}  // namespace v0
}  // namespace posenc
