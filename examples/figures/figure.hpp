#pragma once
// A figure: its name, its drawing, and the numbers it was drawn from.

#include <cstdint>
#include <initializer_list>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "figures/svg.hpp"

namespace figures {

struct Figure {
  std::string name, svg, csv;
};

/// A table as comma-separated values.
class Csv {
 public:
  explicit Csv(std::initializer_list<std::string> columns) { append(columns); }

  void row(std::initializer_list<std::string> cells) { append(cells); }
  void row(const std::vector<std::string>& cells) { append(cells); }
  const std::string& text() const { return text_; }

 private:
  template <class Cells>
  void append(const Cells& cells) {
    const char* comma = "";
    for (const std::string& cell : cells) {
      text_ += comma;
      text_ += cell.find(',') == std::string::npos ? cell : '"' + cell + '"';
      comma = ",";
    }
    text_ += '\n';
  }

  std::string text_;
};

/// Normal numbers that are the same with every standard library: its distributions are not, its generators
/// are.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : bits_(seed) {}

  double operator()() {
    const double u = (static_cast<double>(bits_() >> 11) + 0.5) * 0x1p-53,
                 v = static_cast<double>(bits_() >> 11) * 0x1p-53;
    return std::sqrt(-2 * std::log(u)) * std::cos(2 * 3.14159265358979323846 * v);  // Box and Muller
  }

 private:
  std::mt19937_64 bits_;
};

/// 0, step, 2 step, ... count numbers.
inline std::vector<double> steps(std::size_t count, double step = 1) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) values.push_back(step * static_cast<double>(i));
  return values;
}

}  // namespace figures
