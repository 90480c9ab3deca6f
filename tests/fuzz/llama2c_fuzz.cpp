// libFuzzer target for the reader of llama2.c's weights. An even first byte: the rest is a file. An odd one:
// the rest chooses small sizes, and the file has about as many bytes as they need, which random bytes would
// hardly hit.
//
// Only models::InputError may escape the reader, and a model that was read can be run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "fuzz/start_from.hpp"
#include "models/error.hpp"
#include "models/llama.hpp"
#include "models/llama2c.hpp"
#include "support/llama_files.hpp"
#include "transformer/language_model.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string whole = '\0' + posenc_test::llama2c_file();
  return posenc_test::start_from(whole, data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  std::string file(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 1 && file.size() > 9) {
    const auto choice = [&](std::size_t n, int most) {
      return 1 + static_cast<std::int32_t>(static_cast<unsigned char>(file[n])) % most;
    };
    posenc_test::LlamaSizes s;
    s.heads = choice(0, 4), s.dim = s.heads * 2 * choice(1, 3), s.kv_heads = choice(2, 2);
    s.hidden = choice(3, 9), s.layers = choice(4, 3), s.seq_len = choice(5, 4);
    s.vocab = choice(6, 9) * (file[7] % 2 == 0 ? 1 : -1);
    std::string made = posenc_test::llama2c_file(s);
    for (std::size_t n = 8; n + 4 < file.size(); n += 5) {  // places and numbers
      const std::size_t at = (static_cast<unsigned char>(file[n]) + 256 * n) % made.size();
      made[at] = file[n + 1];
    }
    made.resize(made.size() - (choice(8, 32) == 1 ? 1 : 0));
    file = std::move(made);
  }
  try {
    const auto weights = models::read_llama2c(posenc_test::bytes_of(file), "fuzz");
    const auto model = models::make_llama<float>(weights);
    transformer::Continuation<float> text(model, 2);
    const transformer::Token first = 0;
    text.read(std::span(&first, 1));
    text.read(std::span(&first, 1));
  } catch (const models::InputError&) {
  }
  return 0;
}
