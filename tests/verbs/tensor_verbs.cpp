// view and split_heads on plain tensors, found from their header alone.

#include "posenc/core/tensor.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

TEST_CASE("view and split_heads take plain tensors") {
  in_plain_storage<2>([](const char* kind, const auto& make) {
    INFO(kind);
    const auto x = make({3, 8}, Numbers());
    const auto seen = posenc::view(x.t);
    check_holds(seen, Coordinates<2>{3, 8}, Numbers());
    const auto heads = posenc::split_heads(x.t, 2);
    check_holds(heads, Coordinates<3>{3, 2, 4},
                [](const Coordinates<3>& c) { return Numbers()(Coordinates<2>{c[0], 4 * c[1] + c[2]}); });
  });
  in_plain_storage<3>([](const char* kind, const auto& make) {
    INFO(kind);
    auto x = make({2, 3, 8}, Numbers());
    const auto heads = posenc::split_heads(x.t, 2);
    check_holds(heads, Coordinates<4>{2, 3, 2, 4}, [](const Coordinates<4>& c) {
      return Numbers()(Coordinates<3>{c[0], c[1], 4 * c[2] + c[3]});
    });
    heads(1, 2, 1, 3) = 42.0f;
    CHECK(element(x.t, Coordinates<3>{1, 2, 7}) == 42.0f);
  });
}
