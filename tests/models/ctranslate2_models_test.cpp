// Two trained models in CTranslate2 files: an encoder-decoder that spells Arabic names in Latin letters
// (version 2: float32, int16, int8), and a language model (version 6: int8, with a stored position table).
// The published numbers are those of CTranslate2's own tests; the others were computed in double by a program
// that has nothing in common with this one.

#include "golden/data.hpp"
// data.hpp comes first, see there.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "models/ctranslate2.hpp"
#include "models/mapped_file.hpp"
#include "models/opennmt_lm.hpp"
#include "models/transliterator.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "transformer/generation.hpp"

using namespace posenc_test;
using namespace models;
using transformer::GenerationConfig;
using transformer::Matrix;
using transformer::Tokens;
using transformer::View;
using Span = std::span<const Token>;

namespace {

class NeedsTransliterator : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override { return "ctranslate2_aren"; }
};
CATCH_REGISTER_LISTENER(NeedsTransliterator)

class NeedsLanguageModel : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override { return "opennmt_lm_ct2"; }
};
CATCH_REGISTER_LISTENER(NeedsLanguageModel)

Transliterator transliterator(const std::string& suffix = "") {
  return load_transliterator(
      (data_dir() / "ctranslate2_aren" / "v2" / ("aren-transliteration" + suffix)).string());
}

Json transliterator_reference() { return read_json(data_dir() / "ctranslate2_aren" / "reference.json"); }

/// The numbers of a list of pieces, such as ["a", "t", "<unk>"].
Tokens numbers(const Alphabet& alphabet, const Json& pieces) {
  Tokens tokens;
  for (const Json& piece : pieces) tokens.push_back(alphabet.number(piece.get<std::string>()));
  return tokens;
}

std::vector<std::string> pieces(const Alphabet& alphabet, const Tokens& tokens) {
  std::vector<std::string> out;
  for (const Token token : tokens) out.push_back(alphabet.piece(token));
  return out;
}

template <class T>
std::vector<double> doubles(const T* first, Index count) {
  return {first, first + count};
}
std::vector<double> doubles(const Matrix<float>& m) { return doubles(m.data(), m.size()); }

/// Every difference is at most `bound`.
void within(Comparison& comparison, const std::string& what, const std::vector<double>& got,
            const Json& expected, double bound) {
  const std::vector<double> numbers = numbers_of(expected);
  comparison.within(what, got, numbers, std::vector<double>(numbers.size(), bound));
}

/// A case of published_outputs.
GenerationConfig generation(const Transliterator& model, const Json& published, Index beams) {
  GenerationConfig config{.num_beams = beams};
  if (published.contains("prefix")) config.prefix = numbers(model.target, published["prefix"]);
  if (published.contains("suppress_sequences"))
    for (const Json& sequence : published["suppress_sequences"])
      config.suppressed.push_back(numbers(model.target, sequence));
  return config;
}

}  // namespace

TEST_CASE("transliteration: what each part of the network makes of a name") {
  const Transliterator model = transliterator();
  const Json probe = transliterator_reference()["probe"];
  const auto& config = model.network.config();
  CHECK(config.num_encoder_layers == 6);
  CHECK(config.num_decoder_layers == 6);
  Comparison comparison;

  posenc::SinusoidalConfig positions = config.sinusoidal;
  positions.d_model = config.d_model;
  const auto table = posenc::Sinusoidal(positions).table<double>(8);
  within(comparison, "positions", doubles(table.data(), table.size()), probe["position_table_first_8_rows"],
         1e-12);

  const Tokens source = probe["source_ids"].get<Tokens>(), read = probe["decoder_input_ids"].get<Tokens>();
  transformer::Workspace<float> workspace;
  transformer::Pass<float> pass{.parameters = model.network.parameters(), .workspace = workspace};
  transformer::Sequences from, to;
  model.network.append_source(from, source);
  model.network.append_target(to, Span(read).subspan(1));
  transformer::Transformer<float>::Saved saved;
  const View<const float, 2> memory = model.network.encode(pass, from, saved);
  // The encoder's first normalisation reads its input; the input itself is token + position.
  Matrix<float> input(from.tokens(), config.d_model);
  posenc::TokenEmbedding<float> embedding(
      pass.parameters.view({.offset = model.network.parameters().entry("source_embedding.weight").offset,
                            .rows = config.source_vocab_size,
                            .cols = config.d_model}),
      {.scale = std::sqrt(32.0)});
  embedding.embed(input, source);
  posenc::Sinusoidal(positions).add(input, posenc::consecutive(0, from.tokens()));
  within(comparison, "encoder input", doubles(input), probe["encoder_input"], 1e-6);
  within(comparison, "encoder output", doubles(transformer::matrix(memory)), probe["encoder_output"], 1e-5);
  const View<const float, 2> hidden = model.network.decode(pass, to, memory, from, saved);
  within(comparison, "logits", doubles(transformer::matrix(model.network.logits(pass, hidden))),
         probe["decoder_logits"], 2e-5);
  comparison.finish("probe", 8 * 32 + 6 * 32 + 6 * 32 + 7 * 43);
}

TEST_CASE("transliteration: the published log-probabilities to 1e-5") {
  const Transliterator model = transliterator();
  const Json reference = transliterator_reference();
  Comparison published;
  for (const Json& entry : reference["published_scores"])
    within(published, entry.dump(),
           transformer::token_log_probabilities<float>(model.network, numbers(model.source, entry["source"]),
                                                       numbers(model.target, entry["target"])),
           entry["token_log_probs_with_eos"], 1e-5);
  published.finish("published_scores", 29);
}

TEST_CASE("transliteration: the published outputs, greedy and with a beam of 4") {
  const std::string suffix = GENERATE("", "-i16", "-i8");
  CAPTURE(suffix);
  const Transliterator model = transliterator(suffix);
  const Json published = transliterator_reference()["published_outputs"];
  int outputs = 0;
  for (const Json& entry : published) {
    INFO(entry.dump());
    const Tokens source = numbers(model.source, entry["source"]);
    const auto expected = entry["greedy_and_beam4"].get<std::vector<std::string>>();
    CHECK(pieces(model.target,
                 transformer::greedy<float>(model.network, source, generation(model, entry, 1))) == expected);
    const auto beam = transformer::beam_search<float>(model.network, source, generation(model, entry, 4));
    REQUIRE(beam.size() == 4);
    CHECK(pieces(model.target, beam[0].tokens) == expected);
    CHECK(beam[0].finished);
    ++outputs;
  }
  CHECK(outputs == 6);
}

TEST_CASE("transliteration: fifteen names, id for id, from float32, int16 and int8") {
  const std::string suffix = GENERATE("", "-i16", "-i8");
  CAPTURE(suffix);
  const Transliterator model = transliterator(suffix);
  CHECK(model.stored_as == (suffix.empty()    ? NumberType::f32
                            : suffix == "-i8" ? NumberType::i8
                                              : NumberType::i16));
  // Cutting the weights to a byte moves every log-probability a little, and one of the spellings: where the
  // float32 model prefers to end after "qahra" by no more than 0.096.
  const double bound = suffix.empty() ? 1e-5 : suffix == "-i16" ? 0.02 : 0.2;
  const Json names = transliterator_reference()["numpy_float64_greedy"];
  REQUIRE(names.size() == 15);
  Comparison comparison;
  int tokens = 0, others = 0;
  for (const Json& entry : names) {
    INFO(entry.dump());
    std::string name;
    for (const Json& letter : entry["source"]) name += letter.get<std::string>();
    const Tokens source = model.source.encode(name);
    CHECK(source == entry["source_ids"].get<Tokens>());
    const Tokens ids = entry["target_ids_with_bos_eos"].get<Tokens>();
    CHECK(ids.front() == model.network.config().special.bos);
    CHECK(ids.back() == model.network.config().special.eos);
    const Tokens expected(ids.begin() + 1, ids.end() - 1);
    CHECK(model.target.decode(expected) == entry["text"]);
    within(comparison, suffix, transformer::token_log_probabilities<float>(model.network, source, expected),
           entry["token_log_probs_with_eos"], bound);
    tokens += static_cast<int>(expected.size()) + 1;
    const Tokens spelled = transformer::greedy<float>(model.network, source);
    if (spelled == expected) continue;
    ++others;
    CHECK(suffix == "-i8");
    CHECK(entry["text"] == "qahra");
    CHECK(entry["min_top1_gap"].get<double>() < 0.1);
  }
  CHECK(others == (suffix == "-i8" ? 1 : 0));
  comparison.finish("numpy_float64_greedy" + suffix, tokens);
}

TEST_CASE(
    "transliteration: the int16 and int8 weights are the float32 ones cut off at a step of their scale") {
  const std::string folder = (data_dir() / "ctranslate2_aren" / "v2" / "aren-transliteration").string();
  const std::string suffix = GENERATE("-i16", "-i8");
  const MappedFile exact_bytes(folder + "/model.bin"), rounded_bytes(folder + suffix + "/model.bin");
  const Ctranslate2File exact(exact_bytes.bytes(), "exact"), rounded(rounded_bytes.bytes(), "rounded");
  int quantised = 0;
  double least = 0, most = 0;
  for (const auto& [name, variable] : exact.variables()) {
    CAPTURE(suffix, name);
    const std::vector<float> a = exact.floats(name), b = rounded.floats(name);
    REQUIRE(a.size() == b.size());
    if (rounded.require(name).type == NumberType::f32) {
      CHECK(a == b);
      continue;
    }
    ++quantised;
    const std::vector<float> scale = rounded.floats(name + "_scale");
    const std::size_t columns = a.size() / scale.size();
    for (std::size_t n = 0; n < a.size(); ++n) {
      const double cut = (std::fabs(static_cast<double>(a[n])) - std::fabs(static_cast<double>(b[n]))) *
                         static_cast<double>(scale[n / columns]);
      least = std::min(least, cut), most = std::max(most, cut);
      if (b[n] != 0) CHECK((a[n] > 0) == (b[n] > 0));
    }
  }
  CHECK(quantised == 6 * 4 + 6 * 7 + 3);  // four products in an encoder layer, seven in a decoder layer
  // Steps, towards zero; float32 products are a little off.
  CHECK(least > -0.01);
  CHECK(most < 1.01);
  CHECK(most > 0.99);
}

TEST_CASE("transliteration: what a wrong option of the sinusoid costs") {
  struct Wrong {
    const char* name;
    posenc::SinusoidalConfig sinusoidal;
    int names_left;  // of fifteen, spelled as before
  };
  using posenc::SinusoidExponent, posenc::SinusoidLayout, posenc::SinusoidOrder;
  const Transliterator right = transliterator();
  const posenc::SinusoidalConfig good = right.network.config().sinusoidal;
  const auto with = [&](auto change) {
    posenc::SinusoidalConfig config = good;
    change(config);
    return config;
  };
  const Wrong all[] = {
      {"first position 0", with([](auto& c) { c.first_position = 0; }), 9},
      {"exponent 2i/d", with([](auto& c) { c.exponent = SinusoidExponent::two_i_over_d; }), 14},
      {"interleaved", with([](auto& c) { c.layout = SinusoidLayout::interleaved; }), 0},
      {"cosines first", with([](auto& c) { c.order = SinusoidOrder::cos_first; }), 0},
  };
  const Json names = transliterator_reference()["numpy_float64_greedy"];
  for (const Wrong& wrong : all) {
    transformer::TransformerConfig config = right.network.config();
    config.sinusoidal = wrong.sinusoidal;
    transformer::Transformer<float> network(config);
    network.parameters().flat() = right.network.parameters().flat();
    int left = 0;
    double largest = 0;
    std::string spellings;
    for (const Json& entry : names) {
      const Tokens source = entry["source_ids"].get<Tokens>();
      const std::string text = right.target.decode(transformer::greedy<float>(network, source));
      left += text == entry["text"];
      spellings += text + " ";
      const Tokens ids = entry["target_ids_with_bos_eos"].get<Tokens>();
      const auto got =
          transformer::token_log_probabilities<float>(network, source, Span(ids).subspan(1, ids.size() - 2));
      const auto expected = numbers_of(entry["token_log_probs_with_eos"]);
      for (std::size_t n = 0; n < got.size(); ++n)
        largest = std::max(largest, std::fabs(got[n] - expected[n]));
    }
    INFO(wrong.name << ": " << left << " of 15, " << largest << ": " << spellings);
    CHECK(left == wrong.names_left);
    CHECK(largest > 0.1);
  }
}

TEST_CASE("language model: the stored position table is posenc's, as float16 rounds it") {
  const MappedFile mapped((data_dir() / "opennmt_lm_ct2" / "model.bin").string());
  const Ctranslate2File file(mapped.bytes(), mapped.path());
  CHECK(file.version() == 6);
  const std::vector<float> stored = file.floats(opennmt_position_table);
  const auto exact = posenc::Sinusoidal({.d_model = 64}).table<double>(5000);
  REQUIRE(static_cast<Index>(stored.size()) == exact.size());
  double largest = 0, near_start = 0;
  for (Index n = 0; n < exact.size(); ++n) {
    const double difference =
        std::fabs(static_cast<double>(stored[static_cast<std::size_t>(n)]) - exact.data()[n]);
    largest = std::max(largest, difference);
    if (n < 128 * 64) near_start = std::max(near_start, difference);
  }
  // float16 alone rounds by at most 2^-12 = 2.4e-4; the rest is their float32 angle at positions of
  // thousands.
  CHECK(near_start <= 0x1p-12 + 1e-5);
  CHECK(largest > 0x1p-12);
  CHECK(largest == Approx(3.7e-4).margin(0.1e-4));
}

TEST_CASE("language model: the published logits and four greedy continuations with posenc's positions") {
  const MappedFile mapped((data_dir() / "opennmt_lm_ct2" / "model.bin").string());
  const auto model = read_opennmt_lm<float>(Ctranslate2File(mapped.bytes(), mapped.path()));
  const Json words = read_json(data_dir() / "opennmt_lm_ct2" / "vocabulary.json");
  const Json reference = read_json(data_dir() / "opennmt_lm_ct2" / "reference.json");
  REQUIRE(static_cast<Index>(words.size()) == model.config().vocab_size);
  const auto id_of = [&](const std::string& word) {
    return static_cast<Token>(std::find(words.begin(), words.end(), word) - words.begin());
  };
  const Token end = id_of("</s>"), unknown = id_of("<unk>");
  REQUIRE(reference["greedy"].size() == 4);
  for (const Json& entry : reference["greedy"]) {
    INFO(entry.dump());
    const auto expected = entry["ids"].get<Tokens>();
    Tokens ids(expected.begin(), expected.begin() + entry["prompt_length"].get<std::ptrdiff_t>());
    const std::size_t longest = 25 + ids.size();
    transformer::Continuation<float> continuation(model, static_cast<Index>(longest));
    View<const float, 2> logits = continuation.read(Span(ids));
    if (entry["prompt"] == "we are in favour of the") {  // whose logits are published, with the stored table
      Comparison comparison;
      within(comparison, "logits", doubles(logits.data(), 64), reference["logits_last_position_first64"],
             5e-4);
      comparison.finish("opennmt_lm_ct2", 64);
    }
    while (ids.back() != end && ids.size() < longest) {
      // <unk> is never said.
      std::vector<float> scores(logits.data(), logits.data() + logits.size());
      scores[static_cast<std::size_t>(unknown)] = -std::numeric_limits<float>::infinity();
      ids.push_back(transformer::most_likely<float>(scores));
      logits = continuation.read(Span(&ids.back(), 1));
    }
    CHECK(ids == expected);
    std::string text;
    for (const Token id : ids)
      text += (text.empty() ? "" : " ") + words.at(static_cast<std::size_t>(id)).get<std::string>();
    CHECK(text == entry["text"]);
  }
}
