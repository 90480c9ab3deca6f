// The numbers of the live page, computed natively: the browser test compares the page's own with these.
//
//   posenc_live_numbers < settings.jsonl
//
// A line of settings, {"panel": "waves", "d_model": 512, ...}, gives a line of numbers. What the page
// computes by itself, the angles of the definition, comes from MPFR here. Exit code 2 for settings without a
// meaning.

#include <mpfr.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <exception>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "live.hpp"

namespace {

using Json = nlohmann::json;
using Numbers = std::vector<double>;

Numbers taken(int count) { return {live_values(), live_values() + count}; }

/// Every stride-th number from `first` on.
Numbers column(const Numbers& all, std::size_t first, std::size_t stride) {
  Numbers picked;
  for (std::size_t i = first; i < all.size(); i += stride) picked.push_back(all[i]);
  return picked;
}

// ---- The definition: cos(p f) and sin(p f), by MPFR

class Mpfr {
 public:
  explicit Mpfr(double value) {
    mpfr_init2(number_, 320);
    mpfr_set_d(number_, value, MPFR_RNDN);
  }
  Mpfr(const Mpfr&) = delete;
  Mpfr& operator=(const Mpfr&) = delete;
  ~Mpfr() { mpfr_clear(number_); }

  mpfr_t& get() { return number_; }
  double value() const { return mpfr_get_d(number_, MPFR_RNDN); }
  /// |this - approximation|
  double error(double approximation) {
    mpfr_sub_d(number_, number_, approximation, MPFR_RNDN);
    return std::fabs(value());
  }

 private:
  mpfr_t number_;
};

struct CosSin {
  Mpfr cos, sin;

  CosSin(double position, double frequency) : cos(frequency), sin(0) {
    mpfr_mul_d(cos.get(), cos.get(), position, MPFR_RNDN);
    mpfr_sin_cos(sin.get(), cos.get(), cos.get(), MPFR_RNDN);
  }
};

// ---- The panels

Json waves(const Json& settings) {
  const int d_model = settings.at("d_model");
  const double base = settings.at("base"), position = settings.at("position");
  const int fractions = settings.at("fractions"), curve_fractions = settings.at("curve_fractions"),
            window = settings.at("window");
  Json numbers;
  numbers["frequencies"] = taken(live_sinusoidal_frequencies(d_model, base));
  numbers["row"] = taken(live_sinusoidal_rows(d_model, base, position * fractions, fractions, 1, d_model));
  numbers["curves"] =
      taken(live_sinusoidal_rows(d_model, base, 0, curve_fractions, window * curve_fractions + 1, 8));
  return numbers;
}

Json attention(const Json& settings) {
  const std::string a = settings.at("first"), b = settings.at("second"), both = a + b;
  std::memcpy(live_text(static_cast<int>(both.size())), both.data(), both.size());
  Json numbers;
  numbers["attention"] = taken(live_attention(static_cast<int>(a.size()), static_cast<int>(b.size())));
  return numbers;
}

Json rope(const Json& settings) {
  const int scheme = settings.at("scheme"), head_dim = settings.at("head_dim"),
            octaves = settings.at("octaves");
  const double theta = settings.at("theta"), factor = settings.at("factor"), trained = settings.at("trained"),
               length = settings.at("length"), first = settings.at("first"), second = settings.at("second");
  const Numbers frequencies =
      taken(live_rope_frequencies(scheme, head_dim, theta, factor, trained, length, first, second));
  const auto pairs = static_cast<std::ptrdiff_t>(head_dim / 2);
  Json numbers;
  numbers["attention_factor"] = Numbers{frequencies.at(0)};
  numbers["before"] = Numbers(frequencies.begin() + 1, frequencies.begin() + 1 + pairs);
  numbers["after"] = Numbers(frequencies.begin() + 1 + pairs, frequencies.end());
  const Numbers scores =
      taken(live_rope_scores(octaves, scheme, head_dim, theta, factor, trained, length, first, second));
  numbers["distances"] = column(scores, 0, 3);
  numbers["score_before"] = column(scores, 1, 3);
  numbers["score_after"] = column(scores, 2, 3);
  return numbers;
}

Json alibi(const Json& settings) {
  const int heads = settings.at("heads"), head = settings.at("head"), form = settings.at("form"),
            size = settings.at("size");
  const double distance = settings.at("distance");
  Json numbers;
  numbers["slopes"] = taken(live_alibi_slopes(heads));
  numbers["at"] = taken(live_alibi_at(heads, distance));
  const Numbers bias = taken(live_alibi_matrix(heads, head, form, size));
  // JSON has no infinity; the page's numbers pass through the same.
  Json matrix = Json::array();
  for (const double value : bias) matrix.push_back(std::isinf(value) ? Json("-inf") : Json(value));
  numbers["matrix"] = matrix;
  return numbers;
}

/// The largest errors over all pairs at one position: float32 angles, exact ones in float, in double.
Numbers worst_errors(int head_dim, double theta, double position, const Numbers& frequencies) {
  const Numbers rows = taken(live_angles(head_dim, theta, position));
  Numbers worst(3, 0.0);
  for (std::size_t pair = 0; pair * 7 < rows.size(); ++pair) {
    const double* row = &rows[pair * 7];
    const auto raise = [&](std::size_t which, double cos, double sin) {
      CosSin definition(position, frequencies.at(pair));
      worst[which] = std::max({worst[which], definition.cos.error(cos), definition.sin.error(sin)});
    };
    raise(0, row[5], row[6]), raise(1, row[1], row[2]), raise(2, row[3], row[4]);
  }
  return worst;
}

Json angles(const Json& settings) {
  const int head_dim = settings.at("head_dim");
  const double theta = settings.at("theta"), position = settings.at("position");
  const Numbers rows = taken(live_angles(head_dim, theta, position));
  Json numbers;
  const char* names[] = {"frequencies", "exact_cos",   "exact_sin",  "double_cos",
                         "double_sin",  "float32_cos", "float32_sin"};
  for (std::size_t i = 0; i < 7; ++i) numbers[names[i]] = column(rows, i, 7);
  // The definition is that of the frequencies given, or of our own: the last bit of a power is the
  // platform's.
  const Numbers frequencies = settings.value("frequencies", Json(nullptr)).is_array()
                                  ? settings.at("frequencies").get<Numbers>()
                                  : column(rows, 0, 7);
  Numbers cos, sin;
  for (const double f : frequencies) {
    const CosSin definition(position, f);
    cos.push_back(definition.cos.value()), sin.push_back(definition.sin.value());
  }
  numbers["definition_cos"] = cos, numbers["definition_sin"] = sin;
  numbers["worst"] = worst_errors(head_dim, theta, position, column(rows, 0, 7));
  Numbers curve;
  if (settings.contains("curve"))
    for (const double p : settings.at("curve").get<Numbers>())
      for (const double error : worst_errors(head_dim, theta, p, column(rows, 0, 7))) curve.push_back(error);
  numbers["curve"] = curve;
  return numbers;
}

Json numbers_of(const Json& settings) {
  const std::string panel = settings.at("panel");
  if (panel == "waves") return waves(settings);
  if (panel == "attention") return attention(settings);
  if (panel == "rope") return rope(settings);
  if (panel == "alibi") return alibi(settings);
  if (panel == "angles") return angles(settings);
  throw std::invalid_argument("panel: expected waves, attention, rope, alibi or angles, got " + panel);
}

}  // namespace

int main() {
  try {
    for (std::string line; std::getline(std::cin, line);)
      if (!line.empty()) std::cout << numbers_of(Json::parse(line)).dump() << '\n';
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "posenc_live_numbers: %s\n", error.what());
    return 2;
  }
}
