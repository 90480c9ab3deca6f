#pragma once
// Where the elements of a view lie, and whether two views have some in common. Two questions of a verb: can
// its output hold a result, an element for each coordinate; and is it its input itself or apart from it. The
// queries and keys of a packed buffer are apart, although the one's memory begins before the other's ends.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// One step of a walk through memory: `bytes` > 0 on, up to `most` times.
struct Step {
  Index bytes, most;
};

/// The bytes of a view that has elements: `first` and all that steps from there lead to. A negative stride is
/// the same set of bytes from its other end. Axes of one entry and of stride 0 lead nowhere; the bytes of an
/// element are the last axis. Longest steps first.
template <std::size_t Rank>
class Footprint {
 public:
  template <class View>
  explicit Footprint(const View& x) : first_(reinterpret_cast<std::uintptr_t>(x.data())) {
    constexpr Index size = sizeof(*x.data());
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      const Index most = x.extent(axis) - 1, stride = x.stride(axis) * size;
      if (most == 0 || stride == 0) continue;
      if (stride < 0) first_ -= static_cast<std::uintptr_t>(-stride) * static_cast<std::uintptr_t>(most);
      put({stride < 0 ? -stride : stride, most});
    }
    steps_[count_++] = {1, size - 1}, reach_ += size - 1;
  }

  std::uintptr_t first() const { return first_; }
  /// From the first byte to the last.
  Index reach() const { return reach_; }
  std::size_t count() const { return count_; }
  const Step& step(std::size_t n) const { return steps_[n]; }

  /// Whether each step is longer than all shorter ones together: then no two coordinates share an element.
  bool is_nested() const {
    Index shorter = 0;
    for (std::size_t n = count_; n-- > 0;) {
      if (steps_[n].bytes <= shorter) return false;
      shorter += steps_[n].bytes * steps_[n].most;
    }
    return true;
  }

 private:
  void put(const Step& step) {
    std::size_t n = count_++;
    for (; n > 0 && steps_[n - 1].bytes < step.bytes; --n) steps_[n] = steps_[n - 1];
    steps_[n] = step;
    reach_ += step.bytes * step.most;
  }

  std::uintptr_t first_;
  Index reach_ = 0;
  std::size_t count_ = 0;
  std::array<Step, Rank + 1> steps_;
};

/// Whether two footprints have a byte in common: whether some a's steps and b's lead to the same place. Takes
/// the steps of both by length and follows those that can still get there, which are two of a kind at most
/// where a's and b's strides are the same. Says yes where it would take more than 256 of them.
template <std::size_t RankA, std::size_t RankB>
class Meeting {
 public:
  Meeting(const Footprint<RankA>& a, const Footprint<RankB>& b)
      : apart_(static_cast<Index>(b.first() - a.first())) {
    std::size_t i = 0, j = 0;
    while (i < a.count() || j < b.count()) {
      Both& both = steps_[count_++];
      const Index next_a = i < a.count() ? a.step(i).bytes : 0, next_b = j < b.count() ? b.step(j).bytes : 0;
      both.bytes = (std::max)(next_a, next_b);
      for (; i < a.count() && a.step(i).bytes == both.bytes; ++i) both.on += a.step(i).most;
      for (; j < b.count() && b.step(j).bytes == both.bytes; ++j) both.back += b.step(j).most;
    }
    for (std::size_t n = count_ - 1; n-- > 0;) {
      const Both& shorter = steps_[n + 1];
      steps_[n].rest_on = shorter.rest_on + shorter.bytes * shorter.on;
      steps_[n].rest_back = shorter.rest_back + shorter.bytes * shorter.back;
    }
  }

  bool exists() { return leads(0, apart_); }

 private:
  /// Steps of one length: up to `on` of a's less up to `back` of b's; and how far all shorter ones can get.
  struct Both {
    Index bytes = 0, on = 0, back = 0, rest_on = 0, rest_back = 0;
  };

  bool leads(std::size_t n, Index left) {
    if (n == count_) return left == 0;
    const Both& s = steps_[n];
    const Index least = (std::max)(-s.back, ceiling(left - s.rest_on, s.bytes));
    const Index most = (std::min)(s.on, -ceiling(-(left + s.rest_back), s.bytes));
    for (Index times = least; times <= most; ++times)
      if (--tries_ < 0 || leads(n + 1, left - times * s.bytes)) return true;
    return false;
  }
  static Index ceiling(Index a, Index b) { return a / b + (a % b > 0 ? 1 : 0); }

  Index apart_;
  std::size_t count_ = 0;
  int tries_ = 256;
  std::array<Both, RankA + RankB + 2> steps_;
};

/// Whether two views of any types have a byte in common.
template <class A, class B>
bool share_memory(const A& a, const B& b) {
  if (a.size() == 0 || b.size() == 0) return false;
  const Footprint<A::rank> of_a(a);
  const Footprint<B::rank> of_b(b);
  const std::uintptr_t first_a = of_a.first(), first_b = of_b.first();
  if (first_a < first_b ? first_b - first_a > static_cast<std::uintptr_t>(of_a.reach())
                        : first_a - first_b > static_cast<std::uintptr_t>(of_b.reach()))
    return false;
  return Meeting<A::rank, B::rank>(of_a, of_b).exists();
}

/// Whether two views of one shape are the same elements in the same order.
template <class A, class B>
bool are_the_same(const A& a, const B& b) {
  if (static_cast<const void*>(a.data()) != static_cast<const void*>(b.data())) return false;
  for (std::size_t axis = 0; axis < A::rank; ++axis)
    if (a.extent(axis) > 1 && a.stride(axis) != b.stride(axis)) return false;
  return true;
}

}  // namespace detail
}  // namespace v0
}  // namespace posenc
