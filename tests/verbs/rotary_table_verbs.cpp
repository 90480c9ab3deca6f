// The verbs of RotaryTable on plain tensors, found from its header alone.

#include "posenc/rotary/rotary_table.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;
using posenc::Axes;

namespace {

/// Angles of row t and pair i, of tables that are no rope: the verbs look them up.
double angle(Index t, Index pair) { return 0.3 * static_cast<double>(t) + static_cast<double>(pair); }

template <std::size_t Rank>
auto turned(std::size_t seq, Index past, double sign) {
  return [=](Coordinates<Rank> c) {
    const Index dim = c[Rank - 1], pair = dim % 2;
    const double by = sign * angle(c[seq] + past, pair);
    c[Rank - 1] = pair;
    const double u = Numbers()(c);
    c[Rank - 1] = pair + 2;
    const double w = Numbers()(c);
    return dim < 2 ? u * std::cos(by) - w * std::sin(by) : w * std::cos(by) + u * std::sin(by);
  };
}

const auto cosine = [](const auto& c) { return std::cos(angle(c[c.size() - 2], c[c.size() - 1])); };
const auto sine = [](const auto& c) { return std::sin(angle(c[c.size() - 2], c[c.size() - 1])); };

}  // namespace

TEST_CASE("RotaryTable takes plain tables of a row per position, and its verbs plain tensors") {
  const auto at = posenc::consecutive(2, 3);
  in_plain_storage<2>([&](const char* kind, const auto& make) {
    INFO(kind);
    const auto cos = make({5, 2}, cosine), sin = make({5, 2}, sine);
    const posenc::RotaryTable table(cos.t, sin.t, posenc::Pairing::half);
    const Coordinates<2> extents{3, 4};
    auto x = make(extents, Numbers());
    table.rotate(x.t, at);
    check_holds(x.t, extents, turned<2>(0, 2, 1));
  });
  Eigen::MatrixXf cos(5, 2), sin(5, 2);
  for_each(Coordinates<2>{5, 2}, [&](const Coordinates<2>& c) {
    cos(c[0], c[1]) = static_cast<float>(cosine(c)), sin(c[0], c[1]) = static_cast<float>(sine(c));
  });
  const posenc::RotaryTable table(cos, sin, posenc::Pairing::half);
  check_forms(
      Coordinates<2>{3, 4}, [&](auto&&... tensors) { table.rotate(tensors..., at); }, turned<2>(0, 2, 1));
  check_forms(
      Coordinates<4>{2, 3, 2, 4}, [&](auto&&... tensors) { table.rotate_vjp(tensors..., at, Axes::bshd); },
      turned<4>(1, 2, -1));
}

TEST_CASE("RotaryTable takes plain tables of a row per token, and its verbs plain tensors") {
  in_plain_storage<3>([&](const char* kind, const auto& make) {
    INFO(kind);
    const auto cos = make({1, 3, 2}, cosine), sin = make({1, 3, 2}, sine);
    const posenc::RotaryTable table(cos.t, sin.t, posenc::Pairing::half);
    const Coordinates<3> extents{2, 3, 4};
    auto x = make(extents, Numbers());
    table.rotate(x.t);
    check_holds(x.t, extents, turned<3>(1, 0, 1));
  });
  Eigen::Tensor<float, 3> cos(1, 3, 2), sin(1, 3, 2);
  for_each(Coordinates<3>{1, 3, 2}, [&](const Coordinates<3>& c) {
    element(cos, c) = static_cast<float>(cosine(c)), element(sin, c) = static_cast<float>(sine(c));
  });
  const posenc::RotaryTable table(cos, sin, posenc::Pairing::half);
  check_forms(Coordinates<2>{3, 4}, [&](auto&&... tensors) { table.rotate(tensors...); }, turned<2>(0, 0, 1));
  check_forms(
      Coordinates<3>{2, 3, 4}, [&](auto&&... tensors) { table.rotate_vjp(tensors...); }, turned<3>(1, 0, -1));
}
