#pragma once
// A Vision Transformer (Dosovitskiy et al. 2021) for small grey images, from a safetensors file with the
// names of the vit-pytorch package:
//
//   x = [class token, patches W + b] + P     P: learned positions, the class token at position 0
//   layers, pre-norm, ReLU                   heads wider than d_model / num_heads
//   logits = norm(x of the class token) W' + b'

#include <cmath>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "models/named_weights.hpp"
#include "transformer/layers.hpp"
#include "transformer/linear.hpp"
#include "transformer/position_scheme.hpp"
#include "transformer/sequences.hpp"

namespace models {

struct VisionConfig {
  transformer::Index image = 28, patch = 4, num_heads = 4;
  double mean = 0.1307, deviation = 0.3081;  ///< of the pixels, from 0 to 1
  double norm_eps = 1e-5;
};

template <class Scalar>
class VisionTransformer {
 public:
  using Index = transformer::Index;
  template <class T>
  using View = transformer::View<T, 2>;

  /// Takes everything that the model needs out of the file. Throws an InputError where that is not there.
  VisionTransformer(NamedWeights weights, const VisionConfig& config)
      : config_(config),
        d_model_(weights.extent("to_patch_embedding.1.weight", 0)),
        project_(parameters_, "patches", config.patch * config.patch, d_model_, true),
        class_token_(parameters_.add("class_token", d_model_, transformer::Init::constant(0))),
        positions_(parameters_, "positions",
                   {.scheme = transformer::PositionScheme::learned,
                    .d_model = d_model_,
                    .num_heads = config.num_heads,
                    .max_positions = tokens_per_image()}),
        norm_(parameters_, "norm", d_model_, transformer::Norm::layer_norm, config.norm_eps),
        head_(parameters_, "head", d_model_, weights.extent("mlp_head.1.weight", 0), true) {
    const transformer::LayerConfig layer = layer_config(weights);
    while (weights.contains(theirs(layers_.size()) + "0.norm.weight")) {
      if (layers_.size() == 1000) weights.fail("more than 1000 layers");
      layers_.emplace_back(parameters_, ours(layers_.size()), layer, positions_);
    }
    weights.require_numbers(parameters_.count() - bias_of_qkv(layer) * std::ssize(layers_));
    parameters_.initialize();
    read(weights);
  }

  Index tokens_per_image() const {
    const Index side = config_.image / config_.patch;
    return 1 + side * side;
  }
  const transformer::Parameters<Scalar>& parameters() const { return parameters_; }

  /// The tokens of images, (images x tokens_per_image, d_model): class token and patches, with positions.
  /// pixels: rows of bytes, one image after another.
  View<Scalar> embed(transformer::Pass<Scalar>& pass, std::span<const std::uint8_t> pixels,
                     const posenc::Positions& at) const {
    const Index area = config_.image * config_.image, images = std::ssize(pixels) / area;
    const Index side = config_.image / config_.patch, patches = side * side, p = config_.patch;
    const View<Scalar> cut = pass.workspace.matrix(images * patches, p * p);
    for (Index i = 0; i < images; ++i)
      for (Index n = 0; n < patches; ++n)
        for (Index pixel = 0; pixel < p * p; ++pixel) {
          const Index row = n / side * p + pixel / p, column = n % side * p + pixel % p;
          const double grey =
              pixels[static_cast<std::size_t>(i * area + row * config_.image + column)] / 255.0;
          cut(i * patches + n, pixel) = static_cast<Scalar>((grey - config_.mean) / config_.deviation);
        }
    const View<Scalar> projected = project_.forward(pass, cut);
    const View<Scalar> x = pass.workspace.matrix(images * (patches + 1), d_model_);
    for (Index i = 0; i < images; ++i) {
      transformer::matrix(x).row(i * (patches + 1)) = pass.weight(class_token_);
      transformer::matrix(x).middleRows(i * (patches + 1) + 1, patches) =
          transformer::matrix(projected).middleRows(i * patches, patches);
    }
    positions_.add(pass, x, at);
    return x;
  }

  /// (images, classes)
  transformer::Matrix<Scalar> logits(std::span<const std::uint8_t> pixels) const {
    const Index area = config_.image * config_.image;
    if (std::ssize(pixels) % area != 0) throw std::invalid_argument("pixels: expected whole images");
    transformer::Workspace<Scalar> workspace;
    transformer::Pass<Scalar> pass{.parameters = parameters_, .workspace = workspace};
    transformer::Sequences images;  // their lengths are what counts
    const transformer::Tokens tokens(static_cast<std::size_t>(tokens_per_image()), 0);
    for (Index i = 0; i < std::ssize(pixels) / area; ++i) images.append(tokens);
    const auto at = images.positions();
    View<Scalar> x = embed(pass, pixels, at);
    for (const auto& layer : layers_) {
      typename transformer::EncoderLayer<Scalar>::Saved unused;
      x = layer.forward(pass, x, images, at, unused);
    }
    const View<Scalar> first = workspace.matrix(images.count(), d_model_);
    for (Index i = 0; i < images.count(); ++i)
      transformer::matrix(first).row(i) = transformer::matrix(x).row(images.start(i));
    typename transformer::Normalization<Scalar>::Saved unused;
    return transformer::matrix(head_.forward(pass, norm_.forward(pass, first, unused)));
  }

 private:
  static std::string ours(std::size_t layer) { return "layers." + std::to_string(layer); }
  static std::string theirs(std::size_t layer) { return "transformer.layers." + std::to_string(layer) + "."; }

  transformer::LayerConfig layer_config(const NamedWeights& weights) const {
    const Index qkv = weights.extent(theirs(0) + "0.fn.to_qkv.weight", 0);
    if (config_.num_heads < 1 || qkv % (3 * config_.num_heads) != 0)
      weights.fail("expected a number of heads that divides " + std::to_string(qkv) + " / 3");
    return {.attention = {.d_model = d_model_,
                          .num_heads = config_.num_heads,
                          .num_kv_heads = config_.num_heads,
                          .bias = true,
                          .head_width = qkv / (3 * config_.num_heads)},
            .d_ff = weights.extent(theirs(0) + "1.fn.net.0.weight", 0),
            .activation = transformer::Activation::relu,
            .norm = transformer::Norm::layer_norm,
            .placement = transformer::NormPlacement::pre,
            .norm_eps = config_.norm_eps};
  }
  static Index bias_of_qkv(const transformer::LayerConfig& layer) { return 3 * layer.attention.inner(); }

  void read(NamedWeights& weights) {
    weights.fill_linear(parameters_, "patches", "to_patch_embedding.1");
    copy("class_token", weights.take("cls_token", {1, 1, d_model_}));
    copy("positions.weight", weights.take("pos_embedding", {1, tokens_per_image(), d_model_}));
    for (std::size_t l = 0; l < layers_.size(); ++l) {
      const std::string to = ours(l), attention = theirs(l) + "0.", feed_forward = theirs(l) + "1.";
      weights.fill_norm(parameters_, to + ".self_attention_norm", attention + "norm");
      // Queries, keys and values have no bias in the file: theirs stays zero.
      weights.fill_linear(parameters_, to + ".self_attention.qkv", attention + "fn.to_qkv");
      weights.fill_linear(parameters_, to + ".self_attention.out", attention + "fn.to_out.0");
      weights.fill_norm(parameters_, to + ".feed_forward_norm", feed_forward + "norm");
      weights.fill_linear(parameters_, to + ".feed_forward.w1", feed_forward + "fn.net.0");
      weights.fill_linear(parameters_, to + ".feed_forward.w2", feed_forward + "fn.net.3");
    }
    weights.fill_norm(parameters_, "norm", "mlp_head.0");
    weights.fill_linear(parameters_, "head", "mlp_head.1");
    weights.require_all_used();
  }
  void copy(const std::string& parameter, const std::vector<float>& values) {
    const auto to = parameters_.values(parameters_.entry(parameter));
    for (std::size_t n = 0; n < values.size(); ++n) to[n] = static_cast<Scalar>(values[n]);
  }

  VisionConfig config_;
  Index d_model_;
  transformer::Parameters<Scalar> parameters_;
  transformer::Linear<Scalar> project_;
  transformer::Slot class_token_;
  transformer::PositionEncoding<Scalar> positions_;
  transformer::Normalization<Scalar> norm_;
  transformer::Linear<Scalar> head_;
  std::vector<transformer::EncoderLayer<Scalar>> layers_;
};

}  // namespace models
