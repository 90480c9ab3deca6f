// The verbs of TransformerEmbedding on plain tensors, found from its header alone.

#include "posenc/embedding/transformer_embedding.hpp"

#include "verbs/verbs.hpp"

using namespace posenc_verbs;

namespace {

constexpr Coordinates<2> token_extents{5, 4}, learned_extents{6, 4}, x_extents{3, 4};
constexpr Numbers token_numbers{1.0}, learned_numbers{2.0};
const std::vector<int> ids{4, 0, 4};
const posenc::Positions at = posenc::consecutive(2, 3);

double zero(const Coordinates<2>&) { return 0; }
Coordinates<2> token_of(const Coordinates<2>& c) { return {ids[static_cast<std::size_t>(c[0])], c[1]}; }
double token_gradient(const Coordinates<2>& c) {
  double sum = 0;
  for (Index n = 0; n < 3; ++n)
    if (ids[static_cast<std::size_t>(n)] == c[0]) sum += Numbers()(Coordinates<2>{n, c[1]});
  return sum;
}
double learned_gradient(const Coordinates<2>& c) {
  return c[0] >= 2 && c[0] < 5 ? Numbers()(Coordinates<2>{c[0] - 2, c[1]}) : 0.0;
}

}  // namespace

TEST_CASE("TransformerEmbedding's verbs take plain tensors") {
  in_plain_storage<2>([](const char* kind, const auto& make) {
    INFO(kind);
    const auto tokens = make(token_extents, token_numbers),
               positions = make(learned_extents, learned_numbers);
    const posenc::TokenEmbedding token(tokens.t);
    const posenc::TransformerEmbedding none(token, {.position_embedding_type = "none"});
    const posenc::TransformerEmbedding learned(token, posenc::LearnedPositions(positions.t),
                                               {.position_embedding_type = "learned"});
    const auto check_with = [&](const auto&... device) {
      auto x = make(x_extents, zero);
      learned.embed(device..., x.t, ids, at);
      check_holds(x.t, x_extents, [](const Coordinates<2>& c) {
        return token_numbers(token_of(c)) + learned_numbers(Coordinates<2>{c[0] + 2, c[1]});
      });

      auto dy = make(x_extents, Numbers());
      auto d_token = make(token_extents, zero);
      none.embed_vjp(device..., d_token.t, ids, at, dy.t);
      check_holds(d_token.t, token_extents, token_gradient);

      auto d_tokens = make(token_extents, zero), d_positions = make(learned_extents, zero);
      learned.embed_vjp(device..., d_tokens.t, d_positions.t, ids, at, dy.t);
      check_holds(d_tokens.t, token_extents, token_gradient);
      check_holds(d_positions.t, learned_extents, learned_gradient);
    };
    const Halves halves;
    check_with();
    check_with(halves);
    CHECK(halves.calls > 0);
  });
}
