// The verbs of Rotary on plain tensors, found from its header alone.

#include "posenc/rotary/rotary.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;
using posenc::Axes;

namespace {

constexpr Index past = 3;
const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 4}), posenc::Pairing::half);
const posenc::Positions at = posenc::consecutive(past, 3);

/// Numbers turned by angle(position of the token) theta_i; the token's axis is `seq`, the head's the last.
template <std::size_t Rank, class Angle>
auto turned(std::size_t seq, const Angle& angle) {
  return [=](Coordinates<Rank> c) {
    const Index dim = c[Rank - 1], pair = dim % 2;
    const double by = angle(static_cast<double>(c[seq])) * (pair == 0 ? 1.0 : 0.01);
    c[Rank - 1] = pair;
    const double u = Numbers()(c);
    c[Rank - 1] = pair + 2;
    const double w = Numbers()(c);
    return dim < 2 ? u * std::cos(by) - w * std::sin(by) : w * std::cos(by) + u * std::sin(by);
  };
}

const auto forward = [](double i) { return i + past; };
const auto backward = [](double i) { return -(i + past); };

}  // namespace

TEST_CASE("Rotary's verbs take plain tensors") {
  const auto rotate = [](auto&&... tensors) { rope.rotate(tensors..., at); };
  const auto rotate_vjp = [](auto&&... tensors) { rope.rotate_vjp(tensors..., at); };
  const auto inverse = [](auto&&... tensors) { rope.rotate_inverse(tensors..., at); };
  const auto shift = [](auto&&... tensors) { rope.shift(tensors..., -2); };
  const std::array<posenc::Position, 1> deltas{-2};
  const auto shift_axes = [&](auto&&... tensors) { rope.shift(tensors..., deltas); };
  const Coordinates<2> extents{3, 4};
  check_forms(extents, rotate, turned<2>(0, forward));
  check_forms(extents, rotate_vjp, turned<2>(0, backward));
  check_one_tensor(extents, inverse, turned<2>(0, backward));
  check_one_tensor(extents, shift, turned<2>(0, [](double) { return -2.0; }));
  check_one_tensor(extents, shift_axes, turned<2>(0, [](double) { return -2.0; }));
}

TEST_CASE("Rotary's verbs take plain tensors of higher rank, in the axes that are named") {
  check_forms(
      Coordinates<4>{2, 3, 2, 4}, [](auto&&... tensors) { rope.rotate(tensors..., at, Axes::bshd); },
      turned<4>(1, forward));
  check_forms(
      Coordinates<4>{2, 2, 3, 4}, [](auto&&... tensors) { rope.rotate_vjp(tensors..., at, Axes::bhsd); },
      turned<4>(2, backward));
  check_one_tensor(
      Coordinates<3>{3, 2, 4}, [](auto&&... tensors) { rope.rotate_inverse(tensors..., at, Axes::shd); },
      turned<3>(0, backward));
  check_one_tensor(
      Coordinates<3>{2, 3, 4}, [](auto&&... tensors) { rope.shift(tensors..., 5); },
      turned<3>(1, [](double) { return 5.0; }));
}

TEST_CASE("Rotary::cos_sin takes plain tensors") {
  in_plain_storage<2>([](const char* kind, const auto& make) {
    INFO(kind);
    const Coordinates<2> extents{3, 2};
    const auto angle = [](const Coordinates<2>& c) {
      return static_cast<double>(c[0] + past) * (c[1] == 0 ? 1.0 : 0.01);
    };
    const auto check_with = [&](const auto&... device) {
      auto cos = make(extents, Numbers()), sin = make(extents, Numbers());
      rope.cos_sin(device..., cos.t, sin.t, at);
      check_holds(cos.t, extents, [&](const auto& c) { return std::cos(angle(c)); });
      check_holds(sin.t, extents, [&](const auto& c) { return std::sin(angle(c)); });
    };
    const Halves halves;
    check_with();
    check_with(halves);
    CHECK(halves.calls > 0);
  });
}
