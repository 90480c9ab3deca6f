#pragma once
// What tokens look up: positions by rule, rows of a learned table, sizes of an embedding, a dropout mask.

#include <cmath>
#include <string>
#include <vector>

#include "figures/figure.hpp"
#include "posenc/embedding/dropout.hpp"
#include "posenc/embedding/learned_positions.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/embedding/token_embedding.hpp"

namespace figures {

/// A row of numbered boxes; `shaded` ones are drawn as padding.
inline void number_strip(Drawing& d, double left, double top, double cell,
                         const std::vector<posenc::Position>& numbers, const std::vector<bool>& shaded,
                         const std::string& color, const std::string& name) {
  d.raw("<g data-strip=\"" + escaped(name) + "\">");
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const double x = left + cell * static_cast<double>(i);
    const bool pad = shaded[i];
    d.rect(x, top, cell - 3, 24, pad ? d.theme().empty : color,
           pad ? " stroke=\"" + d.theme().muted + "\" stroke-dasharray=\"3 2\"" : "");
    d.text(x + (cell - 3) / 2, top + 17, std::to_string(numbers[i]),
           {.size = 13,
            .anchor = "middle",
            .color = pad ? d.theme().muted : d.theme().background,
            .bold = !pad});
  }
  d.raw("</g>");
}

using Ids = Eigen::Tensor<std::int64_t, 2, Eigen::RowMajor>;

/// Ids of two sentences of 5 tokens in a batch of 8, padded on the right and on the left.
inline Ids padded_batch(std::int64_t pad) {
  Ids ids(2, 8);
  for (posenc::Index i = 0; i < 8; ++i) {
    ids(0, i) = i < 5 ? 10 + i : pad;
    ids(1, i) = i >= 3 ? 10 + i - 3 : pad;
  }
  return ids;
}

/// The rows of the table that each model looks up for a padded batch.
inline Figure learned_rows(const Theme& theme) {
  constexpr posenc::Index rows = 16, width = 2;
  constexpr std::int64_t pad = 1;
  // A table whose row r holds r: looking it up tells the row.
  Eigen::Tensor<double, 2, Eigen::RowMajor> table(rows, width);
  for (posenc::Index r = 0; r < rows; ++r)
    for (posenc::Index c = 0; c < width; ++c) table(r, c) = static_cast<double>(r);
  const Ids ids = padded_batch(pad);
  Eigen::Tensor<bool, 2, Eigen::RowMajor> mask(2, 8);
  for (posenc::Index b = 0; b < 2; ++b)
    for (posenc::Index i = 0; i < 8; ++i) mask(b, i) = ids(b, i) != pad;
  struct Rule {
    std::string model, call;
    posenc::Positions at;
    posenc::Position offset;
  };
  const std::vector<Rule> rules{
      {"BERT, GPT-2, ViT", "consecutive(0, n)", posenc::consecutive(0, 8), 0},
      {"GPT-2 in generation", "positions_from_mask(mask)", posenc::positions_from_mask(mask), 0},
      {"BART", "consecutive(0, n), offset 2", posenc::consecutive(0, 8), 2},
      {"OPT", "positions_from_mask(mask, \u22121), offset 2", posenc::positions_from_mask(mask, -1), 2},
      {"RoBERTa", "roberta_positions(ids, 1)", posenc::roberta_positions(ids, pad), 0}};

  Drawing d(theme, 84 + 66 * static_cast<double>(rules.size()),
            "Learned positions: which row each token looks up",
            "Two sentences of 5 tokens in a batch, one padded on the right, one on the left.");
  d.swatches(16, 66, {{"token", theme.series[0]}, {"padding", theme.empty}});
  Csv csv{"rule", "row", "token", "is_padding", "table_row"};
  double top = 84;
  for (const Rule& rule : rules) {
    const posenc::LearnedPositions<double> positions(table, {.offset = rule.offset});
    Eigen::Tensor<double, 3, Eigen::RowMajor> found(2, 8, width);
    positions.embed(found, rule.at);
    d.text(16, top + 12, rule.model, {.bold = true});
    d.text(584, top + 12, rule.call, {.size = 11, .anchor = "end", .color = theme.muted});
    for (posenc::Index b = 0; b < 2; ++b) {
      std::vector<posenc::Position> numbers;
      std::vector<bool> shaded;
      for (posenc::Index i = 0; i < 8; ++i) {
        numbers.push_back(static_cast<posenc::Position>(found(b, i, 0)));
        shaded.push_back(!mask(b, i));
        csv.row({rule.model, std::to_string(b), std::to_string(i), mask(b, i) ? "0" : "1",
                 std::to_string(numbers.back())});
      }
      number_strip(d, 16 + 292 * static_cast<double>(b), top + 20, 35.5, numbers, shaded, theme.series[0],
                   rule.model + " " + std::to_string(b));
    }
    top += 66;
  }
  return {"learned_rows", d.finished(), csv.text()};
}

/// The positions that each rule gives.
inline Figure position_rules(const Theme& theme) {
  struct Rule {
    std::string call, use;
    posenc::Positions at;
    std::vector<bool> padding;  // of row 0
  };
  const Ids ids = padded_batch(1);
  Ids left(1, 8);
  Eigen::Tensor<bool, 2, Eigen::RowMajor> mask(1, 8);
  std::vector<bool> padding;
  for (posenc::Index i = 0; i < 8; ++i) {
    left(0, i) = ids(1, i), mask(0, i) = ids(1, i) != 1;
    padding.push_back(!mask(0, i));
  }
  const std::vector<bool> none(8, false);
  const std::vector<int> starts{2, 9};
  const std::vector<int> cu_seqlens{0, 3, 5, 8};
  const std::vector<Rule> rules{
      {"consecutive(0, 8)", "a first call", posenc::consecutive(0, 8), none},
      {"consecutive(100, 8)", "100 tokens are in the cache", posenc::consecutive(100, 8), none},
      {"consecutive({2, 9}, 8), row 1", "caches of different lengths", posenc::consecutive(starts, 8).row(1),
       none},
      {"positions_from_mask(mask)", "padding on the left", posenc::positions_from_mask(mask), padding},
      {"roberta_positions(ids, 1)", "the same tokens, RoBERTa's rule", posenc::roberta_positions(left, 1),
       padding},
      {"positions_from_cu_seqlens({0, 3, 5, 8})", "three sequences in one row",
       posenc::positions_from_cu_seqlens(cu_seqlens), none},
      {"consecutive(100, 8).shifted(\u2212100)", "moved to the front",
       posenc::consecutive(100, 8).shifted(-100), none}};

  Drawing d(theme, 84 + 56 * static_cast<double>(rules.size()) + 14, "Where the tokens of a call stand",
            "A value made before the call; padding is drawn with a dashed edge.");
  d.swatches(16, 66, {{"token", theme.series[0]}, {"padding", theme.empty}});
  Csv csv{"rule", "token", "is_padding", "position"};
  double top = 84;
  for (const Rule& rule : rules) {
    d.text(16, top + 12, rule.call, {.bold = true});
    d.text(584, top + 12, rule.use, {.size = 11, .anchor = "end", .color = theme.muted});
    std::vector<posenc::Position> numbers;
    for (posenc::Index i = 0; i < rule.at.count(); ++i) {
      numbers.push_back(rule.at(0, i));
      csv.row({rule.call, std::to_string(i), rule.padding[static_cast<std::size_t>(i)] ? "1" : "0",
               std::to_string(numbers.back())});
    }
    number_strip(d, 16, top + 19, 71.3, numbers, rule.padding, theme.series[0], rule.call);
    top += 56;
  }
  return {"position_rules", d.finished(), csv.text()};
}

/// The size of a token embedding beside that of the position that is added to it.
inline Figure token_scale(const Theme& theme) {
  constexpr posenc::Index vocabulary = 64;
  const std::vector<posenc::Index> widths{32, 64, 128, 256, 512, 1024, 2048, 4096};
  std::vector<double> xs, plain, scaled, position;
  Csv csv{"d_model", "scale_1", "scale_sqrt_d", "sinusoidal"};
  Normal normal(11);
  const auto size = [](const auto& rows) {  // root mean square
    double sum = 0;
    for (posenc::Index n = 0; n < rows.size(); ++n) sum += rows.data()[n] * rows.data()[n];
    return std::sqrt(sum / static_cast<double>(rows.size()));
  };
  for (const posenc::Index d : widths) {
    const double root = std::sqrt(static_cast<double>(d));
    Eigen::Tensor<double, 2, Eigen::RowMajor> table(vocabulary, d), x(vocabulary, d);
    for (posenc::Index n = 0; n < table.size(); ++n) table.data()[n] = normal() / root;
    std::vector<int> ids;
    for (int id = 0; id < vocabulary; ++id) ids.push_back(id);
    xs.push_back(static_cast<double>(d));
    posenc::TokenEmbedding<double>(table).embed(x, ids);
    plain.push_back(size(x));
    posenc::TokenEmbedding<double>(table, {.scale = root}).embed(x, ids);
    scaled.push_back(size(x));
    position.push_back(size(posenc::Sinusoidal({.d_model = d}).table<double>(vocabulary)));
    csv.row({number(xs.back()), number(plain.back()), number(scaled.back()), number(position.back())});
  }

  Drawing d(theme, 350, "Why token embeddings are scaled by \u221ad_model",
            "Root mean square of the elements, for a table drawn from N(0, 1/d_model).");
  const LineStyle one{theme.series[1], "7 3", 1.8, Marker::triangle},
      root{theme.series[0], {}, 1.8, Marker::circle}, sinusoidal{theme.series[2], {}, 1.8, Marker::square};
  d.legend(
      64, 66,
      {{"token, scale 1", one}, {"token, scale \u221ad_model", root}, {"sinusoidal position", sinusoidal}});
  const Panel panel{"size",
                    64,
                    84,
                    512,
                    210,
                    {.label = "d_model", .first = 16, .last = 8192, .is_log = true, .base = 2},
                    {.label = "root mean square", .first = 0.01, .last = 2, .is_log = true}};
  panel.open(d);
  panel.line(d, "scale_1", xs, plain, one);
  panel.line(d, "sinusoidal", xs, position, sinusoidal);
  panel.line(d, "scale_sqrt_d", xs, scaled, root);
  panel.close(d);
  return {"token_scale", d.finished(), csv.text()};
}

/// A dropout mask, in one call and in two shards.
inline Figure dropout_mask(const Theme& theme) {
  constexpr posenc::Index rows = 16, columns = 64;
  constexpr double p = 0.25;
  const posenc::Dropout dropout(p);
  using Rows = Eigen::Tensor<double, 2, Eigen::RowMajor>;
  Rows whole(rows, columns), upper(rows / 2, columns), lower(rows / 2, columns);
  whole.setConstant(1), upper.setConstant(1), lower.setConstant(1);
  dropout.apply(whole, posenc::Mode::train, 1);
  dropout.apply(upper, posenc::Mode::train, 1);
  dropout.apply(lower, posenc::Mode::train, 1, static_cast<std::uint64_t>(upper.size()));
  Drawing d(theme, 446, "Dropout: which elements survive",
            "p = 0.25, seed 1. Two shards that say where they begin get the mask of the whole.");
  d.swatches(64, 66, {{"kept, times 4/3", theme.series[0]}, {"zero", theme.empty}});
  Csv csv{"row", "column", "whole", "in_shards"};
  std::vector<std::vector<double>> one(16, std::vector<double>(64));
  std::vector<std::vector<double>> first(8, std::vector<double>(64)), second(8, std::vector<double>(64));
  for (std::size_t r = 0; r < 16; ++r)
    for (std::size_t c = 0; c < 64; ++c) {
      const auto column = static_cast<posenc::Index>(c), row = static_cast<posenc::Index>(r);
      one[r][c] = whole(row, column);
      const double shard = row < rows / 2 ? upper(row, column) : lower(row - rows / 2, column);
      (r < 8 ? first[r] : second[r - 8])[c] = shard;
      csv.row({std::to_string(r), std::to_string(c), number(one[r][c]), number(shard)});
    }
  const auto color = [](const std::string& hex) {
    const auto byte = [&](std::size_t at) {
      return static_cast<double>(std::stoi(hex.substr(at, 2), nullptr, 16));
    };
    return Color{byte(1), byte(3), byte(5)};
  };
  const ColorScale scale{0, 1 / (1 - p), 2, {color(theme.empty), color(theme.series[0])}};
  const auto show = [&](const std::string& name, double top, double first_row, const auto& values,
                        bool labelled) {
    const double height = 8 * static_cast<double>(values.size());
    const double last_row = first_row + static_cast<double>(values.size());
    const Panel panel{name,
                      64,
                      top,
                      512,
                      height,
                      {labelled ? "feature" : "", 0, 64,
                       labelled ? std::vector<double>{0, 16, 32, 48, 64} : std::vector<double>{}},
                      {values.size() == 16 ? "token" : "", last_row, first_row, {first_row, last_row}},
                      false};
    panel.open(d);
    heat_map(d, panel, name, values, scale);
    panel.close(d);
  };
  d.text(64, 90, "one call of 16 tokens", {.bold = true});
  show("whole", 98, 0, one, false);
  d.text(64, 250, "two calls of 8: first_element = 0 and 512", {.bold = true});
  show("shard 0", 258, 0, first, false);
  show("shard 1", 258 + 64 + 12, 8, second, true);
  return {"dropout_mask", d.finished(), csv.text()};
}

}  // namespace figures
