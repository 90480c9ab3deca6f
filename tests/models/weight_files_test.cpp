// The readers of CTranslate2 files and of JSON tensors: what was written is what is read, and every broken
// file is refused in one line. The files are made here.

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "models/ctranslate2.hpp"
#include "models/ctranslate2_weights.hpp"
#include "models/json_tensors.hpp"
#include "models/min_gpt.hpp"
#include "models/opennmt_lm.hpp"
#include "models/transliterator.hpp"
#include "support/catch.hpp"
#include "support/ctranslate2_writer.hpp"
#include "support/json_tensors_writer.hpp"

using namespace models;
using posenc_test::Ctranslate2Writer;
using posenc_test::tiny_transliterator;
using FileBytes = std::vector<unsigned char>;

namespace {

constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

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
void refused(const FileBytes& file, const std::string& reason) {
  refused([&] { Ctranslate2File(file, "some.file"); }, reason);
}
/// A variable that is there, but cannot be read as numbers.
void unreadable(const FileBytes& bytes, const std::string& variable, const std::string& reason) {
  const Ctranslate2File file(bytes, "some.file");
  refused([&] { file.floats(variable); }, reason);
}
/// A file that is well formed and no model.
void no_model(const FileBytes& bytes, const std::string& reason) {
  const Ctranslate2File file(bytes, "some.file");
  refused([&] { read_transliterator<float>(file); }, reason);
}

/// A complete model, for `change` to break: it may leave out or replace variables.
FileBytes tiny_model(const std::string& left_out = "", const std::string& spec = "TransformerBase",
                     const std::function<void(Ctranslate2Writer&)>& add = {}, std::uint32_t version = 2) {
  const transformer::Transformer<float> model(tiny_transliterator(), 5);
  Ctranslate2Writer writer(version, spec);
  posenc_test::write_weights(writer, model.parameters(), left_out);
  if (add) add(writer);
  return writer.file();
}

/// Every beginning of the bytes is refused, and no change of one byte does anything but that or nothing.
template <class Read>
void survives_damage(const FileBytes& whole, const Read& read) {
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const FileBytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    CAPTURE(length);
    CHECK_THROWS_AS(read(cut), InputError);
  }
  int refusals = 0;
  for (std::size_t at = 0; at < whole.size(); ++at)
    for (const unsigned char value : std::array<unsigned char, 3>{0x00, 0x7f, 0xff}) {
      FileBytes damaged = whole;
      damaged[at] = value;
      try {
        read(damaged);
      } catch (const InputError&) {
        ++refusals;
      }
    }
  CHECK(refusals > 0);
}

Alphabet alphabet(const std::string& lines, Index rows) {
  return Alphabet({reinterpret_cast<const unsigned char*>(lines.data()), lines.size()}, "some.file", rows);
}

JsonTensors json_tensors(const std::string& text, Infinities infinities = Infinities::refused) {
  return parse_json_tensors({reinterpret_cast<const unsigned char*>(text.data()), text.size()}, "some.file",
                            infinities);
}

}  // namespace

TEST_CASE("CTranslate2: every type of number, dequantised", "[unit]") {
  const std::uint32_t version = GENERATE(2u, 6u);
  Ctranslate2Writer writer(version, "Some");
  writer.variable<float>("plain", {2, 3}, {1, -2, 3, 4.5f, 0, 6});
  writer.variable<std::int8_t>("bytes", {2, 3}, {1, -2, 3, 127, -127, 0});
  writer.variable<float>("bytes_scale", {2}, {2, 127});
  writer.variable<std::int16_t>("shorts", {2, 2}, {1000, -2000, 32767, 0});
  writer.variable<float>("shorts_scale", {}, {1000});
  writer.variable<float>("empty", {0, 7}, {});
  writer.variable<std::int8_t>("flag", {}, {1});
  if (version == 6) {
    writer.variable<Eigen::half>("halves", {2}, {Eigen::half(0.5f), Eigen::half(-0.25f)});
    writer.variable<std::int32_t>("count", {}, {-70000});
    writer.variable<std::int16_t>("heads", {}, {8});
    writer.alias("also_bytes", "bytes");
    writer.alias("also_bytes_scale", "bytes_scale");
  }
  const FileBytes bytes = writer.file();
  const Ctranslate2File file(bytes, "some.file");
  CHECK(file.version() == version);
  CHECK(file.spec() == "Some");
  CHECK(file.revision() == 2);
  CHECK(file.floats("plain") == std::vector<float>{1, -2, 3, 4.5f, 0, 6});
  CHECK(file.require("plain").shape == std::vector<std::int64_t>{2, 3});
  CHECK(file.floats("bytes") == std::vector<float>{0.5f, -1, 1.5f, 1, -1, 0});
  CHECK(file.floats("shorts") == std::vector<float>{1, -2, 32.767f, 0});
  CHECK(file.floats("empty").empty());
  CHECK(file.option("flag") == 1);
  CHECK_FALSE(file.option("none").has_value());
  if (version == 6) {
    CHECK(file.floats("halves") == std::vector<float>{0.5f, -0.25f});
    CHECK(file.option("count") == -70000);
    CHECK(file.option("heads") == 8);
    CHECK(file.floats("also_bytes") == file.floats("bytes"));
  }
  survives_damage(bytes, [](const FileBytes& damaged) {
    const Ctranslate2File read(damaged, "some.file");
    for (const auto& [name, variable] : read.variables()) {
      read.floats(name);
      if (variable.shape.empty() && variable.type != NumberType::f32 && variable.type != NumberType::f16)
        read.option(name);
    }
  });
}

TEST_CASE("CTranslate2: what is no such file is refused", "[unit]") {
  refused(FileBytes{}, "truncated: its version needs 4 bytes, 0 are left");
  const std::string other = "GGUF and more of it";
  refused(FileBytes(other.begin(), other.end()), "not a CTranslate2 model of binary version 2 or 6");
  refused(Ctranslate2Writer(3).file(), "binary version 2 or 6: it starts with 3");

  FileBytes whole = tiny_model();
  whole.push_back(0);
  refused(whole, "1 bytes too many");

  const auto with = [](auto add, std::uint32_t version = 2) {
    Ctranslate2Writer writer(version);
    add(writer);
    return writer.file();
  };
  // Counts that no file could hold: nothing is allocated for them.
  refused(Ctranslate2Writer(2).file(4'000'000'000u), "truncated: its list of variables needs 4000000000");
  refused(with([](auto& w) { w.template variable<float>("x", {4'000'000'000u}, {1}); }),
          "truncated: x needs 4000000000 numbers of 4 bytes");
  refused(with([](auto& w) { w.template variable<float>("x", {65536, 65536, 65536, 65536, 16}, {1}); }),
          "truncated: x needs 65536 x 65536");
  refused(with([](auto& w) { w.template variable<float>("x", std::vector<std::uint32_t>(9, 1), {1}); }),
          "the rank of x: expected 0 to 8, got 9");
  refused(with([](auto& w) { w.template variable<float>("x", {2}, {1, 2, 3}); }),
          "x: its shape (2) needs a size of 2, it has 3");
  refused(with([](auto& w) { w.template variable<float>("x", {2}, {1, 2, 3}); }, 6),
          "needs a size of 8, it has 12");
  refused(with([](auto& w) {
            w.template variable<float>("x", {1}, {1});
            w.template variable<float>("x", {1}, {2});
          }),
          "two variables x");
  refused(with([](auto& w) { w.template variable<Eigen::half>("x\ny", {}, {}); }, 6), "x?y");
  refused(with([](auto& w) { w.alias("a", "nothing"); }, 6), "alias a: there is no variable nothing");
  refused(with([](auto& w) { w.template variable<float>(std::string("a\0b", 3), {1}, {1}); }),
          "the name of a variable is not a text with a NUL at its end");
  // A type that is none: the byte after name and rank.
  for (const std::uint32_t version : {2u, 6u}) {
    Ctranslate2Writer writer(version);
    writer.text("x");
    writer.number(std::uint8_t{0});
    writer.number(std::uint8_t{9});
    writer.number(std::uint32_t{9});
    writer.number(std::uint64_t{0});
    refused(writer.file(1), version == 2 ? "x: expected a type of 1, 2 or 4 bytes, got 9"
                                         : "x: expected a type of 0 to 5, got 9");
  }
}

TEST_CASE("CTranslate2: numbers that mean nothing are refused", "[unit]") {
  for (const float bad : {not_a_number, infinite, -infinite}) {
    Ctranslate2Writer writer(2);
    writer.variable<float>("x", {3}, {1, bad, 2});
    unreadable(writer.file(), "x", "x holds a number that is not finite");
  }
  const auto scaled = [](std::vector<float> scale, std::vector<std::uint32_t> shape) {
    Ctranslate2Writer writer(2);
    writer.variable<std::int8_t>("x", {2, 1}, {1, 2});
    writer.variable<float>("x_scale", shape, scale);
    return writer.file();
  };
  unreadable(scaled({1, not_a_number}, {2}), "x", "x_scale holds a number that is not finite");
  unreadable(scaled({1, 0}, {2}), "x", "x divided by its scale is not finite");
  unreadable(scaled({1}, {1}), "x", "x_scale: expected 2 numbers, got 1");
  Ctranslate2Writer without(2);
  without.variable<std::int8_t>("x", {2, 1}, {1, 2});
  unreadable(without.file(), "x", "it has no variable x_scale");
  unreadable(without.file(), "y", "it has no variable y");
}

TEST_CASE("CTranslate2: a model comes back under its own names, and half a model does not", "[unit]") {
  const transformer::Transformer<float> original(tiny_transliterator(), 5);
  for (const std::uint32_t version : {2u, 6u}) {
    const FileBytes bytes = tiny_model("", "TransformerBase", {}, version);
    const auto model = read_transliterator<float>(Ctranslate2File(bytes, "some.file"));
    CHECK(model.parameters().flat() == original.parameters().flat());
    CHECK(bytes.size() <= 8192);  // so that fuzzing, which starts from it, has room for all of it
    CHECK(model.config().sinusoidal.first_position == 1);
    CHECK(transformer::logits<float>(model, transformer::Tokens{3, 4}, transformer::Tokens{5}).allFinite());
  }

  no_model(tiny_model("", "TransformerBig"),
           "expected the architecture TransformerBase, got \"TransformerBig\"");
  no_model(tiny_model("encoder/embeddings/weight"), "it has no variable encoder/embeddings/weight");
  no_model(tiny_model("decoder/projection/bias"), "it has no variable decoder/projection/bias");
  no_model(tiny_model("encoder/layer_0/ffn/linear_0/weight"), "at least one encoder and one decoder layer");
  no_model(tiny_model("decoder/layer_0/attention/linear_1/weight"),
           "it has no variable decoder/layer_0/attention/linear_1/weight");
  no_model(tiny_model("", "TransformerBase", [](auto& w) { w.template variable<float>("more", {1}, {1}); }),
           "more has no place in this model");
  no_model(
      tiny_model("decoder/layer_norm/gamma", "TransformerBase",
                 [](auto& w) { w.template variable<float>("decoder/layer_norm/gamma", {4}, {1, 1, 1, 1}); }),
      "decoder/layer_norm/gamma: expected shape (8), got (4)");
  no_model(tiny_model("encoder/embeddings/weight", "TransformerBase",
                      [](auto& w) {
                        w.template variable<float>("encoder/embeddings/weight", {1, 7},
                                                   std::vector<float>(7, 1));
                      }),
           "num_heads: expected a number that divides d_model = 7");
  no_model(tiny_model("encoder/embeddings/weight", "TransformerBase",
                      [](auto& w) { w.template variable<float>("encoder/embeddings/weight", {0, 8}, {}); }),
           "encoder/embeddings/weight: expected a matrix");
  no_model(tiny_model("decoder/layer_norm/beta", "TransformerBase",
                      [](auto& w) {
                        w.template variable<float>("decoder/layer_norm/beta", {8},
                                                   std::vector<float>(8, not_a_number));
                      }),
           "decoder/layer_norm/beta holds a number that is not finite");
  // Shapes that fit each other and would need terabytes: no such weights are there.
  no_model(tiny_model("encoder/embeddings/weight", "TransformerBase",
                      [](auto& w) {
                        w.template variable<float>("encoder/embeddings/weight", {1, 800'000},
                                                   std::vector<float>(800'000, 1));
                      }),
           "expected shape");
  // A thousand layers that are all the same variables.
  no_model(tiny_model(
               "", "TransformerBase",
               [](auto& w) {
                 for (int layer = 1; layer <= 1000; ++layer)
                   w.alias("encoder/layer_" + std::to_string(layer) + "/ffn/linear_0/weight",
                           "encoder/layer_0/ffn/linear_0/weight");
               },
               6),
           "more than 1000 layers");
  no_model(tiny_model(
               "", "TransformerBase",
               [](auto& w) {
                 const transformer::Transformer<float> model(tiny_transliterator(), 5);
                 for (const auto& entry : model.parameters().entries()) {
                   const std::string of = ctranslate2_weight(entry.name).variable;
                   if (!of.starts_with("encoder/layer_0/")) continue;
                   for (int layer = 1; layer < 100; ++layer)
                     w.alias("encoder/layer_" + std::to_string(layer) + of.substr(15), of);
                 }
               },
               6),
           "bytes of weights");
}

TEST_CASE("CTranslate2: a decoder-only model, from bytes, and what it must say of itself", "[unit]") {
  const FileBytes bytes = posenc_test::tiny_opennmt_lm();
  const auto model = read_opennmt_lm<float>(Ctranslate2File(bytes, "some.file"));
  CHECK(model.config().num_heads == 2);
  CHECK(model.config().embedding_scale == 2.0);
  CHECK(transformer::logits<float>(model, transformer::Tokens{1, 4, 0}).allFinite());
  const auto refuses = [](const std::string& spec, const std::string& option, std::int8_t value,
                          const std::string& reason) {
    Ctranslate2Writer writer(6, spec);
    writer.variable<std::int8_t>(option, {}, {value});
    const FileBytes file = writer.file();
    refused([&] { read_opennmt_lm<float>(Ctranslate2File(file, "some.file")); }, reason);
  };
  const std::string decoder = "TransformerDecoderSpec";
  refuses("TransformerSpec", "decoder/alibi", 0, "expected the architecture TransformerDecoderSpec");
  refuses(decoder, "decoder/alibi", 1, "decoder/alibi: expected 0, got 1");
  refuses(decoder, "decoder/activation", 2, "decoder/activation: expected 0, got 2");
  refuses(decoder, "decoder/pre_norm", 0, "decoder/pre_norm: expected 1, got 0");
  refuses(decoder, "decoder/num_heads", 0, "it has no decoder/num_heads");
  refuses(decoder, "decoder/num_heads", 2, "it has no variable decoder/embeddings/weight");
  Ctranslate2Writer table(6, decoder);
  table.variable<float>("decoder/num_heads", {1}, {2});
  const FileBytes file = table.file();
  refused([&] { read_opennmt_lm<float>(Ctranslate2File(file, "some.file")); },
          "decoder/num_heads: expected a single number");
}

TEST_CASE("an alphabet has a line for each row but the last", "[unit]") {
  const Alphabet letters = alphabet("<blank>\r\n<s>\n</s>\na\nب\n", 6);
  CHECK(letters.encode("abبa") == transformer::Tokens{3, 5, 4, 3});
  CHECK(letters.decode(transformer::Tokens{4, 3, 5}) == "بa<unk>");
  CHECK(letters.number("<s>") == 1);
  CHECK(letters.unknown() == 5);
  CHECK_THROWS_AS(letters.encode("\xff"), InputError);
  refused([] { alphabet("a\nb\n", 4); }, "expected 3 lines, as many as its model has, got 2");
  refused([] { alphabet("a\nb\nc\nd\n", 4); }, "more than 3 lines");
  refused([] { alphabet("a\n\nb\n", 4); }, "line 2 is not a character in UTF-8");
  refused([] { alphabet("a\nb\na\n", 4); }, "line 3 stands there twice");
  refused([] { alphabet("a\nb\n\xc3\n", 4); }, "line 3 is not a character in UTF-8");
}

TEST_CASE("JSON tensors: base64 of floats", "[unit]") {
  // 1, -2 and 0.5; and 1 alone, with padding.
  const std::string three = R"("x": {"shape": [1, 3], "dtype": "torch.float32", "data": "AACAPwAAAMAAAAA/"})";
  const JsonTensors read = json_tensors(R"({"config": {"n": 3}, "one": {"shape": [], "dtype": "torch.float32",
                                            "data": "AACAPw=="}, )" +
                                        three + "}");
  CHECK(read.config["n"] == 3);
  CHECK(read.at("x").values == std::vector<float>{1, -2, 0.5f});
  CHECK(read.at("x").shape == std::vector<std::int64_t>{1, 3});
  CHECK(read.at("one").values == std::vector<float>{1});
  refused([&] { read.at("y"); }, "it has no tensor y");
  const std::string whole = "{" + three + "}";
  survives_damage(FileBytes(whole.begin(), whole.end()), [](const FileBytes& damaged) {
    json_tensors(std::string(damaged.begin(), damaged.end()));
  });

  const auto tensor = [](const std::string& shape, const std::string& data,
                         const std::string& dtype = "torch.float32") {
    return R"({"x": {"shape": )" + shape + R"(, "dtype": ")" + dtype + R"(", "data": ")" + data + R"("}})";
  };
  const auto refuses = [](const std::string& text, const std::string& reason) {
    refused([&] { json_tensors(text); }, reason);
  };
  refuses("", "it is not a JSON object");
  refuses("[1]", "it is not a JSON object");
  refuses(R"({"x": 1})", "x: expected an object with shape, dtype and data");
  refuses(R"({"x": {"shape": [1]}})", "x: expected an object with shape, dtype and data");
  refuses(tensor("[1]", "AACAPw==", "torch.int64"), "x: expected dtype torch.float32");
  refuses(tensor("[2]", "AACAPw=="), "x: its shape (2) needs 8 bytes, it has 4");
  refuses(tensor("[-1]", "AACAPw=="), "x: its shape is impossible");
  refuses(tensor("[1e9]", "AACAPw=="), "x: its shape is impossible");
  refuses(tensor("[4000000000, 4000000000, 4000000000]", "AACAPw=="), "x: its shape is impossible");
  refuses(tensor("[8, 8, 8, 8, 8, 8, 8, 8]", "AACAPw=="), "x: its shape needs more than its data");
  refuses(tensor("[1,1,1,1,1,1,1,1,1]", "AACAPw=="), "x: its shape is not a short list");
  for (const char* bad : {"AACAPw=", "AACAPw", "AAC*Pw==", "AA==Pw==", "====", "AACAPw==AAAA"})
    refuses(tensor("[1]", bad), "x: its data is not base64");
  refuses(tensor("[1]", "AADAfw=="), "x holds a number that is not finite");  // NaN
  refuses(tensor("[1]", "AACA/w=="), "x holds a number that is not finite");  // -infinity
  CHECK(json_tensors(tensor("[1]", "AACA/w=="), Infinities::allowed).at("x").values[0] == -infinite);
  refused([&] { json_tensors(tensor("[1]", "AADAfw=="), Infinities::allowed); }, "not finite");
}

TEST_CASE("JSON tensors: a minGPT, and half of one", "[unit]") {
  using Json = nlohmann::ordered_json;
  const auto read = [](const std::string& text) { return read_min_gpt<float>(json_tensors(text)); };
  const auto model = read(posenc_test::min_gpt_file());
  CHECK(model.config().d_ff == 5);
  CHECK(model.config().max_positions == 2);
  CHECK(transformer::logits<float>(model, transformer::Tokens{2, 0}).allFinite());
  // Stored (out, in): row 1 of the file is column 1 here.
  const auto& entry = model.parameters().entry("layers.0.feed_forward.w1.weight");
  CHECK(model.parameters().values(entry)[1] == posenc_test::some_values(20)[4]);

  const auto refuses = [&](const std::function<void(Json&)>& change, const std::string& reason) {
    refused([&] { read(posenc_test::min_gpt_file(change)); }, reason);
  };
  refuses([](Json& file) { file.erase("lm_head.weight"); }, "expected 185 numbers, it has 177");
  refuses([](Json& file) { file.erase("transformer.ln_f.bias"); }, "it has no tensor transformer.ln_f.bias");
  refuses([](Json& file) { file.erase("transformer.wte.weight"); },
          "it has no tensor transformer.wte.weight");
  refuses([](Json& file) { file["more"] = posenc_test::json_tensor({1}, {1}); }, "tensor more has no place");
  refuses([](Json& file) { file["config"]["n_head"] = 0; }, "config: expected n_head from 1 to");
  refuses([](Json& file) { file["config"]["n_head"] = 3; }, "config: n_head does not divide the width 4");
  refuses([](Json& file) { file["config"] = "none"; }, "config: expected n_head from 1 to");
  refuses([](Json& file) { file["config"]["n_layer"] = 2; }, "numbers, it has");
  refuses([](Json& file) { file["config"]["n_layer"] = 1e300; }, "config: expected n_layer from 1 to");
  refuses([](Json& file) { file["transformer.ln_f.bias"] = posenc_test::json_tensor({5}, {1, 2, 3, 4, 5}); },
          "transformer.ln_f.bias: expected shape (4), got (5)");
  refuses(
      [](Json& file) {
        file["transformer.ln_f.bias"] = posenc_test::json_tensor({4}, {1, not_a_number, 3, 4});
      },
      "transformer.ln_f.bias holds a number that is not finite");
  refuses([](Json& file) { file["transformer.wte.weight"] = posenc_test::json_tensor({0, 4}, {}); },
          "transformer.wte.weight: expected at most a million rows and columns, got shape (0, 4)");
}
