#pragma once
// A Llama (Touvron et al. 2023) from a file of weights: where each tensor lies, and the LanguageModel that
// they make. Linear maps are stored (out, in), as PyTorch has them; examples/transformer has them (in, out),
// with queries, keys and values side by side, and the two maps of SwiGLU as well.
//
//   q, k   their rows are in the order of the file's pairing: adjacent (Meta, llama2.c) or half (Hugging
//   Face).
//          Nothing is permuted here: the model rotates the pairs that it is told.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/byte_reader.hpp"
#include "models/error.hpp"
#include "transformer/language_model.hpp"
#include "transformer/matrix.hpp"

namespace models {

/// A tensor of a file that stays mapped. The number of bytes has been checked.
struct LlamaTensor {
  std::string name;  // for messages
  NumberType type = NumberType::f32;
  Bytes bytes;
};

struct LlamaLayer {
  LlamaTensor attention_norm, q, k, v, o;
  LlamaTensor feed_forward_norm, gate, up, down;
};

struct LlamaWeights {
  std::string path;
  transformer::LanguageModelConfig config;
  transformer::Index context = 0;  ///< the longest text that it was trained on, in tokens
  LlamaTensor embedding, norm;
  std::optional<LlamaTensor> output;  ///< unless it is tied to the embedding
  std::vector<LlamaLayer> layers;
};

/// The model, with numbers of either type. Throws an InputError where one of them is not finite.
template <class Scalar>
transformer::LanguageModel<Scalar> make_llama(const LlamaWeights& weights) {
  using transformer::Index;
  using Rows = Eigen::Map<const transformer::Matrix<float>>;
  transformer::LanguageModel<Scalar> model(weights.config);
  std::vector<float> numbers;
  const auto read = [&](const LlamaTensor& tensor, Index rows, Index columns) {
    numbers.resize(static_cast<std::size_t>(rows * columns));
    if (!to_floats(tensor.bytes, tensor.type, numbers))
      throw InputError(weights.path + ": " + printable(tensor.name) + " holds a number that is not finite");
    return Rows(numbers.data(), rows, columns);
  };
  // `tensors` in the parameter of this name, as they are or transposed and side by side.
  const auto fill = [&](const std::string& name, bool transposed,
                        std::initializer_list<const LlamaTensor*> tensors) {
    auto& parameters = model.parameters();
    const auto& entry = parameters.entry(name);
    const bool vector = entry.shape.size() == 1;
    const Index rows = vector ? 1 : entry.shape[0], columns = entry.shape.back();
    Eigen::Map<transformer::Matrix<Scalar>> to(parameters.values(entry).data(), rows, columns);
    Index column = 0;
    for (const LlamaTensor* tensor : tensors) {
      const auto count = static_cast<Index>(tensor->bytes.size() / width_of(tensor->type));
      const Index wide = count / rows;
      if (transposed)
        to.middleCols(column, wide) = read(*tensor, wide, rows).transpose().template cast<Scalar>();
      else
        to = read(*tensor, rows, columns).template cast<Scalar>();
      column += wide;
    }
    if (column != columns) throw InputError(weights.path + ": " + name + " has the wrong size");
  };
  fill("embedding.weight", false, {&weights.embedding});
  fill("norm.weight", false, {&weights.norm});
  if (weights.output) fill("output.weight", true, {&*weights.output});
  for (std::size_t l = 0; l < weights.layers.size(); ++l) {
    const LlamaLayer& layer = weights.layers[l];
    const std::string name = "layers." + std::to_string(l) + ".";
    fill(name + "self_attention_norm.weight", false, {&layer.attention_norm});
    fill(name + "self_attention.qkv.weight", true, {&layer.q, &layer.k, &layer.v});
    fill(name + "self_attention.out.weight", true, {&layer.o});
    fill(name + "feed_forward_norm.weight", false, {&layer.feed_forward_norm});
    fill(name + "feed_forward.w1.weight", true, {&layer.gate, &layer.up});
    fill(name + "feed_forward.w2.weight", true, {&layer.down});
  }
  return model;
}

}  // namespace models
