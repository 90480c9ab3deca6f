// Models on disk: what was saved is what is loaded, and a file that is anything else is refused in one line.

#include "translate/model_file.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "models/error.hpp"
#include "models/safetensors.hpp"
#include "support/catch.hpp"
#include "translate/learn.hpp"

using namespace translate;
using models::read_safetensors;
using models::write_safetensors;
using Json = nlohmann::ordered_json;

namespace {

std::string temporary(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("posenc_model_file_test_" + name)).string();
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_bytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// The bytes of a file with this header and this data.
std::string file_of(const std::string& header, const std::string& data) {
  const std::uint64_t length = header.size();
  std::string bytes(8, '\0');
  std::memcpy(bytes.data(), &length, 8);
  return bytes + header + data;
}

struct Parts {
  Json header;
  std::string data;
};

Parts parts_of(const std::string& bytes) {
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data(), 8);
  return {Json::parse(bytes.substr(8, length)), bytes.substr(8 + length)};
}

Model small(transformer::PositionScheme scheme = transformer::PositionScheme::learned) {
  std::vector<std::string> words = Vocabulary::special_words();
  for (const char* word : {"dog", "कुत्ता", "बूढ़े", "?"}) words.emplace_back(word);
  return {transformer::Transformer<float>({.vocab_size = 8,
                                           .d_model = 8,
                                           .num_heads = 2,
                                           .num_encoder_layers = 1,
                                           .num_decoder_layers = 1,
                                           .d_ff = 12,
                                           .positions = scheme,
                                           .max_positions = 20,
                                           .norm_placement = transformer::NormPlacement::pre},
                                          7),
          Vocabulary(words)};
}

/// Loads bytes that are no model: the message is one line, starts with the path and says what is wrong.
void refused(const std::string& bytes, const std::string& reason) {
  const std::string path = temporary("refused.safetensors");
  write_bytes(path, bytes);
  try {
    load_model(path);
    FAIL_CHECK("accepted, expected: " << reason);
  } catch (const InputError& error) {
    const std::string message = error.what();
    INFO(message);
    CHECK(message.starts_with(path + ": "));
    CHECK(message.find('\n') == std::string::npos);
    CHECK(message.find(reason) != std::string::npos);
  }
  std::filesystem::remove(path);
}

}  // namespace

TEST_CASE("safetensors: the layout of the format", "[translate]") {
  const std::string path = temporary("layout.safetensors");
  Safetensors content;
  content.metadata = {{"who", "us"}};
  content.tensors = {{"a", {2, 2}, {1.0f, -2.0f, 0.5f, 65504.0f}}, {"b", {0}, {}}, {"c", {}, {3.0f}}};
  write_safetensors(path, content, StoredAs::f32);
  const Parts parts = parts_of(bytes_of(path));
  CHECK(parts.header["__metadata__"]["who"] == "us");
  CHECK(parts.header["a"] == Json{{"dtype", "F32"}, {"shape", {2, 2}}, {"data_offsets", {0, 16}}});
  CHECK(parts.header["c"]["data_offsets"] == Json{16, 20});
  CHECK((bytes_of(path).size() - parts.data.size()) % 8 == 0);
  for (const StoredAs stored_as : {StoredAs::f32, StoredAs::f16}) {
    write_safetensors(path, content, stored_as);
    const Safetensors read = read_safetensors(path);
    CHECK(read.metadata == content.metadata);
    REQUIRE(read.tensors.size() == 3);
    for (std::size_t n = 0; n < 3; ++n) {
      CHECK(read.tensors[n].name == content.tensors[n].name);
      CHECK(read.tensors[n].shape == content.tensors[n].shape);
      CHECK(read.tensors[n].values == content.tensors[n].values);
    }
  }
  // BF16 is the upper half of a float.
  write_bytes(path, file_of(R"({"x":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})",
                            std::string("\xc0\x3f", 2)));
  CHECK(read_safetensors(path).tensors.at(0).values == std::vector<float>{1.5f});

  content.tensors[0].values[1] = 1e6f;  // more than half can hold
  CHECK_THROWS_WITH(write_safetensors(path, content, StoredAs::f16), posenc_test::contains("not finite"));
  content.tensors[0].values[1] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(write_safetensors(path, content, StoredAs::f32), posenc_test::contains("not finite"));
  std::filesystem::remove(path);
  CHECK_THROWS_WITH(write_safetensors(temporary("no/such/folder"), {}, StoredAs::f32),
                    posenc_test::contains("cannot be written"));
}

TEST_CASE("model file: what was saved is what is loaded", "[translate]") {
  const std::string path = temporary("trip.safetensors"), again = temporary("again.safetensors");
  for (const auto scheme : transformer::all_position_schemes) {
    const Model model = small(scheme);
    save_model(path, model, StoredAs::f32);
    const Model loaded = load_model(path);
    CHECK(loaded.vocabulary.words() == model.vocabulary.words());
    CHECK(loaded.network.config().positions == scheme);
    CHECK(loaded.network.config().d_ff == 12);
    const auto &before = model.network.parameters(), &after = loaded.network.parameters();
    REQUIRE(after.count() == before.count());
    for (const auto& entry : before.entries()) {
      const auto a = before.values(entry), b = after.values(entry);
      CHECK(std::equal(a.begin(), a.end(), b.begin(), b.end()));
    }
    save_model(again, loaded, StoredAs::f32);
    CHECK(bytes_of(again) == bytes_of(path));
    // Half precision: half the size, and once rounded it stays.
    save_model(path, model);
    save_model(again, load_model(path));
    CHECK(bytes_of(again) == bytes_of(path));
    CHECK(translated(loaded.network, Tokens{4, 7}).size() <= 19);
  }
  std::filesystem::remove(path);
  std::filesystem::remove(again);
}

TEST_CASE("model file: malformed files are refused", "[translate]") {
  CHECK_THROWS_WITH(load_model(temporary("missing")), posenc_test::contains("not a file that can be read"));
  CHECK_THROWS_WITH(load_model(std::filesystem::temp_directory_path().string()),
                    posenc_test::contains("not a file that can be read"));

  const std::string path = temporary("good.safetensors");
  save_model(path, small());
  const std::string good = bytes_of(path);
  std::filesystem::remove(path);
  const Parts parts = parts_of(good);
  const auto changed = [&](const std::function<void(Json&)>& change) {
    Json header = parts.header;
    change(header);
    return file_of(header.dump(), parts.data);
  };
  const auto with_config = [&](const char* key, const Json& value) {
    return changed([&](Json& header) {
      Json config = Json::parse(header["__metadata__"]["config"].get<std::string>());
      if (value.is_null())
        config.erase(key);
      else
        config[key] = value;
      header["__metadata__"]["config"] = config.dump();
    });
  };
  const std::string tensor = "embedding.weight";
  REQUIRE(parts.header.contains(tensor));

  // Cut off, too long, not this format.
  refused("", "shorter than 8 bytes");
  refused("GGUF", "shorter than 8 bytes");
  refused("not a model at all", "its header claims");
  for (std::size_t length = 0; length < good.size(); length += 1 + length / 3)
    refused(good.substr(0, length), "");
  refused(good.substr(0, good.size() - 1), "ends beyond the end of the file");
  refused(good + '\0', "1 bytes too many");
  refused(std::string("\xff\xff\xff\xff\xff\xff\xff\xff", 8) + good.substr(8), "its header claims");
  refused(std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + good.substr(8), "its header claims");
  refused(file_of("", ""), "not a JSON object");
  refused(file_of("[1, 2]", ""), "not a JSON object");
  refused(file_of("{\"a\":", ""), "not JSON");
  refused(file_of("{}x", ""), "not JSON");
  refused(file_of("{\"a\": \"\xff\"}", ""), "not JSON");
  refused(file_of(std::string(100000, '{'), ""), "not JSON");
  refused(file_of("{}", ""), "its metadata lacks");

  // Tensors that cannot be.
  refused(changed([&](Json& h) { h[tensor] = 5; }), "has no dtype");
  refused(changed([&](Json& h) { h[tensor].erase("shape"); }), "has no shape");
  refused(changed([&](Json& h) { h[tensor].erase("data_offsets"); }), "has no data_offsets");
  refused(changed([&](Json& h) { h[tensor]["dtype"] = "I64"; }), "expected dtype");
  refused(changed([&](Json& h) { h[tensor]["dtype"] = 7; }), "expected dtype");
  refused(changed([&](Json& h) { h[tensor]["dtype"] = "F32"; }), "its shape needs");
  refused(changed([&](Json& h) { h[tensor]["shape"] = {8, 9}; }), "its shape needs");
  refused(changed([&](Json& h) { h[tensor]["shape"] = {-8, -8}; }), "its shape is impossible");
  refused(changed([&](Json& h) { h[tensor]["shape"] = {8.0, 8}; }), "its shape is impossible");
  refused(changed([&](Json& h) { h[tensor]["shape"] = "8, 8"; }), "not a short list");
  refused(changed([&](Json& h) { h[tensor]["shape"] = Json(100, 1); }), "not a short list");
  refused(changed([&](Json& h) { h[tensor]["shape"] = {std::uint64_t{1} << 63, 2}; }),
          "its shape is impossible");
  refused(changed([&](Json& h) { h[tensor]["shape"] = {1000, 1000, 1000}; }), "larger than the file");
  refused(changed([&](Json& h) { h[tensor]["shape"] = {8, 8, 0}; }), "its shape needs 0 bytes");
  refused(changed([&](Json& h) { h[tensor]["data_offsets"] = {0}; }), "not two numbers");
  refused(changed([&](Json& h) { h[tensor]["data_offsets"] = {-1, 127}; }), "not two numbers");
  refused(changed([&](Json& h) { h[tensor]["data_offsets"] = {128, 0}; }), "beyond the end");
  refused(changed([&](Json& h) { h[tensor]["data_offsets"] = {0, std::uint64_t{1} << 62}; }),
          "beyond the end");
  refused(changed([&](Json& h) { h[tensor]["data_offsets"] = {2, 130}; }),
          "overlaps another or leaves a gap");
  refused(changed([&](Json& h) { h["twin"] = h[tensor]; }), "overlaps another or leaves a gap");
  std::string data = parts.data;
  data[0] = '\x00', data[1] = '\x7e';  // a NaN in half precision
  refused(file_of(parts.header.dump(), data),
          "tensor \"embedding.weight\" holds a number that is not finite");
  data[1] = '\x7c';  // infinity
  refused(file_of(parts.header.dump(), data), "not finite");

  // Files of the format that are no model of ours.
  refused(changed([](Json& h) { h.erase("__metadata__"); }), "its metadata lacks");
  refused(changed([](Json& h) { h["__metadata__"] = 1; }), "__metadata__ is not an object");
  refused(changed([](Json& h) { h["__metadata__"]["config"] = 1; }), "something else than text");
  refused(changed([](Json& h) { h["__metadata__"]["format"] = "pt"; }), "its format is not");
  refused(changed([](Json& h) { h["__metadata__"].erase("vocabulary"); }), "lacks \"vocabulary\"");
  refused(changed([](Json& h) { h["__metadata__"]["vocabulary"] = "{"; }),
          "its vocabulary is not a JSON list");
  refused(changed([](Json& h) { h["__metadata__"]["vocabulary"] = "[1]"; }), "something else than words");
  refused(changed([](Json& h) { h["__metadata__"]["vocabulary"] = "[\"dog\"]"; }),
          "<pad> <bos> <eos> <unk> first");
  refused(changed([](Json& h) { h["__metadata__"]["config"] = "7"; }), "not a JSON object");
  refused(with_config("d_model", {}), "expected d_model");
  refused(with_config("d_model", "8"), "expected d_model");
  refused(with_config("d_model", 8.5), "expected d_model");
  refused(with_config("d_model", 0), "expected d_model");
  refused(with_config("d_model", 1 << 30), "expected d_model");
  refused(with_config("d_model", std::numeric_limits<std::uint64_t>::max()), "expected d_model");
  refused(with_config("d_model", 4096), "numbers, it holds");
  refused(with_config("num_heads", 3), "num_heads");
  refused(with_config("num_encoder_layers", 64), "numbers, it holds");
  refused(with_config("num_decoder_layers", -1), "expected num_decoder_layers");
  refused(with_config("vocab_size", 9), "the vocabulary has 8 words");
  refused(with_config("positions", "relative"), "expected one of none, sinusoidal, learned, rope, alibi");
  refused(with_config("positions", 3), "lacks positions");
  refused(with_config("norm_placement", "middle"), "norm_placement");
  refused(changed([&](Json& h) { h[tensor]["shape"] = {4, 16}; }), "expected shape (8, 8), got (4, 16)");
  refused(changed([&](Json& h) {
            h["embedding"] = h[tensor];
            h.erase(tensor);
          }),
          "it lacks tensor \"embedding.weight\"");
}
