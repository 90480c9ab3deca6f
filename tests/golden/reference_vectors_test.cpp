// The numbers that other projects' tests expect, from the folder reference_vectors of POSENC_DATA_DIR: one
// test case a file. Each number may be off by half a unit of its last printed digit and by the rounding of
// two float computations (ours and theirs), no more. A case that this file does not know fails: none is
// skipped silently.

#include "golden/data.hpp"
// data.hpp comes first, see there.
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "posenc/posenc.hpp"

using namespace posenc_test;
using posenc::Axes, posenc::Pairing, posenc::Position;

namespace {

class NeedsReferenceVectors : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override { return "reference_vectors"; }
};
CATCH_REGISTER_LISTENER(NeedsReferenceVectors)

// What two float computations of a value below 2 may differ by: each rounds, by 2^-24 at most.
constexpr double rounding = 0x1p-23;

Json read_vectors(const std::string& file) { return read_json(data_dir() / "reference_vectors" / file); }

/// The file has these parts and no others.
void require_parts(const Json& file, const std::set<std::string>& known) {
  std::set<std::string> parts;
  for (const auto& [name, part] : file.items()) parts.insert(name);
  REQUIRE(parts == known);
}

/// The floats of a JSON array in the shape that the test knows it to have; "ones" fills any shape.
template <std::size_t Rank>
Values<float, Rank> floats(const Json& array, const std::array<Index, Rank>& extents) {
  Values<float, Rank> x{extents, {}};
  if (array == "ones") {
    x.values.assign(static_cast<std::size_t>(product(extents)), 1.0f);
  } else {
    for (const double number : numbers_of(array)) x.values.push_back(static_cast<float>(number));
  }
  REQUIRE(x.size() == product(extents));
  return x;
}

template <std::size_t Rank>
Values<float, Rank> zeros(const std::array<Index, Rank>& extents) {
  return {extents, std::vector<float>(static_cast<std::size_t>(product(extents)))};
}

/// (seq) or (batch, seq) position ids as the file has them.
posenc::Positions positions_of(const Json& ids) {
  if (!ids.at(0).is_array()) return posenc::position_ids(ids.get<std::vector<Position>>());
  std::vector<Position> flat;
  for (const Json& row : ids)
    for (const Json& id : row) flat.push_back(id.get<Position>());
  const Index rows = static_cast<Index>(ids.size());
  return posenc::position_ids(
      posenc::view(flat.data(), std::array<Index, 2>{rows, static_cast<Index>(flat.size()) / rows}));
}

// ---- ctranslate2_layers.json

/// Rows of a head from adjacent pairs to halves: the even dimensions first, then the odd ones.
Values<float, 4> evens_first(const Values<float, 4>& x) {
  Values<float, 4> y = x;
  const Index dim = x.extents[3];
  for_each_coordinate(x.extents, [&](const auto& at, Index) {
    auto to = at;
    to[3] = at[3] / 2 + at[3] % 2 * (dim / 2);
    element(y.view(), to) = element(x.view(), at);
  });
  return y;
}

void ctranslate2_alibi(Comparison& comparison, const Json& alibi) {
  const std::array<Index, 4> shape = alibi.at("shape");  // (batch, heads, queries, keys)
  const auto bias = [&](posenc::AlibiForm form) {
    auto scores = zeros(shape);
    // Both query rows of upstream's test are the last position: it means decoding, where there is only one.
    const Position last = shape[3] - 1;
    posenc::Alibi({.num_heads = shape[1], .form = form})
        .add(scores.view(), posenc::position_ids(std::vector<Position>{last, last}),
             posenc::consecutive(0, shape[3]));
    return scores.values;
  };
  // Powers of two: no rounding at all. The second list was printed to 4 decimals.
  comparison.printed("alibi, default", bias(posenc::AlibiForm::symmetric), alibi.at("expected_default"),
                     Printed::exactly(), 0);
  comparison.printed("alibi, causal", bias(posenc::AlibiForm::causal), alibi.at("expected_default"),
                     Printed::exactly(), 0);
  comparison.printed("alibi, positive positions", bias(posenc::AlibiForm::key_position),
                     alibi.at("expected_positive_positions"), Printed::decimals(4), 0x1p-53);
}

void ctranslate2_rotary(Comparison& comparison, const Json& rotary) {
  const std::array<Index, 4> shape = rotary.at("shape");  // (batch, heads, time, head_dim)
  const auto frequencies = posenc::rotary_frequencies({.head_dim = shape[3]});
  const auto input = floats(rotary.at("input_interleaved"), shape);
  const auto expected = floats(rotary.at("expected_interleaved"), shape);
  const auto at = posenc::consecutive(2, shape[2]);

  auto x = input;
  posenc::Rotary(frequencies, Pairing::adjacent).rotate(x.view(), at, Axes::bhsd);
  comparison.printed("rotary, interleaved", x.values, rotary.at("expected_interleaved"), Printed::exactly(),
                     rounding);

  auto halves = evens_first(input);
  posenc::Rotary(frequencies, Pairing::half).rotate(halves.view(), at, Axes::bhsd);
  comparison.printed("rotary, not interleaved", halves.values, Json(evens_first(expected).values),
                     Printed::exactly(), rounding);
}

void ctranslate2_sinusoids(Comparison& comparison, const Json& cases) {
  for (const Json& c : cases) {
    const Index dim = c.at("dim");
    auto x = floats(c.at("input"), std::array<Index, 2>{1, dim});
    posenc::Sinusoidal({.d_model = dim,
                        .exponent = posenc::SinusoidExponent::i_over_half_minus_one,
                        .layout = posenc::SinusoidLayout::halves,
                        .first_position = 1})
        .add(x.view(), posenc::consecutive(0, 1));
    comparison.printed("sinusoidal, d = " + std::to_string(dim), x.values, c.at("expected"),
                       Printed::digits(6), rounding);
  }
}

// ---- keras_hub_positional.json

void keras_rotary(Comparison& comparison, const Json& c) {
  const std::string name = c.at("name");
  const Index head_dim =
      c.contains("head_dim") ? c.at("head_dim").get<Index>() : c.at("shape").at(3).get<Index>();
  auto frequencies = posenc::rotary_frequencies({.head_dim = head_dim});
  // Linear scaling: positions count `factor` times slower.
  for (double& frequency : frequencies.inv_freq) frequency /= c.value("scaling_factor", 1.0);
  const posenc::Rotary rotary(frequencies, Pairing::half);
  const auto at = positions_of(c.at("positions"));
  const auto compare = [&](const Printed& print, double off) {
    if (c.contains("shape")) {
      auto x = floats(c.at("input"), c.at("shape").get<std::array<Index, 4>>());
      rotary.rotate(x.view(), at, Axes::bshd);
      comparison.printed(name, x.values, c.at("expected"), print, off);
    } else {
      auto x = floats(c.at("input"), std::array<Index, 2>{at.count(), head_dim});
      rotary.rotate(x.view(), at);
      comparison.printed(name, x.values, c.at("expected"), print, off);
    }
  };
  // The scaled numbers are Hugging Face's, from float angles: 12 / 5 is off by a rounding of its own.
  if (name == "ones_base10000")
    compare(Printed::decimals(4), rounding);
  else if (name == "positions_1d")
    compare(Printed::digits(8), rounding);
  else if (name == "positions_2d")
    compare(Printed::digits(9), rounding);
  else if (name == "linear_scaling_2" || name == "linear_scaling_5_start_12")
    compare(Printed::decimals(9), 2 * rounding);
  else
    FAIL("unknown case " << name);
}

void keras_sine(Comparison& comparison, const Json& c) {
  const std::string name = c.at("name");
  const Index dim = c.at("dim");
  const auto at = positions_of(c.at("positions"));
  auto rows = zeros(std::array<Index, 2>{at.count(), dim});
  posenc::Sinusoidal({.d_model = dim}).encode(rows.view(), at);
  if (name != "dim6" && name != "dim4_positions") FAIL("unknown case " << name);
  comparison.printed(name, rows.values, c.at("expected"), Printed::cut(5), rounding);
}

void keras_alibi(Comparison& comparison, const Json& c) {
  const std::string name = c.at("name");
  const Index heads = c.at("num_heads"), queries = c.at("query_length"), keys = c.at("key_length");
  auto scores = zeros(std::array<Index, 4>{1, heads, queries, keys});
  posenc::Alibi({.num_heads = heads, .alibi_bias_max = c.at("alibi_bias_max")})
      .add(scores.view(), posenc::consecutive(keys - queries, queries), posenc::consecutive(0, keys));
  // numpy's print: 8 decimals, or fewer where they are enough to tell the float from its neighbours.
  if (name == "test_correct_output")
    comparison.printed(name, scores.values, c.at("expected"), Printed::exactly(), 0);
  else if (name == "test_correct_output_num_heads_not_power_of_two")
    comparison.printed(name, scores.values, c.at("expected"), Printed::decimals(8), rounding / 2);
  else if (name == "test_correct_output_alibi_bias_max" ||
           name == "test_correct_output_alibi_bias_max_num_heads_not_power_of_two")
    comparison.printed(name, scores.values, c.at("expected"), Printed::decimals(8), 0);
  else
    FAIL("unknown case " << name);
}

// ---- transformers_sinusoidal_and_roformer.json

/// The first columns of the rows of positions 0, 1, ... in the layout [sines | cosines].
void transformers_sinusoid(Comparison& comparison, const Json& c, posenc::SinusoidExponent exponent,
                           const Printed& print) {
  const Index rows = c.at("num_positions"), dim = c.at("dim");
  const posenc::Sinusoidal sinusoidal(
      {.d_model = dim, .exponent = exponent, .layout = posenc::SinusoidLayout::halves});
  const auto table = sinusoidal.table(rows);
  std::vector<Index> columns;
  for (Index column = 0; column < dim; ++column) columns.push_back(column);
  if (c.contains("columns")) columns = c.at("columns").get<std::vector<Index>>();
  std::vector<float> got;
  for (Index row = 0; row < rows; ++row)
    for (const Index column : columns) got.push_back(table(row, column));
  comparison.printed(c.at("name"), got, c.at("expected"), print, rounding);
}

/// FSMT counts tokens as fairseq does, from padding_idx + 1 on, and its row for padding is zero.
void fsmt_sinusoid(Comparison& comparison, const Json& c) {
  const Index dim = c.at("dim");
  const Position padding = c.at("padding_idx");
  const posenc::Sinusoidal sinusoidal({.d_model = dim,
                                       .exponent = posenc::SinusoidExponent::i_over_half_minus_one,
                                       .layout = posenc::SinusoidLayout::halves,
                                       .padding_idx = padding});
  auto ids = c.at("input_ids").at(0).get<std::vector<Position>>();
  const auto row_of = [](const std::vector<Position>& row) {
    return posenc::view(row.data(), std::array<Index, 2>{1, static_cast<Index>(row.size())});
  };
  const auto at = posenc::roberta_positions(row_of(ids), padding);
  std::vector<Position> counted;
  for (Index i = 0; i < at.count(); ++i) counted.push_back(at(0, i));
  comparison.printed("fsmt, positions", counted, c.at("positions"), Printed::exactly(), 0);

  auto rows = zeros(std::array<Index, 2>{at.count(), dim});
  sinusoidal.encode(rows.view(), at);
  comparison.printed("fsmt, rows", rows.values, c.at("expected"), Printed::digits(5), rounding);

  ids.push_back(padding);
  auto padded = zeros(std::array<Index, 2>{at.count() + 1, dim});
  sinusoidal.encode(padded.view(), posenc::roberta_positions(row_of(ids), padding));
  rows.values.resize(padded.values.size());  // and a row of zeros
  CHECK(same_bits(padded.values, rows.values));
}

void roformer_rotary(Comparison& comparison, const Json& c) {
  REQUIRE(c.at("input") == "query[b,h,s,d] = arange(2*12*16*64).reshape(2,12,16,64)/100, key = -query");
  REQUIRE(c.at("slice") == "[0,0,:6,:8]");
  auto query = zeros(std::array<Index, 4>{2, 12, 16, 64});
  for (std::size_t n = 0; n < query.values.size(); ++n) query.values[n] = static_cast<float>(n) / 100.0f;
  auto key = query;
  for (float& value : key.values) value = -value;
  const posenc::Rotary rotary(
      posenc::rotary_frequencies({.head_dim = c.at("head_dim"), .rope_theta = c.at("base")}),
      Pairing::adjacent);
  const auto at = posenc::consecutive(0, 16);
  rotary.rotate(query.view(), at, Axes::bhsd);
  rotary.rotate(key.view(), at, Axes::bhsd);
  const auto part = [](const Values<float, 4>& x) {
    std::vector<float> values;
    for (Index s = 0; s < 6; ++s)
      for (Index d = 0; d < 8; ++d) values.push_back(x.view()(0, 0, s, d));
    return values;
  };
  // Values up to 4.5, so 8 times the rounding of a value near 1.
  comparison.printed("roformer, query", part(query), c.at("expected_query"), Printed::decimals(4),
                     8 * rounding);
  comparison.printed("roformer, key", part(key), c.at("expected_key"), Printed::decimals(4), 8 * rounding);
}

// ---- onnxruntime_rotary_embedding.json

/// Input, caches and output were printed to 4 decimals each, so an element u cos - w sin is known to half a
/// unit times 1 + |u| + |w| + |cos| + |sin|. Upstream allows 0.002, more than this at any element.
void onnxruntime_rotary(Comparison& comparison, Comparison& computed, const Json& c) {
  const std::string name = c.at("name");
  const Index batch = c.at("batch_size"), seq = c.at("sequence_length"), heads = c.at("num_heads"),
              head_dim = c.at("head_size"), rows = c.at("max_sequence_length"),
              stated = c.value("rotary_embedding_dim", Index{0}), width = stated == 0 ? head_dim : stated;
  const Pairing pairing = c.at("interleaved") == 1 ? Pairing::adjacent : Pairing::half;
  const auto cos = floats(c.at("cos_cache"), std::array<Index, 2>{rows, width / 2});
  const auto sin = floats(c.at("sin_cache"), std::array<Index, 2>{rows, width / 2});

  // One id is where the first token of every row stands; else there is one per token.
  const auto ids = c.at("position_ids").get<std::vector<Position>>();
  const auto at = ids.size() == 1
                      ? posenc::consecutive(ids[0], seq)
                      : posenc::position_ids(posenc::view(ids.data(), std::array<Index, 2>{batch, seq}));

  const auto input = floats(c.at("input_data"), std::array<Index, 3>{batch, seq, heads * head_dim});
  auto x = input;
  const posenc::RotaryTable table(cos.view(), sin.view(), pairing);
  CHECK(table.rotary_dim() == width);
  table.rotate(posenc::split_heads(x.view(), heads), at, Axes::bshd);

  const auto expected = floats(c.at("output_data"), input.extents).values;
  const Printed print = Printed::decimals(4);
  CHECK(print.describes(numbers_of(c.at("output_data"))));
  const double half_unit = print.largest_error(1);
  std::vector<double> bound, bound_of_angles;
  for_each_coordinate(std::array<Index, 4>{batch, seq, heads, head_dim}, [&](const auto& i, Index n) {
    const double u = input.values[static_cast<std::size_t>(n)];
    if (i[3] >= width) {  // not rotated: passed through
      bound.push_back(0);
      return;
    }
    const bool half = pairing == Pairing::half;
    const Index pair = half ? i[3] % (width / 2) : i[3] / 2;
    const Index partner = half ? (i[3] + width / 2) % width : i[3] ^ 1;
    const double w = input.values[static_cast<std::size_t>(n - i[3] + partner)];
    const Position p = at(i[0], i[1]);
    const double c_s = std::fabs(cos.view()(p, pair)) + std::fabs(sin.view()(p, pair));
    bound.push_back(half_unit * (1 + std::fabs(u) + std::fabs(w) + c_s) + 4 * rounding);
    CHECK(bound.back() < 0.002);
    bound_of_angles.push_back(half_unit * (1 + c_s) + 4 * rounding);
  });
  comparison.within(name, x.values, expected, bound);

  // The caches of the whole-head cases are those of base 10000, so Rotary makes the same numbers without
  // them, and the printing of the caches costs nothing.
  if (width != head_dim) return;
  auto y = input;
  posenc::Rotary(posenc::rotary_frequencies({.head_dim = head_dim}), pairing)
      .rotate(posenc::split_heads(y.view(), heads), at, Axes::bshd);
  computed.within(name + ", computed angles", y.values, expected, bound_of_angles);
}

// ---- onnxruntime_embed_layer_norm.json

/// (rows, hidden_size) tables, as many rows as there are numbers.
Values<float, 2> table_of(const Json& array, Index width) {
  return floats(array, std::array<Index, 2>{static_cast<Index>(array.size()) / width, width});
}

void embed_layer_norm(Comparison& comparison, const Json& c) {
  const std::string name = c.at("name");
  const Index batch = c.at("batch_size"), seq = c.at("sequence_size"), width = c.at("hidden_size");
  const auto ids_of = [&](const char* key) { return c.at(key).get<std::vector<std::int32_t>>(); };
  const auto as_rows = [&](const std::vector<std::int32_t>& ids) {
    REQUIRE(static_cast<Index>(ids.size()) == batch * seq);
    return posenc::view(ids.data(), std::array<Index, 2>{batch, seq});
  };
  const auto given = [&](const char* key) { return c.contains(key) && !c.at(key).empty(); };

  auto x = zeros(std::array<Index, 3>{batch, seq, width});
  const auto ids = ids_of("input_ids_data");
  const auto words = table_of(c.at("word_embedding_data"), width);
  posenc::TokenEmbedding<float>(words.view()).embed(x.view(), as_rows(ids));

  // No ids: 0, 1, ... ; as many as the sequence is long: shared by the batch; else one per token.
  auto at = posenc::consecutive(0, seq);
  if (given("position_ids_data")) {
    const auto position_ids = ids_of("position_ids_data");
    at = static_cast<Index>(position_ids.size()) == seq ? posenc::position_ids(position_ids)
                                                        : posenc::position_ids(as_rows(position_ids));
  }
  const auto positions = table_of(c.at("position_embedding_data"), width);
  posenc::LearnedPositions<float>(positions.view()).add(x.view(), at);
  if (given("segment_ids_data")) {
    auto segments = x;
    const auto segment_ids = ids_of("segment_ids_data");
    const auto table = table_of(c.at("segment_embedding_data"), width);
    posenc::TokenEmbedding<float>(table.view()).embed(segments.view(), as_rows(segment_ids));
    for (std::size_t n = 0; n < x.values.size(); ++n) x.values[n] += segments.values[n];
  }
  if (given("embedding_sum_data"))
    comparison.printed(name + ", sum", x.values, c.at("embedding_sum_data"), Printed::exactly(), 0);

  const auto gamma = numbers_of(c.at("gamma_data")), beta = numbers_of(c.at("beta_data"));
  CHECK_FALSE(c.contains("epsilon"));  // "1e-12 unless given"
  std::vector<double> normalised, bound;
  for (Index row = 0; row < batch * seq; ++row) {
    const float* features = x.values.data() + row * width;
    double mean = 0, variance = 0;
    for (Index d = 0; d < width; ++d) mean += static_cast<double>(features[d]) / static_cast<double>(width);
    for (Index d = 0; d < width; ++d)
      variance += (features[d] - mean) * (features[d] - mean) / static_cast<double>(width);
    for (Index d = 0; d < width; ++d) {
      const auto column = static_cast<std::size_t>(d);
      const double deviation = std::sqrt(variance + 1e-12);
      normalised.push_back((features[d] - mean) / deviation * gamma[column] + beta[column]);
      // Values up to 2, in sums of three, rounded by them and by us, then divided by the deviation.
      bound.push_back(rounding + 2 * rounding / deviation * std::fabs(gamma[column]));
    }
  }
  comparison.within(name, normalised, numbers_of(c.at("output_data")), bound);
}

// ---- gemma_rope.json

void gemma_rope(Comparison& comparison, const Json& c) {
  const std::array<Index, 4> shape = c.at("shape");  // (batch, seq, heads, head_dim)
  const double proportion = c.at("rope_proportion"), base = c.at("base");
  auto frequencies = posenc::rotary_frequencies({.head_dim = shape[3], .rope_theta = base});
  if (proportion == 0.5) {
    // Gemma's partial rotation is not a narrower head: pairs (i, i + d/2) and exponents keep the full width,
    // and the slow pairs stand still.
    REQUIRE(shape[3] == 4);
    frequencies.inv_freq = {1.0, 0.0};
  } else {
    REQUIRE(proportion == 1.0);
  }
  auto x = floats(c.at("input"), shape);
  posenc::Rotary(frequencies, Pairing::half).rotate(x.view(), positions_of(c.at("positions")), Axes::bshd);
  comparison.printed("rope_proportion " + std::to_string(proportion), x.values, c.at("expected"),
                     Printed::digits(8), rounding);
}

}  // namespace

TEST_CASE("CTranslate2: ALiBi, rotary, sinusoids") {
  const Json file = read_vectors("ctranslate2_layers.json");
  // "relative_positions" are Shaw's index matrices: another primitive.
  require_parts(file, {"source", "relative_positions", "alibi", "rotary", "sinusoidal_t2t"});
  Comparison comparison;
  ctranslate2_alibi(comparison, file.at("alibi"));
  ctranslate2_rotary(comparison, file.at("rotary"));
  ctranslate2_sinusoids(comparison, file.at("sinusoidal_t2t").at("cases"));
  comparison.finish("ctranslate2_layers.json", 3 * 120 + 2 * 96 + 4 + 6);
}

TEST_CASE("Keras Hub: rotary halves, linear scaling, sinusoids, ALiBi") {
  const Json file = read_vectors("keras_hub_positional.json");
  require_parts(file, {"source", "rotary_half_split", "sine_interleaved", "alibi", "alibi_note"});
  Comparison comparison;
  for (const Json& c : file.at("rotary_half_split")) keras_rotary(comparison, c);
  for (const Json& c : file.at("sine_interleaved")) keras_sine(comparison, c);
  for (const Json& c : file.at("alibi")) keras_alibi(comparison, c);
  comparison.finish("keras_hub_positional.json", (12 + 32 + 64 + 24 + 8) + (12 + 8) + 3 * (8 + 14 + 2 + 3));
}

TEST_CASE("Hugging Face: RoFormer, Marian and FSMT") {
  const Json file = read_vectors("transformers_sinusoidal_and_roformer.json");
  require_parts(file, {"source", "cases"});
  Comparison comparison;
  for (const Json& c : file.at("cases")) {
    const std::string name = c.at("name");
    if (name == "roformer_sinusoidal_basic" || name == "roformer_sinusoidal_512")
      transformers_sinusoid(comparison, c, posenc::SinusoidExponent::two_i_over_d, Printed::decimals(4));
    else if (name == "marian_sinusoidal_512")
      transformers_sinusoid(comparison, c, posenc::SinusoidExponent::i_over_half_minus_one,
                            Printed::decimals(8));
    else if (name == "fsmt_fairseq_sinusoidal")
      fsmt_sinusoid(comparison, c);
    else if (name == "roformer_rotary_interleaved")
      roformer_rotary(comparison, c);
    else
      FAIL("unknown case " << name);
  }
  comparison.finish("transformers_sinusoidal_and_roformer.json", 12 + 15 + 15 + (2 + 12) + 2 * 48);
}

TEST_CASE("Hugging Face: rotary frequencies") {
  const Json file = read_vectors("transformers_rope_utils.json");
  Comparison comparison;
  for (const Json& c : file.at("cases")) {
    const std::string name = c.at("name");
    if (name == "dynamic" || name == "yarn" || name == "llama3")
      continue;  // scalings have tests of their own
    if (name != "default") FAIL("unknown case " << name);
    const auto frequencies =
        posenc::rotary_frequencies({.head_dim = c.at("dim"), .rope_theta = c.at("base")});
    comparison.printed(name, frequencies.inv_freq, c.at("inv_freq"), Printed::digits(5), 0);
    CHECK(frequencies.attention_factor == c.at("attention_factor"));
  }
  comparison.finish("transformers_rope_utils.json", 64);
}

TEST_CASE("ONNX Runtime: rotary embedding from caches, and without them") {
  const Json file = read_vectors("onnxruntime_rotary_embedding.json");
  require_parts(file, {"source", "notes", "cases"});
  Comparison comparison, computed;
  for (const Json& c : file.at("cases")) onnxruntime_rotary(comparison, computed, c);
  CHECK(file.at("cases").size() == 6);
  comparison.finish("onnxruntime_rotary_embedding.json", 24 + 384 + 384 + 36 + 12 + 18);
  computed.finish("onnxruntime_rotary_embedding.json, computed angles", 24 + 384 + 384 + 36);
}

TEST_CASE("ONNX Runtime: token, position and segment embeddings, normalised") {
  const Json file = read_vectors("onnxruntime_embed_layer_norm.json");
  require_parts(file, {"source", "notes", "cases"});
  Comparison comparison;
  for (const Json& c : file.at("cases")) embed_layer_norm(comparison, c);
  CHECK(file.at("cases").size() == 9);
  comparison.finish("onnxruntime_embed_layer_norm.json", (8 + 24 + 40 + 24 + 8 + 8 + 8 + 8 + 24) + 2 * 8);
}

TEST_CASE("Gemma: rotary, whole and in part") {
  const Json file = read_vectors("gemma_rope.json");
  require_parts(file, {"source", "notes", "cases"});
  Comparison comparison;
  for (const Json& c : file.at("cases")) gemma_rope(comparison, c);
  comparison.finish("gemma_rope.json", 2 * 16);
}
