// The verbs of softmax on plain tensors, found from its header alone.

#include "posenc/bias/softmax.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

namespace {

constexpr Coordinates<3> extents{2, 3, 4};  // heads, queries, keys

/// Softmax of the numbers: what the definition says for a bias of head * (i - j).
double probability(const Coordinates<3>& at) {
  const Numbers score;
  const Index h = at[0], i = at[1];
  const auto term = [&](Index key) {
    return std::exp(0.5 * score(Coordinates<3>{h, i, key}) + static_cast<double>(h * (i - key)));
  };
  return term(at[2]) / (term(0) + term(1) + term(2) + term(3));
}

}  // namespace

TEST_CASE("softmax takes plain tensors") {
  const auto at = posenc::consecutive(0, 3), k_at = posenc::consecutive(0, 4);
  const auto bias = [](posenc::Index h, posenc::Position i, posenc::Position j) {
    return static_cast<double>(h) * static_cast<double>(i - j);
  };
  check_forms(
      extents, [&](auto&&... tensors) { posenc::softmax(tensors..., bias, at, k_at, {.scale = 0.5}); },
      probability);
}

TEST_CASE("softmax_vjp takes plain tensors") {
  const auto gradient = [](const Coordinates<3>& at) {
    const Numbers d;
    double sum = 0;
    for (Index j = 0; j < 4; ++j) {
      const Coordinates<3> other{at[0], at[1], j};
      sum += probability(other) * d(other);
    }
    return 0.5 * probability(at) * (d(at) - sum);
  };
  in_plain_storage<3>([&](const char* kind, const auto& make) {
    INFO(kind);
    const Halves halves;
    const auto p = make(extents, probability);
    auto d = make(extents, Numbers());
    posenc::softmax_vjp(d.t, p.t, 0.5);
    check_holds(d.t, extents, gradient);
    auto on_device = make(extents, Numbers());
    posenc::softmax_vjp(halves, on_device.t, p.t, 0.5);
    check_holds(on_device.t, extents, gradient);
    CHECK(halves.calls > 0);
  });
}
