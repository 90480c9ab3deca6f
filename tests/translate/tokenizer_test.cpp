// Sentences as numbers and back, UTF-8, and how wide a text is.

#include "translate/tokenizer.hpp"

#include <string>
#include <vector>

#include "support/catch.hpp"
#include "translate/terminal.hpp"
#include "translate/utf8.hpp"

using namespace translate;
using Words = std::vector<std::string>;

TEST_CASE("utf8: what it is and what it is not", "[translate]") {
  CHECK(is_utf8(""));
  CHECK(is_utf8("the dog"));
  CHECK(is_utf8("बूढ़े कुत्ते ने आदमी को काटा"));
  CHECK(is_utf8("\xf0\x9f\x90\x95"));        // U+1F415, a dog
  CHECK(is_utf8("\xf4\x8f\xbf\xbf"));        // U+10FFFF, the last
  CHECK_FALSE(is_utf8("\xf4\x90\x80\x80"));  // beyond it
  CHECK_FALSE(is_utf8("\xc0\x80"));          // overlong
  CHECK_FALSE(is_utf8("\xe0\x9f\xbf"));
  CHECK_FALSE(is_utf8("\xf0\x8f\xbf\xbf"));
  CHECK_FALSE(is_utf8("\xed\xa0\x80"));  // a surrogate
  CHECK_FALSE(is_utf8("\x80"));          // continues nothing
  CHECK_FALSE(is_utf8("\xe0\xa4"));      // stops too early
  CHECK_FALSE(is_utf8("\xe0\xa4x"));
  CHECK_FALSE(is_utf8("\xff"));
}

TEST_CASE("utf8: columns on a terminal", "[translate]") {
  CHECK(columns("the dog") == 7);
  CHECK(columns("कुत्ता") == 4);  // six code points, u and the virama sit on their letters
  CHECK(columns("ने") == 1);
  CHECK(columns("e\u0301") == 1);
  CHECK(columns("漢字") == 4);
  CHECK(columns("\xff") == 1);
  CHECK(clipped("कुत्ता", 1) == "कु");
  CHECK(clipped("dog", 5) == "dog");
  CHECK(clipped("漢字", 3) == "漢");
  CHECK(padded("ने", 3) == "ने  ");
}

TEST_CASE("tokenizer: words, punctuation, capitals", "[translate]") {
  CHECK(split("The dog bit the man.") == Words{"the", "dog", "bit", "the", "man", "."});
  CHECK(split("  did\tthe (old) dog,\u00a0bark?\r\n") ==
        Words{"did", "the", "(", "old", ")", "dog", ",", "bark", "?"});
  CHECK(split("क्या कुत्ते ने काटा?") == Words{"क्या", "कुत्ते", "ने", "काटा", "?"});
  CHECK(split("उसने काटा।") == Words{"उसने", "काटा", "।"});
  CHECK(split("don't well-known") == Words{"don't", "well-known"});
  CHECK(split("\xef\xbb\xbf"
              "word") == Words{"word"});
  CHECK(split("").empty());
  CHECK(split(" \t ").empty());
  // A letter with its dot is one or two code points.
  CHECK(split("लड\u093cका") == split("ल\u095cका"));
  CHECK(split("\u0958\u0959\u095a\u095b\u095c\u095d\u095e\u095f") ==
        Words{"\u0915\u093c\u0916\u093c\u0917\u093c\u091c\u093c\u0921\u093c\u0922\u093c\u092b\u093c\u092f"
              "\u093c"});
  CHECK_THROWS_AS(split("\xff"), InputError);
}

TEST_CASE("tokenizer: a vocabulary of both languages", "[translate]") {
  const std::vector<TextPair> pairs = {{"the dog slept", "कुत्ता सोया"},
                                       {"did the dog sleep?", "क्या कुत्ता सोया?"},
                                       {"the cat slept", "बिल्ली सोई"}};
  const Vocabulary vocabulary = Vocabulary::of(pairs);
  CHECK(vocabulary.size() == 4 + 13 - 1);
  CHECK(vocabulary.words()[0] == "<pad>");
  CHECK(vocabulary.words()[3] == "<unk>");
  CHECK(vocabulary.words()[4] == "the");  // the most frequent
  CHECK(vocabulary.number("zebra") == Vocabulary::unknown);
  CHECK(vocabulary.number("<bos>") == Vocabulary::unknown);  // a word of the user never becomes a special one

  for (const TextPair& pair : pairs)
    for (const std::string& text : {pair.source, pair.target}) {
      const auto encoded = vocabulary.encode(text);
      CHECK(encoded.unknown_words.empty());
      CHECK(encoded.words.size() == encoded.tokens.size());
      CHECK(vocabulary.decode(encoded.tokens) == text);
    }

  // Words that are not there are named, and don't stop anything.
  const auto encoded = vocabulary.encode("The zebra slept, the lion slept.");
  CHECK(encoded.unknown_words == Words{"zebra", ",", "lion"});
  CHECK(vocabulary.decode(encoded.tokens) == "the <unk> slept <unk> the <unk> slept");
  CHECK(vocabulary.encode("the dog slept.").tokens == vocabulary.encode("the dog slept").tokens);
  CHECK(vocabulary.encode("<eos> <pad>").unknown_words.size() == 2);
  CHECK(vocabulary.decode(std::vector<Token>{-1, 1000000}) == "<unk> <unk>");

  // No more than so many words, the frequent ones.
  const Vocabulary small = Vocabulary::of(pairs, 3);
  CHECK(small.size() == 7);
  CHECK(small.number("the") != Vocabulary::unknown);
  CHECK(small.number("cat") == Vocabulary::unknown);
}

TEST_CASE("tokenizer: vocabularies that are none", "[translate]") {
  const auto with = [](Words more) {
    Words words = Vocabulary::special_words();
    words.insert(words.end(), more.begin(), more.end());
    return Vocabulary(words);
  };
  CHECK(with({"dog", "कुत्ता"}).size() == 6);
  CHECK_THROWS_WITH(Vocabulary(Words{"dog"}), posenc_test::contains("<pad> <bos> <eos> <unk> first"));
  CHECK_THROWS_WITH(with({"dog", "dog"}), posenc_test::contains("word 5 stands there twice"));
  CHECK_THROWS_WITH(with({"\xff"}), posenc_test::contains("not UTF-8"));
  CHECK_THROWS_WITH(with({"two words"}), posenc_test::contains("word 4 is not one word"));
  CHECK_THROWS_WITH(with({""}), posenc_test::contains("word 4 is not one word"));
  CHECK_THROWS_WITH(with({"<eos>"}), posenc_test::contains("word 4 stands there twice"));
}

TEST_CASE("terminal: nothing is wider than 80 columns", "[translate]") {
  Progress progress;
  progress.fraction = 0.5;
  progress.seconds_left = 30;
  progress.loss = 1.234;
  progress.tokens_per_second = 12345;
  CHECK(progress_line(progress, "") ==
        "[############------------]  50 %  loss 1.234   12345 tokens/s   30 s left");
  CHECK(columns(progress_line(progress, "  ")) <= 80);

  const std::vector<std::pair<std::string, std::string>> lines = {{"the dog slept", "कुत्ता सोया"},
                                                                  {"did he?", "क्या वह?"}};
  CHECK(side_by_side(lines) == "  the dog slept   कुत्ता सोया\n  did he?         क्या वह?\n");

  transformer::Matrix<float> map(2, 3);
  map << 0.0f, 0.35f, 0.65f, 1.0f, 0.0f, 0.0f;
  CHECK(attention_picture(map, Words{"the", "dog", "<eos>"}, Words{"कुत्ता", "<eos>"}) ==
        "  the dog <eos>\n  ··· ░░░ ▓▓▓▓▓   कुत्ता\n  ███ ··· ·····   <eos>\n");
  const Words many(30, "elephant");
  const std::string picture =
      attention_picture(transformer::Matrix<float>::Constant(1, 30, 0.03f), many, Words{"हाथी"});
  for (std::size_t at = 0; at < picture.size();) {
    const std::size_t end = picture.find('\n', at);
    CHECK(columns(picture.substr(at, end - at)) <= 80);
    at = end + 1;
  }
}
