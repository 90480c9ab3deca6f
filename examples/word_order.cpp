// Does self-attention notice the order of words?
//
//   posenc_word_order                                          "The dog bit the man" / "The man bit the dog"
//   posenc_word_order "All cats chase mice" "Mice chase all cats"
//   posenc_word_order "Ships sail"                             one sentence: against its words reversed
//
// Attention mixes each word with all others by how well their vectors match, and a match does not ask where
// the two stand: a layer without position reads a bag of words. This program runs one self-attention layer of
// a transformer on sentences and measures that, then does the same with the usual ways to let position in:
// two that are added to the embeddings, and two that act inside the attention.
//
// Nothing is trained, all weights are random: without position no weights can see the order, and with
// position nearly all of them do.

#include <posenc/posenc.hpp>

#include <CLI/CLI.hpp>
#include <Eigen/Core>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace {

using posenc::Index;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;  // a row for each word
using Words = std::vector<std::string>;

// The sizes of the base model of "Attention Is All You Need".
constexpr Index d_model = 512, num_heads = 8, head_dim = d_model / num_heads;

// What remains of a difference that is zero on paper is below this, what is a difference is far above.
constexpr double rounding_error = 1e-10;

// ---- Words

/// The words between the spaces, with A-Z as a-z. Bytes beyond ASCII stay as they are, so UTF-8 survives.
Words words_of(const std::string& sentence) {
  Words words(1);
  for (const char c : sentence) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (space && !words.back().empty()) words.emplace_back();
    if (!space) words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (words.back().empty()) words.pop_back();
  return words;
}

std::string joined(const Words& words) {
  std::string sentence;
  for (const std::string& word : words) sentence += (sentence.empty() ? "" : " ") + word;
  return sentence;
}

/// A number for each word, in order of appearance: what a tokenizer does for a model.
class Vocabulary {
 public:
  explicit Vocabulary(const std::vector<Words>& sentences) {
    for (const Words& words : sentences)
      for (const std::string& word : words) ids_.emplace(word, static_cast<std::int32_t>(ids_.size()));
  }

  Index size() const { return static_cast<Index>(ids_.size()); }

  std::vector<std::int32_t> ids_of(const Words& words) const {
    std::vector<std::int32_t> ids;
    for (const std::string& word : words) ids.push_back(ids_.at(word));
    return ids;
  }

 private:
  std::map<std::string, std::int32_t> ids_;
};

// ---- The model

enum class Scheme { none, sinusoidal, learned, rope, alibi, causal_alibi };

Matrix random_matrix(std::mt19937_64& random, Index rows, Index columns, double deviation) {
  std::normal_distribution<double> normal(0.0, deviation);
  Matrix m(rows, columns);
  for (Index r = 0; r < rows; ++r)
    for (Index c = 0; c < columns; ++c) m(r, c) = normal(random);
  return m;
}

/// An embedding and one self-attention layer, with every position scheme at hand. The weights are scaled so
/// that the elements of words, queries, keys and values are about 1.
class Model {
 public:
  /// Room for `vocabulary` words, and for sentences of `longest` words where positions are learned.
  Model(std::mt19937_64 random, Index vocabulary, Index longest)
      : to_query_(random_matrix(random, d_model, d_model, 1 / std::sqrt(d_model))),
        to_key_(random_matrix(random, d_model, d_model, 1 / std::sqrt(d_model))),
        to_value_(random_matrix(random, d_model, d_model, 1 / std::sqrt(d_model))),
        to_output_(random_matrix(random, d_model, d_model, 1 / std::sqrt(d_model))),
        token_(random_matrix(random, vocabulary, d_model, 1 / std::sqrt(d_model)),
               {.scale = std::sqrt(d_model)}),
        learned_(random_matrix(random, longest, d_model, 1)) {}

  /// Row i is the embedding of word i. No position yet.
  Matrix embed(const std::vector<std::int32_t>& ids) const {
    Matrix x(static_cast<Index>(ids.size()), d_model);
    token_.embed(x, ids);
    return x;
  }

  /// SelfAttention(x) = concat over the heads of softmax(Q K^T / sqrt(head_dim)) V, times the output matrix.
  Matrix self_attention(Matrix x, Scheme scheme) const {
    const Index n = x.rows();
    const posenc::Positions at = posenc::consecutive(0, n);  // word i stands at position i

    // Added to the embeddings, once, before the first layer.
    if (scheme == Scheme::sinusoidal) sinusoidal_.add(x, at);
    if (scheme == Scheme::learned) learned_.add(x, at);

    Matrix queries = x * to_query_, keys = x * to_key_;
    const Matrix values = x * to_value_;

    // RoPE turns each query and key by an angle that grows with its position. Values are left alone.
    if (scheme == Scheme::rope) {
      rotary_.rotate(posenc::split_heads(queries, num_heads), at, posenc::Axes::shd);
      rotary_.rotate(posenc::split_heads(keys, num_heads), at, posenc::Axes::shd);
    }

    // How well query i matches key j, in each head.
    Eigen::Tensor<double, 3, Eigen::RowMajor> scores(num_heads, n, n);
    const auto scores_of = [&](Index head) { return Eigen::Map<Matrix>(&scores(head, 0, 0), n, n); };
    const auto columns_of = [](const Matrix& m, Index head) {
      return m.middleCols(head * head_dim, head_dim);
    };
    for (Index head = 0; head < num_heads; ++head)
      scores_of(head) = columns_of(queries, head) * columns_of(keys, head).transpose() / std::sqrt(head_dim);

    // ALiBi lowers each score by the distance of the two words, at a pace of its own in each head.
    if (scheme == Scheme::alibi) alibi_.add(scores, at, at);
    if (scheme == Scheme::causal_alibi) causal_alibi_.add(scores, at, at);

    Matrix mixed(n, d_model);
    for (Index head = 0; head < num_heads; ++head) {
      auto weights = scores_of(head);
      for (Index i = 0; i < n; ++i) {  // softmax; without its largest score nothing can overflow
        weights.row(i) = (weights.row(i).array() - weights.row(i).maxCoeff()).exp().matrix();
        weights.row(i) /= weights.row(i).sum();
      }
      mixed.middleCols(head * head_dim, head_dim) = weights * columns_of(values, head);
    }
    return mixed * to_output_;
  }

  const posenc::Sinusoidal& sinusoidal() const { return sinusoidal_; }

 private:
  Matrix to_query_, to_key_, to_value_, to_output_;
  posenc::TokenEmbedding<double> token_;
  posenc::LearnedPositions<double> learned_;
  posenc::Sinusoidal sinusoidal_{{.d_model = d_model}};
  posenc::Rotary rotary_{posenc::rotary_frequencies({.head_dim = head_dim}), posenc::Pairing::half};
  posenc::Alibi alibi_{num_heads};
  posenc::Alibi causal_alibi_{{.num_heads = num_heads, .form = posenc::AlibiForm::causal}};
};

// ---- Measuring

struct NamedScheme {
  Scheme scheme;
  const char* name;
  const char* why;  // it can tell orders apart, or not
};
constexpr std::array<NamedScheme, 5> schemes = {
    {{Scheme::none, "none", "same words, and nothing says where"},
     {Scheme::sinusoidal, "sinusoidal", "each position adds waves of its own"},
     {Scheme::learned, "learned", "each position adds a row of its own"},
     {Scheme::rope, "RoPE", "scores turn with the signed distance"},
     {Scheme::alibi, "ALiBi", "scores fall with the distance"}}};

/// A sentence as one vector, as classifiers read it: the mean of the outputs at its words. It has forgotten
/// where the outputs stood, so it holds only the order that the layer itself has noticed.
Eigen::RowVectorXd reading_of(const Model& model, const std::vector<std::int32_t>& ids, Scheme scheme) {
  return model.self_attention(model.embed(ids), scheme).colwise().mean();
}

double largest(const Matrix& difference) { return difference.cwiseAbs().maxCoeff(); }

/// pi: the first word goes to the end.
Matrix first_to_end(const Matrix& x) {
  const Index n = x.rows();
  Matrix moved(n, x.cols());
  moved.topRows(n - 1) = x.bottomRows(n - 1);
  moved.bottomRows(1) = x.topRows(1);
  return moved;
}

/// The share that each word has of a sentence: all that is left of it when the order is lost.
std::map<std::string, double> bag_of(const Words& words) {
  std::map<std::string, double> bag;
  for (const std::string& word : words) bag[word] += 1;
  for (auto& [word, share] : bag) share /= static_cast<double>(words.size());
  return bag;
}

/// Why this scheme could, or could not, tell b from a.
std::string reason(const NamedScheme& scheme, bool told_apart, const Words& a, const Words& b) {
  if (a == b) return "it is the same sentence";
  if (bag_of(a) != bag_of(b))
    return scheme.scheme == Scheme::none ? "other words: no order needed" : "other words";
  if (scheme.scheme == Scheme::alibi && !told_apart) return "mirrored: no distance has changed";
  return scheme.why;
}

// ---- Printing

/// The columns that a text takes on the screen, one for each UTF-8 character.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(
      text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

/// The text in at most `width` columns, cut between two characters.
std::string shortened(std::string text, std::size_t width) {
  if (width_of(text) <= width) return text;
  while (width_of(text) > width - 3) text.pop_back();
  return text + "...";
}

/// The text in `width` columns, filled up with spaces.
std::string fitted(const std::string& text, std::size_t width) {
  const std::string fits = shortened(text, width);
  return fits + std::string(width - width_of(fits), ' ');
}

/// 0.123, or 2e-16 where that would show nothing.
std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value == 0 ? "%.0f" : value < 0.0005 ? "%.0e" : "%.3f", value);
  return text;
}

void print_rule() { std::printf("  %s\n", std::string(76, '-').c_str()); }

void print_comparison(const Model& model, const Vocabulary& vocabulary, const Words& a, const Words& b,
                      std::size_t label) {
  std::printf("\nCan the layer tell sentence %zu from sentence 1?\n\n", label);
  std::printf("  %-12s %10s   %-10s   %s\n", "position", "difference", "told apart", "why");
  print_rule();
  const auto difference = [&](Scheme scheme) {
    return largest(reading_of(model, vocabulary.ids_of(a), scheme) -
                   reading_of(model, vocabulary.ids_of(b), scheme));
  };
  for (const NamedScheme& scheme : schemes) {
    const double measured = difference(scheme.scheme);
    const bool told_apart = measured > rounding_error;
    std::printf("  %-12s %10s   %-10s   %s\n", scheme.name, number(measured).c_str(),
                told_apart ? "yes" : "no", reason(scheme, told_apart, a, b).c_str());
  }
  if (a != b && difference(Scheme::alibi) <= rounding_error)
    std::printf("\n  A decoder's causal mask adds the direction: with it, ALiBi differs by %s.\n",
                number(difference(Scheme::causal_alibi)).c_str());
}

void print_permutation_identity(const Model& model, const Matrix& x) {
  std::printf(
      "\nThe reason: attention does not care in which order its rows come. For every\n"
      "permutation pi, SelfAttention(pi X) = pi SelfAttention(X), unless position\n"
      "comes in. X is sentence 1, and pi moves its first word to the end:\n\n");
  std::printf("  %-12s %10s   %s\n", "position", "error", "SelfAttention(pi X) = pi SelfAttention(X)");
  print_rule();
  for (const NamedScheme& scheme : schemes) {
    const Matrix of_moved = model.self_attention(first_to_end(x), scheme.scheme);
    const double error = largest(of_moved - first_to_end(model.self_attention(x, scheme.scheme)));
    const char* verdict = error > rounding_error                            ? "broken"
                          : scheme.scheme == Scheme::alibi && x.rows() == 2 ? "holds: two words, one distance"
                          : error > 0                                       ? "holds, up to rounding"
                                                                            : "holds";
    std::printf("  %-12s %10s   %s\n", scheme.name, number(error).c_str(), verdict);
  }
}

void print_fingerprints(const posenc::Sinusoidal& sinusoidal, const Words& words) {
  constexpr Index shown = 8;
  const Index n = static_cast<Index>(words.size());
  const auto rows = sinusoidal.table<double>((std::max)(n, Index{2}));
  std::printf("\nThe fingerprint of each position: the first %td of %td dimensions, sinusoidal\n\n", shown,
              d_model);
  std::printf("  %3s  %s", "pos", fitted("word", 13).c_str());
  for (Index d = 0; d < shown; ++d) std::printf("  %3s %td", d % 2 == 0 ? "sin" : "cos", d / 2);
  std::printf("\n");
  print_rule();
  for (Index p = 0; p < n; ++p) {
    std::printf("  %3td  %s", p, fitted(words[static_cast<std::size_t>(p)], 13).c_str());
    for (Index d = 0; d < shown; ++d) std::printf("%7.3f", rows(p, d));
    std::printf("\n");
  }
  const std::vector<double> frequencies = posenc::sinusoidal_frequencies(sinusoidal.config());
  std::printf("\n  Position 1 reads %.3f %.3f %.3f %.3f: sine and cosine of %.0f, then of %.3f.\n",
              rows(1, 0), rows(1, 1), rows(1, 2), rows(1, 3), frequencies[0], frequencies[1]);
  const double turn = 2 * std::acos(-1.0);
  std::printf(
      "  Low dimensions turn fast, the first pair once in %.1f words; high ones turn\n"
      "  slowly, the last pair once in %.0f. (Textbooks have it backwards at times.)\n",
      turn / frequencies.front(), turn / frequencies.back());
}

void run(const std::vector<std::string>& given, std::uint32_t seed) {
  std::vector<Words> sentences;
  for (const std::string& sentence : given) {
    sentences.push_back(words_of(sentence));
    if (sentences.back().empty())
      throw std::invalid_argument("sentence " + std::to_string(sentences.size()) +
                                  " is empty: expected at least one word");
  }
  const bool alone = sentences.size() == 1;
  if (alone) sentences.emplace_back(sentences[0].rbegin(), sentences[0].rend());

  std::size_t longest = 0;
  for (const Words& words : sentences) longest = (std::max)(longest, words.size());
  const Vocabulary vocabulary(sentences);
  const Model model(std::mt19937_64(seed), vocabulary.size(), static_cast<Index>(longest));

  std::printf("Does self-attention notice the order of words?\n\n");
  for (std::size_t i = 0; i < sentences.size(); ++i)
    std::printf("  sentence %zu   %s%s\n", i + 1, shortened(joined(sentences[i]), alone ? 52 : 63).c_str(),
                alone && i == 1 ? "  (reversed)" : "");
  std::printf(
      "\nOne layer: d_model %td, %td heads, random weights, seed %lu.\n"
      "Its reading of a sentence is the mean of its outputs, and a difference is the\n"
      "largest of %td.\n",
      d_model, num_heads, static_cast<unsigned long>(seed), d_model);
  for (std::size_t i = 1; i < sentences.size(); ++i)
    print_comparison(model, vocabulary, sentences[0], sentences[i], i + 1);
  print_permutation_identity(model, model.embed(vocabulary.ids_of(sentences[0])));
  print_fingerprints(model.sinusoidal(), sentences[0]);
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> sentences = {"The dog bit the man", "The man bit the dog"};
  std::uint32_t seed = 1;
  CLI::App app(
      "Shows whether one self-attention layer can tell sentences apart by the order of\n"
      "their words: without position, and with each of four position encodings.",
      "posenc_word_order");
  app.add_option("sentences", sentences, "Compared with the first; alone, with its reverse")
      ->type_name("TEXT")
      ->capture_default_str();
  app.add_option("--seed", seed, "Of the random weights")
      ->check(CLI::Range((std::numeric_limits<std::uint32_t>::max)()))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    run(sentences, seed);
    return 0;
  } catch (const CLI::CallForHelp& help) {
    return app.exit(help);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "posenc_word_order: %s\n", error.what());
    return 2;
  }
}
