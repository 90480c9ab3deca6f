#pragma once
// Decoding one token at a time: each step feeds the last token, and the keys and values of all before it wait
// in a cache.
//
// Beam search keeps the `num_beams` most likely beginnings. Finished ones are compared by their length-
// normalised log-probability (Wu et al. 2016, eq. 14; alpha = 0.6 in "Attention Is All You Need",
// section 6.1):
//
//   score = log P(tokens) / ((5 + length) / 6)^alpha
//
// A beam ends as its hypothesis does, so that one beam is greedy search.
//
// A target can be begun by the caller (`prefix`), and sequences of tokens can be kept out of it
// (`suppressed`): where all but the last token of one have just been said, the last one has no probability.

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "transformer/loss.hpp"
#include "transformer/threads.hpp"
#include "transformer/transformer.hpp"

namespace transformer {

struct GenerationConfig {
  Index max_new_tokens = 64;
  Index num_beams = 1;          ///< 1: greedy
  double length_penalty = 0.6;  ///< alpha; 0: none
  Tokens prefix = {};           ///< what the target starts with; not counted in max_new_tokens
  std::vector<Tokens> suppressed = {};
};

struct Hypothesis {
  Tokens tokens;                          // without <bos> and <eos>
  double log_probability = 0, score = 0;  // of what was generated, so not of a prefix
  bool finished = false;                  // whether it ended in <eos>
};

/// A sentence being translated: a value, so that a beam can branch by copying it.
template <class Scalar>
struct Decoding {
  std::vector<typename DecoderLayer<Scalar>::Cache> caches;  // one per layer
  Index length = 0;                                          // tokens that the decoder has read
};

/// Encodes the source and keeps what every step needs of it.
template <class Scalar>
Decoding<Scalar> start_decoding(const Transformer<Scalar>& model, std::span<const Token> source) {
  Workspace<Scalar> workspace;
  Pass<Scalar> pass{.parameters = model.parameters(), .workspace = workspace};
  Sequences from;
  model.append_source(from, source);
  typename Transformer<Scalar>::Saved saved;
  const View<const Scalar, 2> memory = model.encode(pass, from, saved);
  Decoding<Scalar> state;
  state.caches.resize(model.decoder_layers().size());
  for (std::size_t l = 0; l < state.caches.size(); ++l)
    model.decoder_layers()[l].remember(pass, memory, state.caches[l]);
  return state;
}

/// Reads the next tokens and returns the logits that follow each of them, (tokens, vocab_size).
template <class Scalar>
Matrix<Scalar> extend(const Transformer<Scalar>& model, Decoding<Scalar>& state,
                      std::span<const Token> tokens) {
  Workspace<Scalar> workspace;
  Pass<Scalar> pass{.parameters = model.parameters(), .workspace = workspace};
  const View<Scalar, 2> hidden = model.extend(pass, tokens, state.length, state.caches);
  state.length += static_cast<Index>(tokens.size());
  return matrix(model.logits(pass, hidden));
}

namespace detail {

/// <bos> and the prefix: what the decoder reads first.
inline Tokens beginning(Token bos, const Tokens& prefix) {
  Tokens tokens = {bos};
  tokens.insert(tokens.end(), prefix.begin(), prefix.end());
  return tokens;
}

/// The logits of what may not follow `so_far` become -infinity.
template <class Row>
void suppress(Row&& logits, const Tokens& so_far, const std::vector<Tokens>& sequences) {
  for (const Tokens& sequence : sequences) {
    if (sequence.empty() || sequence.size() > so_far.size() + 1) continue;
    if (!std::equal(sequence.begin(), sequence.end() - 1, so_far.end() - (std::ssize(sequence) - 1)))
      continue;
    if (sequence.back() < 0 || sequence.back() >= logits.size())
      throw std::out_of_range("suppressed: expected tokens in [0, " + std::to_string(logits.size()) +
                              "), got " + std::to_string(sequence.back()));
    logits(sequence.back()) = -std::numeric_limits<std::decay_t<decltype(logits(0))>>::infinity();
  }
}

}  // namespace detail

/// The most likely token at every step.
template <class Scalar>
Tokens greedy(const Transformer<Scalar>& model, std::span<const Token> source,
              const GenerationConfig& config = {}) {
  Decoding<Scalar> state = start_decoding(model, source);
  Tokens tokens = config.prefix, unread = detail::beginning(model.config().special.bos, config.prefix);
  for (Index n = 0; n < config.max_new_tokens; ++n) {
    Matrix<Scalar> logits = extend(model, state, std::span<const Token>(unread));
    auto next = logits.row(logits.rows() - 1);
    detail::suppress(next, tokens, config.suppressed);
    Index best = 0;
    next.maxCoeff(&best);
    if (best == model.config().special.eos) break;
    tokens.push_back(static_cast<Token>(best));
    unread.assign(1, tokens.back());
  }
  return tokens;
}

/// The hypotheses that were found, best first; those that ended before those that were cut off.
template <class Scalar>
std::vector<Hypothesis> beam_search(const Transformer<Scalar>& model, std::span<const Token> source,
                                    const GenerationConfig& config) {
  if (config.num_beams < 1)
    throw std::invalid_argument("num_beams: expected at least 1, got " + std::to_string(config.num_beams));
  struct Beam {
    Decoding<Scalar> state;
    Hypothesis so_far;
    Tokens unread;
  };
  struct Candidate {
    std::size_t beam;
    Token token;
    double log_probability;
  };
  const Token eos = model.config().special.eos;
  const auto finish = [&](Hypothesis hypothesis, bool finished) {
    const double length =
        static_cast<double>(hypothesis.tokens.size() - config.prefix.size()) + (finished ? 1.0 : 0.0);
    hypothesis.score = hypothesis.log_probability / std::pow((5.0 + length) / 6.0, config.length_penalty);
    hypothesis.finished = finished;
    return hypothesis;
  };

  std::vector<Hypothesis> done;
  std::vector<Beam> beams;
  Beam first;
  first.state = start_decoding(model, source);
  first.so_far.tokens = config.prefix;
  first.unread = detail::beginning(model.config().special.bos, config.prefix);
  beams.push_back(std::move(first));
  for (Index n = 0; n < config.max_new_tokens && !beams.empty(); ++n) {
    std::vector<Candidate> candidates;
    for (std::size_t b = 0; b < beams.size(); ++b) {
      Matrix<Scalar> logits = extend(model, beams[b].state, std::span<const Token>(beams[b].unread));
      auto next = logits.row(logits.rows() - 1);
      detail::suppress(next, beams[b].so_far.tokens, config.suppressed);
      log_softmax(next);
      for (Index token = 0; token < next.cols(); ++token)
        if (next(token) != -std::numeric_limits<Scalar>::infinity())
          candidates.push_back({b, static_cast<Token>(token),
                                beams[b].so_far.log_probability + static_cast<double>(next(token))});
    }
    const std::size_t keep =
        (std::min)(candidates.size(), static_cast<std::size_t>(config.num_beams) - done.size());
    const auto kept = candidates.begin() + static_cast<std::ptrdiff_t>(keep);
    std::partial_sort(candidates.begin(), kept, candidates.end(), [](const Candidate& a, const Candidate& b) {
      if (a.log_probability != b.log_probability) return a.log_probability > b.log_probability;
      return std::pair(a.beam, a.token) < std::pair(b.beam, b.token);
    });
    std::vector<Beam> next;
    for (auto candidate = candidates.begin(); candidate != kept; ++candidate) {
      Hypothesis longer = beams[candidate->beam].so_far;
      longer.log_probability = candidate->log_probability;
      if (candidate->token == eos) {
        done.push_back(finish(std::move(longer), true));
      } else {
        longer.tokens.push_back(candidate->token);
        next.push_back({beams[candidate->beam].state, std::move(longer), {candidate->token}});
      }
    }
    beams = std::move(next);
  }
  for (Beam& beam : beams) done.push_back(finish(std::move(beam.so_far), false));
  std::stable_sort(done.begin(), done.end(), [](const Hypothesis& a, const Hypothesis& b) {
    return std::pair(a.finished, a.score) > std::pair(b.finished, b.score);
  });
  return done;
}

/// log P of every token of `target <eos>` after those before it.
template <class Scalar>
std::vector<double> token_log_probabilities(const Transformer<Scalar>& model, std::span<const Token> source,
                                            std::span<const Token> target) {
  Matrix<Scalar> z = logits(model, source, target);
  std::vector<double> log_probabilities;
  for (Index i = 0; i < z.rows(); ++i) {
    const Token label = i + 1 < z.rows() ? target[static_cast<std::size_t>(i)] : model.config().special.eos;
    log_softmax(z.row(i));
    log_probabilities.push_back(static_cast<double>(z(i, label)));
  }
  return log_probabilities;
}

/// The translation of every source, by greedy or beam search, on all threads.
template <class Scalar>
std::vector<Tokens> generate_all(const Transformer<Scalar>& model, Threads& threads,
                                 std::span<const Tokens> sources, const GenerationConfig& config = {}) {
  std::vector<Tokens> targets(sources.size());
  threads.run(static_cast<Index>(sources.size()), [&](Index i) {
    const Tokens& source = sources[static_cast<std::size_t>(i)];
    targets[static_cast<std::size_t>(i)] =
        config.num_beams == 1 ? greedy(model, source, config) : beam_search(model, source, config)[0].tokens;
  });
  return targets;
}

template <class Scalar>
struct AttentionMaps {
  std::vector<std::vector<Matrix<Scalar>>> layers;  // [layer][head], (target <eos>, source <eos>)
};

/// What the decoder looks at in the source. Row i belongs to the prediction of label i of `target <eos>`.
template <class Scalar>
AttentionMaps<Scalar> cross_attention(const Transformer<Scalar>& model, std::span<const Token> source,
                                      std::span<const Token> target) {
  Workspace<Scalar> workspace;
  Pass<Scalar> pass{.parameters = model.parameters(), .workspace = workspace};
  Sequences from, to;
  model.append_source(from, source);
  model.append_target(to, target);
  typename Transformer<Scalar>::Saved saved;
  model.decode(pass, to, model.encode(pass, from, saved), from, saved);
  AttentionMaps<Scalar> maps;
  for (std::size_t l = 0; l < saved.decoder.size(); ++l) {
    const auto p = model.decoder_layers()[l].cross_attention().heads().probabilities(
        saved.decoder[l].cross_attention.heads, to, from, 0);
    maps.layers.emplace_back();
    for (Index h = 0; h < p.extent(0); ++h) maps.layers.back().push_back(plane(p, h));
  }
  return maps;
}

/// The mean over the heads of the last layer.
template <class Scalar>
Matrix<Scalar> mean_cross_attention(const Transformer<Scalar>& model, std::span<const Token> source,
                                    std::span<const Token> target) {
  const AttentionMaps<Scalar> maps = cross_attention(model, source, target);
  if (maps.layers.empty()) return {};
  const auto& heads = maps.layers.back();
  Matrix<Scalar> mean = heads[0];
  for (std::size_t h = 1; h < heads.size(); ++h) mean += heads[h];
  return mean / static_cast<Scalar>(heads.size());
}

}  // namespace transformer
