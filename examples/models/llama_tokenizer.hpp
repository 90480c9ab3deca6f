#pragma once
// The tokenizer of llama2.c: byte pair encoding (Sennrich et al. 2016) with a score for each piece, as
// SentencePiece trains it. Its file, little-endian:
//
//   int32 max_token_length, then for each id: float32 score, int32 length, the bytes of the piece
//
//   0 <unk>   1 <s>   2 </s>   3 to 258: the bytes <0x00> to <0xFF>   then pieces of text
//
// The number of ids is not in the file: it is that of the model.
//
// A text is encoded as <s>, a space, and the characters of the text; what is no piece becomes its bytes. Then
// the two neighbours whose union is the piece of the best score become one, the first of several, until no
// two of them are a piece together.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/byte_reader.hpp"
#include "transformer/sequences.hpp"

namespace models {

using transformer::Token;
using transformer::Tokens;

class LlamaTokenizer {
 public:
  static constexpr Token unknown = 0, bos = 1, eos = 2, first_byte = 3;

  /// Throws an InputError that starts with `name` unless the bytes are those of `vocab_size` pieces.
  LlamaTokenizer(Bytes bytes, const std::string& name, std::size_t vocab_size) {
    ByteReader file(bytes, name);
    const auto fail = [&](const std::string& what) { file.fail("not a tokenizer of llama2.c: " + what); };
    if (vocab_size < first_byte + 256)
      fail("expected at least " + std::to_string(first_byte + 256) + " pieces, the model has " +
           std::to_string(vocab_size));
    if (file.size() < 4) fail("shorter than 4 bytes");
    longest_ = file.number<std::int32_t>("max_token_length", 1, 1 << 16);
    if (file.left() / 8 < vocab_size)
      fail("truncated: " + std::to_string(vocab_size) + " pieces, as many as the model has, need at least " +
           std::to_string(4 + 8 * vocab_size) + " bytes, got " + std::to_string(file.size()));
    pieces_.reserve(vocab_size);
    for (std::size_t id = 0; id < vocab_size; ++id) {
      const std::string what = "piece " + std::to_string(id);
      Piece piece;
      file.floats(std::span(&piece.score, 1), NumberType::f32, "the score of " + what);
      const auto length = file.number<std::int32_t>("the length of " + what, 0, longest_);
      piece.text = file.text(static_cast<std::uint64_t>(length), what);
      pieces_.push_back(std::move(piece));
    }
    file.require_end();
    for (std::size_t byte = 0; byte < 256; ++byte) {
      constexpr std::string_view digits = "0123456789ABCDEF";
      const std::string expected = {'<', '0', 'x', digits[byte / 16], digits[byte % 16], '>'};
      if (pieces_[first_byte + byte].text != expected)
        fail("piece " + std::to_string(first_byte + byte) + ": expected " + expected + ", got " +
             pieces_[first_byte + byte].text);
    }
    for (std::size_t id = first_byte + 256; id < vocab_size; ++id)
      ids_.try_emplace(pieces_[id].text, static_cast<Token>(id));
  }

  std::size_t size() const { return pieces_.size(); }
  /// No piece has more bytes.
  std::size_t longest() const { return static_cast<std::size_t>(longest_); }

  /// <s> and the text.
  Tokens encode(std::string_view text) const {
    Tokens ids = {bos};
    if (text.empty()) return ids;
    append_character(ids, " ");
    for (std::size_t at = 0; at < text.size();) {
      std::size_t next = at + 1;
      while (next < text.size() && next < at + 4 && (static_cast<unsigned char>(text[next]) & 0xc0) == 0x80)
        ++next;
      append_character(ids, text.substr(at, next - at));
      at = next;
    }
    merge(ids);
    return ids;
  }

  /// The bytes that a token adds to a text, after the token `previous`: the space that encode() put in front
  /// of the text goes again.
  std::string decode(Token previous, Token token) const {
    if (token < first_byte || static_cast<std::size_t>(token) >= pieces_.size()) return "";
    if (token < first_byte + 256) return std::string(1, static_cast<char>(token - first_byte));
    std::string_view text = pieces_[static_cast<std::size_t>(token)].text;
    if (previous == bos && text.starts_with(' ')) text.remove_prefix(1);
    return std::string(text);
  }
  /// The text of a sequence that starts with <s>.
  std::string decode(const Tokens& ids) const {
    std::string text;
    for (std::size_t n = 1; n < ids.size(); ++n) text += decode(ids[n - 1], ids[n]);
    return text;
  }

 private:
  struct Piece {
    std::string text;
    float score = 0;
  };

  std::optional<Token> find(std::string_view text) const {
    const auto found = ids_.find(text);
    return found == ids_.end() ? std::nullopt : std::optional(found->second);
  }

  void append_character(Tokens& ids, std::string_view character) const {
    if (const auto id = find(character)) {
      ids.push_back(*id);
    } else {
      for (const char c : character)
        ids.push_back(static_cast<Token>(first_byte + static_cast<unsigned char>(c)));
    }
  }

  /// What the tokens n and n + 1 are together.
  std::optional<Token> together(const Tokens& ids, std::size_t n) const {
    if (n + 1 >= ids.size() || ids[n] < first_byte + 256 || ids[n + 1] < first_byte + 256) return {};
    return find(pieces_[static_cast<std::size_t>(ids[n])].text +
                pieces_[static_cast<std::size_t>(ids[n + 1])].text);
  }

  void merge(Tokens& ids) const {
    std::vector<std::optional<Token>> pairs;  // pairs[n]: what n and n + 1 are together
    for (std::size_t n = 0; n < ids.size(); ++n) pairs.push_back(together(ids, n));
    for (;;) {
      std::size_t best = pairs.size();
      for (std::size_t n = 0; n < pairs.size(); ++n)
        if (pairs[n] && (best == pairs.size() || score(*pairs[n]) > score(*pairs[best]))) best = n;
      if (best == pairs.size()) return;
      ids[best] = *pairs[best];
      ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      pairs.erase(pairs.begin() + static_cast<std::ptrdiff_t>(best) + 1);
      pairs[best] = together(ids, best);
      if (best > 0) pairs[best - 1] = together(ids, best - 1);
    }
  }
  float score(Token id) const { return pieces_[static_cast<std::size_t>(id)].score; }

  std::vector<Piece> pieces_;
  std::map<std::string, Token, std::less<>> ids_;
  std::int32_t longest_ = 0;
};

}  // namespace models
