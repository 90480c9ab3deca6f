// A whole model beside the least code that runs it: 256 greedy tokens of stories260K by examples/transformer
// and by a loop in plain C style over the same mapped weights, alternating in one run, so that the ratio
// holds whatever else the machine does.
//
//   posenc_stories_bench stories260K.bin [rounds]
//
//   posenc        Continuation: Eigen's products, posenc's embedding and rotation
//   plain         matrix times vector as a sum per row, cos and sin once per token
//   eight sums    the same, with eight sums per row, which a compiler can turn into vector instructions

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include "models/llama.hpp"
#include "models/llama2c.hpp"
#include "models/mapped_file.hpp"
#include "transformer/language_model.hpp"

namespace {

using transformer::Token;
using transformer::Tokens;

constexpr int steps = 256;

template <int Sums>
float dot(const float* a, const float* b, int n) {
  float sum[std::size_t{Sums}] = {};
  int i = 0;
  for (; i + Sums <= n; i += Sums)
    for (int s = 0; s < Sums; ++s) sum[s] += a[i + s] * b[i + s];
  for (; i < n; ++i) sum[0] += a[i] * b[i];
  float total = 0;
  for (int s = 0; s < Sums; ++s) total += sum[s];
  return total;
}

/// The weights as they lie in the file, and the state of one text.
class PlainLlama {
 public:
  explicit PlainLlama(const models::LlamaWeights& w)
      : d(int(w.config.d_model)),
        hidden(int(w.config.d_ff)),
        heads(int(w.config.num_heads)),
        width(d / heads),
        kv(int(w.config.num_kv_heads) * width),
        vocab(int(w.config.vocab_size)),
        embedding(floats(w.embedding)),
        norm(floats(w.norm)),
        output(w.output ? floats(*w.output) : embedding) {
    for (const models::LlamaLayer& l : w.layers)
      layers.push_back({floats(l.attention_norm), floats(l.q), floats(l.k), floats(l.v), floats(l.o),
                        floats(l.feed_forward_norm), floats(l.gate), floats(l.up), floats(l.down),
                        std::vector<float>(std::size_t(steps * kv)),
                        std::vector<float>(std::size_t(steps * kv))});
    for (auto* v : {&x, &normed, &q, &attended, &out}) v->resize(std::size_t(d));
    gate.resize(std::size_t(hidden)), up.resize(std::size_t(hidden));
    scores.resize(steps), logits.resize(std::size_t(vocab)), cos.resize(std::size_t(width / 2)), sin = cos;
  }

  template <int Sums>
  Tokens generate() {
    Tokens tokens;
    Token token = 1;
    for (int at = 0; at < steps; ++at) {
      step<Sums>(token, at);
      token = Token(std::max_element(logits.begin(), logits.end()) - logits.begin());
      tokens.push_back(token);
    }
    return tokens;
  }

 private:
  struct Layer {
    const float *attention_norm, *wq, *wk, *wv, *wo, *feed_forward_norm, *w1, *w3, *w2;
    std::vector<float> keys, values;
  };

  static const float* floats(const models::LlamaTensor& tensor) {
    return reinterpret_cast<const float*>(tensor.bytes.data());  // the file is mapped, its header 28 bytes
  }

  template <int Sums>
  static void multiply(float* y, const float* w, const float* in, int columns, int rows) {
    for (int r = 0; r < rows; ++r) y[r] = dot<Sums>(w + r * columns, in, columns);
  }
  void rms_norm(const float* gain) {
    float sum = 0;
    for (int i = 0; i < d; ++i) sum += x[std::size_t(i)] * x[std::size_t(i)];
    const float factor = 1.0f / std::sqrt(sum / float(d) + 1e-5f);
    for (int i = 0; i < d; ++i) normed[std::size_t(i)] = gain[i] * (factor * x[std::size_t(i)]);
  }
  void rotate(float* v, int n) const {
    for (int i = 0; i < n; i += 2) {
      const auto pair = std::size_t(i % width / 2);
      const float a = v[i], b = v[i + 1];
      v[i] = a * cos[pair] - b * sin[pair];
      v[i + 1] = a * sin[pair] + b * cos[pair];
    }
  }

  template <int Sums>
  void step(Token token, int at) {
    std::copy_n(embedding + token * d, d, x.begin());
    for (int i = 0; i < width / 2; ++i) {
      const float angle = float(at) * std::pow(10000.0f, -2.0f * float(i) / float(width));
      cos[std::size_t(i)] = std::cos(angle), sin[std::size_t(i)] = std::sin(angle);
    }
    for (Layer& l : layers) {
      rms_norm(l.attention_norm);
      float* const k = l.keys.data() + at * kv;
      multiply<Sums>(q.data(), l.wq, normed.data(), d, d);
      multiply<Sums>(k, l.wk, normed.data(), d, kv);
      multiply<Sums>(l.values.data() + at * kv, l.wv, normed.data(), d, kv);
      rotate(q.data(), d);
      rotate(k, kv);
      for (int h = 0; h < heads; ++h) {
        const int column = h / (heads * width / kv) * width;
        float largest = -1e30f, sum = 0;
        for (int t = 0; t <= at; ++t) {
          float s = 0;
          for (int i = 0; i < width; ++i)
            s += q[std::size_t(h * width + i)] * l.keys[std::size_t(t * kv + column + i)];
          scores[std::size_t(t)] = s / std::sqrt(float(width));
          largest = std::max(largest, scores[std::size_t(t)]);
        }
        for (int t = 0; t <= at; ++t)
          sum += scores[std::size_t(t)] = std::exp(scores[std::size_t(t)] - largest);
        float* const y = attended.data() + h * width;
        std::fill_n(y, width, 0.0f);
        for (int t = 0; t <= at; ++t)
          for (int i = 0; i < width; ++i)
            y[i] += scores[std::size_t(t)] / sum * l.values[std::size_t(t * kv + column + i)];
      }
      multiply<Sums>(out.data(), l.wo, attended.data(), d, d);
      for (int i = 0; i < d; ++i) x[std::size_t(i)] += out[std::size_t(i)];
      rms_norm(l.feed_forward_norm);
      multiply<Sums>(gate.data(), l.w1, normed.data(), d, hidden);
      multiply<Sums>(up.data(), l.w3, normed.data(), d, hidden);
      for (std::size_t i = 0; i < gate.size(); ++i) gate[i] = gate[i] / (1.0f + std::exp(-gate[i])) * up[i];
      multiply<Sums>(out.data(), l.w2, gate.data(), hidden, d);
      for (int i = 0; i < d; ++i) x[std::size_t(i)] += out[std::size_t(i)];
    }
    rms_norm(norm);
    multiply<Sums>(logits.data(), output, normed.data(), d, vocab);
  }

  int d, hidden, heads, width, kv, vocab;
  const float *embedding, *norm, *output;
  std::vector<Layer> layers;
  std::vector<float> x, normed, q, attended, out, gate, up, scores, logits, cos, sin;
};

Tokens by_posenc(const transformer::LanguageModel<float>& model) {
  transformer::Continuation<float> text(model, steps);
  Tokens tokens;
  Token token = 1;
  for (int at = 0; at < steps; ++at) {
    token = transformer::most_likely(transformer::row_of(text.read(std::span<const Token>(&token, 1)), 0));
    tokens.push_back(token);
  }
  return tokens;
}

template <class Run>
double tokens_per_second(const Run& run, Tokens& tokens) {
  const auto start = std::chrono::steady_clock::now();
  tokens = run();
  return steps / std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc != 2 && argc != 3)
      throw models::InputError("expected a file of llama2.c, and a number of rounds");
    const int rounds = argc == 3 ? std::atoi(argv[2]) : 50;
    if (rounds < 1) throw models::InputError("rounds: expected at least 1");
    const models::MappedFile file(argv[1]);
    const models::LlamaWeights weights = models::read_llama2c(file.bytes(), file.path());
    if (weights.context < steps) throw models::InputError(file.path() + ": reads fewer than 256 tokens");
    const auto model = models::make_llama<float>(weights);
    PlainLlama plain(weights);
    std::vector<double> ours, one, eight;
    Tokens a, b, c;
    for (int n = 0; n < rounds; ++n) {
      ours.push_back(tokens_per_second([&] { return by_posenc(model); }, a));
      one.push_back(tokens_per_second([&] { return plain.generate<1>(); }, b));
      eight.push_back(tokens_per_second([&] { return plain.generate<8>(); }, c));
      if (a != b || a != c) throw std::runtime_error("they generate different tokens");
    }
    std::printf("%d rounds of %d tokens, the same ones; median tokens/s, and the ratio to posenc's\n", rounds,
                steps);
    for (const auto& [name, rates] : {std::pair("posenc", &ours), {"plain", &one}, {"eight sums", &eight}})
      std::printf("  %-10s  %8.0f  %5.2f\n", name, median(*rates), median(*rates) / median(ours));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "posenc_stories_bench: %s\n", error.what());
    return 2;
  }
}
