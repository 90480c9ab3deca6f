// The verbs of Alibi on plain tensors, found from its header alone.

#include "posenc/bias/alibi.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

namespace {

// The published slopes of two heads: 2^-4 and 2^-8.
double bias(Index h, Index i, Index j) {
  return -(h == 0 ? 0x1p-4 : 0x1p-8) * std::abs(static_cast<double>(i - j));
}

const posenc::Alibi alibi(2);
const posenc::Positions q_at = posenc::consecutive(1, 2), k_at = posenc::consecutive(0, 3);

}  // namespace

TEST_CASE("Alibi::add takes plain tensors") {
  check_forms(
      Coordinates<3>{2, 2, 3}, [](auto&&... tensors) { alibi.add(tensors..., q_at, k_at); },
      [](const Coordinates<3>& at) { return Numbers()(at) + bias(at[0], at[1] + 1, at[2]); });
  check_forms(
      Coordinates<4>{2, 2, 2, 3}, [](auto&&... tensors) { alibi.add(tensors..., q_at, k_at); },
      [](const Coordinates<4>& at) { return Numbers()(at) + bias(at[1], at[2] + 1, at[3]); });
}

TEST_CASE("Alibi::tile and row take plain matrices and lists") {
  in_plain_storage<2>([](const char* kind, const auto& make) {
    INFO(kind);
    const Coordinates<2> extents{2, 3};
    auto out = make(extents, Numbers());
    alibi.tile(out.t, 1, q_at, k_at);
    check_holds(out.t, extents, [](const Coordinates<2>& at) { return bias(1, at[0] + 1, at[1]); });
  });
  std::vector<float> row(3);
  alibi.row(row, 0, 2, k_at);
  CHECK(row == std::vector<float>{-0x1p-3f, -0x1p-4f, 0.0f});
}

TEST_CASE("Alibi::add_vjp takes plain tensors") {
  const Coordinates<3> extents{2, 2, 3};
  std::array<double, 2> expected{};
  for_each(extents, [&](const Coordinates<3>& at) {
    expected[static_cast<std::size_t>(at[0])] +=
        Numbers()(at) * -std::abs(static_cast<double>(at[1] + 1 - at[2]));
  });
  in_plain_storage<3>([&](const char* kind, const auto& make) {
    INFO(kind);
    const Halves halves;
    const auto d_scores = make(extents, Numbers());
    std::array<double, 2> d{}, on_device{};
    alibi.add_vjp(d, d_scores.t, q_at, k_at);
    alibi.add_vjp(halves, on_device, d_scores.t, q_at, k_at);
    CHECK(d[0] == Approx(expected[0]));
    CHECK(d[1] == Approx(expected[1]));
    CHECK(d == on_device);
    CHECK(halves.calls > 0);
  });
}
