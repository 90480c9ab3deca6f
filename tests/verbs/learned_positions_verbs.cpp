// The verbs of LearnedPositions on plain tensors, found from its header alone.

#include "posenc/embedding/learned_positions.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

namespace {

constexpr Coordinates<2> table_extents{6, 4};
constexpr Numbers table_numbers{1.0};
const posenc::Positions at = posenc::consecutive(2, 3);

double embedding(Index position, Index column) { return table_numbers(Coordinates<2>{position, column}); }

/// f(encoder, kind, make) with a table in each storage.
template <class F>
void with_each_table(const F& f) {
  in_plain_storage<2>([&](const char* kind, const auto& make) {
    INFO(kind);
    const auto table = make(table_extents, table_numbers);
    f(posenc::LearnedPositions(table.t), make);
  });
}

}  // namespace

TEST_CASE("LearnedPositions takes plain tables, and its verbs plain tensors") {
  Eigen::Tensor<float, 2, Eigen::RowMajor> table(6, 4);
  for_each(table_extents, [&](const auto& c) { element(table, c) = static_cast<float>(table_numbers(c)); });
  const posenc::LearnedPositions learned(table);
  const auto add = [&](auto&&... tensors) { learned.add(tensors..., at); };
  const auto embed = [&](auto&&... tensors) { learned.embed(tensors..., at); };
  check_forms(Coordinates<2>{3, 4}, add,
              [](const Coordinates<2>& c) { return Numbers()(c) + embedding(c[0] + 2, c[1]); });
  check_forms(Coordinates<3>{2, 3, 4}, add,
              [](const Coordinates<3>& c) { return Numbers()(c) + embedding(c[1] + 2, c[2]); });
  check_one_tensor(Coordinates<2>{3, 4}, embed,
                   [](const Coordinates<2>& c) { return embedding(c[0] + 2, c[1]); });
  with_each_table([](const auto& of_kind, const auto& make) {
    const Coordinates<2> extents{3, 4};
    auto x = make(extents, Numbers());
    of_kind.embed(x.t, at);
    check_holds(x.t, extents, [](const Coordinates<2>& c) { return embedding(c[0] + 2, c[1]); });
  });
}

TEST_CASE("LearnedPositions::add_vjp takes plain tensors") {
  const auto gradient = [](const Coordinates<2>& c) {
    return c[0] >= 2 && c[0] < 5 ? Numbers()(Coordinates<2>{c[0] - 2, c[1]}) : 0.0;
  };
  with_each_table([&](const auto& learned, const auto& make) {
    const auto zero = [](const auto&) { return 0.0; };
    const Halves halves;
    const auto dy = make(Coordinates<2>{3, 4}, Numbers());
    auto d_table = make(table_extents, zero);
    learned.add_vjp(d_table.t, at, dy.t);
    check_holds(d_table.t, table_extents, gradient);
    auto on_device = make(table_extents, zero);
    learned.add_vjp(halves, on_device.t, at, dy.t);
    check_holds(on_device.t, table_extents, gradient);
    CHECK(halves.calls > 0);
  });
}
