#pragma once
// What every part of the reader of config.json shares: sizes under their many names, what comes out, and the
// keys that nobody asked for.

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/io/hf_families.hpp"
#include "posenc/io/hf_json.hpp"
#include "posenc/io/model_positions.hpp"

namespace posenc {
inline namespace v0 {

inline constexpr Index largest_config_layers = 1024;            ///< of all stacks of a model together
inline constexpr int largest_config_parts = 6;                  ///< models in one another
inline constexpr Index largest_config_head_dim = 4096;          ///< of one attention head
inline constexpr Index largest_config_width = Index{1} << 24;   ///< hidden sizes, numbers of heads
inline constexpr Index largest_config_length = Index{1} << 40;  ///< context lengths and tables

namespace detail {

/// Sizes that transformers fills in where a config.json does not state them. None: it has to.
struct HfSizes {
  std::string_view name;
  std::optional<Index> layers, hidden, heads, head_dim;
};
inline constexpr HfSizes hf_sizes[] = {
    {"llama", 32, 4096, 32, {}},       {"qwen2", 32, 4096, 32, {}},
    {"gemma", 28, 3072, 16, 256},      {"gemma2", 26, 2304, 8, 256},
    {"gemma3_text", 26, 2304, 8, 256}, {"qwen3", 32, 4096, 32, 128},
    {"qwen3_vl", {}, {}, {}, 128},     {"qwen3_vl_text", {}, {}, {}, 128},
    {"gpt_oss", 36, 2880, 64, 64},     {"qwen3_next", {}, {}, {}, 256},
    {"qwen3_5", {}, {}, {}, 256},      {"qwen3_5_text", {}, {}, {}, 256},
    {"qwen3_5_moe", {}, {}, {}, 256},  {"qwen3_5_moe_text", {}, {}, {}, 256},
    {"helium", {}, {}, {}, 128},       {"seed_oss", {}, {}, {}, 128},
    {"glm4_moe", {}, {}, {}, 128},     {"qwen2_vl_vision", 32, 1280, 16, {}}};

/// A key whose name says that it is about positions.
inline bool looks_positional(std::string_view key) {
  std::string name = hf_family_name(key);
  for (const std::string_view innocent : {"prope", "composition"})  // "property", "decomposition"
    for (std::size_t at; (at = name.find(innocent)) != std::string::npos;) name.erase(at, innocent.size());
  for (const std::string_view word :
       {"rope",    "rotary",       "alibi",        "position",     "pos_emb",     "pos_enc",
        "pos_att", "relative_att", "relative_pos", "relative_max", "rel_pos",     "rel_attn",
        "sinus",   "theta",        "mscale",       "nope",         "xpos",        "yarn",
        "ntk",     "inv_freq",     "use_logn",     "rpe_",         "seq_len_scal"})
    if (name.find(word) != std::string::npos) return true;
  return false;
}

/// Keys about positions that change nothing that ModelPositions describes: how positions are counted, trained
/// or resized, and widths that belong to others.
inline bool is_beside_the_point(std::string_view key) {
  return is_one_of(key, {"position_id_per_seconds", "use_position_ids", "reset_position_ids",
                         "qk_nope_head_dim", "pos_emb_interpolation_mode", "indexer_rope_interleave",
                         "max_position_embeddings", "num_image_with_embedding", "position_ids",
                         "pos_embed_jitter", "pos_embed_shift", "pos_embed_rescale", "fuse_rope"});
}

/// Parts that hold no attention.
inline bool is_no_stack(std::string_view key) {
  return is_one_of(
      key, {"quantization_config", "compression_config", "task_specific_params", "id2label", "label2id",
            "auto_map", "generation_config", "text_config_dict", "vision_config_dict"});
}

/// Base of the readers of single schemes.
class HfReaderBase {
 protected:
  using Scheme = decltype(LayerPositions::scheme);

  explicit HfReaderBase(ModelPositions& out) : out_(out) {}

  /// Keys that nothing has asked for.
  void leftovers(HfSection& s, const std::string& name, bool wrapper) {
    for (const auto& [key, value] : s.object().items()) {
      if (value.is_null() || s.is_understood(key) || is_no_stack(key) || is_beside_the_point(key)) continue;
      if (looks_positional(key)) {
        if (wrapper)
          s.warn(key, "has no effect: the model's parts have their own");
        else
          s.refuse(key, "expected a key that posenc understands",
                   name.empty() ? std::string() : " for model_type " + name, ", got ", shown(value));
      } else if (value.is_structured())
        nested(s.where(key), value, 0);
    }
  }
  void nested(const std::string& path, const HfJson& value, int depth) {
    if (depth > largest_config_depth)
      invalid(path, ": expected at most ", largest_config_depth, " levels, got more");
    if (value.is_array())
      for (const HfJson& item : value)
        if (item.is_structured()) nested(path, item, depth + 1);
    if (!value.is_object()) return;
    for (const auto& [key, item] : value.items()) {
      if (looks_positional(key) && !item.is_null())
        invalid(path, ".", key, ": expected no key about positions here, got ", shown(item));
      if (item.is_structured()) nested(path + "." + key, item, depth + 1);
    }
  }

  // -- sizes
  // -------------------------------------------------------------------------------------------------------

  static const HfSizes* sizes_of(std::string_view name) {
    for (const HfSizes& sizes : hf_sizes)
      if (sizes.name == name) return &sizes;
    return nullptr;
  }
  Index size_or_default(HfSection& s, std::string_view key, std::optional<Index> stated,
                        std::optional<Index> fallback, std::string_view name) {
    if (stated) return *stated;
    if (!fallback) s.refuse(key, "expected an integer, got nothing");
    s.warn(key, "not stated; ", *fallback, ", the default of ", std::string(name));
    return *fallback;
  }

  std::optional<Index> layer_count_or_none(HfSection& s) {
    return s.integer_of_any({"num_hidden_layers", "n_layer", "n_layers", "num_layers", "depth", "layers",
                             "vt_num_hidden_layers", "encoder_layers"},
                            1, largest_config_layers);
  }
  Index layer_count(HfSection& s, std::string_view name) {
    const HfSizes* sizes = sizes_of(name);
    return size_or_default(s, "num_hidden_layers", layer_count_or_none(s),
                           sizes ? sizes->layers : std::nullopt, name);
  }
  Index count(HfSection& s, std::string_view key) {
    const std::optional<Index> value = s.integer(key, 1, largest_config_layers);
    if (!value) s.refuse(key, "expected an integer, got nothing");
    return *value;
  }

  Index hidden_size(HfSection& s, std::string_view name) {
    const HfSizes* sizes = sizes_of(name);
    if (name == "qwen2_vl_vision")  // hidden_size is the text model's there
      return size_or_default(s, "embed_dim", s.integer("embed_dim", 1, largest_config_width), sizes->hidden,
                             name);
    return size_or_default(s, "hidden_size",
                           s.integer_of_any({"vt_hidden_size", "hidden_size", "n_embd", "n_embed", "d_model",
                                             "dim", "width", "emb_dim", "embed_dim", "encoder_hidden_size"},
                                            1, largest_config_width),
                           sizes ? sizes->hidden : std::nullopt, name);
  }
  Index head_count(HfSection& s, std::string_view name) {
    const HfSizes* sizes = sizes_of(name);
    return size_or_default(
        s, "num_attention_heads",
        s.integer_of_any({"vt_num_attention_heads", "num_attention_heads", "n_head", "n_heads", "num_heads",
                          "attention_heads", "heads", "encoder_attention_heads"},
                         1, largest_config_width),
        sizes ? sizes->heads : std::nullopt, name);
  }
  Index head_dim(HfSection& s, std::string_view name) {
    if (const auto stated =
            s.integer_of_any({"head_dim", "attention_head_dim", "kv_channels"}, 1, largest_config_head_dim))
      return *stated;
    if (const HfSizes* sizes = sizes_of(name); sizes != nullptr && sizes->head_dim) {
      s.warn("head_dim", "not stated; ", *sizes->head_dim, ", the default of ", std::string(name));
      return *sizes->head_dim;
    }
    const auto attention = s.integer("qkv_hidden_size", 1, largest_config_width);  // Kimi K3's tower
    const Index hidden = attention ? *attention : hidden_size(s, name), heads = head_count(s, name);
    if (hidden % heads != 0 || hidden / heads > largest_config_head_dim)
      s.refuse("num_attention_heads", "expected a divisor of hidden_size = ", hidden, " that leaves at most ",
               largest_config_head_dim, " dimensions a head, got ", heads);
    return hidden / heads;
  }

  std::optional<Index> context_length(HfSection& s) {
    const auto stated =
        s.integer_of_any({"max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length"}, 1,
                         largest_config_length);
    std::optional<Index> lesser;  // of the tokenizer, or of training: only where the model has none
    for (const std::string_view key : {"model_max_length", "seq_length", "n_ctx"})
      if (const auto length = s.integer(key, 1, largest_config_length); length && !lesser) lesser = length;
    return stated ? stated : lesser;
  }

  // -- output
  // ------------------------------------------------------------------------------------------------------

  void add_stack(StackPositions stack) {
    layers_ += static_cast<Index>(stack.layers.size());
    if (layers_ > largest_config_layers)
      invalid(stack.name, ": expected at most ", largest_config_layers, " layers in all, got ", layers_);
    out_.stacks.push_back(std::move(stack));
  }
  static std::vector<LayerPositions> alike(Index layers, const Scheme& scheme) {
    return std::vector<LayerPositions>(static_cast<std::size_t>(layers),
                                       {.type = std::nullopt, .scheme = scheme});
  }
  static std::string part_name(const std::string& stack, const std::string& part) {
    return stack == "model" ? part : stack + "." + part;
  }

  ModelPositions& out_;

 private:
  Index layers_ = 0;
};

}  // namespace detail
}  // namespace v0
}  // namespace posenc
