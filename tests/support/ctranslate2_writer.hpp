#pragma once
// Writes CTranslate2 files of versions 2 and 6, also broken ones, for tests and fuzzing.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "models/ctranslate2_weights.hpp"
#include "transformer/language_model.hpp"
#include "transformer/transformer.hpp"

namespace posenc_test {

class Ctranslate2Writer {
 public:
  explicit Ctranslate2Writer(std::uint32_t version, const std::string& spec = "TransformerBase")
      : version_(version) {
    number(version);
    text(spec);
    number(std::uint32_t{2});
    count_at_ = bytes_.size();
    number(std::uint32_t{0});
  }

  template <class T>
  void number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
  }
  void text(const std::string& value) {
    number(static_cast<std::uint16_t>(value.size() + 1));
    bytes_.insert(bytes_.end(), value.begin(), value.end());
    bytes_.push_back(0);
  }

  /// A variable of float, std::int8_t, std::int16_t, std::int32_t, or Eigen::half.
  template <class T>
  void variable(const std::string& name, const std::vector<std::uint32_t>& shape,
                const std::vector<T>& values) {
    constexpr int code = std::is_same_v<T, float>          ? 0
                         : std::is_same_v<T, std::int8_t>  ? 1
                         : std::is_same_v<T, std::int16_t> ? 2
                         : std::is_same_v<T, std::int32_t> ? 3
                                                           : 4;
    text(name);
    number(static_cast<std::uint8_t>(shape.size()));
    for (const std::uint32_t length : shape) number(length);
    number(static_cast<std::uint8_t>(version_ == 2 ? sizeof(T) : code));
    number(static_cast<std::uint32_t>(version_ == 2 ? values.size() : values.size() * sizeof(T)));
    for (const T& value : values) number(value);
    ++count_;
  }

  void alias(const std::string& name, const std::string& of) { aliases_.emplace_back(name, of); }

  /// The file. `claimed` in place of the number of variables.
  std::vector<unsigned char> file(std::uint32_t claimed = std::numeric_limits<std::uint32_t>::max()) const {
    Ctranslate2Writer whole = *this;
    const std::uint32_t count = claimed == std::numeric_limits<std::uint32_t>::max() ? count_ : claimed;
    std::memcpy(whole.bytes_.data() + count_at_, &count, sizeof(count));
    if (version_ == 6) {
      whole.number(static_cast<std::uint32_t>(aliases_.size()));
      for (const auto& [name, of] : aliases_) whole.text(name), whole.text(of);
    }
    return whole.bytes_;
  }

 private:
  std::uint32_t version_, count_ = 0;
  std::size_t count_at_ = 0;
  std::vector<unsigned char> bytes_;
  std::vector<std::pair<std::string, std::string>> aliases_;
};

/// A configuration that models/transliterator.hpp finds again in its file.
inline transformer::TransformerConfig tiny_transliterator() {
  return {.vocab_size = 6,
          .d_model = 8,
          .num_heads = 8,
          .num_encoder_layers = 1,
          .num_decoder_layers = 1,
          .d_ff = 3,
          .norm_placement = transformer::NormPlacement::pre,
          .dropout = 0.0,
          .attention_bias = true,
          .source_vocab_size = 5,
          .source_eos = false,
          .output = {.tied = false, .bias = true}};
}

enum class Stored { as_float32, as_int8 };

/// The parameters of a model under their names in the file, in its layout, but for one.
inline void write_weights(Ctranslate2Writer& writer, const transformer::Parameters<float>& parameters,
                          const std::string& left_out = "", Stored how = Stored::as_float32) {
  for (const auto& entry : parameters.entries()) {
    const auto [variable, transposed] = models::ctranslate2_weight(entry.name);
    if (variable == left_out) continue;
    std::vector<std::uint32_t> shape(entry.shape.begin(), entry.shape.end());
    const auto values = parameters.values(entry);
    std::vector<float> stored(values.begin(), values.end());
    if (transposed) {
      std::swap(shape[0], shape[1]);
      for (std::uint32_t row = 0; row < shape[0]; ++row)
        for (std::uint32_t column = 0; column < shape[1]; ++column)
          stored[row * shape[1] + column] = values[column * shape[0] + row];
    }
    if (how == Stored::as_float32 || shape.size() == 1) {
      writer.variable(variable, shape, stored);
      continue;
    }
    std::vector<std::int8_t> steps;
    for (const float value : stored)
      steps.push_back(static_cast<std::int8_t>(std::clamp(value, -2.0f, 2.0f) * 60));
    writer.variable(variable, shape, steps);
    writer.variable(variable + "_scale", {shape[0]}, std::vector<float>(shape[0], 60.0f));
  }
}

/// A decoder-only model as models/opennmt_lm.hpp reads it, in int8.
inline std::vector<unsigned char> tiny_opennmt_lm() {
  transformer::LanguageModelConfig config{
      .vocab_size = 5, .d_model = 4, .num_heads = 2, .num_layers = 1, .d_ff = 3};
  config.positions = transformer::PositionScheme::sinusoidal;
  config.activation = transformer::Activation::relu;
  config.norm = transformer::Norm::layer_norm;
  config.attention_bias = true;
  config.output = {.tied = false, .bias = true};
  const transformer::LanguageModel<float> model(config);
  Ctranslate2Writer writer(6, "TransformerDecoderSpec");
  writer.variable<std::int16_t>("decoder/num_heads", {}, {2});
  writer.variable<std::int8_t>("decoder/pre_norm", {}, {1});
  write_weights(writer, model.parameters(), "", Stored::as_int8);
  return writer.file();
}

}  // namespace posenc_test
