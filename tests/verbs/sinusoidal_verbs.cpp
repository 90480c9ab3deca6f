// The verbs of Sinusoidal on plain tensors, found from its header alone.

#include "posenc/embedding/sinusoidal.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

namespace {

/// PE(position, column) of the paper for d_model 4.
double encoding(Index position, Index column) {
  const double angle = static_cast<double>(position) * std::pow(10000.0, column < 2 ? 0.0 : -0.5);
  return column % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

const posenc::Sinusoidal sinusoidal({.d_model = 4});
const posenc::Positions at = posenc::consecutive(5, 3);

}  // namespace

TEST_CASE("Sinusoidal's verbs take plain tensors") {
  const auto add = [](auto&&... tensors) { sinusoidal.add(tensors..., at); };
  const auto encode = [](auto&&... tensors) { sinusoidal.encode(tensors..., at); };
  check_forms(Coordinates<2>{3, 4}, add,
              [](const Coordinates<2>& c) { return Numbers()(c) + encoding(c[0] + 5, c[1]); });
  check_forms(Coordinates<3>{2, 3, 4}, add,
              [](const Coordinates<3>& c) { return Numbers()(c) + encoding(c[1] + 5, c[2]); });
  check_one_tensor(Coordinates<2>{3, 4}, encode,
                   [](const Coordinates<2>& c) { return encoding(c[0] + 5, c[1]); });
  check_one_tensor(Coordinates<3>{2, 3, 4}, encode,
                   [](const Coordinates<3>& c) { return encoding(c[1] + 5, c[2]); });
}

TEST_CASE("Sinusoidal::scale_vjp takes plain tensors") {
  const Coordinates<2> extents{3, 4};
  double expected = 0;
  for_each(extents, [&](const Coordinates<2>& c) { expected += Numbers()(c) * encoding(c[0] + 5, c[1]); });
  in_plain_storage<2>([&](const char* kind, const auto& make) {
    INFO(kind);
    const auto dy = make(extents, Numbers());
    CHECK(sinusoidal.scale_vjp(dy.t, at) == Approx(expected).margin(1e-6));
  });
}
