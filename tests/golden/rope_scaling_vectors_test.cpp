// Scaled frequencies and M-RoPE ids against the numbers in other projects' tests.

#include "golden/data.hpp"
// data.hpp comes first, see there.
#include <algorithm>
#include <string>
#include <vector>

#include "posenc/rotary/position_grids.hpp"
#include "posenc/rotary/rotary.hpp"
#include "posenc/rotary/scaling.hpp"

using namespace posenc;
using namespace posenc_test;

namespace {

class NeedsVectors : public NeedsData {
 public:
  using NeedsData::NeedsData;
  std::string folder() const override { return "reference_vectors"; }
};
CATCH_REGISTER_LISTENER(NeedsVectors)

Json read(const std::string& file) { return read_json(data_dir() / "reference_vectors" / file); }

RotaryScaling scaling_of(const Json& test) {
  if (test["rope_scaling"].is_null()) return DefaultScaling{};
  const Json& s = test["rope_scaling"];
  const std::string type = s["rope_type"];
  if (type == "dynamic")
    return DynamicNtkConfig{.factor = s["factor"],
                            .max_position_embeddings = test["max_position_embeddings"]};
  if (type == "yarn")
    return YarnConfig{.factor = s["factor"],
                      .original_max_position_embeddings = test["max_position_embeddings"],
                      .beta_fast = s["beta_fast"],
                      .beta_slow = s["beta_slow"]};
  if (type == "llama3")
    return Llama3Config{.factor = s["factor"],
                        .low_freq_factor = s["low_freq_factor"],
                        .high_freq_factor = s["high_freq_factor"],
                        .original_max_position_embeddings = s["original_max_position_embeddings"]};
  FAIL("an unknown rope_type: " << type);
  return DefaultScaling{};
}

}  // namespace

TEST_CASE("transformers: inv_freq of default, dynamic, yarn and llama3, to its printed digits") {
  Comparison compared;
  const Json file = read("transformers_rope_utils.json");
  for (const Json& test : file["cases"]) {
    const Index seq_len = test["seq_len"].is_null() ? 0 : test["seq_len"].get<Index>();
    const RotaryFrequencies f =
        scaled_frequencies({.head_dim = test["dim"], .rope_theta = test["base"]}, scaling_of(test), seq_len);
    // Five significant digits, so a relative bound that is as strict for the slowest pair as for the fastest.
    compared.printed(test["name"], f.inv_freq, test["inv_freq"], Printed::digits(5), 0);
    CHECK(f.attention_factor == Approx(test["attention_factor"].get<double>()).epsilon(1e-15));
  }
  compared.finish("transformers_rope_utils.json", 4 * 64);
}

TEST_CASE("torchtune: mean, sum and largest value of the Llama 3.1 cache") {
  const Rotary rope(llama3_scaled(rotary_frequencies({.head_dim = 128}),
                                  {.factor = 8, .original_max_position_embeddings = 8192}),
                    Pairing::adjacent);
  Eigen::Tensor<double, 2, Eigen::RowMajor> cos(4096, 64), sin(4096, 64);
  rope.cos_sin(cos, sin, consecutive(0, 4096));
  double sum = 0, largest = 0;
  for (Index i = 0; i < cos.size(); ++i) {
    sum += cos.data()[i] + sin.data()[i];
    largest = (std::max)({largest, cos.data()[i], sin.data()[i]});
  }
  const Json file = read("torchtune_llama31_rope_cache.json");
  CHECK(sum == Approx(file["numpy_float64"]["sum"].get<double>()).epsilon(1e-11));
  CHECK(sum / (2 * 4096 * 64) == Approx(file["expected"]["mean"].get<double>()).margin(5e-5));
  CHECK(largest == file["expected"]["max"].get<double>());
}

TEST_CASE("Qwen2.5-Omni: ids of a video with its sound, in chunks of two seconds") {
  // Chunks restart at their own time; rows and columns at the start of the video.
  const MropeSegment segments[] = {{.text = 2},
                                   {.text = 1},              // vision_bos
                                   {.text = 1, .start = 2},  // audio_bos
                                   {.frames = 2, .rows = 2, .columns = 2, .interval = 25, .start = 3},
                                   {.text = 50, .start = 3},  // two seconds of sound
                                   {.frames = 1, .rows = 2, .columns = 2, .start = 53, .spatial_start = 3},
                                   {.text = 25, .start = 53},
                                   {.text = 1},               // audio_eos
                                   {.text = 1, .start = 78},  // vision_eos
                                   {.text = 2}};
  const MropePositions ids = mrope_positions(segments);
  const Json ids_file = read("transformers_mrope_position_ids.json");
  const Json& expected = ids_file["position_ids"];
  REQUIRE(ids.at.count() == 95);
  int count = 0;
  for (Index axis = 0; axis < 3; ++axis)
    for (Index i = 0; i < 95; ++i, ++count) {
      INFO("axis " << axis << ", token " << i);
      CHECK(ids.at.integer(axis, 0, i) == expected[std::size_t(axis)][0][std::size_t(i)].get<Position>());
    }
  CHECK(count == 285);
  CHECK(95 + ids.delta == 81);
}
