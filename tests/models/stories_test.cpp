// A trained Llama in two files: llama2.c's, with adjacent pairs, and Hugging Face's, permuted to halves. Five
// greedy stories and the numbers behind them, computed in double by a program that has nothing in common with
// this one, and one story as llama2.c has published it; then everything that a cache must not change.
#include "support/allocations.hpp"

#include "golden/data.hpp"
// data.hpp comes before other tests' headers, see there.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/load_llama.hpp"
#include "posenc/rotary/convert_pairing.hpp"
#include "posenc/rotary/frequencies.hpp"
#include "transformer/language_model.hpp"

using namespace posenc_test;
using namespace models;
using transformer::Continuation;
using transformer::LanguageModel;
using transformer::matrix;
using transformer::Matrix;
using transformer::Pass;
using transformer::row_of;
using transformer::Sequences;
using transformer::Tokens;
using transformer::View;
using transformer::Workspace;
using Span = std::span<const Token>;

namespace {

class NeedsStories : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override { return "stories260K"; }
};
CATCH_REGISTER_LISTENER(NeedsStories)

std::string path(const std::string& file) { return (data_dir() / "stories260K" / file).string(); }

constexpr const char* files[] = {"stories260K.bin", "stories260K_hf_half_split.safetensors"};

const Json& reference() {
  static const Json json = read_json(path("reference.json"));
  return json;
}
LlamaTokenizer tokenizer() { return load_llama_tokenizer(path("tok512.bin"), 512); }

/// What a text becomes, most likely token by most likely token: `count` tokens, or up to the next <s>.
template <class Scalar>
Tokens story(Continuation<Scalar>& text, View<const Scalar, 2> logits, std::size_t count) {
  Tokens out;
  while (out.size() < count) {
    const Token next = transformer::most_likely(row_of(logits, 0));
    if (next == LlamaTokenizer::bos) break;
    out.push_back(next);
    if (out.size() < count) logits = text.read(Span(&next, 1));
  }
  return out;
}

Tokens ids_of(const Json& list) { return list.get<Tokens>(); }

double distance(const View<const float, 2>& a, const Matrix<float>& b) {
  return static_cast<double>((matrix(a) - b).cwiseAbs().maxCoeff());
}

/// The queries and keys of layer 0: rotated unless `scheme` is none, (tokens, all heads x head_dim).
template <class Scalar>
Matrix<Scalar> first_projection(const std::string& file, const Tokens& ids,
                                transformer::PositionScheme scheme) {
  const MappedFile mapped(path(file)), config(path("config.json"));
  LlamaWeights weights;
  if (looks_like_safetensors(mapped.bytes())) {
    const std::string_view text(reinterpret_cast<const char*>(config.bytes().data()), config.bytes().size());
    weights = read_hf_llama(mapped.bytes(), file, read_llama_config(text, "config.json"));
  } else {
    weights = read_llama2c(mapped.bytes(), file);
  }
  weights.config.positions = scheme;
  const auto model = make_llama<Scalar>(weights);
  Workspace<Scalar> workspace;
  Pass<Scalar> pass{.parameters = model.parameters(), .workspace = workspace};
  Sequences sequences;
  sequences.append(ids);
  typename LanguageModel<Scalar>::Saved saved;
  model.forward(pass, sequences, saved);
  return matrix(saved.layers[0].self_attention.qkv);
}

/// The largest difference to the reference's first heads, in its order of dimensions: adjacent pairs.
template <class Scalar>
double first_heads_error(const std::string& file, bool rotated, bool relative) {
  const Json& expected = reference()["prompt_logits"];
  const Matrix<Scalar> qkv = first_projection<Scalar>(
      file, ids_of(expected["ids"]),
      rotated ? transformer::PositionScheme::rope : transformer::PositionScheme::none);
  const bool halves = file != files[0];
  double largest = 0;
  int compared = 0;
  for (const auto& [name, first_column] : {std::pair<const char*, Index>{"q", 0}, {"k", 64}}) {
    const Json& rows =
        expected["layer0_" + std::string(name) + (rotated ? "_after" : "_before") + "_rope_head0"];
    REQUIRE(rows.size() == static_cast<std::size_t>(qkv.rows()));
    for (Index token = 0; token < qkv.rows(); ++token)
      for (Index i = 0; i < 8; ++i) {
        const Index column = first_column + (halves ? i / 2 + i % 2 * 4 : i);
        const double want = rows[static_cast<std::size_t>(token)][static_cast<std::size_t>(i)];
        const double error = std::abs(static_cast<double>(qkv(token, column)) - want);
        largest = (std::max)(largest, relative ? error / (std::max)(1.0, std::abs(want)) : error);
        ++compared;
      }
  }
  CHECK(compared == 2 * 16 * 8);
  return largest;
}

}  // namespace

TEST_CASE("stories260K: five greedy stories of 256 steps, id for id, from both files") {
  const std::string file = GENERATE(files[0], files[1]);
  CAPTURE(file);
  const auto llama = load_llama<float>(path(file));
  const LlamaTokenizer words = tokenizer();
  CHECK(llama.context == 512);
  std::size_t compared = 0;
  for (const Json& expected : reference()["greedy"]) {
    const std::string prompt = expected["prompt"];
    CAPTURE(prompt);
    const Tokens start = words.encode(prompt), ids = ids_of(expected["ids"]);
    CHECK(start == ids_of(expected["prompt_ids"]));
    CHECK(expected["steps"] == 256);
    Continuation<float> text(llama.network, 257);
    Tokens told = start;
    const Tokens more = story(text, text.read(start), 257 - start.size());
    told.insert(told.end(), more.begin(), more.end());
    CHECK(told == ids);
    CHECK(words.decode(told) == expected["text"].get<std::string>());
    compared += told.size();
  }
  CHECK(compared == 257 + 257 + 221 + 212 + 257);
}

TEST_CASE("stories260K: the story that llama2.c has published, to the character") {
  const std::string file = GENERATE(files[0], files[1]);
  CAPTURE(file);
  const auto llama = load_llama<float>(path(file));
  const LlamaTokenizer words = tokenizer();
  Continuation<float> text(llama.network, 257);
  Tokens told = words.encode("");
  CHECK(told == Tokens{1});
  const Tokens more = story(text, text.read(told), 256);
  told.insert(told.end(), more.begin(), more.end());
  CHECK(words.decode(told) == reference()["published_text_llama2c_doc"]["text"].get<std::string>());
}

TEST_CASE("stories260K: logits of a prompt") {
  const std::string file = GENERATE(files[0], files[1]);
  CAPTURE(file);
  const Json& expected = reference()["prompt_logits"];
  const Tokens ids = ids_of(expected["ids"]);
  const Matrix<double> exact = logits(load_llama<double>(path(file)).network, Span(ids));
  const Matrix<float> z = logits(load_llama<float>(path(file)).network, Span(ids));
  double largest = 0, largest_float = 0, log_probability = 0;
  for (Index i = 0; i < 512; ++i) {
    const double want = expected["logits_last_position"][static_cast<std::size_t>(i)];
    largest = (std::max)(largest, std::abs(exact(15, i) - want));
    largest_float = (std::max)(largest_float, std::abs(static_cast<double>(z(15, i)) - want));
  }
  for (std::size_t t = 0; t < ids.size(); ++t) {
    const auto row = static_cast<Index>(t);
    for (std::size_t i = 0; i < 8; ++i)
      largest = (std::max)(largest, std::abs(exact(row, static_cast<Index>(i)) -
                                             expected["logits_each_position_first8"][t][i].get<double>()));
    CHECK(transformer::most_likely(std::span<const float>(&z(row, 0), 512)) ==
          expected["argmax_each_position"][t].get<Token>());
    if (t + 1 < ids.size()) {
      const double most = exact.row(row).maxCoeff();
      log_probability +=
          exact(row, ids[t + 1]) - most - std::log((exact.row(row).array() - most).exp().sum());
    }
  }
  CHECK(largest < 1e-10);
  CHECK(largest_float < 3e-5);
  CHECK(std::abs(log_probability - expected["sum_logprob_of_prompt"].get<double>()) < 1e-10);
  std::printf("%s: logits %.1e from the reference in double, %.1e in float\n", file.c_str(), largest,
              largest_float);
}

TEST_CASE("stories260K: queries and keys of the first layer, before and after the rotation, to 1e-6") {
  const std::string file = GENERATE(files[0], files[1]);
  const bool rotated = GENERATE(false, true);
  CAPTURE(file, rotated);
  const double exact = first_heads_error<double>(file, rotated, false),
               in_float = first_heads_error<float>(file, rotated, true);
  CHECK(exact < 1e-6);
  CHECK(in_float < 1e-6);  // of values up to 18, so relative to those above 1
  std::printf("%s, %s the rotation: q and k %.1e from the reference in double, %.1e in float\n", file.c_str(),
              rotated ? "after" : "before", exact, in_float);
}

TEST_CASE("stories260K: convert_pairing makes one file of the other, bit for bit") {
  const MappedFile adjacent_file(path(files[0])), half_file(path(files[1])), config(path("config.json"));
  const LlamaWeights adjacent = read_llama2c(adjacent_file.bytes(), files[0]);
  const std::string_view text(reinterpret_cast<const char*>(config.bytes().data()), config.bytes().size());
  const LlamaWeights half =
      read_hf_llama(half_file.bytes(), files[1], read_llama_config(text, "config.json"));
  REQUIRE(adjacent.layers.size() == 5);
  for (std::size_t l = 0; l < 5; ++l)
    for (const auto tensor : {&LlamaLayer::q, &LlamaLayer::k, &LlamaLayer::v, &LlamaLayer::o}) {
      const Bytes from = (adjacent.layers[l].*tensor).bytes, to = (half.layers[l].*tensor).bytes;
      REQUIRE(from.size() == to.size());
      std::vector<float> a(from.size() / 4), b(a.size());
      CHECK(to_floats(from, NumberType::f32, a));
      CHECK(to_floats(to, NumberType::f32, b));
      if (tensor == &LlamaLayer::q || tensor == &LlamaLayer::k) {
        CHECK(a != b);
        const auto rows = static_cast<Index>(a.size()) / 64;
        posenc::convert_pairing(View<float, 2>(a.data(), {rows, 64}), posenc::Pairing::adjacent,
                                posenc::Pairing::half, {.num_heads = rows / 8, .head_dim = 8});
      }
      CHECK(a == b);
    }
}

TEST_CASE("stories260K: with the wrong pairing the story falls apart, and quietly") {
  const MappedFile file(path(files[0]));
  LlamaWeights weights = read_llama2c(file.bytes(), files[0]);
  weights.config.pairing = posenc::Pairing::half;
  const auto wrong = make_llama<float>(weights);
  const LlamaTokenizer words = tokenizer();
  const Json& expected = reference()["greedy"][1];
  const Tokens start = words.encode("Once upon a time");
  Continuation<float> text(wrong, 257);
  Tokens told = start;
  const Tokens more = story(text, text.read(start), 257 - start.size());
  told.insert(told.end(), more.begin(), more.end());
  const Tokens ids = ids_of(expected["ids"]);
  const auto differ = std::mismatch(told.begin(), told.end(), ids.begin(), ids.end());
  const auto same = static_cast<int>(differ.first - told.begin());
  CHECK(same < 257);
  std::printf("with the wrong pairing: %d of 257 ids agree at first, then \"%s\"\n", same,
              words.decode(told).substr(0, 160).c_str());
}

TEST_CASE("stories260K: the tables of cos and sin in the file, and how exact they are") {
  const MappedFile file(path(files[0]));
  Llama2cTables tables;
  read_llama2c(file.bytes(), files[0], &tables);
  const auto frequencies = posenc::rotary_frequencies({.head_dim = 8}).inv_freq;
  REQUIRE(frequencies.size() == 4);
  double cos_error = 0, sin_error = 0;
  for (std::size_t position = 0; position < 512; ++position)
    for (std::size_t i = 0; i < 4; ++i) {
      const double angle = static_cast<double>(position) * frequencies[i];
      const auto at = position * 4 + i;
      cos_error = (std::max)(
          cos_error, std::abs(static_cast<double>(number_at<float>(tables.cos, at)) - std::cos(angle)));
      sin_error = (std::max)(
          sin_error, std::abs(static_cast<double>(number_at<float>(tables.sin, at)) - std::sin(angle)));
    }
  const Json& stated = reference()["stored_freq_cis_check"];
  CHECK(cos_error == Approx(stated["max_abs_err_cos"].get<double>()).epsilon(1e-6));
  CHECK(sin_error == Approx(stated["max_abs_err_sin"].get<double>()).epsilon(1e-6));
}

TEST_CASE("stories260K: prefill in one call, in chunks and token by token give the same ids") {
  const std::string file = GENERATE(files[0], files[1]);
  CAPTURE(file);
  const auto llama = load_llama<float>(path(file));
  // The first 100 tokens of a story are the prompt, the next 156 must come out.
  const Tokens all = ids_of(reference()["greedy"][0]["ids"]);
  const Tokens prompt(all.begin(), all.begin() + 100), rest(all.begin() + 100, all.end());
  Matrix<float> whole;
  for (const std::size_t chunk : {100u, 64u, 33u, 7u, 1u}) {
    CAPTURE(chunk);
    Continuation<float> text(llama.network, 257);
    View<const float, 2> logits;
    for (std::size_t at = 0; at < prompt.size(); at += chunk)
      logits = text.read(Span(prompt).subspan(at, (std::min)(chunk, prompt.size() - at)));
    if (whole.size() == 0) whole = matrix(logits);
    CHECK(distance(logits, whole) < 5e-5);
    CHECK(story(text, logits, rest.size()) == rest);
  }
}

TEST_CASE("stories260K: prompts of different lengths in one batch, padded on the left") {
  const std::string file = GENERATE(files[0], files[1]);
  CAPTURE(file);
  const auto llama = load_llama<float>(path(file));
  std::vector<Tokens> prompts;
  std::vector<std::size_t> lengths;
  for (const Json& expected : reference()["greedy"]) {
    prompts.push_back(ids_of(expected["prompt_ids"]));
    lengths.push_back(prompts.back().size());
  }
  CHECK(lengths == std::vector<std::size_t>{1, 5, 15, 8, 10});
  const std::vector<Tokens> together =
      continue_greedily(llama.network, std::span<const Tokens>(prompts), 242, LlamaTokenizer::bos);
  for (std::size_t row = 0; row < prompts.size(); ++row) {
    CAPTURE(row);
    const Tokens ids = ids_of(reference()["greedy"][row]["ids"]);
    const auto first = ids.begin() + static_cast<std::ptrdiff_t>(prompts[row].size());
    const std::size_t count = (std::min)(std::size_t{242}, ids.size() - prompts[row].size());
    CHECK(together[row] == Tokens(first, first + static_cast<std::ptrdiff_t>(count)));
  }
}

TEST_CASE("stories260K: the whole text moved elsewhere means the same") {
  const auto llama = load_llama<float>(path(files[0]));
  const Tokens all = ids_of(reference()["greedy"][0]["ids"]);
  const Span prompt = Span(all).first(60);
  for (const posenc::Position delta :
       {posenc::Position{100}, posenc::Position{1} << 40, -posenc::Position{59}}) {
    CAPTURE(delta);
    Continuation<float> text(llama.network, 257);
    text.read(prompt.first(59));
    text.shift(delta);
    const auto logits = text.read(prompt.subspan(59));
    CHECK(story(text, logits, 197) == Tokens(all.begin() + 60, all.end()));
  }
}

TEST_CASE("stories260K: a window that slides, and what that changes") {
  const auto llama = load_llama<float>(path(files[0]));
  const Tokens all = ids_of(reference()["greedy"][0]["ids"]);
  // 200 tokens are read, then the 64 after <s> forgotten; beside it the same text read anew without them.
  Tokens rest(all.begin(), all.begin() + 200);
  Continuation<float> slid(llama.network, 400), anew(llama.network, 400);
  slid.read(rest);
  slid.erase(1, 64);
  rest.erase(rest.begin() + 1, rest.begin() + 65);
  anew.read(rest);
  CHECK(slid.length() == 136);
  const auto apart = [&](std::size_t layer, bool keys) {
    const Index first = keys ? 0 : 32;
    return static_cast<double>(
        (matrix(slid.cached(layer)).middleCols(first, 32) - matrix(anew.cached(layer)).middleCols(first, 32))
            .cwiseAbs()
            .maxCoeff());
  };
  const auto size = [&](std::size_t layer) {
    return static_cast<double>(matrix(anew.cached(layer)).cwiseAbs().maxCoeff());
  };
  // The first layer: as if the tokens had always stood there. Deeper ones have seen what is gone.
  CHECK(apart(0, true) < 1e-5);
  CHECK(apart(0, false) < 1e-6);
  for (std::size_t layer = 0; layer < 5; ++layer)
    std::printf(
        "after the window slid by 64, layer %zu: keys differ by %.1e, values by %.1e (largest %.1f)\n", layer,
        apart(layer, true), apart(layer, false), size(layer));
  CHECK(apart(1, true) > 1e-2);

  // What that does to the next tokens: both go on with the text as it is.
  int same = 0, steps = 0;
  double largest = 0;
  for (std::size_t t = 200; t + 1 < all.size(); ++t, ++steps) {
    const Matrix<float> a = matrix(slid.read(Span(all).subspan(t, 1)));
    const auto b = anew.read(Span(all).subspan(t, 1));
    largest = (std::max)(largest, distance(b, a));
    same += transformer::most_likely(std::span<const float>(a.data(), 512)) ==
            transformer::most_likely(row_of(b, 0));
  }
  std::printf("of the %d tokens after it, %d are the same as without a past; logits differ by at most %.2f\n",
              steps, same, largest);
  CHECK(steps == 56);
  CHECK(same > 44);

  // The window keeps sliding: a story far longer than the model can read, and still words.
  const LlamaTokenizer words = tokenizer();
  Continuation<float> endless(llama.network, 512);
  Tokens told = {LlamaTokenizer::bos};
  auto logits = endless.read(told);
  while (told.size() < 1500) {
    auto scores = matrix(logits).row(0).eval();
    scores(LlamaTokenizer::bos) = -1e30f;  // the story may not end
    const Token next = transformer::most_likely(std::span<const float>(scores.data(), 512));
    told.push_back(next);
    if (endless.length() == endless.capacity()) endless.erase(1, 255);
    logits = endless.read(Span(&next, 1));
  }
  CHECK(endless.length() <= 512);
  const std::string text = words.decode(told);
  CHECK(std::all_of(text.begin(), text.end(), [](char c) { return (c >= 0x20 && c < 0x7f) || c == '\n'; }));
  std::printf("after 1500 tokens: ...%s\n", text.substr(text.size() - 160).c_str());
}

TEST_CASE("stories260K: generating 512 tokens allocates nothing after the first") {
  const std::string file = GENERATE(files[0], files[1]);
  CAPTURE(file);
  const auto llama = load_llama<float>(path(file));
  Continuation<float> text(llama.network, 513);
  Token last = LlamaTokenizer::bos;
  std::vector<int> counts;
  counts.reserve(512);
  for (int n = 0; n < 512; ++n)
    counts.push_back(
        allocations_of([&] { last = transformer::most_likely(row_of(text.read(Span(&last, 1)), 0)); }));
  CHECK(counts[0] > 0);
  CHECK(std::all_of(counts.begin() + 1, counts.end(), [](int count) { return count == 0; }));
}
