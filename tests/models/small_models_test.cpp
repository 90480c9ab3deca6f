// Three trained models with learned positions: a GPT that sorts, an ALBERT over reactions, a Vision
// Transformer. Their files' numbers were computed by the models' own programs (PyTorch), or by one in double
// that has nothing in common with this one.

#include "golden/data.hpp"
// data.hpp comes first, see there.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "models/albert.hpp"
#include "models/json_tensors.hpp"
#include "models/min_gpt.hpp"
#include "models/reaction_mapping.hpp"
#include "models/safetensors.hpp"
#include "models/vision_transformer.hpp"
#include "posenc/embedding/transformer_embedding.hpp"

using namespace posenc_test;
using transformer::matrix;
using transformer::Matrix;
using transformer::Sequences;
using transformer::Token;
using transformer::Tokens;
using transformer::View;

namespace {

template <int N>
class Needs : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override {
    constexpr const char* folders[] = {"gpt_nano_sort", "rxnmapper_albert", "vit_mnist"};
    return folders[N];
  }
};
using NeedsGpt = Needs<0>;
using NeedsAlbert = Needs<1>;
using NeedsDigits = Needs<2>;
CATCH_REGISTER_LISTENER(NeedsGpt)
CATCH_REGISTER_LISTENER(NeedsAlbert)
CATCH_REGISTER_LISTENER(NeedsDigits)

template <class T>
std::vector<double> doubles(const View<T, 2>& x) {
  const auto m = matrix(x);
  return {m.data(), m.data() + m.size()};
}

void within(Comparison& comparison, const std::string& what, const std::vector<double>& got,
            const std::vector<double>& expected, double bound) {
  comparison.within(what, got, expected, std::vector<double>(expected.size(), bound));
}

models::NamedWeights safetensors(const std::string& folder, const std::string& file) {
  const std::string path = (data_dir() / folder / file).string();
  return {models::read_safetensors(path), path};
}

}  // namespace

TEST_CASE("a GPT that sorts: every activation that upstream published, to 5e-6") {
  const std::filesystem::path folder = data_dir() / "gpt_nano_sort";
  const auto model =
      models::read_min_gpt<float>(models::read_json_tensors((folder / "gpt-nano-sort-model.json").string()));
  const models::JsonTensors upstream = models::read_json_tensors(
      (folder / "gpt-nano-sort-t0-partials.json").string(), models::Infinities::allowed);
  const auto& config = model.config();
  const Index batch = 3, length = 11, heads = config.num_heads, dim = config.d_model / heads;
  Comparison comparison;
  int tensors = 0;
  const auto compare = [&](const std::string& name, const std::vector<double>& got) {
    const models::JsonTensor& expected = upstream.at(name);
    within(comparison, name, got, {expected.values.begin(), expected.values.end()}, 5e-6);
    ++tensors;
  };

  Sequences sequences;
  const models::JsonTensor& idx = upstream.at("idx");
  REQUIRE(idx.shape == std::vector<std::int64_t>{batch, length});
  for (Index row = 0; row < batch; ++row)
    sequences.append(Tokens(idx.values.begin() + row * length, idx.values.begin() + (row + 1) * length));
  compare("idx", {sequences.ids().begin(), sequences.ids().end()});

  // Position enters through posenc alone: token and position apart, then in one call.
  transformer::Workspace<float> workspace;
  transformer::Pass<float> pass{.parameters = model.parameters(), .workspace = workspace};
  const auto table = [&](const char* name) {
    const auto& entry = model.parameters().entry(name);
    return View<const float, 2>(model.parameters().values(entry).data(), {entry.shape[0], entry.shape[1]});
  };
  const posenc::TokenEmbedding<float> token(table("embedding.weight"));
  const posenc::LearnedPositions<float> positions(table("positions.weight"));
  const auto at = sequences.positions();
  View<float, 2> x = workspace.matrix(batch * length, config.d_model),
                 rows = workspace.matrix(length, config.d_model);
  token.embed(x, sequences.ids());
  compare("tok_emb", doubles(x));
  positions.embed(rows, posenc::consecutive(0, length));
  compare("pos_emb", doubles(rows));
  posenc::TransformerEmbedding<float>(token, positions, {.position_embedding_type = "learned"})
      .embed(x, sequences.ids(), at);
  compare("x", doubles(x));

  const auto& first = model.layers()[0];
  transformer::EncoderLayer<float>::Saved saved;
  const View<float, 2> block = first.forward(pass, x, sequences, at, saved);
  compare("ln1", doubles(saved.self_attention.x));
  compare("qkv", doubles(saved.self_attention.qkv));
  // (batch, heads, length, dim) upstream; (tokens, heads, dim) side by side here.
  const View<const float, 3> qkv =
      posenc::split_heads(View<const float, 2>(saved.self_attention.qkv), 3 * heads);
  const char* parts[] = {"q", "k", "v"};
  for (Index part = 0; part < 3; ++part) {
    std::vector<double> values;
    for (Index b = 0; b < batch; ++b)
      for (Index h = 0; h < heads; ++h)
        for (Index t = 0; t < length; ++t)
          for (Index c = 0; c < dim; ++c)
            values.push_back(static_cast<double>(qkv(b * length + t, part * heads + h, c)));
    compare(parts[part], values);
  }
  // Scores before the softmax are -infinity where a key is hidden: equal to upstream's, of which no
  // difference can be taken.
  std::vector<double> scores, expected_scores, probabilities;
  const models::JsonTensor& att = upstream.at("att");
  for (Index b = 0; b < batch; ++b) {
    const View<float, 3> s = workspace.tensor(heads, length, length);
    transformer::attention_scores(s, qkv.slice(0, b * length, length).slice(1, 0, heads),
                                  qkv.slice(0, b * length, length).slice(1, heads, heads),
                                  1.0 / std::sqrt(static_cast<double>(dim)));
    transformer::hide(s, transformer::AttentionMask::causal(length, length));
    const auto p =
        first.self_attention().heads().probabilities(saved.self_attention.heads, sequences, sequences, b);
    for (Index n = 0; n < s.size(); ++n) {
      const float expected = att.values[static_cast<std::size_t>(b * s.size() + n)];
      CHECK(std::isinf(s.data()[n]) == std::isinf(expected));
      probabilities.push_back(static_cast<double>(p.data()[n]));
      if (std::isinf(expected)) continue;
      scores.push_back(static_cast<double>(s.data()[n]));
      expected_scores.push_back(static_cast<double>(expected));
    }
  }
  within(comparison, "att", scores, expected_scores, 5e-6);
  ++tensors;
  compare("attSm", probabilities);
  compare("y", doubles(saved.self_attention.heads.context));
  transformer::SelfAttention<float>::Saved again;
  const View<float, 2> projected =
      first.self_attention().forward(pass, saved.self_attention.x, sequences, at, again);
  compare("yProj", doubles(projected));
  matrix(projected) += matrix(x);
  compare("attnResid", doubles(projected));
  compare("ln2", doubles(saved.feed_forward.x));
  compare("fc", doubles(saved.feed_forward.inner));
  compare("gelu", doubles(saved.feed_forward.hidden));
  transformer::FeedForward<float>::Saved unused;
  compare("mlp", doubles(first.feed_forward().forward(pass, saved.feed_forward.x, unused)));
  compare("mlpResid", doubles(block));

  View<float, 2> stack = x;
  for (std::size_t l = 0; l < 3; ++l) {
    stack = model.layers()[l].forward(pass, stack, sequences, at, saved);
    compare("block" + std::to_string(l), doubles(stack));
  }
  transformer::LanguageModel<float>::Saved whole;
  const View<const float, 2> hidden = model.forward(pass, sequences, whole);
  compare("ln_f", doubles(hidden));
  const View<float, 2> logits = model.logits(pass, hidden);
  compare("lm_head", doubles(logits));

  // Six letters in, the same letters in order out.
  for (Index row = 0; row < batch; ++row) {
    Tokens letters(sequences.ids().begin() + row * length, sequences.ids().begin() + row * length + 6),
        sorted;
    std::sort(letters.begin(), letters.end());
    for (Index t = 5; t < length; ++t) {
      Index best = 0;
      matrix(logits).row(row * length + t).maxCoeff(&best);
      sorted.push_back(static_cast<Token>(best));
    }
    CHECK(sorted == letters);
  }
  for (Index row = 0; row < logits.extent(0); ++row) {
    auto z = matrix(logits).row(row).array();
    z = (z - z.maxCoeff()).exp();
    z /= z.sum();
  }
  compare("probs", doubles(logits));
  CHECK(tensors == static_cast<int>(upstream.tensors.size()));
  int numbers = 0;
  for (const auto& [name, tensor] : upstream.tensors) numbers += static_cast<int>(tensor.values.size());
  comparison.finish("gpt-nano-sort-t0-partials.json",
                    numbers - static_cast<int>(batch * heads * 55));  // hidden scores
}

TEST_CASE("an ALBERT of 12 shared layers: the published confidences of six reactions to 1e-6") {
  const models::Albert<double> model(safetensors("rxnmapper_albert", "model.safetensors"),
                                     {.num_heads = 8, .num_layers = 12, .norm_eps = 1e-12});
  const Json reference = read_json(data_dir() / "rxnmapper_albert" / "reference.json");
  Comparison published, exact;
  int exact_numbers = 0;
  const auto compare = [&](const std::string& what, const std::vector<double>& got, const Json& expected,
                           double bound) {
    within(exact, what, got, numbers_of(expected), bound);
    exact_numbers += static_cast<int>(got.size());
  };
  const auto front = [](const auto& row, Index count) {
    return std::vector<double>(row.data(), row.data() + count);
  };
  const Json& cases = reference["cases"];
  REQUIRE(cases.size() == 6);
  for (const Json& reaction : cases) {
    INFO(reaction["reaction"].get<std::string>());
    transformer::Workspace<double> workspace;
    transformer::Pass<double> pass{.parameters = model.parameters(), .workspace = workspace};
    Sequences sequences;
    sequences.append(reaction["ids"].get<Tokens>());
    models::Albert<double>::Saved saved;
    const View<const double, 2> hidden = model.forward(pass, sequences, saved);
    if (&reaction == &cases[0])
      compare("embedding", doubles(saved.embedded), reference["embedding_output_case0"], 1e-12);
    compare("hidden", front(matrix(hidden).row(0), 256), reaction["final_hidden_cls"], 1e-9);
    const auto logits = matrix(model.logits(pass, hidden));
    compare("logits", front(logits.row(0), 16), reaction["logits_cls_first16"], 1e-9);
    std::vector<int> likeliest;
    for (Index t = 0; t < logits.rows(); ++t) {
      Index best = 0;
      logits.row(t).maxCoeff(&best);
      likeliest.push_back(static_cast<int>(best));
    }
    CHECK(likeliest == reaction["mlm_argmax"].get<std::vector<int>>());

    const auto p = model.shared_layer().self_attention().heads().probabilities(
        saved.layers[10].self_attention.heads, sequences, sequences, 0);
    const Matrix<double> attention = transformer::plane(p, 5);
    compare("attention", front(attention, attention.size()), reaction["attention_layer10_head5"], 1e-9);
    const auto tokens = reaction["tokens"].get<std::vector<std::string>>();
    const Mapping mapping = map_atoms(tokens, attention);
    CHECK(mapping.reactant_atom == reaction["product_to_reactant_atom_map"].get<std::vector<int>>());
    compare("confidences", mapping.confidences, reaction["atom_confidences"], 1e-9);
    within(published, "confidence", {mapping.confidence}, {reaction["published_confidence"].get<double>()},
           1e-6);
  }

  const Json& masked = reference["masked_probe"];
  transformer::Workspace<double> workspace;
  transformer::Pass<double> pass{.parameters = model.parameters(), .workspace = workspace};
  Sequences sequences;
  sequences.append(masked["ids"].get<Tokens>());
  models::Albert<double>::Saved saved;
  const auto logits = matrix(model.logits(pass, model.forward(pass, sequences, saved)));
  const auto row = logits.row(masked["masked_index"].get<Index>());
  compare("masked", front(row, row.size()), masked["logits_at_mask"], 1e-9);
  exact.finish("rxnmapper_albert", exact_numbers);
  published.finish("published_confidence", 6);
}

TEMPLATE_TEST_CASE("a Vision Transformer: logits of 60 digits to 1e-5, all predictions equal", "", float,
                   double) {
  // Double leaves nothing but the program; float adds its rounding, which 50 tokens and 6 layers make 8e-6.
  const double bound = std::is_same_v<TestType, double> ? 1e-11 : 1e-5;
  const models::VisionTransformer<TestType> model(safetensors("vit_mnist", "vit_mnist.safetensors"), {});
  const Json reference = read_json(data_dir() / "vit_mnist" / "reference.json");
  std::ifstream file(data_dir() / "vit_mnist" / "mnist_t10k_first60_images.u8", std::ios::binary);
  const std::vector<char> bytes((std::istreambuf_iterator<char>(file)), {});
  const std::vector<std::uint8_t> pixels(bytes.begin(), bytes.end());
  REQUIRE(pixels.size() == 60 * 28 * 28);
  Comparison comparison;

  transformer::Workspace<TestType> workspace;
  transformer::Pass<TestType> pass{.parameters = model.parameters(), .workspace = workspace};
  const View<TestType, 2> embedded =
      model.embed(pass, std::span(pixels).first(28 * 28), posenc::consecutive(0, model.tokens_per_image()));
  within(comparison, "embedded", doubles(embedded.slice(0, 0, 3)),
         numbers_of(reference["embedded_input_image0_first3_tokens"]), bound);

  const Matrix<TestType> logits = model.logits(pixels);
  within(comparison, "logits", std::vector<double>(logits.data(), logits.data() + logits.size()),
         numbers_of(reference["logits_float64"]), bound);
  std::vector<int> predictions;
  for (Index i = 0; i < logits.rows(); ++i) {
    Index best = 0;
    logits.row(i).maxCoeff(&best);
    predictions.push_back(static_cast<int>(best));
  }
  CHECK(predictions == reference["predictions"].get<std::vector<int>>());
  comparison.finish("vit_mnist", 3 * 64 + 600);
}
