#pragma once
// The weights of a CTranslate2 model as those of examples/transformer: the same layers under other names, and
// linear maps stored (out, in) that are (in, out) there.
//
//   encoder.layers.3.self_attention.qkv.weight   encoder/layer_3/self_attention/linear_0/weight, transposed
//   encoder.layers.3.self_attention_norm.bias    encoder/layer_3/self_attention/layer_norm/beta
//   decoder.layers.3.cross_attention.kv.bias     decoder/layer_3/attention/linear_1/bias
//   output.weight                                decoder/projection/weight, transposed
//
// A decoder-only model has no "decoder." in front of its layers.

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/ctranslate2.hpp"
#include "transformer/matrix.hpp"
#include "transformer/parameters.hpp"

namespace models {

/// A parameter of examples/transformer in a CTranslate2 file.
struct Ctranslate2Weight {
  std::string variable;
  bool transposed = false;
};

/// Where the parameter of this name lies. The name is one of a Transformer or of a LanguageModel.
inline Ctranslate2Weight ctranslate2_weight(std::string_view parameter) {
  using Names = std::pair<std::string_view, std::string_view>;
  constexpr std::array tables = {Names{"embedding.weight", "decoder/embeddings/weight"},
                                 Names{"source_embedding.weight", "encoder/embeddings/weight"}};
  for (const auto& [ours, theirs] : tables)
    if (parameter == ours) return {std::string(theirs), false};

  constexpr std::array modules = {Names{"self_attention.qkv", "self_attention/linear_0"},
                                  Names{"self_attention.out", "self_attention/linear_1"},
                                  Names{"cross_attention.q", "attention/linear_0"},
                                  Names{"cross_attention.kv", "attention/linear_1"},
                                  Names{"cross_attention.out", "attention/linear_2"},
                                  Names{"feed_forward.w1", "ffn/linear_0"},
                                  Names{"feed_forward.w2", "ffn/linear_1"},
                                  Names{"self_attention_norm", "self_attention/layer_norm"},
                                  Names{"cross_attention_norm", "attention/layer_norm"},
                                  Names{"feed_forward_norm", "ffn/layer_norm"},
                                  Names{"norm", "layer_norm"},
                                  Names{"output", "projection"}};
  std::string_view rest = parameter;
  std::string out = "decoder/";
  if (rest.starts_with("encoder.")) out = "encoder/";
  if (rest.starts_with("encoder.") || rest.starts_with("decoder.")) rest.remove_prefix(8);
  if (rest.starts_with("layers.")) {
    rest.remove_prefix(7);
    out += "layer_" + std::string(rest.substr(0, rest.find('.'))) + "/";
    rest.remove_prefix(rest.find('.') + 1);
  }
  const std::string_view module = rest.substr(0, rest.rfind('.'));
  const bool weight = rest.ends_with(".weight"), norm = module.ends_with("norm");
  for (const auto& [ours, theirs] : modules)
    if (module == ours)
      return {out + std::string(theirs) +
                  (norm     ? (weight ? "/gamma" : "/beta")
                   : weight ? "/weight"
                            : "/bias"),
              weight && !norm};
  throw std::logic_error("no variable of CTranslate2 is known for " + std::string(parameter));
}

/// Throws an InputError unless the file has every parameter of the model, in its shape, and nothing besides
/// them, their scales and `others`. No memory is taken for the numbers yet, so this comes before a model of
/// that size is made: model.parameters() may be those of an outline.
template <class Scalar>
void require_ctranslate2_weights(const Ctranslate2File& file,
                                 const transformer::Parameters<Scalar>& parameters,
                                 const std::set<std::string>& others = {}) {
  std::set<std::string> known = others;
  for (const auto& entry : parameters.entries()) {
    const auto [variable, transposed] = ctranslate2_weight(entry.name);
    std::vector<std::int64_t> shape(entry.shape.begin(), entry.shape.end());
    if (transposed) std::reverse(shape.begin(), shape.end());
    file.require(variable, shape);
    known.insert(variable);
    known.insert(variable + "_scale");
  }
  // Aliases could name one variable a thousand times.
  if (static_cast<std::uint64_t>(parameters.count()) > file.stored_bytes())
    file.fail("expected at least " + std::to_string(parameters.count()) + " bytes of weights, it has " +
              std::to_string(file.stored_bytes()));
  for (const auto& [variable, stored] : file.variables())
    if (!known.contains(variable)) file.fail(variable + " has no place in this model");
}

/// Fills every parameter, after require_ctranslate2_weights().
template <class Scalar>
void read_ctranslate2_weights(const Ctranslate2File& file, transformer::Parameters<Scalar>& parameters) {
  for (const auto& entry : parameters.entries()) {
    const auto [variable, transposed] = ctranslate2_weight(entry.name);
    const std::vector<float> stored = file.floats(variable);
    const std::span<Scalar> values = parameters.values(entry);
    if (transposed) {
      using Rows = transformer::Matrix<float>;
      const Eigen::Index in = entry.shape[0], out = entry.shape[1];
      Eigen::Map<transformer::Matrix<Scalar>>(values.data(), in, out) =
          Eigen::Map<const Rows>(stored.data(), out, in).transpose().template cast<Scalar>();
    } else {
      std::transform(stored.begin(), stored.end(), values.begin(),
                     [](float value) { return static_cast<Scalar>(value); });
    }
  }
}

/// How many layers a stack ("encoder" or "decoder") has: those with a feed-forward network, from 0 on.
inline std::int64_t ctranslate2_layers(const Ctranslate2File& file, const std::string& stack) {
  std::int64_t layers = 0;
  while (file.find(stack + "/layer_" + std::to_string(layers) + "/ffn/linear_0/weight") != nullptr)
    if (++layers > 1000) file.fail("more than 1000 layers");
  return layers;
}

/// Extent `axis` of a matrix, held to a sensible range so that no product of extents overflows.
inline std::int64_t ctranslate2_extent(const Ctranslate2File& file, const std::string& variable,
                                       std::size_t axis) {
  const auto& shape = file.require(variable).shape;
  if (shape.size() != 2 || shape[axis] < 1 || shape[axis] > 1'000'000)
    file.fail(variable + ": expected a matrix of at most a million rows and columns, got shape " +
              shape_text(shape));
  return shape[axis];
}

}  // namespace models
