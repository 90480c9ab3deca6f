// The readers of a Llama's files: what is refused, and in which words. The files are made here.

#include <sys/stat.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "models/load_llama.hpp"
#include "support/catch.hpp"
#include "support/llama_files.hpp"
#include "transformer/language_model.hpp"

using namespace models;
using namespace posenc_test;
using transformer::logits;
using transformer::Matrix;

namespace {

/// What `read` says of a file: an InputError of one line that starts with its name.
void refused(const std::function<void()>& read, const std::string& reason) {
  std::string message;
  try {
    read();
  } catch (const InputError& error) {
    message = error.what();
  }
  CAPTURE(message, reason);
  CHECK(message.starts_with("some.file: "));
  CHECK(message.find('\n') == std::string::npos);
  CHECK(message.find(reason) != std::string::npos);
}

void read_bin(const std::string& file) { make_llama<float>(read_llama2c(bytes_of(file), "some.file")); }
void read_words(const std::string& file, std::size_t pieces = 259 + some_pieces().size()) {
  LlamaTokenizer(bytes_of(file), "some.file", pieces);
}
void read_hf(const std::string& file, const std::string& config = llama_config()) {
  make_llama<float>(read_hf_llama(bytes_of(file), "some.file", read_llama_config(config, "some.file")));
}

/// The file with a number in place of that at byte `at`.
template <class T>
std::string changed(std::string file, std::size_t at, T value) {
  std::memcpy(file.data() + at, &value, sizeof value);
  return file;
}
std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// Every beginning of a file is refused, and no change of one byte does anything but that or nothing.
template <class Read>
void survives_damage(const std::string& whole, const Read& read) {
  for (std::size_t length = 0; length < whole.size(); ++length) {
    CAPTURE(length);
    CHECK_THROWS_AS(read(whole.substr(0, length)), InputError);
  }
  CHECK_THROWS_AS(read(whole + '\0'), InputError);
  int refusals = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const char value : {'\x00', '\x7f', '\xff'}) {
      std::string damaged = whole;
      damaged[at] = value;
      try {
        read(damaged);
      } catch (const InputError& error) {
        CHECK(std::string(error.what()).find('\n') == std::string::npos);
        ++refusals;
      }
    }
  CHECK(refusals > 0);
}

struct TemporaryFolder {
  TemporaryFolder() : path(std::filesystem::temp_directory_path() / "posenc_llama_files_test") {
    std::filesystem::remove_all(path);
    std::filesystem::create_directory(path);
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path / name, std::ios::binary) << bytes;
    return (path / name).string();
  }
  std::filesystem::path path;
};

}  // namespace

TEST_CASE("mapped file: the bytes of a file, and what is none") {
  const TemporaryFolder folder;
  const std::string path = folder.write("some.file", "four");
  MappedFile file(path);
  CHECK(file.path() == path);
  CHECK(std::string(file.bytes().begin(), file.bytes().end()) == "four");
  MappedFile moved = std::move(file);
  CHECK(moved.bytes().size() == 4);
  CHECK(file.bytes().empty());  // NOLINT: that it is empty is the point
  CHECK(MappedFile(folder.write("empty", "")).bytes().empty());
  const std::string fifo = (folder.path / "fifo").string();
  REQUIRE(::mkfifo(fifo.c_str(), 0600) == 0);
  for (const std::string& none : {folder.path.string(), (folder.path / "missing").string(), fifo})
    CHECK_THROWS_WITH(MappedFile(none), none + ": not a file that can be read");
  const std::string huge = folder.write("huge", "");
  std::filesystem::resize_file(huge, (std::uintmax_t{1} << 30) + 1);  // takes no room on the disk
  CHECK_THROWS_WITH(MappedFile(huge), posenc_test::contains("larger than 1 GiB"));
}

TEST_CASE("byte reader: numbers, and what goes beyond the end") {
  const std::string bytes("\x01\x02\xff\xff\x00\x00\x80\x3f\x00\x3c\xc0\x3f\xfe", 13);
  ByteReader file(bytes_of(bytes), "some.file");
  CHECK(file.number<std::uint16_t>("n") == 0x0201);
  CHECK(file.number<std::int16_t>("n") == -1);
  CHECK(file.floats({1}, NumberType::f32, "f") == std::vector<float>{1.0f});
  CHECK(file.floats({1}, NumberType::f16, "f") == std::vector<float>{1.0f});
  CHECK(file.floats({1, 1}, NumberType::bf16, "f") == std::vector<float>{1.5f});
  refused([&] { file.require_end(); }, "it has 1 bytes too many");
  CHECK(file.floats({1}, NumberType::i8, "f") == std::vector<float>{-2.0f});
  file.require_end();
  CHECK(file.at() == 13);
  refused([&] { file.number<std::int32_t>("size"); }, "truncated: size needs 4 bytes, 0 are left");
  ByteReader again(bytes_of(bytes), "some.file");
  refused([&] { again.number<std::uint8_t>("kind", 2, 9); }, "kind: expected 2 to 9, got 1");
  refused([&] { again.bytes(std::uint64_t{1} << 63, "data"); }, "data needs 9223372036854775808 bytes");
  const std::uint64_t large = std::uint64_t{1} << 40;
  refused([&] { again.floats({large, large, large}, NumberType::f32, "table"); },
          "table needs 1099511627776 x 1099511627776 x 1099511627776 numbers of 4 bytes, 12 bytes are left");
  CHECK(again.count({large, 0, large}, 4, "nothing") == 0);
  refused([&] { again.fail("two\nlines \x1b[31m"); }, "two?lines ?[31m");
  refused([&] { again.fail(std::string(1000, 'x')); }, "xxx...");
  float infinite = std::numeric_limits<float>::infinity();
  std::string none(4, '\0');
  std::memcpy(none.data(), &infinite, 4);
  refused([&] { ByteReader(bytes_of(none), "some.file").floats({1}, NumberType::f32, "w"); },
          "w holds a number that is not finite");
}

TEST_CASE("Llama files: where each number goes") {
  for (const std::int32_t vocab : {5, -5}) {
    const std::string file = llama2c_file({.vocab = vocab});
    const LlamaWeights weights = read_llama2c(bytes_of(file), "some.file");
    CHECK(weights.config.output.tied == (vocab > 0));
    CHECK(weights.output.has_value() == (vocab < 0));
    CHECK(weights.context == 4);
    CHECK(weights.config.num_kv_heads == 1);
    CHECK(weights.config.pairing == posenc::Pairing::adjacent);
    const auto model = make_llama<double>(weights);
    // Where each number went, of a linear map and of a packed one: y = x W with W (in, out).
    const auto& parameters = model.parameters();
    const auto value = [&](const char* name, std::size_t at) {
      return parameters.values(parameters.entry(name))[at];
    };
    const auto stored = [](const LlamaTensor& tensor, std::size_t at) {
      return static_cast<double>(number_at<float>(tensor.bytes, at));
    };
    const LlamaLayer& layer = weights.layers[1];
    // q: (8, 8), k: (4, 8), so qkv: (8, 16). Row 3 of k is output 8 + 3; its column 2 is input 2.
    CHECK(value("layers.1.self_attention.qkv.weight", 2 * 16 + 8 + 3) == stored(layer.k, 3 * 8 + 2));
    CHECK(value("layers.1.self_attention.qkv.weight", 7 * 16 + 12 + 1) == stored(layer.v, 1 * 8 + 7));
    // gate, up: (6, 8), so w1: (8, 12).
    CHECK(value("layers.1.feed_forward.w1.weight", 4 * 12 + 5) == stored(layer.gate, 5 * 8 + 4));
    CHECK(value("layers.1.feed_forward.w1.weight", 4 * 12 + 6 + 5) == stored(layer.up, 5 * 8 + 4));
    CHECK(value("layers.1.feed_forward.w2.weight", 3 * 8 + 7) == stored(layer.down, 7 * 6 + 3));
    CHECK(value("embedding.weight", 9) == stored(weights.embedding, 9));
    if (vocab < 0) CHECK(value("output.weight", 3 * 5 + 4) == stored(*weights.output, 4 * 8 + 3));

    const std::string other = llama_safetensors({.vocab = vocab});
    const LlamaWeights hf =
        read_hf_llama(bytes_of(other), "some.file", read_llama_config(llama_config({.vocab = vocab}), "c"));
    CHECK(hf.config.pairing == posenc::Pairing::half);
    CHECK(hf.config.output.tied == (vocab > 0));
    CHECK(hf.config.norm_eps == 1e-5);
    CHECK(hf.context == 4);
    const transformer::Tokens tokens = {1, 4, 2};
    const Matrix<double> z = logits(make_llama<double>(hf), std::span<const transformer::Token>(tokens));
    CHECK(z.rows() == 3);
    CHECK(z.allFinite());
  }
}

TEST_CASE("llama2.c file: what is refused") {
  const std::string good = llama2c_file();
  read_bin(good);
  refused([] { read_bin(""); }, "not a llama2.c file: shorter than its header");
  refused([&] { read_bin(good.substr(0, good.size() - 1)); }, "bytes, got");
  refused([&] { read_bin(good + "more"); }, "bytes, got");
  refused([&] { read_bin(changed(good, 0, 0x616b3432)); }, "version 6, expected the first format");
  refused([&] { read_bin("GGUF" + good.substr(4)); }, "dim: expected 1 to 65536, got");
  refused([&] { read_bin(changed(good, 0, 0)); }, "dim: expected 1 to 65536, got 0");
  refused([&] { read_bin(changed(good, 4, -1)); }, "hidden_dim: expected");
  refused([&] { read_bin(changed(good, 8, std::numeric_limits<std::int32_t>::max())); },
          "n_layers: expected");
  refused([&] { read_bin(changed(good, 12, 3)); }, "n_heads 3");
  refused([&] { read_bin(changed(good, 12, 8)); }, "of even width");
  refused([&] { read_bin(changed(good, 16, 3)); }, "n_kv_heads: expected a number that divides");
  refused([&] { read_bin(changed(good, 20, 0)); }, "vocab_size: expected");
  refused([&] { read_bin(changed(good, 20, std::numeric_limits<std::int32_t>::min())); },
          "vocab_size: expected");
  refused([&] { read_bin(changed(good, 24, 1 << 20)); }, "bytes, got");
  refused([&] { read_bin(changed(good, 28, std::numeric_limits<float>::quiet_NaN())); },
          "token_embedding holds a number that is not finite");
  // The second layer's wq lies behind the embedding, both rms_att and the first layer's wq.
  const std::size_t wq = 28 + 4 * (5 * 8 + 2 * 8 + 8 * 8);
  refused([&] { read_bin(changed(good, wq, std::numeric_limits<float>::infinity())); },
          "wq of layer 1 holds a number that is not finite");
  survives_damage(llama2c_file({.dim = 4, .hidden = 1, .layers = 1, .heads = 2, .vocab = -1, .seq_len = 1}),
                  read_bin);
}

TEST_CASE("tokenizer: pieces are joined by score, and what is no piece becomes bytes") {
  const std::string file = tokenizer_file(some_pieces());
  const LlamaTokenizer words(bytes_of(file), "some.file", 259 + some_pieces().size());
  CHECK(words.size() == 269);
  CHECK(words.longest() == 8);
  const Token space = 259, a = 260, b = 261, c = 262, e_acute = 263, ab = 264, bc = 265, _a = 266, abc = 267,
              cc = 268;
  const auto encoded = [&](const char* text) {
    transformer::Tokens ids = words.encode(text);
    CHECK(ids[0] == LlamaTokenizer::bos);
    CHECK(words.decode(ids) == text);
    ids.erase(ids.begin());
    return ids;
  };
  using T = transformer::Tokens;
  CHECK(words.encode("") == T{1});
  CHECK(encoded("b") == T{space, b});
  CHECK(encoded("a") == T{_a});
  CHECK(encoded("ab") == T{space, ab});      // -1 beats " a" with -3
  CHECK(encoded("abc") == T{space, abc});    // ab first, then with c
  CHECK(encoded("bcc") == T{space, bc, c});  // bc and cc are alike: the first of them
  CHECK(encoded("ccc") == T{space, cc, c});
  CHECK(encoded("\xc3\xa9") == T{space, e_acute});
  CHECK(encoded("\xe2\x82\xac") == T{space, 3 + 0xe2, 3 + 0x82, 3 + 0xac});
  CHECK(encoded(" a") == T{space, _a});
  CHECK(encoded("\n") == T{space, 3 + '\n'});
  CHECK(encoded("A") == T{space, 3 + 'A'});
  CHECK(a == 260);
  // Bytes are never joined, and <s> has no text.
  CHECK(words.decode(0, 1).empty());
  CHECK(words.decode(0, _a) == " a");
  CHECK(words.decode(1, _a) == "a");
  CHECK(words.decode(0, 100000).empty());
  CHECK(words.decode(0, -1).empty());
}

TEST_CASE("tokenizer: what is refused") {
  const std::string good = tokenizer_file(some_pieces());
  read_words(good);
  refused([&] { read_words(good, 258); }, "expected at least 259 pieces, the model has 258");
  refused([&] { read_words(good, std::size_t{1} << 40); }, "truncated: 1099511627776 pieces");
  refused([&] { read_words(good, 268); }, "bytes too many");
  refused([&] { read_words(good, 270); }, "truncated: the score of piece 269 needs 4 bytes, 0 are left");
  refused([] { read_words(""); }, "shorter than 4 bytes");
  refused([&] { read_words(changed(good, 0, 0)); }, "max_token_length: expected 1 to 65536, got 0");
  refused([&] { read_words(changed(good, 4, std::numeric_limits<float>::quiet_NaN())); },
          "the score of piece 0 holds a number that is not finite");
  refused([&] { read_words(changed(good, 8, -1)); }, "the length of piece 0: expected 0 to 8, got -1");
  refused([&] { read_words(changed(good, 8, 1 << 30)); }, "the length of piece 0");
  refused([&] { read_words(replaced(good, "<0x41>", "<0x1b>")); }, "piece 68: expected <0x41>, got <0x1b>");
  refused([&] { read_words(good.substr(0, good.size() - 1)); }, "truncated: piece 268");
  survives_damage(tokenizer_file({}), [](const std::string& file) { read_words(file, 259); });
}

TEST_CASE("Hugging Face Llama: what is refused") {
  const std::string good = llama_safetensors(), config = llama_config();
  read_hf(good);
  read_hf(llama_safetensors({.vocab = -5}));  // tied, and the table stands there twice
  const auto file = [&](const std::string& from, const std::string& to, const std::string& reason) {
    refused([&] { read_hf(replaced(good, from, to)); }, reason);
  };
  file("model.norm.weight", "model.morn.weight", "it lacks tensor \"model.norm.weight\"");
  file("q_proj.weight\": {\"dtype\": \"F32\", \"shape\": [8, 8]",
       "q_proj.weight\": {\"dtype\": \"F32\", \"shape\": [4,16]", "expected shape (8, 8), got (4, 16)");
  file("\"F32\"", "\"I32\"", "expected dtype");
  refused([&] { read_hf(good.substr(0, good.size() - 4)); }, "ends beyond the end");
  refused([&] { read_hf(llama_safetensors({.layers = 3})); },
          "layers.2.input_layernorm.weight\" has no place");
  refused([&] { read_hf(good, llama_config({.vocab = -5})); }, "it lacks tensor \"lm_head.weight\"");
  refused([&] { read_hf(good, llama_config({.layers = 1024})); }, "it lacks tensor");
  refused([&] { read_hf(changed(good, good.size() - 4, std::numeric_limits<float>::quiet_NaN())); },
          "tensor \"model.norm.weight\" holds a number that is not finite");

  const auto json = [&](const std::string& from, const std::string& to, const std::string& reason) {
    refused([&] { read_hf(good, replaced(config, from, to)); }, reason);
  };
  refused([&] { read_hf(good, ""); }, "not the configuration of a Llama");
  refused([&] { read_hf(good, "[]"); }, "not the configuration of a Llama");
  json("llama", "gpt2", "not the configuration of a Llama");
  json("\"hidden_size\"", "\"hidden_sides\"", "not the configuration of a Llama");
  json("\"vocab_size\": 5", "\"vocab_size\": -5", "vocab_size: expected 1 to");
  json("\"vocab_size\": 5", "\"vocab_size\": 5.5", "vocab_size: expected 1 to");
  json("\"vocab_size\": 5", "\"vocab_size\": 99999999999", "vocab_size: expected 1 to");
  json("\"num_key_value_heads\": 1", "\"num_key_value_heads\": 3", "not the configuration of a Llama");
  json("silu", "gelu", "hidden_act: expected silu");
  json("1e-5", "-1", "rms_norm_eps: expected a number from 0 to 1");
  json("true", "7", "tie_word_embeddings: expected true or false");
  json("\"rope_theta\": 10000.0", "\"attention_bias\": true", "biases are not supported");
  json("\"rope_theta\": 10000.0", "\"head_dim\": 6", "not the configuration of a Llama");
}

TEST_CASE("Llama files: found by their first bytes, with what belongs to them") {
  const TemporaryFolder folder;
  const std::string bin = folder.write("model.bin", llama2c_file());
  CHECK(load_llama<float>(bin).context == 4);
  const std::string hf = folder.write("model.safetensors", llama_safetensors());
  CHECK_THROWS_WITH(load_llama<float>(hf), posenc_test::contains("config.json: not a file that can be read"));
  folder.write("config.json", llama_config());
  CHECK(load_llama<float>(hf).network.config().vocab_size == 5);
  CHECK_THROWS_WITH(tokenizer_beside(bin, 512),
                    bin + ": expected its tokenizer beside it, tokenizer.bin or tok512.bin");
  const std::string words = folder.write("tok269.bin", tokenizer_file(some_pieces()));
  CHECK(tokenizer_beside(bin, 269) == words);
  CHECK(load_llama_tokenizer(words, 269).size() == 269);
}
