// libFuzzer target for llama2.c's tokenizer. A first byte below 128: the rest is a file of that many ids more
// than there must be. Else the rest chooses pieces, and a text to encode.
//
// Only models::InputError may escape, and what is encoded decodes to itself.

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "fuzz/start_from.hpp"
#include "models/error.hpp"
#include "models/llama_tokenizer.hpp"
#include "support/llama_files.hpp"

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string whole = static_cast<char>(posenc_test::some_pieces().size()) +
                                   posenc_test::tokenizer_file(posenc_test::some_pieces());
  return posenc_test::start_from(whole, data, size, most, seed);
}

namespace {

void use(const models::LlamaTokenizer& words, const std::string& text) {
  const auto ids = words.encode(text);
  for (const models::Token id : ids)
    if (id < 0 || static_cast<std::size_t>(id) >= words.size()) std::abort();
  // The space in front goes only where it is a piece.
  const std::string back = words.decode(ids);
  if (back != text && back != " " + text) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  try {
    if (data[0] < 128) {
      const models::LlamaTokenizer words(posenc_test::bytes_of(rest), "fuzz", 259u + data[0]);
      use(words, rest.substr(0, 60));
      use(words, "abc  ab cc\n");
    } else {
      std::vector<std::pair<std::string, float>> pieces;
      std::size_t at = 0;
      for (int n = 0; n < data[0] - 128 && at + 2 < rest.size(); ++n) {
        const auto length = static_cast<std::size_t>(static_cast<unsigned char>(rest[at]) % 9);
        pieces.emplace_back(rest.substr(at + 2, length), static_cast<float>(rest[at + 1]));
        at += 2 + length;
      }
      const std::string file = posenc_test::tokenizer_file(pieces);
      const models::LlamaTokenizer words(posenc_test::bytes_of(file), "fuzz", 259 + pieces.size());
      use(words, at < rest.size() ? rest.substr(at, 200) : rest.substr(0, 200));
    }
  } catch (const models::InputError&) {
  }
  return 0;
}
