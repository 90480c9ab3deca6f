// The 407 config.json files of hf_configs in POSENC_DATA_DIR: each is described completely or refused, and
// the refusals are listed here with their reasons; and what some of them say, read by hand from the files and
// from the code of the models. POSENC_HF_VERDICTS names a file to write a table of all verdicts to.

#include "golden/data.hpp"
// data.hpp comes first, see there.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <variant>
#include <vector>

#include "posenc/io/hf_config.hpp"

using namespace posenc_test;
using namespace posenc;

namespace {

class NeedsHfConfigs : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override { return "hf_configs"; }
};
CATCH_REGISTER_LISTENER(NeedsHfConfigs)

std::vector<std::filesystem::path> config_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(data_dir() / "hf_configs"))
    if (entry.path().extension() == ".json") files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

ModelPositions model_of(const std::string& file) {
  INFO(file);
  return read_hf_config(data_dir() / "hf_configs" / file);
}

const StackPositions& stack_of(const ModelPositions& model, const std::string& name) {
  for (const StackPositions& stack : model.stacks)
    if (stack.name == name) return stack;
  FAIL("no stack " << name << " in " << model.model_type);
  return model.stacks.front();
}
const RotaryLayer& rotary_of(const StackPositions& stack, std::size_t layer = 0) {
  REQUIRE(layer < stack.layers.size());
  const auto* rotary = std::get_if<RotaryLayer>(&stack.layers[layer].scheme);
  REQUIRE(rotary != nullptr);
  return *rotary;
}
template <class Scheme>
const Scheme& scheme_of(const StackPositions& stack, std::size_t layer = 0) {
  REQUIRE(layer < stack.layers.size());
  const auto* scheme = std::get_if<Scheme>(&stack.layers[layer].scheme);
  REQUIRE(scheme != nullptr);
  return *scheme;
}
template <class Embedding>
const Embedding& embedding_of(const StackPositions& stack) {
  const auto* embedding = std::get_if<Embedding>(&stack.embedding);
  REQUIRE(embedding != nullptr);
  return *embedding;
}
template <class Scaling>
const Scaling& scaling_of(const RotaryLayer& layer) {
  const auto* scaling = std::get_if<Scaling>(&layer.scaling);
  REQUIRE(scaling != nullptr);
  return *scaling;
}
std::size_t count_turning(const StackPositions& stack) {
  return static_cast<std::size_t>(
      std::count_if(stack.layers.begin(), stack.layers.end(),
                    [](const auto& layer) { return std::holds_alternative<RotaryLayer>(layer.scheme); }));
}
bool warns(const ModelPositions& model, const std::string& text) {
  return std::any_of(model.warnings.begin(), model.warnings.end(),
                     [&](const std::string& warning) { return warning.find(text) != std::string::npos; });
}

/// The schemes of a model in a few words, for the table.
std::string schemes_of(const ModelPositions& model) {
  std::set<std::string> words;
  for (const StackPositions& stack : model.stacks) {
    if (std::holds_alternative<LearnedEmbedding>(stack.embedding)) words.insert("learned");
    if (std::holds_alternative<SinusoidalConfig>(stack.embedding)) words.insert("sinusoidal");
    if (stack.other_scheme) words.insert("(a tower named only)");
    for (const LayerPositions& layer : stack.layers) {
      if (layer.temperature) words.insert("temperature");
      if (std::holds_alternative<AlibiConfig>(layer.scheme)) words.insert("alibi");
      if (std::holds_alternative<RelativeBucketsLayer>(layer.scheme)) words.insert("t5 buckets");
      if (const auto* rotary = std::get_if<RotaryLayer>(&layer.scheme))
        words.insert(rotary->axes == AxisLayout::one           ? "rope " + rope_type(rotary->scaling)
                     : rotary->axes == AxisLayout::sections    ? "mrope"
                     : rotary->axes == AxisLayout::interleaved ? "mrope interleaved"
                                                               : "rope rows and columns");
    }
  }
  if (words.empty()) words.insert("none");
  std::string all;
  for (const std::string& word : words) all += (all.empty() ? "" : " + ") + word;
  return all;
}

std::string csv(std::string text) {
  for (std::size_t at = 0; (at = text.find('"', at)) != std::string::npos; at += 2) text.insert(at, 1, '"');
  return '"' + text + '"';
}

// Why a file has no description.
const std::map<std::string, std::string> refusals = {
    // Schemes that ModelPositions has no type for.
    {"deberta-v3-base.json", "the disentangled attention of DeBERTa"},
    {"xlnet-base-cased.json", "the relative terms of Transformer-XL"},
    // Its image tokens turn with more than the file says.
    {"Falcon-Perception.json", "image tokens also turn with their row and column"},
    // 62 layer types for 4 layers; transformers refuses it too.
    {"gemma3-vision-test-integration-config_gemma3_4layers.json",
     "text_config.layer_types: expected 4 entries, one per layer, got 62"},
    // Stripped of their base. Released models of these families state another one than transformers fills in,
    // or
    // transformers 4 and 5 fill in different ones (Cohere), so any description would be a guess.
    {"command_r_35b.json", "rope_theta: expected a number, got nothing"},
    {"glm-5.2-fp8.json", "rope_theta: expected a number, got nothing"},
    {"qwen3_5_27b.json", "text_config.rope_theta: expected a number, got nothing"},
    {"qwen3_5_35b_a3b.json", "text_config.rope_theta: expected a number, got nothing"},
    {"stepfun-ai--Step-3.7-Flash-FP8.json", "rope_theta: expected a number, got nothing"},
};

// A side tower whose scheme has a name here and no more.
const std::set<std::string> partly = {"Gemma4.json", "Qwen2_5_Omni.json", "phi4.json"};

}  // namespace

TEST_CASE("every file is described, or refused for a reason that is listed", "[hf_config]") {
  std::ofstream table;
  if (const char* path = std::getenv("POSENC_HF_VERDICTS"); path != nullptr && *path != '\0')
    table.open(path);
  if (table) table << "file,model_type,scheme,verdict\n";
  int described = 0, rotary_layers = 0;
  std::set<std::string> refused, only_partly;
  const auto files = config_files();
  for (const auto& path : files) {
    const std::string file = path.filename().string();
    INFO(file);
    ModelPositions model;
    try {
      model = read_hf_config(path);
    } catch (const std::invalid_argument& error) {
      refused.insert(file);
      const auto expected = refusals.find(file);
      if (expected == refusals.end())
        FAIL_CHECK("refused: " << error.what());
      else
        CHECK_THAT(error.what(), contains(expected->second));
      if (table) {
        std::ifstream stream(path);
        const Json json = Json::parse(stream, nullptr, false);
        table << csv(file) << ',' << csv(json.is_discarded() ? "" : json.value("model_type", "")) << ",,"
              << csv(std::string("refused: ") + error.what()) << '\n';
      }
      continue;
    }
    ++described;
    CHECK(!model.stacks.empty());
    for (const StackPositions& stack : model.stacks) {
      INFO(stack.name);
      if (stack.other_scheme) only_partly.insert(file);
      CHECK(stack.other_scheme != "");
      for (const LayerPositions& layer : stack.layers) {
        CHECK(layer.type != "");
        if (const auto* alibi = std::get_if<AlibiConfig>(&layer.scheme)) CHECK_NOTHROW(Alibi(*alibi));
        if (layer.temperature) CHECK_NOTHROW(AttentionTemperature(*layer.temperature));
        const auto* rotary = std::get_if<RotaryLayer>(&layer.scheme);
        if (rotary == nullptr) continue;
        ++rotary_layers;
        CHECK(rotary->pairing.has_value());
        for (const Index length : {Index{1}, Index{100000}}) {
          const RotaryFrequencies frequencies = rotary->frequencies(length);
          const bool proportional = std::holds_alternative<ProportionalConfig>(rotary->scaling);
          const Index width = rotary->config.rotary_dim.value_or(static_cast<Index>(
              static_cast<double>(rotary->config.head_dim) * rotary->config.partial_rotary_factor));
          CHECK(frequencies.rotary_dim() == width);
          CHECK(frequencies.head_dim == rotary->config.head_dim);
          CHECK((std::isfinite(frequencies.attention_factor) && frequencies.attention_factor > 0));
          CHECK(std::all_of(frequencies.inv_freq.begin(), frequencies.inv_freq.end(),
                            [&](double f) { return std::isfinite(f) && (proportional ? f >= 0 : f > 0); }));
        }
      }
      if (const auto* sinusoidal = std::get_if<SinusoidalConfig>(&stack.embedding))
        CHECK_NOTHROW(sinusoidal_frequencies(*sinusoidal));
      if (const auto* learned = std::get_if<LearnedEmbedding>(&stack.embedding)) CHECK(learned->max_len > 0);
    }
    if (table) {
      std::string verdict = "described";
      for (const std::string& warning : model.warnings) verdict += "; " + warning;
      table << csv(file) << ',' << csv(model.model_type) << ',' << csv(schemes_of(model)) << ','
            << csv(verdict) << '\n';
    }
  }
  std::set<std::string> expected;
  for (const auto& [file, reason] : refusals) expected.insert(file);
  CHECK(refused == expected);
  CHECK(only_partly == partly);
  CHECK(files.size() == 407);
  CHECK(described == 398);  // 97.8 %; all but the three of `partly` completely: 97.05 %
  CHECK(rotary_layers == 9701);
}

TEST_CASE("Llama 2 and 3", "[hf_config]") {
  const ModelPositions llama2 = model_of("llama-2-7b-hf.json");
  CHECK(llama2.model_type == "llama");
  REQUIRE(llama2.stacks.size() == 1);
  const RotaryLayer& plain = rotary_of(llama2.stacks[0], 31);
  CHECK(llama2.stacks[0].layers.size() == 32);
  CHECK(plain.config.head_dim == 128);
  CHECK(plain.config.rope_theta == 10000);
  CHECK(plain.pairing == Pairing::half);
  CHECK(std::holds_alternative<DefaultScaling>(plain.scaling));

  const ModelPositions llama31 = model_of("meta-llama--Meta-Llama-3.1-8B.json");
  const RotaryLayer& layer = rotary_of(llama31.stacks[0]);
  const Llama3Config& bands = scaling_of<Llama3Config>(layer);
  CHECK(layer.config.rope_theta == 500000);
  CHECK(layer.max_position_embeddings == 131072);
  CHECK(bands.factor == 8);
  CHECK(bands.low_freq_factor == 1);
  CHECK(bands.high_freq_factor == 4);
  CHECK(bands.original_max_position_embeddings == 8192);
  const auto inv_freq = layer.frequencies(1).inv_freq;  // huggingface.md, 4.1
  CHECK(inv_freq[28] == Approx(3.21144599e-3).epsilon(1e-8));
  CHECK(inv_freq[32] == Approx(5.24846161e-4).epsilon(1e-8));
  CHECK(inv_freq[63] == Approx(3.06892599e-7).epsilon(1e-8));
  CHECK(llama31.warnings.empty());
}

TEST_CASE("DeepSeek's decoupled heads and softmax scale", "[hf_config]") {
  const ModelPositions v3 = model_of("deepseek_v3.json");
  const RotaryLayer& layer = rotary_of(v3.stacks[0]);
  CHECK(v3.stacks[0].layers.size() == 61);
  CHECK(layer.config.head_dim == 192);
  CHECK(layer.config.rotary_dim == 64);
  CHECK(layer.window.first(192, 64) == 128);
  CHECK(layer.pairing == Pairing::adjacent_to_half);
  CHECK(scaling_of<YarnConfig>(layer).factor == 40);
  CHECK(layer.softmax_scale == Approx(1.8738542071).epsilon(1e-9));
  const RotaryFrequencies frequencies = layer.frequencies(1);
  CHECK(frequencies.attention_factor == 1);
  CHECK(frequencies.inv_freq[10] == Approx(5.62341325e-2).epsilon(1e-8));
  CHECK(frequencies.inv_freq[16] == Approx(5.5e-3).epsilon(1e-8));
  CHECK(frequencies.inv_freq[31] == Approx(3.33380358e-6).epsilon(1e-8));

  const ModelPositions v2 = model_of("deepseek-v2-lite.json");
  const RotaryLayer& lite = rotary_of(v2.stacks[0]);
  CHECK(lite.pairing == Pairing::adjacent);
  CHECK(scaling_of<YarnConfig>(lite).mscale == 0.707);
  const double m = 0.1 * 0.707 * std::log(40.0) + 1;
  CHECK(lite.softmax_scale == Approx(m * m).epsilon(1e-12));

  // A draft head in llama's clothes has the same numbers, but llama's attention has no such scale.
  CHECK(rotary_of(model_of("specforge-deepseek-v2-lite-eagle3.json").stacks[0]).softmax_scale == 1);

  const ModelPositions kimi = model_of("moonshotai--Kimi-K2-Instruct.json");
  CHECK(rotary_of(kimi.stacks[0]).config.rope_theta == 50000);
  CHECK(scaling_of<YarnConfig>(rotary_of(kimi.stacks[0])).beta_fast == 1);

  const ModelPositions glm = model_of("zai-org--GLM-5.2-FP8.json");
  CHECK(rotary_of(glm.stacks[0]).config.head_dim == 256);
  CHECK(rotary_of(glm.stacks[0]).config.rope_theta == 8000000);
  CHECK(warns(glm, "head_dim: 192 has no effect"));
}

TEST_CASE("DeepSeek V4 turns compressed and other layers differently", "[hf_config]") {
  const ModelPositions flash = model_of("deepseek-ai--DeepSeek-V4-Flash.json");
  const StackPositions& stack = flash.stacks[0];
  REQUIRE(stack.layers.size() == 43);
  CHECK(stack.layers[1].type == "main");
  CHECK(stack.layers[2].type == "compress");
  const RotaryLayer &main_layer = rotary_of(stack, 1), &compress = rotary_of(stack, 42);
  CHECK(main_layer.config.rope_theta == 10000);
  CHECK(std::holds_alternative<DefaultScaling>(main_layer.scaling));
  CHECK(compress.config.rope_theta == 160000);
  CHECK(scaling_of<YarnConfig>(compress).factor == 16);
  CHECK(compress.frequencies(1).attention_factor == 1);
  for (const RotaryLayer* layer : {&main_layer, &compress}) {
    CHECK(layer->config.head_dim == 512);
    CHECK(layer->frequencies(1).rotary_dim() == 64);
    CHECK(layer->window.first(512, 64) == 448);
    CHECK(layer->pairing == Pairing::adjacent);
    CHECK(layer->inverse_on_output);
  }
}

TEST_CASE("gpt-oss does not round the ends of YaRN's ramp", "[hf_config]") {
  const ModelPositions model = model_of("openai--gpt-oss-20b.json");
  const StackPositions& stack = model.stacks[0];
  CHECK(stack.layers.size() == 24);
  CHECK(stack.layers[0].type == "sliding_attention");
  CHECK(stack.layers[1].type == "full_attention");
  const RotaryLayer& layer = rotary_of(stack);
  const YarnConfig& yarn = scaling_of<YarnConfig>(layer);
  CHECK(!yarn.truncate);
  CHECK(yarn.factor == 32);
  CHECK(yarn.original_max_position_embeddings == 4096);
  CHECK(layer.config.rope_theta == 150000);
  CHECK(layer.config.head_dim == 64);
  const RotaryFrequencies frequencies = layer.frequencies(1);
  CHECK(frequencies.inv_freq[9] == Approx(3.17056962e-2).epsilon(1e-8));
  CHECK(frequencies.inv_freq[16] == Approx(4.56483919e-4).epsilon(1e-8));
  CHECK(frequencies.inv_freq[31] == Approx(3.02351143e-7).epsilon(1e-8));
  CHECK(frequencies.attention_factor == Approx(1.3465735903).epsilon(1e-9));
}

TEST_CASE("Gemma 3 scales its global layers alone", "[hf_config]") {
  const ModelPositions model = model_of("gemma3.json");
  const StackPositions& stack = stack_of(model, "text_config");
  REQUIRE(stack.layers.size() == 62);
  for (std::size_t i = 0; i < 62; ++i) {
    const RotaryLayer& layer = rotary_of(stack, i);
    const bool global = (i + 1) % 6 == 0;
    CHECK(stack.layers[i].type == (global ? "full_attention" : "sliding_attention"));
    CHECK(layer.config.rope_theta == (global ? 1e6 : 1e4));
    CHECK(layer.config.head_dim == 128);
    CHECK(std::holds_alternative<LinearConfig>(layer.scaling) == global);
    CHECK(std::holds_alternative<DefaultScaling>(layer.scaling) == !global);
  }
  CHECK(scaling_of<LinearConfig>(rotary_of(stack, 5)).factor == 8);
  CHECK(warns(model, "text_config.rope_theta: not stated; 1000000, the default of gemma3_text"));
  CHECK(warns(model, "text_config.rope_local_base_freq: not stated; 10000"));
  const LearnedEmbedding& patches = embedding_of<LearnedEmbedding>(stack_of(model, "vision_config"));
  CHECK(patches.max_len == 64 * 64);
  CHECK(patches.class_rows == 0);

  const ModelPositions small = model_of("gemma3_text.json");
  CHECK(small.warnings.empty());
  CHECK(rotary_of(small.stacks[0], 0).config.rope_theta == 10000);
  CHECK(rotary_of(small.stacks[0], 5).config.rope_theta == 1000000);
}

TEST_CASE("Gemma 4: proportional and wide where global, rows and columns in the tower", "[hf_config]") {
  const ModelPositions model = model_of("google--gemma-4-26B-A4B.json");
  const StackPositions& text = stack_of(model, "text_config");
  REQUIRE(text.layers.size() == 30);
  const RotaryLayer &local = rotary_of(text, 0), &global = rotary_of(text, 5);
  CHECK(local.config.head_dim == 256);
  CHECK(local.config.rope_theta == 10000);
  CHECK(global.config.head_dim == 512);
  CHECK(global.config.rope_theta == 1000000);
  CHECK(global.config.partial_rotary_factor == 1);
  CHECK(scaling_of<ProportionalConfig>(global).partial_rotary_factor == 0.25);
  const auto inv_freq = global.frequencies(1).inv_freq;
  REQUIRE(inv_freq.size() == 256);
  CHECK(inv_freq[63] > 0);
  CHECK(inv_freq[64] == 0);
  const StackPositions& tower = stack_of(model, "vision_config");
  const RotaryLayer& vision = rotary_of(tower);
  CHECK(vision.config.rope_theta == 100);
  CHECK(vision.axes == AxisLayout::axial);
  CHECK(vision.axes_apart);
  CHECK(vision.column_first);
  CHECK(embedding_of<LearnedEmbedding>(tower).max_len == 10240);
  CHECK(model.stacks.size() == 2);
  CHECK(stack_of(model_of("Gemma4.json"), "audio_config").other_scheme.has_value());
}

TEST_CASE("Llama 4: every fourth layer has a temperature in place of a rotation", "[hf_config]") {
  const ModelPositions model = model_of("meta-llama--Llama-4-Scout-17B-16E-Instruct.json");
  const StackPositions& text = stack_of(model, "text_config");
  REQUIRE(text.layers.size() == 48);
  CHECK(count_turning(text) == 36);
  for (std::size_t i = 0; i < 48; ++i) {
    CHECK(std::holds_alternative<NoPositionLayer>(text.layers[i].scheme) == ((i + 1) % 4 == 0));
    CHECK(text.layers[i].temperature.has_value() == ((i + 1) % 4 == 0));
  }
  CHECK(text.layers[3].temperature->rule == TemperatureRule::llama4);
  CHECK(text.layers[3].temperature->scale == 0.1);
  CHECK(text.layers[3].temperature->length == 8192);
  const RotaryLayer& layer = rotary_of(text);
  CHECK(layer.pairing == Pairing::adjacent);
  const Llama3Config& bands = scaling_of<Llama3Config>(layer);
  CHECK(bands.factor == 16);
  CHECK(bands.low_freq_factor == 1);
  CHECK(bands.high_freq_factor == Approx(1).epsilon(1e-15));
  // A step, with nothing between: wavelengths up to 8192 stay, longer ones are divided.
  const auto scaled = layer.frequencies(1).inv_freq, plain = rotary_frequencies(layer.config).inv_freq;
  for (std::size_t i = 0; i < plain.size(); ++i)
    CHECK(scaled[i] ==
          Approx(2 * 3.14159265358979 / plain[i] > 8192 ? plain[i] / 16 : plain[i]).epsilon(1e-12));

  const RotaryLayer vision = rotary_of(stack_of(model_of("llama4.json"), "vision_config"));
  CHECK(vision.config.head_dim == 88);
  CHECK(vision.pairing == Pairing::adjacent);
  CHECK(vision.column_first);
  CHECK(vision.first_position == 1);
}

TEST_CASE("Mllama's cross-attention layers don't turn", "[hf_config]") {
  const ModelPositions model = model_of("llama3_2_11b_vision.json");
  const StackPositions& text = stack_of(model, "text_config");
  REQUIRE(text.layers.size() == 40);
  CHECK(count_turning(text) == 32);
  for (const std::size_t i : {3u, 8u, 13u, 18u, 23u, 28u, 33u, 38u})
    CHECK(text.layers[i].type == "cross_attention");
  CHECK(scaling_of<Llama3Config>(rotary_of(text)).factor == 8);
  const LearnedEmbedding& patches = embedding_of<LearnedEmbedding>(stack_of(model, "vision_config"));
  CHECK(patches.max_len == 1601);
  CHECK(patches.class_rows == 1);
  CHECK(embedding_of<LearnedEmbedding>(stack_of(model, "vision_config.tiles")).max_len == 9);
}

TEST_CASE("towers known by name, and a T5 that is none", "[hf_config]") {
  const ModelPositions janus = model_of("janus_1.3b.json"), deepseek = model_of("deepseek_vl2_tiny.json");
  CHECK(embedding_of<LearnedEmbedding>(stack_of(janus, "vision_config")).max_len == 24 * 24);
  CHECK(embedding_of<LearnedEmbedding>(stack_of(deepseek, "vision_config")).max_len == 27 * 27);
  CHECK(stack_of(deepseek, "vision_config").layers.size() == 27);
  CHECK(rotary_of(stack_of(deepseek, "language_config")).config.head_dim == 128);
  const ModelPositions chronos = model_of("dummy-chronos2-model.json");
  CHECK(rotary_of(chronos.stacks[0]).config.head_dim == 4);
  CHECK(warns(chronos, "attention over series"));
}

TEST_CASE("M-RoPE", "[hf_config]") {
  const ModelPositions qwen2 = model_of("qwen2_vl_7b.json");
  const RotaryLayer& sections = rotary_of(stack_of(qwen2, "model"));
  CHECK(sections.axes == AxisLayout::sections);
  CHECK(sections.sections == std::vector<Index>{16, 24, 24});
  CHECK(sections.config.rope_theta == 1000000);
  CHECK(sections.pairing == Pairing::half);
  const RotaryLayer& tower = rotary_of(stack_of(qwen2, "vision_config"));
  CHECK(tower.config.head_dim == 80);
  CHECK(tower.axes == AxisLayout::axial);
  CHECK(stack_of(qwen2, "vision_config").layers.size() == 32);

  const ModelPositions qwen3 = model_of("Qwen3_VL.json");
  const RotaryLayer& interleaved = rotary_of(stack_of(qwen3, "text_config"));
  CHECK(interleaved.axes == AxisLayout::interleaved);
  CHECK(interleaved.sections == std::vector<Index>{24, 20, 20});
  CHECK(interleaved.config.rope_theta == 5000000);
  const std::vector<int> axis = interleaved.frequencies(1).axis;
  CHECK(std::vector<int>(axis.begin(), axis.begin() + 6) == std::vector<int>{0, 1, 2, 0, 1, 2});
  CHECK(std::vector<int>(axis.end() - 4, axis.end()) == std::vector<int>{0, 0, 0, 0});
  CHECK(embedding_of<LearnedEmbedding>(stack_of(qwen3, "vision_config")).max_len == 2304);

  // A file from before the sections were written down.
  const ModelPositions silent = model_of("Qwen--Qwen3-VL-2B-Instruct.json");
  CHECK(rotary_of(stack_of(silent, "text_config")).sections == std::vector<Index>{24, 20, 20});
  CHECK(warns(silent, "text_config.mrope_section: not stated; 24, 20, 20"));

  const ModelPositions glm = model_of("GLM4V.json");
  CHECK(rotary_of(stack_of(glm, "model")).sections == std::vector<Index>{8, 12, 12});
  CHECK(rotary_of(stack_of(glm, "model")).pairing == Pairing::adjacent);
  CHECK(rotary_of(stack_of(glm, "model")).frequencies(1).rotary_dim() == 64);
}

TEST_CASE("Qwen3.5: linear layers have no positions", "[hf_config]") {
  const ModelPositions model = model_of("Qwen3_5.json");
  const StackPositions& text = stack_of(model, "text_config");
  REQUIRE(text.layers.size() == 24);
  CHECK(count_turning(text) == 6);
  const RotaryLayer& layer = rotary_of(text, 3);
  CHECK(layer.config.head_dim == 256);
  CHECK(layer.config.partial_rotary_factor == 0.25);
  CHECK(layer.sections == std::vector<Index>{11, 11, 10});
  CHECK(layer.axes == AxisLayout::interleaved);
  CHECK(layer.config.rope_theta == 10000000);
}

TEST_CASE("MiMo V2: a base per kind of layer, and a width that is cut off", "[hf_config]") {
  const ModelPositions model = model_of("XiaomiMiMo--MiMo-V2-Flash.json");
  const StackPositions& stack = model.stacks[0];
  CHECK(stack.layers[0].type == "full_attention");
  CHECK(stack.layers[1].type == "sliding_attention");
  CHECK(rotary_of(stack, 0).config.rope_theta == 5000000);
  CHECK(rotary_of(stack, 1).config.rope_theta == 10000);
  CHECK(rotary_of(stack, 0).frequencies(1).rotary_dim() == 64);  // int(192 * 0.334)
}

TEST_CASE("Phi-3: longrope, also as su", "[hf_config]") {
  const ModelPositions phi3 = model_of("phi3.json");
  const RotaryLayer& layer = rotary_of(phi3.stacks[0]);
  const LongRopeConfig& lists = scaling_of<LongRopeConfig>(layer);
  CHECK(layer.config.head_dim == 96);
  REQUIRE(lists.short_factor.size() == 48);
  CHECK(lists.short_factor[47] == 3.049999999999997);
  CHECK(lists.long_factor[47] == 64.76000213623047);
  CHECK(lists.original_max_position_embeddings == 4096);
  CHECK(lists.factor == 32);
  CHECK(layer.frequencies(4096).attention_factor == Approx(1.1902380714).epsilon(1e-9));
  CHECK(layer.frequencies(4096).inv_freq[0] == Approx(1 / 1.1));
  CHECK(layer.frequencies(4097).inv_freq[0] == Approx(1 / 1.0700000524520874));
  CHECK(std::holds_alternative<LongRopeConfig>(rotary_of(model_of("phi3_v.json").stacks[0]).scaling));
  CHECK(std::holds_alternative<LongRopeConfig>(
      rotary_of(stack_of(model_of("InternVL2-4B.json"), "llm_config")).scaling));

  const RotaryLayer phi4 = rotary_of(stack_of(model_of("phi4.json"), "model"));
  CHECK(phi4.config.partial_rotary_factor == 0.75);
  CHECK(phi4.frequencies(1).rotary_dim() == 96);

  const RotaryLayer moe = rotary_of(model_of("phimoe.json").stacks[0]);
  CHECK(scaling_of<LongRopeConfig>(moe).short_mscale == 1.243163121016122);
  CHECK(moe.frequencies(100000).attention_factor == 1.243163121016122);

  // MiniCPM 3 has both longrope and decoupled heads.
  const RotaryLayer minicpm = rotary_of(model_of("minicpm3_4b.json").stacks[0]);
  CHECK(minicpm.config.head_dim == 96);
  CHECK(minicpm.config.rotary_dim == 32);
  CHECK(minicpm.pairing == Pairing::half);
  CHECK(scaling_of<LongRopeConfig>(minicpm).long_factor.size() == 16);
}

TEST_CASE("partial widths", "[hf_config]") {
  struct Case {
    const char* file;
    Index head_dim, rotary_dim;
    Pairing pairing;
    double theta;
  };
  for (const Case& c : {Case{"gptneox.json", 128, 32, Pairing::half, 10000},
                        Case{"stablelm.json", 128, 32, Pairing::half, 10000},
                        Case{"phi-2.json", 80, 32, Pairing::half, 10000},
                        Case{"gptj.json", 256, 64, Pairing::adjacent, 10000},
                        Case{"codegen.json", 128, 64, Pairing::adjacent, 10000},
                        Case{"rtpllm-glm45-tokenizer.json", 128, 64, Pairing::half, 1000000},
                        Case{"MiniMaxAI--MiniMax-M2.5.json", 128, 64, Pairing::half, 5000000},
                        Case{"chatglm3-6b-32k.json", 128, 64, Pairing::adjacent, 500000},
                        Case{"glm-4-9b-chat.json", 128, 64, Pairing::adjacent, 5000000},
                        Case{"rtpllm-cohere-tokenizer.json", 128, 128, Pairing::adjacent, 8000000},
                        Case{"dbrx_pretrain-configs-16x13b_config.json", 128, 128, Pairing::half, 500000},
                        Case{"phi3small.json", 128, 128, Pairing::half, 1000000},
                        Case{"Qwen-72B-Chat.json", 128, 128, Pairing::half, 1000000},
                        Case{"esm2_t12_35M_UR50D.json", 24, 24, Pairing::half, 10000},
                        Case{"tp32-models-qwen3moe-config.json", 128, 128, Pairing::half, 1000000}}) {
    INFO(c.file);
    const ModelPositions model = model_of(c.file);
    const RotaryLayer& layer = rotary_of(model.stacks[0]);
    CHECK(layer.config.head_dim == c.head_dim);
    CHECK(layer.frequencies(1).rotary_dim() == c.rotary_dim);
    CHECK(layer.pairing == c.pairing);
    CHECK(layer.config.rope_theta == c.theta);
  }
}

TEST_CASE("what Qwen 1 does beyond its trained length is warned about", "[hf_config]") {
  const ModelPositions model = model_of("Qwen-7B-Chat.json");
  CHECK(warns(model, "use_dynamic_ntk: true: beyond seq_length = 512"));
  CHECK(warns(model, "use_logn_attn: true: beyond seq_length = 512"));
  CHECK(model_of("Qwen-72B-Chat.json").warnings.empty());
}

TEST_CASE("Hunyuan's alpha and InternLM2's dynamic NTK", "[hf_config]") {
  const ModelPositions hunyuan = model_of("angelslim-hunyuan-1.8b-eagle3.json");
  CHECK(scaling_of<NtkAlphaConfig>(rotary_of(hunyuan.stacks[0])).alpha == 1000);
  CHECK(warns(hunyuan, "rope_scaling.beta_fast: has no effect with rope_type dynamic"));
  const ModelPositions internlm2 = model_of("InternVL2-2B.json");
  const auto& ntk = scaling_of<DynamicNtkConfig>(rotary_of(stack_of(internlm2, "llm_config")));
  CHECK(ntk.factor == 2);
  CHECK(ntk.max_position_embeddings == 512);
  const LearnedEmbedding& tower = embedding_of<LearnedEmbedding>(stack_of(internlm2, "vision_config"));
  CHECK(tower.max_len == 32 * 32 + 1);
  CHECK(tower.class_rows == 1);
}

TEST_CASE("models without positions, and with them in some layers", "[hf_config]") {
  const ModelPositions nemotron = model_of("nvidia--NVIDIA-Nemotron-3-Nano-30B-A3B-BF16.json");
  CHECK(nemotron.stacks[0].layers.size() == 52);
  CHECK(count_turning(nemotron.stacks[0]) == 0);
  CHECK(warns(nemotron, "rope_theta: has no effect"));
  // Python wrote Infinity into this one.
  CHECK(count_turning(model_of("nvidia--Nemotron-H-56B-Base-8K.json").stacks[0]) == 0);
  const ModelPositions kimi = model_of("moonshotai--Kimi-K3.json");
  CHECK(count_turning(stack_of(kimi, "text_config")) == 0);
  CHECK(stack_of(kimi, "text_config").layers[3].type == "full_attention");
  CHECK(warns(kimi, "text_config.mla_use_nope: true"));
  const ModelPositions nas = model_of("nvidia--Llama-3_3-Nemotron-Super-49B-v1.json");
  CHECK(nas.stacks[0].layers.size() == 80);
  CHECK(count_turning(nas.stacks[0]) == 49);
}

TEST_CASE("Kimi's and LocateAnything's tower", "[hf_config]") {
  const ModelPositions kimi = model_of("moonshotai--Kimi-K2.5.json");
  const RotaryLayer& tower = rotary_of(stack_of(kimi, "vision_config"));
  CHECK(tower.axes == AxisLayout::axial_interleaved);
  CHECK(tower.config.head_dim == 72);
  CHECK(tower.column_first);
  CHECK(embedding_of<LearnedEmbedding>(stack_of(kimi, "vision_config")).max_len == 4096);
  CHECK(embedding_of<SinusoidalConfig>(stack_of(kimi, "vision_config.time")).layout ==
        SinusoidLayout::halves);
  CHECK(rotary_of(stack_of(model_of("LocateAnything.json"), "vision_config")).pairing == Pairing::adjacent);
  const RotaryLayer pixtral =
      rotary_of(stack_of(model_of("tp64-models-pixtral-config_4layer.json"), "vision_config"));
  CHECK(pixtral.axes == AxisLayout::pixtral);
  CHECK(pixtral.config.head_dim == 88);
}

TEST_CASE("ALiBi", "[hf_config]") {
  const ModelPositions mpt = model_of("mosaicml_mpt-7b.json");
  CHECK(mpt.stacks[0].layers.size() == 32);
  CHECK(scheme_of<AlibiConfig>(mpt.stacks[0]).num_heads == 32);
  CHECK(scheme_of<AlibiConfig>(mpt.stacks[0]).alibi_bias_max == 8);
  CHECK(std::holds_alternative<std::monostate>(mpt.stacks[0].embedding));
  CHECK(warns(mpt, "learned_pos_emb: true has no effect beside alibi"));
  const ModelPositions bloom = model_of("bloom.json");
  CHECK(scheme_of<AlibiConfig>(bloom.stacks[0]).num_heads == 16);
  CHECK(scheme_of<AlibiConfig>(bloom.stacks[0]).form == AlibiForm::key_position);
  const ModelPositions jina = model_of("jina-embeddings-v2-base-en.json");
  CHECK(scheme_of<AlibiConfig>(jina.stacks[0]).num_heads == 12);
  CHECK(scheme_of<AlibiConfig>(jina.stacks[0]).form == AlibiForm::symmetric);
  // Falcon says no, and Baichuan says it by what it leaves out.
  CHECK(rotary_of(model_of("tiiuae_falcon-40b.json").stacks[0]).config.head_dim == 64);
  CHECK(rotary_of(model_of("Baichuan2-7B.json").stacks[0]).config.head_dim == 128);
  CHECK(std::holds_alternative<AlibiConfig>(model_of("baichuan.json").stacks[0].layers[0].scheme));
}

TEST_CASE("tables", "[hf_config]") {
  const LearnedEmbedding gpt2 = embedding_of<LearnedEmbedding>(model_of("gpt2.json").stacks[0]);
  CHECK(gpt2.max_len == 1024);
  CHECK(gpt2.rule == LearnedEmbedding::Rule::consecutive);
  const ModelPositions bart = model_of("bart-config_hf.json");
  for (const char* side : {"encoder", "decoder"}) {
    const LearnedEmbedding& table = embedding_of<LearnedEmbedding>(stack_of(bart, side));
    CHECK(table.max_len == 1026);
    CHECK(table.offset == 2);
    CHECK(table.rule == LearnedEmbedding::Rule::offset);
    CHECK(stack_of(bart, side).layers.size() == 12);
  }
  const LearnedEmbedding opt = embedding_of<LearnedEmbedding>(model_of("opt.json").stacks[0]);
  CHECK(opt.max_len == 2050);
  CHECK(opt.offset == 2);
  CHECK(opt.rule == LearnedEmbedding::Rule::opt);
  const LearnedEmbedding roberta = embedding_of<LearnedEmbedding>(model_of("roberta-large.json").stacks[0]);
  CHECK(roberta.max_len == 514);
  CHECK(roberta.rule == LearnedEmbedding::Rule::roberta);
  CHECK(roberta.padding_idx == 1);
  const LearnedEmbedding vit =
      embedding_of<LearnedEmbedding>(model_of("vit-base-patch16-224.json").stacks[0]);
  CHECK(vit.max_len == 197);
  CHECK(vit.rule == LearnedEmbedding::Rule::grid);
  const ModelPositions clip = model_of("clip-vit-large-patch14.json");
  CHECK(embedding_of<LearnedEmbedding>(stack_of(clip, "text_config")).max_len == 77);
  CHECK(embedding_of<LearnedEmbedding>(stack_of(clip, "vision_config")).max_len == 257);
}

TEST_CASE("sinusoids", "[hf_config]") {
  const SinusoidalConfig marian =
      embedding_of<SinusoidalConfig>(stack_of(model_of("opus-mt-en-zh.json"), "encoder"));
  CHECK(marian.d_model == 512);
  CHECK(marian.exponent == SinusoidExponent::two_i_over_d);
  CHECK(marian.layout == SinusoidLayout::halves);
  CHECK(!marian.padding_idx);
  const SinusoidalConfig nllb =
      embedding_of<SinusoidalConfig>(stack_of(model_of("nllb-200-distilled-600M.json"), "decoder"));
  CHECK(nllb.d_model == 1024);
  CHECK(nllb.exponent == SinusoidExponent::i_over_half_minus_one);
  CHECK(nllb.padding_idx == 1);
  const ModelPositions whisper = model_of("whisper.json");
  const SinusoidalConfig frames = embedding_of<SinusoidalConfig>(stack_of(whisper, "encoder"));
  CHECK(frames.d_model == 1280);
  CHECK(frames.exponent == SinusoidExponent::i_over_half_minus_one);
  CHECK(frames.layout == SinusoidLayout::halves);
  CHECK(embedding_of<LearnedEmbedding>(stack_of(whisper, "decoder")).max_len == 448);
  const ModelPositions florence = model_of("Florence_2_large.json");
  CHECK(embedding_of<LearnedEmbedding>(stack_of(florence, "vision_config.image_pos_embed.row")).max_len ==
        50);
  const SinusoidalConfig time =
      embedding_of<SinusoidalConfig>(stack_of(florence, "vision_config.visual_temporal_embedding"));
  CHECK(time.d_model == 2048);
  CHECK(time.exponent == SinusoidExponent::i_over_half);
  CHECK(embedding_of<LearnedEmbedding>(stack_of(florence, "text_config.encoder")).max_len == 1026);
}

TEST_CASE("T5's buckets", "[hf_config]") {
  const ModelPositions model = model_of("t5-small.json");
  const auto& encoder = scheme_of<RelativeBucketsLayer>(stack_of(model, "encoder"));
  CHECK(encoder.num_heads == 8);
  CHECK(encoder.num_buckets == 32);
  CHECK(encoder.max_distance == 128);
  CHECK(encoder.bidirectional);
  CHECK(!scheme_of<RelativeBucketsLayer>(stack_of(model, "decoder"), 5).bidirectional);
  CHECK(warns(model_of("t5.json"), "relative_attention_max_distance: not stated; 128"));
}

TEST_CASE("Qwen2.5-Omni: five models in one file", "[hf_config]") {
  const ModelPositions model = model_of("Qwen2_5_Omni.json");
  CHECK(rotary_of(stack_of(model, "thinker_config.text_config")).sections == std::vector<Index>{16, 24, 24});
  CHECK(rotary_of(stack_of(model, "talker_config")).config.head_dim == 128);
  CHECK(rotary_of(stack_of(model, "thinker_config.vision_config")).config.head_dim == 80);
  CHECK(embedding_of<SinusoidalConfig>(stack_of(model, "thinker_config.audio_config")).d_model == 1280);
  CHECK(stack_of(model, "token2wav_config").other_scheme.has_value());
}
