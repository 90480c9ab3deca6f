// libFuzzer target of the reader of config.json: no text may do anything but give a description or throw
// std::invalid_argument or std::out_of_range, and every rotary layer of a description has frequencies. Start
// it on a folder of real files:
//
//   hf_config_fuzz -max_len=65536 found/ hf_configs/

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string_view>
#include <variant>

#include "posenc/io/hf_config.hpp"

namespace {

void use(const posenc::ModelPositions& model) {
  for (const posenc::StackPositions& stack : model.stacks) {
    const posenc::LayerPositions* last = nullptr;
    for (const posenc::LayerPositions& layer : stack.layers) {
      const auto* rotary = std::get_if<posenc::RotaryLayer>(&layer.scheme);
      // Layers of a kind are alike; one of each run is enough.
      if (rotary == nullptr || (last != nullptr && last->type == layer.type)) continue;
      last = &layer;
      for (const posenc::Index length : {posenc::Index{1}, posenc::Index{1} << 20})
        for (const double f : rotary->frequencies(length).inv_freq)
          if (std::isnan(f)) std::abort();
    }
    if (const auto* sinusoidal = std::get_if<posenc::SinusoidalConfig>(&stack.embedding))
      if (*sinusoidal->d_model < 4096 && posenc::sinusoidal_frequencies(*sinusoidal).empty()) std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  posenc::ModelPositions model;
  try {
    model = posenc::model_positions_from_hf_text(std::string_view(reinterpret_cast<const char*>(data), size));
  } catch (const std::invalid_argument&) {
    return 0;
  } catch (const std::out_of_range&) {
    return 0;
  }
  use(model);  // a description holds what it promises: nothing is caught here
  return 0;
}
