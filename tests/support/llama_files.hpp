#pragma once
// Small files of a Llama in each format, made from nothing: for tests of the readers, and as what their fuzz
// targets start from.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/mapped_file.hpp"

namespace posenc_test {

inline models::Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const unsigned char*>(text.data()), text.size()};
}

template <class T>
void append_number(std::string& file, T value) {
  char bytes[sizeof(T)];
  std::memcpy(bytes, &value, sizeof(T));
  file.append(bytes, sizeof(T));
}

/// Floats between -1 and 1, different ones.
inline void append_floats(std::string& file, std::int64_t count) {
  for (std::int64_t n = 0; n < count; ++n)
    append_number(file, static_cast<float>((n * 37 + 11) % 101) / 50.0f - 1.0f);
}

struct LlamaSizes {
  std::int32_t dim = 8, hidden = 6, layers = 2, heads = 2, kv_heads = 1, vocab = 5, seq_len = 4;
  std::int32_t kv_dim() const { return kv_heads * dim / heads; }
};

/// A file of llama2.c, untied where vocab is negative.
inline std::string llama2c_file(const LlamaSizes& s = {}) {
  std::string file;
  for (const std::int32_t n : {s.dim, s.hidden, s.layers, s.heads, s.kv_heads, s.vocab, s.seq_len})
    append_number(file, n);
  const std::int64_t vocab = s.vocab < 0 ? -s.vocab : s.vocab, d = s.dim;
  append_floats(file, vocab * d);
  append_floats(file, s.layers * (2 * d + 2 * d * d + 2 * s.kv_dim() * d + 3 * s.hidden * d));
  append_floats(file, d + s.seq_len * (d / s.heads));
  if (s.vocab < 0) append_floats(file, vocab * d);
  return file;
}

/// A tokenizer: the 259 ids that there must be, then these pieces, with these scores.
inline std::string tokenizer_file(const std::vector<std::pair<std::string, float>>& pieces,
                                  std::int32_t longest = 8) {
  std::string file;
  append_number(file, longest);
  const auto add = [&](const std::string& piece, float score) {
    append_number(file, score);
    append_number(file, static_cast<std::int32_t>(piece.size()));
    file += piece;
  };
  for (const char* special : {"<unk>", "\n<s>\n", "\n</s>\n"}) add(special, 0);
  for (int byte = 0; byte < 256; ++byte) {
    constexpr std::string_view digits = "0123456789ABCDEF";
    add({'<', '0', 'x', digits[static_cast<std::size_t>(byte / 16)],
         digits[static_cast<std::size_t>(byte % 16)], '>'},
        0);
  }
  for (const auto& [piece, score] : pieces) add(piece, score);
  return file;
}

inline const std::vector<std::pair<std::string, float>>& some_pieces() {
  static const std::vector<std::pair<std::string, float>> pieces = {
      {" ", -9},  {"a", -9},  {"b", -9},  {"c", -9},   {"\xc3\xa9", -9},
      {"ab", -1}, {"bc", -2}, {" a", -3}, {"abc", -4}, {"cc", -2}};
  return pieces;
}

/// A config.json and the safetensors file that belongs to it.
inline std::string llama_config(const LlamaSizes& s = {}) {
  const auto n = [](std::int32_t value) { return std::to_string(value < 0 ? -value : value); };
  return R"({"model_type": "llama", "hidden_size": )" + n(s.dim) + R"(, "intermediate_size": )" +
         n(s.hidden) + R"(, "num_hidden_layers": )" + n(s.layers) + R"(, "num_attention_heads": )" +
         n(s.heads) + R"(, "num_key_value_heads": )" + n(s.kv_heads) + R"(, "vocab_size": )" + n(s.vocab) +
         R"(, "max_position_embeddings": )" + n(s.seq_len) +
         R"(, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu", "tie_word_embeddings": )" +
         (s.vocab > 0 ? "true" : "false") + "}";
}
inline std::string llama_safetensors(const LlamaSizes& s = {}) {
  std::string header = "{", data;
  const auto add = [&](const std::string& name, std::int64_t rows, std::int64_t columns) {
    const std::size_t first = data.size();
    append_floats(data, rows * columns);
    header += (header == "{" ? "\"" : ", \"") + name + R"(": {"dtype": "F32", "shape": [)" +
              (rows == 1 ? "" : std::to_string(rows) + ", ") + std::to_string(columns) +
              R"(], "data_offsets": [)" + std::to_string(first) + ", " + std::to_string(data.size()) + "]}";
  };
  const std::int64_t vocab = s.vocab < 0 ? -s.vocab : s.vocab;
  add("model.embed_tokens.weight", vocab, s.dim);
  for (std::int32_t l = 0; l < s.layers; ++l) {
    const std::string layer = "model.layers." + std::to_string(l) + ".";
    add(layer + "input_layernorm.weight", 1, s.dim);
    add(layer + "self_attn.q_proj.weight", s.dim, s.dim);
    add(layer + "self_attn.k_proj.weight", s.kv_dim(), s.dim);
    add(layer + "self_attn.v_proj.weight", s.kv_dim(), s.dim);
    add(layer + "self_attn.o_proj.weight", s.dim, s.dim);
    add(layer + "post_attention_layernorm.weight", 1, s.dim);
    add(layer + "mlp.gate_proj.weight", s.hidden, s.dim);
    add(layer + "mlp.up_proj.weight", s.hidden, s.dim);
    add(layer + "mlp.down_proj.weight", s.dim, s.hidden);
  }
  add("model.norm.weight", 1, s.dim);
  if (s.vocab < 0) add("lm_head.weight", vocab, s.dim);
  header += "}";
  std::string file;
  append_number(file, static_cast<std::uint64_t>(header.size()));
  return file + header + data;
}

}  // namespace posenc_test
