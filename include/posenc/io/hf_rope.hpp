#pragma once
// The rotary part of config.json: frequencies in both of transformers' spellings and the older ones, which
// layers turn, and the decoupled heads of DeepSeek.

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "posenc/core/finite.hpp"
#include "posenc/io/hf_reader.hpp"

namespace posenc {
inline namespace v0 {
namespace detail {

/// Reader of models that turn queries and keys.
class HfRopeReader : protected HfReaderBase {
 protected:
  using HfReaderBase::HfReaderBase;

  // -- rotary layers
  // -----------------------------------------------------------------------------------------------

  /// rope_parameters or rope_scaling; nullptr for neither.
  const HfJson* rope_object(HfSection& s, std::string* key = nullptr) {
    const HfJson *scaling = s.find("rope_scaling"), *parameters = s.find("rope_parameters");
    for (const auto& [name, json] :
         {std::pair{"rope_scaling", scaling}, std::pair{"rope_parameters", parameters}})
      if (json != nullptr && !json->is_object()) s.refuse(name, "expected an object, got ", shown(*json));
    if (scaling != nullptr && scaling->empty()) scaling = nullptr;
    if (parameters != nullptr && parameters->empty()) parameters = nullptr;
    if (key != nullptr) {
      *key = scaling != nullptr ? "rope_scaling" : "rope_parameters";
      if (scaling != nullptr && parameters != nullptr && *scaling != *parameters)
        s.warn("rope_parameters", "contradicts rope_scaling, which won");
    }
    return scaling != nullptr ? scaling : parameters;
  }
  static bool is_nested(const HfJson& parameters) {
    return std::all_of(parameters.begin(), parameters.end(),
                       [](const HfJson& value) { return value.is_object() || value.is_null(); });
  }

  /// What all layers of a stack share.
  struct RopeBase {
    const HfFamily* family;
    std::string name;
    Index head_dim;
    std::optional<double> rope_theta;  ///< what the stack states, else the family's, which may have none
    bool theta_stated;
    std::optional<double> partial;  ///< stated outside of rope_parameters
    double default_partial;
    std::optional<Index> rotary_dim;
    std::optional<Index> context;
    bool nested =
        false;  ///< parameters per layer type: the length beside them is not consulted, as in transformers
  };

  RopeBase rope_base(HfSection& s, const HfFamily& family, const std::string& name) {
    RopeBase base{
        &family,      name,        0, std::nullopt, false, std::nullopt, family.partial_rotary_factor,
        std::nullopt, std::nullopt};
    base.head_dim = name == "clvp_encoder" ? hidden_size(s, name) / head_count(s, name) : head_dim(s, name);
    const std::optional<double> theta =
        s.peek("rope_theta") != nullptr && s.peek("rope_theta")->is_array()
            ? std::nullopt
            : s.number_of_any({"rope_theta", "rotary_emb_base", "rope_embedding_base",
                               "rotary_embedding_base", "rotary_base"});
    base.theta_stated = theta.has_value();
    base.rope_theta = theta ? theta : family.rope_theta;
    base.partial =
        s.number_of_any({"partial_rotary_factor", "rotary_pct", "rope_pct", "rotary_emb_fraction"});
    if (base.partial && !(*base.partial > 0 && *base.partial <= 1))
      s.refuse("partial_rotary_factor", "expected a number in (0, 1], got ", *base.partial);
    if (const auto width = s.integer_of_any({"rotary_dim", "attn_rotary_emb"}, 2, base.head_dim)) {
      base.rotary_dim = *width;
      const double stated = base.partial.value_or(1) * static_cast<double>(base.head_dim);
      if (base.partial && static_cast<Index>(stated) != *width)
        s.warn("partial_rotary_factor", "makes ", static_cast<Index>(stated),
               " dimensions, which contradicts rotary_dim = ", *width, ", which won");
      base.partial.reset();
    } else if (is_one_of(name, {"gptj", "codegen"})) {
      s.warn("rotary_dim", "not stated; 64, the default of ", name);
      base.rotary_dim = 64;
    }
    base.context = context_length(s);
    s.understood("original_max_position_embeddings");
    return base;
  }

  /// One set of rotary parameters: an object of the file, or none.
  RotaryLayer rotary_layer(HfSection& s, const RopeBase& base, HfSection* d,
                           std::optional<AttentionTemperatureConfig>* temperature = nullptr) {
    const HfJson nothing = HfJson::object();
    HfSection empty(nothing, "", out_.warnings);
    HfSection& p = d != nullptr ? *d : empty;
    RotaryLayer layer;
    layer.pairing = base.family->pairing;
    layer.max_position_embeddings = base.context;
    layer.negated = base.name == "nanochat";

    const std::string type = scaling_type(p, base);
    layer.config.head_dim = base.head_dim;
    layer.config.rope_theta = theta(s, p, base);
    const double partial = partial_factor(s, p, base);
    if (base.rotary_dim)
      layer.config.rotary_dim = base.rotary_dim;
    else if (type != "proportional")
      layer.config.partial_rotary_factor = partial;
    require_width(s, layer.config);

    const Index pairs = rotated_width(layer.config) / 2;
    if (type == "linear") {
      layer.scaling = LinearConfig{factor(p)};
    } else if (type == "dynamic") {
      layer.scaling = dynamic(s, p, base, 2 * pairs);
    } else if (type == "yarn") {
      const YarnConfig yarn = yarn_config(s, p, base);
      if (base.family->scheme == HfScheme::mla) layer.softmax_scale = yarn_softmax_scale(yarn);
      layer.scaling = yarn;
      if (layer.config.rope_theta == 1) s.refuse("rope_theta", "expected anything but 1 for YaRN, got 1");
    } else if (type == "longrope") {
      layer.scaling = longrope(s, p, base, pairs);
    } else if (type == "llama3") {
      layer.scaling = llama3(s, p, base);
    } else if (type == "proportional") {
      ProportionalConfig proportional{partial, 1.0};
      if (p.has("factor")) proportional.factor = factor(p);
      layer.scaling = proportional;
    }
    sections(s, p, base, pairs, layer);
    if (const auto beta = p.number("llama_4_scaling_beta")) {
      const auto length = original_length(s, p, base, false);
      if (temperature == nullptr || !length || !is_one_of(base.name, {"ministral3", "mistral4"}))
        p.refuse("llama_4_scaling_beta",
                 "expected it in a ministral3 or mistral4 model with an original length, got ", *beta);
      *temperature =
          AttentionTemperatureConfig{TemperatureRule::ministral3, *beta, static_cast<double>(*length)};
    }
    unused(p, type);
    return layer;
  }

  static void require_width(HfSection& s, const RotaryConfig& config) {
    const Index width = rotated_width(config);
    if (width < 2 || width % 2 != 0 || width > config.head_dim)
      s.refuse(config.rotary_dim ? "rotary_dim" : "partial_rotary_factor",
               "expected an even number of at least 2 rotated dimensions of head_dim = ", config.head_dim,
               ", got ", width);
  }

  std::string scaling_type(HfSection& p, const RopeBase& base) {
    const auto given = p.text("rope_type"), old = p.text("type");
    std::string type = given ? *given : old.value_or("");
    if (given && old && *given != *old && !(*given == "default" && *old == "mrope"))
      p.warn("type", shown(*old), " contradicts rope_type, which is ", shown(*given), " and won");
    if (type.empty()) {
      for (const std::string_view key : {"factor", "short_factor", "long_factor", "low_freq_factor", "alpha"})
        if (p.has(key))
          p.refuse("rope_type", "expected the name of a scaling beside ", std::string(key), ", got nothing");
      type = "default";
    }
    if (type == "mrope") type = "default";
    if (type == "su") type = "longrope";
    if (type == "yarn" && p.has("short_factor") &&
        is_one_of(base.name, {"phi3", "phi4_multimodal", "phi4mm", "phi3_v"}))
      type = "longrope";  // what Phi-3 called it at first
    if (!is_one_of(type, {"default", "linear", "dynamic", "yarn", "longrope", "llama3", "proportional"}))
      p.refuse(given ? "rope_type" : "type",
               "expected default, linear, dynamic, yarn, longrope, su, llama3, proportional or mrope, got ",
               shown(type));
    return type;
  }

  double theta(HfSection& s, HfSection& p, const RopeBase& base) {
    const auto own = p.number("rope_theta");
    if (own && base.theta_stated && *own != base.rope_theta)
      s.warn("rope_theta", *base.rope_theta, " contradicts ", p.where("rope_theta"), ", which is ", *own,
             " and won");
    const bool fixed = is_one_of(base.name, {"gptj", "codegen", "roformer"});  // they have no key for it
    if (!own && !base.theta_stated && !fixed) {
      if (!base.rope_theta)
        s.refuse("rope_theta", "expected a number, got nothing",
                 base.name.empty() ? "" : ", and what transformers fills in is not what released models use");
      s.warn("rope_theta", "not stated; ", *base.rope_theta, ", the default of ", base.name);
    }
    const double value = own ? *own : *base.rope_theta;
    if (!detail::is_positive(value))
      (own ? p : s).refuse("rope_theta", "expected a positive number, got ", value);
    return value;
  }

  double partial_factor(HfSection& s, HfSection& p, const RopeBase& base) {
    const auto own = p.number("partial_rotary_factor");
    if (own && !(*own > 0 && *own <= 1))
      p.refuse("partial_rotary_factor", "expected a number in (0, 1], got ", *own);
    if (own && base.partial && *own != *base.partial)
      p.warn("partial_rotary_factor", *own, " contradicts ", s.where("partial_rotary_factor"), ", which is ",
             *base.partial, " and won");
    if (base.partial) return *base.partial;
    if (own) return *own;
    if (base.default_partial != 1 && !base.rotary_dim)
      s.warn("partial_rotary_factor", "not stated; ", base.default_partial, ", the default of ", base.name);
    return base.default_partial;
  }

  static double factor(HfSection& p) {
    const auto value = p.number("factor");
    if (!value) p.refuse("factor", "expected a number, got nothing");
    if (!(*value >= 1)) p.refuse("factor", "expected a number of at least 1, got ", *value);
    return *value;
  }
  static std::optional<double> positive(HfSection& p, std::string_view key) {
    const auto value = p.number(key);
    if (value && !(*value > 0)) p.refuse(key, "expected a positive number, got ", *value);
    return value;
  }

  /// original_max_position_embeddings: beside the scaling's own keys or, with priority, outside (Phi-3).
  std::optional<Index> original_length(HfSection& s, HfSection& p, const RopeBase& base, bool required) {
    const auto inner = p.integer("original_max_position_embeddings", 2, largest_config_length);
    const auto outer =
        base.nested ? std::nullopt : s.integer("original_max_position_embeddings", 2, largest_config_length);
    if (inner && outer && *inner != *outer)
      p.warn("original_max_position_embeddings", *inner, " contradicts ",
             s.where("original_max_position_embeddings"), ", which is ", *outer, " and won");
    if (outer) return outer;
    if (inner || !required) return inner;
    if (!base.context || *base.context < 2)
      p.refuse("original_max_position_embeddings", "expected an integer, got nothing");
    p.warn("original_max_position_embeddings", "not stated; ", *base.context,
           ", which is max_position_embeddings");
    return base.context;
  }

  RotaryScaling dynamic(HfSection& s, HfSection& p, const RopeBase& base, Index width) {
    if (width <= 2)
      s.refuse("head_dim", "expected more than 2 rotated dimensions for NTK scaling, got ", width);
    if (const auto alpha = positive(p, "alpha")) {
      if (!is_one_of(base.name, {"hunyuan_v1_dense", "hunyuan_v1_moe", "hunyuan_vl", "hunyuan_vl_text"}))
        p.warn("alpha", "read as Hunyuan has it, a fixed ratio; transformers' ", base.name,
               " would not look at it");
      return NtkAlphaConfig{*alpha};
    }
    if (!base.context)
      s.refuse("max_position_embeddings", "expected an integer for dynamic scaling, got nothing");
    return DynamicNtkConfig{factor(p), *base.context};
  }

  YarnConfig yarn_config(HfSection& s, HfSection& p, const RopeBase& base) {
    YarnConfig yarn;
    yarn.factor = factor(p);
    yarn.original_max_position_embeddings = *original_length(s, p, base, true);
    yarn.beta_fast = positive(p, "beta_fast").value_or(yarn.beta_fast);
    yarn.beta_slow = positive(p, "beta_slow").value_or(yarn.beta_slow);
    if (yarn.beta_fast < yarn.beta_slow)
      p.refuse("beta_fast", "expected at least beta_slow = ", yarn.beta_slow, ", got ", yarn.beta_fast);
    yarn.truncate = p.boolean("truncate").value_or(true);
    yarn.attention_factor = positive(p, "attention_factor");
    yarn.mscale = p.number("mscale");
    yarn.mscale_all_dim = p.number("mscale_all_dim");
    for (const auto& [key, value] :
         {std::pair{"mscale", yarn.mscale}, std::pair{"mscale_all_dim", yarn.mscale_all_dim}})
      if (value && !(*value >= 0)) p.refuse(key, "expected a number of at least 0, got ", *value);
    if (yarn.attention_factor && (yarn.mscale || yarn.mscale_all_dim))
      p.warn("attention_factor", *yarn.attention_factor, " replaces what mscale and mscale_all_dim make");
    const double lengths = base.context ? static_cast<double>(*base.context) /
                                              static_cast<double>(yarn.original_max_position_embeddings)
                                        : yarn.factor;
    if (lengths != yarn.factor && lengths != 1)
      p.warn("factor", yarn.factor,
             " is not max_position_embeddings / original_max_position_embeddings = ", lengths,
             "; factor won");
    return yarn;
  }

  LongRopeConfig longrope(HfSection& s, HfSection& p, const RopeBase& base, Index pairs) {
    LongRopeConfig config;
    const auto list = [&](std::string_view key) {
      const auto numbers = p.numbers(key);
      if (!numbers) p.refuse(key, "expected a list of ", pairs, " numbers, got nothing");
      if (static_cast<Index>(numbers->size()) != pairs)
        p.refuse(key, "expected ", pairs, " numbers, one per pair, got ", numbers->size());
      for (const double number : *numbers)
        if (!(number > 0)) p.refuse(key, "expected positive numbers, got ", number);
      return *numbers;
    };
    config.short_factor = list("short_factor");
    config.long_factor = list("long_factor");
    config.original_max_position_embeddings = *original_length(s, p, base, true);
    if (p.has("factor"))
      config.factor = *positive(p, "factor");
    else if (base.context)
      config.factor =
          static_cast<double>(*base.context) / static_cast<double>(config.original_max_position_embeddings);
    else
      p.refuse("factor", "expected it or max_position_embeddings, got neither");
    config.attention_factor = positive(p, "attention_factor");
    config.short_mscale = positive(p, "short_mscale");
    config.long_mscale = positive(p, "long_mscale");
    if (config.short_mscale.has_value() != config.long_mscale.has_value())
      p.refuse("long_mscale", "expected short_mscale and long_mscale together, got one of them");
    if (config.short_mscale && config.attention_factor) {
      p.warn("attention_factor", *config.attention_factor,
             " contradicts short_mscale and long_mscale, which won");
      config.attention_factor.reset();
    }
    return config;
  }

  Llama3Config llama3(HfSection& s, HfSection& p, const RopeBase& base) {
    Llama3Config config;
    config.factor = factor(p);
    const auto low = positive(p, "low_freq_factor"), high = positive(p, "high_freq_factor");
    if (!low) p.refuse("low_freq_factor", "expected a number, got nothing");
    if (!high) p.refuse("high_freq_factor", "expected a number, got nothing");
    if (*high < *low)
      p.refuse("high_freq_factor", "expected at least low_freq_factor = ", *low, ", got ", *high);
    config.low_freq_factor = *low;
    config.high_freq_factor = *high;
    const auto length = original_length(s, p, base, false);
    if (!length) p.refuse("original_max_position_embeddings", "expected an integer, got nothing");
    config.original_max_position_embeddings = *length;
    if (base.context && *length >= *base.context && config.factor > 1)
      p.warn("original_max_position_embeddings", *length,
             " is not below max_position_embeddings = ", *base.context);
    return config;
  }

  void sections(HfSection& s, HfSection& p, const RopeBase& base, Index pairs, RotaryLayer& layer) {
    auto stated = p.integers("mrope_section", 0, pairs);
    if (!stated) stated = p.integers("xdrope_section", 0, pairs);
    const auto flag = p.boolean("mrope_interleaved"), old_flag = p.boolean("interleaved");
    if (flag && old_flag && *flag != *old_flag)
      p.warn("interleaved", *old_flag, " contradicts mrope_interleaved, which is ", *flag, " and won");
    const std::optional<bool> interleaved = flag ? flag : old_flag;
    AxisLayout axes = base.family->axes;
    if (!stated && axes == AxisLayout::one) {
      if (interleaved && *interleaved)
        p.refuse("mrope_section", "expected sections beside mrope_interleaved, got none");
      return;
    }
    if (axes == AxisLayout::one) axes = AxisLayout::sections;
    if (interleaved && axes != AxisLayout::ernie) {
      const AxisLayout said = *interleaved ? AxisLayout::interleaved : AxisLayout::sections;
      if (said != axes && base.family->axes != AxisLayout::one)
        p.warn("mrope_interleaved", *interleaved, " contradicts what ", base.name, " does; the file won");
      axes = said;
    }
    if (!stated) {
      stated = default_sections(base, axes, pairs);
      if (stated->empty())
        s.refuse("mrope_section", "expected a list of sections that sum to ", pairs, ", got nothing");
      s.warn("mrope_section", "not stated; ", (*stated)[0], ", ", (*stated)[1], ", ", (*stated)[2],
             ", the default of ", base.name);
    }
    Index sum = 0;
    for (const Index section : *stated) sum += section;
    if (sum != pairs)
      p.refuse("mrope_section", "expected sections that sum to the number of pairs, ", pairs, ", got ", sum);
    const std::size_t wanted = axes == AxisLayout::sections ? 0 : 3;
    if (stated->size() > 8 || (wanted != 0 && stated->size() != wanted) || stated->size() < 2)
      p.refuse("mrope_section", "expected ", wanted != 0 ? "3" : "2 to 8", " sections, got ", stated->size());
    if (axes == AxisLayout::ernie && (*stated)[0] != (*stated)[1])
      p.refuse("mrope_section", "expected as many pairs for rows as for columns, got ", (*stated)[0], " and ",
               (*stated)[1]);
    if (axes == AxisLayout::interleaved && (3 * (*stated)[1] > pairs + 1 || 3 * (*stated)[2] > pairs))
      p.refuse("mrope_section", "expected sections that can take turns among ", pairs, " pairs, got ",
               (*stated)[1], " and ", (*stated)[2]);
    layer.axes = axes;
    layer.sections = *stated;
  }
  static std::vector<Index> default_sections(const RopeBase& base, AxisLayout axes, Index pairs) {
    const std::vector<std::vector<Index>> known =
        axes == AxisLayout::interleaved ? std::vector<std::vector<Index>>{{24, 20, 20}, {11, 11, 10}}
        : axes == AxisLayout::ernie     ? std::vector<std::vector<Index>>{{22, 22, 20}}
        : is_one_of(base.name, {"glm4v", "glm4v_moe", "glm46v", "glm_ocr", "glm_image"})
            ? std::vector<std::vector<Index>>{{8, 12, 12}}
            : std::vector<std::vector<Index>>{};
    for (const auto& list : known)
      if (list[0] + list[1] + list[2] == pairs) return list;
    return {};
  }

  /// What is left in an object of rotary parameters.
  static void unused(HfSection& p, const std::string& type) {
    for (const auto& [key, value] : p.object().items()) {
      if (value.is_null() || p.is_understood(key)) continue;
      if (!is_one_of(key, {"factor", "original_max_position_embeddings", "attention_factor", "mscale",
                           "mscale_all_dim", "beta_fast", "beta_slow", "truncate", "short_factor",
                           "long_factor", "short_mscale", "long_mscale", "low_freq_factor",
                           "high_freq_factor", "alpha", "finetuned", "max_position_embeddings"}))
        p.refuse(key, "expected a key of rope_type ", type, ", got ", shown(value));
      p.warn(key, "has no effect with rope_type ", type);
    }
  }

  /// layer_types, which has an entry per layer, and may have some for the layers that predict further tokens.
  std::optional<std::vector<std::string>> stated_types(HfSection& s, Index layers) {
    auto types = s.texts("layer_types");
    if (!types) return std::nullopt;
    const Index extra = s.integer("num_nextn_predict_layers", 0, largest_config_layers).value_or(0);
    const Index size = static_cast<Index>(types->size());
    if (size != layers && size != layers + extra)
      s.refuse("layer_types", "expected ", layers, " entries, one per layer, got ", size);
    types->resize(static_cast<std::size_t>(layers));
    return types;
  }
  template <class T>
  static std::vector<T> per_layer(HfSection& s, std::string_view key, std::vector<T> list, Index layers) {
    const Index extra = s.integer("num_nextn_predict_layers", 0, largest_config_layers).value_or(0);
    const Index size = static_cast<Index>(list.size());
    if (size != layers && size != layers + extra)
      s.refuse(key, "expected ", layers, " entries, one per layer, got ", size);
    list.resize(static_cast<std::size_t>(layers));
    return list;
  }
  Index period(HfSection& s, std::initializer_list<std::string_view> keys, const HfFamily& family,
               const std::string& name) {
    const auto stated = s.integer_of_any(keys, 1, largest_config_layers);
    if (stated) return *stated;
    s.warn(*keys.begin(), "not stated; ", family.period, ", the default of ", name);
    return family.period;
  }

  struct Kinds {
    std::vector<std::string> types;  ///< all empty where the file tells none apart
    std::vector<bool> rotates;
  };
  static std::optional<std::string> named(const std::string& type) {
    return type.empty() ? std::nullopt : std::optional<std::string>(type);
  }
  static bool attends_with_positions(const std::string& type) {
    return !is_one_of(type, {"linear_attention", "mamba", "mamba2", "conv", "recurrent", "cross_attention",
                             "linear", "nope", "no_op"});
  }

  /// Which layer is what, and whether it turns.
  Kinds kinds_of(HfSection& s, const HfFamily& family, const std::string& name, Index layers) {
    const auto n = static_cast<std::size_t>(layers);
    Kinds kinds{std::vector<std::string>(n), std::vector<bool>(n, true)};
    const auto stated = stated_types(s, layers);
    const auto every = [&](std::initializer_list<std::string_view> keys, const char* most, const char* each) {
      const Index p = period(s, keys, family, name);
      for (std::size_t i = 0; i < n; ++i) kinds.types[i] = (static_cast<Index>(i) + 1) % p == 0 ? each : most;
    };
    if (stated) kinds.types = *stated;
    switch (family.layers) {
      case HfLayers::sliding_rope:
        if (!stated) {
          if (name != "afmoe" && !s.has("sliding_window") && !s.has("sliding_window_pattern")) {
            s.warn("sliding_window", "not stated; all layers are full attention, and all turn");
            break;
          }
          every({"sliding_window_pattern", "_sliding_window_pattern", "global_attn_every_n_layers"},
                "sliding_attention", "full_attention");
        }
        for (std::size_t i = 0; i < n; ++i) kinds.rotates[i] = kinds.types[i] == "sliding_attention";
        break;
      case HfLayers::local_global:
        if (!stated)
          every({"sliding_window_pattern", "_sliding_window_pattern"}, "sliding_attention", "full_attention");
        break;
      case HfLayers::full_interval:
        if (!stated) every({"full_attention_interval"}, "linear_attention", "full_attention");
        break;
      case HfLayers::modernbert:
        if (!stated) {
          const Index p = period(s, {"global_attn_every_n_layers"}, family, name);
          for (std::size_t i = 0; i < n; ++i)
            kinds.types[i] = static_cast<Index>(i) % p == 0 ? "full_attention" : "sliding_attention";
        }
        break;
      case HfLayers::no_rope_layers: {
        const auto list = s.integers("no_rope_layers", 0, 1);
        if (list && !list->empty()) {
          const auto uses = per_layer(s, "no_rope_layers", *list, layers);
          for (std::size_t i = 0; i < n; ++i) kinds.rotates[i] = uses[i] == 1;
          s.understood("no_rope_layer_interval"), s.understood("nope_layer_interval");
        } else {
          const Index p = period(s, {"no_rope_layer_interval", "nope_layer_interval"}, family, name);
          for (std::size_t i = 0; i < n; ++i) kinds.rotates[i] = (static_cast<Index>(i) + 1) % p != 0;
        }
        break;
      }
      case HfLayers::hybrid_pattern: {
        const auto list = s.integers("hybrid_layer_pattern", 0, 1);
        if (!list && !stated) s.refuse("hybrid_layer_pattern", "expected a list of 0 and 1, got nothing");
        if (list) {
          const auto slides = per_layer(s, "hybrid_layer_pattern", *list, layers);
          for (std::size_t i = 0; i < n; ++i)
            kinds.types[i] = slides[i] == 1 ? "sliding_attention" : "full_attention";
        }
        break;
      }
      case HfLayers::cross_attention:
        if (const auto list = s.integers("cross_attention_layers", 0, largest_config_layers)) {
          for (const Index i : *list)
            if (i < layers)
              kinds.types[static_cast<std::size_t>(i)] = "cross_attention";
            else
              s.warn("cross_attention_layers", i, " has no effect: there are ", layers, " layers");
        } else {
          s.refuse("cross_attention_layers", "expected a list of layers, got nothing");
        }
        break;
      case HfLayers::attn_indices:
        if (!stated) {
          auto list = s.integers("attn_layer_indices", 0, layers - 1);
          if (!list) list = s.integers("full_attn_idxs", 0, layers - 1);
          if (!list)
            s.refuse("layer_types", "expected it, attn_layer_indices or full_attn_idxs, got nothing");
          for (std::size_t i = 0; i < n; ++i) kinds.types[i] = "recurrent";
          for (const Index i : *list) kinds.types[static_cast<std::size_t>(i)] = "full_attention";
        }
        break;
      case HfLayers::attn_type_list:
        if (!stated) {
          const auto list = s.integers("attn_type_list", 0, 1);
          if (!list) s.refuse("attn_type_list", "expected a list of 0 and 1, got nothing");
          const auto attends = per_layer(s, "attn_type_list", *list, layers);
          for (std::size_t i = 0; i < n; ++i)
            kinds.types[i] = attends[i] == 1 ? "full_attention" : "linear_attention";
        }
        break;
      case HfLayers::kimi_linear: {
        const HfJson* json = s.find("linear_attn_config");
        if (json == nullptr) s.refuse("linear_attn_config", "expected an object, got nothing");
        HfSection linear(*json, s.where("linear_attn_config"), out_.warnings);
        const auto list = linear.integers("full_attn_layers", 1, layers);
        if (!list) linear.refuse("full_attn_layers", "expected a list of layers from 1, got nothing");
        for (std::size_t i = 0; i < n; ++i) kinds.types[i] = "linear_attention";
        for (const Index i : *list) kinds.types[static_cast<std::size_t>(i - 1)] = "full_attention";
        break;
      }
      case HfLayers::block_types:
        if (const auto list = s.texts("block_types"); list && !list->empty())
          for (std::size_t i = 0; i < n; ++i) kinds.types[i] = (*list)[i % list->size()];
        else
          s.refuse("block_types", "expected a list of names, got nothing");
        break;
      case HfLayers::block_configs:
        if (const HfJson* list = s.find("block_configs")) {
          if (!list->is_array() || static_cast<Index>(list->size()) != layers)
            s.refuse("block_configs", "expected ", layers, " blocks, got ", shown(*list));
          for (std::size_t i = 0; i < n; ++i)
            kinds.types[i] = attends((*list)[i]) ? "full_attention" : "no_op";
        }
        break;
      case HfLayers::theta_list:
      case HfLayers::all: break;
    }
    for (std::size_t i = 0; i < n; ++i)
      if (!attends_with_positions(kinds.types[i])) kinds.rotates[i] = false;
    return kinds;
  }
  static bool attends(const HfJson& block) {
    if (!block.is_object() || !block.contains("attention") || !block["attention"].is_object()) return true;
    const HfJson& attention = block["attention"];
    for (const char* key : {"no_op", "replace_with_linear"})
      if (attention.contains(key) && attention[key] == true) return false;
    return true;
  }

  /// Switches that turn the rotation off or say that it is on.
  bool rotary_is_on(HfSection& s, const std::string& name) {
    for (const std::string_view key :
         {"rotary", "use_rotary_pos_emb", "original_rope", "use_rotary_embedding"})
      if (const auto on = s.boolean(key); on && !*on)
        s.refuse(key, "expected true for a ", name, " model, got false");
    if (const auto mrope = s.boolean("use_mrope");
        mrope && *mrope && !s.has("rope_scaling") && !s.has("rope_parameters"))
      s.refuse("use_mrope", "expected mrope_section beside it, got true alone");
    if (name == "zamba2") {
      if (s.boolean("use_mem_rope").value_or(false)) return true;
      s.warn("use_mem_rope", "false: attention knows no positions");
      return false;
    }
    if (is_one_of(name, {"granitemoehybrid", "moshi", "csm_depth_decoder"})) {
      const auto type = s.text("position_embedding_type");
      if (s.boolean("use_rope").value_or(true) && (!type || *type == "rope")) return true;
      if (type && *type != "nope" && *type != "rope")
        s.refuse("position_embedding_type", "expected rope or nope, got ", shown(*type));
      return false;
    }
    if (const auto kind = s.text("position_embedding_type")) {
      if (*kind == "absolute" && is_one_of(name, {"modernbert", "modernbert_decoder"}))
        s.warn("position_embedding_type", "absolute has no effect: ModernBERT turns");
      else if (!is_one_of(*kind, {"rope", "rotary", "rope_gptj"}))
        s.refuse("position_embedding_type", "expected rope, rotary or rope_gptj for a ", name, " model, got ",
                 shown(*kind));
    }
    for (const std::string_view key : {"rotary_emb_interleaved", "position_embedding_xdrope"})
      if (s.boolean(key).value_or(false)) s.refuse(key, "expected false for a ", name, " model, got true");
    if (const auto kind = s.text("pos_emb"); kind && *kind != "rotary")
      s.refuse("pos_emb", "expected rotary, got ", shown(*kind));
    return true;
  }

  void rope(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const HfJson* nested_config = s.find("attn_config");  // DBRX
    if (nested_config != nullptr) {
      HfSection inner(*nested_config, s.where("attn_config"), out_.warnings);
      if (!inner.has("rope_theta")) inner.refuse("rope_theta", "expected a number, got nothing");
      const double base = *inner.number("rope_theta");
      HfJson flat = s.object();
      flat.erase("attn_config");
      if (flat.contains("rope_theta")) s.warn("rope_theta", "has no effect beside attn_config.rope_theta");
      flat["rope_theta"] = base;
      HfSection merged(flat, s.path(), out_.warnings);
      rope(merged, family, name, stack);
      for (const auto& [key, value] : s.object().items())
        if (merged.is_understood(key)) s.understood(key);
      leftovers(inner, name, false);
      return;
    }
    if (family.two_stacks) return rope_two_stacks(s, family, name, stack);
    const Index layers = layer_count(s, name);
    if (!rotary_is_on(s, name)) {
      for (const char* key : {"rope_theta", "rope_scaling", "rope_parameters", "partial_rotary_factor"})
        if (s.find(key) != nullptr) s.warn(key, "has no effect: rotation is switched off");
      add_stack({.name = stack, .embedding = {}, .layers = alike(layers, NoPositionLayer{})});
      return;
    }
    RopeBase base = rope_base(s, family, name);
    special_widths(s, base);
    const Kinds kinds = kinds_of(s, family, name, layers);
    std::string key;
    const HfJson* parameters = rope_object(s, &key);

    // One rotary layer per kind of layer, made when its first layer asks for it.
    std::vector<std::pair<std::string, LayerPositions>> made;
    StackPositions result{.name = stack, .embedding = {}, .layers = {}};
    const auto thetas = theta_list(s, family, layers);
    const auto partials = s.numbers("partial_rotary_factors");
    if (partials) (void)per_layer(s, "partial_rotary_factors", *partials, layers);
    for (std::size_t i = 0; i < kinds.types.size(); ++i) {
      const std::string& type = kinds.types[i];
      if (!kinds.rotates[i]) {
        result.layers.push_back(
            {.type = named(type), .scheme = NoPositionLayer{}, .temperature = nope_temperature(s, name)});
        continue;
      }
      std::string id = type;
      RopeBase mine = base;
      if (thetas) {
        if ((*thetas)[i] == 0) {
          result.layers.push_back({.type = named(type), .scheme = NoPositionLayer{}});
          continue;
        }
        mine.rope_theta = (*thetas)[i], mine.theta_stated = true;
        id += concat(" ", (*thetas)[i]);
      }
      if (partials) {
        mine.partial = (*partials)[i];
        id += concat(" ", *mine.partial);
      }
      auto found = std::find_if(made.begin(), made.end(), [&](const auto& one) { return one.first == id; });
      if (found == made.end())
        found = made.emplace(made.end(), id, one_layer(s, mine, type, parameters, key));
      result.layers.push_back(found->second);
    }
    if (parameters != nullptr) require_labels_used(s, key, *parameters, kinds.types);
    if (made.empty()) s.warn("layer_types", "no layer of this model turns");
    remarks(s, name);
    add_stack(std::move(result));
  }

  /// Sizes that a family has in words of its own.
  void special_widths(HfSection& s, RopeBase& base) {
    if (base.name == "clvp_encoder") {
      const Index projection = s.integer("projection_dim", 1, largest_config_width).value_or(0);
      base.rotary_dim = (std::max)(projection / (head_count(s, base.name) * 2), Index{32});
      base.partial.reset();
    }
    if (const auto scale = s.number("rope_position_scale"); scale && *scale != 1)  // Phi-3-small
      s.refuse("rope_position_scale", "expected 1, got ", *scale);
  }

  std::optional<std::vector<double>> theta_list(HfSection& s, const HfFamily& family, Index layers) {
    if (family.layers != HfLayers::theta_list) return std::nullopt;
    const char* key = s.has("layer_rope_theta") ? "layer_rope_theta" : "rope_theta";
    const HfJson* json = s.peek(key);
    if (json == nullptr || !json->is_array()) return std::nullopt;
    return per_layer(s, key, *s.numbers(key), layers);
  }

  /// The layer of a kind, from flat or nested parameters and the old spellings of both.
  LayerPositions one_layer(HfSection& s, RopeBase base, const std::string& type, const HfJson* parameters,
                           const std::string& key) {
    LayerPositions layer{.type = named(type), .scheme = NoPositionLayer{}};
    const bool global = type != "sliding_attention";
    const bool gemma4 = is_one_of(base.name, {"gemma4_text", "gemma4", "gemma4_unified_text",
                                              "gemma4_unified", "diffusion_gemma_text", "diffusion_gemma"});
    if (gemma4 && global)
      if (const auto width = s.integer("global_head_dim", 2, largest_config_head_dim)) base.head_dim = *width;
    s.understood("global_head_dim");
    if (base.name == "mimo_v2_flash" && !global)
      if (const auto width = s.integer("swa_head_dim", 2, largest_config_head_dim)) base.head_dim = *width;

    if (parameters != nullptr && is_nested(*parameters)) {
      const std::string label = type.empty() ? "full_attention" : type;
      const auto found = parameters->find(label);
      if (found == parameters->end()) s.refuse(key, "expected an entry for ", label, ", got none");
      if (found->is_null()) return layer;  // NoPE
      HfSection p(*found, s.where(key) + "." + label, out_.warnings);
      base.nested = true;
      if (base.family->layers != HfLayers::theta_list) base.partial.reset();
      layer.scheme = finish(s, rotary_layer(s, base, &p, &layer.temperature), base);
      return layer;
    }
    if (gemma4) s.refuse("rope_parameters", "expected an object per layer type, got none");

    bool scaled = true;
    if (base.family->layers == HfLayers::local_global && !global) {
      scaled = false;
      if (base.name != "olmo3") {
        const auto local = s.number("rope_local_base_freq");
        if (!local) s.warn("rope_local_base_freq", "not stated; 10000, the default of ", base.name);
        base.rope_theta = local.value_or(10000), base.theta_stated = true;
        parameters = nullptr;
      }
    }
    if (base.family->layers == HfLayers::modernbert) {
      const char* name = global ? "global_rope_theta" : "local_rope_theta";
      const double fallback = global ? 160000 : 10000;
      const auto stated = s.number(name);
      if (!stated) s.warn(name, "not stated; ", fallback, ", the default of ", base.name);
      base.rope_theta = stated.value_or(fallback), base.theta_stated = true;
    }
    if (base.family->layers == HfLayers::hybrid_pattern && !global) {
      const auto stated = s.number("swa_rope_theta");
      if (!stated) s.refuse("swa_rope_theta", "expected a number, got nothing");
      base.rope_theta = *stated, base.theta_stated = true;
    }
    if (parameters != nullptr && scaled) {
      HfSection p(*parameters, s.where(key), out_.warnings);
      layer.scheme = finish(s, rotary_layer(s, base, &p, &layer.temperature), base);
    } else {
      layer.scheme = finish(s, rotary_layer(s, base, nullptr), base);
    }
    return layer;
  }

  RotaryLayer finish(HfSection& s, RotaryLayer layer, const RopeBase& base) {
    layer.rotates_values =
        base.name == "clvp_encoder" || (base.name == "roformer" && s.boolean("rotary_value").value_or(false));
    return layer;
  }

  void require_labels_used(HfSection& s, const std::string& key, const HfJson& parameters,
                           const std::vector<std::string>& types) {
    if (!is_nested(parameters)) return;
    for (const auto& [label, value] : parameters.items())
      if (std::find(types.begin(), types.end(), label) == types.end() &&
          !(label == "full_attention" && types.front().empty()))
        s.warn(key, "the entry ", shown(label), " has no effect: no layer is of that type");
  }

  std::optional<AttentionTemperatureConfig> nope_temperature(HfSection& s, const std::string& name) {
    if (!is_one_of(name, {"llama4", "llama4_text"})) return std::nullopt;
    bool on = true;
    if (const HfJson* tuning = s.find("attn_temperature_tuning")) {
      if (!tuning->is_boolean() && !tuning->is_number_integer())
        s.refuse("attn_temperature_tuning", "expected true, false or an integer, got ", shown(*tuning));
      on = *tuning != false && *tuning != 0;
    }
    if (!on) return std::nullopt;
    const auto scale = s.number("attn_scale");
    const auto length = positive(s, "floor_scale");
    const bool first = !warned_temperature_;
    warned_temperature_ = true;
    if (first && (!scale || !length))
      s.warn("attn_temperature_tuning", "not stated in full; attn_scale ", scale.value_or(0.1),
             " and floor_scale ", length.value_or(8192.0), ", the defaults of ", name);
    return AttentionTemperatureConfig{TemperatureRule::llama4, scale.value_or(0.1), length.value_or(8192.0)};
  }

  /// What a family does beside its rotation, beyond its trained length.
  void remarks(HfSection& s, const std::string& name) {
    if (name != "qwen") return;
    const auto trained = s.integer("seq_length", 1, largest_config_length);
    for (const auto& [key, what] : {std::pair{"use_dynamic_ntk", "raises the base in steps"},
                                    std::pair{"use_logn_attn", "multiplies the queries by log(position)"}})
      if (s.boolean(key).value_or(false))
        s.warn(key, "true: beyond seq_length = ", trained.value_or(0), " Qwen ", what,
               ", which is not described; up to there the description is exact");
  }

  void rope_two_stacks(HfSection& s, const HfFamily& family, const std::string& name,
                       const std::string& stack) {
    for (const std::string side : {"encoder", "decoder"}) {
      const Index layers = count(s, side + "_num_hidden_layers");
      const auto heads = s.integer(side + "_num_attention_heads", 1, largest_config_width);
      if (!heads) s.refuse(side + "_num_attention_heads", "expected an integer, got nothing");
      const Index hidden = hidden_size(s, name);
      RopeBase base{&family,
                    name,
                    hidden / *heads,
                    family.rope_theta,
                    false,
                    std::nullopt,
                    family.partial_rotary_factor,
                    std::nullopt,
                    context_length(s)};
      if (base.head_dim < 2 || base.head_dim > largest_config_head_dim)
        s.refuse(side + "_num_attention_heads", "expected heads of 2 to ", largest_config_head_dim,
                 " dimensions, got ", base.head_dim);
      if (const auto theta = s.number("rope_theta")) base.rope_theta = *theta, base.theta_stated = true;
      base.partial = s.number("partial_rotary_factor");
      if (base.partial && !(*base.partial > 0 && *base.partial <= 1))
        s.refuse("partial_rotary_factor", "expected a number in (0, 1], got ", *base.partial);
      // An odd count of rotated dimensions loses one: Moonshine's 0.9.
      const double partial = base.partial.value_or(family.partial_rotary_factor);
      base.rotary_dim = static_cast<Index>(static_cast<double>(base.head_dim) * partial) / 2 * 2;
      if (*base.rotary_dim < 2)
        s.refuse("partial_rotary_factor", "expected at least 2 rotated dimensions, got ", *base.rotary_dim);
      base.partial.reset();
      std::string key;
      const HfJson* parameters = rope_object(s, &key);
      RotaryLayer layer;
      if (parameters != nullptr) {
        HfSection p(*parameters, s.where(key), out_.warnings);
        layer = rotary_layer(s, base, &p);
      } else {
        layer = rotary_layer(s, base, nullptr);
      }
      add_stack({.name = part_name(stack, side), .embedding = {}, .layers = alike(layers, layer)});
    }
  }

  // -- DeepSeek
  // ----------------------------------------------------------------------------------------------------

  void mla(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const Index rotated = s.integer("qk_rope_head_dim", 0, largest_config_head_dim).value_or(-1);
    const auto use_mla = s.boolean("use_mla");
    if (use_mla && !*use_mla) {  // DeepSeek-VL2-tiny: plain attention
      static constexpr HfFamily plain{.names = "", .scheme = HfScheme::rope, .pairing = Pairing::half};
      s.understood("qk_nope_head_dim");
      return rope(s, plain, "llama", stack);
    }
    if (rotated < 2 || rotated % 2 != 0)
      s.refuse("qk_rope_head_dim", "expected an even integer of at least 2, got ",
               s.has("qk_rope_head_dim") ? concat(rotated) : std::string("nothing"));
    const auto kept = s.integer("qk_nope_head_dim", 0, largest_config_head_dim);
    if (!kept) s.refuse("qk_nope_head_dim", "expected an integer, got nothing");
    const Index whole = rotated + *kept;
    if (whole > largest_config_head_dim)
      s.refuse("qk_nope_head_dim", "expected heads of at most ", largest_config_head_dim, " dimensions, got ",
               whole);
    if (const auto other = s.integer("head_dim", 1, largest_config_head_dim);
        other && *other != rotated && *other != whole)
      s.warn("head_dim", *other, " has no effect: heads are qk_nope_head_dim + qk_rope_head_dim = ", whole);
    if (const auto other = s.integer("qk_head_dim", 1, largest_config_head_dim); other && *other != whole)
      s.warn("qk_head_dim", *other, " contradicts qk_nope_head_dim + qk_rope_head_dim = ", whole,
             ", which won");

    HfFamily mine = family;
    if (const auto adjacent = s.boolean("rope_interleave"); adjacent && !*adjacent)
      mine.pairing = Pairing::half;
    const Index layers = layer_count(s, name);
    const auto theta = s.number("rope_theta");
    RopeBase base{&mine,
                  name,
                  whole,
                  theta ? theta : mine.rope_theta,
                  theta.has_value(),
                  std::nullopt,
                  1,
                  rotated,
                  context_length(s)};
    s.understood("original_max_position_embeddings");
    std::string key;
    const HfJson* parameters = rope_object(s, &key);
    const Kinds kinds = kinds_of(s, family, name, layers);
    if (s.boolean("mla_use_nope").value_or(false)) {
      StackPositions result{.name = stack, .embedding = {}, .layers = {}};
      for (const std::string& type : kinds.types)
        result.layers.push_back({.type = named(type), .scheme = NoPositionLayer{}});
      s.warn("mla_use_nope", "true: no layer turns, and qk_rope_head_dim is a width alone");
      return add_stack(std::move(result));
    }
    LayerPositions layer{.type = {}, .scheme = NoPositionLayer{}};
    RotaryLayer turning;
    if (parameters != nullptr) {
      HfSection p(*parameters, s.where(key), out_.warnings);
      turning = rotary_layer(s, base, &p, &layer.temperature);
    } else {
      turning = rotary_layer(s, base, nullptr);
    }
    turning.window = Window::trailing();
    StackPositions result{.name = stack, .embedding = {}, .layers = {}};
    for (std::size_t i = 0; i < kinds.types.size(); ++i) {
      layer.type = named(kinds.types[i]);
      if (kinds.rotates[i])
        layer.scheme = turning;
      else
        layer.scheme = NoPositionLayer{};
      result.layers.push_back(layer);
    }
    add_stack(std::move(result));
  }

  /// Layers without compression turn by rope_theta, unscaled; the others by compress_rope_theta, scaled, with
  /// cos and sin left at magnitude 1.
  void deepseek_v4(HfSection& s, const HfFamily& family, const std::string& name, const std::string& stack) {
    const Index layers = layer_count(s, name), width = head_dim(s, name);
    const auto rotated = s.integer("qk_rope_head_dim", 2, width);
    if (!rotated || *rotated % 2 != 0)
      s.refuse("qk_rope_head_dim", "expected an even integer, got ", rotated.value_or(0));
    auto ratios = s.integers("compress_ratios", 0, largest_config_width);
    const auto types = stated_types(s, layers);
    std::vector<bool> compressed;
    if (types) {
      for (const std::string& type : *types) compressed.push_back(type != "sliding_attention");
    } else if (ratios) {
      for (const Index ratio : per_layer(s, "compress_ratios", *ratios, layers))
        compressed.push_back(ratio > 0);
    } else {
      s.refuse("compress_ratios", "expected a list or layer_types, got nothing");
    }
    RopeBase base{&family,      name, width,    family.rope_theta, false,
                  std::nullopt, 1,    *rotated, context_length(s)};
    std::string key;
    const HfJson* parameters = rope_object(s, &key);
    const bool nested_pair =
        parameters != nullptr && parameters->contains("main") && parameters->contains("compress");
    const auto layer_of = [&](const HfJson* json, const std::string& path, const char* theta_key,
                              double fallback, bool magnitude_one) {
      RopeBase mine = base;
      const auto theta = s.number(theta_key);
      mine.rope_theta = theta.value_or(fallback), mine.theta_stated = theta.has_value();
      if (!theta && (json == nullptr || !json->contains("rope_theta"))) {
        s.warn(theta_key, "not stated; ", fallback, ", the default of ", name);
        mine.theta_stated = true;
      }
      RotaryLayer layer;
      if (json != nullptr) {
        HfSection p(*json, path, out_.warnings);
        if (const auto partial = p.number("partial_rotary_factor");
            partial && static_cast<Index>(*partial * static_cast<double>(width)) != *rotated)
          p.warn("partial_rotary_factor", "contradicts qk_rope_head_dim = ", *rotated, ", which won");
        layer = rotary_layer(s, mine, &p);
      } else {
        layer = rotary_layer(s, mine, nullptr);
      }
      if (YarnConfig* yarn = std::get_if<YarnConfig>(&layer.scaling);
          yarn != nullptr && magnitude_one && !yarn->attention_factor)
        yarn->attention_factor = 1.0;
      layer.window = Window::trailing();
      layer.inverse_on_output = true;
      return layer;
    };
    const HfJson* main_json = nested_pair ? &(*parameters)["main"] : nullptr;
    const HfJson* compress_json = nested_pair ? &(*parameters)["compress"] : parameters;
    const RotaryLayer main_layer = layer_of(main_json, s.where(key) + ".main", "rope_theta", 10000, false);
    const RotaryLayer compress_layer =
        layer_of(compress_json, nested_pair ? s.where(key) + ".compress" : s.where(key),
                 "compress_rope_theta", 160000, true);
    StackPositions result{.name = stack, .embedding = {}, .layers = {}};
    for (const bool one : compressed)
      result.layers.push_back(
          {.type = one ? "compress" : "main", .scheme = one ? compress_layer : main_layer});
    add_stack(std::move(result));
  }

 private:
  bool warned_temperature_ = false;
};

}  // namespace detail
}  // namespace v0
}  // namespace posenc
