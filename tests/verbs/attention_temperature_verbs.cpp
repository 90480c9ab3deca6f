// AttentionTemperature on plain tensors, found from its header alone.

#include "posenc/rotary/attention_temperature.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

TEST_CASE("AttentionTemperature::scale takes plain tensors") {
  const posenc::AttentionTemperature temperature({.scale = 0.5, .length = 2});
  const auto at = posenc::consecutive(3, 3);
  const auto scaled = [](std::size_t seq) {
    return [=](const auto& c) {
      return Numbers()(c) * (1 + 0.5 * std::log(1 + std::floor(static_cast<double>(c[seq] + 4) / 2)));
    };
  };
  check_one_tensor(Coordinates<2>{3, 4}, [&](auto&&... q) { temperature.scale(q..., at); }, scaled(0));
  check_one_tensor(
      Coordinates<4>{2, 2, 3, 4}, [&](auto&&... q) { temperature.scale(q..., at, posenc::Axes::bhsd); },
      scaled(2));
}
