// The one place where work is split, with a device of our own and with Eigen's pool, and every verb on that
// pool.
#define EIGEN_USE_THREADS
#include "posenc/core/parallel.hpp"

#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "posenc/posenc.hpp"
#include "support/support.hpp"

namespace {

using namespace posenc_test;
using posenc::Axes;
using posenc::consecutive;
using posenc::Mode;
using posenc::Position;

/// Runs one block after another and keeps what it was asked for.
struct RecordingDevice {
  mutable std::vector<Index> asked_for;
  mutable double cost = 0;
  Index block = 3;

  template <class F>
  void parallelFor(Index n, const Eigen::TensorOpCost& each, F f) const {
    asked_for.push_back(n);
    cost = each.total_cost(1.0, 1.0, 1.0);
    for (Index first = 0; first < n; first += block) f(first, (std::min)(n, first + block));
  }
};

struct NoDevice {
  void parallel_for(Index, const Eigen::TensorOpCost&, void (*)(Index, Index)) const {}
};

const posenc::detail::Cost some_cost{1e5, 1e5, 1e6};  // enough for a pool to split

/// How often each of [0, n) is visited.
template <class Device>
std::vector<int> visits(const Device& device, Index n) {
  std::vector<int> count(static_cast<std::size_t>(n));
  posenc::detail::parallel_for(device, n, some_cost, [&](Index first, Index last) {
    for (Index i = first; i < last; ++i) ++count[static_cast<std::size_t>(i)];
  });
  return count;
}

/// f(device) gives the same bits on pools of 1, 2 and 5 threads as without one.
template <class F>
void check_pools_agree(const F& f) {
  const auto expected = f(Eigen::DefaultDevice());
  for (const int threads : {1, 2, 5}) {
    Eigen::ThreadPool pool(threads);
    INFO(threads << " threads");
    CHECK(same_bits(f(Eigen::ThreadPoolDevice(&pool, threads)), expected));
  }
}

/// Large enough for the pool to split every verb.
constexpr Index batch = 4, seq = 150, dim = 66, vocabulary = 101;

Values<std::int32_t, 2> ids() {
  Values<std::int32_t, 2> tokens{{batch, seq}, std::vector<std::int32_t>(batch * seq)};
  for (std::size_t i = 0; i < tokens.values.size(); ++i)
    tokens.values[i] = static_cast<std::int32_t>(i * i % static_cast<std::size_t>(vocabulary));
  return tokens;
}

}  // namespace

TEST_CASE("parallel: what is a device") {
  CHECK(posenc::device<Eigen::DefaultDevice>);
  CHECK(posenc::device<Eigen::ThreadPoolDevice>);
  CHECK(posenc::device<const Eigen::ThreadPoolDevice&>);
  CHECK(posenc::device<ThreadsDevice>);
  CHECK(posenc::device<RecordingDevice>);
  CHECK_FALSE(posenc::device<NoDevice>);
  CHECK_FALSE(posenc::device<int>);
  CHECK_FALSE(posenc::device<Eigen::ThreadPool>);
  CHECK_FALSE(posenc::device<Eigen::Tensor<float, 2>>);
}

TEST_CASE("parallel: every unit is visited once", "[threads]") {
  Eigen::ThreadPool pool(3);
  for (const Index n : {1, 2, 7, 1000}) {
    const std::vector<int> once(static_cast<std::size_t>(n), 1);
    CHECK(visits(Eigen::DefaultDevice(), n) == once);
    CHECK(visits(RecordingDevice{}, n) == once);
    for (const int threads : {1, 2, 5}) CHECK(visits(ThreadsDevice{threads}, n) == once);
    CHECK(visits(Eigen::ThreadPoolDevice(&pool, 3), n) == once);
  }
}

TEST_CASE("parallel: a device is asked once, with a cost, and not for nothing") {
  const RecordingDevice device;
  CHECK(visits(device, 0).empty());
  posenc::detail::parallel_for(device, -3, some_cost, [](Index, Index) { FAIL("nothing to do"); });
  CHECK(device.asked_for.empty());
  visits(device, 10);
  CHECK(device.asked_for == std::vector<Index>{10});
  CHECK(device.cost == 1e5 + 1e5 + 1e6);
}

TEST_CASE("parallel: without a pool there is one block") {
  int blocks = 0;
  posenc::detail::parallel_for(Eigen::DefaultDevice(), 1000, some_cost, [&](Index first, Index last) {
    ++blocks;
    CHECK(first == 0);
    CHECK(last == 1000);
  });
  CHECK(blocks == 1);
}

TEMPLATE_TEST_CASE("parallel: TokenEmbedding on a pool", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({vocabulary, dim}, 2);
  const posenc::TokenEmbedding<S> encoder(table.view(), {.scale = 0.7});
  const auto tokens = ids();
  check_pools_agree([&](const auto& device) {
    auto x = random_values<S, 3>({batch, seq, dim});
    encoder.embed(device, x.view(), tokens.view());
    auto d_table = table;
    encoder.embed_vjp(device, d_table.view(), tokens.view(), x.view());
    x.values.insert(x.values.end(), d_table.values.begin(), d_table.values.end());
    return x.values;
  });
  const auto h = random_values<S, 3>({batch, seq, dim}, 3);
  check_pools_agree([&](const auto& device) {
    auto logits = random_values<S, 3>({batch, seq, vocabulary});
    encoder.logits(device, logits.view(), h.view());
    auto dh = h;
    auto d_table = table;
    encoder.logits_vjp(device, dh.view(), d_table.view(), h.view(), logits.view());
    dh.values.insert(dh.values.end(), d_table.values.begin(), d_table.values.end());
    return dh.values;
  });
}

TEMPLATE_TEST_CASE("parallel: Sinusoidal on a pool", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  const posenc::Sinusoidal encoder({.d_model = dim});
  check_pools_agree([&](const auto& device) {
    auto x = random_values<TestType, 3>({batch, seq, dim});
    encoder.add(device, x.view(), consecutive(7, seq));
    return x;
  });
}

TEMPLATE_TEST_CASE("parallel: LearnedPositions on a pool", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({200, dim}, 2);
  const posenc::LearnedPositions<S> encoder(table.view());
  const auto at = consecutive(std::vector<Position>{0, 50, 7, 1}, seq);
  check_pools_agree([&](const auto& device) {
    auto x = random_values<S, 3>({batch, seq, dim});
    encoder.add(device, x.view(), at);
    auto d_table = table;
    encoder.add_vjp(device, d_table.view(), at, x.view());
    x.values.insert(x.values.end(), d_table.values.begin(), d_table.values.end());
    return x.values;
  });
}

TEMPLATE_TEST_CASE("parallel: Dropout on a pool", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  check_pools_agree([&](const auto& device) {
    auto x = random_values<TestType, 3>({batch, seq, dim});
    posenc::Dropout(0.2).apply(device, x.view(), Mode::train, 5);
    return x;
  });
}

TEMPLATE_TEST_CASE("parallel: TransformerEmbedding on a pool", "[property][threads]", float, double,
                   Eigen::half, Eigen::bfloat16) {
  using S = TestType;
  const auto table = random_values<S, 2>({vocabulary, dim}, 2);
  const posenc::TransformerEmbedding<S> encoder(posenc::TokenEmbedding<S>(table.view()),
                                                {.position_embedding_type = "sinusoidal", .dropout = 0.1});
  const auto tokens = ids();
  check_pools_agree([&](const auto& device) {
    auto x = random_values<S, 3>({batch, seq, dim});
    encoder.embed(device, x.view(), tokens.view(), consecutive(0, seq), Mode::train, 9);
    auto d_table = table;
    encoder.embed_vjp(device, d_table.view(), tokens.view(), consecutive(0, seq), x.view(), Mode::train, 9);
    x.values.insert(x.values.end(), d_table.values.begin(), d_table.values.end());
    return x.values;
  });
}

TEMPLATE_TEST_CASE("parallel: Rotary on a pool", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  const posenc::Rotary rotary(posenc::rotary_frequencies({.head_dim = dim}), posenc::Pairing::half);
  check_pools_agree([&](const auto& device) {
    auto x = random_values<TestType, 4>({batch, seq, 3, dim});
    rotary.rotate(device, x.view(), consecutive(7, seq), Axes::bshd);
    rotary.rotate_vjp(device, x.view(), consecutive(std::vector<Position>{1, 2, 3, 4}, seq), Axes::bshd);
    return x;
  });
}

TEMPLATE_TEST_CASE("parallel: Alibi on a pool", "[property][threads]", float, double, Eigen::half,
                   Eigen::bfloat16) {
  const posenc::Alibi alibi(3);
  check_pools_agree([&](const auto& device) {
    auto scores = random_values<TestType, 4>({batch, 3, 40, seq});
    alibi.add(device, scores.view(), consecutive(110, 40), consecutive(0, seq));
    return scores;
  });
  const auto d_scores = random_values<TestType, 4>({batch, 3, 40, seq});
  check_pools_agree([&](const auto& device) {
    std::vector<double> d_slopes(3, 1.0);
    alibi.add_vjp(device, d_slopes, d_scores.view(), consecutive(110, 40), consecutive(0, seq));
    return d_slopes;
  });
}
