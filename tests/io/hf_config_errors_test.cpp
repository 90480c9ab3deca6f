// How strict the reader of config.json is: what it refuses and with which words, and what it lets pass with a
// warning.

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/io/hf_config.hpp"
#include "support/catch.hpp"

using namespace posenc;
using posenc_test::contains;
using Json = nlohmann::json;

namespace {

/// A small Llama, with changes; a null takes a key away.
Json llama(const Json& changes = Json::object()) {
  Json config = {{"model_type", "llama"},  {"hidden_size", 64}, {"num_attention_heads", 4},
                 {"num_hidden_layers", 2}, {"rope_theta", 1e4}, {"max_position_embeddings", 2048}};
  config.merge_patch(changes);
  return config;
}
/// With these rope parameters.
Json scaled(const Json& scaling) {
  Json config = llama();
  config["rope_scaling"] = scaling;
  return config;
}

/// What the reader says about it; empty if it is content.
std::string refusal(const Json& config) {
  try {
    (void)model_positions_from_hf(config);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}
std::string refusal_of_text(const std::string& text) {
  try {
    (void)model_positions_from_hf_text(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return {};
}
std::vector<std::string> warnings(const Json& config) { return model_positions_from_hf(config).warnings; }
bool warned(const Json& config, const std::string& text) {
  const auto all = warnings(config);
  for (const std::string& one : all) UNSCOPED_INFO(one);
  return std::any_of(all.begin(), all.end(),
                     [&](const std::string& one) { return one.find(text) != std::string::npos; });
}
RotaryLayer first_rotary(const ModelPositions& model) {
  REQUIRE(!model.stacks.empty());
  REQUIRE(!model.stacks[0].layers.empty());
  REQUIRE(std::holds_alternative<RotaryLayer>(model.stacks[0].layers[0].scheme));
  return std::get<RotaryLayer>(model.stacks[0].layers[0].scheme);
}
RotaryLayer first_rotary(const Json& config) { return first_rotary(model_positions_from_hf(config)); }
std::vector<double> ones(std::size_t n) { return std::vector<double>(n, 1.0); }

}  // namespace

TEST_CASE("the base case has nothing to complain about", "[hf_config]") {
  CHECK(warnings(llama()).empty());
  CHECK(first_rotary(llama()).config.head_dim == 16);
}

TEST_CASE("what a config does not state is absent, not zero or empty", "[hf_config]") {
  Json config = llama();
  config.erase("max_position_embeddings");
  const ModelPositions model = model_positions_from_hf(config);
  const RotaryLayer layer = first_rotary(model);
  CHECK_FALSE(layer.max_position_embeddings);
  CHECK_FALSE(layer.config.rotary_dim);
  CHECK(first_rotary(llama()).max_position_embeddings == 2048);
  CHECK_FALSE(model.stacks[0].layers[0].type);  // all layers are alike
  CHECK_FALSE(model.stacks[0].other_scheme);
}

TEST_CASE("text that is no JSON, or more than there should be", "[hf_config]") {
  CHECK_THAT(refusal_of_text(""), contains("config.json: expected JSON"));
  CHECK_THAT(refusal_of_text("{\"model_type\": "), contains("config.json: expected JSON"));
  CHECK_THAT(refusal_of_text("{'model_type': 'llama'}"), contains("expected JSON"));
  CHECK_THAT(refusal_of_text("{\"rope_theta\": 1e999}"), contains("expected JSON"));
  CHECK_THAT(refusal_of_text("[]"), contains("config.json: expected an object, got a list of 0"));
  CHECK_THAT(refusal_of_text("7"), contains("config.json: expected an object, got 7"));
  CHECK_THAT(refusal_of_text("{\"rope_theta\": 1, \"rope_theta\": 2}"),
             contains("config.json: expected each key once, got \"rope_theta\" twice"));
  CHECK_THAT(refusal_of_text(std::string(200000, '[')),
             contains("expected at most 32 objects and lists in one another"));
  CHECK_THAT(refusal_of_text(std::string(largest_config_bytes + 1, ' ')),
             contains("expected at most 16777216 bytes"));
  CHECK_THAT(refusal_of_text("\xff\xfe"), contains("expected JSON"));
}

TEST_CASE("Python's numbers are read, and refused where a number is asked for", "[hf_config]") {
  const std::string head =
      R"({"model_type": "llama", "hidden_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2,)";
  CHECK(refusal_of_text(head +
                        R"("rope_theta": 1e4, "limit": [0.0, Infinity], "other": -Infinity, "NaN": NaN})")
            .empty());
  CHECK_THAT(refusal_of_text(head + R"("rope_theta": Infinity})"),
             contains("rope_theta: expected a finite number, got \"Infinity\""));
  CHECK_THAT(refusal_of_text(head + R"("rope_theta": NaN})"),
             contains("rope_theta: expected a finite number, got \"NaN\""));
  // A value of the program may be infinite too.
  CHECK_THAT(refusal(llama({{"rope_theta", std::numeric_limits<double>::infinity()}})),
             contains("rope_theta: expected a finite number"));
}

TEST_CASE("a config that is no model's", "[hf_config]") {
  CHECK_THAT(refusal(Json::object()), contains("model_type: expected the config of a model"));
  CHECK_THAT(refusal({{"tokenizer_class", "LlamaTokenizer"}, {"model_max_length", 4096}}),
             contains("expected the config of a model"));
  CHECK_THAT(
      refusal({{"image_processor_type", "CLIPImageProcessor"}, {"size", 224}}),
      contains("image_processor_type: expected the config of a model, got that of a tokenizer or processor"));
  CHECK_THAT(refusal({{"processor_class", "LlavaProcessor"}}),
             contains("got that of a tokenizer or processor"));
}

TEST_CASE("sizes", "[hf_config]") {
  CHECK_THAT(refusal(llama({{"hidden_size", "64"}})),
             contains("hidden_size: expected an integer from 1 to 16777216, got \"64\""));
  CHECK_THAT(refusal(llama({{"hidden_size", 64.0}})), contains("hidden_size: expected an integer"));
  CHECK_THAT(refusal(llama({{"hidden_size", -64}})),
             contains("hidden_size: expected an integer from 1 to 16777216, got -64"));
  CHECK_THAT(refusal(llama({{"hidden_size", 18446744073709551615u}})), contains("got 18446744073709551615"));
  CHECK_THAT(refusal(llama({{"num_attention_heads", 0}})),
             contains("num_attention_heads: expected an integer from 1"));
  CHECK_THAT(refusal(llama({{"num_attention_heads", 5}})),
             contains("num_attention_heads: expected a divisor of hidden_size = 64"));
  CHECK_THAT(refusal(llama({{"num_hidden_layers", 1000000000}})),
             contains("num_hidden_layers: expected an integer from 1 to 1024, got 1000000000"));
  CHECK_THAT(refusal(llama({{"num_hidden_layers", true}})),
             contains("num_hidden_layers: expected an integer"));
  CHECK_THAT(refusal(llama({{"head_dim", 1000000}})),
             contains("head_dim: expected an integer from 1 to 4096"));
  CHECK_THAT(refusal(llama({{"head_dim", 7}})),
             contains("expected an even number of at least 2 rotated dimensions of head_dim = 7"));
  CHECK_THAT(refusal(llama({{"max_position_embeddings", -1}})),
             contains("max_position_embeddings: expected an integer from 1"));
  CHECK(warned(llama({{"n_layer", 3}}), "n_layer: 3 contradicts num_hidden_layers, which is 2 and won"));
  CHECK(warned(llama({{"hidden_size", nullptr}}), "hidden_size: not stated; 4096, the default of llama"));
  CHECK_THAT(refusal({{"model_type", "phi"}, {"hidden_size", 64}, {"num_hidden_layers", 2}}),
             contains("num_attention_heads: expected an integer, got nothing"));
}

TEST_CASE("stacks add up", "[hf_config]") {
  Json text = llama({{"num_hidden_layers", 600}});
  const Json config = {{"model_type", "llava"}, {"text_config", text}, {"decoder_config", text}};
  CHECK_THAT(refusal(config), contains("expected at most 1024 layers in all, got 1200"));
  Json deep = llama();
  for (int i = 0; i < 10; ++i) deep = {{"model_type", "llava"}, {"text_config", deep}};
  CHECK_THAT(refusal(deep), contains("expected at most 6 models in one another"));
}

TEST_CASE("a part that is there twice", "[hf_config]") {
  const Json config = {
      {"model_type", "clip"},
      {"text_config",
       {{"model_type", "clip_text_model"}, {"num_hidden_layers", 2}, {"max_position_embeddings", 77}}},
      {"text_config_dict", {{"max_position_embeddings", 78}}}};
  CHECK_THAT(
      refusal(config),
      contains("text_config_dict: expected what text_config says of max_position_embeddings, 77, got 78"));
}

TEST_CASE("theta", "[hf_config]") {
  CHECK_THAT(refusal(llama({{"rope_theta", "1e4"}})),
             contains("rope_theta: expected a finite number, got \"1e4\""));
  CHECK_THAT(refusal(llama({{"rope_theta", 0}})), contains("rope_theta: expected a positive number, got 0"));
  CHECK_THAT(refusal(llama({{"rope_theta", -1}})),
             contains("rope_theta: expected a positive number, got -1"));
  CHECK(warned(llama({{"rope_theta", nullptr}}), "rope_theta: not stated; 10000, the default of llama"));
  CHECK(warned(llama({{"rotary_emb_base", 5}}),
               "rotary_emb_base: 5 contradicts rope_theta, which is 10000 and won"));
  const Json both = llama({{"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 5e5}}}});
  CHECK(warned(both, "rope_theta: 10000 contradicts rope_parameters.rope_theta, which is 500000 and won"));
  CHECK(first_rotary(both).config.rope_theta == 5e5);
  CHECK_THAT(refusal({{"model_type", "mimo_v2_flash"},
                      {"hidden_size", 64},
                      {"num_attention_heads", 4},
                      {"num_hidden_layers", 2},
                      {"hybrid_layer_pattern", {0, 1}},
                      {"swa_rope_theta", 1e4}}),
             contains("rope_theta: expected a number, got nothing"));
}

TEST_CASE("the width", "[hf_config]") {
  CHECK_THAT(refusal(llama({{"partial_rotary_factor", 1.5}})),
             contains("partial_rotary_factor: expected a number in (0, 1], got 1.5"));
  CHECK_THAT(refusal(llama({{"partial_rotary_factor", 0}})),
             contains("partial_rotary_factor: expected a number in (0, 1], got 0"));
  CHECK_THAT(refusal(llama({{"partial_rotary_factor", 0.2}})),
             contains("expected an even number of at least 2 rotated dimensions"));
  CHECK_THAT(refusal(llama({{"rotary_dim", 64}})),
             contains("rotary_dim: expected an integer from 2 to 16, got 64"));
  CHECK_THAT(refusal(llama({{"rotary_dim", 7}})), contains("rotary_dim: expected an even number"));
  const Json both = llama({{"rotary_dim", 8}, {"partial_rotary_factor", 0.25}});
  CHECK(
      warned(both, "partial_rotary_factor: makes 4 dimensions, which contradicts rotary_dim = 8, which won"));
  CHECK(first_rotary(both).frequencies(1).rotary_dim() == 8);
  CHECK(warnings(llama({{"rotary_dim", 8}, {"partial_rotary_factor", 0.5}})).empty());
  const Json inner =
      llama({{"partial_rotary_factor", 0.5},
             {"rope_parameters", {{"rope_type", "default"}, {"partial_rotary_factor", 0.25}}}});
  CHECK(warned(
      inner, "rope_parameters.partial_rotary_factor: 0.25 contradicts partial_rotary_factor, which is 0.5"));
  CHECK(first_rotary(inner).config.partial_rotary_factor == 0.5);
}

TEST_CASE("the object of rope parameters", "[hf_config]") {
  CHECK_THAT(refusal(scaled("linear")), contains("rope_scaling: expected an object, got \"linear\""));
  CHECK_THAT(refusal(scaled({{"factor", 2.0}})),
             contains("rope_scaling.rope_type: expected the name of a scaling beside factor"));
  CHECK_THAT(refusal(scaled({{"type", "ntk"}, {"factor", 2.0}})),
             contains("rope_scaling.type: expected default, linear, dynamic, yarn, longrope, su, llama3, "
                      "proportional or mrope, "
                      "got \"ntk\""));
  CHECK_THAT(refusal(scaled({{"rope_type", 3}})),
             contains("rope_scaling.rope_type: expected a string, got 3"));
  CHECK_THAT(refusal(scaled({{"rope_type", "linear"}, {"factor", 2.0}, {"fcator", 4.0}})),
             contains("rope_scaling.fcator: expected a key of rope_type linear, got 4.0"));
  CHECK(warned(scaled({{"rope_type", "linear"}, {"factor", 2.0}, {"beta_fast", 32}}),
               "rope_scaling.beta_fast: has no effect with rope_type linear"));
  CHECK(warned(scaled({{"rope_type", "linear"}, {"type", "dynamic"}, {"factor", 2.0}}),
               "rope_scaling.type: \"dynamic\" contradicts rope_type, which is \"linear\" and won"));
  CHECK(warnings(scaled({{"rope_type", "default"}, {"type", "default"}})).empty());
  CHECK(warnings(scaled(Json::object())).empty());
  Json both = scaled({{"rope_type", "linear"}, {"factor", 2.0}});
  both["rope_parameters"] = {{"rope_type", "linear"}, {"factor", 4.0}};
  CHECK(warned(both, "rope_parameters: contradicts rope_scaling, which won"));
  CHECK(std::get<LinearConfig>(first_rotary(both).scaling).factor == 2);
}

TEST_CASE("linear and dynamic", "[hf_config]") {
  CHECK_THAT(refusal(scaled({{"rope_type", "linear"}})),
             contains("rope_scaling.factor: expected a number, got nothing"));
  CHECK_THAT(refusal(scaled({{"rope_type", "linear"}, {"factor", 0.5}})),
             contains("rope_scaling.factor: expected a number of at least 1, got 0.5"));
  CHECK_THAT(refusal(scaled({{"rope_type", "linear"}, {"factor", "8"}})),
             contains("rope_scaling.factor: expected a finite number, got \"8\""));
  Json dynamic = scaled({{"rope_type", "dynamic"}, {"factor", 2.0}});
  CHECK(std::get<DynamicNtkConfig>(first_rotary(dynamic).scaling).max_position_embeddings == 2048);
  dynamic.erase("max_position_embeddings");
  CHECK_THAT(refusal(dynamic),
             contains("max_position_embeddings: expected an integer for dynamic scaling, got nothing"));
  CHECK_THAT(refusal(scaled({{"rope_type", "dynamic"}, {"alpha", -1.0}})),
             contains("rope_scaling.alpha: expected a positive number"));
  dynamic["head_dim"] = 2;
  CHECK_THAT(refusal(dynamic), contains("expected more than 2 rotated dimensions for NTK scaling"));
}

TEST_CASE("yarn", "[hf_config]") {
  const auto yarn = [](const Json& changes = Json::object()) {
    Json scaling = {{"rope_type", "yarn"}, {"factor", 2.0}, {"original_max_position_embeddings", 1024}};
    scaling.merge_patch(changes);
    return scaled(scaling);
  };
  CHECK(warnings(yarn()).empty());
  CHECK_THAT(refusal(yarn({{"factor", nullptr}})),
             contains("rope_scaling.factor: expected a number, got nothing"));
  CHECK_THAT(refusal(yarn({{"beta_fast", 0.5}})),
             contains("rope_scaling.beta_fast: expected at least beta_slow = 1, got 0.5"));
  CHECK_THAT(refusal(yarn({{"beta_slow", 0}})),
             contains("rope_scaling.beta_slow: expected a positive number, got 0"));
  CHECK_THAT(refusal(yarn({{"attention_factor", -1}})),
             contains("rope_scaling.attention_factor: expected a positive number"));
  CHECK_THAT(refusal(yarn({{"truncate", 0}})),
             contains("rope_scaling.truncate: expected true or false, got 0"));
  CHECK_THAT(refusal(yarn({{"mscale", -1}})),
             contains("rope_scaling.mscale: expected a number of at least 0"));
  CHECK_THAT(refusal(yarn({{"original_max_position_embeddings", 1.5}})),
             contains("rope_scaling.original_max_position_embeddings: expected an integer"));
  CHECK(warned(
      yarn({{"original_max_position_embeddings", nullptr}}),
      "rope_scaling.original_max_position_embeddings: not stated; 2048, which is max_position_embeddings"));
  CHECK(
      warned(yarn({{"factor", 4.0}}),
             "rope_scaling.factor: 4 is not max_position_embeddings / original_max_position_embeddings = 2"));
  CHECK(warned(yarn({{"attention_factor", 1.5}, {"mscale", 1.0}}),
               "rope_scaling.attention_factor: 1.5 replaces"));
  Json outer = yarn();
  outer["original_max_position_embeddings"] = 512;
  CHECK(warned(outer,
               "rope_scaling.original_max_position_embeddings: 1024 contradicts "
               "original_max_position_embeddings, which is 512 and won"));
  CHECK(std::get<YarnConfig>(first_rotary(outer).scaling).original_max_position_embeddings == 512);
  outer = yarn();
  outer["rope_theta"] = 1;
  CHECK_THAT(refusal(outer), contains("rope_theta: expected anything but 1 for YaRN"));
}

TEST_CASE("longrope", "[hf_config]") {
  const auto longrope = [](const Json& changes = Json::object()) {
    Json scaling = {{"type", "longrope"},
                    {"short_factor", ones(8)},
                    {"long_factor", ones(8)},
                    {"original_max_position_embeddings", 1024}};
    scaling.merge_patch(changes);
    return scaled(scaling);
  };
  CHECK(warnings(longrope()).empty());
  CHECK(std::get<LongRopeConfig>(first_rotary(longrope()).scaling).factor == 2);
  CHECK(std::holds_alternative<LongRopeConfig>(first_rotary(longrope({{"type", "su"}})).scaling));
  CHECK_THAT(refusal(longrope({{"short_factor", nullptr}})),
             contains("rope_scaling.short_factor: expected a list of 8 numbers, got nothing"));
  CHECK_THAT(refusal(longrope({{"long_factor", ones(7)}})),
             contains("rope_scaling.long_factor: expected 8 numbers, one per pair, got 7"));
  CHECK_THAT(refusal(longrope({{"long_factor", 3}})),
             contains("rope_scaling.long_factor: expected a list, got 3"));
  auto bad = ones(8);
  bad[3] = 0;
  CHECK_THAT(refusal(longrope({{"long_factor", bad}})),
             contains("rope_scaling.long_factor: expected positive numbers, got 0"));
  CHECK_THAT(refusal(longrope({{"long_factor", {"a", "b"}}})),
             contains("rope_scaling.long_factor: expected a finite number, got \"a\""));
  CHECK_THAT(refusal(longrope({{"long_mscale", 1.2}})),
             contains("rope_scaling.long_mscale: expected short_mscale and long_mscale together"));
  CHECK(warned(longrope({{"long_mscale", 1.2}, {"short_mscale", 1.1}, {"attention_factor", 1.3}}),
               "rope_scaling.attention_factor: 1.3 contradicts short_mscale and long_mscale, which won"));
}

TEST_CASE("llama3", "[hf_config]") {
  const auto llama3 = [](const Json& changes = Json::object()) {
    Json scaling = {{"rope_type", "llama3"},
                    {"factor", 8.0},
                    {"low_freq_factor", 1.0},
                    {"high_freq_factor", 4.0},
                    {"original_max_position_embeddings", 1024}};
    scaling.merge_patch(changes);
    return scaled(scaling);
  };
  CHECK(warnings(llama3()).empty());
  for (const char* key :
       {"factor", "low_freq_factor", "high_freq_factor", "original_max_position_embeddings"})
    CHECK_THAT(refusal(llama3({{key, nullptr}})),
               contains(std::string("rope_scaling.") + key + ": expected"));
  CHECK_THAT(refusal(llama3({{"high_freq_factor", 0.5}})),
             contains("rope_scaling.high_freq_factor: expected at least low_freq_factor = 1, got 0.5"));
  CHECK(refusal(llama3({{"high_freq_factor", 1.0}})).empty());
  CHECK(warned(llama3({{"original_max_position_embeddings", 4096}}),
               "4096 is not below max_position_embeddings = 2048"));
}

TEST_CASE("sections", "[hf_config]") {
  CHECK(first_rotary(scaled({{"type", "mrope"}, {"mrope_section", {2, 3, 3}}})).axes == AxisLayout::sections);
  CHECK(first_rotary(scaled({{"mrope_section", {4, 2, 2}}, {"mrope_interleaved", true}})).axes ==
        AxisLayout::interleaved);
  CHECK_THAT(
      refusal(scaled({{"type", "mrope"}, {"mrope_section", {2, 3}}})),
      contains("rope_scaling.mrope_section: expected sections that sum to the number of pairs, 8, got 5"));
  CHECK_THAT(refusal(scaled({{"type", "mrope"}, {"mrope_section", {-2, 5, 5}}})),
             contains("rope_scaling.mrope_section: expected an integer from 0"));
  CHECK_THAT(refusal(scaled({{"mrope_section", {0, 4, 4}}, {"mrope_interleaved", true}})),
             contains("expected sections that can take turns"));
  CHECK_THAT(refusal(scaled({{"mrope_interleaved", true}})),
             contains("rope_scaling.mrope_section: expected sections beside mrope_interleaved"));
  CHECK_THAT(refusal(scaled({{"mrope_section", {4, 4}}, {"mrope_interleaved", true}})),
             contains("expected 3 sections, got 2"));
  Json qwen = llama({{"model_type", "qwen2_vl"}});
  CHECK_THAT(refusal(qwen),
             contains("mrope_section: expected a list of sections that sum to 8, got nothing"));
}

TEST_CASE("parameters per layer type", "[hf_config]") {
  Json config = {{"model_type", "gemma3_text"},
                 {"hidden_size", 64},
                 {"num_attention_heads", 4},
                 {"head_dim", 16},
                 {"num_hidden_layers", 2},
                 {"layer_types", {"sliding_attention", "full_attention"}},
                 {"rope_parameters",
                  {{"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}},
                   {"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}}}}};
  const ModelPositions model = model_positions_from_hf(config);
  CHECK(model.warnings.empty());
  CHECK(std::get<RotaryLayer>(model.stacks[0].layers[0].scheme).config.rope_theta == 1e4);
  CHECK(std::get<RotaryLayer>(model.stacks[0].layers[1].scheme).config.rope_theta == 1e6);

  Json null = config;
  null["rope_parameters"]["full_attention"] = nullptr;
  CHECK(std::holds_alternative<NoPositionLayer>(model_positions_from_hf(null).stacks[0].layers[1].scheme));
  Json missing = config;
  missing["rope_parameters"].erase("full_attention");
  CHECK_THAT(refusal(missing), contains("rope_parameters: expected an entry for full_attention, got none"));
  Json extra = config;
  extra["rope_parameters"]["chunked_attention"] = {{"rope_type", "default"}, {"rope_theta", 1e4}};
  CHECK(warned(extra, "rope_parameters: the entry \"chunked_attention\" has no effect"));
  Json unknown = config;
  unknown["rope_parameters"]["full_attention"]["thta"] = 1;
  CHECK_THAT(refusal(unknown),
             contains("rope_parameters.full_attention.thta: expected a key of rope_type linear"));
  config["layer_types"] = {"sliding_attention"};
  CHECK_THAT(refusal(config), contains("layer_types: expected 2 entries, one per layer, got 1"));
  config["layer_types"] = {"sliding_attention", 7};
  CHECK_THAT(refusal(config), contains("layer_types: expected strings, got 7"));
}

TEST_CASE("NoPE lists", "[hf_config]") {
  const auto llama4 = [](const Json& changes) {
    Json config = llama(
        {{"model_type", "llama4_text"}, {"num_hidden_layers", 4}, {"attn_scale", 0.2}, {"floor_scale", 100}});
    config.merge_patch(changes);
    return config;
  };
  const ModelPositions model = model_positions_from_hf(llama4({{"no_rope_layers", {1, 0, 1, 1}}}));
  CHECK(model.warnings.empty());
  CHECK(std::holds_alternative<NoPositionLayer>(model.stacks[0].layers[1].scheme));
  CHECK(model.stacks[0].layers[1].temperature->scale == 0.2);
  CHECK(model.stacks[0].layers[1].temperature->length == 100);
  CHECK(
      !model_positions_from_hf(llama4({{"no_rope_layers", {1, 0, 1, 1}}, {"attn_temperature_tuning", false}}))
           .stacks[0]
           .layers[1]
           .temperature);
  CHECK_THAT(refusal(llama4({{"no_rope_layers", {1, 0, 1}}})),
             contains("no_rope_layers: expected 4 entries, one per layer, got 3"));
  CHECK_THAT(refusal(llama4({{"no_rope_layers", {1, 0, 1, 2}}})),
             contains("no_rope_layers: expected an integer from 0 to 1, got 2"));
  CHECK_THAT(refusal(llama4({{"floor_scale", 0}})), contains("floor_scale: expected a positive number"));
}

TEST_CASE("SmolLM3, Cohere 2, EXAONE 4 and Granite leave layers out in four ways", "[hf_config]") {
  const auto turning = [](const Json& config) {
    std::string pattern;
    const ModelPositions model = model_positions_from_hf(config);
    for (const LayerPositions& layer : model.stacks[0].layers)
      pattern += std::holds_alternative<RotaryLayer>(layer.scheme) ? 'r' : '.';
    return pattern;
  };
  CHECK(turning(llama({{"model_type", "smollm3"}, {"num_hidden_layers", 8}})) == "rrr.rrr.");
  CHECK(turning(llama({{"model_type", "cohere2"},
                       {"num_hidden_layers", 8},
                       {"sliding_window", 64},
                       {"sliding_window_pattern", 4}})) == "rrr.rrr.");
  CHECK(turning(llama({{"model_type", "exaone4"}, {"num_hidden_layers", 4}})) == "rrrr");
  CHECK(turning(llama({{"model_type", "exaone4"},
                       {"num_hidden_layers", 4},
                       {"sliding_window", 64},
                       {"sliding_window_pattern", 2}})) == "r.r.");
  CHECK(turning(llama({{"model_type", "granite_swa"},
                       {"num_hidden_layers", 3},
                       {"layer_rope_theta", {1e4, 0, 5e5}}})) == "r.r");
  CHECK(turning(llama({{"model_type", "zamba2"}})) == "..");
  CHECK(turning(llama({{"model_type", "granitemoehybrid"}, {"position_embedding_type", "nope"}})) == "..");
}

TEST_CASE("families that the data has no file of", "[hf_config]") {
  CHECK(first_rotary(llama({{"model_type", "nanochat"}})).negated);
  CHECK(first_rotary(llama({{"model_type", "nanochat"}})).frequencies(1).inv_freq[0] == -1);
  CHECK(first_rotary(llama({{"model_type", "roformer"}, {"rotary_value", true}})).rotates_values);
  CHECK(first_rotary(llama({{"model_type", "roformer"}})).pairing == Pairing::adjacent);
  CHECK(first_rotary(llama({{"model_type", "wav2vec2-conformer"}, {"position_embeddings_type", "rotary"}}))
            .before_projection);
  CHECK_THAT(refusal(llama({{"model_type", "wav2vec2-conformer"}, {"position_embeddings_type", "relative"}})),
             contains("position_embeddings_type: expected rotary"));
  const Json ministral = llama({{"model_type", "ministral3"},
                                {"rope_parameters",
                                 {{"rope_type", "yarn"},
                                  {"factor", 2.0},
                                  {"original_max_position_embeddings", 1024},
                                  {"llama_4_scaling_beta", 0.1},
                                  {"rope_theta", 1e4}}}});
  const LayerPositions layer = model_positions_from_hf(ministral).stacks[0].layers[1];
  REQUIRE(layer.temperature);
  CHECK(layer.temperature->rule == TemperatureRule::ministral3);
  CHECK(layer.temperature->length == 1024);
  CHECK_THAT(refusal(scaled({{"rope_type", "default"}, {"llama_4_scaling_beta", 0.1}})),
             contains("rope_scaling.llama_4_scaling_beta: expected it in a ministral3 or mistral4 model"));

  const Json ernie = {{"model_type", "ernie4_5_vl_moe"},
                      {"hidden_size", 256},
                      {"num_attention_heads", 2},
                      {"num_hidden_layers", 1},
                      {"rope_theta", 5e5},
                      {"rope_scaling", {{"type", "default"}, {"mrope_section", {22, 22, 20}}}}};
  CHECK(first_rotary(ernie).axes == AxisLayout::ernie);
  CHECK(first_rotary(ernie).frequencies(1).axis[43] == 2);
  const Json modernbert = llama({{"model_type", "modernbert"},
                                 {"num_hidden_layers", 4},
                                 {"global_attn_every_n_layers", 3},
                                 {"rope_theta", nullptr},
                                 {"global_rope_theta", 160000},
                                 {"local_rope_theta", 1e4}});
  const ModelPositions modern = model_positions_from_hf(modernbert);
  CHECK(modern.warnings.empty());
  CHECK(std::get<RotaryLayer>(modern.stacks[0].layers[3].scheme).config.rope_theta == 160000);
  CHECK(std::get<RotaryLayer>(modern.stacks[0].layers[1].scheme).config.rope_theta == 1e4);

  const Json vjepa = {
      {"model_type", "vjepa2"}, {"hidden_size", 1024}, {"num_attention_heads", 16}, {"num_hidden_layers", 1}};
  const RotaryLayer cube = first_rotary(vjepa);
  CHECK(cube.axis_count == 3);
  CHECK(cube.frequencies(1).axes() == 3);
  CHECK(cube.frequencies(1).rotary_dim() == 60);
  CHECK(cube.pairing == Pairing::adjacent_mismatched);
  const RotaryLayer dino = first_rotary({{"model_type", "dinov3_vit"},
                                         {"hidden_size", 384},
                                         {"num_attention_heads", 6},
                                         {"num_hidden_layers", 1}});
  CHECK(dino.axes == AxisLayout::dinov3);
  CHECK(dino.config.rope_theta == 100);

  const Json xglm = {{"model_type", "xglm"}, {"d_model", 64}, {"num_layers", 2}, {"pad_token_id", 1}};
  const auto xglm_sinusoid = std::get<SinusoidalConfig>(model_positions_from_hf(xglm).stacks[0].embedding);
  CHECK(xglm_sinusoid.first_position == 2);
  CHECK(xglm_sinusoid.padding_idx == 1);
  const Json musicgen = {
      {"model_type", "musicgen"},
      {"decoder", {{"model_type", "musicgen_decoder"}, {"hidden_size", 64}, {"num_hidden_layers", 2}}}};
  CHECK(std::get<SinusoidalConfig>(model_positions_from_hf(musicgen).stacks[0].embedding).order ==
        SinusoidOrder::cos_first);
  const Json mpnet = {{"model_type", "mpnet"},
                      {"hidden_size", 64},
                      {"num_attention_heads", 4},
                      {"num_hidden_layers", 2},
                      {"max_position_embeddings", 514},
                      {"pad_token_id", 1},
                      {"relative_attention_num_buckets", 32}};
  CHECK(std::get<RelativeBucketsLayer>(model_positions_from_hf(mpnet).stacks[0].layers[0].scheme).num_heads ==
        4);
  const Json nystromformer = {{"model_type", "nystromformer"},
                              {"hidden_size", 64},
                              {"num_hidden_layers", 2},
                              {"max_position_embeddings", 510}};
  CHECK(std::get<LearnedEmbedding>(model_positions_from_hf(nystromformer).stacks[0].embedding).max_len ==
        512);
}

// As the files on the hub have them, shortened.
TEST_CASE("the keys of shipped models that the data has no file of", "[hf_config]") {
  CHECK(warnings({{"model_type", "cohere2"},
                  {"hidden_size", 64},
                  {"num_attention_heads", 4},
                  {"num_hidden_layers", 4},
                  {"rope_theta", 50000},
                  {"layer_switch", 4},
                  {"position_embedding_type", "rope_gptj"},
                  {"rotary_pct", 1.0},
                  {"sliding_window", 4096},
                  {"sliding_window_pattern", 4},
                  {"max_position_embeddings", 8192}})
            .empty());
  CHECK(warned({{"model_type", "modernbert"},
                {"hidden_size", 64},
                {"num_attention_heads", 4},
                {"num_hidden_layers", 4},
                {"global_attn_every_n_layers", 3},
                {"global_rope_theta", 160000.0},
                {"local_attention", 128},
                {"local_rope_theta", 10000.0},
                {"position_embedding_type", "absolute"}},
               "position_embedding_type: absolute has no effect"));
  CHECK(warnings({{"model_type", "dinov3_vit"},
                  {"hidden_size", 384},
                  {"num_attention_heads", 6},
                  {"num_hidden_layers", 1},
                  {"image_size", 224},
                  {"patch_size", 16},
                  {"rope_theta", 100.0},
                  {"pos_embed_jitter", nullptr},
                  {"pos_embed_rescale", 2.0}})
            .empty());
  CHECK(first_rotary({{"model_type", "bamba"},
                      {"hidden_size", 512},
                      {"num_attention_heads", 4},
                      {"num_hidden_layers", 1},
                      {"rope_theta", 1e4},
                      {"attn_layer_indices", {0}},
                      {"attn_rotary_emb", 64}})
            .frequencies(1)
            .rotary_dim() == 64);
  const Json donut = {{"model_type", "vision-encoder-decoder"},
                      {"encoder", {{"model_type", "donut-swin"}}},
                      {"decoder",
                       {{"model_type", "mbart"},
                        {"is_decoder", true},
                        {"decoder_layers", 4},
                        {"encoder_layers", 12},
                        {"max_position_embeddings", 1536}}}};
  const ModelPositions model = model_positions_from_hf(donut);
  REQUIRE(model.stacks.size() == 2);
  CHECK(model.stacks[0].name == "decoder.decoder");
  CHECK(std::get<LearnedEmbedding>(model.stacks[0].embedding).max_len == 1538);
  CHECK(model.stacks[1].other_scheme.has_value());
  const Json moonshine = {{"model_type", "moonshine"},        {"hidden_size", 288},
                          {"encoder_num_hidden_layers", 2},   {"decoder_num_hidden_layers", 3},
                          {"encoder_num_attention_heads", 8}, {"decoder_num_attention_heads", 8},
                          {"partial_rotary_factor", 0.9},     {"rope_theta", 1e4},
                          {"max_position_embeddings", 194}};
  CHECK(first_rotary(moonshine).frequencies(1).rotary_dim() == 32);
  CHECK(model_positions_from_hf(moonshine).stacks[1].layers.size() == 3);
}

TEST_CASE("ALiBi", "[hf_config]") {
  const Json falcon = {{"model_type", "falcon"},
                       {"hidden_size", 64},
                       {"num_attention_heads", 4},
                       {"num_hidden_layers", 2},
                       {"alibi", true}};
  const auto alibi = std::get<AlibiConfig>(model_positions_from_hf(falcon).stacks[0].layers[0].scheme);
  CHECK(alibi.scale == 0.25);
  CHECK(alibi.form == AlibiForm::key_position);
  Json both = falcon;
  both["rope_theta"] = 1e4;
  CHECK(warned(both, "rope_theta: has no effect beside alibi: true, which won"));
  both["alibi"] = "yes";
  CHECK_THAT(refusal(both), contains("alibi: expected true or false, got \"yes\""));
  Json mpt = {{"model_type", "mpt"}, {"d_model", 64},      {"n_heads", 4},
              {"n_layers", 2},       {"max_seq_len", 128}, {"attn_config", {{"alibi", false}}}};
  CHECK(std::get<LearnedEmbedding>(model_positions_from_hf(mpt).stacks[0].embedding).max_len == 128);
  mpt["attn_config"]["rope"] = true;
  CHECK_THAT(refusal(mpt), contains("attn_config.rope: expected false for an mpt model"));
  mpt["attn_config"] = Json::object();
  CHECK_THAT(refusal(mpt), contains("attn_config.alibi: expected true or false, got nothing"));
  Json baichuan = {{"model_type", "baichuan"},
                   {"hidden_size", 5120},
                   {"num_attention_heads", 40},
                   {"num_hidden_layers", 40},
                   {"model_max_length", 4096}};
  CHECK(std::holds_alternative<AlibiConfig>(model_positions_from_hf(baichuan).stacks[0].layers[0].scheme));
  baichuan["max_position_embeddings"] = 4096;
  CHECK_THAT(refusal(baichuan),
             contains("max_position_embeddings: expected it with hidden_size 4096 (7B, rope)"));
}

TEST_CASE("keys about positions that nothing understands", "[hf_config]") {
  CHECK_THAT(
      refusal(llama({{"rope_flavour", "mint"}})),
      contains("rope_flavour: expected a key that posenc understands for model_type llama, got \"mint\""));
  CHECK_THAT(refusal(llama({{"alibi", true}})),
             contains("alibi: expected a key that posenc understands for model_type llama"));
  CHECK_THAT(refusal(llama({{"position_embedding_type", "relative"}})),
             contains("position_embedding_type: expected rope, rotary or rope_gptj for a llama model"));
  CHECK_THAT(refusal(llama({{"extras", {{"deep", {{"xpos_scale", 512}}}}}})),
             contains("extras.deep.xpos_scale: expected no key about positions here"));
  CHECK_THAT(refusal(llama({{"use_rotary_pos_emb", false}})),
             contains("use_rotary_pos_emb: expected true for a llama model"));
  CHECK(warnings(llama({{"vocab_size", 7},
                        {"rms_norm_eps", 1e-5},
                        {"quantization_config", {{"rope_bits", 4}}},
                        {"properties", {1}},
                        {"decomposition", 3}}))
            .empty());
  CHECK_THAT(refusal({{"model_type", "bert"},
                      {"hidden_size", 64},
                      {"num_attention_heads", 4},
                      {"num_hidden_layers", 2},
                      {"max_position_embeddings", 512},
                      {"position_embedding_type", "relative_key"}}),
             contains("position_embedding_type: expected absolute or alibi, got \"relative_key\""));
  CHECK_THAT(refusal({{"model_type", "bart"},
                      {"encoder_layers", 2},
                      {"decoder_layers", 2},
                      {"max_position_embeddings", 512},
                      {"static_position_embeddings", true}}),
             contains("static_position_embeddings: expected false for a bart model, got true"));
}

TEST_CASE("a family that posenc does not know", "[hf_config]") {
  const Json unknown = llama({{"model_type", "brand_new"}});
  CHECK(!first_rotary(unknown).pairing);
  CHECK(warned(unknown,
               "model_type: expected a family that posenc knows, got \"brand_new\"; read by its keys, and "
               "the pairing is unknown"));
  CHECK_THAT(refusal(llama({{"model_type", "brand_new"}, {"rope_theta", nullptr}})),
             contains("model_type: expected a family that posenc knows, or rope_theta, got \"brand_new\""));
  CHECK_THAT(refusal(llama({{"model_type", "brand_new"}, {"rope_twist", 1}})),
             contains("rope_twist: expected a key that posenc understands"));
  CHECK_THAT(refusal(llama({{"model_type", "swin"}})),
             contains("model_type: expected a scheme that ModelPositions has a type for, got Swin's table"));
  CHECK_THAT(refusal(llama({{"model_type", 7}})), contains("model_type: expected a string, got 7"));
  CHECK_THAT(refusal({{"model_type", "clip"}}),
             contains("text_config: expected the configs of a clip model's parts, got none"));
  Json parts = {{"model_type", "brand_new_vl"}, {"text_config", llama()}};
  CHECK(warned(
      parts,
      "model_type: expected a family that posenc knows, got \"brand_new_vl\"; its parts are described"));
  parts["text_config"]["model_type"] = "swin";
  CHECK(model_positions_from_hf(parts).stacks[0].other_scheme.has_value());
}

TEST_CASE("the table of families", "[hf_config]") {
  const auto names = detail::hf_family_names();
  const std::set<std::string> unique(names.begin(), names.end());
  CHECK(unique.size() == names.size());
  CHECK(names.size() > 700);
  for (const std::string& name : names) {
    INFO(name);
    REQUIRE(detail::find_hf_family(name) != nullptr);
    CHECK(detail::hf_family_name(name) == name);
    CHECK((detail::find_hf_family(name)->scheme != detail::HfScheme::other ||
           !detail::find_hf_family(name)->note.empty()));
  }
  CHECK(detail::find_hf_family(detail::hf_family_name("Deberta-v2")) != nullptr);
  CHECK(detail::find_hf_family("") == nullptr);
  CHECK(detail::find_hf_family("llama mistral") == nullptr);
}

// One config with the usual keys under all their names, for each family: described with frequencies, or
// refused.
TEST_CASE("every family of the table", "[hf_config]") {
  const Json usual = {{"hidden_size", 256},
                      {"d_model", 256},
                      {"num_attention_heads", 2},
                      {"num_heads", 2},
                      {"num_hidden_layers", 4},
                      {"num_layers", 4},
                      {"encoder_layers", 4},
                      {"decoder_layers", 4},
                      {"max_source_positions", 64},
                      {"max_target_positions", 64},
                      {"max_position_embeddings", 1024},
                      {"image_size", 224},
                      {"patch_size", 16},
                      {"pad_token_id", 1},
                      {"d_kv", 128},
                      {"head_dim", 128},
                      {"qk_rope_head_dim", 64},
                      {"qk_nope_head_dim", 64}};
  int described = 0;
  for (const std::string& name : detail::hf_family_names()) {
    INFO(name);
    Json config = usual;
    config["model_type"] = name;
    // Keys that are not this family's have to go.
    for (std::string message; !(message = refusal(config)).empty();) {
      const std::string key = message.substr(8, message.find(':', 8) - 8);
      if (message.find("expected a key that posenc understands") == std::string::npos ||
          config.erase(key) == 0)
        break;
    }
    try {
      const ModelPositions model = model_positions_from_hf(config);
      ++described;
      CHECK(!model.stacks.empty());
      for (const StackPositions& stack : model.stacks)
        for (const LayerPositions& layer : stack.layers)
          if (const auto* rotary = std::get_if<RotaryLayer>(&layer.scheme)) {
            CHECK(rotary->pairing.has_value());
            CHECK(!rotary->frequencies(2048).inv_freq.empty());
          }
    } catch (const std::invalid_argument& error) {
      CHECK_THAT(error.what(), contains("expected"));
      CHECK_THAT(error.what(), contains("got"));
    }
  }
  CHECK(described > 350);
}

TEST_CASE("a file that is not there", "[hf_config]") {
  CHECK_THROWS_WITH(read_hf_config("no/such/config.json"),
                    contains("path: expected a readable config.json, got no/such/config.json"));
}
