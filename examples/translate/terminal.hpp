#pragma once
// What is seen: a progress bar, translations in two columns, and the picture of an attention map. Devanagari
// always stands at the end of a line, since terminals disagree about its width.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <iterator>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

#include "transformer/matrix.hpp"
#include "translate/learn.hpp"
#include "translate/utf8.hpp"

namespace translate {

inline bool stdout_is_terminal() {
#if __has_include(<unistd.h>)
  return isatty(STDOUT_FILENO) == 1;
#else
  return false;
#endif
}

/// printf into a string.
template <class... Arguments>
std::string format(const char* pattern, Arguments... arguments) {
  const int size = std::snprintf(nullptr, 0, pattern, arguments...);
  std::string text(static_cast<std::size_t>(std::max(0, size)), '\0');
  std::snprintf(text.data(), text.size() + 1, pattern, arguments...);
  return text;
}

/// [########--------]  50 %  loss 1.234  12345 tokens/s  30 s left
inline std::string progress_line(const Progress& progress, const std::string& label) {
  constexpr int cells = 24;
  const int full = std::clamp(static_cast<int>(progress.fraction * cells), 0, cells);
  return label + "[" + std::string(static_cast<std::size_t>(full), '#') +
         std::string(static_cast<std::size_t>(cells - full), '-') +
         format("] %3.0f %%  loss %5.3f  %6.0f tokens/s  %3.0f s left", std::floor(100 * progress.fraction),
                progress.loss, progress.tokens_per_second, std::ceil(progress.seconds_left));
}

/// A bar that is drawn over itself on a terminal, and otherwise a line for each tenth of the way.
class ProgressBar {
 public:
  ProgressBar(std::string label, bool terminal) : label_(std::move(label)), terminal_(terminal) {}
  ~ProgressBar() { finish(); }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const Progress& progress) {
    const bool last = progress.fraction >= 1.0;
    if (terminal_) {
      const auto now = std::chrono::steady_clock::now();
      if (drawn_ && !last && now - drawn_at_ < std::chrono::milliseconds(100)) return;
      drawn_at_ = now;
      drawn_ = true;
      std::printf("\r%s\x1b[K", progress_line(progress, label_).c_str());
    } else {
      const int tenth = static_cast<int>(10 * progress.fraction);
      if (tenth <= tenth_ && !last) return;
      tenth_ = tenth;
      std::printf("%s\n", progress_line(progress, label_).c_str());
    }
    std::fflush(stdout);
  }

  /// The cursor goes to the next line.
  void finish() {
    if (drawn_) std::printf("\n");
    drawn_ = false;
  }

 private:
  std::string label_;
  bool terminal_, drawn_ = false;
  int tenth_ = 0;
  std::chrono::steady_clock::time_point drawn_at_;
};

/// Source and translation side by side; below each other where they don't fit into 80 columns.
inline std::string side_by_side(std::span<const std::pair<std::string, std::string>> lines) {
  int width = 0;
  for (const auto& [source, target] : lines)
    if (columns(source) <= 42) width = std::max(width, columns(source));
  std::string text;
  for (const auto& [source, target] : lines) {
    const bool fits = columns(source) <= width && 2 + width + 3 + columns(target) <= 80;
    text += "  " + (fits ? padded(source, width) + "   " : source + "\n      ") + target + "\n";
  }
  return text;
}

/// An attention map: a column for each source word, a row for each target word, the darker the more it is
/// looked at.
inline std::string attention_picture(const transformer::Matrix<float>& map,
                                     std::span<const std::string> source,
                                     std::span<const std::string> target) {
  constexpr const char* shades[] = {"·", "░", "▒", "▓", "█"};
  // Words are cut until all columns fit beside the longest target word.
  int target_width = 0, most = 0;
  for (const std::string& word : target) target_width = std::max(target_width, columns(word));
  for (const std::string& word : source) most = std::max(most, columns(word));
  const auto total = [&] {
    int sum = 2 + 3 + target_width;
    for (const std::string& word : source) sum += std::min(most, columns(word)) + 1;
    return sum;
  };
  while (most > 1 && total() > 80) --most;
  const auto width_of = [&](const std::string& word) { return std::max(1, columns(clipped(word, most))); };

  std::string text = " ";
  for (const std::string& word : source) text += " " + padded(clipped(word, most), width_of(word));
  while (text.ends_with(' ')) text.pop_back();
  text += "\n";
  for (std::size_t row = 0; row < target.size() && static_cast<Index>(row) < map.rows(); ++row) {
    text += " ";
    for (std::size_t column = 0; column < source.size() && static_cast<Index>(column) < map.cols();
         ++column) {
      const float weight = map(static_cast<Index>(row), static_cast<Index>(column));
      const int shade = std::clamp(static_cast<int>(weight * 5.0f), 0, 4);
      text += " ";
      for (int n = 0; n < width_of(source[column]); ++n) text += shades[shade];
    }
    text += "   " + target[row] + "\n";
  }
  return text;
}

}  // namespace translate
