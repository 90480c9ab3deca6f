#pragma once
// Words as numbers: sentences are split into words and punctuation marks, and one vocabulary serves both
// languages.

#include <algorithm>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "models/error.hpp"
#include "transformer/sequences.hpp"
#include "translate/grammar.hpp"
#include "translate/utf8.hpp"

namespace translate {

using models::InputError;
using transformer::Token;
using transformer::Tokens;

namespace detail {

inline bool is_punctuation(char32_t c) {
  return c == U'.' || c == U',' || c == U'!' || c == U'?' || c == U';' || c == U':' || c == U'"' ||
         c == U'(' || c == U')' || c == U'।';
}

/// Punctuation that is written without a blank before it.
inline bool follows_closely(std::string_view word) {
  return word == "." || word == "," || word == "!" || word == "?" || word == ";" || word == ":" ||
         word == ")" || word == "।";
}

}  // namespace detail

/// The words of a text that is UTF-8. Latin capitals become small, punctuation marks are words of their own,
/// and the Devanagari letters with a dot that Unicode has twice (ड़ in one or two code points) become the
/// same.
inline std::vector<std::string> split(std::string_view text) {
  // U+0958 ... U+095F, each a letter and U+093C
  static constexpr std::string_view dotted[] = {"क़", "ख़", "ग़", "ज़", "ड़", "ढ़", "फ़", "य़"};
  std::vector<std::string> words;
  bool open = false;  // the last word goes on
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point(text, at);
    if (c.bytes == 0) throw InputError("the text is not UTF-8");
    std::string letter(text.substr(at, c.bytes));
    at += c.bytes;
    if (c.value <= U' ' || c.value == 0x7f || c.value == 0xa0 || c.value == 0xfeff) {
      open = false;
      continue;
    }
    if (c.value >= U'A' && c.value <= U'Z') letter[0] = static_cast<char>(letter[0] - 'A' + 'a');
    if (c.value >= 0x958 && c.value <= 0x95f) letter = dotted[c.value - 0x958];
    const bool mark = detail::is_punctuation(c.value);
    if (!open || mark) words.emplace_back();
    words.back() += letter;
    open = !mark;
  }
  return words;
}

/// A list of words; the number of a word is its place in the list. The first four are not words of a
/// language.
class Vocabulary {
 public:
  static constexpr Token pad = 0, bos = 1, eos = 2, unknown = 3;
  static constexpr std::size_t special_count = 4;
  static const std::vector<std::string>& special_words() {
    static const std::vector<std::string> words = {"<pad>", "<bos>", "<eos>", "<unk>"};
    return words;
  }

  /// The words in the order of their numbers, the special ones first.
  explicit Vocabulary(std::vector<std::string> words = special_words()) : words_(std::move(words)) {
    if (words_.size() < special_count ||
        !std::equal(special_words().begin(), special_words().end(), words_.begin()))
      throw InputError("vocabulary: expected <pad> <bos> <eos> <unk> first");
    for (std::size_t n = 0; n < words_.size(); ++n) {
      const std::string& word = words_[n];
      if (!is_utf8(word)) throw InputError("vocabulary: word " + std::to_string(n) + " is not UTF-8");
      if (n >= special_count && split(word) != std::vector<std::string>{word})
        throw InputError("vocabulary: word " + std::to_string(n) + " is not one word");
      if (!numbers_.emplace(word, static_cast<Token>(n)).second)
        throw InputError("vocabulary: word " + std::to_string(n) + " stands there twice");
    }
  }

  /// The words of both sides of the pairs, the frequent ones first; no more than `most`, the rest are
  /// unknown.
  static Vocabulary of(std::span<const TextPair> pairs, std::size_t most = 20000) {
    std::map<std::string, std::size_t> counts;
    for (const TextPair& pair : pairs)
      for (const std::string* text : {&pair.source, &pair.target})
        for (std::string& word : split(*text)) ++counts[std::move(word)];
    for (const std::string& special : special_words()) counts.erase(special);
    std::vector<std::pair<std::string, std::size_t>> order(counts.begin(), counts.end());
    std::stable_sort(order.begin(), order.end(),
                     [](const auto& a, const auto& b) { return a.second > b.second; });
    if (order.size() > most) order.resize(most);
    std::vector<std::string> words = special_words();
    for (auto& [word, count] : order) words.push_back(std::move(word));
    return Vocabulary(std::move(words));
  }

  std::size_t size() const { return words_.size(); }
  const std::vector<std::string>& words() const { return words_; }

  /// The number of a word; `unknown` if it is not in the list.
  Token number(const std::string& word) const {
    const auto found = numbers_.find(word);
    return found == numbers_.end() || found->second < static_cast<Token>(special_count) ? unknown
                                                                                        : found->second;
  }

  struct Encoded {
    Tokens tokens;
    std::vector<std::string> words;          // one for each token, as split
    std::vector<std::string> unknown_words;  // those that the vocabulary lacks, in their order
  };

  /// The numbers of the words of a text. A full stop that the vocabulary does not know is left out.
  Encoded encode(std::string_view text) const {
    Encoded out;
    out.words = split(text);
    while (!out.words.empty() && (out.words.back() == "." || out.words.back() == "।") &&
           number(out.words.back()) == unknown)
      out.words.pop_back();
    for (const std::string& word : out.words) {
      out.tokens.push_back(number(word));
      if (out.tokens.back() == unknown) out.unknown_words.push_back(word);
    }
    return out;
  }

  const std::string& word(Token token) const {
    const bool inside = token >= 0 && static_cast<std::size_t>(token) < words_.size();
    return words_[inside ? static_cast<std::size_t>(token) : static_cast<std::size_t>(unknown)];
  }

  /// The text of some tokens, punctuation next to the word before it.
  std::string decode(std::span<const Token> tokens) const {
    std::string text;
    for (const Token token : tokens) {
      if (!text.empty() && !detail::follows_closely(word(token))) text += ' ';
      text += word(token);
    }
    return text;
  }

 private:
  std::vector<std::string> words_;
  std::unordered_map<std::string, Token> numbers_;
};

}  // namespace translate
