#pragma once
// A model's config.json, as Hugging Face's transformers writes it, read into ModelPositions: how that model
// encodes position, for every layer. Optional: needs nlohmann-json.
//
//   const posenc::ModelPositions model = posenc::read_hf_config("config.json");
//
// Nothing is guessed in silence. A key about positions that nothing here understands, a missing one that has
// no published default, a wrong type, a list of the wrong length, a number that makes no sense:
// std::invalid_argument, naming the key, what was expected and what came. Two values that contradict each
// other, a value that has no effect, and a default that was filled in: a sentence in
// ModelPositions::warnings. A file that describes a scheme which ModelPositions has no type for is refused by
// name; a side tower with such a scheme is named in StackPositions::other_scheme instead, and warned about.
//
// A model_type that is not in the table of families is described if all its keys about positions are
// understood; the pairing is then unknown, and a warning says so.

#include <array>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/core/finite.hpp"
#include "posenc/io/hf_rope.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

enum class HfRole { text, vision, audio };

struct HfPart {
  std::string_view key;
  HfRole role;
};

/// The keys under which a config holds the configs of its parts.
inline constexpr HfPart hf_parts[] = {{"text_config", HfRole::text},
                                      {"llm_config", HfRole::text},
                                      {"language_config", HfRole::text},
                                      {"llm_cfg", HfRole::text},
                                      {"thinker_config", HfRole::text},
                                      {"talker_config", HfRole::text},
                                      {"decoder_config", HfRole::text},
                                      {"encoder_config", HfRole::text},
                                      {"depth_decoder_config", HfRole::text},
                                      {"code_predictor_config", HfRole::text},
                                      {"code2wav_config", HfRole::text},
                                      {"text_encoder", HfRole::text},
                                      {"decoder", HfRole::text},
                                      {"encoder", HfRole::text},
                                      {"question_encoder", HfRole::text},
                                      {"generator", HfRole::text},
                                      {"qformer_config", HfRole::text},
                                      {"patcher_config", HfRole::text},
                                      {"global_config", HfRole::text},
                                      {"vision_config", HfRole::vision},
                                      {"vision_tower_cfg", HfRole::vision},
                                      {"backbone_config", HfRole::vision},
                                      {"gen_vision_config", HfRole::vision},
                                      {"audio_config", HfRole::audio},
                                      {"audio_encoder", HfRole::audio},
                                      {"audio_encoder_config", HfRole::audio},
                                      {"speech_config", HfRole::audio},
                                      {"token2wav_config", HfRole::audio},
                                      {"dit_config", HfRole::audio},
                                      {"bigvgan_config", HfRole::audio},
                                      {"acoustic_tokenizer_config", HfRole::audio},
                                      {"semantic_tokenizer_config", HfRole::audio},
                                      {"audio_processor", HfRole::audio}};

/// The whole reader.
class HfReader : private HfRopeReader {
 public:
  explicit HfReader(ModelPositions& out) : HfRopeReader(out) {}

  void read(const HfJson& config) { model(config, "", HfRole::text, "", 0); }

 private:
  // -- which family
  // ------------------------------------------------------------------------------------------------

  /// Sets name_ to what the family is called.
  const HfFamily* family_of(HfSection& s, HfRole role, const std::string& parent, std::string& name) {
    const std::string stated = hf_family_name(s.text("model_type").value_or(""));
    std::vector<std::string> candidates;
    const std::string suffix = role == HfRole::vision  ? "_vision"
                               : role == HfRole::audio ? "_audio"
                                                       : "_text";
    for (const std::string& base : {stated, stated.empty() ? parent : std::string()}) {
      if (base.empty()) continue;
      if (!parent.empty()) candidates.push_back(base + suffix);
      if (!stated.empty() || role == HfRole::text) candidates.push_back(base);
    }
    if (role == HfRole::vision && !parent.empty()) candidates.push_back(parent + suffix);
    for (const std::string& candidate : candidates)
      if (const HfFamily* family = find_hf_family(candidate)) return name = candidate, family;
    for (const std::string_view ending : {"_text_model", "_text", "_model"})
      if (stated.size() > ending.size() &&
          std::string_view(stated).substr(stated.size() - ending.size()) == ending) {
        const std::string base = stated.substr(0, stated.size() - ending.size());
        if (const HfFamily* family = find_hf_family(base)) return name = base, family;
      }
    name = stated;
    return stated.empty() ? by_architecture(s, name) : nullptr;
  }

  /// Old files have no model_type, but "architectures": ["MiniCPM3ForCausalLM"].
  const HfFamily* by_architecture(HfSection& s, std::string& name) {
    const HfJson* list = s.peek("architectures");
    if (list == nullptr || !list->is_array() || list->empty() || !list->front().is_string()) return nullptr;
    std::string wanted = hf_family_name(list->front().get<std::string>());
    for (const std::string_view ending : {"forcausallm", "lmheadmodel", "forconditionalgeneration", "model"})
      if (const std::size_t at = wanted.rfind(ending); at != std::string::npos && at != 0) {
        wanted.resize(at);
        break;
      }
    for (const std::string& candidate : hf_family_names()) {
      std::string plain;
      for (const char c : candidate)
        if (c != '_') plain += c;
      if (plain != wanted) continue;
      s.warn("model_type", "not stated; ", candidate, ", from architectures");
      name = candidate;
      return find_hf_family(candidate);
    }
    return nullptr;
  }

  // -- a model and its parts
  // ---------------------------------------------------------------------------------------

  void model(const HfJson& config, const std::string& path, HfRole role, const std::string& parent,
             int depth) {
    if (depth > largest_config_parts)
      invalid(path, ": expected at most ", largest_config_parts, " models in one another, got more");
    HfSection s(config, path, out_.warnings);
    if (depth == 0) require_model(s);
    std::string name;
    const HfFamily* family = family_of(s, role, parent, name);
    if (depth == 0) out_.model_type = s.text("model_type").value_or(name);

    require_same(s, "text_config", "text_config_dict");
    require_same(s, "vision_config", "vision_config_dict");

    bool has_parts = false, has_text = false;
    for (const HfPart& part : hf_parts)
      if (const HfJson* json = s.peek(part.key); json != nullptr && json->is_object())
        has_parts = true, has_text = has_text || part.role == HfRole::text;

    const std::string stack = path.empty() ? "model" : path;
    bool wrapper = false;
    if (family == nullptr) {
      wrapper = has_text;
      if (wrapper)
        s.warn("model_type", "expected a family that posenc knows, got ",
               shown(config.value("model_type", HfJson())), "; its parts are described");
      else
        unknown(s, stack, depth);
    } else if (family->scheme == HfScheme::other && !(has_text && depth == 0)) {
      other(s, *family, stack, depth);
      return;  // what its keys mean is not known here
    } else if (family->scheme == HfScheme::composite && !has_parts) {
      if (name != "llava")
        s.refuse("text_config", "expected the configs of a ", name, " model's parts, got none");
      s.warn("text_config", "not there; the model's own keys are read, as those of llama");
      rope(s, *find_hf_family("llama"), "llama", stack);
    } else {
      wrapper = family->scheme == HfScheme::composite || has_text;
      if (!wrapper) own(s, *family, name, stack);
    }
    for (const HfPart& part : hf_parts)
      if (const HfJson* json = s.find(part.key); json != nullptr && json->is_object())
        model(*json, s.where(part.key), part.role, name, depth + 1);
    leftovers(s, name, wrapper);
  }

  /// CLIP's kin wrote the configs of their parts twice, and transformers lets the copy win.
  static void require_same(HfSection& s, std::string_view key, std::string_view copy_key) {
    const HfJson *one = s.peek(key), *copy = s.peek(copy_key);
    if (one == nullptr || copy == nullptr || !one->is_object() || !copy->is_object()) return;
    for (const auto& [name, value] : copy->items())
      if (value.is_number() && one->contains(name) && (*one)[name] != value)
        s.refuse(copy_key, "expected what ", std::string(key), " says of ", name, ", ", shown((*one)[name]),
                 ", got ", shown(value));
  }

  /// A file that is another kind of config.
  void require_model(HfSection& s) {
    for (const std::string_view key : {"image_processor_type", "feature_extractor_type", "processor_class",
                                       "tokenizer_file", "added_tokens_decoder", "added_tokens"})
      if (s.has(key) && !s.has("model_type"))
        s.refuse(key, "expected the config of a model, got that of a tokenizer or processor");
    if (!s.has("model_type") && !s.has("architectures"))
      s.refuse("model_type", "expected the config of a model, got neither model_type nor architectures");
  }

  void other(HfSection& s, const HfFamily& family, const std::string& stack, int depth) {
    if (depth == 0)
      s.refuse("model_type", "expected a scheme that ModelPositions has a type for, got ",
               std::string(family.note));
    const std::string what(family.note);
    s.warn("model_type", what, "; not described here");
    out_.stacks.push_back({.name = stack, .embedding = {}, .layers = {}, .other_scheme = what});
  }

  /// A model_type that the table does not have.
  void unknown(HfSection& s, const std::string& stack, int depth) {
    const HfJson* type = s.peek("model_type");
    const std::string shown_type = type == nullptr ? "none" : shown(*type);
    if (depth > 0 && !s.has("rope_theta") && !rope_object(s)) {
      bool positional = false;
      for (const auto& [key, value] : s.object().items()) positional = positional || looks_positional(key);
      if (!positional) {  // a projector or the like
        if (layer_count_or_none(s))
          s.refuse("model_type",
                   "expected a family that posenc knows, or keys that say how it encodes position, got ",
                   shown_type);
        return;
      }
    }
    if (!s.has("rope_theta") && !rope_object(s))
      s.refuse("model_type", "expected a family that posenc knows, or rope_theta, got ", shown_type);
    s.warn("model_type", "expected a family that posenc knows, got ", shown_type,
           "; read by its keys, and the pairing is unknown");
    static constexpr HfFamily plain{.names = "", .scheme = HfScheme::rope, .rope_theta = std::nullopt};
    rope(s, plain, "", stack);
  }

  /// What a family does itself.
  void own(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    switch (family.scheme) {
      case HfScheme::rope: return rope(s, family, name, stack);
      case HfScheme::mla: return mla(s, family, name, stack);
      case HfScheme::deepseek_v4: return deepseek_v4(s, family, name, stack);
      case HfScheme::vision_rope: return vision_rope(s, family, name, stack);
      case HfScheme::bloom: return bloom(s, name, stack);
      case HfScheme::falcon: return falcon(s, family, name, stack);
      case HfScheme::mpt: return mpt(s, name, stack);
      case HfScheme::baichuan: return baichuan(s, family, name, stack);
      case HfScheme::chatglm: return chatglm(s, family, name, stack);
      case HfScheme::t5: return t5(s, name, stack);
      case HfScheme::learned: return learned(s, family, name, stack);
      case HfScheme::sinusoidal: return sinusoidal(s, family, name, stack);
      case HfScheme::whisper: return whisper(s, family, name, stack);
      case HfScheme::esm: return esm(s, family, name, stack);
      case HfScheme::distilbert: return distilbert(s, family, name, stack);
      case HfScheme::mpnet: return mpnet(s, family, name, stack);
      case HfScheme::prophetnet: return prophetnet(s, family, stack);
      case HfScheme::grid: return grid(s, family, name, stack);
      case HfScheme::mllama_vision: return mllama_vision(s, family, name, stack);
      case HfScheme::named_tower: return named_tower(s, stack);
      case HfScheme::florence2: return florence2(s, stack);
      case HfScheme::conformer: return conformer(s, family, name, stack);
      case HfScheme::none: return none(s, family, stack);
      case HfScheme::composite:
      case HfScheme::other: return;
    }
  }

  void none(HfSection& s, const HfFamily& family, const std::string& stack) {
    for (const auto& [key, value] : s.object().items())
      if (looks_positional(key) && !value.is_null() && !is_beside_the_point(key)) {
        s.understood(key);
        s.warn(key, "has no effect: ", std::string(family.note));
      }
    add_stack({.name = stack,
               .embedding = {},
               .layers = alike(layer_count_or_none(s).value_or(0), NoPositionLayer{})});
  }

  // -- other decoders
  // ----------------------------------------------------------------------------------------------

  void chatglm(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    if (s.boolean("position_encoding_2d").value_or(false))
      s.refuse("position_encoding_2d",
               "expected ChatGLM2 or later, got the first ChatGLM with its two position ids");
    const Index layers = layer_count(s, name), width = head_dim(s, name);
    (void)rotary_is_on(s, name);
    if (width % 4 != 0) s.refuse("kv_channels", "expected a multiple of 4, got ", width);
    const auto ratio = positive(s, "rope_ratio");
    if (!ratio) s.warn("rope_ratio", "not stated; 1, the default of ", name);
    RotaryLayer layer;
    layer.config = {.head_dim = width, .rope_theta = 10000 * ratio.value_or(1), .rotary_dim = width / 2};
    if (!detail::is_finite(layer.config.rope_theta))
      s.refuse("rope_ratio", "expected a number, got ", *ratio);
    layer.pairing = family.pairing;
    layer.max_position_embeddings = context_length(s);
    add_stack({.name = stack, .embedding = {}, .layers = alike(layers, layer)});
  }

  void bloom(HfSection& s, const std::string& name, const std::string& stack) {
    const Index heads = head_count(s, name), layers = layer_count(s, name);
    (void)context_length(s);
    for (const char* key : {"offset_alibi", "original_rope"})
      if (s.find(key) != nullptr) s.warn(key, "has no effect: BLOOM's bias has no such option");
    add_stack({.name = stack,
               .embedding = {},
               .layers = alike(layers, AlibiConfig{.num_heads = heads, .form = AlibiForm::key_position})});
  }

  void falcon(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    if (!s.boolean("alibi").value_or(false)) {
      s.understood("max_position_embeddings");
      return rope(s, family, name, stack);
    }
    const Index heads = head_count(s, name), layers = layer_count(s, name), width = head_dim(s, name);
    for (const char* key : {"rope_theta", "rope_scaling", "rope_parameters"})
      if (s.find(key) != nullptr) s.warn(key, "has no effect beside alibi: true, which won");
    (void)context_length(s);
    add_stack({.name = stack,
               .embedding = {},
               .layers = alike(layers, AlibiConfig{.num_heads = heads,
                                                   .form = AlibiForm::key_position,
                                                   .scale = 1 / std::sqrt(static_cast<double>(width))})});
  }

  void mpt(HfSection& s, const std::string& name, const std::string& stack) {
    const Index heads = head_count(s, name), layers = layer_count(s, name);
    const auto length = context_length(s);
    const HfJson* json = s.find("attn_config");
    if (json == nullptr) s.refuse("attn_config", "expected an object, got nothing");
    HfSection attn(*json, s.where("attn_config"), out_.warnings);
    if (attn.boolean("rope").value_or(false))
      attn.refuse("rope", "expected false for an mpt model, got true");
    const auto alibi = attn.boolean("alibi");
    const auto learned_table = s.boolean("learned_pos_emb");
    const auto most = positive(attn, "alibi_bias_max");
    StackPositions result{.name = stack, .embedding = {}, .layers = alike(layers, NoPositionLayer{})};
    if (!alibi) attn.refuse("alibi", "expected true or false, got nothing");
    if (*alibi) {
      if (learned_table && *learned_table)
        s.warn("learned_pos_emb", "true has no effect beside alibi: true, which won");
      if (!most) attn.warn("alibi_bias_max", "not stated; 8, the default of ", name);
      result.layers = alike(layers, AlibiConfig{.num_heads = heads, .alibi_bias_max = most.value_or(8)});
    } else if (learned_table.value_or(true)) {
      if (!length) s.refuse("max_seq_len", "expected an integer, got nothing");
      result.embedding = LearnedEmbedding{.max_len = *length};
    }
    leftovers(attn, name, false);
    add_stack(std::move(result));
  }

  /// The 7B models turn, the 13B ones have ALiBi, and no key says which is which. The 7B files state
  /// max_position_embeddings, the 13B ones only model_max_length.
  void baichuan(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const Index hidden = hidden_size(s, name);
    const bool turns = s.has("max_position_embeddings");
    if ((hidden == 4096 && !turns) || (hidden == 5120 && turns))
      s.refuse("max_position_embeddings",
               "expected it with hidden_size 4096 (7B, rope) and not with 5120 (13B, ALiBi), got ",
               turns ? "it" : "nothing", " with ", hidden);
    if (turns) return rope(s, family, name, stack);
    s.warn("max_position_embeddings", "not stated, as in the 13B models: ALiBi");
    (void)context_length(s);
    add_stack({.name = stack,
               .embedding = {},
               .layers = alike(layer_count(s, name), AlibiConfig{.num_heads = head_count(s, name)})});
  }

  // -- buckets
  // -----------------------------------------------------------------------------------------------------

  RelativeBucketsLayer buckets(HfSection& s, const std::string& name, const char* count_key,
                               const char* distance_key, Index heads) {
    RelativeBucketsLayer layer{.num_heads = heads};
    const auto buckets = s.integer(count_key, 2, largest_config_width);
    const auto distance = s.integer(distance_key, 1, largest_config_length);
    if (!buckets) s.warn(count_key, "not stated; 32, the default of ", name);
    if (!distance) s.warn(distance_key, "not stated; 128, the default of ", name);
    layer.num_buckets = buckets.value_or(32), layer.max_distance = distance.value_or(128);
    if (layer.max_distance <= layer.num_buckets / 2)
      s.refuse(distance_key, "expected more than half of the ", layer.num_buckets, " buckets, got ",
               layer.max_distance);
    return layer;
  }

  void t5(HfSection& s, const std::string& name, const std::string& stack) {
    const Index layers = layer_count(s, name);
    if (const auto architectures = s.texts("architectures");
        architectures && !architectures->empty() && architectures->front() == "Chronos2Model")
      return chronos2(s, layers, stack);
    RelativeBucketsLayer layer = buckets(s, name, "relative_attention_num_buckets",
                                         "relative_attention_max_distance", head_count(s, name));
    s.understood("n_positions");  // what the model was trained for; nothing depends on it
    const auto decoder = s.integer("num_decoder_layers", 0, largest_config_layers);
    if (!decoder) s.warn("num_decoder_layers", "not stated; as many as num_layers, the default of ", name);
    add_stack({.name = part_name(stack, "encoder"), .embedding = {}, .layers = alike(layers, layer)});
    layer.bidirectional = false;
    if (s.boolean("is_encoder_decoder").value_or(true))
      add_stack({.name = part_name(stack, "decoder"),
                 .embedding = {},
                 .layers = alike(decoder.value_or(layers), layer)});
  }

  /// Chronos 2 goes by the model_type of T5, but turns.
  void chronos2(HfSection& s, Index layers, const std::string& stack) {
    const auto width = s.integer("d_kv", 2, largest_config_head_dim);
    const auto theta = s.number("rope_theta");
    if (!width || *width % 2 != 0) s.refuse("d_kv", "expected an even integer, got ", width.value_or(0));
    if (!theta || !(*theta > 0))
      s.refuse("rope_theta", "expected a positive number, got ", theta.value_or(0));
    RotaryLayer layer;
    layer.config = {.head_dim = *width, .rope_theta = *theta};
    layer.pairing = Pairing::half;
    s.warn("architectures",
           "Chronos 2: attention over time turns; attention over series, in the same layers, does not");
    add_stack({.name = stack, .embedding = {}, .layers = alike(layers, layer)});
  }

  void mpnet(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    RelativeBucketsLayer layer = buckets(s, name, "relative_attention_num_buckets",
                                         "relative_attention_max_distance", head_count(s, name));
    add_stack({.name = stack,
               .embedding = table(s, family, "max_position_embeddings"),
               .layers = alike(layer_count(s, name), layer)});
  }

  void prophetnet(HfSection& s, const HfFamily& family, const std::string& stack) {
    const Index encoder = count(s, "num_encoder_layers"), decoder = count(s, "num_decoder_layers");
    const auto heads = s.integer("num_decoder_attention_heads", 1, largest_config_width);
    if (!heads) s.refuse("num_decoder_attention_heads", "expected an integer, got nothing");
    RelativeBucketsLayer layer = buckets(s, "prophetnet", "num_buckets", "relative_max_distance", *heads);
    layer.bidirectional = false;
    const LearnedEmbedding embedding = table(s, family, "max_position_embeddings");
    add_stack({.name = part_name(stack, "encoder"),
               .embedding = embedding,
               .layers = alike(encoder, NoPositionLayer{})});
    add_stack({.name = part_name(stack, "decoder"), .embedding = embedding, .layers = alike(decoder, layer)});
  }

  // -- tables
  // ------------------------------------------------------------------------------------------------------

  Position padding_idx(HfSection& s, Position fallback) {
    const auto stated = s.integer("pad_token_id", 0, largest_config_length);
    if (!stated) s.warn("pad_token_id", "not stated; ", fallback, ", which decides the first position");
    return stated.value_or(fallback);
  }

  LearnedEmbedding table(HfSection& s, const HfFamily& family, std::string_view key) {
    const auto rows =
        key == "max_position_embeddings"
            ? s.integer_of_any({"max_position_embeddings", "n_positions", "n_ctx"}, 1, largest_config_length)
            : s.integer(key, 1, largest_config_length);
    if (!rows) s.refuse(key, "expected an integer, got nothing");
    LearnedEmbedding embedding{.max_len = *rows, .rule = family.rule, .offset = family.offset};
    embedding.max_len += family.offset;
    if (family.rule == LearnedEmbedding::Rule::roberta) embedding.padding_idx = padding_idx(s, 1);
    return embedding;
  }

  void learned(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    if (s.boolean("static_position_embeddings").value_or(false))
      s.refuse("static_position_embeddings", "expected false for a ", name, " model, got true");
    if (const auto extra = s.integer("extra_pos_embeddings", 0, largest_config_width);
        extra && *extra != family.offset)
      s.warn("extra_pos_embeddings", *extra, " contradicts the offset of ", name, ", which is ",
             family.offset, " and won");
    const auto kind = s.text("position_embedding_type");
    s.understood("position_biased_input");
    if (kind && *kind == "alibi") {  // Jina's BERT
      (void)context_length(s);
      return add_stack(
          {.name = stack,
           .embedding = {},
           .layers = alike(layer_count(s, name), AlibiConfig{.num_heads = head_count(s, name)})});
    }
    if (kind && *kind != "absolute")
      s.refuse("position_embedding_type", "expected absolute or alibi, got ", shown(*kind));
    (void)s.integer_of_any({"model_max_length"}, 1, largest_config_length);
    if (name == "trocr" && !s.boolean("use_learned_position_embeddings").value_or(true))
      return add_stack({.name = stack,
                        .embedding = sinusoid(s, HfSinusoid::fairseq, name),
                        .layers = alike(count(s, "decoder_layers"), NoPositionLayer{})});
    if (!family.two_stacks) {
      const Index layers = name == "trocr" ? count(s, "decoder_layers") : layer_count(s, name);
      return add_stack({.name = stack,
                        .embedding = table(s, family, "max_position_embeddings"),
                        .layers = alike(layers, NoPositionLayer{})});
    }
    for (const std::string side : {"encoder", "decoder"}) {
      if (side == "encoder" && s.boolean("is_decoder").value_or(false)) continue;  // half of a pair of models
      const std::string key =
          name == "led" ? "max_" + side + "_position_embeddings" : "max_position_embeddings";
      add_stack({.name = part_name(stack, side),
                 .embedding = table(s, family, key),
                 .layers = alike(count(s, side + "_layers"), NoPositionLayer{})});
    }
  }

  SinusoidalConfig sinusoid(HfSection& s, HfSinusoid kind, const std::string& name) {
    SinusoidalConfig config;
    config.d_model = hidden_size(s, name);
    config.layout = kind == HfSinusoid::paper ? SinusoidLayout::interleaved : SinusoidLayout::halves;
    if (!(kind == HfSinusoid::marian || kind == HfSinusoid::paper || kind == HfSinusoid::ctrl))
      config.exponent = SinusoidExponent::i_over_half_minus_one;
    if (kind == HfSinusoid::musicgen) config.order = SinusoidOrder::cos_first;
    config.odd_dim = kind == HfSinusoid::marian ? OddDim::longer_first
                     : kind == HfSinusoid::whisper || kind == HfSinusoid::paper || kind == HfSinusoid::ctrl
                         ? OddDim::refuse
                         : OddDim::zero_last;
    // The ids of fairseq's kin come from roberta_positions(ids, padding_idx); XGLM's are consecutive from 2.
    if (kind == HfSinusoid::fairseq || kind == HfSinusoid::mask_free_fairseq)
      config.padding_idx = padding_idx(s, 1);
    if (kind == HfSinusoid::mask_free_fairseq) config.first_position = 2;
    const Index least = config.exponent == SinusoidExponent::i_over_half_minus_one ? 4 : 2;
    const Index width = *config.d_model;
    if (width < least || (width % 2 != 0 && config.odd_dim == OddDim::refuse))
      s.refuse("d_model", "expected an even number of at least ", least, ", got ", width);
    return config;
  }

  void sinusoidal(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    if (!s.boolean("static_position_embeddings").value_or(true))
      s.refuse("static_position_embeddings", "expected true for a ", name, " model, got false");
    if (const auto extra = s.integer("extra_pos_embeddings", 0, largest_config_width); extra && *extra != 0)
      s.warn("extra_pos_embeddings", *extra, " has no effect: the table is computed");
    const SinusoidalConfig config = sinusoid(s, family.sinusoid, name);
    for (const char* key :
         {"max_position_embeddings", "max_source_positions", "max_target_positions", "n_positions"})
      (void)s.integer(key, 1, largest_config_length);
    if (!family.two_stacks) {
      return add_stack(
          {.name = stack, .embedding = config, .layers = alike(layer_count(s, name), NoPositionLayer{})});
    }
    for (const std::string side : {"encoder", "decoder"})
      add_stack({.name = part_name(stack, side),
                 .embedding = config,
                 .layers = alike(count(s, side + "_layers"), NoPositionLayer{})});
  }

  void whisper(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const SinusoidalConfig config = sinusoid(s, HfSinusoid::whisper, name);
    const auto frames = s.integer("max_source_positions", 1, largest_config_length);
    if (!frames) s.refuse("max_source_positions", "expected an integer, got nothing");
    add_stack({.name = family.two_stacks ? part_name(stack, "encoder") : stack,
               .embedding = config,
               .layers = alike(count(s, "encoder_layers"), NoPositionLayer{})});
    if (!family.two_stacks) return;
    add_stack({.name = part_name(stack, "decoder"),
               .embedding = table(s, family, "max_target_positions"),
               .layers = alike(count(s, "decoder_layers"), NoPositionLayer{})});
  }

  void esm(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const auto kind = s.text("position_embedding_type");
    if (!kind) s.warn("position_embedding_type", "not stated; absolute, the default of ", name);
    const Index layers = layer_count(s, name);
    if (kind && *kind == "rotary") {
      RotaryLayer layer;
      layer.config = {.head_dim = head_dim(s, name)};
      require_width(s, layer.config);
      layer.pairing = family.pairing;
      layer.max_position_embeddings = context_length(s);
      return add_stack({.name = stack, .embedding = {}, .layers = alike(layers, layer)});
    }
    if (kind && *kind != "absolute")
      s.refuse("position_embedding_type", "expected absolute or rotary, got ", shown(*kind));
    add_stack({.name = stack,
               .embedding = table(s, family, "max_position_embeddings"),
               .layers = alike(layers, NoPositionLayer{})});
  }

  void distilbert(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const char* key = name == "distilbert" ? "sinusoidal_pos_embds" : "sinusoidal_embeddings";
    const Index layers = layer_count(s, name);
    if (s.boolean(key).value_or(false)) {
      (void)context_length(s);
      return add_stack({.name = stack,
                        .embedding = sinusoid(s, family.sinusoid, name),
                        .layers = alike(layers, NoPositionLayer{})});
    }
    add_stack({.name = stack,
               .embedding = table(s, family, "max_position_embeddings"),
               .layers = alike(layers, NoPositionLayer{})});
  }

  void conformer(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const auto kind = s.text("position_embeddings_type");
    const Index layers = layer_count(s, name);
    if (!kind || *kind != "rotary")
      s.refuse("position_embeddings_type",
               "expected rotary, the only one that ModelPositions has a type for, got ",
               kind ? shown(*kind) : std::string("nothing"));
    if (name == "wav2vec2_conformer")
      s.warn("num_conv_pos_embeddings",
             "positions by convolution are added at the input, which is not described");
    RopeBase base = rope_base(s, family, name);
    RotaryLayer layer = rotary_layer(s, base, nullptr);
    layer.before_projection = true;
    for (const char* key :
         {"num_conv_pos_embeddings", "num_conv_pos_embedding_groups", "max_source_positions",
          "left_max_position_embeddings", "right_max_position_embeddings"})
      s.understood(key);
    add_stack({.name = stack, .embedding = {}, .layers = alike(layers, layer)});
  }

  // -- vision
  // ------------------------------------------------------------------------------------------------------

  /// Height and width: one number for both, or a list.
  static std::pair<Index, Index> sides(HfSection& s, std::string_view key) {
    const HfJson* value = s.peek(key);
    if (value == nullptr) s.refuse(key, "expected an integer, got nothing");
    if (!value->is_array()) {
      const Index side = *s.integer(key, 1, 1 << 20);
      return {side, side};
    }
    const auto both = *s.integers(key, 1, 1 << 20);
    if (both.size() != 2) s.refuse(key, "expected one or two integers, got ", both.size());
    return {both[0], both[1]};
  }
  static Index patches(HfSection& s) {
    const auto [height, width] = sides(s, "image_size");
    const auto [patch_height, patch_width] = sides(s, "patch_size");
    if (patch_height > height || patch_width > width)
      s.refuse("patch_size", "expected at most image_size = ", height, ", got ", patch_height);
    return (height / patch_height) * (width / patch_width);
  }

  LearnedEmbedding grid_table(HfSection& s, const HfFamily& family) {
    LearnedEmbedding embedding{.rule = LearnedEmbedding::Rule::grid};
    if (const auto rows = s.integer_of_any({"num_position_embeddings", "position_embedding_size"}, 1,
                                           largest_config_length)) {
      embedding.max_len = *rows;
    } else if (s.has("init_pos_emb_height")) {
      const auto height = s.integer("init_pos_emb_height", 1, 1 << 16),
                 width = s.integer("init_pos_emb_width", 1, 1 << 16);
      if (!width) s.refuse("init_pos_emb_width", "expected an integer, got nothing");
      embedding.max_len = *height * *width;
    } else {
      embedding.max_len = patches(s);
    }
    embedding.class_rows = family.class_rows;
    embedding.max_len += family.class_rows;
    return embedding;
  }

  void grid(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const Index layers = layer_count(s, name);
    if (const auto absolute = s.boolean("use_absolute_position_embeddings"); absolute && !*absolute)
      s.refuse("use_absolute_position_embeddings", "expected true, got false");
    if (const auto mask = s.boolean("use_relative_position_bias"); mask && *mask)
      s.refuse("use_relative_position_bias", "expected false, got true");
    add_stack(
        {.name = stack, .embedding = grid_table(s, family), .layers = alike(layers, NoPositionLayer{})});
  }

  void vision_rope(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const Index layers = layer_count(s, name);
    RotaryLayer layer;
    layer.config.head_dim = head_dim(s, name);
    if (const auto global = s.integer("global_head_dim", 1, largest_config_head_dim);
        global && *global != layer.config.head_dim)
      s.warn("global_head_dim", *global, " contradicts head_dim = ", layer.config.head_dim, ", which won");
    const HfFamily mine = family;
    RopeBase base{&mine,        name, layer.config.head_dim, family.rope_theta, true,
                  std::nullopt, 1,    std::nullopt,          std::nullopt};
    if (const auto theta = s.number("rope_theta")) base.rope_theta = *theta;
    layer.max_position_embeddings = s.integer("max_position_embeddings", 1, largest_config_length);
    std::string key;
    if (const HfJson* parameters = rope_object(s, &key)) {
      HfSection p(*parameters, s.where(key), out_.warnings);
      if (scaling_type(p, base) != "default")
        p.refuse("rope_type", "expected default in a vision tower, got ", shown((*parameters)));
      if (const auto theta = p.number("rope_theta")) base.rope_theta = *theta;
      unused(p, "default");
    }
    if (!base.rope_theta) s.refuse("rope_theta", "expected a number, got nothing");
    if (!(*base.rope_theta > 0)) s.refuse("rope_theta", "expected a positive number, got ", *base.rope_theta);
    layer.config.rope_theta = *base.rope_theta;
    layer.pairing = family.pairing;
    layer.axes = family.axes;
    layer.axis_count = is_one_of(name, {"vjepa2", "minimax_m3_vl_vision"}) ? 3 : 2;
    layer.axes_apart =
        is_one_of(name, {"vjepa2", "gemma4_vision", "gemma4_unified_vision", "diffusion_gemma_vision"});
    layer.column_first =
        layer.axis_count == 2 && (layer.axes_apart || family.axes == AxisLayout::axial_interleaved ||
                                  is_one_of(name, {"llama4_vision", "llama4_vision_model"}));
    layer.first_position = is_one_of(name, {"llama4_vision", "llama4_vision_model"}) ? 1 : 0;
    const Index unit = layer.axis_count == 3 ? 6 : 4;
    if (layer.config.head_dim < unit || layer.config.head_dim % (layer.axis_count == 3 ? 2 : 4) != 0)
      s.refuse("head_dim", "expected a multiple of 4 for rows and columns, got ", layer.config.head_dim);
    StackPositions result{.name = stack, .embedding = {}, .layers = alike(layers, layer)};
    if (family.rule == LearnedEmbedding::Rule::grid) result.embedding = grid_table(s, family);
    add_stack(std::move(result));
    if (const auto frames = s.integer("init_pos_emb_time", 1, 1 << 16)) {  // Kimi adds a sinusoid per frame
      if (const auto type = s.text("pos_emb_type"); type && *type != "divided_fixed")
        s.refuse("pos_emb_type", "expected divided_fixed, got ", shown(*type));
      add_stack(
          {.name = stack + ".time",
           .embedding = SinusoidalConfig{.d_model = hidden_size(s, name), .layout = SinusoidLayout::halves},
           .layers = {}});
    }
  }

  /// Mllama adds (1 - tanh g) times a table of patches and tanh(g) times one of tiles; g is a weight.
  void mllama_vision(HfSection& s, const HfFamily& family, const std::string& name,
                     const std::string& stack) {
    grid(s, family, name, stack);
    Index ratios = 0;
    if (const HfJson* list = s.find("supported_aspect_ratios")) {
      if (!list->is_array() || list->empty())
        s.refuse("supported_aspect_ratios", "expected a list, got ", shown(*list));
      ratios = static_cast<Index>(list->size());
    } else {
      const auto tiles = s.integer("max_num_tiles", 1, 1 << 10);
      if (!tiles) s.refuse("max_num_tiles", "expected an integer, got nothing");
      for (Index width = 1; width <= *tiles; ++width) ratios += *tiles / width;
    }
    s.warn(
        "max_num_tiles",
        "a learned gate weighs the table of patches against that of tiles, which has a row per aspect ratio");
    add_stack({.name = stack + ".tiles", .embedding = LearnedEmbedding{.max_len = ratios + 1}, .layers = {}});
  }

  /// DeepSeek-VL2 and Janus name their tower in the way of timm.
  void named_tower(HfSection& s, const std::string& stack) {
    std::optional<std::string> tower = s.text("model_name");
    if (const HfJson* params = s.find("params")) {
      HfSection p(*params, s.where("params"), out_.warnings);
      tower = p.text("model_name");
    }
    const std::string text = tower.value_or("");
    const auto number_behind = [&](std::size_t at) {
      Index number = 0;
      for (; at < text.size() && text[at] >= '0' && text[at] <= '9' && number < 1 << 20; ++at)
        number = 10 * number + (text[at] - '0');
      return number;
    };
    const std::size_t at = text.find("_patch"), last = text.rfind('_');
    const Index patch = at == std::string::npos ? 0 : number_behind(at + 6),
                image = last == std::string::npos ? 0 : number_behind(last + 1);
    if (text.substr(0, 7) != "siglip_" || patch < 1 || image < patch)
      s.refuse("model_name", "expected the name of a tower like siglip_so400m_patch14_384, got ",
               tower ? shown(*tower) : std::string("nothing"));
    const std::optional<Index> layers = layer_count_or_none(s);
    if (!layers)
      s.warn("layers", "not stated, so the tower is described without its layers, which add nothing");
    add_stack({.name = stack,
               .embedding = LearnedEmbedding{.max_len = (image / patch) * (image / patch),
                                             .rule = LearnedEmbedding::Rule::grid},
               .layers = alike(layers.value_or(0), NoPositionLayer{})});
  }

  /// DaViT has no positions of its own; behind it, Florence-2 adds a learned row and column, and a sinusoid
  /// per frame.
  void florence2(HfSection& s, const std::string& stack) {
    add_stack({.name = stack, .embedding = {}, .layers = {}});
    Index width = 0;
    if (const auto widths = s.integers("dim_embed", 1, largest_config_width); widths && !widths->empty())
      width = widths->back();
    if (const HfJson* json = s.find("image_pos_embed")) {
      HfSection p(*json, s.where("image_pos_embed"), out_.warnings);
      const auto type = p.text("type");
      const auto rows = p.integer("max_pos_embeddings", 1, 1 << 20);
      if (!type || *type != "learned_abs_2d" || !rows)
        p.refuse("type", "expected learned_abs_2d with max_pos_embeddings, got ",
                 type ? shown(*type) : std::string("nothing"));
      for (const char* axis : {".row", ".column"})
        add_stack({.name = p.path() + axis,
                   .embedding = LearnedEmbedding{.max_len = *rows, .rule = LearnedEmbedding::Rule::grid},
                   .layers = {}});
      leftovers(p, "davit", false);
    }
    if (const HfJson* json = s.find("visual_temporal_embedding")) {
      HfSection p(*json, s.where("visual_temporal_embedding"), out_.warnings);
      const auto type = p.text("type");
      (void)p.integer("max_temporal_embeddings", 1, 1 << 20);
      if (!type || *type != "COSINE" || width < 2 || width % 2 != 0)
        p.refuse("type", "expected COSINE over an even dim_embed, got ",
                 type ? shown(*type) : std::string("nothing"));
      add_stack({.name = p.path(),
                 .embedding = SinusoidalConfig{.d_model = width,
                                               .exponent = SinusoidExponent::i_over_half,
                                               .layout = SinusoidLayout::halves},
                 .layers = {}});
    }
  }
};

}  // namespace detail

/// A config.json, parsed already. Throws std::invalid_argument as said above.
inline ModelPositions model_positions_from_hf(const nlohmann::json& config) {
  ModelPositions model;
  detail::HfReader(model).read(config);
  return model;
}

/// The text of a config.json. A key that stands twice in one object, and nesting beyond largest_config_depth,
/// are errors too.
inline ModelPositions model_positions_from_hf_text(std::string_view text) {
  return model_positions_from_hf(detail::parse_hf_json(text));
}

/// The file itself.
inline ModelPositions read_hf_config(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) detail::invalid("path: expected a readable config.json, got ", path.string());
  std::string text;
  std::vector<char> buffer(std::size_t{1} << 16);
  while (file.read(buffer.data(), static_cast<std::streamsize>(buffer.size())) || file.gcount() > 0) {
    text.append(buffer.data(), static_cast<std::size_t>(file.gcount()));
    if (text.size() > largest_config_bytes) break;
  }
  return model_positions_from_hf_text(text);
}

}  // namespace v0
}  // namespace posenc
