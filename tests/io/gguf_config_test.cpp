// GGUF headers, written here byte by byte: what each group of architectures and each scaling comes out as,
// and what is refused, with the message. Golden numbers are those of the models' own configs, which a file
// made from them must reproduce.

#include "posenc/io/gguf_config.hpp"

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/rotary/rotary.hpp"
#include "support/support.hpp"

using posenc::Index;
using posenc::ModelPositions;
using posenc::Pairing;
using posenc::RotaryLayer;
using posenc_test::check_throws;
using posenc_test::contains;

namespace {

/// Little-endian, whatever the machine is.
std::string bytes(std::uint64_t value, int count) {
  std::string out;
  for (int i = 0; i < count; ++i) out += static_cast<char>((value >> (8 * i)) & 0xff);
  return out;
}
std::string f32(double value) { return bytes(std::bit_cast<std::uint32_t>(static_cast<float>(value)), 4); }
std::string text(const std::string& value) { return bytes(value.size(), 8) + value; }

/// A file under construction.
class Writer {
 public:
  Writer& raw(const std::string& key, std::uint32_t type, const std::string& value) {
    keys_ += text(key) + bytes(type, 4) + value;
    ++count_;
    return *this;
  }
  Writer& u32(const std::string& key, std::uint64_t value) { return raw(key, 4, bytes(value, 4)); }
  Writer& real(const std::string& key, double value) { return raw(key, 6, f32(value)); }
  Writer& flag(const std::string& key, bool value) { return raw(key, 7, bytes(value ? 1 : 0, 1)); }
  Writer& word(const std::string& key, const std::string& value) { return raw(key, 8, text(value)); }
  Writer& list(const std::string& key, const std::vector<Index>& values, std::uint32_t type = 5) {
    std::string all = bytes(type, 4) + bytes(values.size(), 8);
    for (const Index value : values) all += bytes(static_cast<std::uint64_t>(value), type == 7 ? 1 : 4);
    return raw(key, 9, all);
  }

  /// Values of a tensor of type 0; other tensors have a shape and no data.
  Writer& tensor(const std::string& name, const std::vector<std::uint64_t>& shape,
                 const std::vector<double>& values = {}, std::uint32_t type = 0) {
    data_.resize((data_.size() + 31) / 32 * 32);
    tensors_ += text(name) + bytes(shape.size(), 4);
    for (const std::uint64_t extent : shape) tensors_ += bytes(extent, 8);
    tensors_ += bytes(type, 4) + bytes(data_.size(), 8);
    for (const double value : values) data_ += f32(value);
    ++tensor_count_;
    return *this;
  }

  std::string file(std::uint32_t version = 3) const {
    std::string out =
        "GGUF" + bytes(version, 4) + bytes(tensor_count_, 8) + bytes(count_, 8) + keys_ + tensors_;
    out.resize((out.size() + 31) / 32 * 32);
    return out + data_;
  }

 private:
  std::string keys_, tensors_, data_;
  std::uint64_t count_ = 0, tensor_count_ = 0;
};

posenc::GgufMetadata header(const std::string& file) {
  std::istringstream in(file);
  return posenc::read_gguf_metadata(in, file.size());
}
ModelPositions read(const std::string& file) { return posenc::model_positions_from_gguf(header(file)); }
ModelPositions read(const Writer& writer) { return read(writer.file()); }

/// The keys that every model has: 8 heads of 64.
Writer model(const std::string& arch, Index layers = 4, Index context = 4096) {
  Writer writer;
  writer.word("general.architecture", arch)
      .u32(arch + ".block_count", static_cast<std::uint64_t>(layers))
      .u32(arch + ".context_length", static_cast<std::uint64_t>(context))
      .u32(arch + ".embedding_length", 512)
      .u32(arch + ".attention.head_count", 8);
  return writer;
}
/// The same with a base, so that its absence gives no warning.
Writer rotary(const std::string& arch, double base = 10000, Index layers = 4, Index context = 4096) {
  return model(arch, layers, context).real(arch + ".rope.freq_base", base);
}

const std::vector<posenc::LayerPositions>& layers(const ModelPositions& positions) {
  return positions.stacks.at(0).layers;
}
bool rotates(const ModelPositions& positions, std::size_t layer) {
  return std::holds_alternative<RotaryLayer>(layers(positions).at(layer).scheme);
}
const RotaryLayer& rope(const ModelPositions& positions, std::size_t layer = 0) {
  REQUIRE(rotates(positions, layer));
  return std::get<RotaryLayer>(layers(positions).at(layer).scheme);
}
/// Some warning has this in it.
bool warns(const ModelPositions& positions, const std::string& part) {
  for (const std::string& warning : positions.warnings)
    if (warning.find(part) != std::string::npos) return true;
  return false;
}
/// "FFSF": which layers are full, sliding, and in small letters the ones that don't rotate.
std::string kinds(const ModelPositions& positions) {
  std::string all;
  for (std::size_t i = 0; i < layers(positions).size(); ++i) {
    const std::optional<std::string>& type = layers(positions)[i].type;
    char kind = type == "full_attention" ? 'F' : !type ? 'A' : type == "recurrent" ? 'R' : 'S';
    if (!rotates(positions, i)) kind = static_cast<char>(kind - 'A' + 'a');
    all += kind;
  }
  return all;
}

void refuses(const Writer& writer, std::initializer_list<const char*> parts) {
  check_throws<std::invalid_argument>([&] { read(writer); }, parts);
}
void refuses(const std::string& file, std::initializer_list<const char*> parts) {
  check_throws<std::invalid_argument>([&] { read(file); }, parts);
}

}  // namespace

TEST_CASE("GGUF: a header of every type comes back as written, in versions 2 and 3") {
  const std::uint32_t version = GENERATE(2u, 3u);
  Writer writer;
  writer.raw("a", 0, bytes(200, 1))
      .raw("b", 1, bytes(0xfe, 1))
      .raw("c", 2, bytes(60000, 2))
      .raw("d", 3, bytes(0xfffd, 2))
      .raw("e", 4, bytes(4000000000u, 4))
      .raw("f", 5, bytes(0xfffffffc, 4))
      .real("g", 0.5)
      .flag("h", true)
      .word("i", "text")
      .raw("j", 10, bytes(~std::uint64_t{0}, 8))
      .raw("k", 11, bytes(~std::uint64_t{0} - 4, 8))
      .raw("l", 12, bytes(std::bit_cast<std::uint64_t>(1e300), 8))
      .list("m", {1, -2, 3})
      .raw("n", 9, bytes(8, 4) + bytes(2, 8) + text("x") + text("yz"))
      .raw("o", 9, bytes(6, 4) + bytes(1, 8) + f32(0.25))
      .raw("tokenizer.ggml.tokens", 9, bytes(8, 4) + bytes(2, 8) + text("x") + text("yz"))
      .tensor("blk.0.attn_q.weight", {512, 512}, {}, 12)
      .tensor("rope_freqs.weight", {3}, {1, 2, 4});
  const posenc::GgufMetadata file = header(writer.file(version));
  CHECK(file.version == version);
  CHECK(std::get<std::uint64_t>(file.values.at("a")) == 200);
  CHECK(std::get<std::int64_t>(file.values.at("b")) == -2);
  CHECK(std::get<std::uint64_t>(file.values.at("c")) == 60000);
  CHECK(std::get<std::int64_t>(file.values.at("d")) == -3);
  CHECK(std::get<std::uint64_t>(file.values.at("e")) == 4000000000u);
  CHECK(std::get<std::int64_t>(file.values.at("f")) == -4);
  CHECK(std::get<double>(file.values.at("g")) == 0.5);
  CHECK(std::get<bool>(file.values.at("h")));
  CHECK(std::get<std::string>(file.values.at("i")) == "text");
  CHECK(std::get<std::uint64_t>(file.values.at("j")) == ~std::uint64_t{0});
  CHECK(std::get<std::int64_t>(file.values.at("k")) == -5);
  CHECK(std::get<double>(file.values.at("l")) == 1e300);
  CHECK(std::get<posenc::GgufList>(file.values.at("m")).integers == std::vector<std::int64_t>{1, -2, 3});
  CHECK(std::get<posenc::GgufList>(file.values.at("n")).strings == std::vector<std::string>{"x", "yz"});
  CHECK(std::get<posenc::GgufList>(file.values.at("o")).reals == std::vector<double>{0.25});
  CHECK(file.values.count("tokenizer.ggml.tokens") == 0);
  CHECK(file.tensors.at("blk.0.attn_q.weight").shape == std::vector<std::uint64_t>{512, 512});
  CHECK(file.tensors.at("blk.0.attn_q.weight").type == 12);
  CHECK(file.rope_tensors.at("rope_freqs") == std::vector<double>{1, 2, 4});
}

TEST_CASE("GGUF: a file on disk, and one that can't be read") {
  const auto path = std::filesystem::temp_directory_path() / "posenc_gguf_config_test.gguf";
  {
    std::ofstream out(path, std::ios::binary);
    const std::string file = rotary("llama", 500000).file();
    out.write(file.data(), static_cast<std::streamsize>(file.size()));
  }
  CHECK(rope(posenc::read_gguf(path)).config.rope_theta == 500000);
  std::filesystem::remove(path);
  check_throws<std::invalid_argument>([&] { posenc::read_gguf(path); },
                                      {"expected a file that can be read", "posenc_gguf_config_test"});
  check_throws<std::invalid_argument>([&] { posenc::read_gguf(std::filesystem::temp_directory_path()); },
                                      {"expected a file that can be read"});
}

TEST_CASE("GGUF: every prefix of a file is refused, without reading beyond it") {
  const std::string whole = rotary("llama")
                                .word("general.name", "a name")
                                .list("llama.some.list", {1, 2, 3})
                                .tensor("rope_freqs.weight", {32}, std::vector<double>(32, 1.0))
                                .file();
  CHECK_NOTHROW(read(whole));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    INFO("the first " << size << " bytes");
    CHECK_THROWS_AS(read(whole.substr(0, size)), std::invalid_argument);
    std::istringstream longer(whole);  // where more follows that is no part of the file
    CHECK_THROWS_AS(posenc::read_gguf_metadata(longer, size), std::invalid_argument);
  }
}

TEST_CASE("GGUF: malformed headers are refused with a message") {
  const std::string start = "GGUF" + bytes(3, 4);
  refuses(std::string(), {"starts with \"GGUF\""});
  refuses("GGML" + bytes(3, 4) + bytes(0, 8) + bytes(0, 8), {"starts with \"GGUF\""});
  refuses("GGUF" + bytes(1, 4) + bytes(0, 8) + bytes(0, 8), {"expected version 2 or 3, got 1"});
  refuses("GGUF" + bytes(4, 4) + bytes(0, 8) + bytes(0, 8), {"expected version 2 or 3, got 4"});
  refuses("GGUF" + bytes(0x03000000, 4) + bytes(0, 8) + bytes(0, 8), {"little-endian", "big-endian"});
  refuses(start, {"the number of tensors: expected 8 bytes at 8, but the file ends at 8"});
  refuses(start + bytes(0, 8) + bytes(~std::uint64_t{0}, 8),
          {"the number of keys: expected at most 0", "18446744073709551615"});
  refuses(start + bytes(1000, 8) + bytes(0, 8), {"the number of tensors: expected at most 0", "got 1000"});
  const std::string one_key = start + bytes(0, 8) + bytes(1, 8);
  const std::string padding(64, '\0');
  refuses(one_key + bytes(std::uint64_t{1} << 62, 8) + padding,
          {"the name of key 0: expected 4611686018427387904 bytes"});
  refuses(one_key + bytes(65536, 8) + std::string(70000, 'k'),
          {"the name of key 0: expected at most 65535 bytes, got 65536"});
  refuses(one_key + text("k") + bytes(13, 4) + padding, {"\"k\": expected a type in [0, 12], got 13"});
  refuses(one_key + text("k") + bytes(7, 4) + bytes(2, 1) + padding,
          {"\"k\": expected a bool, 0 or 1, got 2"});
  refuses(one_key + text("k") + bytes(8, 4) + bytes(1000, 8) + padding, {"\"k\": expected 1000 bytes"});
  refuses(one_key + text("k") + bytes(8, 4) + bytes((1 << 24) + 1, 8) + std::string((1 << 24) + 1, 's'),
          {"\"k\": expected at most 16777216 bytes, got 16777217"});
  refuses(one_key + text("k") + bytes(9, 4) + bytes(9, 4) + bytes(1, 8) + padding,
          {"\"k\": expected no array of arrays"});
  refuses(one_key + text("k") + bytes(9, 4) + bytes(12, 4) + bytes(std::uint64_t{1} << 61, 8) + padding,
          {"\"k\": expected at most 8 elements in what is left of the file, got 2305843009213693952"});
  refuses(one_key + text("k") + bytes(9, 4) + bytes(8, 4) + bytes(2, 8) + text("x") + bytes(99, 8) + padding,
          {"\"k\": expected 99 bytes"});
  refuses(one_key + text("k") + bytes(9, 4) + bytes(10, 4) + bytes(1, 8) + bytes(~std::uint64_t{0}, 8),
          {"\"k\": expected integers below 2^63"});
  refuses(one_key + text("a\nb\x7f" + std::string(100, 'c')) + bytes(13, 4),
          {"\"a?b?", "...\": expected a type"});
  refuses(Writer().u32("k", 1).u32("k", 2), {"\"k\": expected each key once"});
  refuses(Writer().tensor("t", {1}).tensor("t", {1}), {"tensor \"t\": expected each tensor once"});
  refuses(Writer().tensor("t", {1, 1, 1, 1, 1}), {"tensor \"t\": expected at most 4 dimensions, got 5"});
  refuses(Writer().u32("general.alignment", 24), {"general.alignment: expected a power of two"});
  refuses(Writer().word("general.alignment", "32"), {"general.alignment: expected a power of two"});
  refuses(Writer().tensor("rope_freqs.weight", {32}, {}, 1),
          {"\"rope_freqs.weight\": expected type 0, float32, got type 1"});
  refuses(Writer().tensor("rope_freqs.weight", {4, 8}), {"expected one dimension"});
  refuses(Writer().tensor("rope_freqs.weight", {std::uint64_t{1} << 40}),
          {"expected one dimension of at most 8192"});
  refuses(Writer().tensor("rope_freqs.weight", {32}, {1.0}),
          {"the data of tensor \"rope_freqs.weight\": expected 128 bytes"});
  refuses(Writer().tensor("rope_freqs.weight", {1}, {1.0}).tensor("rope_freqs", {1}, {1.0}),
          {"expected it once"});
}

TEST_CASE("GGUF: long lists are walked and not kept") {
  const std::vector<Index> many(65537, 1);
  const auto file = header(Writer()
                               .list("x", many)
                               .raw("y", 9, bytes(8, 4) + bytes(65537, 8) + std::string(65537 * 8, '\0'))
                               .u32("z", 7)
                               .file());
  CHECK_FALSE(std::get<posenc::GgufList>(file.values.at("x")).kept);
  CHECK(std::get<posenc::GgufList>(file.values.at("y")).count == 65537);
  CHECK(std::get<std::uint64_t>(file.values.at("z")) == 7);
  refuses(rotary("qwen2vl").list("qwen2vl.rope.dimension_sections", many),
          {"expected an array of integers, got an array of 65537 (an i32 each)"});
}

TEST_CASE("GGUF: adjacent pairs for llama, halves for qwen2, as llama.cpp has them") {
  const ModelPositions llama = read(rotary("llama", 500000));
  CHECK(llama.model_type == "llama");
  CHECK(llama.warnings.empty());
  CHECK(kinds(llama) == "AAAA");
  CHECK(rope(llama).pairing == Pairing::adjacent);
  CHECK(rope(llama).config.head_dim == 64);
  CHECK(rope(llama).config.rope_theta == 500000);
  CHECK(rope(llama).max_position_embeddings == 4096);
  CHECK_FALSE(rope(llama).config.rotary_dim);
  CHECK(rope(llama).softmax_scale == 1.0);
  CHECK(posenc::rope_type(rope(llama).scaling) == "default");
  const auto f = rope(llama).frequencies(4096);
  REQUIRE(f.inv_freq.size() == 32);
  CHECK(f.inv_freq[31] == Approx(std::pow(500000.0, -62.0 / 64)).epsilon(1e-14));

  for (const char* arch :
       {"llama", "command-r", "olmo", "deepseek", "granite", "minicpm", "arcee", "chatglm", "internlm2"})
    CHECK(rope(read(rotary(arch))).pairing == Pairing::adjacent);
  for (const char* arch : {"qwen2", "qwen3moe", "phi2", "gemma", "gptneox", "stablelm", "falcon",
                           "starcoder2", "nomic-bert", "seed_oss"})
    CHECK(rope(read(rotary(arch))).pairing == Pairing::half);
}

TEST_CASE("GGUF: the width of heads and of their rotated part") {
  const ModelPositions wide =
      read(rotary("qwen3").u32("qwen3.attention.key_length", 128).u32("qwen3.attention.head_count_kv", 2));
  CHECK(rope(wide).config.head_dim == 128);
  const ModelPositions partial = read(rotary("phi2").u32("phi2.rope.dimension_count", 32));
  CHECK(rope(partial).frequencies(1).rotary_dim() == 32);
  CHECK(rope(partial).window.first(64, 32) == 0);
  refuses(rotary("phi2").u32("phi2.rope.dimension_count", 65),
          {"phi2.rope.dimension_count: expected an even number in [2, 64]", "got 65"});
  refuses(rotary("phi2").u32("phi2.rope.dimension_count", 0), {"got 0"});
  refuses(rotary("phi2").u32("phi2.rope.dimension_count", 128), {"got 128"});
  refuses(rotary("phi2").u32("phi2.attention.key_length", 100000),
          {"phi2.attention.key_length: expected an integer in [2, 8192], got 100000"});
  Writer odd;
  odd.word("general.architecture", "llama")
      .u32("llama.block_count", 1)
      .u32("llama.context_length", 8)
      .u32("llama.embedding_length", 100)
      .u32("llama.attention.head_count", 3);
  refuses(odd, {"llama.embedding_length: expected a multiple of attention.head_count, 3", "got 100"});
}

TEST_CASE("GGUF: a base that is not stated is 10000, and said so") {
  const ModelPositions positions = read(model("phi2"));
  CHECK(rope(positions).config.rope_theta == 10000);
  REQUIRE(positions.warnings.size() == 1);
  CHECK(warns(positions, "phi2.rope.freq_base is absent: 10000"));
}

TEST_CASE("GGUF: linear scaling, by its two names") {
  const auto factor = [](const ModelPositions& positions) {
    return std::get<posenc::LinearConfig>(rope(positions).scaling).factor;
  };
  CHECK(
      factor(read(
          rotary("llama").real("llama.rope.scaling.factor", 4).word("llama.rope.scaling.type", "linear"))) ==
      4);
  CHECK(factor(read(rotary("llama").real("llama.rope.scaling.factor", 4))) == 4);
  CHECK(factor(read(rotary("llama").real("llama.rope.scale_linear", 2))) == 2);
  const ModelPositions both =
      read(rotary("llama").real("llama.rope.scaling.factor", 4).real("llama.rope.scale_linear", 2));
  CHECK(factor(both) == 4);
  CHECK(warns(both, "rope.scaling.factor, 4, wins over rope.scale_linear, 2"));
  const ModelPositions none =
      read(rotary("llama").word("llama.rope.scaling.type", "none").real("llama.rope.scaling.factor", 4));
  CHECK(posenc::rope_type(rope(none).scaling) == "default");
  CHECK(warns(none, "none wins over a factor of 4"));
  CHECK(posenc::rope_type(rope(read(rotary("llama").real("llama.rope.scaling.factor", 0))).scaling) ==
        "default");
  const auto magnified =
      rope(
          read(
              rotary("llama").real("llama.rope.scaling.factor", 4).real("llama.rope.scaling.attn_factor", 2)))
          .frequencies(1);
  CHECK(magnified.attention_factor == 2);
  CHECK(magnified.inv_freq[0] == 0.25);
  refuses(rotary("llama").real("llama.rope.scaling.factor", -1),
          {"llama.rope.scaling.factor: expected a positive number, got -1"});
  refuses(rotary("llama").word("llama.rope.scaling.type", "ntk"),
          {"llama.rope.scaling.type: expected none, linear, yarn or longrope, got \"ntk\""});
}

TEST_CASE("GGUF: YaRN has the magnitude of the paper once, and ggml's ramp") {
  // Frequencies: transformers' own test, head 128, base 10000, factor 10, L0 2048.
  const ModelPositions positions = read(rotary("qwen2", 10000, 4, 20480)
                                            .u32("qwen2.attention.key_length", 128)
                                            .word("qwen2.rope.scaling.type", "yarn")
                                            .real("qwen2.rope.scaling.factor", 10)
                                            .u32("qwen2.rope.scaling.original_context_length", 2048));
  CHECK(positions.warnings.empty());
  CHECK(posenc::rope_type(rope(positions).scaling) == "yarn (ggml)");
  const auto f = rope(positions).frequencies(1);
  CHECK(f.inv_freq[16] == Approx(0.1).epsilon(1e-7));
  CHECK(f.inv_freq[17] == Approx(8.34789608e-2).epsilon(1e-7));
  CHECK(f.inv_freq[31] == Approx(5.31199713e-3).epsilon(1e-7));
  CHECK(f.inv_freq[63] == Approx(1.15478198e-5).epsilon(1e-7));
  CHECK(f.attention_factor == Approx(1.2302585093).epsilon(1e-9));
  CHECK(rope(positions).softmax_scale == 1.0);

  const ModelPositions absent =
      read(rotary("qwen2").word("qwen2.rope.scaling.type", "yarn").real("qwen2.rope.scaling.factor", 4));
  CHECK(std::get<posenc::GgmlYarnConfig>(rope(absent).scaling).n_ctx_orig == 4096);
  CHECK(warns(absent, "original_context_length is absent"));

  const ModelPositions tuned = read(rotary("qwen2")
                                        .word("qwen2.rope.scaling.type", "yarn")
                                        .real("qwen2.rope.scaling.factor", 4)
                                        .u32("qwen2.rope.scaling.original_context_length", 1024)
                                        .real("qwen2.rope.scaling.yarn_ext_factor", 0.5)
                                        .real("qwen2.rope.scaling.yarn_beta_fast", 16)
                                        .real("qwen2.rope.scaling.yarn_beta_slow", 2)
                                        .real("qwen2.rope.scaling.yarn_attn_factor", 3)
                                        .real("qwen2.rope.scaling.yarn_log_multiplier", 0.1)
                                        .real("qwen2.rope.scaling.attn_factor", 2));
  const auto& yarn = std::get<posenc::GgmlYarnConfig>(rope(tuned).scaling);
  CHECK(yarn.ext_factor == 0.5);
  CHECK(yarn.beta_fast == 16);
  CHECK(yarn.beta_slow == 2);
  CHECK(rope(tuned).frequencies(1).attention_factor == Approx(2 * (1 + 0.1 * std::log(4.0))).epsilon(1e-14));
  CHECK(warns(tuned, "yarn_attn_factor: left unused"));
  CHECK(warns(tuned, "yarn_log_multiplier: left unused"));

  const ModelPositions oss = read(rotary("gpt-oss", 150000, 2)
                                      .word("gpt-oss.rope.scaling.type", "yarn")
                                      .real("gpt-oss.rope.scaling.factor", 32)
                                      .u32("gpt-oss.rope.scaling.original_context_length", 4096));
  CHECK(rope(oss).frequencies(1).attention_factor == Approx(1.3465735903).epsilon(1e-9));
  CHECK(warns(oss, "truncate"));

  refuses(rotary("qwen2").word("qwen2.rope.scaling.type", "yarn"),
          {"qwen2.rope.scaling.factor: expected this key with yarn"});
  refuses(rotary("qwen2").word("qwen2.rope.scaling.type", "yarn").real("qwen2.rope.scaling.factor", 0.5),
          {"expected at least 1 with yarn, got 0.5"});
  refuses(rotary("qwen2")
              .word("qwen2.rope.scaling.type", "yarn")
              .real("qwen2.rope.scaling.factor", 4)
              .real("qwen2.rope.scaling.yarn_ext_factor", -1),
          {"yarn_ext_factor: expected at least 0"});
  refuses(rotary("qwen2")
              .word("qwen2.rope.scaling.type", "yarn")
              .real("qwen2.rope.scaling.factor", 4)
              .real("qwen2.rope.scaling.yarn_beta_slow", 64),
          {"beta_fast"});
}

TEST_CASE("GGUF: DeepSeek's YaRN corrects the softmax scale, and turns the end of the head") {
  // DeepSeek-V3: factor 40, L0 4096, mscale and mscale_all_dim 1, of which the file holds a tenth.
  const Writer writer = rotary("deepseek2", 10000, 2, 163840)
                            .u32("deepseek2.attention.key_length", 576)
                            .u32("deepseek2.attention.key_length_mla", 192)
                            .u32("deepseek2.rope.dimension_count", 64)
                            .word("deepseek2.rope.scaling.type", "yarn")
                            .real("deepseek2.rope.scaling.factor", 40)
                            .u32("deepseek2.rope.scaling.original_context_length", 4096)
                            .real("deepseek2.rope.scaling.yarn_log_multiplier", 0.1);
  const ModelPositions positions = read(writer);
  const RotaryLayer& layer = rope(positions);
  CHECK(layer.config.head_dim == 192);
  CHECK(layer.window.first(192, 64) == 128);
  CHECK(layer.pairing == Pairing::adjacent);
  CHECK(layer.softmax_scale == Approx(1.8738542071).epsilon(1e-7));
  const auto f = layer.frequencies(1);
  CHECK(f.attention_factor == Approx(1.0).epsilon(1e-7));
  CHECK(f.inv_freq[10] == Approx(5.62341325e-2).epsilon(1e-7));
  CHECK(f.inv_freq[16] == Approx(5.5e-3).epsilon(1e-7));
  CHECK(f.inv_freq[23] == Approx(3.33380358e-5).epsilon(1e-7));
  CHECK(f.inv_freq[31] == Approx(3.33380358e-6).epsilon(1e-7));
  CHECK_NOTHROW(posenc::Rotary(f, *layer.pairing, layer.window));

  // DeepSeek-V2-Lite: mscale and mscale_all_dim 0.707; their ratio is 1 as well.
  const ModelPositions lite = read(rotary("deepseek2")
                                       .u32("deepseek2.attention.key_length", 192)
                                       .u32("deepseek2.rope.dimension_count", 64)
                                       .word("deepseek2.rope.scaling.type", "yarn")
                                       .real("deepseek2.rope.scaling.factor", 40)
                                       .u32("deepseek2.rope.scaling.original_context_length", 4096)
                                       .real("deepseek2.rope.scaling.yarn_log_multiplier", 0.0707));
  const double m = 1 + 0.0707 * std::log(40.0);
  CHECK(rope(lite).frequencies(1).attention_factor == Approx(1.0).epsilon(1e-7));
  CHECK(rope(lite).softmax_scale == Approx(m * m).epsilon(1e-6));

  const ModelPositions plain = read(rotary("deepseek2")
                                        .u32("deepseek2.attention.key_length", 192)
                                        .u32("deepseek2.rope.dimension_count", 64)
                                        .word("deepseek2.rope.scaling.type", "yarn")
                                        .real("deepseek2.rope.scaling.factor", 40)
                                        .u32("deepseek2.rope.scaling.original_context_length", 4096));
  CHECK(rope(plain).softmax_scale == 1.0);
  CHECK(warns(plain, "yarn_log_multiplier is absent"));
  refuses(rotary("deepseek2"), {"deepseek2.rope.dimension_count: expected this key"});

  // Mistral 3 stores mscale_all_dim itself: the ratio is 1, and the softmax scale stays.
  const ModelPositions mistral = read(rotary("mistral3", 1e6, 2, 262144)
                                          .word("mistral3.rope.scaling.type", "yarn")
                                          .real("mistral3.rope.scaling.factor", 16)
                                          .u32("mistral3.rope.scaling.original_context_length", 16384)
                                          .real("mistral3.rope.scaling.yarn_log_multiplier", 1)
                                          .real("mistral3.attention.temperature_scale", 0.1));
  CHECK(rope(mistral).frequencies(1).attention_factor == Approx(1.0).epsilon(1e-12));
  CHECK(rope(mistral).softmax_scale == 1.0);
  REQUIRE(layers(mistral)[1].temperature);
  CHECK(layers(mistral)[1].temperature->rule == posenc::TemperatureRule::ministral3);
  CHECK(layers(mistral)[1].temperature->length == 16384);
  CHECK(layers(mistral)[1].temperature->scale == Approx(0.1));
}

TEST_CASE("GGUF: LongRoPE takes its lists from two tensors") {
  const std::vector<double> shorts(32, 1.0), longs(32, 8.0);
  const auto phi = [] {
    return rotary("phi3", 10000, 2, 131072).u32("phi3.rope.scaling.original_context_length", 4096);
  };
  const ModelPositions positions = read(phi()
                                            .word("phi3.rope.scaling.type", "longrope")
                                            .real("phi3.rope.scaling.attn_factor", 1.25)
                                            .tensor("rope_factors_long.weight", {32}, longs)
                                            .tensor("rope_factors_short.weight", {32}, shorts));
  CHECK(positions.warnings.empty());
  CHECK(rope(positions).frequencies(4096).inv_freq[0] == 1.0);
  CHECK(rope(positions).frequencies(4097).inv_freq[0] == 0.125);
  CHECK(rope(positions).frequencies(1).attention_factor == 1.25);

  const ModelPositions older = read(phi()
                                        .tensor("rope_factors_long.weight", {32}, longs)
                                        .tensor("rope_factors_short.weight", {32}, shorts));
  CHECK(rope(older).frequencies(1).attention_factor == Approx(1.1902380714).epsilon(1e-9));
  CHECK(warns(older, "so this is LongRoPE"));
  CHECK(warns(older, "attn_factor is absent"));

  refuses(phi().word("phi3.rope.scaling.type", "longrope"),
          {"rope_factors_short: expected this tensor with LongRoPE"});
  refuses(phi().tensor("rope_factors_short.weight", {32}, shorts),
          {"rope_factors_long: expected this tensor"});
  refuses(phi()
              .tensor("rope_factors_long.weight", {16}, std::vector<double>(16, 1.0))
              .tensor("rope_factors_short.weight", {32}, shorts),
          {"long_factor: expected 32 divisors", "got 16"});
  refuses(phi()
              .tensor("rope_factors_long.weight", {32}, std::vector<double>(32, 0.0))
              .tensor("rope_factors_short.weight", {32}, shorts),
          {"rope_factors_long[0]: expected a positive divisor, got 0"});
  refuses(phi()
              .word("phi3.rope.scaling.type", "yarn")
              .real("phi3.rope.scaling.factor", 4)
              .tensor("rope_factors_long.weight", {32}, longs),
          {"expected no rope_factors_long in a file with yarn"});
  refuses(phi().real("phi3.rope.scaling.factor", 4).tensor("rope_factors_long.weight", {32}, longs),
          {"expected none beside LongRoPE's lists, got 4"});
  refuses(phi()
              .tensor("rope_factors_long.weight", {32}, longs)
              .tensor("rope_factors_short.weight", {32}, shorts)
              .tensor("rope_freqs.weight", {32}, shorts),
          {"rope_freqs: expected either this tensor or LongRoPE's two"});
}

TEST_CASE("GGUF: Llama 3.1's bands come as divisors in rope_freqs") {
  std::vector<double> divisors(64, 1.0);
  // Between the bands: the frequency of the formula over the one in the file, from golden points.
  for (std::size_t i = 36; i < 64; ++i) divisors[i] = 8.0;
  divisors[32] = std::pow(500000.0, -0.5) / 5.24846161e-4;
  const ModelPositions positions = read(rotary("llama", 500000, 2, 131072)
                                            .u32("llama.attention.key_length", 128)
                                            .tensor("rope_freqs.weight", {64}, divisors));
  CHECK(positions.warnings.empty());
  const auto f = rope(positions).frequencies(131072);
  CHECK(f.inv_freq[0] == 1.0);
  CHECK(f.inv_freq[32] == Approx(5.24846161e-4).epsilon(1e-6));
  CHECK(f.inv_freq[36] == Approx(7.78465527e-5).epsilon(1e-6));
  CHECK(f.inv_freq[63] == Approx(3.06892599e-7).epsilon(1e-6));
  refuses(rotary("llama").tensor("rope_freqs.weight", {16}, std::vector<double>(16, 1.0)),
          {"rope_freqs: expected 32 divisors, one per pair, got 16"});
  refuses(rotary("llama").tensor("rope_freqs.weight", {32}, std::vector<double>(32, -1.0)),
          {"rope_freqs[0]: expected a positive divisor, got -1"});
  refuses(rotary("llama").tensor("rope_other.weight", {32}),
          {"tensor \"rope_other.weight\": expected no rope tensor that posenc does not know"});
}

TEST_CASE("GGUF: M-RoPE sections, contiguous and interleaved") {
  const auto with = [](const char* arch, const std::vector<Index>& sections) {
    return rotary(arch, 1e6)
        .u32(std::string(arch) + ".attention.key_length", 128)
        .list(std::string(arch) + ".rope.dimension_sections", sections);
  };
  const ModelPositions qwen2 = read(with("qwen2vl", {16, 24, 24, 0}));
  CHECK(qwen2.warnings.empty());
  CHECK(rope(qwen2).axes == posenc::AxisLayout::sections);
  CHECK(rope(qwen2).pairing == Pairing::half);
  CHECK(rope(qwen2).sections == std::vector<Index>{16, 24, 24});
  const auto axis = rope(qwen2).frequencies(1).axis;
  CHECK(axis[15] == 0);
  CHECK(axis[16] == 1);
  CHECK(axis[40] == 2);

  const ModelPositions qwen3 = read(with("qwen3vl", {24, 20, 20, 0}));
  CHECK(rope(qwen3).axes == posenc::AxisLayout::interleaved);
  CHECK(rope(qwen3).frequencies(1).axis[59] == 2);
  CHECK(rope(qwen3).frequencies(1).axis[61] == 0);
  CHECK(warns(qwen3, "pair 61"));
  const ModelPositions hunyuan =
      read(with("hunyuan_vl", {16, 16, 16, 16}).real("hunyuan_vl.rope.scaling.alpha", 1000));
  CHECK(rope(hunyuan).frequencies(1).axes() == 4);
  CHECK(rope(hunyuan).frequencies(1).inv_freq[1] ==
        Approx(std::pow(1e6 * std::pow(1000.0, 128.0 / 126), -2.0 / 128)).epsilon(1e-12));

  CHECK(rope(read(rotary("glm4"))).pairing == Pairing::adjacent);
  CHECK(rope(read(with("glm4", {16, 24, 24, 0}))).pairing == Pairing::half);
  CHECK(rope(read(rotary("glm4moe"))).pairing == Pairing::half);
  CHECK(rope(read(with("glm4moe", {0, 0, 0, 0}))).axes == posenc::AxisLayout::one);

  refuses(rotary("qwen2vl"), {"qwen2vl.rope.dimension_sections: expected this key"});
  refuses(with("qwen3vl", {16, 24, 24, 0}), {"qwen3vl.rope.dimension_sections: expected sections that can "
                                             "take turns among 64 pairs, got 24 and 24"});
  refuses(with("qwen2vl", {0, 0, 0, 0}),
          {"expected sections that sum to the number of pairs, 64, got zeros"});
  refuses(with("qwen2vl", {16, 24, 23, 0}),
          {"expected sections that sum to the number of pairs, 64, got 63"});
  refuses(with("qwen2vl", {32, 32}), {"expected 3 or 4 sections, got 2"});
  refuses(with("qwen3vl", {16, 16, 16, 16}), {"expected a fourth section of 0 for interleaved axes, got 16"});
  refuses(with("qwen2vl", {-16, 40, 40, 0}), {"expected an integer in [0, 8192], got -16"});
  refuses(rotary("qwen2vl").u32("qwen2vl.rope.dimension_sections", 3),
          {"expected an array of integers, got an integer"});
}

TEST_CASE("GGUF: layers of two kinds, by period or by list") {
  const ModelPositions gemma = read(rotary("gemma3", 1e6, 12, 131072)
                                        .u32("gemma3.attention.sliding_window", 512)
                                        .word("gemma3.rope.scaling.type", "linear")
                                        .real("gemma3.rope.scaling.factor", 8));
  CHECK(kinds(gemma) == "SSSSSFSSSSSF");
  CHECK(rope(gemma, 0).config.rope_theta == 10000);
  CHECK(posenc::rope_type(rope(gemma, 0).scaling) == "default");
  CHECK(rope(gemma, 5).config.rope_theta == 1e6);
  CHECK(posenc::rope_type(rope(gemma, 5).scaling) == "linear");
  CHECK(warns(gemma, "gemma3.rope.freq_base_swa is absent: 10000"));
  CHECK(kinds(read(rotary("gemma3", 1e6))) == "AAAA");

  CHECK(kinds(read(rotary("gemma3n", 1e6, 6).real("gemma3n.rope.freq_base_swa", 1e4))) == "SSSSFS");
  CHECK(kinds(read(rotary("gemma2").u32("gemma2.attention.sliding_window", 8))) == "SFSF");
  CHECK(kinds(read(rotary("modern-bert", 160000, 7)
                       .u32("modern-bert.attention.sliding_window", 128)
                       .real("modern-bert.rope.freq_base_swa", 1e4))) == "FSSFSSF");
  CHECK(kinds(read(rotary("gemma3", 1e6)
                       .u32("gemma3.attention.sliding_window", 512)
                       .u32("gemma3.attention.sliding_window_pattern", 2))) == "SFSF");

  const auto olmo = rotary("olmo2", 5e5)
                        .u32("olmo2.attention.sliding_window", 4096)
                        .word("olmo2.rope.scaling.type", "yarn")
                        .real("olmo2.rope.scaling.factor", 8)
                        .u32("olmo2.rope.scaling.original_context_length", 8192);
  CHECK(kinds(read(olmo)) == "SSSF");
  CHECK(posenc::rope_type(rope(read(olmo), 0).scaling) == "default");
  CHECK(rope(read(olmo), 0).config.rope_theta == 5e5);
  CHECK(posenc::rope_type(rope(read(olmo), 3).scaling) == "yarn (ggml)");

  const auto gemma4 = [] {
    return rotary("gemma4", 1e6, 3)
        .u32("gemma4.attention.sliding_window", 512)
        .u32("gemma4.attention.key_length", 128)
        .u32("gemma4.attention.key_length_swa", 64)
        .u32("gemma4.rope.dimension_count", 128)
        .u32("gemma4.rope.dimension_count_swa", 64)
        .real("gemma4.rope.freq_base_swa", 1e4);
  };
  std::vector<double> proportional(64, 1e30);
  for (std::size_t i = 0; i < 16; ++i) proportional[i] = 1.0;
  const ModelPositions four = read(gemma4()
                                       .list("gemma4.attention.sliding_window_pattern", {1, 1, 0}, 7)
                                       .tensor("rope_freqs.weight", {64}, proportional));
  CHECK(kinds(four) == "SSF");
  CHECK(rope(four, 0).config.head_dim == 64);
  CHECK(rope(four, 0).freq_factors.empty());
  CHECK(rope(four, 2).frequencies(1).inv_freq[15] == Approx(std::pow(1e6, -30.0 / 128)).epsilon(1e-12));
  CHECK(rope(four, 2).frequencies(1).inv_freq[16] < 1e-29);
  refuses(
      gemma4(),
      {"gemma4.attention.sliding_window_pattern: expected this key, an array with the kind of each layer"});
  refuses(gemma4().list("gemma4.attention.sliding_window_pattern", {1, 0}, 7),
          {"expected one value per layer, 3, got 2"});
  refuses(gemma4().list("gemma4.attention.sliding_window_pattern", {1, 1, 0}, 7).tensor("other", {1}),
          {"rope_freqs: expected this tensor"});

  const ModelPositions step = read(rotary("step35", 1e6, 2)
                                       .u32("step35.attention.sliding_window", 512)
                                       .list("step35.attention.sliding_window_pattern", {0, 1}, 7)
                                       .real("step35.rope.freq_base_swa", 1e4)
                                       .tensor("rope_freqs.weight", {32}, std::vector<double>(32, 2.0)));
  CHECK(rope(step, 0).frequencies(1).rotary_dim() == 32);
  CHECK(rope(step, 0).frequencies(1).inv_freq[0] == 0.5);
  CHECK(rope(step, 1).frequencies(1).rotary_dim() == 64);
  CHECK(rope(step, 1).frequencies(1).inv_freq[0] == 1.0);
  CHECK(warns(step, "half of rope.dimension_count"));

  const ModelPositions alike = read(rotary("qwen2").u32("qwen2.attention.sliding_window_pattern", 2));
  CHECK(kinds(alike) == "AAAA");
  CHECK(warns(alike, "all layers of qwen2 are alike"));
}

TEST_CASE("GGUF: layers that don't rotate") {
  CHECK(kinds(read(rotary("cohere2", 1e4, 8).u32("cohere2.attention.sliding_window", 4096))) == "SSSfSSSf");
  CHECK(kinds(read(rotary("exaone4", 1e6, 4).u32("exaone4.attention.sliding_window", 4096))) == "SSSf");
  CHECK(kinds(read(rotary("exaone4", 1e6, 4))) == "AAAA");
  CHECK(kinds(read(rotary("smollm3", 2e6, 4))) == "AAAa");
  CHECK(kinds(read(rotary("smallthinker", 1e6, 4).u32("smallthinker.attention.sliding_window", 4096))) ==
        "fSSS");
  const ModelPositions llama4 = read(rotary("llama4", 5e5, 4));
  CHECK(kinds(llama4) == "SSSf");
  CHECK(layers(llama4)[0].type == "chunked_attention");
  CHECK_FALSE(layers(llama4)[0].temperature);
  REQUIRE(layers(llama4)[3].temperature);
  CHECK(layers(llama4)[3].temperature->length == 8192);
  CHECK(kinds(read(rotary("llama4", 5e5, 4).u32("llama4.attention.sliding_window", 0))) == "AAAA");
  CHECK(kinds(read(rotary("granite"))) == "AAAA");
  const ModelPositions granite = read(rotary("granite").flag("granite.rope.scaling.finetuned", false));
  CHECK(kinds(granite) == "aaaa");
  CHECK(warns(granite, "no layer rotates"));
}

TEST_CASE("GGUF: hybrids have layers that are no attention") {
  CHECK(kinds(read(rotary("lfm2").list("lfm2.attention.head_count_kv", {0, 4, 0, 4}))) == "rArA");
  CHECK(kinds(read(rotary("qwen3next"))) == "rrrF");
  CHECK(kinds(read(rotary("qwen3next").u32("qwen3next.full_attention_interval", 2))) == "rFrF");
  CHECK(kinds(read(rotary("qwen3next").list("qwen3next.attention.recurrent_layers", {0, 1, 1, 0}, 7))) ==
        "FrrF");
  CHECK(kinds(read(model("jamba").list("jamba.attention.head_count_kv", {0, 2, 0, 0}))) == "rarr");
  Writer mamba;
  mamba.word("general.architecture", "mamba")
      .u32("mamba.block_count", 2)
      .u32("mamba.context_length", 1 << 20)
      .u32("mamba.embedding_length", 512);
  CHECK(kinds(read(mamba)) == "rr");
  CHECK(warns(read(rotary("nemotron_h").u32("nemotron_h.rope.dimension_count", 64)),
              "nemotron_h.rope.dimension_count: left unused"));
  refuses(model("llama").u32("llama.attention.head_count_kv", 9),
          {"llama.attention.head_count_kv: expected at most as many heads as queries have, 8, got 9"});
}

TEST_CASE("GGUF: ALiBi, learned tables and T5's buckets") {
  const ModelPositions bloom = read(model("bloom"));
  CHECK(std::get<posenc::AlibiConfig>(layers(bloom)[0].scheme).num_heads == 8);
  CHECK(std::get<posenc::AlibiConfig>(layers(bloom)[0].scheme).alibi_bias_max == 8.0);
  const ModelPositions mpt = read(model("mpt").real("mpt.attention.max_alibi_bias", 16));
  CHECK(std::get<posenc::AlibiConfig>(layers(mpt)[0].scheme).alibi_bias_max == 16.0);
  refuses(model("mpt"), {"mpt.attention.max_alibi_bias: expected this key or a tensor position_embd.weight"});
  refuses(model("mpt").real("mpt.attention.max_alibi_bias", -8), {"expected at least 0, got -8"});
  refuses(model("mpt").real("mpt.attention.max_alibi_bias", 8).tensor("position_embd.weight", {512, 4096}),
          {"expected either ALiBi or a learned table, got both"});
  CHECK(std::holds_alternative<posenc::AlibiConfig>(layers(read(model("baichuan", 40)))[0].scheme));
  CHECK(rope(read(rotary("baichuan", 1e4, 32))).pairing == Pairing::adjacent);
  CHECK(warns(read(rotary("baichuan", 1e4, 12)), "this file has 12"));

  for (const char* arch : {"gpt2", "bert", "starcoder", "mpt"}) {
    const ModelPositions learned = read(model(arch, 2, 1024).tensor("position_embd.weight", {512, 1024}));
    CHECK(std::get<posenc::LearnedEmbedding>(learned.stacks[0].embedding).max_len == 1024);
    CHECK(std::holds_alternative<posenc::NoPositionLayer>(layers(learned)[0].scheme));
    CHECK(learned.warnings.empty());
  }
  CHECK(warns(read(model("gpt2", 2, 1024).tensor("position_embd.weight", {512, 512})), "512 rows"));
  CHECK(warns(read(model("gpt2")), "lists no tensors"));
  refuses(model("gpt2").tensor("token_embd.weight", {512, 100}),
          {"position_embd.weight: expected this tensor"});
  refuses(model("gpt2").tensor("position_embd.weight", {64, 100}),
          {"position_embd.weight: expected a table of width 512"});

  const ModelPositions t5 =
      read(model("t5", 4).u32("t5.attention.relative_buckets_count", 32).u32("t5.decoder_block_count", 2));
  REQUIRE(t5.stacks.size() == 2);
  CHECK(t5.stacks[0].layers.size() == 4);
  CHECK(t5.stacks[1].layers.size() == 2);
  CHECK(std::get<posenc::RelativeBucketsLayer>(t5.stacks[0].layers[0].scheme).bidirectional);
  CHECK_FALSE(std::get<posenc::RelativeBucketsLayer>(t5.stacks[1].layers[0].scheme).bidirectional);
  CHECK(std::get<posenc::RelativeBucketsLayer>(t5.stacks[1].layers[0].scheme).num_buckets == 32);
  CHECK(read(model("t5encoder").u32("t5encoder.attention.relative_buckets_count", 32)).stacks.size() == 1);
  refuses(model("t5"), {"t5.attention.relative_buckets_count: expected this key"});
}

TEST_CASE("GGUF: architectures that posenc does not describe say why") {
  refuses(Writer(), {"general.architecture: expected this key"});
  refuses(Writer().u32("general.architecture", 3),
          {"general.architecture: expected a string, got an integer"});
  refuses(model("llama99"), {"\"llama99\" is not known", "does not guess"});
  refuses(model("gptj"), {"\"gptj\" is not described", "GPT-J rotates adjacent pairs"});
  refuses(model("clip"), {"\"clip\" is not described"});
  refuses(model("deepseek4"), {"\"deepseek4\" is not described"});
  refuses(model("laguna"), {"\"laguna\" is not described"});
}

TEST_CASE("GGUF: keys that are missing, unknown, of the wrong type or out of range") {
  Writer bare;
  bare.word("general.architecture", "llama");
  refuses(bare, {"llama.block_count: expected this key, but the file has none"});
  refuses(bare.u32("llama.block_count", 2), {"llama.context_length: expected this key"});
  refuses(bare.u32("llama.context_length", 8), {"llama.embedding_length: expected this key"});
  refuses(bare.u32("llama.embedding_length", 64), {"llama.attention.head_count: expected this key"});
  refuses(bare.u32("llama.attention.head_count", 0),
          {"llama.attention.head_count: expected a layer with heads"});

  refuses(rotary("llama").real("llama.rope.magic", 1),
          {"\"llama.rope.magic\": expected no rope key that posenc does not know"});
  refuses(model("llama").u32("llama.rope.freq_base", 10000),
          {"llama.rope.freq_base: expected a float, got an integer"});
  refuses(model("llama").word("llama.rope.freq_base", "1e4"), {"expected a float, got a string"});
  refuses(model("llama").real("llama.rope.freq_base", 0), {"expected a positive number, got 0"});
  refuses(model("llama").real("llama.rope.freq_base", std::numeric_limits<double>::quiet_NaN()),
          {"expected a finite number, got"});
  refuses(rotary("llama").real("llama.rope.dimension_count", 64),
          {"llama.rope.dimension_count: expected an integer, got a float"});
  refuses(rotary("llama").list("llama.rope.dimension_count", {64}),
          {"expected an integer, got an array of 1 (an i32 each)"});
  refuses(model("llama").list("llama.attention.head_count_kv", {1, 1, 1, 1}, 7),
          {"llama.attention.head_count_kv: expected an array of integers, got an array of 4 (a bool each)"});
  refuses(rotary("llama").u32("llama.rope.scaling.type", 1),
          {"llama.rope.scaling.type: expected a string, got an integer"});
  refuses(rotary("granite").u32("granite.rope.scaling.finetuned", 1), {"expected a bool, got an integer"});
  refuses(model("llama", 100000), {"llama.block_count: expected an integer in [1, 1024], got 100000"});
  Writer huge;
  huge.word("general.architecture", "llama").raw("llama.block_count", 10, bytes(~std::uint64_t{0}, 8));
  refuses(huge, {"llama.block_count: expected an integer in [1, 1024]"});

  const ModelPositions unused = read(rotary("llama")
                                         .real("llama.attention.max_alibi_bias", 8)
                                         .u32("llama.attention.temperature_length", 8)
                                         .real("llama.rope.freq_base_swa", 1e4)
                                         .real("llama.rope.scaling.yarn_beta_fast", 32)
                                         .real("llama.rope.scaling.alpha", 2)
                                         .real("qwen2.rope.freq_base", 1e6)
                                         .real("llama.attention.layer_norm_rms_epsilon", 1e-5)
                                         .u32("llama.feed_forward_length", 1));
  CHECK(unused.warnings.size() == 6);
  CHECK(warns(unused, "max_alibi_bias\": left unused"));
  CHECK(warns(unused, "temperature_length\": left unused"));
  CHECK(warns(unused, "llama.rope.freq_base_swa: left unused"));
  CHECK(warns(unused, "yarn_beta_fast: left unused"));
  CHECK(warns(unused, "rope.scaling.alpha: left unused"));
  CHECK(warns(unused, "\"qwen2.rope.freq_base\": left unused, as it belongs to another architecture"));
}
