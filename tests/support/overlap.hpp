#pragma once
// What every out of place verb promises of memory: the output is the input itself or apart from it, and has an
// element for each coordinate; everything else is refused and nothing written.

#include <algorithm>
#include <array>
#include <stdexcept>
#include <vector>

#include "support/support.hpp"

namespace posenc_test {

/// verb(out, x), of tensors of `extents` (each at least 2), whose input is called `name`.
template <class S, std::size_t Rank, class Verb>
void keeps_memory_apart(const std::array<Index, Rank>& extents, const char* name, const Verb& verb) {
  using posenc::View;
  using Out = View<S, Rank>;
  const auto values = random_values<S, Rank>(extents);
  auto expected = values;
  verb(expected.view(), values.view());
  REQUIRE(!same_bits(expected, values));

  const auto n = static_cast<std::size_t>(values.size());
  std::vector<S> memory(4 * n);
  const Out x(memory.data() + n, extents);
  fill(x, values);
  const std::vector<S> before = memory;
  const auto refused = [&](const Out& out, const char* part) {
    check_throws<std::invalid_argument>([&] { verb(out, View<const S, Rank>(x)); }, {"posenc: ", part});
    CHECK(same_bits(memory, before));
  };
  const auto in_another_place = std::string("expected ") + name + " itself or memory apart from it";
  refused(Out(x.data() + 1, extents), in_another_place.c_str());
  refused(Out(x.data() - 1, extents), in_another_place.c_str());
  refused(Out(x.data() + (n - 1), extents), in_another_place.c_str());
  auto turned = x.strides();
  turned[0] = -turned[0];
  refused(Out(x.data() + (extents[0] - 1) * x.stride(0), extents, turned), in_another_place.c_str());

  auto wider = x.strides();  // the same first element, and others after it
  for (std::size_t axis = 0; axis + 1 < Rank; ++axis) wider[axis] *= 2;
  refused(Out(x.data(), extents, wider), in_another_place.c_str());

  // Two coordinates of the output, one element.
  std::array<Index, Rank> ones;
  ones.fill(1);
  refused(Out(memory.data() + 3 * n, extents, ones), "an element for each coordinate");
  auto overlapping = x.strides();
  overlapping[0] = x.stride(0) - 1;
  refused(Out(memory.data() + 2 * n, extents, overlapping), "an element for each coordinate");

  // Right behind it, in place through another view, and in the other half of each row: all fine.
  const Out behind(x.data() + n, extents);
  verb(behind, View<const S, Rank>(x));
  CHECK(same_bits(values_of(behind), expected));
  verb(x, View<const S, Rank>(View<S, Rank>(x)));
  CHECK(same_bits(values_of(x), expected));
  auto strides = x.strides();
  for (std::size_t axis = 0; axis + 1 < Rank; ++axis) strides[axis] *= 2;
  const Out left(memory.data(), extents, strides);
  const Out right(memory.data() + extents[Rank - 1], extents, strides);
  fill(left, values);
  verb(right, View<const S, Rank>(left));
  CHECK(same_bits(values_of(right), expected));
  CHECK(same_bits(values_of(left), values));
}

}  // namespace posenc_test
