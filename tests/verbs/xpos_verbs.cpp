// The verbs of Xpos on plain tensors, found from its header alone.

#include "posenc/rotary/xpos.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

namespace {

/// Numbers of one pair, turned by sign * p and multiplied by zeta^(power p / 2), zeta = 0.4 / 1.4.
auto turned(std::size_t seq, double sign, double power) {
  return [=](auto c) {
    const double p = static_cast<double>(c[seq] + 3), by = sign * p;
    const double decay = std::pow(0.4 / 1.4, power * p / 2);
    const bool second = c.back() == 1;
    c.back() = 0;
    const double u = Numbers()(c);
    c.back() = 1;
    const double w = Numbers()(c);
    return decay * (second ? w * std::cos(by) + u * std::sin(by) : u * std::cos(by) - w * std::sin(by));
  };
}

}  // namespace

TEST_CASE("Xpos's verbs take plain tensors") {
  const posenc::Xpos xpos(
      posenc::Rotary(posenc::rotary_frequencies({.head_dim = 2}), posenc::Pairing::adjacent),
      {.scale_base = 2});
  const auto at = posenc::consecutive(3, 3);
  const auto check_verbs = [&](const auto& extents, std::size_t seq, const auto&... axes) {
    check_one_tensor(extents, [&](auto&&... q) { xpos.rotate_query(q..., at, axes...); }, turned(seq, 1, 1));
    check_one_tensor(extents, [&](auto&&... k) { xpos.rotate_key(k..., at, axes...); }, turned(seq, 1, -1));
    check_one_tensor(
        extents, [&](auto&&... dq) { xpos.rotate_query_vjp(dq..., at, axes...); }, turned(seq, -1, 1));
    check_one_tensor(
        extents, [&](auto&&... dk) { xpos.rotate_key_vjp(dk..., at, axes...); }, turned(seq, -1, -1));
  };
  check_verbs(Coordinates<2>{3, 2}, 0);
  check_verbs(Coordinates<4>{2, 3, 2, 2}, 1, posenc::Axes::bshd);
}
