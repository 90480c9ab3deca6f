#pragma once
// The input layer of a transformer ("Attention Is All You Need", sections 3.4 and 5.4): token embedding +
// position encoding, then dropout. The scheme is chosen at run time by its name, as a config file has it.
//
// Only schemes that are added to the embeddings belong here. Rotary embeddings turn queries and keys, and
// ALiBi is added to attention scores: those two act inside every attention layer (posenc/rotary,
// posenc/bias).

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "posenc/core/mistakes.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"
#include "posenc/embedding/dropout.hpp"
#include "posenc/embedding/learned_positions.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/embedding/token_embedding.hpp"

namespace posenc {
inline namespace v0 {

/// The choices of an input layer, in the words of a config file.
struct TransformerEmbeddingConfig {
  std::string position_embedding_type = {};  ///< "sinusoidal", "learned" or "none"; there is no default
  double dropout = 0.0;                      ///< the probability of an element to be zeroed in training
  SinusoidalConfig sinusoidal = {};  ///< for "sinusoidal"; d_model is the token table's where it is left out
};

/// The layer: dropout(scale E[ids] + PE(at)), computed in one pass and rounded once. An immutable value.
template <scalar_type Scalar>
class TransformerEmbedding {
 public:
  /// "sinusoidal" or "none". Throws std::invalid_argument for any other name, with the ones that are valid.
  TransformerEmbedding(TokenEmbedding<Scalar> token, const TransformerEmbeddingConfig& config)
      : token_(std::move(token)), dropout_(config.dropout) {
    const std::string& name = config.position_embedding_type;
    if (name == "learned")
      detail::invalid(
          "position_embedding_type: \"learned\" needs its table: pass a LearnedPositions as well");
    if (name == "sinusoidal")
      position_ = Sinusoidal(with_width(config.sinusoidal));
    else if (name != "none")
      refuse(name);
  }

  /// "learned", with its table.
  TransformerEmbedding(TokenEmbedding<Scalar> token, LearnedPositions<Scalar> positions,
                       const TransformerEmbeddingConfig& config)
      : token_(std::move(token)), dropout_(config.dropout) {
    const std::string& name = config.position_embedding_type;
    if (name == "sinusoidal" || name == "none")
      detail::invalid("position_embedding_type: \"", name,
                      "\" takes no LearnedPositions, but one was passed");
    if (name != "learned") refuse(name);
    if (positions.d_model() != token_.d_model())
      detail::invalid("positions: expected a table of width ", token_.d_model(), " (d_model), got ",
                      positions.d_model());
    position_ = std::move(positions);
  }

  /// The width of an embedding.
  Index d_model() const { return token_.d_model(); }
  /// The token part, for a tied output head.
  const TokenEmbedding<Scalar>& token() const { return token_; }

  /// x = dropout(scale E[ids] + PE(at)). ids: (seq) or (batch, seq); x: ids' shape and d_model; `at` has seq
  /// positions, shared or per row. Mode::eval needs no seed. Throws as TokenEmbedding::embed and the scheme's
  /// add do, before anything is written.
  template <writable_tensor X, integer_tensor Ids>
  void embed(X&& x, const Ids& ids, const Positions& at, Mode mode = Mode::eval,
             std::uint64_t seed = 0) const {
    embed(Eigen::DefaultDevice(), x, ids, at, mode, seed);
  }
  /// The same on a device.
  template <device D, writable_tensor X, integer_tensor Ids>
  void embed(const D& device, X&& x, const Ids& ids, const Positions& at, Mode mode = Mode::eval,
             std::uint64_t seed = 0) const {
    using S = scalar_of<X>;
    static_assert(std::same_as<compute_t<S>, compute_t<Scalar>>,
                  "posenc: a table of double goes with tensors of double, the others with each other");
    const auto tokens = detail::integer_view(ids);
    const auto result = detail::output_view("x", x);
    token_.require_fit(tokens, result, "x");
    const View<S, 3> out = detail::as_bsd(result);
    require_positions(at, out.extent(0), out.extent(1));
    token_.require_apart("x", out);
    if (const auto* learned = std::get_if<LearnedPositions<Scalar>>(&position_))
      learned->require_apart("x", out);
    embed_views(device, out, tokens, at, mode == Mode::train && dropout_.p() > 0, seed);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::out, detail::Role::ids>, Args...> embed(Args&&...) const;

  /// The gradient with respect to the token table, for "sinusoidal" and "none": d_token += ..., as in
  /// TokenEmbedding::embed_vjp. dy: as x; it is overwritten with its masked self under the same mode and seed
  /// as the forward call.
  template <writable_tensor Dt, integer_tensor Ids, writable_tensor Dy>
  void embed_vjp(Dt&& d_token, const Ids& ids, const Positions& at, Dy&& dy, Mode mode = Mode::eval,
                 std::uint64_t seed = 0) const {
    embed_vjp(Eigen::DefaultDevice(), d_token, ids, at, dy, mode, seed);
  }
  /// The same on a device.
  template <device D, writable_tensor Dt, integer_tensor Ids, writable_tensor Dy>
  void embed_vjp(const D& device, Dt&& d_token, const Ids& ids, const Positions& at, Dy&& dy,
                 Mode mode = Mode::eval, std::uint64_t seed = 0) const {
    if (std::holds_alternative<LearnedPositions<Scalar>>(position_))
      detail::invalid("embed_vjp: \"learned\" has a second table: expected d_positions as well");
    require_gradient(d_token, ids, at, dy);
    dropout_.apply_vjp(device, dy, mode, seed);
    token_.embed_vjp(device, d_token, ids, dy);
  }

  /// The same for "learned": also d_positions[at] += ..., as in LearnedPositions::add_vjp.
  template <writable_tensor Dt, writable_tensor Dp, integer_tensor Ids, writable_tensor Dy>
  void embed_vjp(Dt&& d_token, Dp&& d_positions, const Ids& ids, const Positions& at, Dy&& dy,
                 Mode mode = Mode::eval, std::uint64_t seed = 0) const {
    embed_vjp(Eigen::DefaultDevice(), d_token, d_positions, ids, at, dy, mode, seed);
  }
  /// The same on a device.
  template <device D, writable_tensor Dt, writable_tensor Dp, integer_tensor Ids, writable_tensor Dy>
  void embed_vjp(const D& device, Dt&& d_token, Dp&& d_positions, const Ids& ids, const Positions& at,
                 Dy&& dy, Mode mode = Mode::eval, std::uint64_t seed = 0) const {
    const auto* learned = std::get_if<LearnedPositions<Scalar>>(&position_);
    if (learned == nullptr)
      detail::invalid("embed_vjp: only \"learned\" has a table of positions, got d_positions");
    require_gradient(d_token, ids, at, dy);
    const auto positions = learned->require_table("d_positions", d_positions);
    detail::require_apart("d_positions", positions, "dy", detail::input_view(dy));
    detail::require_apart("d_positions", positions, "d_token", detail::input_view(d_token));
    dropout_.apply_vjp(device, dy, mode, seed);
    token_.embed_vjp(device, d_token, ids, dy);
    learned->add_vjp(device, d_positions, at, dy);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> embed_vjp(Args&&...) const;

 private:
  // The verb ends here whatever tensor it was called with, so each scalar type compiles the kernel once.
  template <scalar_type S, device D, class Id, std::size_t Rank>
  void embed_views(const D& device, const View<S, 3>& out, const View<const Id, Rank>& ids,
                   const Positions& at, bool drops, std::uint64_t seed) const {
    using C = compute_t<S>;
    const bool has_positions = !std::holds_alternative<std::monostate>(position_);
    detail::map_tiles<S, detail::AngleScratch<C>>(
        device, out, at.rows() == 1,
        [&](detail::AngleScratch<C>& scratch, const detail::Tile& tile, C* positions) {
          for (Index r = 0; r < tile.rows; ++r)
            load_position(scratch, at(tile.batch, tile.seq + r), tile.first, tile.columns,
                          positions + r * tile.columns);
        },
        [&](const detail::Tile& tile, const C* positions, C* sum) {
          for (Index r = 0; r < tile.rows; ++r) {
            const Index row = tile.batch * out.extent(1) + tile.seq + r;
            C* values = sum + r * tile.columns;
            token_.load_token(ids, row, tile.first, tile.columns, values,
                              has_positions ? positions + r * tile.columns : nullptr);
            if (drops)
              dropout_.mask_row(seed, static_cast<std::uint64_t>(row * d_model() + tile.first), tile.columns,
                                values);
          }
        });
  }

  [[noreturn]] static void refuse(const std::string& name) {
    if (name == "rope" || name == "rotary" || name == "alibi")
      detail::invalid("position_embedding_type: \"", name, "\" is not added to embeddings: ",
                      name == "alibi" ? "add posenc::Alibi to the attention scores"
                                      : "turn queries and keys with posenc::Rotary",
                      " in each attention layer, and use \"none\" here");
    detail::invalid("position_embedding_type: expected \"sinusoidal\", \"learned\" or \"none\", got \"", name,
                    "\"");
  }

  SinusoidalConfig with_width(SinusoidalConfig config) const {
    if (!config.d_model) config.d_model = token_.d_model();
    detail::require_equal("sinusoidal.d_model", token_.d_model(), *config.d_model);
    return config;
  }

  void require_positions(const Positions& at, Index batch, Index seq) const {
    if (const auto* learned = std::get_if<LearnedPositions<Scalar>>(&position_))
      learned->require_positions(at, batch, seq);
    else
      detail::require_positions("at", at, batch, seq);
  }

  // Everything that could fail, before dy is masked.
  template <class Dt, class Ids, class Dy>
  void require_gradient(Dt& d_token, const Ids& ids, const Positions& at, const Dy& dy) const {
    const auto tokens = detail::integer_view(ids);
    const auto g = detail::input_view(dy);
    token_.require_fit(tokens, g, "dy");
    detail::require_apart("d_token", token_.require_table("d_token", d_token), "dy", g);
    const auto bsd = detail::as_bsd(g);
    require_positions(at, bsd.extent(0), bsd.extent(1));
  }

  void load_position(detail::AngleScratch<compute_t<Scalar>>& scratch, Position position, Index first,
                     Index columns, compute_t<Scalar>* row) const {
    if (const auto* sinusoidal = std::get_if<Sinusoidal>(&position_))
      sinusoidal->encode_row(scratch, position, first, columns, row);
    else if (const auto* learned = std::get_if<LearnedPositions<Scalar>>(&position_))
      learned->load_row(position, first, columns, row);
  }

  TokenEmbedding<Scalar> token_;
  std::variant<std::monostate, Sinusoidal, LearnedPositions<Scalar>> position_;
  Dropout dropout_;
};

}  // namespace v0
}  // namespace posenc
