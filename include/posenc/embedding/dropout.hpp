#pragma once
// Inverted dropout (Srivastava et al. 2014; "Attention Is All You Need", section 5.4): each element is zeroed
// with probability p, the others are divided by 1 - p, so that evaluation needs no correction.
//
// The mask is counter-based: whether element n survives depends on (seed, n) alone, through Philox4x32-10
// (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3"). So it is the same for any number of
// threads and any layout, and the gradient replays it from the seed instead of storing it.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

#include "posenc/core/finite.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

namespace posenc {
inline namespace v0 {

/// Whether a call trains (dropout acts) or evaluates (dropout is the identity, bit for bit).
enum class Mode { eval, train };

namespace detail {

/// Philox4x32-10: four random words for a 128-bit counter and a 64-bit key.
inline std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                           std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t a = std::uint64_t{0xd2511f53u} * counter[0],
                        b = std::uint64_t{0xcd9e8d57u} * counter[2];
    counter = {static_cast<std::uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(b),
               static_cast<std::uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(a)};
    key[0] += 0x9e3779b9u;
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

}  // namespace detail

/// The layer: an immutable value that holds p and no state.
class Dropout {
 public:
  /// p: the probability of an element to be zeroed, with a resolution of 2^-32. Throws std::invalid_argument
  /// unless it is in [0, 1]. p = 0 is the identity and p = 1 is zero, both exactly.
  explicit Dropout(double p) : p_(p) {
    if (!detail::is_within(p, 0.0, 1.0)) detail::invalid("p: expected a probability in [0, 1], got ", p);
    threshold_ = static_cast<std::uint64_t>(std::llround(p * 0x1p32));
  }

  /// The probability of an element to be zeroed.
  double p() const { return p_; }

  /// Whether element n (its index in logical, row-major order) survives in training under this seed.
  bool keeps(std::uint64_t seed, std::uint64_t n) const { return words(seed, n / 4)[n % 4] >= threshold_; }

  /// x = mask x / (1 - p), in place, any rank. Mode::eval does nothing. Use another seed at every step and
  /// layer. Element n of x counts as first_element + n: give a shard the number of elements before it, and it
  /// gets the mask that it has in the whole. Behind the last number of 64 bits it goes on from 0.
  template <writable_tensor X>
  void apply(X&& x, Mode mode, std::uint64_t seed, std::uint64_t first_element = 0) const {
    apply(Eigen::DefaultDevice(), x, x, mode, seed, first_element);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void apply(const D& device, X&& x, Mode mode, std::uint64_t seed, std::uint64_t first_element = 0) const {
    apply(device, x, x, mode, seed, first_element);
  }

  /// out = mask x / (1 - p). out is x itself or memory apart from it.
  template <writable_tensor Out, readable_beside<Out> X>
  void apply(Out&& out, const X& x, Mode mode, std::uint64_t seed, std::uint64_t first_element = 0) const {
    apply(Eigen::DefaultDevice(), out, x, mode, seed, first_element);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_beside<Out> X>
  void apply(const D& device, Out&& out, const X& x, Mode mode, std::uint64_t seed,
             std::uint64_t first_element = 0) const {
    using S = scalar_of<Out>;
    const auto [result, input] = detail::out_and_in("out", out, "x", x);
    if (mode == Mode::eval || threshold_ == 0) {
      if (detail::are_the_same(result, input)) return;
      detail::for_each_bsd(
          [](Index, const View<S, 3>& to, const View<const S, 3>& from) {
            for (Index b = 0; b < to.extent(0); ++b)
              detail::copy_tile(detail::entry(to, b), detail::entry(from, b));
          },
          0, result, input);
      return;
    }
    detail::for_each_bsd(
        [&](Index before, const View<S, 3>& to, const View<const S, 3>& from) {
          apply_views<S>(device, to, from, seed,
                         first_element + static_cast<std::uint64_t>(before * to.extent(2)));
        },
        0, result, input);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InOrOutOfPlace, Args...> apply(Args&&...) const;

  /// dx = mask dx / (1 - p), in place: dropout is linear, so its gradient is itself under the same mode, seed
  /// and first_element as the forward call.
  template <writable_tensor X>
  void apply_vjp(X&& dx, Mode mode, std::uint64_t seed, std::uint64_t first_element = 0) const {
    apply(dx, mode, seed, first_element);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void apply_vjp(const D& device, X&& dx, Mode mode, std::uint64_t seed,
                 std::uint64_t first_element = 0) const {
    apply(device, dx, mode, seed, first_element);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> apply_vjp(Args&&...) const;

  /// row[c] = mask row / (1 - p) for elements first_element + c, c in [0, count): for kernels that fuse it.
  template <std::floating_point C>
  void mask_row(std::uint64_t seed, std::uint64_t first_element, Index count, C* row) const {
    const C scale = static_cast<C>(1.0 / (1.0 - p_));
    std::array<std::uint32_t, 4> random{};
    for (Index c = 0; c < count; ++c) {
      const std::uint64_t n = first_element + static_cast<std::uint64_t>(c);
      if (c == 0 || n % 4 == 0) random = words(seed, n / 4);
      row[c] = random[n % 4] >= threshold_ ? row[c] * scale : C{0};
    }
  }

 private:
  // The verb ends here whatever tensor it was called with, so each scalar type compiles the kernel once.
  template <scalar_type S, device D>
  void apply_views(const D& device, const View<S, 3>& out, const View<const S, 3>& in, std::uint64_t seed,
                   std::uint64_t first_element) const {
    detail::map_tiles<S>(
        device, out, false, detail::NothingShared{},
        [&](const detail::Tile& tile, const compute_t<S>*, compute_t<S>* values) {
          detail::load_tile(tile.of(in), values);
          const Index row = tile.batch * out.extent(1) + tile.seq;
          for (Index r = 0; r < tile.rows; ++r)
            mask_row(seed, first_element + static_cast<std::uint64_t>((row + r) * out.extent(2) + tile.first),
                     tile.columns, values + r * tile.columns);
        });
  }

  static std::array<std::uint32_t, 4> words(std::uint64_t seed, std::uint64_t block) {
    return detail::philox({static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0},
                          {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32)});
  }

  double p_;
  std::uint64_t threshold_ = 0;
};

}  // namespace v0
}  // namespace posenc
