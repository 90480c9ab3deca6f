#pragma once
// What the layers compute on. An activation is a (tokens, features) matrix, row-major, that lives in a
// Workspace and is passed around as a posenc::View: posenc's verbs take it as it is, and `matrix` maps it for
// Eigen's products. A Pass is one forward (and backward) pass over one part of a batch.

#include <Eigen/Core>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "posenc/core/tensor.hpp"

namespace transformer {

using posenc::Index;
using posenc::View;

template <class Scalar>
using Matrix = Eigen::Matrix<Scalar, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <class Scalar>
using Vector = Eigen::Matrix<Scalar, Eigen::Dynamic, 1>;

namespace detail {

template <class T>
using MatrixOf = std::conditional_t<std::is_const_v<T>, const Matrix<std::remove_const_t<T>>, Matrix<T>>;

}  // namespace detail

/// A packed view as an Eigen matrix.
template <class T>
Eigen::Map<detail::MatrixOf<T>> matrix(const View<T, 2>& x) {
  eigen_assert(x.stride(1) == 1 && (x.stride(0) == x.extent(1) || x.extent(0) <= 1));
  return {x.data(), x.extent(0), x.extent(1)};
}

/// A view whose rows have gaps between them, such as one head of a packed projection.
template <class T>
Eigen::Map<detail::MatrixOf<T>, Eigen::Unaligned, Eigen::OuterStride<>> strided(const View<T, 2>& x) {
  eigen_assert(x.stride(1) == 1);
  return {x.data(), x.extent(0), x.extent(1), Eigen::OuterStride<>(x.stride(0))};
}

/// The same elements, read-only.
template <class T>
View<const T, 2> as_const(const View<T, 2>& x) {
  return x;
}

/// Memory for the activations of a step. It is handed out front to back and all taken back at once, so after
/// the first steps nothing is allocated any more. Every matrix starts on a 64-byte boundary: Eigen's sums
/// depend, in their last bit, on how memory is aligned, and the same seed is to give the same bits.
template <class Scalar>
class Workspace {
  struct Mark {
    std::size_t block = 0;
    Index used = 0;
  };

 public:
  Workspace() = default;
  Workspace(Workspace&&) = default;
  Workspace& operator=(Workspace&&) = default;

  /// A packed matrix of unspecified contents, valid until reset() or the end of the enclosing Scope.
  View<Scalar, 2> matrix(Index rows, Index cols) { return {take(rows * cols), {rows, cols}}; }
  /// The same as (d0, d1, d2), packed.
  View<Scalar, 3> tensor(Index d0, Index d1, Index d2) { return {take(d0 * d1 * d2), {d0, d1, d2}}; }

  /// Takes everything back, and joins what had to be allocated piecemeal into one block.
  void reset() {
    if (blocks_.size() > 1) {
      Index total = 0;
      for (const Block& block : blocks_) total += block.size;
      blocks_.clear();
      blocks_.emplace_back(total);
    }
    at_ = {};
  }

  /// What was handed out during the life of a Scope is taken back at its end.
  class Scope {
   public:
    explicit Scope(Workspace& workspace) : workspace_(workspace), at_(workspace.at_) {}
    ~Scope() { workspace_.at_ = at_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Workspace& workspace_;
    Mark at_;
  };

 private:
  static constexpr Index alignment = 64, smallest_block = Index{1} << 12;

  struct Block {
    explicit Block(Index elements) : memory(elements + alignment), size(elements) {}
    Scalar* start() {
      const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
      const std::uintptr_t aligned = (address + alignment - 1) / alignment * alignment;
      return memory.data() + static_cast<Index>((aligned - address) / sizeof(Scalar));
    }
    Vector<Scalar> memory;
    Index size;
  };

  Scalar* take(Index elements) {
    constexpr Index step = alignment / static_cast<Index>(sizeof(Scalar));
    const Index rounded = (std::max)(Index{1}, (elements + step - 1) / step) * step;
    while (at_.block < blocks_.size() && at_.used + rounded > blocks_[at_.block].size)
      at_ = {at_.block + 1, 0};
    if (at_.block == blocks_.size()) {
      const Index last = blocks_.empty() ? smallest_block : 2 * blocks_.back().size;
      blocks_.emplace_back((std::max)(rounded, last));
    }
    Scalar* start = blocks_[at_.block].start() + at_.used;
    at_.used += rounded;
    return start;
  }

  std::vector<Block> blocks_;
  Mark at_;
};

template <class Scalar>
void set_zero(const View<Scalar, 2>& x) {
  std::fill_n(x.data(), x.size(), Scalar{0});
}

/// A copy of a matrix in the workspace.
template <class Scalar, class T>
View<Scalar, 2> copy(Workspace<Scalar>& workspace, const View<T, 2>& x) {
  const View<Scalar, 2> y = workspace.matrix(x.extent(0), x.extent(1));
  matrix(y) = matrix(x);
  return y;
}

}  // namespace transformer
