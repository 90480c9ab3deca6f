#pragma once
// A trained encoder-decoder that spells names of one script in another: a CTranslate2 model of architecture
// "TransformerBase" (what OpenNMT-tf exports) with a vocabulary of characters for each side.
//
//   model.bin               the weights
//   source_vocabulary.txt   one character a line, its number is the line; the model has one row more, for
//   target_vocabulary.txt   characters that are not listed
//
// The architecture: pre-norm layers with ReLU and biases everywhere, 8 heads, embeddings times sqrt(d_model),
// an output matrix of its own. Positions are tensor2tensor's sinusoids: all sines, then all cosines, the last
// frequency exactly 1/10000, the first character at position 1. The encoder reads the bare characters.

#include <algorithm>
#include <filesystem>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/ctranslate2.hpp"
#include "models/ctranslate2_weights.hpp"
#include "models/error.hpp"
#include "models/mapped_file.hpp"
#include "transformer/generation.hpp"
#include "transformer/transformer.hpp"
#include "translate/utf8.hpp"

namespace models {

using transformer::Index;
using transformer::Token;
using transformer::Tokens;

/// The configuration of an encoder-decoder in a file. Throws an InputError where it is something else.
inline transformer::TransformerConfig transliterator_config(const Ctranslate2File& file) {
  if (file.spec() != "TransformerBase")
    file.fail("expected the architecture TransformerBase, got \"" + file.spec() + "\"");
  transformer::TransformerConfig config;
  config.vocab_size = ctranslate2_extent(file, "decoder/embeddings/weight", 0);
  config.source_vocab_size = ctranslate2_extent(file, "encoder/embeddings/weight", 0);
  config.d_model = ctranslate2_extent(file, "encoder/embeddings/weight", 1);
  config.num_heads = 8;
  config.num_encoder_layers = ctranslate2_layers(file, "encoder");
  config.num_decoder_layers = ctranslate2_layers(file, "decoder");
  if (config.num_encoder_layers == 0 || config.num_decoder_layers == 0)
    file.fail("expected at least one encoder and one decoder layer");
  config.d_ff = ctranslate2_extent(file, "encoder/layer_0/ffn/linear_0/weight", 0);
  config.norm_placement = transformer::NormPlacement::pre;
  config.norm_eps = 1e-5;
  config.dropout = 0.0;
  config.attention_bias = true;
  config.source_eos = false;
  config.output = {.tied = false, .bias = true};
  config.sinusoidal = {.exponent = posenc::SinusoidExponent::i_over_half_minus_one,
                       .layout = posenc::SinusoidLayout::halves,
                       .first_position = 1};
  return config;
}

/// The model of a file. Its size is that of its weights: nothing is allocated before they are known to be
/// there.
template <class Scalar>
transformer::Transformer<Scalar> read_transliterator(const Ctranslate2File& file) {
  const auto config = transliterator_config(file);
  try {
    require_ctranslate2_weights(file, transformer::Transformer<Scalar>::outline(config).parameters());
    transformer::Transformer<Scalar> model(config);
    read_ctranslate2_weights(file, model.parameters());
    return model;
  } catch (const std::invalid_argument& error) {  // a configuration that is none
    file.fail(error.what());
  }
}

/// The characters of one side.
class Alphabet {
 public:
  /// The lines of a file; the model has `rows` rows, the last one for all other characters.
  Alphabet(Bytes text, const std::string& path, Index rows) {
    ByteReader reader(text, path);
    std::string_view rest = reader.text(reader.left(), "its text");
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      std::string_view line = rest.substr(0, end);
      rest.remove_prefix(std::min(end + 1, rest.size()));
      if (line.ends_with('\r')) line.remove_suffix(1);
      if (static_cast<Index>(pieces_.size()) + 1 >= rows)
        reader.fail("more than " + std::to_string(rows - 1) + " lines, which is what its model has");
      if (line.empty() || !translate::is_utf8(line))
        reader.fail("line " + std::to_string(pieces_.size() + 1) + " is not a character in UTF-8");
      if (!numbers_.emplace(std::string(line), static_cast<Token>(pieces_.size())).second)
        reader.fail("line " + std::to_string(pieces_.size() + 1) + " stands there twice");
      pieces_.emplace_back(line);
    }
    if (static_cast<Index>(pieces_.size()) + 1 != rows)
      reader.fail("expected " + std::to_string(rows - 1) + " lines, as many as its model has, got " +
                  std::to_string(pieces_.size()));
    pieces_.emplace_back("<unk>");
  }

  /// The number of the characters that are not listed.
  Token unknown() const { return static_cast<Token>(pieces_.size()) - 1; }

  /// The number of a line, or unknown().
  Token number(const std::string& piece) const {
    const auto found = numbers_.find(piece);
    return found == numbers_.end() ? unknown() : found->second;
  }
  const std::string& piece(Token number) const { return pieces_.at(static_cast<std::size_t>(number)); }

  /// The characters of a text in UTF-8.
  Tokens encode(std::string_view text) const {
    Tokens tokens;
    for (std::size_t at = 0; at < text.size();) {
      const translate::CodePoint c = translate::code_point(text, at);
      if (c.bytes == 0) throw InputError("a name is not UTF-8");
      tokens.push_back(number(std::string(text.substr(at, c.bytes))));
      at += c.bytes;
    }
    return tokens;
  }
  std::string decode(std::span<const Token> tokens) const {
    std::string text;
    for (const Token token : tokens) text += piece(token);
    return text;
  }

 private:
  std::vector<std::string> pieces_;
  std::unordered_map<std::string, Token> numbers_;
};

struct Transliterator {
  transformer::Transformer<float> network;
  Alphabet source, target;
  NumberType stored_as;  // of the weight matrices in the file
};

/// Reads model.bin, or the folder that it lies in, and the two vocabularies next to it.
inline Transliterator load_transliterator(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code none;
  const fs::path model = fs::is_directory(path, none) ? fs::path(path) / "model.bin" : fs::path(path);
  const MappedFile mapped(model.string());
  const Ctranslate2File file(mapped.bytes(), mapped.path());
  transformer::Transformer<float> network = read_transliterator<float>(file);
  const auto& config = network.config();
  const auto alphabet = [&](const char* name, Index rows) {
    const MappedFile lines((model.parent_path() / name).string());
    return Alphabet(lines.bytes(), lines.path(), rows);
  };
  Alphabet source = alphabet("source_vocabulary.txt", config.source_vocab_size);
  Alphabet target = alphabet("target_vocabulary.txt", config.vocab_size);
  if (target.piece(config.special.bos) != "<s>" || target.piece(config.special.eos) != "</s>")
    throw InputError((model.parent_path() / "target_vocabulary.txt").string() +
                     ": expected <s> and </s> on lines 2 and 3");
  return {std::move(network), std::move(source), std::move(target),
          file.require("encoder/embeddings/weight").type};
}

}  // namespace models
