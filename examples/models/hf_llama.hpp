#pragma once
// The weights of a Llama as Hugging Face saves them: model.safetensors and, beside it, config.json, which
// posenc's reader asks how the model encodes position (base, scaling). Pairs of the rotation are half-split:
// the rows of q_proj and k_proj were permuted for that when the file was made.

#include <cstdint>
#include <exception>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "models/byte_reader.hpp"
#include "models/error.hpp"
#include "models/llama.hpp"
#include "models/mapped_file.hpp"
#include "models/safetensors.hpp"
#include "posenc/io/hf_config.hpp"

namespace models {

/// The configuration of a LlamaForCausalLM. Throws an InputError that starts with `path`.
inline LlamaWeights read_llama_config(std::string_view text, const std::string& path) {
  using transformer::Index;
  const auto fail = [&](const std::string& what) {
    throw InputError(path + ": not the configuration of a Llama: " + printable(what));
  };
  LlamaWeights out;
  posenc::ModelPositions positions;
  try {
    positions = posenc::model_positions_from_hf_text(text);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);  // it is JSON: it was just read
  const auto has = [&](const char* key) { return json.contains(key) && !json[key].is_null(); };
  const auto integer = [&](const char* key, Index most) {
    if (!has(key)) fail("it lacks " + std::string(key));
    if (!json[key].is_number_integer() || json[key] < 1 || json[key] > most)
      fail(std::string(key) + ": expected 1 to " + std::to_string(most) + ", got " + json[key].dump());
    return json[key].get<Index>();
  };
  const auto flag = [&](const char* key) {
    if (!has(key)) return false;
    if (!json[key].is_boolean()) fail(std::string(key) + ": expected true or false, got " + json[key].dump());
    return json[key].get<bool>();
  };
  if (!has("model_type") || json["model_type"] != "llama") fail("expected model_type \"llama\"");
  if (has("hidden_act") && json["hidden_act"] != "silu")
    fail("hidden_act: expected silu, got " + json["hidden_act"].dump());
  for (const char* bias : {"attention_bias", "mlp_bias"})
    if (flag(bias)) fail(std::string(bias) + ": biases are not supported");
  auto& config = out.config;
  config.vocab_size = integer("vocab_size", 1 << 20);
  config.d_model = integer("hidden_size", 1 << 16);
  config.d_ff = integer("intermediate_size", 1 << 18);
  config.num_layers = integer("num_hidden_layers", 1 << 10);
  config.num_heads = integer("num_attention_heads", 1 << 12);
  config.num_kv_heads =
      has("num_key_value_heads") ? integer("num_key_value_heads", 1 << 12) : config.num_heads;
  if (config.d_model % config.num_heads != 0 || config.d_model / config.num_heads % 2 != 0 ||
      config.num_heads % config.num_kv_heads != 0)
    fail("hidden_size " + std::to_string(config.d_model) + ", " + std::to_string(config.num_heads) +
         " heads and " + std::to_string(config.num_kv_heads) + " heads of keys don't go together");
  if (has("head_dim") && integer("head_dim", 1 << 16) != config.d_model / config.num_heads)
    fail("head_dim: expected hidden_size / num_attention_heads, got " + json["head_dim"].dump());
  out.context = integer("max_position_embeddings", 1 << 24);
  config.norm_eps = 1e-6;
  if (has("rms_norm_eps")) {
    if (!json["rms_norm_eps"].is_number() || json["rms_norm_eps"] < 0.0 || json["rms_norm_eps"] > 1.0)
      fail("rms_norm_eps: expected a number from 0 to 1, got " + json["rms_norm_eps"].dump());
    config.norm_eps = json["rms_norm_eps"].get<double>();
  }
  config.output = {.tied = flag("tie_word_embeddings"), .bias = false};

  config.pairing = posenc::Pairing::half;
  const posenc::RotaryLayer* rotary = nullptr;
  if (positions.stacks.size() == 1)
    for (const auto& layer : positions.stacks[0].layers) {
      rotary = std::get_if<posenc::RotaryLayer>(&layer.scheme);
      if (rotary == nullptr) break;
    }
  if (rotary == nullptr) fail("expected rotary positions in every layer");
  if (rotary->axes != posenc::AxisLayout::one || rotary->softmax_scale != 1.0)
    fail("a position scheme that is no Llama's");
  try {
    config.rotary_frequencies = rotary->frequencies(out.context);
  } catch (const std::exception& error) {
    fail(error.what());
  }
  return out;
}

/// Finds the weights in the bytes of a safetensors file, which must outlive the result. `config` is the
/// result of read_llama_config(). Throws an InputError that starts with `path`.
inline LlamaWeights read_hf_llama(Bytes bytes, const std::string& path, LlamaWeights config) {
  LlamaWeights out = std::move(config);
  out.path = path;
  const auto fail = [&](const std::string& what) { throw InputError(path + ": " + printable(what)); };
  std::map<std::string, StoredTensor> tensors;
  for (StoredTensor& tensor : index_safetensors(bytes, path).tensors) {
    std::string name = tensor.name;
    tensors.emplace(std::move(name), std::move(tensor));
  }
  const auto take = [&](const std::string& name, std::vector<std::int64_t> shape) {
    const auto found = tensors.find(name);
    if (found == tensors.end()) fail("it lacks tensor \"" + name + "\"");
    const StoredTensor tensor = std::move(found->second);
    tensors.erase(found);
    if (tensor.shape != shape)
      fail("tensor \"" + name + "\": expected shape " + shape_text(shape) + ", got " +
           shape_text(tensor.shape));
    return LlamaTensor{"tensor \"" + name + "\"", tensor.type, tensor.bytes};
  };
  const std::int64_t d = out.config.d_model, hidden = out.config.d_ff, vocab = out.config.vocab_size,
                     kv = out.config.num_kv_heads * (d / out.config.num_heads);
  out.embedding = take("model.embed_tokens.weight", {vocab, d});
  for (transformer::Index l = 0; l < out.config.num_layers; ++l) {
    const std::string name = "model.layers." + std::to_string(l) + ".";
    LlamaLayer& layer = out.layers.emplace_back();
    layer.attention_norm = take(name + "input_layernorm.weight", {d});
    layer.q = take(name + "self_attn.q_proj.weight", {d, d});
    layer.k = take(name + "self_attn.k_proj.weight", {kv, d});
    layer.v = take(name + "self_attn.v_proj.weight", {kv, d});
    layer.o = take(name + "self_attn.o_proj.weight", {d, d});
    layer.feed_forward_norm = take(name + "post_attention_layernorm.weight", {d});
    layer.gate = take(name + "mlp.gate_proj.weight", {hidden, d});
    layer.up = take(name + "mlp.up_proj.weight", {hidden, d});
    layer.down = take(name + "mlp.down_proj.weight", {d, hidden});
    tensors.erase(name + "self_attn.rotary_emb.inv_freq");  // old files store what config.json says
  }
  out.norm = take("model.norm.weight", {d});
  if (out.config.output.tied)
    tensors.erase("lm_head.weight");  // some files hold the table twice
  else
    out.output = take("lm_head.weight", {vocab, d});
  if (!tensors.empty()) fail("tensor \"" + tensors.begin()->first + "\" has no place in this model");
  return out;
}

/// The config.json that belongs to a file of weights: in the same folder.
inline std::string config_beside(const std::string& path) {
  return (std::filesystem::path(path).parent_path() / "config.json").string();
}

}  // namespace models
