#pragma once
// Which two dimensions of a head turn together, and which part of the head turns at all. Both are properties
// of the weights as stored, not of the model's name: the same Llama is `adjacent` in Meta's files and `half`
// in Hugging Face's.

#include "posenc/core/error.hpp"
#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {

/// The partner of a dimension within the rotated width d. Mixing the two up gives fluent nonsense, so there
/// is no default.
enum class Pairing {
  half,              ///< (i, i + d/2): GPT-NeoX, Llama in Hugging Face's layout; "rotate_half", ggml NEOX
  adjacent,          ///< (2i, 2i + 1): RoFormer, GPT-J, Llama in Meta's layout; "interleaved", ggml NORM
  adjacent_to_half,  ///< reads (2i, 2i + 1), writes (i, i + d/2): DeepSeek V3. Scores are those of `adjacent`
  adjacent_mismatched  ///< V-JEPA 2: (2i, 2i + 1), each dimension n at the angle of pair n mod d/2. Not a
                       ///< rotation
};

/// Where the rotated width lies in the head, when it is not all of it.
class Window {
 public:
  /// Dimensions 0 .. d-1, as nearly all partially rotated models have it.
  static constexpr Window leading() { return Window(0); }
  /// The last d dimensions: DeepSeek's decoupled heads.
  static constexpr Window trailing() { return Window(-1); }
  /// Dimensions first .. first + d - 1.
  static Window starting_at(Index first) {
    if (first < 0) detail::invalid("Window::starting_at: expected at least 0, got ", first);
    return Window(first);
  }

  /// The first rotated dimension. Throws std::invalid_argument where the window leaves the head.
  Index first(Index head_dim, Index rotary_dim) const {
    const bool fits = rotary_dim >= 0 && rotary_dim <= head_dim;
    const Index start = first_ < 0 ? (fits ? head_dim - rotary_dim : 0) : first_;
    if (!fits || start > head_dim - rotary_dim)
      detail::invalid("window: expected ", rotary_dim, " rotated dimensions inside head_dim = ", head_dim,
                      ", got them from ", start, " on");
    return start;
  }

 private:
  constexpr explicit Window(Index first) : first_(first) {}
  Index first_;
};

}  // namespace v0
}  // namespace posenc
