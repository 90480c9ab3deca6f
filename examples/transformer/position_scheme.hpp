#pragma once
// How a model knows the order of its tokens: one choice for the whole model, and the only file that tells the
// schemes apart. Each acts at exactly one of three places, and is absent from the other two:
//
//   none         nowhere: attention sees a bag of words
//   sinusoidal   added to the embeddings            (Vaswani et al. 2017, section 3.5)
//   learned      added to the embeddings            (Gehring et al. 2017)
//   rope         turns queries and keys             (Su et al. 2021)
//   alibi        added to the attention scores      (Press et al. 2022)
//
// The last two speak of the distance of a query and a key in one sentence, so they act in self-attention and
// never between a sentence and its translation. ALiBi is symmetric here: an encoder looks both ways, and the
// decoder's causal mask is a term of its own.

#include <array>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <variant>

#include "posenc/bias/alibi.hpp"
#include "posenc/embedding/learned_positions.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/rotary/frequencies.hpp"
#include "posenc/rotary/pairing.hpp"
#include "posenc/rotary/rotary.hpp"
#include "transformer/matrix.hpp"
#include "transformer/parameters.hpp"

namespace transformer {

enum class PositionScheme { none, sinusoidal, learned, rope, alibi };

inline constexpr std::array all_position_schemes = {PositionScheme::none, PositionScheme::sinusoidal,
                                                    PositionScheme::learned, PositionScheme::rope,
                                                    PositionScheme::alibi};

inline const char* name_of(PositionScheme scheme) {
  switch (scheme) {
    case PositionScheme::none: return "none";
    case PositionScheme::sinusoidal: return "sinusoidal";
    case PositionScheme::learned: return "learned";
    case PositionScheme::rope: return "rope";
    case PositionScheme::alibi: return "alibi";
  }
  return "unknown";
}

/// The scheme of this name. Throws std::invalid_argument with the names that there are.
inline PositionScheme position_scheme(const std::string& name) {
  std::string names;
  for (const PositionScheme scheme : all_position_schemes) {
    if (name == name_of(scheme)) return scheme;
    names += std::string(names.empty() ? "" : ", ") + name_of(scheme);
  }
  throw std::invalid_argument("positions: expected one of " + names + ", got \"" + name + "\"");
}

struct PositionConfig {
  PositionScheme scheme = PositionScheme::none;
  Index d_model = 0, num_heads = 0;
  Index max_positions = 0;                                           ///< rows of the learned table
  double rope_theta = 10000.0;                                       ///< the base of the rotary frequencies
  posenc::Pairing pairing = posenc::Pairing::half;                   ///< of the weights as stored
  std::optional<posenc::RotaryFrequencies> rotary_frequencies = {};  ///< in place of those of rope_theta
  posenc::SinusoidalConfig sinusoidal = {};  ///< how the sinusoids are laid out; d_model is the model's
};

template <class Scalar>
class PositionEncoding {
 public:
  /// The learned scheme adds the table `name`.weight to the parameters, the others nothing.
  PositionEncoding(Parameters<Scalar>& parameters, const std::string& name, const PositionConfig& config) {
    switch (config.scheme) {
      case PositionScheme::none: break;
      case PositionScheme::sinusoidal: {
        posenc::SinusoidalConfig sinusoidal = config.sinusoidal;
        sinusoidal.d_model = config.d_model;
        encoder_ = posenc::Sinusoidal(sinusoidal);
        break;
      }
      case PositionScheme::learned:
        encoder_ = LearnedTable{parameters.add(name + ".weight", config.max_positions, config.d_model,
                                               Init::normal(1.0 / std::sqrt(double(config.d_model))))};
        break;
      case PositionScheme::rope:
        encoder_ = posenc::Rotary(
            config.rotary_frequencies.value_or(posenc::rotary_frequencies(
                {.head_dim = config.d_model / config.num_heads, .rope_theta = config.rope_theta})),
            config.pairing);
        break;
      case PositionScheme::alibi: encoder_ = posenc::Alibi(config.num_heads); break;
    }
  }

  /// x += the encoding of each token's position. x: (tokens, d_model).
  void add(const Pass<Scalar>& pass, const View<Scalar, 2>& x, const posenc::Positions& at) const {
    if (const auto* sinusoidal = std::get_if<posenc::Sinusoidal>(&encoder_)) sinusoidal->add(x, at);
    if (const auto* learned = std::get_if<LearnedTable>(&encoder_)) table(pass, *learned).add(x, at);
  }
  /// The gradient with respect to a learned table; that with respect to x is the identity.
  void add_vjp(const Pass<Scalar>& pass, const View<const Scalar, 2>& dx, const posenc::Positions& at) const {
    if (const auto* learned = std::get_if<LearnedTable>(&encoder_))
      table(pass, *learned).add_vjp(pass.gradient_view(learned->slot), at, dx);
  }

  /// Turns queries and keys in place. x: (tokens, heads, head_dim), any number of heads.
  void rotate(const View<Scalar, 3>& x, const posenc::Positions& at) const {
    if (const auto* rotary = std::get_if<posenc::Rotary>(&encoder_)) rotary->rotate(x, at, posenc::Axes::shd);
  }
  void rotate_vjp(const View<Scalar, 3>& dx, const posenc::Positions& at) const {
    if (const auto* rotary = std::get_if<posenc::Rotary>(&encoder_))
      rotary->rotate_vjp(dx, at, posenc::Axes::shd);
  }

  /// Moves cached keys `delta` positions on. Throws std::invalid_argument where position was added to the
  /// embeddings: such keys can't be moved.
  void shift(const View<Scalar, 3>& keys, posenc::Position delta) const {
    if (std::holds_alternative<posenc::Sinusoidal>(encoder_) ||
        std::holds_alternative<LearnedTable>(encoder_))
      throw std::invalid_argument(
          "positions: cached keys can't be moved where positions are added to embeddings");
    if (const auto* rotary = std::get_if<posenc::Rotary>(&encoder_))
      rotary->shift(keys, delta, posenc::Axes::shd);
  }

  /// scores += bias. scores: (heads, queries, keys). The gradient with respect to the scores is the identity.
  void bias(const View<Scalar, 3>& scores, const posenc::Positions& q_at,
            const posenc::Positions& k_at) const {
    if (const auto* alibi = std::get_if<posenc::Alibi>(&encoder_)) alibi->add(scores, q_at, k_at);
  }

 private:
  struct LearnedTable {
    Slot slot;
  };

  static posenc::LearnedPositions<Scalar> table(const Pass<Scalar>& pass, const LearnedTable& learned) {
    return posenc::LearnedPositions<Scalar>(pass.parameters.view(learned.slot));
  }

  std::variant<std::monostate, posenc::Sinusoidal, LearnedTable, posenc::Rotary, posenc::Alibi> encoder_;
};

}  // namespace transformer
