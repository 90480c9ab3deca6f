// libFuzzer target for CTranslate2 files, the two kinds of models in them, and the vocabularies beside them:
// the bytes are a file.
//
// Only models::InputError may escape the readers, and a model that was read can be run.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "fuzz/start_from.hpp"
#include "models/ctranslate2.hpp"
#include "models/error.hpp"
#include "models/opennmt_lm.hpp"
#include "models/transliterator.hpp"
#include "support/ctranslate2_writer.hpp"
#include "transformer/generation.hpp"

namespace {

std::string transliterator(std::uint32_t version, posenc_test::Stored how) {
  const transformer::Transformer<float> model(posenc_test::tiny_transliterator());
  posenc_test::Ctranslate2Writer writer(version);
  posenc_test::write_weights(writer, model.parameters(), "", how);
  const auto file = writer.file();
  return {file.begin(), file.end()};
}

/// What may throw an InputError and nothing else.
template <class Read>
void attempt(const Read& read) {
  try {
    read();
  } catch (const models::InputError&) {
  }
}

}  // namespace

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned seed) {
  static const std::string whole[] = {transliterator(2, posenc_test::Stored::as_float32),
                                      transliterator(6, posenc_test::Stored::as_int8), [] {
                                        const auto file = posenc_test::tiny_opennmt_lm();
                                        return std::string(file.begin(), file.end());
                                      }()};
  return posenc_test::start_from(whole[seed / 64 % 3], data, size, most, seed);
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const models::Bytes bytes(data, size);
  const transformer::Token first = 0;
  attempt([&] {
    const models::Ctranslate2File file(bytes, "fuzz");
    for (const auto& variable : file.variables()) {
      attempt([&] { file.floats(variable.first); });
      attempt([&] { file.option(variable.first); });
    }
    attempt([&] {
      const auto model = models::read_transliterator<float>(file);
      transformer::greedy<float>(model, std::span(&first, 1), {.max_new_tokens = 2});
    });
    attempt([&] {
      const auto model = models::read_opennmt_lm<float>(file);
      transformer::Continuation<float> text(model, 1);
      text.read(std::span(&first, 1));
    });
  });
  attempt([&] {
    const auto lines = static_cast<models::Index>(std::count(data, data + size, std::uint8_t{'\n'}));
    const models::Alphabet alphabet(bytes, "fuzz", lines + 1);
    alphabet.encode({reinterpret_cast<const char*>(data), size});
  });
  return 0;
}
