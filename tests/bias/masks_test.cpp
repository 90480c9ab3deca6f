// Masks: who sees whom, by the words of the models that use them; alone, together, and with a bias.

#include "posenc/bias/masks.hpp"

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "bias/properties.hpp"

using posenc::causal;
using posenc::chunked;
using posenc::consecutive;
using posenc::Index;
using posenc::key_padding;
using posenc::MaskDirection;
using posenc::Position;
using posenc::position_ids;
using posenc::Positions;
using posenc::segments;
using posenc::sliding_window;
using posenc_test::BiasCase;
using posenc_test::check_bias;
using posenc_test::check_throws;
using posenc_test::hidden;

namespace {

/// Which keys each of 6 tokens sees, as a picture.
template <class Mask>
std::vector<std::string> picture(const Mask& mask) {
  const Positions at = consecutive(0, 6);
  Eigen::Tensor<float, 2> tile(6, 6);
  mask.tile(tile, 0, at, at);
  std::vector<std::string> lines;
  for (Index i = 0; i < 6; ++i) {
    std::string line;
    for (Index j = 0; j < 6; ++j) line += tile(i, j) == 0.0f ? 'x' : '.';
    lines.push_back(line);
  }
  return lines;
}

using Lines = std::vector<std::string>;

template <class Sees>
posenc_test::Definition seen(const Positions& q_at, const Positions& k_at, const Sees& sees) {
  return [&, sees](Index b, Index, Index i, Index j) { return sees(q_at(b, i), k_at(b, j)) ? 0.0 : hidden; };
}

}  // namespace

TEST_CASE("masks: pictures") {
  CHECK(picture(causal()) == Lines{"x.....", "xx....", "xxx...", "xxxx..", "xxxxx.", "xxxxxx"});
  CHECK(picture(sliding_window(2)) == Lines{"x.....", "xx....", ".xx...", "..xx..", "...xx.", "....xx"});
  CHECK(picture(sliding_window(2, MaskDirection::both)) ==
        Lines{"xx....", "xxx...", ".xxx..", "..xxx.", "...xxx", "....xx"});
  CHECK(picture(chunked(4)) == Lines{"x.....", "xx....", "xxx...", "xxxx..", "....x.", "....xx"});
  CHECK(picture(chunked(4, MaskDirection::both)) ==
        Lines{"xxxx..", "xxxx..", "xxxx..", "xxxx..", "....xx", "....xx"});
  CHECK(picture(key_padding(std::vector<std::int32_t>{0, 0, 1, 1, 1, 0})) == Lines(6, "..xxx."));
  CHECK(picture(segments(std::vector<std::int32_t>{4, 4, 4, 2, 2, 4})) ==
        Lines{"xxx..x", "xxx..x", "xxx..x", "...xx.", "...xx.", "xxx..x"});
  CHECK(picture(posenc::sum(causal(), segments(std::vector<std::int32_t>{4, 4, 4, 2, 2, 4}))) ==
        Lines{"x.....", "xx....", "xxx...", "...x..", "...xx.", "xxx..x"});
}

TEST_CASE("masks: of positions, in order and not, with a cache, far out, negative", "[property]") {
  const Position past = GENERATE(Position{0}, Position{-3}, (Position{1} << 59));
  const Positions q_at = GENERATE_COPY(consecutive(past + 5, 4),
                                       position_ids(std::vector<std::int64_t>{past, past + 7, past + 2}));
  const Positions k_at =
      GENERATE_COPY(consecutive(past, 9),
                    position_ids(std::vector<std::int64_t>{past + 8, past, past + 3, past + 5, past + 1}));
  const auto check = [&](const auto& mask, const auto& sees) {
    check_bias(BiasCase<std::remove_cvref_t<decltype(mask)>>{mask, 1, 2, q_at, k_at, seen(q_at, k_at, sees)});
  };
  check(causal(), [](Position q, Position k) { return k <= q; });
  check(sliding_window(3), [](Position q, Position k) { return k <= q && k > q - 3; });
  const auto floor_of = [](Position p) { return p >= 0 ? p / 4 : -((-p + 3) / 4); };
  check(chunked(4), [=](Position q, Position k) { return k <= q && floor_of(q) == floor_of(k); });
  check(chunked(4, MaskDirection::both), [=](Position q, Position k) { return floor_of(q) == floor_of(k); });
}

TEST_CASE("masks: of batch rows, by index", "[property]") {
  Eigen::Tensor<bool, 2> mask(4, 7);
  mask.setValues({{true, true, true, false, false, false, false},
                  {false, false, true, true, true, true, true},
                  {true, false, true, true, false, true, false},
                  {false, false, false, false, false, false, false}});
  const Positions q_at = consecutive(2, 5), k_at = consecutive(0, 7);
  const auto padding = key_padding(mask);
  check_bias(BiasCase<posenc::PaddingMask>{
      padding, 4, 2, q_at, k_at, [&](Index b, Index, Index, Index j) { return mask(b, j) ? 0.0 : hidden; }});
  Eigen::MatrixXi of_queries(4, 5), of_keys(4, 7);
  for (int b = 0; b < 4; ++b) {
    for (int i = 0; i < 5; ++i) of_queries(b, i) = (i + b) / 2;
    for (int j = 0; j < 7; ++j) of_keys(b, j) = j / (b + 1);
  }
  const auto documents = segments(of_queries, of_keys);
  const posenc_test::Definition same = [&](Index b, Index, Index i, Index j) {
    return of_queries(b, i) == of_keys(b, j) ? 0.0 : hidden;
  };
  check_bias(BiasCase<posenc::SegmentMask>{documents, 4, 2, q_at, k_at, same});
  const auto both = posenc::sum(documents, padding, sliding_window(3));
  check_bias(BiasCase<std::remove_const_t<decltype(both)>>{
      both, 4, 2, q_at, k_at, [&](Index b, Index h, Index i, Index j) {
        const Position d = k_at(b, j) - q_at(b, i);
        return mask(b, j) && d <= 0 && d > -3 ? same(b, h, i, j) : hidden;
      }});
}

TEST_CASE("masks: what does not fit is refused by name") {
  check_throws<std::invalid_argument>([] { (void)sliding_window(0); }, {"sliding_window", "0"});
  check_throws<std::invalid_argument>([] { (void)chunked(0); }, {"chunked", "0"});
  check_throws<std::invalid_argument>([] { (void)posenc::DistanceMask(3, 2); }, {"least", "3", "2"});
  const auto padding = key_padding(std::vector<std::int32_t>{1, 1, 0});
  Eigen::Tensor<float, 3> scores(1, 3, 4);
  scores.setZero();
  check_throws<std::invalid_argument>([&] { padding.add(scores, consecutive(0, 3), consecutive(0, 4)); },
                                      {"mask", "expected 4", "got 3"});
  const auto documents = segments(std::vector<std::int32_t>{1, 1, 2, 2});
  check_throws<std::invalid_argument>([&] { documents.add(scores, consecutive(0, 3), consecutive(0, 4)); },
                                      {"segments of queries", "expected 3", "got 4"});
  // A mask of two rows fits a batch of two; as a part of a sum it is asked as well.
  Eigen::MatrixXi rows = Eigen::MatrixXi::Ones(2, 4);
  const auto two = key_padding(rows);
  Eigen::Tensor<float, 4> batch(3, 1, 3, 4);
  batch.setZero();
  check_throws<std::invalid_argument>([&] { two.add(batch, consecutive(0, 3), consecutive(0, 4)); },
                                      {"mask", "1 or 3", "got 2"});
  check_throws<std::invalid_argument>(
      [&] { posenc::sum(causal(), padding).add(scores, consecutive(0, 3), consecutive(0, 4)); },
      {"mask", "expected 4", "got 3"});
}

TEST_CASE("masks: of more keys than a tile or a block holds", "[property]") {
  const Index keys = 5000;
  std::vector<std::int32_t> mask, of_keys;
  for (Index j = 0; j < keys; ++j)
    mask.push_back(j % 7 != 3), of_keys.push_back(static_cast<std::int32_t>(j / 600));
  const std::vector<std::int32_t> of_queries{3, 8};
  const Positions q_at = position_ids(std::vector<Position>{2100, 4999}), k_at = consecutive(0, keys);
  const auto padding = key_padding(mask);
  const auto documents = segments(of_queries, of_keys);
  const auto alibi = [](Index, Position i, Position j) { return -1e-3 * static_cast<double>(i - j); };
  const auto all = posenc::sum(padding, documents, causal(), alibi);
  const auto check = [&](const auto& bias, const posenc_test::Definition& expected) {
    Eigen::Tensor<double, 2, Eigen::RowMajor> tile(2, keys), p(2, keys);
    bias.tile(tile, 0, q_at, k_at);
    p.setZero();
    posenc::softmax(p, bias, q_at, k_at);
    int off = 0;
    for (Index i = 0; i < 2; ++i) {
      double sum = 0;
      for (Index j = 0; j < keys; ++j)
        if (const double b = expected(0, 0, i, j); b != hidden) sum += std::exp(b);
      for (Index j = 0; j < keys; ++j) {
        const double b = expected(0, 0, i, j);
        off += !(b == hidden ? tile(i, j) == hidden : std::fabs(tile(i, j) - b) < 1e-12);
        off += !(b == hidden ? p(i, j) == 0 : std::fabs(p(i, j) - std::exp(b) / sum) < 1e-14);
      }
    }
    CHECK(off == 0);
  };
  const auto is_token = [&](Index j) { return mask[static_cast<std::size_t>(j)] != 0; };
  const auto same = [&](Index i, Index j) {
    return of_queries[static_cast<std::size_t>(i)] == of_keys[static_cast<std::size_t>(j)];
  };
  check(padding, [&](Index, Index, Index, Index j) { return is_token(j) ? 0.0 : hidden; });
  check(documents, [&](Index, Index, Index i, Index j) { return same(i, j) ? 0.0 : hidden; });
  check(all, [&](Index, Index, Index i, Index j) {
    return is_token(j) && same(i, j) && j <= q_at(0, i) ? alibi(0, q_at(0, i), j) : hidden;
  });
}
