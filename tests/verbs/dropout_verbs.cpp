// The verbs of Dropout on plain tensors, found from its header alone.

#include "posenc/embedding/dropout.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

TEST_CASE("Dropout::apply takes plain tensors") {
  const posenc::Dropout dropout(0.25);
  const auto masked = [&]<std::size_t Rank>(const Coordinates<Rank>& extents) {
    return [&dropout, extents](const Coordinates<Rank>& at) {
      Index n = 0;
      for (std::size_t axis = 0; axis < Rank; ++axis) n = n * extents[axis] + at[axis];
      return dropout.keeps(7, static_cast<std::uint64_t>(n)) ? Numbers()(at) / 0.75 : 0.0;
    };
  };
  const auto apply = [&](auto&&... tensors) { dropout.apply(tensors..., posenc::Mode::train, 7); };
  const auto apply_vjp = [&](auto&&... tensors) { dropout.apply_vjp(tensors..., posenc::Mode::train, 7); };
  const Coordinates<2> two{3, 4};
  const Coordinates<3> three{2, 3, 4};
  check_forms(two, apply, masked(two));
  check_forms(three, apply, masked(three));
  check_one_tensor(two, apply_vjp, masked(two));
  check_one_tensor(three, apply_vjp, masked(three));
}
