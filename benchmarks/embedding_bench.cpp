// What is added to token embeddings, and what is added to attention scores.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "limits.hpp"
#include "posenc/bias/alibi.hpp"
#include "posenc/bias/masks.hpp"
#include "posenc/bias/relative.hpp"
#include "posenc/bias/rules/clipped.hpp"
#include "posenc/bias/rules/t5_buckets.hpp"
#include "posenc/bias/softmax.hpp"
#include "posenc/embedding/transformer_embedding.hpp"
#include "support.hpp"

namespace posenc_bench {
namespace {

constexpr Index vocabulary = 50000;

Eigen::Tensor<std::int32_t, 2, Eigen::RowMajor> token_ids(Index batch, Index seq) {
  Eigen::Tensor<std::int32_t, 2, Eigen::RowMajor> ids(batch, seq);
  for (Index i = 0; i < ids.size(); ++i) ids.data()[i] = static_cast<std::int32_t>(i * 7919 % vocabulary);
  return ids;
}

template <class S>
void add_sinusoidal(Index batch, Index seq, Index d_model) {
  add_threaded(std::string("sinusoidal_add/") + scalar_name<S>() + "/" + by({batch, seq, d_model}),
               [=](benchmark::State& state, const auto& device) {
                 const posenc::Sinusoidal sinusoidal({.d_model = d_model});
                 const posenc::Positions at = posenc::consecutive(0, seq);
                 const auto x = posenc::view(memory<S>(Place::first, batch * seq * d_model),
                                             std::array<Index, 3>{batch, seq, d_model});
                 for (auto _ : state) {
                   sinusoidal.add(device, x, at);
                   benchmark::ClobberMemory();
                 }
                 per_element(state, x.size());
               });
}

template <class S>
void add_gather(Index batch, Index seq, Index d_model) {
  add(std::string("gather/") + scalar_name<S>() + "/" + by({batch, seq, d_model}),
      [=](benchmark::State& state, const auto&) {
        const S* table = memory<S>(Place::first, vocabulary * d_model);
        S* x = memory<S>(Place::second, batch * seq * d_model);
        const auto ids = token_ids(batch, seq);
        for (auto _ : state) {
          gather(reinterpret_cast<char*>(x), reinterpret_cast<const char*>(table), ids.data(),
                 static_cast<std::size_t>(batch * seq), static_cast<std::size_t>(d_model) * sizeof(S));
          benchmark::ClobberMemory();
        }
        per_element(state, batch * seq * d_model);
      });
}

/// scale E[ids] + position.
template <class S>
void add_embed(Index batch, Index seq, Index d_model, const std::string& scheme) {
  add_threaded(
      std::string("embed/") + scalar_name<S>() + "/" + by({batch, seq, d_model}) + "/" + scheme,
      [=](benchmark::State& state, const auto& device) {
        const posenc::TokenEmbedding<S> token(posenc::view(memory<S>(Place::first, vocabulary * d_model),
                                                           std::array<Index, 2>{vocabulary, d_model}),
                                              {.scale = std::sqrt(static_cast<double>(d_model))});
        std::vector<S> positions(static_cast<std::size_t>(seq * d_model), S(0.5f));
        const posenc::LearnedPositions<S> learned(
            posenc::view(positions.data(), std::array<Index, 2>{seq, d_model}));
        const posenc::TransformerEmbeddingConfig config{.position_embedding_type = scheme};
        const auto layer = scheme == "learned" ? posenc::TransformerEmbedding<S>(token, learned, config)
                                               : posenc::TransformerEmbedding<S>(token, config);
        const auto ids = token_ids(batch, seq);
        const posenc::Positions at = posenc::consecutive(0, seq);
        const auto x = posenc::view(memory<S>(Place::second, batch * seq * d_model),
                                    std::array<Index, 3>{batch, seq, d_model});
        for (auto _ : state) {
          layer.embed(device, x, ids, at);
          benchmark::ClobberMemory();
        }
        per_element(state, x.size());
      });
}

template <class S>
void add_alibi(Index heads, Index queries, Index keys) {
  add_threaded(std::string("alibi_add/") + scalar_name<S>() + "/" + by({heads, queries, keys}),
               [=](benchmark::State& state, const auto& device) {
                 const posenc::Alibi alibi(heads);
                 const auto scores = posenc::view(memory<S>(Place::first, heads * queries * keys),
                                                  std::array<Index, 3>{heads, queries, keys});
                 const posenc::Positions q_at = posenc::consecutive(keys - queries, queries),
                                         k_at = posenc::consecutive(0, keys);
                 for (auto _ : state) {
                   alibi.add(device, scores, q_at, k_at);
                   benchmark::ClobberMemory();
                 }
                 per_element(state, scores.size());
               });
}

/// Causal, in place, with the bias in it.
template <class S>
void add_softmax(Index heads, Index length) {
  const std::string shape = by({heads, length, length});
  add_threaded("alibi_softmax/" + (std::same_as<S, float> ? "" : scalar_name<S>() + std::string("/")) + shape,
               [=](benchmark::State& state, const auto& device) {
                 const posenc::Alibi alibi(heads);
                 const auto scores = posenc::view(memory<S>(Place::first, heads * length * length),
                                                  std::array<Index, 3>{heads, length, length});
                 const posenc::Positions at = posenc::consecutive(0, length);
                 for (auto _ : state) {
                   posenc::softmax(device, scores, alibi, at, at, {.causal = true});
                   benchmark::ClobberMemory();
                 }
                 per_element(state, scores.size());
               });
}

/// Causal, in place, with another bias than ALiBi in it: rows by distance, a table of the queries, a part of the keys.
void add_biased_softmax(Index heads, Index length) {
  const auto of = [=](const std::string& name, const auto& make) {
    add("biased_softmax/" + name + "/" + by({heads, length, length}),
        [=](benchmark::State& state, const auto&) {
          const auto scores = posenc::view(memory<float>(Place::first, heads * length * length),
                                           std::array<Index, 3>{heads, length, length});
          const auto bias = make();
          const posenc::Positions at = posenc::consecutive(0, length);
          for (auto _ : state) {
            posenc::softmax(scores, bias, at, at, {.causal = true});
            benchmark::ClobberMemory();
          }
          per_element(state, scores.size());
        });
  };
  const auto t5 = [=] {
    Eigen::MatrixXf table = Eigen::MatrixXf::Random(32, heads);
    return posenc::RelativeBias(posenc::T5Buckets(posenc::T5Direction::unidirectional), std::move(table));
  };
  const auto padding = [=] {
    std::vector<std::int32_t> mask(static_cast<std::size_t>(length), 1);
    std::fill(mask.begin(), mask.begin() + length / 8, 0);
    return posenc::key_padding(mask);
  };
  of("none", [] { return posenc::NoBias(); });
  of("t5", t5);
  of("clipped", [=] {
    Eigen::MatrixXf table = Eigen::MatrixXf::Random(33, heads);
    return posenc::RelativeBias(posenc::Clipped(16), std::move(table));
  });
  of("shaw", [=] {
    Eigen::Tensor<float, 4, Eigen::RowMajor> table(1, heads, length, 33);
    table.setRandom();
    return posenc::RelativeBias(posenc::Clipped(16), std::move(table), posenc::TableOf::query);
  });
  of("sliding_window_256", [] { return posenc::sliding_window(256); });
  of("key_padding", padding);
  of("t5_key_padding", [=] { return posenc::sum(t5(), padding()); });
}

template <class S>
void add_scalar() {
  add_sinusoidal<S>(32, 100, 512);
  add_gather<S>(32, 100, 512);
  for (const char* scheme : {"none", "sinusoidal", "learned"}) add_embed<S>(32, 100, 512, scheme);
}

}  // namespace

void add_embedding() {
  add_scalar<float>();
  add_scalar<double>();
  add_scalar<Eigen::half>();
  add_scalar<Eigen::bfloat16>();
}

void add_bias() {
  add_softmax<float>(32, 1024);
  add_softmax<Eigen::half>(32, 1024);
  add_softmax<Eigen::bfloat16>(32, 1024);
  add_biased_softmax(32, 1024);
  add_alibi<float>(32, 1024, 1024);
  add_alibi<Eigen::half>(32, 1024, 1024);
  add_alibi<Eigen::bfloat16>(32, 1024, 1024);
}

}  // namespace posenc_bench
