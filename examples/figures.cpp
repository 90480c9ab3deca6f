// Draws every scheme: pictures for the README and the reference pages, from the numbers of the headers.
//
//   posenc_figures DIR                 writes DIR/<name>.svg and, beside it, its numbers as DIR/<name>.csv
//   posenc_figures DIR --theme dark    the same for a dark page
//
// The folder is made if it is not there. The SVG files hold everything they need.

#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>

#include "figures/alibi.hpp"
#include "figures/lookups.hpp"
#include "figures/rotary.hpp"
#include "figures/sinusoidal.hpp"

namespace {

using figures::Figure;
using figures::Theme;

constexpr Figure (*all_figures[])(const Theme&) = {
    figures::sinusoidal_heatmap, figures::sinusoidal_curves, figures::score_by_distance,
    figures::rope_wavelengths,   figures::angle_error,       figures::rope_axes,
    figures::alibi_slopes,       figures::alibi_bias,        figures::learned_rows,
    figures::position_rules,     figures::token_scale,       figures::dropout_mask};

void write(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw std::runtime_error("cannot write " + path.string());
}

void draw(const std::filesystem::path& directory, const Theme& theme) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  if (!std::filesystem::is_directory(directory))
    throw std::runtime_error("cannot make the folder " + directory.string() +
                             (error ? ": " + error.message() : ""));
  for (const auto& figure_of : all_figures) {
    const Figure figure = figure_of(theme);
    write(directory / (figure.name + ".svg"), figure.svg);
    write(directory / (figure.name + ".csv"), figure.csv);
    std::printf("%s.svg\n", figure.name.c_str());
  }
}

/// Prints the reason on one line.
int fail(std::string message) {
  for (char& c : message)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  std::fprintf(stderr, "posenc_figures: %s\n", message.c_str());
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Draws every scheme of posenc: SVG files, each with its numbers as CSV.", "posenc_figures");
  std::string directory, theme = "light";
  app.add_option("directory", directory, "where the files go")->required();
  app.add_option("--theme", theme, "light or dark")
      ->check(CLI::IsMember({"light", "dark"}))
      ->capture_default_str();
  try {
    app.parse(argc, argv);
    draw(directory, theme == "dark" ? figures::dark_theme() : figures::light_theme());
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);  // --help
    return fail(error.what());
  } catch (const std::exception& error) {
    return fail(error.what());
  }
  return 0;
}
