#pragma once
// Sentence pairs, parted into those to learn from, those held out, and those that are longer than any to
// learn from.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "models/error.hpp"
#include "translate/grammar.hpp"
#include "translate/random.hpp"
#include "translate/tokenizer.hpp"
#include "translate/utf8.hpp"

namespace translate {

using models::InputError;

struct Corpus {
  std::vector<TextPair> train, held_out, longer;
  std::vector<TextPair> twins;  // two and two: a sentence and twin_of() it, neither of them learnt
  std::size_t longest = 0;      // words of the longest sentence in `train`, either side
  std::size_t left_out = 0;     // pairs of a file that were too long for any use
};

/// Whether a pair is kept for testing. Only the first text decides, so no sentence is both learnt and tested.
inline bool is_held_out(std::string_view source) {
  std::uint64_t hash = 0xcbf29ce484222325u;  // FNV-1a
  for (const char c : source) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return mix(hash) % 16 == 0;
}

struct GrammarCorpusSize {
  std::size_t train = 100000, held_out = 500, longer = 500, twins = 500;
  std::size_t words = 10;         // sentences to learn from have at most so many words in either language ...
  std::size_t longer_words = 16;  // ... the longer ones have more than that in both, and at most so many
};

/// Distinct sentences of the grammar. Always the same ones: seeds of training don't change what is learnt or
/// tested.
inline Corpus grammar_corpus(const GrammarCorpusSize& size = {}) {
  Corpus corpus;
  corpus.longest = size.words;
  const auto words = [](const std::string& text) {  // those of split(), for texts of the grammar
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), ' ')) +
           (text.ends_with('?') ? 2u : 1u);
  };
  std::unordered_set<std::string> seen;
  std::uint64_t index = 0;
  for (; corpus.train.size() < size.train || corpus.held_out.size() < size.held_out ||
         corpus.longer.size() < size.longer;
       ++index) {
    TextPair pair = random_pair(1, index);
    const std::size_t source = words(pair.source), target = words(pair.target);
    std::vector<TextPair>* part = nullptr;
    std::size_t wanted = 0;
    if (std::max(source, target) <= size.words) {
      const bool held = is_held_out(pair.source);
      part = held ? &corpus.held_out : &corpus.train;
      wanted = held ? size.held_out : size.train;
    } else if (std::min(source, target) > size.words && std::max(source, target) <= size.longer_words) {
      part = &corpus.longer;
      wanted = size.longer;
    }
    if (part != nullptr && part->size() < wanted && seen.insert(pair.source).second)
      part->push_back(std::move(pair));
  }
  for (; corpus.twins.size() < size.twins; ++index) {
    const Sentence sentence = random_sentence(1, index);
    const std::optional<Sentence> twin = twin_of(sentence);
    if (!twin) continue;
    TextPair one{english(sentence), hindi(sentence)}, other{english(*twin), hindi(*twin)};
    if (std::max(words(one.source), words(one.target)) > size.words || seen.count(one.source) > 0 ||
        seen.count(other.source) > 0)
      continue;
    seen.insert({one.source, other.source});
    corpus.twins.push_back(std::move(one));
    corpus.twins.push_back(std::move(other));
  }
  return corpus;
}

/// The pairs of a file: a line each, source, tab, target; further columns are ignored, as are empty lines.
/// With `keep_longer`, about the longest twentieth is kept apart as `longer`.
inline Corpus file_corpus(const std::string& path, bool keep_longer) {
  constexpr std::size_t most_words = 120, most_bytes = std::size_t{1} << 28;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  if (!file || (file.peek(), file.bad())) throw InputError(path + ": cannot be read");
  std::vector<TextPair> pairs;
  std::vector<std::size_t> lengths;
  Corpus corpus;
  std::size_t number = 0, bytes = 0;
  while (std::getline(file, line)) {
    ++number;
    const auto fail = [&](const std::string& what) {
      throw InputError(path + ": line " + std::to_string(number) + ": " + what);
    };
    bytes += line.size() + 1;
    if (bytes > most_bytes) fail("the file is larger than 256 MiB");
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (!is_utf8(line)) fail("not UTF-8");
    if (line.find_first_not_of(" \t") == std::string::npos) continue;
    const std::size_t tab = line.find('\t');
    if (tab == std::string::npos) fail("expected a tab between the two sentences");
    const std::size_t second_tab = line.find('\t', tab + 1);
    TextPair pair{line.substr(0, tab),
                  line.substr(tab + 1, second_tab == std::string::npos ? second_tab : second_tab - tab - 1)};
    const std::size_t source = split(pair.source).size(), target = split(pair.target).size();
    if (source == 0 || target == 0)
      fail(std::string("the ") + (source == 0 ? "first" : "second") + " sentence is empty");
    if (std::max(source, target) > most_words) {
      ++corpus.left_out;
      continue;
    }
    pairs.push_back(std::move(pair));
    lengths.push_back(std::max(source, target));
  }
  if (file.bad() || !file.eof()) throw InputError(path + ": cannot be read");

  std::size_t limit = most_words;
  if (keep_longer && !lengths.empty()) {
    std::vector<std::size_t> sorted = lengths;
    std::sort(sorted.begin(), sorted.end());
    limit = sorted[sorted.size() * 19 / 20];
    if (limit == sorted.back() && sorted.front() < limit) --limit;
  }
  for (std::size_t n = 0; n < pairs.size(); ++n) {
    const bool held = is_held_out(pairs[n].source);
    if (lengths[n] <= limit && !held) corpus.longest = std::max(corpus.longest, lengths[n]);
    (lengths[n] > limit ? corpus.longer
     : held             ? corpus.held_out
                        : corpus.train)
        .push_back(std::move(pairs[n]));
  }
  if (corpus.train.empty()) throw InputError(path + ": no pair of sentences to learn from");
  return corpus;
}

}  // namespace translate
