// The whole model: its size, its loss and optimiser, training on threads, and generation.

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/transformer.hpp"

using namespace transformer_test;

namespace {

TransformerConfig small(PositionScheme scheme = PositionScheme::sinusoidal) {
  return {.vocab_size = 12,
          .d_model = 32,
          .num_heads = 4,
          .num_encoder_layers = 1,
          .num_decoder_layers = 1,
          .d_ff = 64,
          .positions = scheme,
          .max_positions = 16,
          .norm_placement = NormPlacement::pre,
          .dropout = 0.0};
}

/// Sentences to be copied.
std::vector<Pair> copies(std::size_t count, std::uint64_t seed) {
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < count; ++i) {
    const Tokens words = random_tokens(3 + static_cast<Index>(i % 3), 12, seed * 1000 + i);
    pairs.push_back({words, words});
  }
  return pairs;
}

bool same(const Vector<float>& a, const Vector<float>& b) {
  return a.size() == b.size() &&
         std::memcmp(a.data(), b.data(), sizeof(float) * static_cast<std::size_t>(a.size())) == 0;
}

/// The parameters after some steps on `threads` threads.
Vector<float> trained(TransformerConfig config, int threads, Index steps) {
  Transformer<float> model(config, 5);
  Threads pool(threads);
  Trainer<float> trainer(model, {.schedule = {.warmup_steps = 10, .peak = 3e-3}, .chunk_sentences = 3}, pool);
  for (Index s = 0; s < steps; ++s) trainer.step(copies(17, static_cast<std::uint64_t>(s)));
  return model.parameters().flat();
}

}  // namespace

TEST_CASE("the paper's base model has the parameters one counts by hand", "[unit]") {
  const TransformerConfig base = paper_base();
  CHECK(base.positions == PositionScheme::sinusoidal);
  CHECK(base.dropout == 0.1);
  std::map<std::string, Index> parts;
  Index total = 0;
  for (const PartCount& part : parameter_counts(base)) parts[part.part] = part.count, total += part.count;
  const Index attention = 4 * 512 * 512, feed_forward = 512 * 2048 + 2048 + 2048 * 512 + 512, norm = 2 * 512;
  CHECK(parts.size() == 8);
  CHECK(parts["embedding"] == 37000 * 512);
  CHECK(parts["encoder self_attention"] == 6 * attention);
  CHECK(parts["encoder feed_forward"] == 6 * feed_forward);
  CHECK(parts["encoder norms"] == 6 * 2 * norm);
  CHECK(parts["decoder self_attention"] == 6 * attention);
  CHECK(parts["decoder cross_attention"] == 6 * attention);
  CHECK(parts["decoder feed_forward"] == 6 * feed_forward);
  CHECK(parts["decoder norms"] == 6 * 3 * norm);
  CHECK(total == 63045632);  // the paper rounds to 65 million
  CHECK(position_parameters(base) == 0);
  TransformerConfig learned = base;
  learned.positions = PositionScheme::learned;
  CHECK(position_parameters(learned) == 2 * 256 * 512);
}

TEST_CASE("the paper's base model runs", "[unit]") {
  const Transformer<float> model(paper_base());
  CHECK(model.parameters().count() == 63045632);
  const Matrix<float> z = logits<float>(model, Tokens{17, 36999, 4}, Tokens{8, 1000});
  CHECK(z.rows() == 3);
  CHECK(z.cols() == 37000);
  CHECK(z.allFinite());
}

TEST_CASE("parameters have names, shapes and places", "[unit]") {
  Transformer<float> model(small(PositionScheme::learned));
  Index next = 0;
  for (const auto& entry : model.parameters().entries()) {
    CHECK(entry.offset == next);
    CHECK(entry.size ==
          std::accumulate(entry.shape.begin(), entry.shape.end(), Index{1}, std::multiplies<>()));
    next += entry.size;
  }
  CHECK(next == model.parameters().count());
  CHECK(model.parameters().entry("decoder.layers.0.cross_attention.kv.weight").shape ==
        std::vector<Index>{32, 64});
  CHECK(model.parameters().entry("encoder.positions.weight").shape == std::vector<Index>{16, 32});
  CHECK_THROWS_WITH(model.parameters().entry("nothing"), posenc_test::contains("there is no \"nothing\""));

  // Copied values make a copy of the model.
  Transformer<float> copy(small(PositionScheme::learned), 99);
  CHECK_FALSE(same(copy.parameters().flat(), model.parameters().flat()));
  for (const auto& entry : model.parameters().entries())
    std::ranges::copy(model.parameters().values(entry),
                      copy.parameters().values(copy.parameters().entry(entry.name)).begin());
  CHECK(logits<float>(copy, Tokens{4}, Tokens{5}) == logits<float>(model, Tokens{4}, Tokens{5}));
}

TEST_CASE("a configuration that is none is refused", "[unit]") {
  const auto with = [](auto change) {
    TransformerConfig config = small();
    change(config);
    return Transformer<float>(config);
  };
  CHECK_THROWS_WITH(with([](auto& c) { c.num_heads = 5; }),
                    posenc_test::contains("num_heads: expected a number that divides d_model = 32, got 5"));
  CHECK_THROWS_WITH(
      with([](auto& c) { c.num_kv_heads = 3; }),
      posenc_test::contains("num_kv_heads: expected a number that divides num_heads = 4, got 3"));
  CHECK_THROWS_WITH(with([](auto& c) { c.vocab_size = 2; }), posenc_test::contains("vocab_size"));
  CHECK_THROWS_WITH(with([](auto& c) { c.dropout = 1.5; }), posenc_test::contains("probability in [0, 1]"));
  CHECK_THROWS_WITH(
      position_scheme("rotary"),
      posenc_test::contains("expected one of none, sinusoidal, learned, rope, alibi, got \"rotary\""));
  for (const PositionScheme scheme : all_position_schemes) CHECK(position_scheme(name_of(scheme)) == scheme);
}

TEST_CASE("label-smoothed cross-entropy: a value by hand", "[unit]") {
  // softmax = (1/4, 1/2, 1/4), eps = 0.3: q = (0.1, 0.8, 0.1)
  Matrix<double> z(1, 3);
  z << 0.0, std::log(2.0), 0.0;
  const Tokens labels = {1};
  const LossSum sum = cross_entropy(View<double, 2>(z.data(), {1, 3}), labels, 0.3, 2.0);
  CHECK(sum.loss == Approx(0.2 * std::log(4.0) + 0.8 * std::log(2.0)).epsilon(1e-14));
  CHECK(sum.correct == 1);
  CHECK(z(0, 0) == Approx(2 * (0.25 - 0.1)).epsilon(1e-14));
  CHECK(z(0, 1) == Approx(2 * (0.50 - 0.8)).epsilon(1e-14));
  CHECK(z(0, 2) == Approx(2 * (0.25 - 0.1)).epsilon(1e-14));
}

TEST_CASE("Adam: two steps by hand", "[unit]") {
  Adam<double> adam({.beta1 = 0.9, .beta2 = 0.98, .epsilon = 1e-9}, 2);
  Vector<double> p(2), g(2);
  p << 1.0, -2.0;
  g << 0.5, -4.0;
  adam.next_step();
  adam.update(p, g, 0, 2, 0.1);
  // The first step is the rate itself, whatever the gradient: m / sqrt(v) = sign(g).
  CHECK(p(0) == Approx(0.9).epsilon(1e-8));
  CHECK(p(1) == Approx(-1.9).epsilon(1e-8));
  g << 1.0, 0.0;
  adam.next_step();
  adam.update(p, g, 0, 2, 0.1);
  const double m = 0.9 * 0.05 + 0.1 * 1.0, v = 0.98 * 0.02 * 0.25 + 0.02 * 1.0;
  CHECK(p(0) == Approx(0.9 - 0.1 * (m / (1 - 0.81)) / std::sqrt(v / (1 - 0.98 * 0.98))).epsilon(1e-7));
  const double m1 = 0.9 * -0.4, v1 = 0.98 * 0.02 * 16.0;
  CHECK(p(1) == Approx(-1.9 - 0.1 * (m1 / (1 - 0.81)) / std::sqrt(v1 / (1 - 0.98 * 0.98))).epsilon(1e-7));
}

TEST_CASE("the warm-up schedule", "[unit]") {
  const WarmupSchedule paper;
  const auto formula = [](double step) {
    return std::pow(512.0, -0.5) * (std::min)(std::pow(step, -0.5), step * std::pow(4000.0, -1.5));
  };
  for (const Index step : {1, 100, 3999, 4000, 4001, 100000})
    CHECK(paper.rate(step, 512) == Approx(formula(static_cast<double>(step))).epsilon(1e-12));
  CHECK(WarmupSchedule{.warmup_steps = 10, .peak = 0.2}.rate(5, 512) == Approx(0.1));
  CHECK(WarmupSchedule{.warmup_steps = 10, .peak = 0.2}.rate(40, 512) == Approx(0.1));
  const WarmupSchedule line{.warmup_steps = 10, .peak = 0.2, .total_steps = 110};
  CHECK(line.rate(10, 64) == Approx(0.2));
  CHECK(line.rate(60, 64) == Approx(0.1));
  CHECK(line.rate(110, 64) == 0.0);
  CHECK(line.rate(200, 64) == 0.0);
}

TEST_CASE("training gives the same bits for any number of threads, and again", "[unit][threads]") {
  TransformerConfig config = small(GENERATE(PositionScheme::rope, PositionScheme::learned));
  config.dropout = 0.2;
  const Vector<float> one = trained(config, 1, 6);
  CHECK(same(one, trained(config, 1, 6)));
  CHECK(same(one, trained(config, 2, 6)));
  CHECK(same(one, trained(config, 3, 6)));
  Transformer<float> start(config, 5);
  CHECK_FALSE(same(one, start.parameters().flat()));
}

TEST_CASE("dropout draws the same mask however the batch is cut", "[unit]") {
  TransformerConfig config = small();
  config.dropout = 0.3;
  Threads pool(1);
  std::vector<double> losses;
  for (const Index chunk : {1, 4, 17}) {
    Transformer<double> model(config, 5);
    Trainer<double> trainer(model, {.chunk_sentences = chunk}, pool);
    losses.push_back(trainer.step(copies(17, 1)).loss);
  }
  CHECK(losses[0] == Approx(losses[1]).epsilon(1e-12));
  CHECK(losses[0] == Approx(losses[2]).epsilon(1e-12));
}

TEST_CASE("the trainer's gradient is the mean over target tokens, clipped where asked", "[unit]") {
  Threads pool(2);
  Transformer<double> model(small(), 5);
  const double loss = Trainer<double>(model, {}, pool).evaluate(copies(5, 1)).loss;
  Trainer<double> free(model, {.schedule = {.warmup_steps = 1, .peak = 0.0}, .chunk_sentences = 2}, pool);
  const StepResult step = free.step(copies(5, 1));  // a rate of zero: the model stays
  CHECK(step.loss == Approx(loss).epsilon(1e-12));
  CHECK(step.step == 1);
  CHECK(step.tokens == 2 * (3 + 4 + 5 + 3 + 4 + 5));
  CHECK(step.gradient_norm == Approx(free.gradient().norm()).epsilon(1e-12));
  const auto slot = model.parameters().entries().back();
  const std::span<const double> gradient(free.gradient().data() + slot.offset,
                                         static_cast<std::size_t>(slot.size));
  CHECK(gradient_error([&] { return free.evaluate(copies(5, 1)).loss; }, model.parameters().values(slot),
                       gradient) < 1e-6);
  CHECK(free.step(std::vector<Pair>{{{4}, {5}}}).step == 2);
}

TEST_CASE("a bad batch is an error, from any thread, and changes nothing", "[unit]") {
  Threads pool(2);
  Transformer<float> model(small(), 5);
  Trainer<float> trainer(model, {.chunk_sentences = 1}, pool);
  const Vector<float> before = model.parameters().flat();
  std::vector<Pair> pairs = copies(4, 1);
  pairs[3].target[0] = 12;
  CHECK_THROWS_WITH(trainer.step(pairs), posenc_test::contains("expected token ids in [0, 12), got 12"));
  CHECK_THROWS_AS(trainer.step({}), std::invalid_argument);
  CHECK(same(before, model.parameters().flat()));
  CHECK(trainer.step(copies(4, 1)).step == 1);
}

TEST_CASE("the loss of a copy task falls, and the copies come out", "[unit]") {
  const PositionScheme scheme = GENERATE(PositionScheme::sinusoidal, PositionScheme::learned,
                                         PositionScheme::rope, PositionScheme::alibi);
  CAPTURE(name_of(scheme));
  Transformer<float> model(small(scheme), 5);
  Threads pool(2);
  Trainer<float> trainer(model, {.schedule = {.warmup_steps = 50, .peak = 5e-3, .total_steps = 500}}, pool);
  const double before = trainer.evaluate(copies(50, 9999)).loss;
  for (std::uint64_t s = 0; s < 500; ++s) trainer.step(copies(32, s));
  const EvalResult after = trainer.evaluate(copies(50, 9999));
  CAPTURE(before, after.loss, after.accuracy);
  CHECK(after.loss < 0.5 * before);
  CHECK(after.accuracy > 0.9);
  std::vector<Tokens> sources;
  for (const Pair& pair : copies(50, 9999)) sources.push_back(pair.source);
  const std::vector<Tokens> outputs = generate_all<float>(model, pool, sources);
  int exact = 0;
  for (std::size_t i = 0; i < sources.size(); ++i) exact += outputs[i] == sources[i];
  CHECK(exact > 35);
}

TEST_CASE("without positions a model cannot tell permutations of its source apart", "[property]") {
  const PositionScheme scheme =
      GENERATE(PositionScheme::none, PositionScheme::sinusoidal, PositionScheme::learned,
               PositionScheme::rope, PositionScheme::alibi);
  CAPTURE(name_of(scheme));
  Transformer<double> model(small(scheme), 5);
  shake(model.parameters(), 3);
  const Tokens target = {5, 6};
  Workspace<double> workspace;
  Pass<double> pass{.parameters = model.parameters(), .workspace = workspace};
  const auto read = [&](const Tokens& source) {  // without <eos>, whose place is no secret
    Sequences from, to;
    from.append(source);
    model.append_target(to, target);
    Transformer<double>::Saved saved;
    return copy_of(model.forward(pass, from, to, saved));
  };
  const double difference = (read({4, 7, 9, 10}) - read({10, 4, 9, 7})).array().abs().maxCoeff();
  if (scheme == PositionScheme::none)
    CHECK(difference < 1e-12);
  else
    CHECK(difference > 1e-3);
}

TEST_CASE("one beam is greedy search", "[property]") {
  for (const PositionScheme scheme : all_position_schemes)
    for (std::uint64_t seed = 1; seed <= 10; ++seed) {
      Transformer<float> model(small(scheme), seed);
      shake(model.parameters(), seed);
      const Tokens source = random_tokens(4, 12, seed);
      const auto beams = beam_search<float>(model, source, {.max_new_tokens = 12, .num_beams = 1});
      REQUIRE(beams.size() == 1);
      CHECK(beams[0].tokens == greedy<float>(model, source, {.max_new_tokens = 12}));
    }
}

TEST_CASE("a target that is begun goes on, and what is suppressed does not come", "[unit]") {
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    Transformer<float> model(small(), seed);
    shake(model.parameters(), seed);
    const Tokens source = random_tokens(4, 12, seed);
    const Tokens free = greedy<float>(model, source, {.max_new_tokens = 12});
    REQUIRE(free.size() >= 3);
    // A prefix of what it says anyway changes nothing, and another one stays.
    const Tokens same(free.begin(), free.begin() + 2);
    CHECK(greedy<float>(model, source, {.max_new_tokens = 10, .prefix = same}) == free);
    const Tokens other = {4, 4, 5};
    for (const Index beams : {1, 3}) {
      const auto found =
          beam_search<float>(model, source, {.max_new_tokens = 6, .num_beams = beams, .prefix = other});
      for (const Hypothesis& hypothesis : found)
        CHECK(std::equal(other.begin(), other.end(), hypothesis.tokens.begin()));
      if (beams == 1)
        CHECK(found[0].tokens == greedy<float>(model, source, {.max_new_tokens = 6, .prefix = other}));
    }
    // The second token after the first one, and the third everywhere.
    const std::vector<Tokens> hidden = {{free[0], free[1]}, {free[2]}};
    for (const Index beams : {1, 3})
      for (const Hypothesis& hypothesis : beam_search<float>(
               model, source, {.max_new_tokens = 12, .num_beams = beams, .suppressed = hidden}))
        for (const Tokens& sequence : hidden)
          CHECK(std::search(hypothesis.tokens.begin(), hypothesis.tokens.end(), sequence.begin(),
                            sequence.end()) == hypothesis.tokens.end());
    CHECK_THROWS_WITH(greedy<float>(model, source, {.suppressed = {{12}}}),
                      posenc_test::contains("suppressed: expected tokens in [0, 12), got 12"));
    // The probability of a whole target is that of a beam.
    const auto best = beam_search<float>(model, source, {.max_new_tokens = 12, .num_beams = 2})[0];
    if (best.finished) {
      double sum = 0;
      for (const double p : token_log_probabilities<float>(model, source, best.tokens)) sum += p;
      CHECK(sum == Approx(best.log_probability).epsilon(1e-5));
    }
  }
}

TEST_CASE("a beam as wide as the tree finds the best sentence, with its probability", "[property]") {
  TransformerConfig config = small();
  config.vocab_size = 4;
  const double alpha = GENERATE(0.0, 0.6);
  Transformer<double> model(config, 8);
  shake(model.parameters(), 2);
  const Tokens source = {3, 1};
  const auto log_probability = [&](const Tokens& tokens, bool finished) {
    Matrix<double> z = logits<double>(model, source, tokens);
    double sum = 0;
    for (std::size_t i = 0; i < tokens.size() + (finished ? 1 : 0); ++i) {
      log_softmax(z.row(static_cast<Index>(i)));
      sum += z(static_cast<Index>(i), i < tokens.size() ? tokens[i] : config.special.eos);
    }
    return sum;
  };
  // Every sentence of less than 3 tokens that ends, and its score.
  double best = -1e9;
  Tokens best_tokens;
  const Tokens words = {0, 1, 3};  // all but <eos>
  std::vector<Tokens> all = {{}};
  for (std::size_t i = 0; i < all.size(); ++i) {
    const double score = log_probability(all[i], true) / std::pow((6.0 + double(all[i].size())) / 6.0, alpha);
    if (score > best) best = score, best_tokens = all[i];
    if (all[i].size() < 2)
      for (const Token word : words) {
        Tokens longer = all[i];
        longer.push_back(word);
        all.push_back(longer);
      }
  }
  const auto found =
      beam_search<double>(model, source, {.max_new_tokens = 3, .num_beams = 100, .length_penalty = alpha});
  REQUIRE(found.size() == 13 + 27);  // the sentences that end, and those of 3 tokens that were cut off
  CHECK(found[0].tokens == best_tokens);
  CHECK(found[0].score == Approx(best).epsilon(1e-10));
  for (const Hypothesis& hypothesis : found)
    CHECK(hypothesis.log_probability ==
          Approx(log_probability(hypothesis.tokens, hypothesis.finished)).epsilon(1e-10));
  CHECK_THROWS_AS(beam_search<double>(model, source, {.num_beams = 0}), std::invalid_argument);
}

TEST_CASE("attention maps are distributions over the source", "[unit]") {
  const Transformer<float> model(small(), 5);
  const auto maps = cross_attention<float>(model, Tokens{4, 5, 6}, Tokens{7, 8});
  REQUIRE(maps.layers.size() == 1);
  REQUIRE(maps.layers[0].size() == 4);
  Matrix<float> mean = Matrix<float>::Zero(3, 4);
  for (const auto& head : maps.layers[0]) {
    REQUIRE(head.rows() == 3);
    REQUIRE(head.cols() == 4);
    for (Index i = 0; i < 3; ++i) CHECK(head.row(i).sum() == Approx(1).epsilon(1e-6));
    mean += head / 4;
  }
  CHECK((mean_cross_attention<float>(model, Tokens{4, 5, 6}, Tokens{7, 8}) - mean).array().abs().maxCoeff() <
        1e-6f);
}

TEST_CASE("threads run every task once, and pass on the first exception", "[unit][threads]") {
  Threads pool(GENERATE(1, 2, 5));
  for (int round = 0; round < 50; ++round) {
    std::vector<int> done(37, 0);
    pool.run(37, [&](Index i) { done[static_cast<std::size_t>(i)] += 1; });
    CHECK(done == std::vector<int>(37, 1));
  }
  pool.run(0, [](Index) { FAIL("no task"); });
  CHECK_THROWS_WITH(pool.run(9,
                             [](Index i) {
                               if (i % 4 == 3) throw std::runtime_error("task " + std::to_string(i));
                             }),
                    "task 3");
  pool.run(3, [](Index) {});
  CHECK_THROWS_AS(Threads(0), std::invalid_argument);
}
