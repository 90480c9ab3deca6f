// The Attention and FlexAttention cases of ONNX's backend tests, from the folder onnx_node of
// POSENC_DATA_DIR, through attend() and KeyValueCache. ONNX has the order of attention.hpp: scale, softcap,
// mask, softmax.
//
// ONNX counts a causal mask from the end of the past, so its offset is the length of the past (0 without
// one), or nonpad_kv_seqlen - queries where the cache came in from outside; the attention layers here always
// align the last query with the last key.

#include "golden/data.hpp"
// data.hpp comes first, see there.
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "posenc/bias/alibi.hpp"
#include "tensor.pb.h"
#include "transformer/attention.hpp"
#include "transformer/multi_head_attention.hpp"

using namespace posenc_test;
using posenc::View;
using transformer::AttentionMask, transformer::AttentionOptions, transformer::KeyValueCache,
    transformer::Matrix;

namespace {

class NeedsOnnxNode : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override { return "onnx_node"; }
};
CATCH_REGISTER_LISTENER(NeedsOnnxNode)

/// The case that is not run: no model changes its probabilities after the softmax.
const std::string not_run = "test_flexattention_prob_mod";

/// What FlexAttention does to the scores is a graph inside the model file. These are the graphs of the cases,
/// read from there by hand.
struct ScoreMod {
  bool causal = false;    // scores = where(i >= j, scores, -inf)
  double softcap = 0;     // scores = tanh(scores / cap) cap
  double bias = 0;        // scores += bias
  bool relative = false;  // scores += i - j
};
ScoreMod score_mod(const std::string& name) {
  if (name == "test_flexattention_causal_mask") return {.causal = true};
  if (name == "test_flexattention_soft_cap") return {.softcap = 20.0};
  if (name == "test_flexattention_score_mod") return {.bias = 0.5};
  if (name == "test_flexattention_relative_positional") return {.relative = true};
  return {};
}

/// A stored tensor of any type, as the Scalar of the computation.
template <class Scalar>
struct Tensor {
  std::vector<Index> shape;
  std::vector<Scalar> values;
  bool is_bool = false;

  /// The element at the given coordinates from the right; an axis of extent 1 or an absent one is broadcast.
  Scalar broadcast(const std::array<Index, 4>& at) const {
    Index offset = 0, step = 1;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::size_t axis = shape.size() - 1 - i;
      if (shape[axis] != 1) offset += at[3 - i] * step;
      step *= shape[axis];
    }
    return values[static_cast<std::size_t>(offset)];
  }
};

class Case {
 public:
  Case(std::filesystem::path folder, const Json& index) : folder_(std::move(folder)), index_(index) {
    for (const auto& [name, value] : attributes().items()) {
      INFO(name << " = " << value);
      CHECK((name == "is_causal" || name == "q_num_heads" || name == "kv_num_heads" || name == "scale" ||
             name == "softcap" || name == "qk_matmul_output_mode" || name == "softmax_precision" ||
             (name == "score_mod" && value == Json{{"graph", true}})));
    }
  }

  const Json& attributes() const { return index_.at("nodes").at(0).at("attributes"); }
  bool has(const std::string& name) const { return !file(name).empty(); }
  std::string dtype(const std::string& name) const { return index_.at("tensors").at(file(name)).at("dtype"); }

  template <class Scalar>
  Tensor<Scalar> tensor(const std::string& name) const {
    const std::filesystem::path path = folder_ / "test_data_set_0" / file(name);
    INFO(path.string());
    std::ifstream stream(path, std::ios::binary);
    posenc_test::TensorProto proto;
    REQUIRE(proto.ParseFromIstream(&stream));
    REQUIRE(proto.name() == name);
    Tensor<Scalar> x;
    Index count = 1;
    for (const auto extent : proto.dims()) x.shape.push_back(extent), count *= extent;
    REQUIRE(Json(x.shape) == index_.at("tensors").at(file(name)).at("shape"));
    const auto read = [&]<class Stored>(Stored) {
      REQUIRE(proto.raw_data().size() == static_cast<std::size_t>(count) * sizeof(Stored));
      static_assert(std::endian::native == std::endian::little, "raw_data is little endian");
      for (Index n = 0; n < count; ++n) {
        Stored value;
        std::memcpy(&value, proto.raw_data().data() + n * static_cast<Index>(sizeof value), sizeof value);
        x.values.push_back(static_cast<Scalar>(value));
      }
    };
    switch (proto.data_type()) {  // TensorProto.DataType in onnx.proto
      case 1: read(float{}); break;
      case 7: read(std::int64_t{}); break;
      case 9:
        read(std::uint8_t{});
        x.is_bool = true;
        break;
      case 10: read(Eigen::half{}); break;
      case 11: read(double{}); break;
      default: FAIL("data type " << proto.data_type());
    }
    return x;
  }

 private:
  std::string file(const std::string& name) const {
    for (const auto& [file, description] : index_.at("tensors").items())
      if (description.at("name") == name) return file;
    return "";
  }

  std::filesystem::path folder_;
  const Json& index_;
};

/// (batch, heads, seq, dim), or (batch, seq, heads x dim), as (batch, seq, heads, dim).
template <class T, class Scalar>
View<T, 4> as_bshd(T* data, const Tensor<Scalar>& x, Index heads) {
  if (x.shape.size() == 3) {
    const View<T, 3> packed(data, {x.shape[0], x.shape[1], x.shape[2]});
    return posenc::split_heads(packed, heads);
  }
  return View<T, 4>(data, {x.shape[0], x.shape[1], x.shape[2], x.shape[3]}).permute({0, 2, 1, 3});
}

template <class T>
View<T, 3> entry(const View<T, 4>& x, Index b) {
  return {x.data() + b * x.stride(0),
          {x.extent(1), x.extent(2), x.extent(3)},
          {x.stride(1), x.stride(2), x.stride(3)}};
}

/// Rows of keys and values, packed as a cache has them.
template <class Scalar>
Matrix<Scalar> packed(const View<const Scalar, 3>& k, const View<const Scalar, 3>& v) {
  Matrix<Scalar> rows(k.extent(0), k.extent(1) * (k.extent(2) + v.extent(2)));
  for (Index t = 0; t < k.extent(0); ++t)
    for (Index h = 0; h < k.extent(1); ++h) {
      for (Index c = 0; c < k.extent(2); ++c) rows(t, h * k.extent(2) + c) = k(t, h, c);
      for (Index c = 0; c < v.extent(2); ++c)
        rows(t, k.extent(1) * k.extent(2) + h * v.extent(2) + c) = v(t, h, c);
    }
  return rows;
}

template <class Scalar>
void compare(Comparison& comparison, const std::string& what, const std::vector<Scalar>& got,
             const Tensor<Scalar>& expected, double tolerance) {
  std::vector<Scalar> finite_got, finite_expected;
  std::vector<double> bound;
  REQUIRE(got.size() == expected.values.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    // A hidden score is -infinity here, and a very negative number where ONNX adds a mask to it.
    if (std::isinf(got[i]) && expected.values[i] < Scalar(-1e3)) continue;
    finite_got.push_back(got[i]), finite_expected.push_back(expected.values[i]);
    bound.push_back(tolerance * (1 + std::fabs(static_cast<double>(expected.values[i]))));
  }
  comparison.within(what, finite_got, finite_expected, bound);
}

template <class Scalar>
void run(const Case& c, const std::string& name, Comparison& comparison, double tolerance) {
  const auto q = c.tensor<Scalar>("Q"), k = c.tensor<Scalar>("K"), v = c.tensor<Scalar>("V");
  const auto expected = c.tensor<Scalar>("Y");
  const Json& attributes = c.attributes();
  const bool flat = q.shape.size() == 3;
  const Index heads = flat ? attributes.at("q_num_heads").get<Index>() : q.shape[1];
  const Index kv_heads = flat ? attributes.at("kv_num_heads").get<Index>() : k.shape[1];
  const auto queries = as_bshd<const Scalar>(q.values.data(), q, heads);
  const auto new_keys = as_bshd<const Scalar>(k.values.data(), k, kv_heads);
  const auto new_values = as_bshd<const Scalar>(v.values.data(), v, kv_heads);
  const Index batch = queries.extent(0), q_len = queries.extent(1), dim = queries.extent(3),
              v_dim = new_values.extent(3);
  const ScoreMod graph = score_mod(name);
  CHECK(attributes.contains("score_mod") ==
        (graph.causal || graph.softcap + graph.bias > 0 || graph.relative));
  const AttentionOptions options{
      .scale = attributes.value("scale", 1.0 / std::sqrt(static_cast<double>(dim))),
      .softcap = attributes.value("softcap", graph.softcap)};

  std::vector<Scalar> y(expected.values.size());
  const auto out = as_bshd<Scalar>(y.data(), expected, heads);
  const bool stage_wanted = c.has("qk_matmul_output");
  const int stage = attributes.value("qk_matmul_output_mode", 0);
  std::vector<Scalar> stages, present_key, present_value;
  std::optional<Tensor<Scalar>> given;
  if (c.has("attn_mask")) given = c.tensor<Scalar>("attn_mask");

  for (Index b = 0; b < batch; ++b) {
    KeyValueCache<Scalar> cache;
    Index past = 0;
    if (c.has("past_key")) {
      const auto past_key = c.tensor<Scalar>("past_key"), past_value = c.tensor<Scalar>("past_value");
      const auto rows =
          packed<Scalar>(entry(as_bshd<const Scalar>(past_key.values.data(), past_key, kv_heads), b),
                         entry(as_bshd<const Scalar>(past_value.values.data(), past_value, kv_heads), b));
      past = rows.rows();
      cache.append(View<const Scalar, 2>(rows.data(), {rows.rows(), rows.cols()}));
    }
    const auto rows = packed<Scalar>(entry(new_keys, b), entry(new_values, b));
    cache.append(View<const Scalar, 2>(rows.data(), {rows.rows(), rows.cols()}));
    const auto all = cache.view();
    View<const Scalar, 3> keys = posenc::split_heads(all.slice(1, 0, kv_heads * dim), kv_heads);
    View<const Scalar, 3> values =
        posenc::split_heads(all.slice(1, kv_heads * dim, kv_heads * v_dim), kv_heads);
    for (Index h = 0; h < kv_heads; ++h)
      for (Index t = 0; t < keys.extent(0); ++t) {
        for (Index e = 0; e < dim; ++e) present_key.push_back(keys(t, h, e));
        for (Index e = 0; e < v_dim; ++e) present_value.push_back(values(t, h, e));
      }
    const Index total = keys.extent(0);
    AttentionMask mask;
    if (attributes.value("is_causal", 0) != 0 || graph.causal) mask.causal_offset = past;
    if (c.has("nonpad_kv_seqlen")) {
      const auto lengths = c.tensor<Scalar>("nonpad_kv_seqlen");
      const auto length = static_cast<Index>(lengths.values[static_cast<std::size_t>(b)]);
      keys = keys.slice(0, 0, length), values = values.slice(0, 0, length);
      if (mask.causal_offset) mask.causal_offset = length - q_len;
    }
    const Index k_len = keys.extent(0);

    // attn_mask may differ between heads; ours may not, so the heads are run one by one.
    for (Index h = 0; h < heads; ++h) {
      Matrix<std::uint8_t> visible = Matrix<std::uint8_t>::Ones(q_len, k_len);
      Matrix<Scalar> added = Matrix<Scalar>::Constant(q_len, k_len, static_cast<Scalar>(graph.bias));
      if (graph.relative)  // i - j is -1 j but for a constant in each row: ALiBi as BLOOM has it, slope -1
        posenc::Alibi({.num_heads = heads, .form = posenc::AlibiForm::key_position},
                      std::vector<double>(static_cast<std::size_t>(heads), -1.0))
            .tile(added, h, posenc::consecutive(0, q_len), posenc::consecutive(0, k_len));
      if (given) {
        for (Index i = 0; i < q_len; ++i)
          for (Index j = 0; j < k_len; ++j) {
            const Scalar m = given->broadcast({b, h, i, j});
            if (given->is_bool)
              visible(i, j) = m != Scalar{0};
            else if (m == -std::numeric_limits<Scalar>::infinity())
              visible(i, j) = 0;
            else
              added(i, j) = m;
          }
        mask.pairs = View<const std::uint8_t, 2>(visible.data(), {q_len, k_len});
      }
      const auto bias = [&](const View<Scalar, 3>& scores) {
        if (added.size() > 0) transformer::plane(scores, 0) += added;
      };
      const Index g = h / (heads / kv_heads);
      const auto one_q = entry(queries, b).slice(1, h, 1);
      const auto one_k = keys.slice(1, g, 1), one_v = values.slice(1, g, 1);
      Matrix<Scalar> p(q_len, k_len);
      const View<Scalar, 3> scores(p.data(), {1, q_len, k_len});
      attend(entry(out, b).slice(1, h, 1), one_q, one_k, one_v, scores, View<Scalar, 3>(), options, mask,
             bias);
      if (!stage_wanted) continue;
      if (stage < 3) {  // the same again, only so far
        transformer::attention_scores(scores, one_q, one_k, options.scale);
        if (stage >= 1 && options.softcap != 0) transformer::softcap(scores, options.softcap);
        if (stage >= 2) bias(scores), transformer::hide(scores, mask);
      }
      for (Index i = 0; i < q_len; ++i)
        for (Index j = 0; j < total; ++j) stages.push_back(p(i, j));
    }
  }
  compare(comparison, name + " Y", y, expected, tolerance);
  if (stage_wanted)
    compare(comparison, name + " qk_matmul_output", stages, c.tensor<Scalar>("qk_matmul_output"), tolerance);
  if (c.has("present_key")) {
    compare(comparison, name + " present_key", present_key, c.tensor<Scalar>("present_key"), 0);
    compare(comparison, name + " present_value", present_value, c.tensor<Scalar>("present_value"), 0);
  }
}

}  // namespace

TEST_CASE("ONNX: Attention and FlexAttention") {
  const Json index = read_json(data_dir() / "onnx_node" / "index.json");
  Comparison exact, half;
  std::map<std::string, int> ran;
  int left_out = 0;
  for (const auto& [name, description] : index.items()) {
    const std::string op = description.at("nodes").at(0).at("op");
    if (op == "RotaryEmbedding") continue;
    INFO(name);
    if (name == not_run) {
      ++left_out;
      continue;
    }
    const Case c(data_dir() / "onnx_node" / name, description);
    const std::string type = c.dtype("Q");
    // float16: the reference rounds every step to half, we only read and compare halves.
    if (type == "float32") run<float>(c, name, exact, 2e-6);
    if (type == "float64") run<double>(c, name, exact, 1e-12);
    if (type == "float16") run<float>(c, name, half, 2e-3);
    ran[op + " " + type] += 1;
  }
  CHECK(ran["Attention float32"] == 72);
  CHECK(ran["Attention float16"] == 4);
  CHECK(ran["FlexAttention float32"] == 8);
  CHECK(ran["FlexAttention float64"] == 1);
  CHECK(ran["FlexAttention float16"] == 1);
  CHECK(left_out == 1);
  exact.finish("onnx_node, float32 and float64", 61160);
  half.finish("onnx_node, float16", 3624);
}
