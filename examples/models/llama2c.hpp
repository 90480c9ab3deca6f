#pragma once
// The weights of llama2.c, in its first format ("version 0"), little-endian:
//
//   int32      dim, hidden_dim, n_layers, n_heads, n_kv_heads, vocab_size, seq_len
//              vocab_size < 0: the output has a matrix of its own, else it is tied to the embedding
//   float32    token_embedding (vocab, dim)
//              rms_att (layers, dim)   wq (layers, dim, dim)   wk, wv (layers, kv_dim, dim)   wo (layers,
//              dim, dim) rms_ffn (layers, dim)   w1 (layers, hidden, dim)   w2 (layers, dim, hidden)   w3
//              like w1 rms_final (dim) cos, sin (seq_len, head_dim / 2): tables that nothing needs any more
//              output (vocab, dim), unless tied
//
// Pairs of the rotation are adjacent. RMSNorm has eps = 1e-5 and the rotation a base of 10000: the file does
// not say so. There is no magic number, so the sizes decide whether it is one: they must add up to the file.

#include <cstdint>
#include <string>

#include "models/byte_reader.hpp"
#include "models/llama.hpp"

namespace models {

/// The tables of cos and sin that a file carries: float32 (seq_len, head_dim / 2) each.
struct Llama2cTables {
  Bytes cos, sin;
};

/// Finds the weights in the bytes of a file, which must outlive the result. Throws an InputError that starts
/// with `path` and says what is wrong.
inline LlamaWeights read_llama2c(Bytes bytes, const std::string& path, Llama2cTables* tables = nullptr) {
  ByteReader file(bytes, path);
  const auto fail = [&](const std::string& what) { file.fail("not a llama2.c file: " + what); };
  if (file.size() < 28) fail("shorter than its header of 28 bytes");
  std::int64_t header[7] = {};
  for (std::int64_t& number : header) number = file.number<std::int32_t>("header");
  if (header[0] == 0x616b3432)  // "ak42"
    fail("it is of version " + std::to_string(header[1]) + ", expected the first format, version 0");
  const auto size = [&](std::size_t n, const char* name, std::int64_t most) {
    if (header[n] < 1 || header[n] > most)
      fail(std::string(name) + ": expected 1 to " + std::to_string(most) + ", got " +
           std::to_string(header[n]));
    return static_cast<std::uint64_t>(header[n]);
  };
  const bool tied = header[5] > 0;
  if (!tied) header[5] = -header[5];
  const std::uint64_t dim = size(0, "dim", 1 << 16), hidden = size(1, "hidden_dim", 1 << 18),
                      layers = size(2, "n_layers", 1 << 10), heads = size(3, "n_heads", 1 << 12),
                      kv_heads = size(4, "n_kv_heads", 1 << 12), vocab = size(5, "vocab_size", 1 << 20),
                      seq_len = size(6, "seq_len", 1 << 20);
  if (dim % heads != 0 || dim / heads % 2 != 0)
    fail("expected n_heads heads of even width, got dim " + std::to_string(dim) + " and n_heads " +
         std::to_string(heads));
  if (heads % kv_heads != 0)
    fail("n_kv_heads: expected a number that divides n_heads = " + std::to_string(heads) + ", got " +
         std::to_string(kv_heads));
  const std::uint64_t head_dim = dim / heads, kv_dim = kv_heads * head_dim, angles = seq_len * head_dim / 2;

  // None of these products comes near 2^64.
  const std::uint64_t per_layer = 2 * dim + 2 * dim * dim + 2 * kv_dim * dim + 3 * hidden * dim;
  const std::uint64_t numbers = (tied ? 1 : 2) * vocab * dim + layers * per_layer + dim + 2 * angles;
  if (numbers * 4 != file.left())
    fail("a model of dim " + std::to_string(dim) + ", hidden_dim " + std::to_string(hidden) + ", " +
         std::to_string(layers) + " layers and " + std::to_string(vocab) + " tokens has " +
         std::to_string(28 + numbers * 4) + " bytes, got " + std::to_string(file.size()));

  LlamaWeights out;
  out.path = path;
  out.context = static_cast<transformer::Index>(seq_len);
  const auto index = [](std::uint64_t n) { return static_cast<transformer::Index>(n); };
  out.config.vocab_size = index(vocab);
  out.config.d_model = index(dim);
  out.config.num_heads = index(heads);
  out.config.num_kv_heads = index(kv_heads);
  out.config.num_layers = index(layers);
  out.config.d_ff = index(hidden);
  out.config.pairing = posenc::Pairing::adjacent;
  out.config.output = {.tied = tied, .bias = false};
  out.layers.resize(layers);
  const auto take = [&](const std::string& name, std::uint64_t rows, std::uint64_t columns) {
    return LlamaTensor{name, NumberType::f32, file.bytes(rows * columns * 4, name)};
  };
  const auto each = [&](const char* name, LlamaTensor LlamaLayer::* tensor, std::uint64_t rows,
                        std::uint64_t columns) {
    for (std::size_t l = 0; l < out.layers.size(); ++l)
      out.layers[l].*tensor = take(name + (" of layer " + std::to_string(l)), rows, columns);
  };
  out.embedding = take("token_embedding", vocab, dim);
  each("rms_att", &LlamaLayer::attention_norm, 1, dim);
  each("wq", &LlamaLayer::q, dim, dim);
  each("wk", &LlamaLayer::k, kv_dim, dim);
  each("wv", &LlamaLayer::v, kv_dim, dim);
  each("wo", &LlamaLayer::o, dim, dim);
  each("rms_ffn", &LlamaLayer::feed_forward_norm, 1, dim);
  each("w1", &LlamaLayer::gate, hidden, dim);
  each("w2", &LlamaLayer::down, dim, hidden);
  each("w3", &LlamaLayer::up, hidden, dim);
  out.norm = take("rms_final", 1, dim);
  const Bytes cos = file.bytes(angles * 4, "cos"), sin = file.bytes(angles * 4, "sin");
  if (tables != nullptr) *tables = {cos, sin};
  if (!tied) out.output = take("output", vocab, dim);
  file.require_end();
  return out;
}

}  // namespace models
