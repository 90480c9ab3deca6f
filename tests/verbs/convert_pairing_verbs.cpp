// convert_pairing on plain tensors, found from its header alone.

#include "posenc/rotary/convert_pairing.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;
using posenc::Pairing;

namespace {

// Two heads of four: adjacent pairs (0, 1), (2, 3) become halves 0 2 1 3.
constexpr Index from[] = {0, 2, 1, 3, 4, 6, 5, 7};
constexpr posenc::HeadLayout layout{.num_heads = 2, .head_dim = 4};

template <std::size_t Rank>
double moved(Coordinates<Rank> c) {
  c[0] = from[c[0]];
  return Numbers()(c);
}

}  // namespace

TEST_CASE("convert_pairing takes plain weights and biases") {
  in_plain_storage<2>([](const char* kind, const auto& make) {
    INFO(kind);
    const Coordinates<2> extents{8, 3};
    auto weights = make(extents, Numbers());
    posenc::convert_pairing(weights.t, Pairing::adjacent, Pairing::half, layout);
    check_holds(weights.t, extents, moved<2>);
  });
  in_plain_storage<1>([](const char* kind, const auto& make) {
    INFO(kind);
    const Coordinates<1> extents{8};
    auto biases = make(extents, Numbers());
    posenc::convert_pairing(biases.t, Pairing::adjacent, Pairing::half, layout);
    check_holds(biases.t, extents, moved<1>);
  });
  Eigen::VectorXf column(8);
  Eigen::RowVectorXf row(8);
  for (Index i = 0; i < 8; ++i) column(i) = row(i) = static_cast<float>(i);
  posenc::convert_pairing(column, Pairing::adjacent, Pairing::half, layout);
  posenc::convert_pairing(row, Pairing::adjacent, Pairing::half, layout);
  for (Index i = 0; i < 8; ++i) {
    CHECK(column(i) == static_cast<float>(from[i]));
    CHECK(row(i) == static_cast<float>(from[i]));
  }
}
