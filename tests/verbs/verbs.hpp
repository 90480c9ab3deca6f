#pragma once
// The storages that people have, without a header of posenc: a file that includes one header of posenc and this
// shows that its verbs take plain Eigen types, found from that header alone.

#include <unsupported/Eigen/CXX11/Tensor>

#include <array>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "support/catch.hpp"

namespace posenc_verbs {

using Index = Eigen::Index;
template <std::size_t Rank>
using Coordinates = std::array<Index, Rank>;

/// Two blocks of work one after the other, counted: a verb that got a device has used it.
struct Halves {
  mutable int calls = 0;

  template <class F>
  void parallelFor(Index n, const Eigen::TensorOpCost&, F f) const {
    ++calls;
    f(Index{0}, n / 2);
    f(n / 2, n);
  }
};

/// A tensor or matrix, or a map and the memory it maps.
template <class T>
struct Stored {
  std::vector<float> memory;
  T t;
};

/// f(coordinates) for all of them.
template <std::size_t Rank, class F>
void for_each(const Coordinates<Rank>& extents, const F& f) {
  Index count = 1;
  for (const Index extent : extents) count *= extent;
  for (Index n = 0; n < count; ++n) {
    Coordinates<Rank> at{};
    Index rest = n;
    for (std::size_t axis = Rank; axis-- > 0;) at[axis] = rest % extents[axis], rest /= extents[axis];
    f(at);
  }
}

template <class T, std::size_t Rank>
auto& element(T& t, const Coordinates<Rank>& at) {
  return std::apply([&](auto... i) -> auto& { return t(i...); }, at);
}

/// A number for each coordinate, some negative.
struct Numbers {
  double phase = 0;

  template <std::size_t Rank>
  double operator()(const Coordinates<Rank>& at) const {
    double n = phase;
    for (const Index i : at) n = 1.7 * n + static_cast<double>(i) + 1;
    return std::sin(n);
  }
};

/// Calls f(kind, make) for tensors and their maps, in both layouts, and for rank 2 also for matrices, theirs and their
/// transposes.
/// make(extents, values) is a Stored that holds values(coordinates).
template <std::size_t Rank, class F>
void in_plain_storage(const F& f) {
  const auto fill = [](auto& t, const Coordinates<Rank>& extents, const auto& values) {
    for_each(extents, [&](const auto& at) { element(t, at) = static_cast<float>(values(at)); });
  };
  const auto size = [](const Coordinates<Rank>& extents) {
    std::size_t count = 1;
    for (const Index extent : extents) count *= static_cast<std::size_t>(extent);
    return count;
  };
  const auto owner = [&]<class T>(const char* kind, std::in_place_type_t<T>) {
    f(kind, [&](const Coordinates<Rank>& extents, const auto& values) {
      Stored<T> stored{{}, std::make_from_tuple<T>(extents)};
      fill(stored.t, extents, values);
      return stored;
    });
  };
  const auto map = [&]<class T>(const char* kind, std::in_place_type_t<T>) {
    f(kind, [&](const Coordinates<Rank>& extents, const auto& values) {
      std::vector<float> memory(size(extents));
      T t = std::apply([&](auto... extent) { return T(memory.data(), extent...); }, extents);
      fill(t, extents, values);
      return Stored<T>{std::move(memory), t};
    });
  };
  using RowTensor = Eigen::Tensor<float, int(Rank), Eigen::RowMajor>;
  using ColumnTensor = Eigen::Tensor<float, int(Rank)>;
  owner("row-major Tensor", std::in_place_type<RowTensor>);
  owner("column-major Tensor", std::in_place_type<ColumnTensor>);
  map("row-major TensorMap", std::in_place_type<Eigen::TensorMap<RowTensor>>);
  map("column-major TensorMap", std::in_place_type<Eigen::TensorMap<ColumnTensor>>);
  if constexpr (Rank == 2) {
    using RowMatrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    owner("row-major Matrix", std::in_place_type<RowMatrix>);
    owner("column-major Matrix", std::in_place_type<Eigen::MatrixXf>);
    map("row-major Map", std::in_place_type<Eigen::Map<RowMatrix>>);
    map("column-major Map", std::in_place_type<Eigen::Map<Eigen::MatrixXf>>);
    f("a token per column", [&](const Coordinates<Rank>& extents, const auto& values) {
      std::vector<float> memory(size(extents));
      auto t = Eigen::Map<Eigen::MatrixXf>(memory.data(), extents[1], extents[0]).transpose();
      fill(t, extents, values);
      return Stored<decltype(t)>{std::move(memory), t};
    });
  }
}

/// Checks that t holds expected(coordinates), to a few units of float.
template <class T, std::size_t Rank, class Expected>
void check_holds(const T& t, const Coordinates<Rank>& extents, const Expected& expected) {
  for_each(extents, [&](const auto& at) {
    const double got = static_cast<double>(element(t, at)), wanted = expected(at);
    if (!(std::abs(got - wanted) <= 1e-5)) {
      CAPTURE(at, got, wanted);
      CHECK(false);
    }
  });
  CHECK(element(t, Coordinates<Rank>{}) == element(t, Coordinates<Rank>{}));  // not NaN
}

/// A verb in its four forms: call(x), call(device, x), call(out, x) and call(device, out, x) give
/// expected(coordinates, x) from x of these extents, in every storage.
template <std::size_t Rank, class Verb, class Expected>
void check_forms(const Coordinates<Rank>& extents, const Verb& verb, const Expected& expected) {
  in_plain_storage<Rank>([&](const char* kind, const auto& make) {
    INFO(kind);
    const Numbers numbers;
    const auto zero = [](const auto&) { return 0.0; };
    {
      auto x = make(extents, numbers);
      verb(x.t);
      check_holds(x.t, extents, expected);
    }
    {
      const Halves halves;
      auto x = make(extents, numbers);
      verb(halves, x.t);
      check_holds(x.t, extents, expected);
      CHECK(halves.calls > 0);
    }
    {
      const auto x = make(extents, numbers);
      auto out = make(extents, zero);
      verb(out.t, x.t);
      check_holds(out.t, extents, expected);
    }
    {
      const Halves halves;
      const auto x = make(extents, numbers);
      auto out = make(extents, zero);
      verb(halves, out.t, x.t);
      check_holds(out.t, extents, expected);
      CHECK(halves.calls > 0);
    }
  });
}

/// The same for a verb that has one tensor only, written in place or altogether.
template <std::size_t Rank, class Verb, class Expected>
void check_one_tensor(const Coordinates<Rank>& extents, const Verb& verb, const Expected& expected) {
  in_plain_storage<Rank>([&](const char* kind, const auto& make) {
    INFO(kind);
    const Numbers numbers;
    {
      auto x = make(extents, numbers);
      verb(x.t);
      check_holds(x.t, extents, expected);
    }
    {
      const Halves halves;
      auto x = make(extents, numbers);
      verb(halves, x.t);
      check_holds(x.t, extents, expected);
      CHECK(halves.calls > 0);
    }
  });
}

}  // namespace posenc_verbs
