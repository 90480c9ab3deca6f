#pragma once
// ALiBi: the slopes of the heads, and the bias that they make.

#include <string>
#include <vector>

#include "figures/figure.hpp"
#include "posenc/bias/alibi.hpp"

namespace figures {

/// The slopes of models with 8, 12 and 40 heads.
inline Figure alibi_slopes(const Theme& theme) {
  Drawing d(theme, 380, "ALiBi slopes by head",
            "12 heads: the slopes of 8, then every other one of 16. 40: those of 32, then of 64.");
  const std::vector<std::pair<posenc::Index, LineStyle>> models{
      {8, {theme.series[1], {}, 1.2, Marker::square}},
      {12, {theme.series[2], {}, 1.2, Marker::triangle}},
      {40, {theme.series[0], {}, 1.2, Marker::circle}}};
  d.legend(64, 66,
           {{"8 heads", models[0].second}, {"12 heads", models[1].second}, {"40 heads", models[2].second}});
  const Panel panel{"slopes",
                    64,
                    84,
                    512,
                    240,
                    {"head", 0, 41, {1, 8, 12, 16, 24, 32, 40}},
                    {.label = "slope m", .first = 0x1p-9, .last = 1, .is_log = true, .base = 2}};
  panel.open(d);
  Csv csv{"num_heads", "head", "slope"};
  for (const auto& [heads, style] : models) {
    const std::vector<double> slopes = posenc::alibi_slopes(heads);
    std::vector<double> numbers = steps(slopes.size());
    for (std::size_t h = 0; h < slopes.size(); ++h) {
      numbers[h] += 1;
      csv.row({std::to_string(heads), number(numbers[h]), number(slopes[h])});
    }
    panel.line(d, std::to_string(heads), numbers, slopes, style);
  }
  panel.close(d);
  return {"alibi_slopes", d.finished(), csv.text()};
}

/// The causal bias of three of 8 heads: queries down, keys across.
inline Figure alibi_bias(const Theme& theme) {
  constexpr posenc::Index seq = 24;
  const posenc::Alibi alibi({.num_heads = 8, .form = posenc::AlibiForm::causal});
  const auto at = posenc::consecutive(0, seq);
  Drawing d(theme, 270, "ALiBi: what is added to the scores",
            "\u2212m \u00b7 distance; keys after the query are hidden (grey). Early heads look near.");
  const ColorScale scale{-12, 0, 25, theme.sequential};
  Csv csv{"head", "query", "key", "bias"};
  double left = 60;
  for (const posenc::Index head : {0, 3, 7}) {
    Eigen::Tensor<double, 2, Eigen::RowMajor> bias(seq, seq);
    alibi.tile(bias, head, at, at);
    std::vector<std::vector<double>> values(seq, std::vector<double>(seq));
    for (posenc::Index i = 0; i < seq; ++i)
      for (posenc::Index j = 0; j < seq; ++j) {
        values[static_cast<std::size_t>(i)][static_cast<std::size_t>(j)] = bias(i, j);
        csv.row({std::to_string(head + 1), std::to_string(i), std::to_string(j), number(bias(i, j))});
      }
    const std::string name = "head " + std::to_string(head + 1);
    const Panel panel{name,
                      left,
                      78,
                      142,
                      142,
                      {"key position", 0, 24, {0, 8, 16, 24}},
                      {head == 0 ? "query position" : "", 24, 0, {0, 8, 16, 24}, false, 10, 1, head == 0},
                      false};
    panel.open(d);
    d.rect(panel.left, panel.top, panel.width, panel.height, theme.empty);
    heat_map(d, panel, name, values, scale);
    panel.close(d);
    d.heading(left, 70, name, "m = 1/" + number(1 / alibi.slopes()[static_cast<std::size_t>(head)]));
    left += 160;
  }
  color_bar(d, 549, 80, 138, scale, {{-12, "\u221212"}, {-8, "\u22128"}, {-4, "\u22124"}, {0, "0"}}, "bias");
  return {"alibi_bias", d.finished(), csv.text()};
}

}  // namespace figures
