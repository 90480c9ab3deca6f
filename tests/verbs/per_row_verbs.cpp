// rotate_per_row on plain tensors, found from its header alone.

#include "posenc/rotary/per_row.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

TEST_CASE("rotate_per_row takes plain tensors") {
  // Row 0 turns by 1 per position, row 1 by 1/4.
  posenc::RotaryFrequencies slow = posenc::rotary_frequencies({.head_dim = 2});
  slow.inv_freq[0] = 0.25;
  const std::vector<posenc::Rotary> ropes{
      posenc::Rotary(slow, posenc::Pairing::adjacent),
      posenc::Rotary(posenc::rotary_frequencies({.head_dim = 2}), posenc::Pairing::adjacent)};
  const std::array<Index, 2> choice{1, 0};
  const auto at = posenc::consecutive(3, 3);
  const auto turned = [](std::size_t seq, double sign) {
    return [=](auto c) {
      const double by = sign * static_cast<double>(c[seq] + 3) * (c[0] == 0 ? 1 : 0.25);
      const bool second = c.back() == 1;
      c.back() = 0;
      const double u = Numbers()(c);
      c.back() = 1;
      const double w = Numbers()(c);
      return second ? w * std::cos(by) + u * std::sin(by) : u * std::cos(by) - w * std::sin(by);
    };
  };
  const auto check_verbs = [&](const auto& extents, std::size_t seq, const auto&... axes) {
    check_one_tensor(
        extents, [&](auto&&... x) { posenc::rotate_per_row(x..., ropes, choice, at, axes...); },
        turned(seq, 1));
    check_one_tensor(
        extents, [&](auto&&... dx) { posenc::rotate_per_row_vjp(dx..., ropes, choice, at, axes...); },
        turned(seq, -1));
  };
  check_verbs(Coordinates<3>{2, 3, 2}, 1);
  check_verbs(Coordinates<4>{2, 2, 3, 2}, 2, posenc::Axes::bhsd);
}
