#pragma once
// How a model encodes position, layer by layer: what the readers of config.json and of GGUF files return,
// validated, and in terms of posenc's own configurations.

#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "posenc/bias/alibi.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/rotary/attention_temperature.hpp"
#include "posenc/rotary/axes.hpp"
#include "posenc/rotary/frequencies.hpp"
#include "posenc/rotary/pairing.hpp"
#include "posenc/rotary/scaling.hpp"

namespace posenc {
inline namespace v0 {

/// Which coordinate drives which pair.
enum class AxisLayout {
  one,          ///< text: one coordinate
  sections,     ///< mrope_sections: Qwen2-VL, Hunyuan
  interleaved,  ///< mrope_interleaved: Qwen3-VL
  ernie,        ///< ernie_sections
  axial,        ///< axial_frequencies, concatenated: Qwen vision, SAM, Llama 4 vision
  axial_interleaved,
  pixtral,
  dinov3
};

/// A layer that turns its queries and keys.
struct RotaryLayer {
  RotaryConfig config;    ///< head_dim, theta and rotated width
  RotaryScaling scaling;  ///< rope_type and its numbers
  std::optional<Pairing>
      pairing;  ///< where the family, or the file, fixes it; otherwise ask whoever stored the weights
  Window window = Window::leading();      ///< which part of the head turns
  AxisLayout axes = AxisLayout::one;      ///< which coordinate drives which pair
  std::vector<Index> sections = {};       ///< of AxisLayout::sections, interleaved and ernie, in pairs
  std::vector<double> freq_factors = {};  ///< divisors from a GGUF tensor, one per pair, or none
  double softmax_scale = 1.0;             ///< multiplies 1/sqrt(head_dim): DeepSeek's YaRN correction
  std::optional<Index> max_position_embeddings =
      std::nullopt;  ///< the context the model is meant for, where it is stated

  bool negated = false;            ///< turns the other way: nanochat
  bool rotates_values = false;     ///< v as well: CLVP, RoFormer's rotary_value
  bool before_projection = false;  ///< hidden states are turned, then projected: Wav2Vec2-Conformer
  bool inverse_on_output = false;  ///< and the attention output is turned back: DeepSeek V4
  Index axis_count = 2;            ///< of AxisLayout::axial and axial_interleaved
  bool axes_apart = false;         ///< each axis has a part of the head with pairs of its own: Gemma 4 vision
  bool column_first = false;       ///< axis 0 is the column, axis 1 the row
  Position first_position = 0;     ///< what the first row and column count as: 1 in Llama 4's tower

  /// The frequencies for a sequence of seq_len tokens.
  RotaryFrequencies frequencies(Index seq_len) const;
};

/// A layer with a bias per head and distance bucket (T5). posenc describes it; the bias itself is not here
/// yet.
struct RelativeBucketsLayer {
  Index num_heads = 0;        ///< columns of the table
  Index num_buckets = 32;     ///< rows of the table
  Index max_distance = 128;   ///< from here on all distances share the last bucket
  bool bidirectional = true;  ///< half of the buckets are for keys behind the query
};

/// A layer whose attention knows nothing of positions (NoPE), or leaves them to the embeddings.
struct NoPositionLayer {};

/// What one layer, or a run of equal ones, does with position.
struct LayerPositions {
  std::optional<std::string>
      type;  ///< "full_attention", "sliding_attention", ... where not all layers are alike
  /// The scheme with its numbers.
  std::variant<NoPositionLayer, RotaryLayer, AlibiConfig, RelativeBucketsLayer> scheme;
  std::optional<AttentionTemperatureConfig> temperature = std::nullopt;  ///< multiplies the queries
};

/// A table that is added to the embeddings.
struct LearnedEmbedding {
  /// How a token gets its row: by its index, the same plus an offset, as RoBERTa or OPT count, or by its
  /// place in an image.
  enum class Rule { consecutive, offset, roberta, opt, grid };
  Index max_len = 0;              ///< rows of the table, those that `offset` skips included
  Rule rule = Rule::consecutive;  ///< how a token gets its row
  Position offset = 0;            ///< position p looks up row p + offset
  std::optional<Position> padding_idx = std::nullopt;  ///< of Rule::roberta
  Index class_rows = 0;  ///< of max_len: rows of class tokens and the like, in addition to Rule::grid
};

/// One stack of layers: the text model, an encoder, a decoder, a vision tower.
struct StackPositions {
  std::string name;                                                            ///< which part of the model
  std::variant<std::monostate, LearnedEmbedding, SinusoidalConfig> embedding;  ///< what is added at the input
  std::vector<LayerPositions> layers;                                          ///< from the first to the last
  std::optional<std::string> other_scheme =
      std::nullopt;  ///< a scheme that posenc has no type for, in words; `layers` is empty then
};

/// The whole model.
struct ModelPositions {
  std::string model_type;              ///< as the file says it
  std::vector<StackPositions> stacks;  ///< text model, encoder, decoder, vision tower, ...
  std::vector<std::string> warnings;   ///< a sentence each: which of two values won, what was left unused
};

inline RotaryFrequencies RotaryLayer::frequencies(Index seq_len) const {
  const std::span<const Index> parts(sections);
  const auto text = [&] {
    RotaryFrequencies f = scaled_frequencies(config, scaling, seq_len);
    if (!freq_factors.empty()) f = divided_frequencies(std::move(f), freq_factors);
    return negated ? posenc::negated(std::move(f)) : f;
  };
  switch (axes) {
    case AxisLayout::one: return text();
    case AxisLayout::sections: return mrope_sections(text(), parts);
    case AxisLayout::interleaved: return mrope_interleaved(text(), parts);
    case AxisLayout::ernie: return ernie_sections(text(), parts);
    case AxisLayout::axial:
    case AxisLayout::axial_interleaved:
      return axial_frequencies(
          {.head_dim = config.head_dim,
           .axes = axis_count,
           .rope_theta = config.rope_theta,
           .order = axes == AxisLayout::axial ? AxialOrder::concatenated : AxialOrder::interleaved});
    case AxisLayout::pixtral: return pixtral_frequencies(config.head_dim, config.rope_theta);
    case AxisLayout::dinov3: return dinov3_frequencies(config.head_dim, config.rope_theta);
  }
  return text();
}

}  // namespace v0
}  // namespace posenc
