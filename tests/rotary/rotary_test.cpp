// Rotary: the equations that make it one, for every scalar type, on plain packed memory. How it meets other
// memory (layouts, slices, caches) is in rotary_storage_test.cpp.

// Before the first include: for Eigen::ThreadPoolDevice, which posenc does not need.
#define EIGEN_USE_THREADS

#include "posenc/rotary/rotary.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "support/overlap.hpp"
#include "support/support.hpp"

using Eigen::bfloat16;
using Eigen::half;
using posenc::Axes;
using posenc::Index;
using posenc::Pairing;
using posenc::Position;
using posenc::Positions;
using posenc::Rotary;
using posenc::View;
using posenc::Window;
using posenc_test::check_throws;
using posenc_test::dot;
using posenc_test::epsilon;
using posenc_test::random_values;
using posenc_test::same_bits;
using posenc_test::to_double;
using posenc_test::Values;
using posenc_test::values_of;

namespace {

/// Queries or keys as (batch, seq, heads, dim).
template <class S>
using Heads = Values<S, 4>;

/// A way of rotating a head: which pairs, and where they lie.
struct Kind {
  Pairing pairing;
  Index head_dim, rotary_dim, first;
  Window window;

  Index u(Index pair) const { return first + (pairing == Pairing::half ? pair : 2 * pair); }
  Index w(Index pair) const {
    return first + (pairing == Pairing::half ? pair + rotary_dim / 2 : 2 * pair + 1);
  }
  bool turns(Index dim) const { return dim >= first && dim < first + rotary_dim; }
  std::string name() const {
    return std::string(pairing == Pairing::half ? "half" : "adjacent") + ", " + std::to_string(rotary_dim) +
           " of " + std::to_string(head_dim) + " from " + std::to_string(first);
  }
  Rotary rotary(double attention_factor = 1.0) const {
    auto frequencies = posenc::rotary_frequencies({.head_dim = head_dim, .rotary_dim = rotary_dim});
    frequencies.attention_factor = attention_factor;
    return Rotary(frequencies, pairing, window);
  }
};

/// Both pairings, whole heads and windows, widths that no vector register divides, and one of more pairs than
/// a tile holds.
std::vector<Kind> kinds() {
  std::vector<Kind> all;
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent}) {
    for (const Index dim : {2, 6, 10, 20, 64, 80, 96, 130})
      all.push_back({pairing, dim, dim, 0, Window::leading()});
    all.push_back({pairing, 80, 32, 0, Window::leading()});
    all.push_back({pairing, 21, 10, 11, Window::trailing()});
    all.push_back({pairing, 192, 64, 128, Window::trailing()});
    all.push_back({pairing, 23, 6, 5, Window::starting_at(5)});
    all.push_back({pairing, 9, 8, 0, Window::leading()});
    all.push_back({pairing, 9, 8, 1, Window::trailing()});
    all.push_back({pairing, 2055, 2052, 1, Window::starting_at(1)});
  }
  return all;
}

/// Near and far, to either side.
Positions some_positions(Index count) {
  const std::array<Position, 9> ids = {
      0, 1, -1, 17, 2047, -131071, Position{1} << 31, Position{1} << 40, -(Position{1} << 40)};
  std::vector<Position> at;
  for (Index i = 0; i < count; ++i) at.push_back(ids[static_cast<std::size_t>(i) % ids.size()] + i / 9);
  return posenc::position_ids(at);
}

template <class S>
Heads<S> rotated(const Rotary& rotary, Heads<S> x, const Positions& at) {
  rotary.rotate(x.view(), at, Axes::bshd);
  return x;
}

template <class S>
Heads<S> rotated_back(const Rotary& rotary, Heads<S> x, const Positions& at) {
  rotary.rotate_vjp(x.view(), at, Axes::bshd);
  return x;
}

template <class S>
Heads<S> part_of(Heads<S> x, std::size_t axis, Index first, Index count) {
  return values_of(x.view().slice(axis, first, count));
}

/// x with its last axis in another order: dimension d of the result is dimension from(d) of x.
template <class S, class F>
Heads<S> reordered(const Heads<S>& x, const F& from) {
  Heads<S> y = x;
  const Index dim = x.extents[3];
  for (Index n = 0; n < x.size(); ++n)
    y.values[static_cast<std::size_t>(n)] = x.values[static_cast<std::size_t>(n - n % dim + from(n % dim))];
  return y;
}

/// f(in, out, position) for each head of each token, as pointers to its dimensions.
template <class S, class F>
void for_each_head(const Heads<S>& in, const Heads<S>& out, const Positions& at, const F& f) {
  REQUIRE(in.extents == out.extents);
  const auto x = in.view(), y = out.view();
  for (Index b = 0; b < in.extents[0]; ++b)
    for (Index s = 0; s < in.extents[1]; ++s)
      for (Index h = 0; h < in.extents[2]; ++h) f(&x(b, s, h, 0), &y(b, s, h, 0), at(b, s));
}

/// How many heads of `out` miss the definition. The bound counts the roundings that are allowed: cos and sin,
/// two products, a sum, where S has 16 bits one more on store, and for double those of the comparison.
template <class S>
int heads_off_the_definition(const Kind& kind, const std::vector<double>& frequencies, double factor,
                             const Heads<S>& in, const Heads<S>& out, const Positions& at) {
  using C = posenc::compute_t<S>;
  const double bound = (std::same_as<C, float> ? 1.5 : 5.5) * epsilon<C>;
  int off = 0;
  for_each_head(in, out, at, [&](const S* x, const S* y, Position p) {
    bool right = true;
    for (Index i = 0; i < kind.rotary_dim / 2; ++i) {
      const posenc_test::CosSinOfProduct exact(p, frequencies[static_cast<std::size_t>(i)]);
      const double c = factor * exact.cos, s = factor * exact.sin;
      const double u = to_double(x[kind.u(i)]), w = to_double(x[kind.w(i)]);
      const double expected_u = u * c - w * s, expected_w = w * c + u * s;
      const auto close = [&](S got, double expected) {
        const double rounding = std::same_as<S, C> ? 0 : std::fabs(expected) * epsilon<S> / 2 + 0x1p-25;
        return std::fabs(to_double(got) - expected) <=
               bound * std::fabs(factor) * (std::fabs(u) + std::fabs(w)) + rounding;
      };
      right = right && close(y[kind.u(i)], expected_u) && close(y[kind.w(i)], expected_w);
    }
    for (Index d = 0; d < kind.head_dim; ++d)
      if (!kind.turns(d)) right = right && std::memcmp(&x[d], &y[d], sizeof(S)) == 0;
    off += !right;
  });
  return off;
}

}  // namespace

TEMPLATE_TEST_CASE("a rotation is the definition at any position", "[rotary][property]", float, double, half,
                   bfloat16) {
  for (const Kind& kind : kinds()) {
    auto frequencies = kind.rotary().frequencies();
    for (double& frequency : frequencies.inv_freq) frequency = static_cast<float>(frequency);
    const auto x = random_values<TestType, 4>({1, 19, 2, kind.head_dim});
    const Positions at = some_positions(19);
    for (const double factor : {1.0, 1.3465735902799727, -0.5}) {
      INFO(kind.name() << ", attention_factor " << factor);
      frequencies.attention_factor = factor;
      const Rotary rotary(frequencies, kind.pairing, kind.window);
      CHECK(heads_off_the_definition(kind, frequencies.inv_freq, factor, x, rotated(rotary, x, at), at) == 0);
    }
  }
}

TEMPLATE_TEST_CASE("a rotation keeps the norm of every pair", "[rotary][property]", float, double, half,
                   bfloat16) {
  for (const Kind& kind : kinds()) {
    INFO(kind.name());
    const auto x = random_values<TestType, 4>({2, 9, 2, kind.head_dim});
    const Positions at = some_positions(9);
    const auto y = rotated(kind.rotary(), x, at);
    int changed = 0, moved = 0;
    for_each_head(x, y, at, [&](const TestType* in, const TestType* out, Position p) {
      for (Index i = 0; i < kind.rotary_dim / 2; ++i) {
        const double before = std::hypot(to_double(in[kind.u(i)]), to_double(in[kind.w(i)]));
        const double after = std::hypot(to_double(out[kind.u(i)]), to_double(out[kind.w(i)]));
        changed += !(std::fabs(after - before) <= 3 * epsilon<TestType> * before);
      }
      moved += p != 0 && to_double(out[kind.u(0)]) != to_double(in[kind.u(0)]);
    });
    CHECK(changed == 0);
    CHECK(moved > 0);
    const double norm = posenc_test::norm(x.values);
    CHECK(std::fabs(posenc_test::norm(y.values) - norm) <= (2 * epsilon<TestType> + 1e-13) * norm);
  }
}

TEMPLATE_TEST_CASE("a score depends on the distance alone", "[rotary][property]", float, double, half,
                   bfloat16) {
  constexpr Position far = Position{1} << 40;
  for (const Kind& kind : kinds()) {
    INFO(kind.name());
    const auto q = random_values<TestType, 4>({1, 1, 1, kind.head_dim}, 1);
    const auto k = random_values<TestType, 4>({1, 1, 1, kind.head_dim}, 2);
    const Rotary rotary = kind.rotary();
    const auto score = [&](Position m, Position n) {
      return dot(rotated(rotary, q, posenc::consecutive(m, 1)).values,
                 rotated(rotary, k, posenc::consecutive(n, 1)).values);
    };
    const double bound =
        (2 * epsilon<TestType> + 8 * epsilon<posenc::compute_t<TestType>>)*posenc_test::norm(q.values) *
        posenc_test::norm(k.values);
    for (const auto& [m, n] :
         {std::array<Position, 2>{0, 0}, {3, 0}, {0, 3}, {5, 5}, {11, 200}, {-7, 4}, {far, 1}}) {
      const double expected = score(m, n);
      for (const Position t : {Position{1}, Position{-1}, Position{1000}, Position{-131071}, far, -far}) {
        INFO("positions " << m << " and " << n << ", moved by " << t);
        CHECK(std::fabs(score(m + t, n + t) - expected) <= bound);
      }
    }
    // ... and it does depend on it, with its sign: q against q a quarter turn ahead.
    auto ahead = q;
    for (Index i = 0; i < kind.rotary_dim / 2; ++i) {
      ahead.view()(0, 0, 0, kind.u(i)) = static_cast<TestType>(-to_double(q.view()(0, 0, 0, kind.w(i))));
      ahead.view()(0, 0, 0, kind.w(i)) = q.view()(0, 0, 0, kind.u(i));
    }
    const auto ahead_at = [&](Position m, Position n) {
      return dot(rotated(rotary, q, posenc::consecutive(m, 1)).values,
                 rotated(rotary, ahead, posenc::consecutive(n, 1)).values);
    };
    CHECK(ahead_at(1, 0) - ahead_at(0, 1) > 2 * epsilon<TestType> * dot(q.values, q.values));
  }
}

TEMPLATE_TEST_CASE("the gradient is the adjoint and undoes the rotation", "[rotary][property]", float, double,
                   half, bfloat16) {
  using C = posenc::compute_t<TestType>;
  for (const Kind& kind : kinds())
    for (const double factor : {1.0, 1.25}) {
      INFO(kind.name() << ", attention_factor " << factor);
      const Rotary rotary = kind.rotary(factor);
      const Positions at = some_positions(9);
      const auto u = random_values<TestType, 4>({2, 9, 3, kind.head_dim}, 1);
      const auto v = random_values<TestType, 4>({2, 9, 3, kind.head_dim}, 2);
      const double bound =
          2 * epsilon<TestType> * factor * posenc_test::norm(u.values) * posenc_test::norm(v.values);
      CHECK(std::fabs(dot(u.values, rotated(rotary, v, at).values) -
                      dot(rotated_back(rotary, u, at).values, v.values)) <= bound);
      // R^T R v = factor^2 v on what turns, v on the rest.
      const auto again = rotated_back(rotary, rotated(rotary, v, at), at);
      int off = 0;
      for_each_head(v, again, at, [&](const TestType* in, const TestType* out, Position) {
        for (Index i = 0; i < kind.rotary_dim / 2; ++i) {
          const double size = std::fabs(to_double(in[kind.u(i)])) + std::fabs(to_double(in[kind.w(i)]));
          for (const Index d : {kind.u(i), kind.w(i)})
            off += !(std::fabs(to_double(out[d]) - factor * factor * to_double(in[d])) <=
                     3 * factor * factor * (epsilon<TestType> + epsilon<C>)*size);
        }
        for (Index d = 0; d < kind.head_dim; ++d)
          if (!kind.turns(d)) off += std::memcmp(&in[d], &out[d], sizeof(TestType)) != 0;
      });
      CHECK(off == 0);
    }
}

TEMPLATE_TEST_CASE("the gradient at p is the rotation at minus p bit for bit", "[rotary][property]", float,
                   double, half, bfloat16) {
  for (const Kind& kind : kinds()) {
    INFO(kind.name());
    const auto x = random_values<TestType, 4>({1, 18, 2, kind.head_dim});
    std::vector<Position> forth, back;
    for (Index i = 0; i < 18; ++i) {
      forth.push_back(some_positions(18)(0, i));
      back.push_back(-forth.back());
    }
    CHECK(same_bits(rotated_back(kind.rotary(1.1), x, posenc::position_ids(forth)),
                    rotated(kind.rotary(1.1), x, posenc::position_ids(back))));
  }
}

TEMPLATE_TEST_CASE("the attention factor scales the score by its square", "[rotary][property]", float, double,
                   half, bfloat16) {
  const auto q = random_values<TestType, 4>({1, 3, 1, 64}, 1);
  const auto k = random_values<TestType, 4>({1, 3, 1, 64}, 2);
  const Kind kind{Pairing::half, 64, 64, 0, Window::leading()};
  const Positions at = posenc::consecutive(1000, 3), from = posenc::consecutive(0, 3);
  const double plain = dot(rotated(kind.rotary(), q, at).values, rotated(kind.rotary(), k, from).values);
  for (const double factor : {0.5, 1.2079441541679836, 2.0}) {
    const double scaled =
        dot(rotated(kind.rotary(factor), q, at).values, rotated(kind.rotary(factor), k, from).values);
    CHECK(std::fabs(scaled - factor * factor * plain) <= 3 * factor * factor * epsilon<TestType> *
                                                             posenc_test::norm(q.values) *
                                                             posenc_test::norm(k.values));
  }
  // A power of two changes exponents alone.
  auto doubled = rotated(kind.rotary(), q, at);
  for (TestType& value : doubled.values) value = static_cast<TestType>(2 * to_double(value));
  CHECK(same_bits(rotated(kind.rotary(2.0), q, at), doubled));
  // What does not turn is not scaled either: only the rotated part is.
  const Kind partial{Pairing::adjacent, 23, 6, 5, Window::starting_at(5)};
  const auto x = random_values<TestType, 4>({1, 3, 1, 23});
  const auto y = rotated(partial.rotary(2.0), x, at);
  CHECK(same_bits(part_of(x, 3, 0, 5), part_of(y, 3, 0, 5)));
  CHECK(same_bits(part_of(x, 3, 11, 12), part_of(y, 3, 11, 12)));
}

TEMPLATE_TEST_CASE("sixteen bits are the float result rounded once", "[rotary][property]", half, bfloat16) {
  for (const Kind& kind : kinds()) {
    INFO(kind.name());
    const auto x = random_values<TestType, 4>({2, 18, 3, kind.head_dim});
    Heads<float> wide{x.extents, {}};
    for (const TestType value : x.values) wide.values.push_back(static_cast<float>(value));
    const Positions at = some_positions(18);
    for (const bool transposed : {false, true}) {
      const Heads<float> turned =
          transposed ? rotated_back(kind.rotary(1.1), wide, at) : rotated(kind.rotary(1.1), wide, at);
      Heads<TestType> expected{x.extents, {}};
      for (const float value : turned.values) expected.values.push_back(static_cast<TestType>(value));
      // What does not turn is not converted at all; these values are exact in float.
      CHECK(same_bits(transposed ? rotated_back(kind.rotary(1.1), x, at) : rotated(kind.rotary(1.1), x, at),
                      expected));
    }
  }
}

TEMPLATE_TEST_CASE("float arithmetic is two products and a sum of the exported cos and sin",
                   "[rotary][property]", float, double) {
  // The compiler may round the products or keep one of them exact (a * b + c in one step), nothing else.
  const auto allowed = [](TestType got, TestType a, TestType x, TestType b, TestType y) {  // a x + b y
    const volatile TestType first = a * x, second = b * y;
    return got == first + second || got == std::fma(a, x, second) || got == std::fma(b, y, first);
  };
  for (const Kind& kind : kinds()) {
    INFO(kind.name());
    const Positions at = some_positions(18);
    const Rotary rotary = kind.rotary(1.1);
    Values<TestType, 2> cos = random_values<TestType, 2>({18, kind.rotary_dim / 2}), sin = cos;
    rotary.cos_sin(cos.view(), sin.view(), at);
    const auto x = random_values<TestType, 4>({1, 18, 2, kind.head_dim});
    const auto y = rotated(rotary, x, at);
    int off = 0;
    for (Index s = 0; s < 18; ++s)
      for (Index h = 0; h < 2; ++h)
        for (Index i = 0; i < kind.rotary_dim / 2; ++i) {
          const TestType u = x.view()(0, s, h, kind.u(i)), w = x.view()(0, s, h, kind.w(i));
          const TestType c = cos.view()(s, i), sn = sin.view()(s, i);
          off += !allowed(y.view()(0, s, h, kind.u(i)), c, u, -sn, w);
          off += !allowed(y.view()(0, s, h, kind.w(i)), c, w, sn, u);
        }
    CHECK(off == 0);
  }
}

TEMPLATE_TEST_CASE("the two pairings are one permutation apart bit for bit", "[rotary][property]", float,
                   double, half, bfloat16) {
  for (const Kind& adjacent : kinds()) {
    if (adjacent.pairing != Pairing::adjacent) continue;
    INFO(adjacent.name());
    Kind half_split = adjacent;
    half_split.pairing = Pairing::half;
    const auto from_adjacent = [&](Index d) {  // where dimension d of a half head is in an adjacent one
      for (Index i = 0; i < adjacent.rotary_dim / 2; ++i) {
        if (d == half_split.u(i)) return adjacent.u(i);
        if (d == half_split.w(i)) return adjacent.w(i);
      }
      return d;
    };
    const auto x = random_values<TestType, 4>({1, 5, 2, adjacent.head_dim});
    const Positions at = posenc::consecutive(100, 5);
    CHECK(same_bits(rotated(half_split.rotary(), reordered(x, from_adjacent), at),
                    reordered(rotated(adjacent.rotary(), x, at), from_adjacent)));
    if (adjacent.rotary_dim > 2)
      CHECK_FALSE(same_bits(rotated(half_split.rotary(), x, at), rotated(adjacent.rotary(), x, at)));
  }
}

TEMPLATE_TEST_CASE("a shard of a rotation is the shard of the whole bit for bit", "[rotary][property]", float,
                   double, half, bfloat16) {
  constexpr Index batch = 3, seq = 37, heads = 5;  // more than one tile of positions, and not a multiple
  std::vector<Position> starts = {7, -20, Position{1} << 40};
  for (const Kind& kind : kinds()) {
    if (kind.head_dim > 200) continue;
    const auto x = random_values<TestType, 4>({batch, seq, heads, kind.head_dim});
    const Rotary rotary = kind.rotary();
    for (const bool per_row : {false, true}) {
      INFO(kind.name() << (per_row ? ", positions per row" : ", positions shared"));
      const Positions at = per_row ? posenc::consecutive(starts, seq) : posenc::consecutive(-9, seq);
      const auto whole = rotated(rotary, x, at);
      // Rotating the parts of an axis one after another. f(first) is the positions of the part.
      const auto by_parts = [&](std::size_t axis, Index size, const auto& f) {
        Heads<TestType> y = x;
        for (Index first = 0; first < x.extents[axis]; first += size) {
          const Index count = std::min(size, x.extents[axis] - first);
          rotary.rotate(y.view().slice(axis, first, count), f(first, count), Axes::bshd);
        }
        return y;
      };
      const auto chunk = [&](Index first, Index count) {
        std::vector<Position> moved = starts;
        for (Position& start : moved) start += first;
        return per_row ? posenc::consecutive(moved, count) : posenc::consecutive(-9 + first, count);
      };
      CHECK(same_bits(by_parts(1, 1, chunk), whole));   // token by token
      CHECK(same_bits(by_parts(1, 16, chunk), whole));  // in chunks
      CHECK(same_bits(by_parts(1, 11, chunk), whole));
      CHECK(same_bits(by_parts(2, 1, [&](Index, Index) { return at; }), whole));  // head by head
      CHECK(same_bits(by_parts(2, 2, [&](Index, Index) { return at; }), whole));
      const auto row = [&](Index first, Index) {
        return per_row ? posenc::consecutive(starts[static_cast<std::size_t>(first)], seq) : at;
      };
      CHECK(same_bits(by_parts(0, 1, row), whole));  // row by row
    }
  }
}

TEMPLATE_TEST_CASE("positions of a row move that row alone", "[rotary][property]", float, double, half,
                   bfloat16) {
  const Kind kind{Pairing::half, 20, 20, 0, Window::leading()};
  const Rotary rotary = kind.rotary();
  const auto x = random_values<TestType, 4>({3, 18, 2, 20});

  SECTION("ids per row") {
    Values<std::int32_t, 2> ids{{3, 18}, {}};
    for (std::int32_t n = 0; n < 54; ++n) ids.values.push_back(n * n - 500);
    const auto y = rotated(rotary, x, posenc::position_ids(ids.view()));
    CHECK(same_bits(rotated(rotary, x, posenc::borrowed_position_ids(ids.view())), y));
    for (Index b = 0; b < 3; ++b) {
      const std::vector<std::int32_t> row(ids.values.begin() + b * 18, ids.values.begin() + (b + 1) * 18);
      CHECK(same_bits(rotated(rotary, part_of(x, 0, b, 1), posenc::position_ids(row)), part_of(y, 0, b, 1)));
    }
  }
  SECTION("shared ids are the ids of every row") {
    Values<std::int64_t, 2> repeated{{3, 18}, {}};
    for (Index n = 0; n < 54; ++n) repeated.values.push_back(n % 18 + 1000);
    const auto y = rotated(rotary, x, posenc::consecutive(1000, 18));
    CHECK(same_bits(rotated(rotary, x, posenc::position_ids(repeated.view())), y));
    CHECK(
        same_bits(rotated(rotary, x, posenc::consecutive(std::array<Position, 3>{1000, 1000, 1000}, 18)), y));
  }
  SECTION("left padding does not move the tokens") {
    Values<std::int32_t, 2> mask{{3, 18}, {}};
    for (Index n = 0; n < 54; ++n) mask.values.push_back(n % 18 >= 4 * (n / 18));  // 0, 4 and 8 pads
    const auto y = rotated(rotary, x, posenc::positions_from_mask(mask.view()));
    for (Index b = 0; b < 3; ++b) {
      const Index tokens = 18 - 4 * b;
      const auto row = part_of(part_of(x, 0, b, 1), 1, 18 - tokens, tokens);
      CHECK(same_bits(rotated(rotary, row, posenc::consecutive(0, tokens)),
                      part_of(part_of(y, 0, b, 1), 1, 18 - tokens, tokens)));
    }
  }
  SECTION("sequences packed one after another") {
    const auto packed = random_values<TestType, 4>({1, 20, 2, 20});
    const std::vector<std::int32_t> cu_seqlens = {0, 3, 3, 20};
    const auto y = rotated(rotary, packed, posenc::positions_from_cu_seqlens(cu_seqlens));
    CHECK(
        same_bits(rotated(rotary, part_of(packed, 1, 0, 3), posenc::consecutive(0, 3)), part_of(y, 1, 0, 3)));
    CHECK(same_bits(rotated(rotary, part_of(packed, 1, 3, 17), posenc::consecutive(0, 17)),
                    part_of(y, 1, 3, 17)));
  }
}

TEMPLATE_TEST_CASE("a step of decoding turns every row of the batch", "[rotary][property]", float, double,
                   half, bfloat16) {
  for (const Kind& kind : kinds()) {
    INFO(kind.name());
    const auto x = random_values<TestType, 4>({4, 1, 3, kind.head_dim});
    const std::vector<Position> pasts = {5, 900, 17, 17};
    const auto own = rotated(kind.rotary(), x, posenc::consecutive(pasts, 1));
    const auto shared = rotated(kind.rotary(), x, posenc::consecutive(17, 1));
    for (Index b = 0; b < 4; ++b) {
      const auto alone = part_of(x, 0, b, 1);
      CHECK_FALSE(same_bits(part_of(own, 0, b, 1), alone));
      CHECK(
          same_bits(rotated(kind.rotary(), alone, posenc::consecutive(pasts[static_cast<std::size_t>(b)], 1)),
                    part_of(own, 0, b, 1)));
      CHECK(same_bits(rotated(kind.rotary(), alone, posenc::consecutive(17, 1)), part_of(shared, 0, b, 1)));
    }
  }
}

TEMPLATE_TEST_CASE("all heads of a token turn alike whatever their number", "[rotary][property]", float,
                   double, half, bfloat16) {
  const Rotary rotary(posenc::rotary_frequencies({.head_dim = 10}), Pairing::adjacent);
  const auto keys = random_values<TestType, 4>({2, 17, 2, 10});
  // Eight query heads: each key head repeated four times, as grouped-query attention pairs them.
  Heads<TestType> queries{{2, 17, 8, 10}, std::vector<TestType>(2 * 17 * 8 * 10)};
  posenc_test::for_each_coordinate(queries.extents, [&](const auto& at, Index n) {
    queries.values[static_cast<std::size_t>(n)] = keys.view()(at[0], at[1], at[2] / 4, at[3]);
  });
  const Positions at = posenc::consecutive(31, 17);
  const auto q = rotated(rotary, queries, at), k = rotated(rotary, keys, at);
  for (Index h = 0; h < 8; ++h) CHECK(same_bits(part_of(q, 2, h, 1), part_of(k, 2, h / 4, 1)));
}

TEMPLATE_TEST_CASE(
    "any number of heads, of any width, turns as each alone, also into memory of another order",
    "[rotary][property]", float, double, half, bfloat16) {
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent})
    for (const Index dim : {20, 64, 128, 256})
      for (const Index heads : {4, 5, 9}) {
        const Rotary rotary = Kind{pairing, dim, dim, 0, Window::leading()}.rotary();
        const auto x = random_values<TestType, 4>({2, 3, heads, dim});
        const Positions at = some_positions(3);
        auto cache = random_values<TestType, 4>({2, heads, 3, dim}, 9);
        rotary.rotate(cache.view().permute({0, 2, 1, 3}), x.view(), at, Axes::bshd);
        const auto together = rotated(rotary, x, at);
        CHECK(same_bits(values_of(cache.view().permute({0, 2, 1, 3})), together));
        for (Index h = 0; h < heads; ++h)
          CHECK(same_bits(part_of(together, 2, h, 1), rotated(rotary, part_of(x, 2, h, 1), at)));
      }
}

TEMPLATE_TEST_CASE("in place is out of place bit for bit", "[rotary][property]", float, double, half,
                   bfloat16) {
  for (const Kind& kind : kinds()) {
    INFO(kind.name());
    const auto x = random_values<TestType, 4>({2, 19, 3, kind.head_dim});
    const Positions at = some_positions(19);
    const Rotary rotary = kind.rotary();
    const auto in_place = rotated(rotary, x, at), back_in_place = rotated_back(rotary, x, at);
    auto out = random_values<TestType, 4>(x.extents, 9);
    rotary.rotate(out.view(), x.view(), at, Axes::bshd);
    CHECK(same_bits(out, in_place));
    rotary.rotate_vjp(out.view(), x.view(), at, Axes::bshd);
    CHECK(same_bits(out, back_in_place));
    // x itself, said twice.
    auto same = x;
    rotary.rotate(same.view(), same.view(), at, Axes::bshd);
    CHECK(same_bits(same, in_place));
    // Into a cache of the other order, (batch, heads, seq, dim), seen with its axes permuted.
    Values<TestType, 4> cache = random_values<TestType, 4>({2, 3, 19, kind.head_dim}, 9);
    rotary.rotate(cache.view().permute({0, 2, 1, 3}), x.view(), at, Axes::bshd);
    CHECK(same_bits(values_of(cache.view().permute({0, 2, 1, 3})), in_place));
    rotary.rotate(cache.view(), x.view().permute({0, 2, 1, 3}), at, Axes::bhsd);
    CHECK(same_bits(values_of(cache.view().permute({0, 2, 1, 3})), in_place));
  }
}

TEMPLATE_TEST_CASE("what does not turn keeps its bits", "[rotary][property]", float, double, half, bfloat16) {
  // NaNs with a payload, both zeros, infinities, subnormals: any pattern of bits.
  std::mt19937_64 generator(5);
  for (const Kind& kind : kinds()) {
    INFO(kind.name());
    auto x = random_values<TestType, 4>({2, 18, 2, kind.head_dim});
    const auto in_window = [&](Index n) { return kind.turns(n % kind.head_dim); };
    for (Index n = 0; n < x.size(); ++n)
      if (!in_window(n)) {
        TestType& value = x.values[static_cast<std::size_t>(n)];
        std::uint64_t bits = generator();
        if (n % 3 == 0) bits |= 0x7ff87ff87ff87ff8u;  // a NaN of each type
        std::memcpy(static_cast<void*>(&value), &bits, sizeof value);
        if (n % 3 == 1) value = static_cast<TestType>(-0.f);
      }
    const Positions at = some_positions(18);
    const auto untouched = [&](const Heads<TestType>& y) {
      for (Index n = 0; n < x.size(); ++n) {
        const auto i = static_cast<std::size_t>(n);
        if (!in_window(n) && std::memcmp(&x.values[i], &y.values[i], sizeof(TestType)) != 0) return false;
      }
      return true;
    };
    CHECK(untouched(rotated(kind.rotary(), x, at)));
    CHECK(untouched(rotated_back(kind.rotary(), x, at)));
    auto out = random_values<TestType, 4>(x.extents, 9);
    kind.rotary().rotate(out.view(), x.view(), at, Axes::bshd);
    CHECK(untouched(out));
    // Through strides of its own: (batch, heads, dim, seq), the sequence fastest.
    auto turned = random_values<TestType, 4>({2, 2, kind.head_dim, 18}, 9);
    kind.rotary().rotate(turned.view().permute({0, 3, 1, 2}), x.view(), at, Axes::bshd);
    CHECK(untouched(values_of(turned.view().permute({0, 3, 1, 2}))));
  }
}

TEMPLATE_TEST_CASE("a head wider than the kernel's buffers turns each pair by its own angle",
                   "[rotary][property]", float, double, bfloat16) {
  // More pairs than cos and sin have room for, and a rest of any width or of a width with a loop of its own.
  using C = posenc::compute_t<TestType>;
  const Index room = posenc::detail::angle_elements<C>;
  const Index pairs = GENERATE_COPY(Index{2101}, room + 16, room + 32);
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent}) {
    const Kind kind{pairing, 2 * pairs + 3, 2 * pairs, 2, Window::starting_at(2)};
    INFO(kind.name());
    const Rotary rotary = kind.rotary();
    const auto x = random_values<TestType, 4>({2, 3, 2, kind.head_dim});
    const Positions at = posenc::consecutive(5, 3);
    auto expected = x;
    for (Index n = 0; n < x.size(); n += kind.head_dim)
      for (Index i = 0; i < kind.rotary_dim / 2; ++i) {
        const auto u = static_cast<std::size_t>(n + kind.u(i)), w = static_cast<std::size_t>(n + kind.w(i));
        const double angle = static_cast<double>(at(0, n / kind.head_dim / 2 % 3)) *
                             rotary.frequencies().inv_freq[static_cast<std::size_t>(i)];
        const double c = std::cos(angle), s = std::sin(angle);
        const double one = to_double(x.values[u]), two = to_double(x.values[w]);
        expected.values[u] = static_cast<TestType>(static_cast<C>(one * c - two * s));
        expected.values[w] = static_cast<TestType>(static_cast<C>(two * c + one * s));
      }
    // The angles above are products up to 7, rounded, so `expected` itself is off by some units of a double.
    const double tolerance = (std::same_as<TestType, double> ? 32 : 8) * epsilon<TestType>;
    const auto close = [&](const Heads<TestType>& y) {
      return posenc_test::max_difference(y.values, expected.values) <= tolerance;
    };
    CHECK(close(rotated(rotary, x, at)));
    auto strided = random_values<TestType, 4>({2, 2, kind.head_dim, 3}, 9);  // the sequence fastest
    rotary.rotate(strided.view().permute({0, 3, 1, 2}), x.view(), at, Axes::bshd);
    CHECK(close(values_of(strided.view().permute({0, 3, 1, 2}))));
  }
}

// ---- Threads.

namespace {

/// f(device, name) for devices of 1, 2 and 5 threads, our own and Eigen's.
template <class F>
void on_every_device(const F& f) {
  for (const int threads : {1, 2, 5}) {
    f(posenc_test::ThreadsDevice{threads}, std::to_string(threads) + " threads");
    Eigen::ThreadPool pool(threads);
    f(Eigen::ThreadPoolDevice(&pool, threads), "an Eigen pool of " + std::to_string(threads));
  }
  f(Eigen::DefaultDevice(), "Eigen's default device");
}

}  // namespace

TEMPLATE_TEST_CASE("threads do not change a bit of a rotation", "[rotary][threads][property]", float, double,
                   half, bfloat16) {
  using Extents = std::array<Index, 4>;
  for (const Extents& extents :
       {Extents{3, 37, 2, 20}, {1, 1, 1, 20}, {5, 1, 3, 20}, {1, 200, 1, 20}, {7, 2, 1, 2052}, {4, 5, 0, 20}})
    for (const Pairing pairing : {Pairing::half, Pairing::adjacent})
      for (const char* kind : {"shared", "shared ids", "per row"}) {
        const Index batch = extents[0], seq = extents[1], dim = extents[3];
        const Rotary rotary = Kind{pairing, dim, dim - 6, 2, Window::starting_at(2)}.rotary();
        const auto x = random_values<TestType, 4>(extents);
        std::vector<Position> starts(static_cast<std::size_t>(batch)), ids(static_cast<std::size_t>(seq));
        for (std::size_t b = 0; b < starts.size(); ++b) starts[b] = static_cast<Position>(b * b) - 3;
        for (std::size_t s = 0; s < ids.size(); ++s) ids[s] = 1000 - static_cast<Position>(s * s);
        const Positions at = kind == std::string("shared")       ? posenc::consecutive(5, seq)
                             : kind == std::string("shared ids") ? posenc::position_ids(ids)
                                                                 : posenc::consecutive(starts, seq);
        const auto forth = rotated(rotary, x, at), back = rotated_back(rotary, x, at);
        on_every_device([&](const auto& device, const std::string& name) {
          INFO(name << ", batch " << batch << ", seq " << seq << ", " << kind);
          auto y = x;
          rotary.rotate(device, y.view(), at, Axes::bshd);
          CHECK(same_bits(y, forth));
          rotary.rotate_vjp(device, y.view(), x.view(), at, Axes::bshd);
          CHECK(same_bits(y, back));
          rotary.rotate(device, y.view(), x.view(), at, Axes::bshd);
          CHECK(same_bits(y, forth));
          y = x;
          rotary.rotate_vjp(device, y.view(), at, Axes::bshd);
          CHECK(same_bits(y, back));
        });
      }
}

TEMPLATE_TEST_CASE("threads do not change a bit of an exported table", "[rotary][threads][property]", float,
                   double, half, bfloat16) {
  const Rotary rotary(posenc::rotary_frequencies({.head_dim = 2052}), Pairing::half);
  const Positions at = posenc::consecutive(std::array<Position, 3>{0, -8, 1 << 30}, 7);
  auto cos = random_values<TestType, 3>({3, 7, 1026}), sin = cos;
  rotary.cos_sin(cos.view(), sin.view(), at);
  on_every_device([&](const auto& device, const std::string& name) {
    INFO(name);
    auto c = random_values<TestType, 3>(cos.extents, 2), s = c;
    rotary.cos_sin(device, c.view(), s.view(), at);
    CHECK(same_bits(c, cos));
    CHECK(same_bits(s, sin));
  });
}

TEST_CASE("one rotary serves many threads at once", "[rotary][threads]") {
  const Rotary rotary(posenc::rotary_frequencies({.head_dim = 20}), Pairing::half);
  const auto x = random_values<float, 4>({1, 20, 2, 20});
  std::vector<Heads<float>> results(4, x);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < results.size(); ++t)
    threads.emplace_back(
        [&, t] { results[t] = rotated(rotary, x, posenc::consecutive(static_cast<Position>(t), 20)); });
  for (std::thread& thread : threads) thread.join();
  for (std::size_t t = 0; t < results.size(); ++t)
    CHECK(same_bits(results[t], rotated(rotary, x, posenc::consecutive(static_cast<Position>(t), 20))));
}

// ---- Numbers, values, edges.

TEST_CASE("known rotations", "[rotary]") {
  const auto turned = [](std::vector<double> head, Pairing pairing, Position p) {
    Heads<double> x{{1, 1, 1, static_cast<Index>(head.size())}, head};
    const Rotary rotary(posenc::rotary_frequencies({.head_dim = x.extents[3]}), pairing);
    return rotated(rotary, x, posenc::consecutive(p, 1)).values;
  };
  const auto close = [](const std::vector<double>& a, const std::vector<double>& b) {
    return posenc_test::max_difference(a, b) <= 1e-15;
  };
  // cos 1 = 0.5403.., sin 1 = 0.8414.., cos 0.01 = 0.99995.., sin 0.01 = 0.0099998..
  const double c0 = 0.54030230586813971740, s0 = 0.84147098480789650665;
  const double c1 = 0.99995000041666527778, s1 = 0.0099998333341666646825;
  CHECK(close(turned({1, 0}, Pairing::half, 1), {c0, s0}));
  CHECK(close(turned({0, 1}, Pairing::half, 1), {-s0, c0}));
  CHECK(close(turned({0, 1}, Pairing::half, -1), {s0, c0}));
  CHECK(close(turned({1, 0, 0, 0}, Pairing::adjacent, 1), {c0, s0, 0, 0}));
  CHECK(close(turned({0, 0, 1, 0}, Pairing::adjacent, 1), {0, 0, c1, s1}));
  CHECK(close(turned({1, 0, 0, 0}, Pairing::half, 1), {c0, 0, s0, 0}));
  CHECK(close(turned({0, 1, 0, 0}, Pairing::half, 1), {0, c1, 0, s1}));
  CHECK(close(turned({1, 2, 3, 4}, Pairing::half, 1),
              {c0 - 3 * s0, 2 * c1 - 4 * s1, 3 * c0 + s0, 4 * c1 + 2 * s1}));
  CHECK(close(turned({1, 2, 3, 4}, Pairing::adjacent, 1),
              {c0 - 2 * s0, 2 * c0 + s0, 3 * c1 - 4 * s1, 4 * c1 + 3 * s1}));
  // cos and sin of 2^40 radians.
  CHECK(close(turned({1, 0}, Pairing::half, Position{1} << 40),
              {-0.91400407199155700230, -0.40570501153282871982}));
  // Position 0 changes nothing.
  CHECK(turned({1, 2, 3, 4}, Pairing::adjacent, 0) == std::vector<double>{1, 2, 3, 4});
}

TEMPLATE_TEST_CASE("the exported cos and sin are those of the rotation", "[rotary]", float, double, half,
                   bfloat16) {
  using C = posenc::compute_t<TestType>;
  const Index head_dim = GENERATE(Index{2}, Index{6}, Index{96}, Index{2052});
  const Rotary rotary = Kind{Pairing::half, head_dim, head_dim, 0, Window::leading()}.rotary(1.25);
  const Index pairs = head_dim / 2, seq = 18;
  const auto& frequencies = rotary.frequencies().inv_freq;

  SECTION("as the definition has them") {
    const std::vector<Position> ids = {0, 1, -1, 5, 2047, -2047, 100, 77, 2000, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    Values<TestType, 2> cos = random_values<TestType, 2>({seq, pairs}), sin = cos;
    rotary.cos_sin(cos.view(), sin.view(), posenc::position_ids(ids));
    double worst = 0;
    posenc_test::for_each_coordinate(cos.extents, [&](const auto& at, Index n) {
      const long double angle = static_cast<long double>(ids[static_cast<std::size_t>(at[0])]) *
                                static_cast<long double>(frequencies[static_cast<std::size_t>(at[1])]);
      const auto i = static_cast<std::size_t>(n);
      worst =
          std::max({worst, std::fabs(to_double(cos.values[i]) - static_cast<double>(1.25L * std::cos(angle))),
                    std::fabs(to_double(sin.values[i]) - static_cast<double>(1.25L * std::sin(angle)))});
    });
    CHECK(worst <= 1.25 * 0.51 * epsilon<TestType> + (std::same_as<C, TestType> ? 2.0 : 0.5) * epsilon<C>);
  }
  SECTION("as a rotation of (1, 0) shows them") {
    const Positions at = some_positions(seq);
    Heads<TestType> unit{{1, seq, 1, head_dim}, {}};
    for (Index n = 0; n < seq * head_dim; ++n)
      unit.values.push_back(static_cast<TestType>(n % head_dim < pairs ? 1.f : 0.f));
    const auto y = rotated(rotary, unit, at);
    Values<TestType, 2> cos{{seq, pairs}, std::vector<TestType>(static_cast<std::size_t>(seq * pairs))},
        sin = cos;
    rotary.cos_sin(cos.view(), sin.view(), at);
    CHECK(cos.values == part_of(y, 3, 0, pairs).values);
    CHECK(sin.values == part_of(y, 3, pairs, pairs).values);
  }
  SECTION("per row and shared, in any storage") {
    const Positions at = posenc::consecutive(std::array<Position, 2>{3, 1 << 20}, seq);
    Values<TestType, 3> cos = random_values<TestType, 3>({2, seq, pairs}), sin = cos;
    rotary.cos_sin(cos.view(), sin.view(), at);
    for (const Index row : {0, 1}) {
      Eigen::Tensor<TestType, 2, Eigen::ColMajor> cos_row(seq, pairs);
      Eigen::Tensor<TestType, 2, Eigen::RowMajor> sin_row(seq, pairs);
      rotary.cos_sin(cos_row, sin_row, posenc::consecutive(at(row, 0), seq));
      CHECK(same_bits(values_of(cos_row).values, values_of(cos.view().slice(0, row, 1)).values));
      CHECK(same_bits(values_of(sin_row).values, values_of(sin.view().slice(0, row, 1)).values));
    }
    Values<TestType, 3> shared = random_values<TestType, 3>({2, seq, pairs}), rest = shared;
    rotary.cos_sin(shared.view(), rest.view(), posenc::consecutive(3, seq));
    CHECK(same_bits(values_of(shared.view().slice(0, 1, 1)), values_of(cos.view().slice(0, 0, 1))));
  }
  SECTION("each in memory of its own order") {
    const Positions at = posenc::consecutive(-3, seq);
    Values<TestType, 2> cos = random_values<TestType, 2>({seq, pairs}), sin = cos;
    rotary.cos_sin(cos.view(), sin.view(), at);
    // Rows of cos with gaps, those of sin without, and the other way round.
    auto wide = random_values<TestType, 2>({seq, pairs + 5}),
         packed = random_values<TestType, 2>({seq, pairs});
    const auto gaps = wide.view().slice(1, 2, pairs);
    rotary.cos_sin(gaps, packed.view(), at);
    CHECK(same_bits(values_of(gaps), cos));
    CHECK(same_bits(packed, sin));
    rotary.cos_sin(packed.view(), gaps, at);
    CHECK(same_bits(packed, cos));
    CHECK(same_bits(values_of(gaps), sin));
  }
  SECTION("row by row, however many rows and pairs") {
    const Index rows = 211, many = 143;
    const Rotary wide(posenc::rotary_frequencies({.head_dim = 2 * many}), Pairing::half);
    Values<TestType, 2> cos = random_values<TestType, 2>({rows, many}), sin = cos, one_cos = cos,
                        one_sin = cos;
    wide.cos_sin(cos.view(), sin.view(), posenc::consecutive(-100, rows));
    for (Index r = 0; r < rows; ++r)
      wide.cos_sin(one_cos.view().slice(0, r, 1), one_sin.view().slice(0, r, 1),
                   posenc::consecutive(r - 100, 1));
    CHECK(same_bits(cos, one_cos));
    CHECK(same_bits(sin, one_sin));
  }
}

TEST_CASE("a rotary is a value", "[rotary]") {
  const auto x = random_values<float, 4>({1, 5, 2, 8});
  const Positions at = posenc::consecutive(9, 5);
  auto frequencies = posenc::rotary_frequencies({.head_dim = 8});
  Rotary rotary(frequencies, Pairing::half);
  const auto expected = rotated(rotary, x, at);
  frequencies.inv_freq[0] = 5;  // the rotary has its own
  CHECK(same_bits(rotated(rotary, x, at), expected));
  const Rotary copy = rotary;
  rotary = Rotary(frequencies, Pairing::adjacent);
  CHECK(same_bits(rotated(copy, x, at), expected));
  CHECK(copy.pairing() == Pairing::half);
  CHECK(copy.head_dim() == 8);
  CHECK(rotary.frequencies().inv_freq == frequencies.inv_freq);
}

TEST_CASE("nothing to rotate is no error", "[rotary]") {
  const Rotary rotary(posenc::rotary_frequencies({.head_dim = 6}), Pairing::half);
  for (const auto& extents : {std::array<Index, 4>{0, 3, 2, 6}, {2, 0, 2, 6}, {2, 3, 0, 6}, {0, 0, 0, 6}}) {
    Heads<float> x{extents, {}};
    rotary.rotate(x.view(), posenc::consecutive(5, extents[1]), Axes::bshd);
    rotary.rotate_vjp(x.view(), x.view(), posenc::consecutive(5, extents[1]), Axes::bshd);
    CHECK(x.values.empty());
  }
  Heads<float> none{{0, 3, 2, 6}, {}};  // as many rows of positions as rows of the batch
  rotary.rotate(none.view(), posenc::consecutive(std::vector<Position>{}, 3), Axes::bshd);
  Values<float, 2> cos{{0, 3}, {}};
  rotary.cos_sin(cos.view(), cos.view(), posenc::consecutive(0, 0));

  // No frequency: the identity.
  const Rotary still(posenc::RotaryFrequencies{.head_dim = 6, .inv_freq = {}}, Pairing::adjacent);
  const auto x = random_values<float, 4>({2, 3, 2, 6});
  auto out = random_values<float, 4>({2, 3, 2, 6}, 2);
  CHECK(same_bits(rotated(still, x, posenc::consecutive(5, 3)), x));
  still.rotate(out.view(), x.view(), posenc::consecutive(5, 3), Axes::bshd);
  CHECK(same_bits(out, x));
}

// ---- Failures. Each names the argument, what was expected and what came, and writes nothing.

TEST_CASE("a rotary that can't be is refused", "[rotary]") {
  using posenc::RotaryFrequencies;
  static const double nan = posenc_test::quiet_nan;
  static const double infinity = posenc_test::infinity;
  const auto refused = [](const RotaryFrequencies& frequencies, Window window,
                          std::initializer_list<const char*> parts) {
    check_throws<std::invalid_argument>([&] { Rotary(frequencies, Pairing::half, window); }, parts);
  };
  refused({.head_dim = 2, .inv_freq = {1, 2}}, Window::leading(),
          {"window", "4 rotated dimensions", "head_dim = 2"});
  refused({.head_dim = 2, .inv_freq = {1, 2}}, Window::trailing(),
          {"window", "4 rotated dimensions", "head_dim = 2"});
  refused({.head_dim = 8, .inv_freq = {1, 2}}, Window::starting_at(5),
          {"window", "4 rotated dimensions", "head_dim = 8", "from 5"});
  refused({.head_dim = 0, .inv_freq = {1}}, Window::leading(), {"window", "head_dim = 0"});
  refused({.head_dim = -4, .inv_freq = {}}, Window::leading(), {"window", "head_dim = -4"});
  refused({.head_dim = 8, .inv_freq = {1, nan}}, Window::leading(), {"frequencies[1]", "finite", "nan"});
  refused({.head_dim = 8, .inv_freq = {infinity, 1}}, Window::leading(),
          {"frequencies[0]", "finite", "got inf"});
  refused({.head_dim = 8, .inv_freq = {1, -0x1p64}}, Window::leading(),
          {"frequencies[1]", "below 2^64", "got -1.8446744073709552e+19"});
  refused({.head_dim = 8, .inv_freq = {1}, .attention_factor = nan}, Window::leading(),
          {"attention_factor", "finite", "nan"});
  refused({.head_dim = 8, .inv_freq = {1}, .attention_factor = infinity}, Window::leading(),
          {"attention_factor", "finite", "got inf"});
}

TEST_CASE("a tensor that does not fit is refused and left as it is", "[rotary]") {
  const Rotary rotary(posenc::rotary_frequencies({.head_dim = 6}), Pairing::half);
  auto x = random_values<float, 4>({2, 4, 3, 6});
  auto out = random_values<float, 4>({2, 4, 3, 6}, 2);
  const auto row_starts = [](Index rows) {
    return posenc::consecutive(std::vector<Position>(static_cast<std::size_t>(rows)), 4);
  };
  const auto refused = [&](const auto& call, std::initializer_list<const char*> parts) {
    const auto x_before = x, out_before = out;
    check_throws<std::invalid_argument>(call, parts);
    CHECK(same_bits(x, x_before));
    CHECK(same_bits(out, out_before));
  };
  const Positions at = posenc::consecutive(5, 4);

  SECTION("axes of another rank") {
    for (const auto& [named, name] : {std::pair<Axes, const char*>{Axes::bsd, "Axes::bsd"},
                                      {Axes::shd, "Axes::shd"},
                                      {Axes::hsd, "Axes::hsd"}})
      refused([&, axes = named] { rotary.rotate(x.view(), at, axes); },
              {"expected a tensor of rank 3", name, "got rank 4"});
    refused([&] { rotary.rotate_vjp(x.view(), at, Axes::sd); },
            {"expected a tensor of rank 2", "Axes::sd", "got rank 4"});
    refused([&] { rotary.rotate(x.view(), at, static_cast<Axes>(77)); }, {"Axes::", "unknown", "got rank 4"});
    const View<float, 3> rank_3(x.values.data(), {2, 4, 6});
    const View<float, 2> rank_2(x.values.data(), {4, 6});
    refused([&] { rotary.rotate(rank_3, at, Axes::bshd); },
            {"expected a tensor of rank 4", "Axes::bshd", "got rank 3"});
    refused([&] { rotary.rotate(rank_3, at, Axes::bhsd); },
            {"expected a tensor of rank 4", "Axes::bhsd", "got rank 3"});
    refused([&] { rotary.rotate(rank_3, at, Axes::sd); },
            {"expected a tensor of rank 2", "Axes::sd", "got rank 3"});
    refused([&] { rotary.rotate(rank_2, at, Axes::bsd); },
            {"expected a tensor of rank 3", "Axes::bsd", "got rank 2"});
  }
  SECTION("another head_dim") {
    const View<float, 4> narrow = x.view().slice(3, 0, 4);
    refused([&] { rotary.rotate(narrow, at, Axes::bshd); }, {"6 dimensions per head (head_dim)", "got 4"});
    refused([&] { rotary.rotate(out.view().slice(3, 0, 4), narrow, at, Axes::bshd); }, {"head_dim", "got 4"});
    refused([&] { rotary.rotate_vjp(narrow, at, Axes::bshd); }, {"head_dim", "got 4"});
    const View<float, 2> projection(x.values.data(), {4, 18});  // heads not split
    refused([&] { rotary.rotate(projection, at); }, {"head_dim", "got 18"});
  }
  SECTION("another number of positions") {
    refused([&] { rotary.rotate(x.view(), posenc::consecutive(0, 5), Axes::bshd); },
            {"at: ", "expected 4 positions", "got 5"});
    refused([&] { rotary.rotate(x.view(), posenc::consecutive(0, 0), Axes::bshd); },
            {"at: ", "expected 4 positions", "got 0"});
    // The axes said wrongly: 4 positions for what are then 3 tokens.
    refused([&] { rotary.rotate(x.view(), at, Axes::bhsd); }, {"at: ", "expected 3 positions", "got 4"});
    refused([&] { rotary.rotate_vjp(out.view(), x.view(), posenc::consecutive(0, 3), Axes::bshd); },
            {"at: ", "expected 4 positions", "got 3"});
  }
  SECTION("positions of another number of rows") {
    refused([&] { rotary.rotate(x.view(), row_starts(3), Axes::bshd); }, {"at: ", "1 or 2 rows", "got 3"});
    refused([&] { rotary.rotate(x.view(), row_starts(0), Axes::bshd); }, {"at: ", "1 or 2 rows", "got 0"});
    refused([&] { rotary.rotate(x.view().slice(0, 0, 1), row_starts(2), Axes::bshd); }, {"at: ", "got 2"});
    const View<float, 2> rank_2(x.values.data(), {4, 6});
    refused([&] { rotary.rotate(rank_2, row_starts(2)); }, {"at: ", "got 2"});
  }
  SECTION("an output of another shape") {
    refused([&] { rotary.rotate(out.view().slice(1, 0, 3), x.view(), at, Axes::bshd); },
            {"out", "(2, 4, 3, 6)", "(2, 3, 3, 6)"});
    refused([&] { rotary.rotate(out.view(), x.view().slice(2, 0, 1), at, Axes::bshd); },
            {"out", "(2, 4, 1, 6)", "(2, 4, 3, 6)"});
    refused([&] { rotary.rotate_vjp(out.view().permute({0, 2, 1, 3}), x.view(), at, Axes::bshd); },
            {"out", "(2, 4, 3, 6)", "(2, 3, 4, 6)"});
  }
  SECTION("an output in which elements share memory") {
    const View<float, 4> all_heads(out.values.data(), {2, 4, 3, 6}, {24, 6, 0, 1});
    refused([&] { rotary.rotate(all_heads, x.view(), at, Axes::bshd); }, {"stride 0 on axis 2", "extent 3"});
    refused([&] { rotary.rotate(all_heads, at, Axes::bshd); }, {"stride 0 on axis 2", "extent 3"});
    refused([&] { rotary.rotate_vjp(all_heads, at, Axes::bshd); }, {"stride 0 on axis 2", "extent 3"});
    // As an input it is fine: one key head for all.
    rotary.rotate(x.view(), all_heads, at, Axes::bshd);
    CHECK(same_bits(part_of(x, 2, 0, 1), part_of(x, 2, 2, 1)));
  }
}

TEST_CASE("a table that does not fit is refused and left as it is", "[rotary]") {
  const Rotary rotary(posenc::rotary_frequencies({.head_dim = 8}), Pairing::half);
  auto memory = random_values<float, 1>({1000}).values;
  const auto table = [&](Index batch, Index seq, Index pairs) {
    return View<float, 3>(memory.data(), {batch, seq, pairs});
  };
  const Positions at = posenc::consecutive(0, 5);
  const auto refused = [&](const View<float, 3>& cos, const View<float, 3>& sin, const Positions& positions,
                           std::initializer_list<const char*> parts) {
    const auto before = memory;
    check_throws<std::invalid_argument>([&] { rotary.cos_sin(cos, sin, positions); }, parts);
    CHECK(same_bits(memory, before));
  };
  refused(table(2, 5, 4), table(2, 5, 8), at, {"sin", "(2, 5, 4)", "(2, 5, 8)"});
  refused(table(2, 5, 8), table(2, 5, 8), at, {"cos", "4 columns, one per pair", "got 8"});
  refused(table(2, 5, 3), table(2, 5, 3), at, {"cos", "4 columns, one per pair", "got 3"});
  refused(table(2, 6, 4), table(2, 6, 4), at, {"at: ", "expected 6 positions", "got 5"});
  refused(table(2, 5, 4), table(2, 5, 4), posenc::consecutive(std::vector<Position>{1, 2, 3}, 5),
          {"at: ", "1 or 2 rows", "got 3"});
  const View<float, 3> broadcast(memory.data(), {2, 5, 4}, {0, 4, 1});
  refused(broadcast, table(2, 5, 4), at, {"cos", "stride 0 on axis 0"});
  refused(table(2, 5, 4), broadcast, at, {"sin", "stride 0 on axis 0"});
}

TEST_CASE("rotations write in place or apart from what they read", "[rotary]") {
  const Positions at = posenc::consecutive(3, 4);
  const Rotary rope(posenc::rotary_frequencies({.head_dim = 6}), Pairing::half);
  posenc_test::keeps_memory_apart<float, 4>(
      {2, 4, 3, 6}, "x", [&](const auto& out, const auto& x) { rope.rotate(out, x, at, Axes::bshd); });
  posenc_test::keeps_memory_apart<double, 3>(
      {2, 4, 6}, "x", [&](const auto& out, const auto& x) { rope.rotate_vjp(out, x, at); });
}

TEST_CASE("a slice of a packed buffer is rotated into another one", "[rotary]") {
  // (seq, q k v, heads, dim): the keys' memory lies between the queries'.
  auto packed = random_values<float, 4>({5, 3, 2, 8});
  const auto before = packed;
  const auto part = [](const View<float, 4>& x, Index which) {
    return View<float, 3>(x.data() + which * x.stride(1), {5, 2, 8}, {x.stride(0), x.stride(2), 1});
  };
  const Rotary rope(posenc::rotary_frequencies({.head_dim = 8}), Pairing::adjacent);
  const Positions at = posenc::consecutive(7, 5);
  rope.rotate(part(packed.view(), 1), part(packed.view(), 0), at, Axes::shd);
  auto expected = before;
  const auto query = values_of(part(expected.view(), 0));
  auto turned = query;
  rope.rotate(turned.view(), query.view(), at, Axes::shd);
  posenc_test::fill(part(expected.view(), 1), turned);
  CHECK(same_bits(packed, expected));
}

TEST_CASE("a table of cos and one of sin are apart", "[rotary]") {
  std::vector<float> memory(100, 7.0f);
  const auto before = memory;
  const Rotary rope(posenc::rotary_frequencies({.head_dim = 8}), Pairing::half);
  const View<float, 2> cos(memory.data(), {5, 4}, {8, 1}), moved(memory.data() + 3, {5, 4}, {8, 1});
  for (const auto& sin : {cos, moved})
    check_throws<std::invalid_argument>([&] { rope.cos_sin(cos, sin, posenc::consecutive(0, 5)); },
                                        {"posenc: cos", "apart from sin"});
  CHECK(same_bits(memory, before));
  // Side by side in each row, as (seq, [cos, sin]): apart.
  CHECK_NOTHROW(
      rope.cos_sin(cos, View<float, 2>(memory.data() + 4, {5, 4}, {8, 1}), posenc::consecutive(0, 5)));
}
