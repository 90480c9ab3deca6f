#pragma once
// Sinusoidal positions: the table as a heat map, its first dimensions as curves, and how two positions match.

#include <string>
#include <vector>

#include "figures/figure.hpp"
#include "posenc/embedding/sinusoidal.hpp"

namespace figures {

/// PE(p, c) for 50 positions and d_model = 128.
inline Figure sinusoidal_heatmap(const Theme& theme) {
  constexpr posenc::Index positions = 50, d_model = 128;
  const auto table = posenc::Sinusoidal({.d_model = d_model}).table<double>(positions);
  std::vector<std::vector<double>> values(positions, std::vector<double>(d_model));
  Csv csv{"position", "dimension", "value"};
  for (posenc::Index p = 0; p < positions; ++p)
    for (posenc::Index c = 0; c < d_model; ++c) {
      values[static_cast<std::size_t>(p)][static_cast<std::size_t>(c)] = table(p, c);
      csv.row({std::to_string(p), std::to_string(c), number(table(p, c))});
    }

  Drawing d(theme, 330, "Sinusoidal encoding, every position and dimension",
            "d_model = 128, base 10000. Left: one radian a position. Right: nearly at rest.");
  const Panel panel{"heatmap",
                    64,
                    64,
                    456,
                    210,
                    {"dimension (even: sin, odd: cos)", 0, 128, {0, 16, 32, 48, 64, 80, 96, 112, 128}},
                    {"position", 50, 0, {0, 10, 20, 30, 40, 50}},
                    false};
  const ColorScale scale{-1, 1, 33, theme.diverging};
  panel.open(d);
  heat_map(d, panel, "value", values, scale);
  panel.close(d);
  color_bar(d, 540, 78, 190, scale, {{-1, "\u22121"}, {-0.5, "\u22120.5"}, {0, "0"}, {0.5, "0.5"}, {1, "1"}},
            "PE");
  return {"sinusoidal_heatmap", d.finished(), csv.text()};
}

/// The first 8 of 512 dimensions, at whole positions and, for a smooth curve, at eighths of one.
inline Figure sinusoidal_curves(const Theme& theme) {
  constexpr posenc::Index d_model = 512, fine = 8;
  constexpr std::size_t last = 32;
  // In between: the same encoder with frequencies of an eighth, at eight times the position.
  const posenc::SinusoidalConfig config{.d_model = d_model};
  std::vector<double> slow = posenc::sinusoidal_frequencies(config);
  for (double& f : slow) f /= static_cast<double>(fine);
  const auto table = posenc::Sinusoidal(config, slow).table<double>(fine * last + 1);
  const std::vector<double> xs = steps(fine * last + 1, 1.0 / fine);
  std::vector<std::vector<double>> dims(8);
  Csv csv{"position", "dim0", "dim1", "dim2", "dim3", "dim4", "dim5", "dim6", "dim7"};
  for (std::size_t i = 0; i < xs.size(); ++i) {
    std::vector<std::string> row{number(xs[i])};
    for (std::size_t c = 0; c < dims.size(); ++c) {
      dims[c].push_back(table(static_cast<posenc::Index>(i), static_cast<posenc::Index>(c)));
      row.push_back(number(dims[c].back()));
    }
    csv.row(row);
  }

  Drawing d(theme, 530, "The first 8 of 512 dimensions",
            "Each pair of dimensions is a sine and a cosine, a little slower than the pair before.");
  const LineStyle sine{theme.series[0]}, cosine{theme.series[1], "6 3"};
  d.legend(64, 64, {{"even dimension: sin", sine}, {"odd dimension: cos", cosine}});
  for (std::size_t pair = 0; pair < 4; ++pair) {
    const Panel panel{
        "dims " + std::to_string(2 * pair) + " and " + std::to_string(2 * pair + 1),
        64,
        80 + 104 * static_cast<double>(pair),
        396,
        90,
        {pair == 3 ? "position" : "", 0, last, {0, 4, 8, 12, 16, 20, 24, 28, 32}, false, 10, 1, pair == 3},
        {"PE", -1.1, 1.1, {-1, 0, 1}}};
    panel.open(d);
    panel.line(d, "dim" + std::to_string(2 * pair), xs, dims[2 * pair], sine);
    panel.line(d, "dim" + std::to_string(2 * pair + 1), xs, dims[2 * pair + 1], cosine);
    panel.close(d);
    const double turn = 2 * 3.14159265358979323846 / (slow[pair] * static_cast<double>(fine));
    std::array<char, 64> text{};
    std::snprintf(text.data(), text.size(), "%.2f positions", turn);
    d.text(470, panel.top + 34,
           "dimensions " + std::to_string(2 * pair) + ", " + std::to_string(2 * pair + 1), {.bold = true});
    d.text(470, panel.top + 52, text.data(), {.color = theme.muted});
    d.text(470, panel.top + 68, "a turn", {.color = theme.muted});
  }
  return {"sinusoidal_curves", d.finished(), csv.text()};
}

}  // namespace figures
