// The RotaryEmbedding cases of ONNX's backend tests, from the folder onnx_node of POSENC_DATA_DIR. Their
// caches are random numbers, not cosines and sines, so they go through RotaryTable only.

#include "golden/data.hpp"
// data.hpp comes first, see there.
#include <array>
#include <bit>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "posenc/posenc.hpp"
#include "tensor.pb.h"

using namespace posenc_test;
using posenc::Axes, posenc::Pairing, posenc::Position;

namespace {

class NeedsOnnxNode : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override { return "onnx_node"; }
};
CATCH_REGISTER_LISTENER(NeedsOnnxNode)

template <class S>
constexpr int data_type = 0;  // TensorProto.DataType in onnx.proto
template <>
constexpr int data_type<float> = 1;
template <>
constexpr int data_type<std::int64_t> = 7;

/// One test: its folder, and what index.json says of its node and tensors.
class Case {
 public:
  Case(std::filesystem::path folder, const Json& index) : folder_(std::move(folder)), index_(index) {
    REQUIRE(index.at("nodes").size() == 1);
    for (const auto& [name, value] : attributes().items()) {
      INFO(name << " = " << value);
      CHECK((name == "interleaved" || name == "num_heads" || name == "rotary_embedding_dim"));
    }
  }

  const Json& attributes() const { return index_.at("nodes").at(0).at("attributes"); }
  bool has(const std::string& file) const { return index_.at("tensors").contains(file); }
  std::size_t rank(const std::string& file) const { return index_.at("tensors").at(file).at("shape").size(); }

  /// A stored tensor, which must be the one that the test wants.
  template <class S, std::size_t Rank>
  Values<S, Rank> tensor(const std::string& file, const std::string& name) const {
    const std::filesystem::path path = folder_ / "test_data_set_0" / file;
    INFO(path.string());
    std::ifstream stream(path, std::ios::binary);
    posenc_test::TensorProto proto;
    REQUIRE(proto.ParseFromIstream(&stream));
    REQUIRE(proto.name() == name);
    REQUIRE(proto.data_type() == data_type<S>);
    REQUIRE(proto.dims_size() == static_cast<int>(Rank));

    Values<S, Rank> x{{}, {}};
    for (std::size_t axis = 0; axis < Rank; ++axis) x.extents[axis] = proto.dims(static_cast<int>(axis));
    REQUIRE(Json(x.extents) == index_.at("tensors").at(file).at("shape"));
    x.values.resize(static_cast<std::size_t>(product(x.extents)));
    REQUIRE(proto.raw_data().size() == x.values.size() * sizeof(S));
    static_assert(std::endian::native == std::endian::little, "raw_data is little endian");
    std::memcpy(x.values.data(), proto.raw_data().data(), proto.raw_data().size());
    return x;
  }

 private:
  std::filesystem::path folder_;
  const Json& index_;
};

/// Turns x as the node does, where x is a view whose axes have names.
template <class X>
void rotate(const Case& c, const X& x, Axes axes) {
  const Json& attributes = c.attributes();
  const Pairing pairing = attributes.value("interleaved", 0) == 1 ? Pairing::adjacent : Pairing::half;
  const Index stated = attributes.value("rotary_embedding_dim", Index{0});
  const Index width = stated == 0 ? x.extent(3) : stated;
  if (c.has("input_3.pb")) {  // caches of (max_pos, width / 2), and a row for each token
    const auto cos = c.tensor<float, 2>("input_1.pb", "cos_cache");
    const auto sin = c.tensor<float, 2>("input_2.pb", "sin_cache");
    const auto ids = c.tensor<std::int64_t, 2>("input_3.pb", "position_ids");
    const posenc::RotaryTable table(cos.view(), sin.view(), pairing);
    CHECK(table.rotary_dim() == width);
    table.rotate(x, posenc::position_ids(ids.view()), axes);
  } else {  // caches of (batch, seq, width / 2)
    const auto cos = c.tensor<float, 3>("input_1.pb", "cos_cache");
    const auto sin = c.tensor<float, 3>("input_2.pb", "sin_cache");
    const posenc::RotaryTable table(cos.view(), sin.view(), pairing);
    CHECK(table.rotary_dim() == width);
    table.rotate(x, axes);
  }
}

template <std::size_t Rank>
void compare(Comparison& comparison, const std::string& name, const Values<float, Rank>& got,
             const Values<float, Rank>& expected) {
  REQUIRE(got.extents == expected.extents);
  comparison.within(name, got.values, expected.values, std::vector<double>(got.values.size(), 1e-6));
}

}  // namespace

TEST_CASE("ONNX: RotaryEmbedding") {
  const Json index = read_json(data_dir() / "onnx_node" / "index.json");
  Comparison comparison;
  int cases = 0;
  for (const auto& [name, description] : index.items()) {
    if (description.at("nodes").at(0).at("op") != "RotaryEmbedding") continue;
    INFO(name);
    const Case c(data_dir() / "onnx_node" / name, description);
    if (c.rank("input_0.pb") == 4) {
      auto x = c.tensor<float, 4>("input_0.pb", "input");
      rotate(c, x.view(), Axes::bhsd);
      compare(comparison, name, x, c.tensor<float, 4>("output_0.pb", "output"));
    } else {
      auto x = c.tensor<float, 3>("input_0.pb", "input");
      rotate(c, posenc::split_heads(x.view(), c.attributes().at("num_heads")), Axes::bshd);
      compare(comparison, name, x, c.tensor<float, 3>("output_0.pb", "output"));
    }
    cases += 1;
  }
  CHECK(cases == 8);
  comparison.finish("onnx_node", 8 * 192);
}
