#pragma once
// Rotary positions: scores against distance, wavelengths before and after scaling, the error of angles, and
// which coordinate drives which pair.

#include <cmath>
#include <limits>
#include <numbers>
#include <string>
#include <vector>

#include "figures/figure.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/rotary/axes.hpp"
#include "posenc/rotary/rotary.hpp"
#include "posenc/rotary/scaling.hpp"

namespace figures {

// ---- Scores against distance

/// Mean and standard deviation at each distance, over many draws.
class Spread {
 public:
  explicit Spread(std::size_t distances) : sum_(distances), squares_(distances) {}
  void add(std::size_t distance, double score) {
    sum_[distance] += score, squares_[distance] += score * score;
    if (distance == 0) ++draws_;
  }
  double mean(std::size_t distance) const { return sum_[distance] / draws_; }
  double deviation(std::size_t distance) const {
    return std::sqrt((std::max)(0.0, squares_[distance] / draws_ - mean(distance) * mean(distance)));
  }

 private:
  std::vector<double> sum_, squares_;
  double draws_ = 0;
};

/// q.k / sqrt(d) of a query at position 128 and keys behind it, for random q and k.
inline Figure score_by_distance(const Theme& theme) {
  constexpr posenc::Index d_model = 128;
  constexpr std::size_t distances = 129, draws = 300;
  using Rows = Eigen::Tensor<double, 2, Eigen::RowMajor>;  // (key position, feature)
  const posenc::Index keys = static_cast<posenc::Index>(distances);
  const auto at = posenc::consecutive(0, keys);
  const posenc::Sinusoidal sinusoidal({.d_model = d_model});
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = d_model}), posenc::Pairing::half);

  Spread added(distances), turned_same(distances), turned_other(distances);
  Normal normal(7);
  Rows q(keys, d_model), k(keys, d_model);
  const auto draw = [&](Rows& rows) {  // one vector, at every position
    for (posenc::Index c = 0; c < d_model; ++c) {
      const double value = normal();
      for (posenc::Index p = 0; p < keys; ++p) rows(p, c) = value;
    }
  };
  const auto score = [&](const Rows& queries, Spread& spread) {
    for (posenc::Index p = 0; p < keys; ++p) {
      double sum = 0;
      for (posenc::Index c = 0; c < d_model; ++c) sum += queries(keys - 1, c) * k(p, c);
      spread.add(static_cast<std::size_t>(keys - 1 - p), sum / std::sqrt(static_cast<double>(d_model)));
    }
  };
  for (std::size_t n = 0; n < draws; ++n) {
    draw(q), draw(k);
    Rows turned = q;
    sinusoidal.add(q, at), sinusoidal.add(k, at);
    score(q, added);
    k = turned;  // a key with the content of the query
    rope.rotate(turned, at), rope.rotate(k, at);
    score(turned, turned_same);
    draw(k);
    rope.rotate(k, at);
    score(turned, turned_other);
  }

  const std::vector<double> xs = steps(distances);
  Csv csv{"distance",
          "sinusoidal_mean",
          "sinusoidal_deviation",
          "rope_same_mean",
          "rope_same_deviation",
          "rope_other_mean",
          "rope_other_deviation"};
  for (std::size_t i = 0; i < distances; ++i)
    csv.row({number(xs[i]), number(added.mean(i)), number(added.deviation(i)), number(turned_same.mean(i)),
             number(turned_same.deviation(i)), number(turned_other.mean(i)),
             number(turned_other.deviation(i))});

  Drawing d(theme, 560, "Scores against distance",
            "q\u00b7k / \u221ad for random q and k, d = 128: mean and one standard deviation of 300 draws.");
  const auto show = [&](const Panel& panel, const std::string& series, const Spread& spread,
                        const LineStyle& style) {
    std::vector<double> mean, low, high;
    for (std::size_t i = 0; i < distances; ++i) {
      mean.push_back(spread.mean(i));
      low.push_back(spread.mean(i) - spread.deviation(i)),
          high.push_back(spread.mean(i) + spread.deviation(i));
    }
    panel.band(d, series, xs, low, high, style.color);
    panel.line(d, series, xs, mean, style);
  };
  const std::vector<double> ticks{0, 16, 32, 48, 64, 80, 96, 112, 128};
  const LineStyle other{theme.series[0]}, same{theme.series[1], "7 3"};
  const Panel above{
      "sinusoidal", 64, 82, 512, 180, {"", 0, 128, ticks}, {"score", -3, 10, {-2, 0, 2, 4, 6, 8, 10}}};
  d.text(64, 72, "Sinusoidal, added to both", {.bold = true});
  d.legend(300, 72, {{"independent q and k", other}});
  above.open(d);
  show(above, "sinusoidal", added, other);
  above.close(d);
  const Panel below{"rope",
                    64,
                    324,
                    512,
                    180,
                    {"distance (positions)", 0, 128, ticks},
                    {"score", -3, 14, {-2, 0, 2, 4, 6, 8, 10, 12, 14}}};
  d.text(64, 300, "RoPE, turning both", {.bold = true});
  d.legend(64, 317, {{"the same vector (k = q)", same}, {"independent q and k", other}});
  below.open(d);
  show(below, "rope_other", turned_other, other);
  show(below, "rope_same", turned_same, same);
  below.close(d);
  return {"score_by_distance", d.finished(), csv.text()};
}

// ---- Wavelengths

/// The divisors of Phi-3-mini-128k for long sequences, from its config.json, rounded to four digits.
inline const std::vector<double>& phi3_long_factor() {
  static const std::vector<double> divisors{
      1.07,  1.12,  1.15,  1.42,  1.57,  1.8,   2.13,  2.13,  3.01,  5.91,  6.95,  9.07,
      9.93,  10.71, 11.13, 14.61, 15.41, 19.81, 37.28, 38.28, 38.6,  40.12, 46.2,  50.94,
      53.66, 54.94, 56.9,  57.29, 59.99, 60.87, 60.89, 61.72, 62.92, 62.96, 63.42, 63.82,
      63.84, 63.9,  63.94, 64.07, 64.11, 64.12, 64.15, 64.19, 64.24, 64.57, 64.69, 64.76};
  return divisors;
}

/// Positions per turn of every pair, before and after each scaling.
inline Figure rope_wavelengths(const Theme& theme) {
  struct Case {
    std::string scheme, model;
    posenc::RotaryConfig config;
    posenc::RotaryScaling scaling;
    double trained, longest;
  };
  const posenc::RotaryConfig llama{.head_dim = 128, .rope_theta = 500000.0};
  const posenc::RotaryConfig llama2{.head_dim = 128, .rope_theta = 10000.0};
  posenc::LongRopeConfig phi3{.original_max_position_embeddings = 4096, .factor = 32};
  phi3.long_factor = phi3_long_factor();
  phi3.short_factor.assign(phi3.long_factor.size(), 1.0);
  const std::vector<Case> cases{
      {"linear", "factor 4, base 10000", llama2, posenc::LinearConfig{4}, 4096, 16384},
      {"dynamic NTK", "factor 4 at 16384 tokens", llama2,
       posenc::DynamicNtkConfig{.factor = 4, .max_position_embeddings = 4096}, 4096, 16384},
      {"YaRN", "factor 16, base 10000", llama2,
       posenc::YarnConfig{.factor = 16, .original_max_position_embeddings = 4096}, 4096, 65536},
      {"Llama 3", "factor 8, base 500000", llama,
       posenc::Llama3Config{.factor = 8, .original_max_position_embeddings = 8192}, 8192, 65536},
      {"LongRoPE", "Phi-3's long list", {.head_dim = 96}, phi3, 4096, 131072},
      {"proportional",
       "Gemma 4, a quarter turns",
       {.head_dim = 128, .rope_theta = 1e6},
       posenc::ProportionalConfig{.partial_rotary_factor = 0.25},
       32768,
       262144}};

  Drawing d(theme, 694, "RoPE wavelengths before and after scaling",
            "Positions per whole turn. Pairs above the dashed line never made one in training.");
  const LineStyle before{theme.muted, "4 3", 1.6}, after{theme.series[0], {}, 2.2};
  const LineStyle trained{theme.series[1], "7 3", 1.3}, longest{theme.series[2], "2 3", 1.6};
  d.legend(
      64, 64,
      {{"unscaled", before}, {"scaled", after}, {"trained context", trained}, {"scaled context", longest}});
  Csv csv{"scheme", "pair", "unscaled", "scaled", "trained_context", "scaled_context"};
  for (std::size_t n = 0; n < cases.size(); ++n) {
    const Case& c = cases[n];
    const auto waves = [](const posenc::RotaryFrequencies& frequencies) {
      std::vector<double> lengths;
      for (const double f : frequencies.inv_freq)
        lengths.push_back(f == 0 ? std::numeric_limits<double>::infinity() : 2 * std::numbers::pi / f);
      return lengths;
    };
    const std::vector<double> unscaled = waves(posenc::rotary_frequencies(c.config));
    const std::vector<double> scaled =
        waves(posenc::scaled_frequencies(c.config, c.scaling, static_cast<posenc::Index>(c.longest)));
    for (std::size_t i = 0; i < scaled.size(); ++i)
      csv.row({c.scheme, std::to_string(i), number(unscaled[i]), number(scaled[i]), number(c.trained),
               number(c.longest)});
    const bool is_left = n % 2 == 0, is_last = n / 2 == 2;
    const Panel panel{c.scheme,
                      is_left ? 64.0 : 350.0,
                      104 + 196 * static_cast<double>(n / 2),
                      232,
                      150,
                      {is_last ? "pair" : "", 0, 64, {0, 16, 32, 48, 64}},
                      {.label = is_left ? "positions per turn" : "",
                       .first = 1,
                       .last = 1e8,
                       .is_log = true,
                       .tick_every = 2}};
    d.heading(panel.left, panel.top - 8, c.scheme, c.model);
    panel.open(d);
    const std::vector<double> pairs = steps(scaled.size());
    panel.line(d, "trained", {0, 64}, {c.trained, c.trained}, trained);
    panel.line(d, "longest", {0, 64}, {c.longest, c.longest}, longest);
    panel.line(d, "scaled", pairs, scaled, after);
    panel.line(d, "unscaled", pairs, unscaled, before);
    if (c.scheme == "proportional")
      d.text(panel.px(18), panel.py(1.6), "pairs 16 to 63 do not turn", {.size = 11, .color = theme.ink});
    panel.close(d);
  }
  return {"rope_wavelengths", d.finished(), csv.text()};
}

// ---- The error of angles

/// cos and sin of p f to the last digit or two of double: the product in two doubles, whose sum is exact.
inline std::pair<double, double> definition(double position, double frequency) {
  const double high = position * frequency, low = std::fma(position, frequency, -high);
  return {std::cos(high) * std::cos(low) - std::sin(high) * std::sin(low),
          std::sin(high) * std::cos(low) + std::cos(high) * std::sin(low)};
}

/// The largest error of cos and sin over a head of 128 and 32 neighbouring positions, from 10^2 to 2^32.
inline Figure angle_error(const Theme& theme) {
  constexpr std::size_t points = 62, window = 32;
  constexpr double first = 100, last = 0x1p32;
  const posenc::RotaryFrequencies frequencies = posenc::rotary_frequencies({.head_dim = 128});
  const posenc::Index pairs = static_cast<posenc::Index>(frequencies.inv_freq.size());
  const posenc::Rotary exact(frequencies, posenc::Pairing::half);
  const posenc::Rotary float32(frequencies, posenc::Pairing::half, posenc::Window::leading(),
                               posenc::AngleMode::float32);
  const auto error = [&]<class S>(const posenc::Rotary& rope, posenc::Position start, S) {
    Eigen::Tensor<S, 2, Eigen::RowMajor> cos(static_cast<posenc::Index>(window), pairs),
        sin(static_cast<posenc::Index>(window), pairs);
    rope.cos_sin(cos, sin, posenc::consecutive(start, static_cast<posenc::Index>(window)));
    double most = 0;
    for (posenc::Index p = 0; p < cos.dimension(0); ++p)
      for (posenc::Index i = 0; i < pairs; ++i) {
        const auto [c, s] =
            definition(static_cast<double>(start + p), frequencies.inv_freq[static_cast<std::size_t>(i)]);
        most = (std::max)({most, std::fabs(static_cast<double>(cos(p, i)) - c),
                           std::fabs(static_cast<double>(sin(p, i)) - s)});
      }
    return most;
  };
  std::vector<double> xs, as_float32, as_float, as_double;
  Csv csv{"position", "float32_angle", "posenc_float", "posenc_double"};
  for (std::size_t n = 0; n < points; ++n) {
    const double part = static_cast<double>(n) / (points - 1);
    // The last window ends at 2^32.
    const auto start = n + 1 == points
                           ? static_cast<posenc::Position>(last) - static_cast<posenc::Position>(window)
                           : static_cast<posenc::Position>(first * std::pow(last / first, part));
    xs.push_back(static_cast<double>(start));
    as_float32.push_back(error(float32, start, 0.0f));
    as_float.push_back(error(exact, start, 0.0f));
    as_double.push_back(error(exact, start, 0.0));
    csv.row(
        {number(xs.back()), number(as_float32.back()), number(as_float.back()), number(as_double.back())});
  }

  Drawing d(
      theme, 400, "Error of cos and sin against position",
      "Largest over 64 pairs (base 10000) and 32 neighbouring positions, up to position 2\u00b3\u00b2.");
  const LineStyle framework{theme.series[1], {}, 1.8, Marker::triangle},
      ours{theme.series[0], {}, 1.8, Marker::circle}, wide{theme.series[2], {}, 1.8, Marker::square};
  d.legend(64, 66, {{"float32 angle", framework}, {"posenc, float", ours}, {"posenc, double", wide}});
  const Panel panel{"error",
                    64,
                    84,
                    500,
                    260,
                    {.label = "position", .first = 100, .last = 1e10, .is_log = true},
                    {.label = "absolute error", .first = 1e-18, .last = 10, .is_log = true, .tick_every = 3}};
  panel.open(d);
  panel.line(d, "float32_angle", xs, as_float32, framework);
  panel.line(d, "posenc_float", xs, as_float, ours);
  panel.line(d, "posenc_double", xs, as_double, wide);
  panel.close(d);
  return {"angle_error", d.finished(), csv.text()};
}

// ---- Axes

/// Which coordinate of a token drives each of the 64 pairs of a head of 128.
inline Figure rope_axes(const Theme& theme) {
  using posenc::RotaryFrequencies;
  const RotaryFrequencies plain = posenc::rotary_frequencies({.head_dim = 128});
  struct Case {
    std::string name, axes, call;
    RotaryFrequencies frequencies;
  };
  const std::vector<Case> cases{
      {"Qwen2-VL", "t h w", "mrope_sections {16, 24, 24}", posenc::mrope_sections(plain, {16, 24, 24})},
      {"Qwen3-VL", "t h w", "mrope_interleaved {24, 20, 20}", posenc::mrope_interleaved(plain, {24, 20, 20})},
      {"ERNIE 4.5 VL", "t h w", "ernie_sections {22, 22, 20}", posenc::ernie_sections(plain, {22, 22, 20})},
      {"Hunyuan", "text w h image", "mrope_sections {16, 16, 16, 16}",
       posenc::mrope_sections(plain, {16, 16, 16, 16})},
      {"Qwen vision", "h w", "axial_frequencies, 2 axes", posenc::axial_frequencies({.head_dim = 128})},
      {"Kimi vision", "w h", "axial, interleaved",
       posenc::axial_frequencies({.head_dim = 128, .order = posenc::AxialOrder::interleaved})},
      {"Pixtral", "h w", "pixtral_frequencies", posenc::pixtral_frequencies(128)},
      {"MiniMax-M3 vision", "t h w", "axial_frequencies, 3 axes",
       posenc::axial_frequencies({.head_dim = 128, .axes = 3})}};

  Drawing d(theme, 90 + 44 * static_cast<double>(cases.size()) + 40, "Which coordinate turns which pair",
            "A head of 128 has 64 pairs; the letters after each name are axis 0, 1, 2, 3.");
  d.swatches(16, 66,
             {{"axis 0", theme.series[0]},
              {"axis 1", theme.series[1]},
              {"axis 2", theme.series[2]},
              {"axis 3", theme.series[3]},
              {"at rest", theme.empty}});
  Csv csv{"model", "pair", "axis", "frequency"};
  const double left = 16, cell = 568.0 / 64;
  double top = 84;
  for (const Case& c : cases) {
    d.heading(left, top + 12, c.name, c.axes);
    d.text(584, top + 12, c.call, {.size = 11, .anchor = "end", .color = theme.muted});
    d.raw("<g data-strip=\"" + escaped(c.name) + "\">");
    for (std::size_t i = 0; i < 64; ++i) {
      const bool turns = i < c.frequencies.inv_freq.size();
      const int axis = turns ? c.frequencies.axis[i] : -1;
      // A step up for each axis, so that colour is not all that tells.
      const double height = turns ? 12 + 3.0 * axis : 4;
      d.rect(left + cell * static_cast<double>(i), top + 39 - height, cell - 1, height,
             turns ? theme.series[static_cast<std::size_t>(axis)] : theme.empty,
             " data-axis=\"" + std::to_string(axis) + "\"");
      csv.row({c.name, std::to_string(i), turns ? std::to_string(axis) : "",
               turns ? number(c.frequencies.inv_freq[i]) : "0"});
    }
    d.raw("</g>");
    top += 44;
  }
  for (const int pair : {0, 16, 32, 48, 63})
    d.text(left + cell * (pair + 0.5), top + 16, std::to_string(pair),
           {.size = 11, .anchor = "middle", .color = theme.muted});
  d.text(300, top + 34, "pair", {.anchor = "middle"});
  return {"rope_axes", d.finished(), csv.text()};
}

}  // namespace figures
