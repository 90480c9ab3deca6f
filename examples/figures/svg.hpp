#pragma once
// Just enough SVG to draw a figure: text, lines, and panels with axes. What is drawn from data carries
// data- attributes (the axes' ranges, the name of the series, the level of a colour), so that a program can
// read the figure back and compare it with its CSV.

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace figures {

// ---- Numbers and text

/// At most two digits behind the point, a hundredth of a pixel.
inline std::string pixels(double value) {
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), "%.2f", value);
  std::string s = text.data();
  s.erase(s.find_last_not_of('0') + 1);
  if (s.back() == '.') s.pop_back();
  return s == "-0" ? "0" : s;
}

inline std::string number(double value) {
  std::array<char, 40> text{};
  std::snprintf(text.data(), text.size(), "%.9g", value);
  return text.data();
}

inline std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text)
    out += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  return out;
}

/// How wide a text of the figures' font is, about.
inline double text_width(const std::string& text, double size) {
  return 0.56 * size * static_cast<double>(text.size());
}

// ---- Colours

struct Color {
  double red, green, blue;

  std::string hex() const {
    std::array<char, 8> text{};
    const auto byte = [](double c) { return static_cast<unsigned>(std::lround(std::clamp(c, 0.0, 255.0))); };
    std::snprintf(text.data(), text.size(), "#%02x%02x%02x", byte(red), byte(green), byte(blue));
    return text.data();
  }
};

inline Color mixed(const Color& a, const Color& b, double t) {
  return {a.red + (b.red - a.red) * t, a.green + (b.green - a.green) * t, a.blue + (b.blue - a.blue) * t};
}

/// Colours at equal steps, and what lies between.
inline Color on_ramp(const std::vector<Color>& ramp, double t) {
  const double at = std::clamp(t, 0.0, 1.0) * static_cast<double>(ramp.size() - 1);
  const auto i = (std::min)(static_cast<std::size_t>(at), ramp.size() - 2);
  return mixed(ramp[i], ramp[i + 1], at - static_cast<double>(i));
}

/// The colours of a figure. Series are those of Okabe and Ito (2008), which readers with any of the usual
/// colour-vision deficiencies tell apart; dashes and markers tell them apart without colour. The diverging
/// ramp goes from blue to red, never through green.
struct Theme {
  std::string name, background, ink, muted, grid, empty;
  std::array<std::string, 4> series;
  std::vector<Color> diverging, sequential;
};

inline Theme light_theme() {
  return {"light",
          "#ffffff",
          "#1a1a1a",
          "#555555",
          "#dddddd",
          "#e4e4e4",
          {"#0072b2", "#d55e00", "#009e73", "#a05285"},
          {{5, 48, 97}, {67, 147, 195}, {247, 247, 247}, {214, 96, 77}, {103, 0, 31}},
          {{8, 48, 107}, {33, 113, 181}, {107, 174, 214}, {198, 219, 239}, {247, 251, 255}}};
}

inline Theme dark_theme() {
  return {"dark",
          "#0d1117",
          "#e6edf3",
          "#9aa4af",
          "#2d333b",
          "#30363d",
          {"#56b4e9", "#f0883e", "#1fa372", "#e39ac4"},
          {{146, 197, 246}, {56, 120, 190}, {22, 27, 34}, {196, 84, 60}, {252, 180, 150}},
          {{222, 235, 250}, {120, 180, 225}, {56, 120, 190}, {28, 62, 110}, {16, 28, 48}}};
}

// ---- The drawing

struct TextStyle {
  double size = 12;
  const char* anchor = "start";
  std::string color = {};  // empty: the theme's ink
  bool bold = false;
  double turn = 0;           // degrees, around its own point
  const char* tick_of = "";  // "x" or "y": the text of a tick
};

enum class Marker { none, circle, square, triangle };

struct LineStyle {
  std::string color;
  std::string dash = {};
  double width = 1.8;
  Marker marker = Marker::none;
};

/// One figure, `width` pixels across.
class Drawing {
 public:
  static constexpr double width = 600;

  Drawing(const Theme& theme, double height, const std::string& title, const std::string& subtitle)
      : theme_(theme) {
    body_ = "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 " + pixels(width) + ' ' +
            pixels(height) + "\" width=\"" + pixels(width) + "\" height=\"" + pixels(height) +
            "\" role=\"img\" font-family=\"Helvetica, Arial, 'DejaVu Sans', sans-serif\">\n<title>" +
            escaped(title) + "</title>\n<desc>" + escaped(subtitle) + "</desc>\n";
    rect(0, 0, width, height, theme.background);
    text(16, 24, title, {.size = 15, .bold = true});
    text(16, 42, subtitle, {.size = 12, .color = theme.muted});
  }

  const Theme& theme() const { return theme_; }

  void raw(const std::string& element) { body_ += element + '\n'; }

  void text(double x, double y, const std::string& words, const TextStyle& style = {}) {
    marked_text(x, y, escaped(words), style);
  }

  /// A name in bold, and what it is behind it.
  void heading(double x, double y, const std::string& name, const std::string& words) {
    marked_text(x, y,
                escaped(name) + "<tspan dx=\"8\" font-size=\"11\" font-weight=\"normal\" fill=\"" +
                    theme_.muted + "\">" + escaped(words) + "</tspan>",
                {.bold = true});
  }

  /// 10^4 as 10 with a raised 4.
  void power_text(double x, double y, int base, int exponent, const TextStyle& style = {}) {
    marked_text(x, y,
                std::to_string(base) + "<tspan dy=\"-4\" font-size=\"" + pixels(0.75 * style.size) + "\">" +
                    (exponent < 0 ? "\u2212" + std::to_string(-exponent) : std::to_string(exponent)) +
                    "</tspan>",
                style);
  }

  void line(double x1, double y1, double x2, double y2, const LineStyle& style) {
    raw("<path d=\"M" + pixels(x1) + ' ' + pixels(y1) + 'L' + pixels(x2) + ' ' + pixels(y2) + "\"" +
        stroke(style) + "/>");
  }

  void rect(double x, double y, double w, double h, const std::string& fill, const std::string& extra = {}) {
    raw("<rect x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" width=\"" + pixels(w) + "\" height=\"" +
        pixels(h) + "\" fill=\"" + fill + "\"" + extra + "/>");
  }

  void marker(double x, double y, Marker kind, const std::string& color) {
    const auto at = [](double u, double v) { return pixels(u) + ' ' + pixels(v); };
    const double r = 3.2;
    if (kind == Marker::circle)
      raw("<circle cx=\"" + pixels(x) + "\" cy=\"" + pixels(y) + "\" r=\"" + pixels(r) + "\" fill=\"" +
          color + "\"/>");
    else if (kind == Marker::square)
      rect(x - r, y - r, 2 * r, 2 * r, color);
    else if (kind == Marker::triangle)
      raw("<path d=\"M" + at(x, y - 4) + 'L' + at(x + 4, y + 3) + 'L' + at(x - 4, y + 3) + "Z\" fill=\"" +
          color + "\"/>");
  }

  static std::string stroke(const LineStyle& style) {
    return " fill=\"none\" stroke=\"" + style.color + "\" stroke-width=\"" + pixels(style.width) + "\"" +
           (style.dash.empty() ? "" : " stroke-dasharray=\"" + style.dash + "\"");
  }

  /// Samples of lines with their names, from left to right; a new row where the figure ends.
  void legend(double x, double y, const std::vector<std::pair<std::string, LineStyle>>& entries) {
    double at = x;
    for (const auto& [name, style] : entries) {
      const double needed = 34 + text_width(name, 12);
      if (at > x && at + needed > width - 8) at = x, y += 18;
      line(at, y - 4, at + 24, y - 4, style);
      marker(at + 12, y - 4, style.marker, style.color);
      text(at + 29, y, name);
      at += needed + 14;
    }
  }

  /// Patches of colour with their names.
  void swatches(double x, double y, const std::vector<std::pair<std::string, std::string>>& entries) {
    for (const auto& [name, color] : entries) {
      rect(x, y - 10, 12, 12, color);
      text(x + 17, y, name);
      x += 17 + text_width(name, 12) + 16;
    }
  }

  std::string finished() const { return body_ + "</svg>\n"; }

 private:
  void marked_text(double x, double y, const std::string& markup, const TextStyle& style) {
    std::string out = "<text x=\"" + pixels(x) + "\" y=\"" + pixels(y) + "\" font-size=\"" +
                      pixels(style.size) + "\" fill=\"" + (style.color.empty() ? theme_.ink : style.color) +
                      "\"";
    if (std::string(style.anchor) != "start") out += std::string(" text-anchor=\"") + style.anchor + "\"";
    if (*style.tick_of != 0) out += std::string(" data-tick=\"") + style.tick_of + "\"";
    if (style.bold) out += " font-weight=\"bold\"";
    if (style.turn != 0)
      out += " transform=\"rotate(" + pixels(style.turn) + ' ' + pixels(x) + ' ' + pixels(y) + ")\"";
    raw(out + '>' + markup + "</text>");
  }

  Theme theme_;
  std::string body_;
};

// ---- Panels

/// One axis of a panel. A log axis has its ticks at whole powers of `base`.
struct Axis {
  std::string label;
  double first, last;
  std::vector<double> ticks = {};  // of a linear axis
  bool is_log = false;
  int base = 10;
  int tick_every = 1;  // powers from one labelled tick to the next
  bool tick_labels = true;

  /// 0 at `first`, 1 at `last`.
  double part(double value) const {
    return is_log ? std::log(value / first) / std::log(last / first) : (value - first) / (last - first);
  }
  std::string description() const {
    return std::string(is_log ? "log " : "linear ") + number(first) + ' ' + number(last);
  }
};

/// A box with two axes, which maps data to pixels.
struct Panel {
  std::string name;
  double left, top, width, height;
  Axis x, y;
  bool grid_lines = true;

  double px(double value) const { return left + width * x.part(value); }
  double py(double value) const { return top + height * (1 - y.part(value)); }

  /// The frame, ticks and labels. What is drawn between open and close belongs to this panel.
  void open(Drawing& d) const {
    d.raw("<g data-panel=\"" + name + "\" data-x=\"" + x.description() + "\" data-y=\"" + y.description() +
          "\" data-box=\"" + pixels(left) + ' ' + pixels(top) + ' ' + pixels(width) + ' ' + pixels(height) +
          "\">");
    const LineStyle grid{d.theme().grid, {}, 1};
    const double bottom = top + height;
    const TextStyle below{.size = 11, .anchor = "middle", .color = d.theme().muted, .tick_of = "x"};
    const TextStyle beside{.size = 11, .anchor = "end", .color = d.theme().muted, .tick_of = "y"};
    each_tick(x, [&](double value, int exponent, bool labelled) {
      if (grid_lines) d.line(px(value), top, px(value), bottom, grid);
      if (!labelled || !x.tick_labels) return;
      if (x.is_log)
        d.power_text(px(value), bottom + 16, x.base, exponent, below);
      else
        d.text(px(value), bottom + 16, tick_text(value), below);
    });
    each_tick(y, [&](double value, int exponent, bool labelled) {
      if (grid_lines) d.line(left, py(value), left + width, py(value), grid);
      if (!labelled || !y.tick_labels) return;
      if (y.is_log)
        d.power_text(left - 6, py(value) + 4, y.base, exponent, beside);
      else
        d.text(left - 6, py(value) + 4, tick_text(value), beside);
    });
    d.raw("<rect x=\"" + pixels(left) + "\" y=\"" + pixels(top) + "\" width=\"" + pixels(width) +
          "\" height=\"" + pixels(height) + "\" fill=\"none\" stroke=\"" + d.theme().muted + "\"/>");
    if (!x.label.empty()) d.text(left + width / 2, bottom + 34, x.label, {.anchor = "middle"});
    if (!y.label.empty()) d.text(left - 44, top + height / 2, y.label, {.anchor = "middle", .turn = -90});
  }
  void close(Drawing& d) const { d.raw("</g>"); }

  /// A line through the points; those that are not finite are left out.
  void line(Drawing& d, const std::string& series, const std::vector<double>& xs,
            const std::vector<double>& ys, const LineStyle& style) const {
    std::string path;
    for (std::size_t i = 0; i < xs.size(); ++i)
      if (std::isfinite(ys[i])) path += point(path.empty() ? 'M' : 'L', xs[i], ys[i]);
    d.raw("<path data-series=\"" + series + "\" d=\"" + path + "\"" + Drawing::stroke(style) +
          " stroke-linejoin=\"round\"/>");
    for (std::size_t i = 0; i < xs.size(); ++i)
      if (std::isfinite(ys[i])) d.marker(px(xs[i]), py(ys[i]), style.marker, style.color);
  }

  /// What lies between two lines, see-through.
  void band(Drawing& d, const std::string& series, const std::vector<double>& xs,
            const std::vector<double>& low, const std::vector<double>& high, const std::string& color) const {
    std::string path;
    for (std::size_t i = 0; i < xs.size(); ++i) path += point(i == 0 ? 'M' : 'L', xs[i], low[i]);
    for (std::size_t i = xs.size(); i-- > 0;) path += point('L', xs[i], high[i]);
    d.raw("<path data-band=\"" + series + "\" d=\"" + path + "Z\" fill=\"" + color +
          "\" fill-opacity=\"0.22\"/>");
  }

 private:
  std::string point(char command, double u, double v) const {
    return command + pixels(px(u)) + ' ' + pixels(py(v));
  }

  static std::string tick_text(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%g", std::fabs(value));
    return (value < 0 ? "\u2212" : "") + std::string(text.data());
  }

  template <class F>
  static void each_tick(const Axis& axis, const F& f) {
    for (const double tick : axis.ticks) f(tick, 0, true);
    if (!axis.is_log) return;
    const double step = std::log(static_cast<double>(axis.base));
    const int from = static_cast<int>(std::ceil(std::log(axis.first) / step - 1e-9)),
              to = static_cast<int>(std::floor(std::log(axis.last) / step + 1e-9));
    for (int e = from; e <= to; ++e) f(std::pow(axis.base, e), e, (e - from) % axis.tick_every == 0);
  }
};

// ---- Heat maps

/// Values as colours, in `levels` equal steps from `low` to `high`; values that are not finite are left
/// empty.
struct ColorScale {
  double low, high;
  int levels;
  std::vector<Color> ramp;

  /// The level of a value: its nearest step.
  int level(double value) const {
    return static_cast<int>(std::lround((std::clamp(value, low, high) - low) / (high - low) * (levels - 1)));
  }
  std::string color(int level) const {
    return on_ramp(ramp, static_cast<double>(level) / (levels - 1)).hex();
  }
};

/// values(row, column), row 0 on top, in the box of the panel; neighbours of one level in a column are one
/// rectangle.
inline void heat_map(Drawing& d, const Panel& panel, const std::string& series,
                     const std::vector<std::vector<double>>& values, const ColorScale& scale) {
  const std::size_t rows = values.size(), columns = values.front().size();
  std::vector<std::string> paths(static_cast<std::size_t>(scale.levels));
  for (std::size_t c = 0; c < columns; ++c)
    for (std::size_t r = 0; r < rows;) {
      if (!std::isfinite(values[r][c])) {
        ++r;
        continue;
      }
      const int level = scale.level(values[r][c]);
      std::size_t end = r + 1;
      while (end < rows && std::isfinite(values[end][c]) && scale.level(values[end][c]) == level) ++end;
      std::string& path = paths[static_cast<std::size_t>(level)];
      path += 'M' + std::to_string(c) + ' ' + std::to_string(r) + "h1v" + std::to_string(end - r) + "h-1z";
      r = end;
    }
  d.raw("<g data-map=\"" + series + "\" data-scale=\"" + number(scale.low) + ' ' + number(scale.high) + ' ' +
        std::to_string(scale.levels) + "\" shape-rendering=\"crispEdges\" transform=\"translate(" +
        pixels(panel.left) + ' ' + pixels(panel.top) + ") scale(" +
        number(panel.width / static_cast<double>(columns)) + ' ' +
        number(panel.height / static_cast<double>(rows)) + ")\">");
  for (int level = 0; level < scale.levels; ++level)
    if (const std::string& path = paths[static_cast<std::size_t>(level)]; !path.empty())
      d.raw("<path data-level=\"" + std::to_string(level) + "\" fill=\"" + scale.color(level) + "\" d=\"" +
            path + "\"/>");
  d.raw("</g>");
}

/// The scale as a bar, high on top, with its ticks to the right.
inline void color_bar(Drawing& d, double left, double top, double height, const ColorScale& scale,
                      const std::vector<std::pair<double, std::string>>& ticks, const std::string& label) {
  const double step = height / scale.levels;
  for (int level = 0; level < scale.levels; ++level)
    d.rect(left, top + height - step * (level + 1), 14, step + 0.3, scale.color(level));
  for (const auto& [value, words] : ticks)
    d.text(left + 19, top + height * (1 - (value - scale.low) / (scale.high - scale.low)) + 4, words,
           {.size = 11, .color = d.theme().muted});
  d.text(left + 7, top - 8, label, {.size = 11, .anchor = "middle", .color = d.theme().muted});
}

}  // namespace figures
