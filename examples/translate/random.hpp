#pragma once
// Numbers drawn by counting: the n-th draw depends on the seed and n alone, on every platform alike (the
// distributions of <random> don't promise that).

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace translate {

/// Mixes all bits of x into each other: the finaliser of SplitMix64 (Steele, Lea and Flood 2014).
inline constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit constexpr Random(std::uint64_t seed, std::uint64_t stream = 0) : state_(mix(mix(seed) + stream)) {}

  constexpr std::uint64_t next() { return mix(state_++); }

  /// One of 0, ..., n - 1; n is small against 2^32.
  constexpr std::size_t below(std::size_t n) {
    return static_cast<std::size_t>(((next() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }

  constexpr bool chance(unsigned percent) { return below(100) < percent; }

  template <class T>
  const T& pick(const std::vector<T>& from) {
    return from[below(from.size())];
  }

  template <class T>
  void shuffle(std::vector<T>& items) {
    for (std::size_t n = items.size(); n > 1; --n) std::swap(items[n - 1], items[below(n)]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace translate
