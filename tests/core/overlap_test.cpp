#include "posenc/core/overlap.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <random>
#include <set>
#include <vector>

#include "posenc/core/tensor.hpp"
#include "support/support.hpp"

namespace {

using namespace posenc_test;
using posenc::View;
using posenc::detail::Footprint;
using posenc::detail::share_memory;

/// The addresses of all bytes of a view, once for each element that they belong to.
template <class T, std::size_t Rank>
std::multiset<const unsigned char*> bytes_of(const View<T, Rank>& x) {
  std::multiset<const unsigned char*> bytes;
  for_each_coordinate(x.extents(), [&](const auto& at, Index) {
    for (std::size_t n = 0; n < sizeof(T); ++n)
      bytes.insert(reinterpret_cast<const unsigned char*>(&element(x, at)) + n);
  });
  return bytes;
}

template <class A, class B>
bool really_share(const A& a, const B& b) {
  const auto in_a = bytes_of(a), in_b = bytes_of(b);
  for (const unsigned char* byte : in_a)
    if (in_b.count(byte) != 0) return true;
  return false;
}

template <class T, std::size_t Rank>
bool really_distinct(const View<T, Rank>& x) {
  const auto bytes = bytes_of(x);
  return std::set<const unsigned char*>(bytes.begin(), bytes.end()).size() == bytes.size();
}

/// Parts of a packed tensor, as slicing, stepping, turning round and exchanging axes make them.
class Parts {
 public:
  explicit Parts(unsigned seed) : generator_(seed) {}

  Index below(Index n) { return std::uniform_int_distribution<Index>(0, n - 1)(generator_); }

  template <class T>
  View<T, 3> of(const View<T, 3>& whole) {
    View<T, 3> part = whole;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const Index first = below(part.extent(axis));
      part = part.slice(axis, first, 1 + below(part.extent(axis) - first));
    }
    auto extents = part.extents(), strides = part.strides();
    T* data = part.data();
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (below(3) == 0) extents[axis] = (extents[axis] + 1) / 2, strides[axis] *= 2;  // every other entry
      if (below(3) == 0) data += (extents[axis] - 1) * strides[axis], strides[axis] = -strides[axis];
    }
    std::array<std::size_t, 3> order = {0, 1, 2};
    std::swap(order[0], order[static_cast<std::size_t>(below(3))]);
    std::swap(order[1], order[static_cast<std::size_t>(1 + below(2))]);
    return View<T, 3>(data, extents, strides).permute(order);
  }

 private:
  std::mt19937 generator_;
};

}  // namespace

TEST_CASE("overlap: parts of one packed tensor share memory exactly where they have an element in common",
          "[property]") {
  std::vector<float> memory(1000);
  Parts parts(1);
  int apart = 0, interleaved = 0, shared = 0;
  for (int n = 0; n < 4000; ++n) {
    const View<float, 3> whole(memory.data(), {1 + parts.below(4), 1 + parts.below(5), 1 + parts.below(6)});
    const auto a = parts.of(whole), b = parts.of(whole);
    REQUIRE(Footprint<3>(a).is_nested());
    const bool truth = really_share(a, b);
    REQUIRE(share_memory(a, b) == truth);
    REQUIRE(share_memory(b, a) == truth);
    const auto in_a = bytes_of(a), in_b = bytes_of(b);
    const bool ranges_meet = *in_a.begin() <= *in_b.rbegin() && *in_b.begin() <= *in_a.rbegin();
    truth ? ++shared : ranges_meet ? ++interleaved : ++apart;
  }
  CHECK(apart > 200);
  CHECK(interleaved > 200);
  CHECK(shared > 200);
}

TEST_CASE("overlap: any strides, types and ranks: never missed, and exact for few elements", "[property]") {
  std::vector<double> memory(200);
  std::mt19937 generator(2);
  const auto number = [&](Index low, Index high) {
    return std::uniform_int_distribution<Index>(low, high)(generator);
  };
  int nested = 0, not_nested = 0;
  for (int n = 0; n < 4000; ++n) {
    const View<float, 3> a(reinterpret_cast<float*>(memory.data()) + 100 + number(0, 100),
                           {number(1, 4), number(1, 4), number(1, 4)},
                           {number(-8, 8), number(-8, 8), number(-8, 8)});
    const View<const double, 2> b(memory.data() + 50 + number(0, 50), {number(1, 4), number(1, 4)},
                                  {number(-5, 5), number(-5, 5)});
    REQUIRE(share_memory(a, b) == really_share(a, b));
    bool no_broadcast = true;
    for (std::size_t axis = 0; axis < 3; ++axis)
      no_broadcast = no_broadcast && (a.extent(axis) == 1 || a.stride(axis) != 0);
    if (no_broadcast && Footprint<3>(a).is_nested()) {
      ++nested;
      REQUIRE(really_distinct(a));
    } else {
      ++not_nested;
    }
  }
  CHECK(nested > 200);
  CHECK(not_nested > 200);
}

TEST_CASE("overlap: queries, keys and values of one packed buffer are apart") {
  std::vector<float> memory(2 * 5 * 3 * 4 * 8);
  const View<float, 5> packed(memory.data(), {2, 5, 3, 4, 8});  // (batch, seq, q k v, heads, dim)
  const auto part = [&](Index which) {
    const auto one = packed.slice(2, which, 1);
    return View<float, 4>(one.data(), {2, 5, 4, 8}, {480, 96, 8, 1});
  };
  CHECK(!share_memory(part(0), part(1)));
  CHECK(!share_memory(part(2), part(0)));
  CHECK(share_memory(part(1), part(1)));
  CHECK(share_memory(part(1), part(1).slice(3, 7, 1)));
  // One float on: the last of a row is the first of the next part.
  const View<float, 4> moved(part(0).data() + 1, {2, 5, 4, 8}, {480, 96, 8, 1});
  CHECK(share_memory(part(0), moved));
  CHECK(share_memory(part(1), moved));
  CHECK(!share_memory(part(2), moved));
  // Even and odd elements, and halves of a float.
  const View<float, 1> even(memory.data(), {100}, {2}), odd(memory.data() + 1, {100}, {2});
  CHECK(!share_memory(even, odd));
  const View<std::int16_t, 1> halves(reinterpret_cast<std::int16_t*>(memory.data()) + 2, {50}, {4});
  CHECK(!share_memory(even, halves));
  CHECK(share_memory(odd, halves));
}

TEST_CASE("overlap: what is empty shares nothing, and what would take long to tell is taken for shared") {
  std::vector<float> memory(4000);
  const View<float, 2> none(memory.data(), {4, 0}, {1, 1}), null(nullptr, {0, 7}, {100, 1});
  const View<float, 2> some(memory.data(), {3, 3});
  CHECK(!share_memory(none, some));
  CHECK(!share_memory(some, none));
  CHECK(!share_memory(null, none));
  // Multiples of 6 and odd multiples of 3, written as sums of steps in many ways.
  const View<float, 3> a(memory.data(), {20, 20, 20}, {6, 12, 18});
  const View<float, 3> b(memory.data() + 3, {20, 20, 20}, {30, 24, 36});
  CHECK(!really_share(a, b));
  CHECK(share_memory(a, b));
}

TEST_CASE("overlap: the same elements are those in the same order") {
  using posenc::detail::are_the_same;
  std::vector<float> memory(16);
  const View<float, 2> x(memory.data(), {4, 4}), turned = x.permute({1, 0});
  CHECK(are_the_same(x, x));
  CHECK_FALSE(are_the_same(x, turned));
  CHECK_FALSE(are_the_same(x.slice(0, 1, 3), x.slice(0, 0, 3)));
  CHECK(are_the_same(x.slice(0, 2, 1), View<float, 2>(memory.data() + 8, {1, 4}, {99, 1})));  // one row
}
