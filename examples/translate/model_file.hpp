#pragma once
// A trained model as one safetensors file: the weights by name, and in the metadata its configuration and
// vocabulary.

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "models/byte_reader.hpp"
#include "models/error.hpp"
#include "models/safetensors.hpp"
#include "transformer/transformer.hpp"
#include "translate/tokenizer.hpp"

namespace translate {

using models::InputError;
using models::NamedTensor;
using models::Safetensors;
using models::StoredAs;
using transformer::Index;

struct Model {
  transformer::Transformer<float> network;
  Vocabulary vocabulary;
};

namespace detail {

inline constexpr const char* model_format = "posenc-translate 1";

inline nlohmann::ordered_json to_json(const transformer::TransformerConfig& config) {
  return {{"vocab_size", config.vocab_size},
          {"d_model", config.d_model},
          {"num_heads", config.num_heads},
          {"num_encoder_layers", config.num_encoder_layers},
          {"num_decoder_layers", config.num_decoder_layers},
          {"d_ff", config.d_ff},
          {"positions", transformer::name_of(config.positions)},
          {"max_positions", config.max_positions},
          {"norm_placement", config.norm_placement == transformer::NormPlacement::pre ? "pre" : "post"}};
}

/// The rest of a configuration is as the program makes it. Every number is held to a sensible range.
inline transformer::TransformerConfig config_from_json(const nlohmann::json& json) {
  if (!json.is_object()) throw InputError("its configuration is not a JSON object");
  const auto integer = [&](const char* key, Index least, Index most) {
    const auto found = json.find(key);
    const bool good = found != json.end() && found->is_number_integer() && *found >= least && *found <= most;
    if (!good)
      throw InputError("its configuration: expected " + std::string(key) + " from " + std::to_string(least) +
                       " to " + std::to_string(most));
    return found->get<Index>();
  };
  const auto text = [&](const char* key) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string())
      throw InputError("its configuration lacks " + std::string(key));
    return found->get<std::string>();
  };
  transformer::TransformerConfig config;
  config.vocab_size = integer("vocab_size", static_cast<Index>(Vocabulary::special_count), 1 << 20);
  config.d_model = integer("d_model", 1, 4096);
  config.num_heads = integer("num_heads", 1, 256);
  config.num_encoder_layers = integer("num_encoder_layers", 1, 64);
  config.num_decoder_layers = integer("num_decoder_layers", 1, 64);
  config.d_ff = integer("d_ff", 1, 65536);
  config.max_positions = integer("max_positions", 1, 1 << 20);
  try {
    config.positions = transformer::position_scheme(text("positions"));
  } catch (const std::invalid_argument& error) {
    throw InputError("its configuration: " + std::string(error.what()));
  }
  const std::string placement = text("norm_placement");
  if (placement != "pre" && placement != "post")
    throw InputError("its configuration: expected norm_placement pre or post");
  config.norm_placement =
      placement == "pre" ? transformer::NormPlacement::pre : transformer::NormPlacement::post;
  return config;
}

inline Vocabulary vocabulary_from_json(const nlohmann::json& json) {
  if (!json.is_array()) throw InputError("its vocabulary is not a JSON list");
  std::vector<std::string> words;
  for (const auto& word : json) {
    if (!word.is_string()) throw InputError("its vocabulary holds something else than words");
    words.push_back(word.get<std::string>());
  }
  return Vocabulary(std::move(words));
}

}  // namespace detail

inline void save_model(const std::string& path, const Model& model, StoredAs stored_as = StoredAs::f16) {
  Safetensors content;
  content.metadata["format"] = detail::model_format;
  content.metadata["config"] = detail::to_json(model.network.config()).dump();
  content.metadata["vocabulary"] = nlohmann::json(model.vocabulary.words()).dump();
  const auto& parameters = model.network.parameters();
  for (const auto& entry : parameters.entries()) {
    const auto values = parameters.values(entry);
    content.tensors.push_back(
        {entry.name, {entry.shape.begin(), entry.shape.end()}, {values.begin(), values.end()}});
  }
  models::write_safetensors(path, content, stored_as);
}

/// Reads a file that save_model() wrote, of either number format. Anything else is an InputError of one line.
inline Model load_model(const std::string& path) {
  const Safetensors content = models::read_safetensors(path);
  const auto fail = [&](const std::string& what) {
    throw InputError(path + ": not a model of this program: " + what);
  };
  const auto metadata = [&](const char* key) {
    const auto found = content.metadata.find(key);
    if (found == content.metadata.end()) fail("its metadata lacks \"" + std::string(key) + "\"");
    return found->second;
  };
  if (metadata("format") != detail::model_format)
    fail("its format is not \"" + std::string(detail::model_format) + "\"");
  try {
    const auto config = detail::config_from_json(nlohmann::json::parse(metadata("config"), nullptr, false));
    Vocabulary vocabulary =
        detail::vocabulary_from_json(nlohmann::json::parse(metadata("vocabulary"), nullptr, false));
    if (static_cast<std::size_t>(config.vocab_size) != vocabulary.size())
      fail("vocab_size is " + std::to_string(config.vocab_size) + ", the vocabulary has " +
           std::to_string(vocabulary.size()) + " words");

    // The file must hold as many numbers as the model needs before the model is made.
    double needed = 0;
    for (const auto& part : transformer::parameter_counts(config)) needed += static_cast<double>(part.count);
    double present = 0;
    for (const NamedTensor& tensor : content.tensors) present += static_cast<double>(tensor.values.size());
    if (needed != present)
      fail("its configuration needs " + std::to_string(static_cast<std::int64_t>(needed)) +
           " numbers, it holds " + std::to_string(static_cast<std::int64_t>(present)));

    Model model{transformer::Transformer<float>(config), std::move(vocabulary)};
    auto& parameters = model.network.parameters();
    for (const auto& entry : parameters.entries()) {
      const auto found = std::find_if(content.tensors.begin(), content.tensors.end(),
                                      [&](const NamedTensor& tensor) { return tensor.name == entry.name; });
      if (found == content.tensors.end()) fail("it lacks tensor \"" + entry.name + "\"");
      const std::vector<std::int64_t> shape(entry.shape.begin(), entry.shape.end());
      if (found->shape != shape)
        fail("tensor \"" + entry.name + "\": expected shape " + models::shape_text(shape) + ", got " +
             models::shape_text(found->shape));
      std::copy(found->values.begin(), found->values.end(), parameters.values(entry).begin());
    }
    return model;
  } catch (const InputError& error) {
    const std::string what = error.what();
    if (what.starts_with(path)) throw;
    throw InputError(path + ": not a model of this program: " + what);
  } catch (const std::invalid_argument& error) {  // the parts of the configuration don't fit each other
    throw InputError(path + ": not a model of this program: " + error.what());
  }
}

}  // namespace translate
