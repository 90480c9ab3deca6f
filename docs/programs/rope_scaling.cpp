#include <posenc/posenc.hpp>

#include <cstdio>
#include <numbers>

int main() {
  const posenc::RotaryConfig config{.head_dim = 128, .rope_theta = 500000.0};
  const auto print = [](const char* name, const posenc::RotaryFrequencies& f) {
    std::printf("%-14s", name);
    for (const std::size_t pair : {0u, 28u, 32u, 63u})
      std::printf(" %10.0f", 2 * std::numbers::pi / f.inv_freq[pair]);
    std::printf("   x %.4f\n", f.attention_factor);
  };
  std::printf("positions per turn of pair   0         28         32         63   cos and sin\n");
  print("none", posenc::rotary_frequencies(config));
  print("linear", posenc::linear_scaled(posenc::rotary_frequencies(config), 8));
  print("Llama 3", posenc::llama3_scaled(posenc::rotary_frequencies(config),
                                         {.factor = 8, .original_max_position_embeddings = 8192}));
  print("YaRN", posenc::yarn_frequencies(config, {.factor = 8, .original_max_position_embeddings = 8192}));
  const posenc::DynamicNtkConfig dynamic{.factor = 8, .max_position_embeddings = 8192};
  print("dynamic, 8192", posenc::dynamic_ntk_frequencies(config, dynamic, 8192));
  print("dynamic, 65536", posenc::dynamic_ntk_frequencies(config, dynamic, 65536));
}
