// In place and without a device, no verb allocates: neither by operator new nor by Eigen.
#include "support/allocations.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "posenc/posenc.hpp"
#include "support/support.hpp"

namespace {

using namespace posenc_test;
using posenc::Axes;
using posenc::consecutive;
using posenc::Mode;
using posenc::Positions;

/// f(x) in every storage.
template <std::size_t Rank, class S, class F>
void check_allocates_nothing(const std::array<Index, Rank>& extents, const F& f) {
  const auto values = random_values<S, Rank>(extents);
  in_every_storage(
      values, [&](auto& x) { CHECK(allocations_of([&] { f(x); }) == 0); }, [](const char*, const auto&) {});
}

}  // namespace

TEST_CASE("allocation: both ways to allocate are counted") {
  CHECK(allocations_of([] {}) == 0);
  CHECK(allocations_of([] {
          const std::vector<double> v(100);
          used = const_cast<double*>(v.data());
        }) == 1);
  struct alignas(64) Wide {
    char bytes[64];
  };
  CHECK(allocations_of([] {
          Wide* const wide = new Wide;
          used = wide;
          delete wide;
        }) == 1);
  CHECK(allocations_of([] {
          Eigen::VectorXf v(100);
          used = v.data();
        }) >= 1);
  CHECK(allocations_of([] {
          Eigen::Tensor<float, 2> t(3, 4);
          used = t.data();
        }) >= 1);
}

TEST_CASE("allocation: positions that are counted or borrowed") {
  const std::vector<posenc::Position> ids = {1, 2, 3};
  CHECK(allocations_of([] { (void)consecutive(5, 100); }) == 0);
  CHECK(allocations_of([] { (void)consecutive(5, 100).shifted(2); }) == 0);
  CHECK(allocations_of([&] { (void)posenc::borrowed_position_ids(ids); }) == 0);
  CHECK(allocations_of([&] { (void)posenc::position_ids(ids); }) >= 1);
}

TEMPLATE_TEST_CASE("allocation: Sinusoidal", "", float, double, Eigen::half, Eigen::bfloat16) {
  const posenc::Sinusoidal encoder({.d_model = 1030});
  check_allocates_nothing<3, TestType>({2, 17, 1030}, [&](auto& x) {
    const auto at = consecutive(3, 17);
    encoder.add(x, at);
    encoder.encode(x, at);
    (void)encoder.scale_vjp(x, at);
  });
}

TEMPLATE_TEST_CASE("allocation: TokenEmbedding", "", float, double, Eigen::half, Eigen::bfloat16) {
  const auto table = random_values<TestType, 2>({5, 1030});
  const posenc::TokenEmbedding<TestType> encoder(table.view(), {.scale = 2.0});
  const Eigen::MatrixXi ids = Eigen::MatrixXi::Constant(2, 17, 3);
  check_allocates_nothing<3, TestType>({2, 17, 1030}, [&](auto& x) { encoder.embed(x, ids); });
}

TEMPLATE_TEST_CASE("allocation: LearnedPositions", "", float, double, Eigen::half, Eigen::bfloat16) {
  const auto table = random_values<TestType, 2>({50, 1030});
  const posenc::LearnedPositions<TestType> encoder(table.view(), {.offset = 2});
  check_allocates_nothing<3, TestType>({2, 17, 1030}, [&](auto& x) {
    encoder.add(x, consecutive(3, 17));
    encoder.embed(x, consecutive(3, 17));
  });
}

TEMPLATE_TEST_CASE("allocation: Dropout", "", float, double, Eigen::half, Eigen::bfloat16) {
  check_allocates_nothing<4, TestType>({2, 2, 17, 30}, [&](auto& x) {
    posenc::Dropout(0.5).apply(x, Mode::train, 7);
    posenc::Dropout(0.5).apply_vjp(x, Mode::train, 7);
    posenc::Dropout(0.5).apply(x, Mode::eval, 7);
  });
}

TEMPLATE_TEST_CASE("allocation: TransformerEmbedding", "", float, double, Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({50, 30});
  const posenc::TransformerEmbedding<S> sinusoidal(posenc::TokenEmbedding<S>(table.view()),
                                                   {.position_embedding_type = "sinusoidal", .dropout = 0.1});
  const posenc::TransformerEmbedding<S> learned(posenc::TokenEmbedding<S>(table.view()),
                                                posenc::LearnedPositions<S>(table.view()),
                                                {.position_embedding_type = "learned", .dropout = 0.1});
  const Eigen::MatrixXi ids = Eigen::MatrixXi::Constant(2, 17, 3);
  check_allocates_nothing<3, S>({2, 17, 30}, [&](auto& x) {
    sinusoidal.embed(x, ids, consecutive(3, 17), Mode::train, 7);
    learned.embed(x, ids, consecutive(3, 17), Mode::train, 7);
  });
}

TEMPLATE_TEST_CASE("allocation: Rotary", "", float, double, Eigen::half, Eigen::bfloat16) {
  const auto frequencies = posenc::rotary_frequencies({.head_dim = 32, .rotary_dim = 16});
  const posenc::Rotary half(frequencies, posenc::Pairing::half);
  const posenc::Rotary adjacent(frequencies, posenc::Pairing::adjacent, posenc::Window::trailing());
  check_allocates_nothing<4, TestType>({2, 17, 3, 32}, [&](auto& x) {
    half.rotate(x, consecutive(3, 17), Axes::bshd);
    adjacent.rotate_vjp(x, consecutive(0, 3), Axes::bhsd);
  });
}

TEMPLATE_TEST_CASE("allocation: Alibi", "", float, double, Eigen::half, Eigen::bfloat16) {
  const posenc::Alibi alibi({.num_heads = 3, .form = posenc::AlibiForm::causal});
  std::vector<double> d_slopes(3);
  check_allocates_nothing<4, TestType>({2, 3, 17, 20}, [&](auto& scores) {
    alibi.add(scores, consecutive(3, 17), consecutive(0, 20));
    alibi.add_vjp(d_slopes, scores, consecutive(3, 17), consecutive(0, 20));
  });
}

TEST_CASE("allocation: ids that are borrowed") {
  const posenc::Rotary rotary(posenc::rotary_frequencies({.head_dim = 32}), posenc::Pairing::half);
  const Eigen::MatrixXi ids = Eigen::MatrixXi::Constant(2, 17, 3);
  auto x = random_values<float, 4>({2, 17, 3, 32});
  const auto v = x.view();
  CHECK(allocations_of([&] { rotary.rotate(v, posenc::borrowed_position_ids(ids), Axes::bshd); }) == 0);
}
