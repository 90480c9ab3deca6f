// The figures against their numbers: what is drawn is read back from the SVG, through the ranges of the axes,
// and compared with the CSV; the CSV with formulas written here once more; and both with the committed files.

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <numbers>
#include <sstream>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace {

namespace fs = std::filesystem;
using Rows = std::vector<std::map<std::string, std::string>>;

const std::vector<std::string> all_names{"sinusoidal_heatmap", "sinusoidal_curves", "score_by_distance",
                                         "rope_wavelengths",   "angle_error",       "rope_axes",
                                         "alibi_slopes",       "alibi_bias",        "learned_rows",
                                         "position_rules",     "token_scale",       "dropout_mask"};

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  INFO(path.string());
  REQUIRE(file);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

/// The files of one run, in a folder that goes with the process.
class Run {
 public:
  explicit Run(const std::string& theme = "light")
      : folder_(fs::temp_directory_path() / ("posenc_figures_" + std::to_string(getpid()) + "_" + theme)) {
    const std::string command =
        std::string(POSENC_FIGURES_PROGRAM) + " '" + folder_.string() + "' --theme " + theme + " > /dev/null";
    REQUIRE(std::system(command.c_str()) == 0);
  }
  ~Run() { fs::remove_all(folder_); }
  Run(const Run&) = delete;
  Run& operator=(const Run&) = delete;

  const fs::path& folder() const { return folder_; }
  std::string svg(const std::string& name) const { return read(folder_ / (name + ".svg")); }
  std::string csv(const std::string& name) const { return read(folder_ / (name + ".csv")); }

 private:
  fs::path folder_;
};

// ---- CSV

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"')
      quoted = !quoted;
    else if (c == ',' && !quoted)
      cells.emplace_back();
    else
      cells.back() += c;
  }
  return cells;
}

Rows rows_of(const std::string& csv) {
  std::istringstream lines(csv);
  std::string line;
  std::getline(lines, line);
  const std::vector<std::string> names = cells_of(line);
  Rows rows;
  while (std::getline(lines, line)) {
    const std::vector<std::string> cells = cells_of(line);
    REQUIRE(cells.size() == names.size());
    auto& row = rows.emplace_back();
    for (std::size_t i = 0; i < cells.size(); ++i) row[names[i]] = cells[i];
  }
  return rows;
}

double number(const std::string& text) { return std::stod(text); }

// ---- SVG

std::string attribute(const std::string& element, const std::string& name) {
  const std::size_t at = element.find(' ' + name + "=\"");
  if (at == std::string::npos) return {};
  const std::size_t first = at + name.size() + 3;
  return element.substr(first, element.find('"', first) - first);
}

std::vector<double> numbers_in(std::string text) {
  for (char& c : text)
    if (std::isalpha(static_cast<unsigned char>(c)) && c != 'e') c = ' ';
  std::istringstream in(text);
  std::vector<double> values;
  for (double value; in >> value;) values.push_back(value);
  return values;
}

struct Point {
  double x, y;
};

struct Map {
  double low = 0, high = 0, levels = 0;
  std::map<std::pair<int, int>, int> level;  // of (row, column), where there is one
};

/// What one panel shows, in pixels and with what it takes to place a number.
struct Panel {
  std::string x_axis, y_axis;
  std::vector<double> box;  // left, top, width, height
  std::map<std::string, std::vector<Point>> lines, bands;
  std::map<std::string, Map> maps;

  static double part(const std::string& axis, double value) {
    const std::vector<double> range = numbers_in(axis.substr(axis.find(' ')));
    REQUIRE(range.size() == 2);
    return axis.starts_with("log") ? std::log(value / range[0]) / std::log(range[1] / range[0])
                                   : (value - range[0]) / (range[1] - range[0]);
  }
  Point place(double x, double y) const {
    return {box[0] + box[2] * part(x_axis, x), box[1] + box[3] * (1 - part(y_axis, y))};
  }
  bool holds(const Point& p) const {
    return p.x >= box[0] - 0.01 && p.x <= box[0] + box[2] + 0.01 && p.y >= box[1] - 0.01 &&
           p.y <= box[1] + box[3] + 0.01;
  }
};

std::vector<Point> points_in(const std::string& path) {
  const std::vector<double> values = numbers_in(path);
  std::vector<Point> points;
  for (std::size_t i = 0; i + 1 < values.size(); i += 2) points.push_back({values[i], values[i + 1]});
  return points;
}

std::map<std::string, Panel> panels_of(const std::string& svg) {
  std::map<std::string, Panel> panels;
  Panel* panel = nullptr;
  Map* map = nullptr;
  std::istringstream lines(svg);
  for (std::string line; std::getline(lines, line);) {
    if (const std::string name = attribute(line, "data-panel"); !name.empty()) {
      panel = &panels[name];
      panel->x_axis = attribute(line, "data-x"), panel->y_axis = attribute(line, "data-y");
      panel->box = numbers_in(attribute(line, "data-box"));
      REQUIRE(panel->box.size() == 4);
    } else if (const std::string series = attribute(line, "data-series"); !series.empty()) {
      REQUIRE(panel != nullptr);
      panel->lines[series] = points_in(attribute(line, "d"));
    } else if (const std::string band = attribute(line, "data-band"); !band.empty()) {
      REQUIRE(panel != nullptr);
      panel->bands[band] = points_in(attribute(line, "d"));
    } else if (const std::string name_of_map = attribute(line, "data-map"); !name_of_map.empty()) {
      REQUIRE(panel != nullptr);
      map = &panel->maps[name_of_map];
      const std::vector<double> scale = numbers_in(attribute(line, "data-scale"));
      REQUIRE(scale.size() == 3);
      map->low = scale[0], map->high = scale[1], map->levels = scale[2];
    } else if (const std::string level = attribute(line, "data-level"); !level.empty()) {
      REQUIRE(map != nullptr);
      const std::vector<double> runs = numbers_in(attribute(line, "d"));  // column row 1 count -1, and so on
      REQUIRE(runs.size() % 5 == 0);
      for (std::size_t i = 0; i < runs.size(); i += 5)
        for (int r = 0; r < static_cast<int>(runs[i + 3]); ++r) {
          const auto cell = std::pair(static_cast<int>(runs[i + 1]) + r, static_cast<int>(runs[i]));
          REQUIRE(map->level.emplace(cell, std::stoi(level)).second);
        }
    }
  }
  return panels;
}

/// The contents of the strips of numbers or of axes.
std::map<std::string, std::vector<std::string>> strips_of(const std::string& svg) {
  std::map<std::string, std::vector<std::string>> strips;
  std::istringstream lines(svg);
  std::vector<std::string>* strip = nullptr;
  for (std::string line; std::getline(lines, line);) {
    if (const std::string name = attribute(line, "data-strip"); !name.empty())
      strip = &strips[name];
    else if (line == "</g>")
      strip = nullptr;
    else if (const std::string axis = attribute(line, "data-axis"); strip != nullptr && !axis.empty())
      strip->push_back(axis);
    else if (strip != nullptr && line.starts_with("<text"))
      strip->push_back(line.substr(line.find('>') + 1, line.rfind('<') - line.find('>') - 1));
  }
  return strips;
}

/// A drawn line is the numbers of the CSV, within the rounding of a pixel's hundredth; inside its panel.
void check_line(const Panel& panel, const std::string& series, const std::vector<double>& xs,
                const std::vector<double>& ys) {
  INFO("series " << series);
  REQUIRE(panel.lines.contains(series));
  const std::vector<Point>& drawn = panel.lines.at(series);
  std::size_t n = 0;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    if (!std::isfinite(ys[i])) continue;
    REQUIRE(n < drawn.size());
    const Point expected = panel.place(xs[i], ys[i]);
    CHECK(std::abs(drawn[n].x - expected.x) < 0.006);
    CHECK(std::abs(drawn[n].y - expected.y) < 0.006);
    CHECK(panel.holds(drawn[n]));
    ++n;
  }
  CHECK(n == drawn.size());
}

std::vector<double> column(const Rows& rows, const std::string& name) {
  std::vector<double> values;
  for (const auto& row : rows) values.push_back(number(row.at(name)));
  return values;
}

Rows only(const Rows& rows, const std::string& name, const std::string& value) {
  Rows kept;
  for (const auto& row : rows)
    if (row.at(name) == value) kept.push_back(row);
  REQUIRE(!kept.empty());
  return kept;
}

/// A cell's colour is the step of the scale nearest to its number, and a number that is not finite has none.
void check_map(const Map& map, int rows, int columns, const std::vector<double>& values) {
  REQUIRE(values.size() == static_cast<std::size_t>(rows) * static_cast<std::size_t>(columns));
  const double half_a_step = (map.high - map.low) / (map.levels - 1) / 2;
  std::size_t n = 0, filled = 0;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c, ++n) {
      const auto found = map.level.find({r, c});
      REQUIRE((found != map.level.end()) == std::isfinite(values[n]));
      if (found == map.level.end()) continue;
      ++filled;
      const double shown = map.low + (map.high - map.low) * found->second / (map.levels - 1);
      REQUIRE(std::abs(shown - values[n]) <= half_a_step * (1 + 1e-6));
    }
  CHECK(filled == map.level.size());
}

/// PE(p, c) as the paper writes it.
double textbook(double position, int dimension, double d_model) {
  const double angle = position / std::pow(10000.0, (dimension / 2 * 2) / d_model);
  return dimension % 2 == 0 ? std::sin(angle) : std::cos(angle);
}

}  // namespace

TEST_CASE("figures hold all they need, and nothing leaves the picture") {
  for (const std::string theme : {"light", "dark"}) {
    const Run run(theme);
    for (const std::string& name : all_names) {
      INFO(theme << " " << name);
      const std::string svg = run.svg(name);
      CHECK(svg.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 600 "));
      CHECK(svg.find("<title>") != std::string::npos);
      std::string rest = svg;
      rest.erase(rest.find("http://www.w3.org/2000/svg"), 26);
      for (const char* outside : {"http", "href", "url(", "<script", "<image", "@import", "<style"})
        CHECK(rest.find(outside) == std::string::npos);
      CHECK(svg.find("nan") == std::string::npos);
      CHECK(svg.find("inf") == std::string::npos);
      CHECK(svg.size() < 100000);

      const double height = numbers_in(attribute(svg, "height")).at(0);
      std::istringstream lines(svg);
      for (std::string line; std::getline(lines, line);) {
        if (!line.starts_with("<text") || attribute(line, "transform").starts_with("rotate")) continue;
        std::string words;
        bool inside = false;
        for (const char c : line) {  // characters, not bytes of UTF-8, and no markup
          if (c == '<' || c == '>') inside = c == '>';
          if (inside && c != '>' && (static_cast<unsigned char>(c) & 0xc0) != 0x80) words += c;
        }
        const double size = number(attribute(line, "font-size")), x = number(attribute(line, "x"));
        const double y = number(attribute(line, "y")), wide = 0.53 * size * static_cast<double>(words.size());
        const std::string anchor = attribute(line, "text-anchor");
        const double left = anchor == "middle" ? x - wide / 2 : anchor == "end" ? x - wide : x;
        INFO(line);
        CHECK(left >= 0);
        CHECK(left + wide <= 600);
        CHECK(y - size >= 0);
        CHECK(y + 0.25 * size <= height);
      }
    }
  }
}

TEST_CASE("lines are drawn where the CSV says") {
  const Run run;
  {
    auto panels = panels_of(run.svg("sinusoidal_curves"));
    const Rows rows = rows_of(run.csv("sinusoidal_curves"));
    REQUIRE(panels.size() == 4);
    for (int c = 0; c < 8; ++c) {
      const std::string pair = std::to_string(c / 2 * 2), next = std::to_string(c / 2 * 2 + 1);
      const std::string dim = "dim" + std::to_string(c);
      check_line(panels.at("dims " + pair + " and " + next), dim, column(rows, "position"),
                 column(rows, dim));
    }
    CHECK(panels.at("dims 0 and 1").x_axis == "linear 0 32");
  }
  {
    auto panels = panels_of(run.svg("score_by_distance"));
    const Rows rows = rows_of(run.csv("score_by_distance"));
    for (const auto& [panel, series] : std::vector<std::pair<std::string, std::string>>{
             {"sinusoidal", "sinusoidal"}, {"rope", "rope_same"}, {"rope", "rope_other"}}) {
      const std::vector<double> xs = column(rows, "distance"), mean = column(rows, series + "_mean"),
                                deviation = column(rows, series + "_deviation");
      check_line(panels.at(panel), series, xs, mean);
      const std::vector<Point>& band = panels.at(panel).bands.at(series);
      REQUIRE(band.size() == 2 * xs.size());
      for (std::size_t i = 0; i < xs.size(); ++i) {
        CHECK(std::abs(band[i].y - panels.at(panel).place(xs[i], mean[i] - deviation[i]).y) < 0.006);
        CHECK(std::abs(band[band.size() - 1 - i].y -
                       panels.at(panel).place(xs[i], mean[i] + deviation[i]).y) < 0.006);
        CHECK((panels.at(panel).holds(band[i]) && panels.at(panel).holds(band[band.size() - 1 - i])));
      }
    }
  }
  {
    auto panels = panels_of(run.svg("rope_wavelengths"));
    const Rows rows = rows_of(run.csv("rope_wavelengths"));
    REQUIRE(panels.size() == 6);
    for (const auto& [scheme, panel] : panels) {
      INFO(scheme);
      const Rows mine = only(rows, "scheme", scheme);
      CHECK(panel.y_axis == "log 1 100000000");
      for (const char* series : {"unscaled", "scaled"})
        check_line(panel, series, column(mine, "pair"), column(mine, series));
      const double trained = number(mine[0].at("trained_context")),
                   longest = number(mine[0].at("scaled_context"));
      check_line(panel, "trained", {0, 64}, {trained, trained});
      check_line(panel, "longest", {0, 64}, {longest, longest});
    }
  }
  {
    auto panels = panels_of(run.svg("angle_error"));
    const Rows rows = rows_of(run.csv("angle_error"));
    CHECK(panels.at("error").x_axis == "log 100 1e+10");
    for (const char* series : {"float32_angle", "posenc_float", "posenc_double"})
      check_line(panels.at("error"), series, column(rows, "position"), column(rows, series));
  }
  {
    auto panels = panels_of(run.svg("alibi_slopes"));
    const Rows rows = rows_of(run.csv("alibi_slopes"));
    for (const char* heads : {"8", "12", "40"}) {
      const Rows mine = only(rows, "num_heads", heads);
      check_line(panels.at("slopes"), heads, column(mine, "head"), column(mine, "slope"));
    }
  }
  {
    auto panels = panels_of(run.svg("token_scale"));
    const Rows rows = rows_of(run.csv("token_scale"));
    for (const char* series : {"scale_1", "scale_sqrt_d", "sinusoidal"})
      check_line(panels.at("size"), series, column(rows, "d_model"), column(rows, series));
  }
}

TEST_CASE("ticks stand where their numbers are") {
  const Run run;
  std::size_t ticks = 0;
  for (const std::string& name : all_names) {
    const std::string svg = run.svg(name);
    const auto panels = panels_of(svg);
    std::istringstream lines(svg);
    const Panel* panel = nullptr;
    for (std::string line; std::getline(lines, line);) {
      if (const std::string of = attribute(line, "data-panel"); !of.empty()) panel = &panels.at(of);
      const std::string axis = attribute(line, "data-tick");
      if (axis.empty()) continue;
      REQUIRE(panel != nullptr);
      // 10<tspan ...>4</tspan> is 10^4; a minus is U+2212.
      std::string words = line.substr(line.find('>') + 1);
      words.erase(words.rfind("</text>"));
      for (std::size_t at; (at = words.find("\u2212")) != std::string::npos;) words.replace(at, 3, "-");
      const std::size_t power = words.find("<tspan");
      double value = number(words.substr(0, power));
      if (power != std::string::npos) value = std::pow(value, number(words.substr(words.find('>') + 1)));
      INFO(name << ": " << line);
      const Point corner{panel->box[0], panel->box[1] + panel->box[3]};
      if (axis == "x") {
        CHECK(std::abs(number(attribute(line, "x")) -
                       (corner.x + panel->box[2] * Panel::part(panel->x_axis, value))) < 0.006);
        CHECK(number(attribute(line, "y")) > corner.y);
      } else {
        CHECK(std::abs(number(attribute(line, "y")) - 4 -
                       (corner.y - panel->box[3] * Panel::part(panel->y_axis, value))) < 0.006);
        CHECK(number(attribute(line, "x")) < corner.x);
      }
      ++ticks;
    }
  }
  CHECK(ticks > 100);
}

TEST_CASE("colours, boxes and bars are those of the CSV") {
  const Run run;
  {
    auto panels = panels_of(run.svg("sinusoidal_heatmap"));
    check_map(panels.at("heatmap").maps.at("value"), 50, 128,
              column(rows_of(run.csv("sinusoidal_heatmap")), "value"));
  }
  {
    auto panels = panels_of(run.svg("alibi_bias"));
    const Rows rows = rows_of(run.csv("alibi_bias"));
    for (const std::string head : {"1", "4", "8"}) {
      const std::string name = "head " + head;
      check_map(panels.at(name).maps.at(name), 24, 24, column(only(rows, "head", head), "bias"));
    }
  }
  {
    auto panels = panels_of(run.svg("dropout_mask"));
    const std::vector<double> whole = column(rows_of(run.csv("dropout_mask")), "whole"),
                              shards = column(rows_of(run.csv("dropout_mask")), "in_shards");
    check_map(panels.at("whole").maps.at("whole"), 16, 64, whole);
    check_map(panels.at("shard 0").maps.at("shard 0"), 8, 64, {shards.begin(), shards.begin() + 512});
    check_map(panels.at("shard 1").maps.at("shard 1"), 8, 64, {shards.begin() + 512, shards.end()});
    CHECK(whole == shards);
  }
  const auto check_strips = [&](const char* figure, const char* value, std::size_t count,
                                const auto& name_of) {
    std::map<std::string, std::vector<std::string>> expected;
    for (const auto& row : rows_of(run.csv(figure))) expected[name_of(row)].push_back(row.at(value));
    CHECK(expected.size() == count);
    CHECK(strips_of(run.svg(figure)) == expected);
  };
  check_strips("learned_rows", "table_row", 10,
               [](const auto& row) { return row.at("rule") + " " + row.at("row"); });
  check_strips("position_rules", "position", 7, [](const auto& row) { return row.at("rule"); });
  std::map<std::string, std::vector<std::string>> axes;
  for (const auto& row : rows_of(run.csv("rope_axes")))
    axes[row.at("model")].push_back(row.at("axis").empty() ? "-1" : row.at("axis"));
  CHECK(axes.size() == 8);
  CHECK(strips_of(run.svg("rope_axes")) == axes);
}

TEST_CASE("the numbers are those of the papers") {
  const Run run;
  const double pi = std::numbers::pi;
  for (const auto& row : rows_of(run.csv("sinusoidal_heatmap")))
    CHECK(std::abs(number(row.at("value")) -
                   textbook(number(row.at("position")), std::stoi(row.at("dimension")), 128)) < 1e-9);
  for (const auto& row : rows_of(run.csv("sinusoidal_curves")))
    for (int c = 0; c < 8; ++c)
      CHECK(std::abs(number(row.at("dim" + std::to_string(c))) -
                     textbook(number(row.at("position")), c, 512)) < 1e-9);

  // Mean scores have a closed form; 300 draws are off by a few deviations / sqrt(300).
  for (const auto& row : rows_of(run.csv("score_by_distance"))) {
    const double distance = number(row.at("distance"));
    double sum = 0;
    for (int i = 0; i < 64; ++i) sum += std::cos(distance * std::pow(10000.0, -i / 64.0));
    const auto check = [&](const std::string& series, double mean) {
      CHECK(std::abs(number(row.at(series + "_mean")) - mean) <
            4.5 * number(row.at(series + "_deviation")) / std::sqrt(300.0));
    };
    check("sinusoidal", sum / std::sqrt(128.0));
    check("rope_same", 2 * sum / std::sqrt(128.0));
    check("rope_other", 0);
    CHECK(number(row.at("rope_other_deviation")) == Approx(1).margin(0.2));
  }

  // Wavelengths: the formula of each paper, written from it.
  const Rows waves = rows_of(run.csv("rope_wavelengths"));
  for (const auto& row : waves) {
    const std::string scheme = row.at("scheme");
    const double i = number(row.at("pair")), got = number(row.at("scaled"));
    const double base = scheme == "Llama 3" ? 500000 : scheme == "proportional" ? 1e6 : 10000;
    const double width = scheme == "LongRoPE" ? 96 : 128;
    const double wave = 2 * pi * std::pow(base, 2 * i / width);
    CAPTURE(scheme, i);
    CHECK(number(row.at("unscaled")) == Approx(wave).epsilon(1e-8));
    if (scheme == "linear") CHECK(got == Approx(4 * wave).epsilon(1e-8));
    if (scheme == "dynamic NTK") {
      const double s = 4 * 16384.0 / 4096 - 3;
      CHECK(got == Approx(2 * pi * std::pow(base * std::pow(s, 128.0 / 126), 2 * i / 128)).epsilon(1e-8));
    }
    if (scheme == "YaRN") {
      const auto pair_of = [pi](double turns) {
        return 128 * std::log(4096 / (turns * 2 * pi)) / (2 * std::log(10000.0));
      };
      const double low = std::floor(pair_of(32)), high = std::ceil(pair_of(1));
      const double g = std::clamp((i - low) / (high - low), 0.0, 1.0);
      CHECK(got == Approx(1 / ((1 - g) / wave + g / (16 * wave))).epsilon(1e-8));
    }
    if (scheme == "Llama 3") {
      const double s = std::clamp((8192 / wave - 1) / (4 - 1), 0.0, 1.0);
      CHECK(got == Approx(1 / ((1 - s) / (8 * wave) + s / wave)).epsilon(1e-8));
    }
    if (scheme == "LongRoPE" && i == 0) CHECK(got == Approx(1.07 * wave));
    if (scheme == "LongRoPE" && i == 47) CHECK(got == Approx(64.76 * wave));
    if (scheme == "proportional") CHECK((i < 16 ? got == Approx(wave).epsilon(1e-8) : std::isinf(got)));
  }

  // The error of a float32 angle, measured here once more at the same positions.
  const Rows errors = rows_of(run.csv("angle_error"));
  CHECK(number(errors.front().at("position")) == 100);
  CHECK(number(errors.back().at("position")) == Approx(0x1p32 - 32));
  for (const auto& row : errors) {
    const double start = number(row.at("position"));
    CHECK(number(row.at("posenc_float")) < 3.2e-8);
    CHECK(number(row.at("posenc_double")) < 4e-16);
    if (start > 1e5) continue;  // printed with 9 digits: exact up to here
    double most = 0;
    for (int n = 0; n < 32; ++n)
      for (int i = 0; i < 64; ++i) {
        const double f = std::pow(10000.0, -i / 64.0), p = start + n;
        const float angle = static_cast<float>(p) * static_cast<float>(f);
        const long double exact = static_cast<long double>(p) * static_cast<long double>(f);
        most = (std::max)(
            {most, std::abs(static_cast<double>(std::cos(angle)) - static_cast<double>(std::cos(exact))),
             std::abs(static_cast<double>(std::sin(angle)) - static_cast<double>(std::sin(exact)))});
      }
    CHECK(number(row.at("float32_angle")) == Approx(most).epsilon(0.01));
  }

  const Rows slopes = rows_of(run.csv("alibi_slopes"));
  for (const auto& row : slopes) {
    const double heads = number(row.at("num_heads")), head = number(row.at("head"));
    const double power = heads == 8 || heads == 12 ? 8 : 32;
    const double expected = head <= power ? std::pow(2.0, -8 * head / power)
                                          : std::pow(2.0, -8 * (2 * (head - power) - 1) / (2 * power));
    CHECK(number(row.at("slope")) == Approx(expected).epsilon(1e-8));
  }
  for (const auto& row : rows_of(run.csv("alibi_bias"))) {
    const double i = number(row.at("query")), j = number(row.at("key"));
    const double bias = number(row.at("bias"));
    CHECK((j > i ? bias == -INFINITY
                 : bias == Approx(-std::pow(2.0, -number(row.at("head"))) * (i - j)).margin(1e-12)));
  }

  for (const auto& row : rows_of(run.csv("token_scale"))) {
    CHECK(number(row.at("scale_sqrt_d")) == Approx(1).margin(0.05));
    CHECK(number(row.at("scale_1")) == Approx(1 / std::sqrt(number(row.at("d_model")))).epsilon(0.05));
    CHECK(number(row.at("sinusoidal")) == Approx(std::sqrt(0.5)).epsilon(1e-6));
  }
}

TEST_CASE("the rules of positions are those of the models") {
  const Run run;
  const auto all = strips_of(run.svg("learned_rows"));
  using Strip = std::vector<std::string>;
  CHECK(all.at("BERT, GPT-2, ViT 1") == Strip{"0", "1", "2", "3", "4", "5", "6", "7"});
  CHECK(all.at("GPT-2 in generation 0") == Strip{"0", "1", "2", "3", "4", "0", "0", "0"});
  CHECK(all.at("GPT-2 in generation 1") == Strip{"0", "0", "0", "0", "1", "2", "3", "4"});
  CHECK(all.at("BART 0") == Strip{"2", "3", "4", "5", "6", "7", "8", "9"});
  CHECK(all.at("OPT 1") == Strip{"1", "1", "1", "2", "3", "4", "5", "6"});
  CHECK(all.at("RoBERTa 0") == Strip{"2", "3", "4", "5", "6", "1", "1", "1"});
  const auto rules = strips_of(run.svg("position_rules"));
  CHECK(rules.at("positions_from_cu_seqlens({0, 3, 5, 8})") == Strip{"0", "1", "2", "0", "1", "0", "1", "2"});
  CHECK(rules.at("consecutive({2, 9}, 8), row 1") == Strip{"9", "10", "11", "12", "13", "14", "15", "16"});

  // Which axis turns a pair, from the descriptions of the models.
  const auto axes = strips_of(run.svg("rope_axes"));
  for (int i = 0; i < 64; ++i) {
    const auto at = static_cast<std::size_t>(i);
    CHECK(axes.at("Qwen2-VL")[at] == (i < 16 ? "0" : i < 40 ? "1" : "2"));
    CHECK(axes.at("Qwen3-VL")[at] == (i < 60 ? std::to_string(i % 3) : "0"));
    CHECK(axes.at("ERNIE 4.5 VL")[at] == (i < 44 ? std::to_string(1 + i % 2) : "0"));
    CHECK(axes.at("Pixtral")[at] == (i < 32 ? "0" : "1"));
    CHECK(axes.at("MiniMax-M3 vision")[at] == (i < 63 ? std::to_string(i / 21) : "-1"));
  }
}

// Another libm may move the last digit of a number, and then a hundredth of a pixel.
TEST_CASE("the committed figures are those that the program draws") {
  const auto check_same = [](const std::string& file, const std::string& committed,
                             const std::string& drawn) {
    if (committed == drawn) return;
    // angle_error shows rounding errors, which are nothing but last digits.
    const bool noise = file.starts_with("angle_error");
    const double tolerance = file.ends_with(".svg") ? (noise ? 12 : 0.02) : (noise ? 2e-7 : 1e-8);
    const auto is_digit = [](char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; };
    std::size_t i = 0, j = 0;
    while (i < committed.size() && j < drawn.size()) {
      if (!is_digit(committed[i]) || !is_digit(drawn[j])) {
        INFO(file << " at byte " << i << ": " << committed.substr(i, 60) << "\nnow: " << drawn.substr(j, 60));
        REQUIRE(committed[i] == drawn[j]);
        ++i, ++j;
        continue;
      }
      char *end_i = nullptr, *end_j = nullptr;
      const double a = std::strtod(committed.c_str() + i, &end_i), b = std::strtod(drawn.c_str() + j, &end_j);
      INFO(file << " at byte " << i << ": " << committed.substr(i, 60) << "\nnow: " << drawn.substr(j, 60));
      REQUIRE((a == b || std::abs(a - b) <= tolerance + (file.ends_with(".csv") ? 1e-6 * std::abs(a) : 0)));
      i = static_cast<std::size_t>(end_i - committed.c_str()),
      j = static_cast<std::size_t>(end_j - drawn.c_str());
    }
    CHECK(committed.size() - i == drawn.size() - j);
  };
  const fs::path committed = POSENC_FIGURES_COMMITTED;
  std::uintmax_t bytes = 0;
  std::size_t files = 0;
  for (const std::string theme : {"light", "dark"}) {
    const Run run(theme);
    const fs::path folder = theme == "light" ? committed : committed / "dark";
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (!entry.is_regular_file()) continue;
      const std::string file = entry.path().filename().string();
      INFO(entry.path().string());
      REQUIRE(fs::exists(run.folder() / file));  // none is left over from before
      check_same(file, read(entry.path()), read(run.folder() / file));
      bytes += entry.file_size(), ++files;
    }
  }
  CHECK(files >= 2 * all_names.size());
  for (const std::string& name : all_names) {
    CHECK(fs::exists(committed / (name + ".svg")));
    CHECK(fs::exists(committed / (name + ".csv")));
  }
  CHECK(bytes < 1500000);
}

TEST_CASE("what the program refuses, on one line and with exit code 2") {
  const fs::path folder = fs::temp_directory_path() / ("posenc_figures_errors_" + std::to_string(getpid()));
  fs::create_directories(folder / "taken" / "sinusoidal_curves.svg");
  std::ofstream(folder / "file") << "not a folder";
  const auto check_fails = [&](const std::string& arguments, const std::string& part) {
    const std::string command = std::string(POSENC_FIGURES_PROGRAM) + ' ' + arguments + " > '" +
                                (folder / "out").string() + "' 2> '" + (folder / "err").string() + "'";
    const int status = std::system(command.c_str());
    INFO(arguments);
    REQUIRE(WIFEXITED(status));
    CHECK(WEXITSTATUS(status) == 2);
    const std::string message = read(folder / "err");
    CHECK(message.starts_with("posenc_figures: "));
    CHECK(message.find(part) != std::string::npos);
    CHECK(std::count(message.begin(), message.end(), '\n') == 1);
  };
  check_fails("", "directory is required");
  check_fails("'" + (folder / "file" / "x").string() + "'", "cannot make the folder");
  check_fails("'" + (folder / "file").string() + "'", "cannot make the folder");
  check_fails("'" + (folder / "taken").string() + "'", "cannot write");
  check_fails("'" + (folder / "fine").string() + "' --theme sepia", "sepia");
  CHECK(!fs::exists(folder / "fine"));
  check_fails("'" + (folder / "fine").string() + "' more", "more");
  fs::remove_all(folder);
}
