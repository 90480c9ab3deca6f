// KeyRebase on plain tensors, found from its header alone.

#include "posenc/rotary/key_rebase.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

TEST_CASE("KeyRebase::apply takes plain tensors") {
  // One pair, of frequency 1 in both but for the factor: the keys turn by p (1/4 - 1).
  posenc::RotaryFrequencies slow = posenc::rotary_frequencies({.head_dim = 2});
  slow.inv_freq[0] = 0.25;
  const posenc::KeyRebase rebase(
      posenc::Rotary(posenc::rotary_frequencies({.head_dim = 2}), posenc::Pairing::adjacent),
      posenc::Rotary(slow, posenc::Pairing::adjacent));
  const auto at = posenc::consecutive(3, 3);
  const auto turned = [](std::size_t seq) {
    return [=](auto c) {
      const double by = -0.75 * static_cast<double>(c[seq] + 3);
      const bool second = c.back() == 1;
      c.back() = 0;
      const double u = Numbers()(c);
      c.back() = 1;
      const double w = Numbers()(c);
      return second ? w * std::cos(by) + u * std::sin(by) : u * std::cos(by) - w * std::sin(by);
    };
  };
  check_one_tensor(Coordinates<2>{3, 2}, [&](auto&&... k) { rebase.apply(k..., at); }, turned(0));
  check_one_tensor(
      Coordinates<4>{2, 2, 3, 2}, [&](auto&&... k) { rebase.apply(k..., at, posenc::Axes::bhsd); },
      turned(2));
}
