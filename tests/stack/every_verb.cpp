// Every verb once, in a thread whose stack is 64 KiB: what WebAssembly's linker gives by default, and less than any C
// library does. Built with -fstack-usage, for frames.cmake to read.
#include <pthread.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <span>
#include <vector>

#include "posenc/posenc.hpp"

namespace {

using posenc::Axes;
using posenc::consecutive;
using posenc::Index;
using posenc::Mode;
using posenc::Pairing;

template <class S, int Rank>
using Tensor = Eigen::Tensor<S, Rank, Eigen::RowMajor>;

template <class S>
void embeddings() {
  constexpr Index batch = 2, seq = 20, width = 1030, vocabulary = 7;
  Tensor<S, 2> table(vocabulary, width), d_table(vocabulary, width);
  table.setConstant(S(0.5f)), d_table.setZero();
  Tensor<S, 3> x(batch, seq, width), logits(batch, seq, vocabulary), dx(batch, seq, width);
  Eigen::Tensor<S, 3> column_major(batch, seq, width);
  x.setConstant(S(1)), logits.setConstant(S(1)), column_major.setConstant(S(1));
  Eigen::Tensor<std::int32_t, 2> ids(batch, seq);
  ids.setConstant(3);
  const posenc::Positions at = consecutive(3, seq), rows = posenc::position_ids(ids);

  const posenc::Sinusoidal sinusoidal({.d_model = width, .layout = posenc::SinusoidLayout::halves});
  sinusoidal.add(x, at);
  sinusoidal.add(column_major, at);
  sinusoidal.encode(x, at);
  (void)sinusoidal.scale_vjp(x, at);
  const posenc::LearnedPositions<S> learned(table);
  learned.add(x, rows);
  learned.embed(x, rows);
  learned.add_vjp(d_table, rows, x);
  const posenc::TokenEmbedding<S> token(table);
  token.embed(x, ids);
  token.embed_vjp(d_table, ids, x);
  (void)token.embed_vjp_sparse(ids, x);
  token.logits(logits, x);
  token.logits_vjp(dx, d_table, x, logits);
  for (const char* const name : {"sinusoidal", "none"}) {
    const posenc::TransformerEmbedding<S> layer(token, {.position_embedding_type = name, .dropout = 0.1});
    layer.embed(x, ids, at, Mode::train, 7);
    layer.embed_vjp(d_table, ids, at, x, Mode::train, 7);
  }
  posenc::Dropout(0.5).apply(x, Mode::train, 7);
}

template <class S>
void rotations() {
  constexpr Index batch = 2, seq = 20, heads = 3, dim = 256;
  Tensor<S, 4> q(batch, seq, heads, dim), out(batch, seq, heads, dim);
  Eigen::Tensor<S, 4> column_major(batch, seq, heads, dim);
  q.setConstant(S(1)), column_major.setConstant(S(1));
  Tensor<S, 2> cos(seq, dim / 2), sin(seq, dim / 2);
  Eigen::Tensor<S, 2> column_cos(seq, dim / 2), column_sin(seq, dim / 2);
  const posenc::Positions at = consecutive(3, seq);
  const posenc::RotaryFrequencies frequencies = posenc::rotary_frequencies({.head_dim = dim});
  for (const Pairing pairing : {Pairing::half, Pairing::adjacent, Pairing::adjacent_to_half}) {
    const posenc::Rotary rotary(frequencies, pairing);
    const std::vector<posenc::Rotary> ropes(2, rotary);
    const std::vector<Index> choice = {0, 1};
    rotary.rotate(q, at, Axes::bshd);
    rotary.rotate(out, q, at, Axes::bshd);
    rotary.rotate(column_major, at, Axes::bshd);
    rotary.rotate_vjp(q, at, Axes::bshd);
    rotary.rotate_inverse(q, at, Axes::bshd);
    rotary.shift(q, 5, Axes::bshd);
    rotary.cos_sin(cos, sin, at);
    rotary.cos_sin(column_cos, column_sin, at);
    const posenc::RotaryTable table(cos, sin, pairing);
    table.rotate(q, consecutive(0, seq), Axes::bshd);
    table.rotate(column_major, consecutive(0, seq), Axes::bshd);
    posenc::KeyRebase(rotary, rotary).apply(q, at, Axes::bshd);
    posenc::rotate_per_row(q, ropes, choice, at, Axes::bshd);
    if (pairing == Pairing::adjacent_to_half) continue;
    const posenc::Xpos xpos(rotary);
    xpos.rotate_query(q, at, Axes::bshd);
    xpos.rotate_key(column_major, at, Axes::bshd);
  }
}

template <class S>
void biases() {
  constexpr Index heads = 3, queries = 4, keys = 5000;  // more keys than a softmax keeps
  Tensor<S, 3> scores(heads, queries, keys), d(heads, queries, keys);
  Eigen::Tensor<S, 3> column_major(heads, queries, keys);
  scores.setConstant(S(1)), d.setConstant(S(1)), column_major.setConstant(S(1));
  const posenc::Positions q_at = consecutive(keys - queries, queries), k_at = consecutive(0, keys);
  const posenc::Alibi alibi({.num_heads = heads, .form = posenc::AlibiForm::causal});
  alibi.add(scores, q_at, k_at);
  alibi.add(column_major, q_at, k_at);
  std::vector<double> d_slopes(heads);
  alibi.add_vjp(d_slopes, d, q_at, k_at);
  std::vector<S> row(keys);
  alibi.row(row, 1, 77, k_at);
  posenc::softmax(scores, alibi, q_at, k_at);
  posenc::softmax(scores, posenc::NoBias(), q_at, k_at, {.causal = true});
  posenc::softmax(column_major, alibi, q_at, k_at);
  posenc::softmax_vjp(Eigen::DefaultDevice(), d, scores);
}

template <class S>
void every_verb() {
  embeddings<S>();
  rotations<S>();
  biases<S>();
}

void* run(void* done) {
  try {
    every_verb<float>();
    every_verb<double>();
    every_verb<Eigen::half>();
    *static_cast<bool*>(done) = true;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
  return nullptr;
}

}  // namespace

int main() {
  pthread_attr_t small;
  pthread_t thread;
  bool done = false;
  if (pthread_attr_init(&small) != 0 || pthread_attr_setstacksize(&small, 64 * 1024) != 0 ||
      pthread_create(&thread, &small, run, &done) != 0 || pthread_join(thread, nullptr) != 0)
    std::fprintf(stderr, "no thread of 64 KiB\n");
  else if (done)
    std::puts("every verb ran in 64 KiB");
  return done ? 0 : 1;
}
