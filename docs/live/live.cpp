#include "live.hpp"

#include <posenc/bias/alibi.hpp>
#include <posenc/embedding/learned_positions.hpp>
#include <posenc/embedding/sinusoidal.hpp>
#include <posenc/rotary/rotary.hpp>
#include <posenc/rotary/scaling.hpp>

#include <Eigen/Core>

#include <array>
#include <cmath>
#include <cstdint>
#include <numbers>
#include <string>
#include <string_view>
#include <vector>

#include "translate/random.hpp"

namespace {

using posenc::Index;
using posenc::Position;
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

std::vector<double> values;
std::string text;

int give(std::vector<double> numbers) {
  values = std::move(numbers);
  return static_cast<int>(values.size());
}

void append(std::vector<double>& to, const Matrix& m) { to.insert(to.end(), m.data(), m.data() + m.size()); }

// ---- One self-attention layer with random weights, as in examples/word_order.cpp

constexpr Index d_model = 512, num_heads = 8, head_dim = d_model / num_heads;

enum class Scheme { none, sinusoidal, learned, rope, alibi, causal_alibi };
constexpr std::array<Scheme, 6> schemes = {Scheme::none, Scheme::sinusoidal, Scheme::learned,
                                           Scheme::rope, Scheme::alibi,      Scheme::causal_alibi};

/// Normal numbers by Box and Muller. They are the same on every platform, up to a last bit of log and cos,
/// which std::normal_distribution does not promise.
void fill_normal(Eigen::Ref<Matrix> m, translate::Random random, double deviation) {
  for (Index r = 0; r < m.rows(); ++r)
    for (Index c = 0; c < m.cols(); ++c) {
      const double u = (static_cast<double>(random.next() >> 11) + 1) * 0x1p-53;  // (0, 1]
      const double v = static_cast<double>(random.next() >> 11) * 0x1p-53;
      m(r, c) = deviation * std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
    }
}

/// The first words of a sentence, with A-Z as a-z.
std::vector<std::string> words_of(std::string_view sentence) {
  std::vector<std::string> words(1);
  for (const char c : sentence) {
    const bool space = c == ' ' || (c >= '\t' && c <= '\r');
    if (space && !words.back().empty()) words.emplace_back();
    if (!space) words.back() += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  if (words.back().empty()) words.pop_back();
  if (words.size() > live_longest_sentence) words.resize(live_longest_sentence);
  return words;
}

/// The stream of a word's numbers: FNV-1a of its bytes, so that a word keeps its vector in any sentence.
std::uint64_t stream_of(const std::string& word) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  for (const char c : word) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return hash;
}

struct Attended {
  std::vector<Matrix> weights;  ///< one for each head: row i is what word i attends to
  Eigen::RowVectorXd reading;   ///< the mean of the layer's outputs
};

class Layer {
 public:
  Layer() : learned_(random_matrix(live_longest_sentence, d_model, 4, 1)) {
    for (std::uint64_t stream = 0; stream < 4; ++stream)
      matrices_[stream] = random_matrix(d_model, d_model, stream, 1 / std::sqrt(d_model));
  }

  static Matrix embed(const std::vector<std::string>& words) {
    Matrix x(static_cast<Index>(words.size()), d_model);
    for (Index i = 0; i < x.rows(); ++i)
      fill_normal(x.middleRows(i, 1),
                  translate::Random(word_seed, stream_of(words[static_cast<std::size_t>(i)])), 1);
    return x;
  }

  Attended operator()(Matrix x, Scheme scheme) const {
    const Index n = x.rows();
    const posenc::Positions at = posenc::consecutive(0, n);
    if (scheme == Scheme::sinusoidal) sinusoidal_.add(x, at);
    if (scheme == Scheme::learned) learned_.add(x, at);

    Matrix queries = x * matrices_[0], keys = x * matrices_[1];
    const Matrix projected = x * matrices_[2];
    if (scheme == Scheme::rope) {
      rotary_.rotate(posenc::split_heads(queries, num_heads), at, posenc::Axes::shd);
      rotary_.rotate(posenc::split_heads(keys, num_heads), at, posenc::Axes::shd);
    }

    Eigen::Tensor<double, 3, Eigen::RowMajor> scores(num_heads, n, n);
    const auto columns_of = [](const Matrix& m, Index head) {
      return m.middleCols(head * head_dim, head_dim);
    };
    for (Index head = 0; head < num_heads; ++head)
      Eigen::Map<Matrix>(&scores(head, 0, 0), n, n) =
          columns_of(queries, head) * columns_of(keys, head).transpose() / std::sqrt(head_dim);
    if (scheme == Scheme::alibi) alibi_.add(scores, at, at);
    if (scheme == Scheme::causal_alibi) causal_alibi_.add(scores, at, at);

    Attended attended;
    Eigen::RowVectorXd mean(d_model);
    for (Index head = 0; head < num_heads; ++head) {
      Matrix weights = Eigen::Map<Matrix>(&scores(head, 0, 0), n, n);
      for (Index i = 0; i < n; ++i) {
        weights.row(i) = (weights.row(i).array() - weights.row(i).maxCoeff()).exp().matrix();
        weights.row(i) /= weights.row(i).sum();
      }
      mean.segment(head * head_dim, head_dim) = (weights * columns_of(projected, head)).colwise().mean();
      attended.weights.push_back(std::move(weights));
    }
    attended.reading = mean * matrices_[3];  // the output matrix is linear: of the mean, or the mean of it
    return attended;
  }

 private:
  static constexpr std::uint64_t weight_seed = 1, word_seed = 2;

  static Matrix random_matrix(Index rows, Index columns, std::uint64_t stream, double deviation) {
    Matrix m(rows, columns);
    fill_normal(m, translate::Random(weight_seed, stream), deviation);
    return m;
  }

  std::array<Matrix, 4> matrices_;  // query, key, value, output
  posenc::LearnedPositions<double> learned_;
  posenc::Sinusoidal sinusoidal_{{.d_model = d_model}};
  posenc::Rotary rotary_{posenc::rotary_frequencies({.head_dim = head_dim}), posenc::Pairing::half};
  posenc::Alibi alibi_{num_heads};
  posenc::Alibi causal_alibi_{{.num_heads = num_heads, .form = posenc::AlibiForm::causal}};
};

// ---- RoPE

posenc::RotaryFrequencies rope_frequencies(int scheme, int width, double theta, double factor, double trained,
                                           double length, double first, double second) {
  const posenc::RotaryConfig config{.head_dim = width, .rope_theta = theta};
  const auto trained_length = static_cast<Index>(trained);
  posenc::RotaryScaling scaling;
  if (scheme == 1) scaling = posenc::LinearConfig{factor};
  if (scheme == 2)
    scaling = posenc::DynamicNtkConfig{.factor = factor, .max_position_embeddings = trained_length};
  if (scheme == 3) scaling = posenc::NtkAlphaConfig{factor};
  if (scheme == 4)
    scaling = posenc::YarnConfig{.factor = factor,
                                 .original_max_position_embeddings = trained_length,
                                 .beta_fast = first,
                                 .beta_slow = second};
  if (scheme == 5)
    scaling = posenc::Llama3Config{.factor = factor,
                                   .low_freq_factor = first,
                                   .high_freq_factor = second,
                                   .original_max_position_embeddings = trained_length};
  if (scheme == 6) scaling = posenc::ProportionalConfig{.partial_rotary_factor = first};
  return posenc::scaled_frequencies(config, scaling, static_cast<Index>(length));
}

std::vector<Position> distances_to(int octaves) {
  std::vector<Position> distances;
  for (Position d = 0; d < 32; ++d) distances.push_back(d);
  for (int octave = 5; octave < octaves; ++octave)
    for (Position step = 0; step < 32; ++step) distances.push_back((32 + step) << (octave - 5));
  distances.push_back(Position{1} << octaves);
  return distances;
}

/// q k / width of a query of ones at each distance and a key of ones at 0.
std::vector<double> scores_at(const std::vector<Position>& distances,
                              const posenc::RotaryFrequencies& frequencies) {
  const posenc::Rotary rope(frequencies, posenc::Pairing::half);
  Matrix queries = Matrix::Ones(static_cast<Index>(distances.size()), frequencies.head_dim);
  Matrix key = Matrix::Ones(1, frequencies.head_dim);
  rope.rotate(queries, posenc::position_ids(distances));
  rope.rotate(key, posenc::consecutive(0, 1));
  const Eigen::VectorXd scores = queries * key.transpose() / static_cast<double>(frequencies.head_dim);
  return {scores.begin(), scores.end()};
}

posenc::Alibi alibi(int heads, int form) {
  constexpr std::array<posenc::AlibiForm, 3> forms = {posenc::AlibiForm::symmetric, posenc::AlibiForm::causal,
                                                      posenc::AlibiForm::key_position};
  return posenc::Alibi({.num_heads = heads, .form = forms[static_cast<std::size_t>(form)]});
}

}  // namespace

const double* live_values() { return values.data(); }

char* live_text(int bytes) {
  text.resize(static_cast<std::size_t>(bytes));
  return text.data();
}

int live_sinusoidal_frequencies(int width, double base) {
  return give(posenc::sinusoidal_frequencies({.d_model = width, .base = base}));
}

int live_sinusoidal_rows(int width, double base, double first, int per_position, int count, int dims) {
  const posenc::SinusoidalConfig config{.d_model = width, .base = base};
  std::vector<double> frequencies = posenc::sinusoidal_frequencies(config);
  for (double& f : frequencies) f /= per_position;
  const posenc::Sinusoidal sinusoidal(config, frequencies);
  std::vector<double> rows(static_cast<std::size_t>(count) * static_cast<std::size_t>(dims));
  for (int k = 0; k < count; ++k)
    sinusoidal.encode_row(static_cast<Position>(first) + k, 0, dims,
                          rows.data() + static_cast<std::ptrdiff_t>(k) * dims);
  return give(std::move(rows));
}

int live_attention(int bytes_of_first, int bytes_of_second) {
  const std::string_view all(text);
  const auto first = static_cast<std::size_t>(bytes_of_first),
             second = static_cast<std::size_t>(bytes_of_second);
  const std::vector<std::string> a = words_of(all.substr(0, first)), b = words_of(all.substr(first, second));
  if (a.empty() || b.empty()) return give({});
  static const Layer layer;  // a megabyte of weights for each matrix: made when first asked for
  std::vector<double> numbers = {static_cast<double>(a.size()), static_cast<double>(b.size())};
  for (const Scheme scheme : schemes) {
    const Attended of_a = layer(Layer::embed(a), scheme), of_b = layer(Layer::embed(b), scheme);
    numbers.push_back((of_a.reading - of_b.reading).cwiseAbs().maxCoeff());
    for (const Matrix& head : of_a.weights) append(numbers, head);
    for (const Matrix& head : of_b.weights) append(numbers, head);
  }
  return give(std::move(numbers));
}

int live_rope_frequencies(int scheme, int width, double theta, double factor, double trained, double length,
                          double first, double second) {
  const auto before = posenc::rotary_frequencies({.head_dim = width, .rope_theta = theta});
  const auto after = rope_frequencies(scheme, width, theta, factor, trained, length, first, second);
  std::vector<double> numbers = {after.attention_factor};
  numbers.insert(numbers.end(), before.inv_freq.begin(), before.inv_freq.end());
  numbers.insert(numbers.end(), after.inv_freq.begin(), after.inv_freq.end());
  return give(std::move(numbers));
}

int live_rope_scores(int octaves, int scheme, int width, double theta, double factor, double trained,
                     double length, double first, double second) {
  const std::vector<Position> distances = distances_to(octaves);
  const std::vector<double> before =
      scores_at(distances, posenc::rotary_frequencies({.head_dim = width, .rope_theta = theta}));
  const std::vector<double> after =
      scores_at(distances, rope_frequencies(scheme, width, theta, factor, trained, length, first, second));
  std::vector<double> numbers;
  for (std::size_t i = 0; i < distances.size(); ++i)
    numbers.insert(numbers.end(), {static_cast<double>(distances[i]), before[i], after[i]});
  return give(std::move(numbers));
}

int live_alibi_slopes(int heads) { return give(posenc::alibi_slopes(heads)); }

int live_alibi_matrix(int heads, int head, int form, int size) {
  Matrix bias(size, size);
  const posenc::Positions at = posenc::consecutive(0, size);
  alibi(heads, form).tile(bias, head, at, at);
  std::vector<double> numbers;
  append(numbers, bias);
  return give(std::move(numbers));
}

int live_alibi_at(int heads, double distance) {
  const posenc::Alibi bias(heads);
  std::vector<double> numbers;
  for (int head = 0; head < heads; ++head)
    numbers.push_back(bias.value(head, static_cast<Position>(distance), 0));
  return give(std::move(numbers));
}

int live_angles(int width, double theta, double position) {
  const auto frequencies = posenc::rotary_frequencies({.head_dim = width, .rope_theta = theta});
  const posenc::Rotary exact(frequencies, posenc::Pairing::half);
  const posenc::Rotary rounded(frequencies, posenc::Pairing::half, posenc::Window::leading(),
                               posenc::AngleMode::float32);
  const posenc::Positions at = posenc::consecutive(static_cast<Position>(position), 1);
  const auto pairs = static_cast<Index>(frequencies.inv_freq.size());
  Eigen::Matrix<float, 4, Eigen::Dynamic, Eigen::RowMajor> floats(4, pairs);
  Eigen::Matrix<double, 2, Eigen::Dynamic, Eigen::RowMajor> doubles(2, pairs);
  const auto row = [&](auto& numbers, Index r) {
    return posenc::view(&numbers(r, 0), std::array<Index, 2>{1, pairs});
  };
  exact.cos_sin(row(floats, 0), row(floats, 1), at);
  rounded.cos_sin(row(floats, 2), row(floats, 3), at);
  exact.cos_sin(row(doubles, 0), row(doubles, 1), at);
  std::vector<double> numbers;
  for (Index i = 0; i < pairs; ++i)
    numbers.insert(numbers.end(),
                   {frequencies.inv_freq[static_cast<std::size_t>(i)], static_cast<double>(floats(0, i)),
                    static_cast<double>(floats(1, i)), doubles(0, i), doubles(1, i),
                    static_cast<double>(floats(2, i)), static_cast<double>(floats(3, i))});
  return give(std::move(numbers));
}
