#pragma once
// UTF-8: checking it, reading it letter by letter, and how wide a text is on a terminal.

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

namespace translate {

/// One code point and the bytes that it takes; no bytes where the text is not UTF-8.
struct CodePoint {
  char32_t value = 0;
  std::size_t bytes = 0;
};

/// The code point that starts at text[at]. Overlong forms, surrogates and numbers beyond Unicode are not
/// UTF-8.
inline CodePoint code_point(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t n) { return static_cast<unsigned char>(text[n]); };
  const unsigned char lead = byte(at);
  if (lead < 0x80) return {lead, 1};
  const std::size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
  if (lead < 0xc2 || lead > 0xf4 || at + bytes > text.size()) return {};
  char32_t value = lead & (0x7fu >> bytes);
  for (std::size_t n = 1; n < bytes; ++n) {
    if ((byte(at + n) & 0xc0) != 0x80) return {};
    value = (value << 6) | (byte(at + n) & 0x3fu);
  }
  constexpr char32_t smallest[] = {0, 0, 0x80, 0x800, 0x10000};
  if (value < smallest[bytes] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff)) return {};
  return {value, bytes};
}

inline bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point(text, at);
    if (c.bytes == 0) return false;
    at += c.bytes;
  }
  return true;
}

/// The columns that a code point takes: 0 for signs that sit on the letter before them and for invisible
/// ones, 2 for the wide ones of East Asia, else 1. Complete for Latin, Greek, Cyrillic, Arabic, Hebrew and
/// the scripts of India.
inline int columns(char32_t c) {
  struct Range {
    char32_t first, last;
  };
  constexpr Range none[] = {
      {0x300, 0x36f},   {0x483, 0x489},   {0x591, 0x5bd},   {0x5bf, 0x5bf},   {0x5c1, 0x5c2},
      {0x610, 0x61a},   {0x64b, 0x65f},   {0x670, 0x670},   {0x6d6, 0x6dc},   {0x6df, 0x6e4},
      {0x900, 0x902},   {0x93a, 0x93a},   {0x93c, 0x93c},   {0x941, 0x948},   {0x94d, 0x94d},
      {0x951, 0x957},   {0x962, 0x963},   {0x981, 0x981},   {0x9bc, 0x9bc},   {0x9c1, 0x9c4},
      {0x9cd, 0x9cd},   {0xa01, 0xa02},   {0xa3c, 0xa3c},   {0xa41, 0xa51},   {0xa70, 0xa71},
      {0xa81, 0xa82},   {0xabc, 0xabc},   {0xac1, 0xac8},   {0xacd, 0xacd},   {0xb01, 0xb01},
      {0xb3c, 0xb3c},   {0xb41, 0xb44},   {0xb4d, 0xb4d},   {0xb82, 0xb82},   {0xbc0, 0xbc0},
      {0xbcd, 0xbcd},   {0xc3e, 0xc40},   {0xc46, 0xc56},   {0xcbc, 0xcbc},   {0xccc, 0xccd},
      {0xd41, 0xd44},   {0xd4d, 0xd4d},   {0x1ab0, 0x1aff}, {0x1dc0, 0x1dff}, {0x200b, 0x200f},
      {0x20d0, 0x20ff}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}};
  constexpr Range two[] = {{0x1100, 0x115f},   {0x2e80, 0x303e},   {0x3041, 0xa4cf},  {0xac00, 0xd7a3},
                           {0xf900, 0xfaff},   {0xfe30, 0xfe6f},   {0xff00, 0xff60},  {0xffe0, 0xffe6},
                           {0x1f300, 0x1f64f}, {0x1f900, 0x1f9ff}, {0x20000, 0x3fffd}};
  const auto in = [c](const Range& r) { return c >= r.first && c <= r.last; };
  if (std::any_of(std::begin(none), std::end(none), in)) return 0;
  return std::any_of(std::begin(two), std::end(two), in) ? 2 : 1;
}

/// The columns that a text takes.
inline int columns(std::string_view text) {
  int sum = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point(text, at);
    sum += c.bytes == 0 ? 1 : columns(c.value);
    at += std::max<std::size_t>(c.bytes, 1);
  }
  return sum;
}

/// The longest beginning of `text` that takes at most `most` columns and does not tear a letter from its
/// signs.
inline std::string_view clipped(std::string_view text, int most) {
  int sum = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint c = code_point(text, at);
    sum += c.bytes == 0 ? 1 : columns(c.value);
    if (sum > most) return text.substr(0, at);
    at += std::max<std::size_t>(c.bytes, 1);
  }
  return text;
}

/// `text` with blanks behind it, up to `width` columns.
inline std::string padded(std::string_view text, int width) {
  return std::string(text) + std::string(static_cast<std::size_t>(std::max(0, width - columns(text))), ' ');
}

}  // namespace translate
