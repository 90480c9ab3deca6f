#pragma once
// Where the golden tests find their data, how they count what they compared, and how close is close enough.
// Include this before any other header of the tests: Catch2 2.13 shows its listeners only when asked first.

#ifndef CATCH_CONFIG_EXTERNAL_INTERFACES
#define CATCH_CONFIG_EXTERNAL_INTERFACES
#endif
#include "support/catch.hpp"
#if __has_include(<catch2/catch_test_macros.hpp>)
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
#endif

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/support.hpp"

namespace posenc_test {

using Json = nlohmann::json;

/// The environment variable POSENC_DATA_DIR, else the folder that CMake was given.
inline std::filesystem::path data_dir() {
  const char* from_environment = std::getenv("POSENC_DATA_DIR");
  return from_environment != nullptr && *from_environment != '\0' ? from_environment : POSENC_DATA_DIR;
}

inline Json read_json(const std::filesystem::path& file) {
  std::ifstream stream(file);
  INFO(file.string());
  REQUIRE(stream);
  return Json::parse(stream);
}

#if __has_include(<catch2/catch_test_macros.hpp>)
using ListenerBase = Catch::EventListenerBase;
#else
using ListenerBase = Catch::TestEventListenerBase;
#endif

/// A Catch2 listener: where the data is not there, no test runs and the program ends with 77, which ctest and
/// automake read as "skipped". Listing the cases needs no data.
class NeedsData : public ListenerBase {
 public:
  using ListenerBase::ListenerBase;
  virtual std::string folder() const = 0;

  void testRunStarting(const Catch::TestRunInfo&) override {
    const std::filesystem::path wanted = data_dir() / folder();
    if (std::filesystem::is_directory(wanted)) return;
    std::printf("SKIPPED: no folder %s in POSENC_DATA_DIR (%s)\n", folder().c_str(),
                data_dir().string().c_str());
    std::exit(77);
  }
};

/// How the numbers of a list were printed, and so how far each may be from the exact one.
class Printed {
 public:
  /// A fixed number of digits behind the point: half a unit of the last one.
  static Printed decimals(int n) { return {Rule::decimals, n}; }
  /// A fixed number of significant digits: half a unit of the last one.
  static Printed digits(int n) { return {Rule::digits, n}; }
  /// Written by hand and cut off, not rounded, behind n decimals or more: a whole unit of the last one.
  static Printed cut(int n) { return {Rule::cut, n}; }
  /// All digits of a float or double: nothing was lost.
  static Printed exactly() { return {Rule::exactly, 0}; }

  double largest_error(double value) const {
    switch (rule_) {
      case Rule::decimals: return 0.5 * std::pow(10.0, -digits_);
      case Rule::digits:
        return value == 0 ? 0 : 0.5 * std::pow(10.0, std::floor(std::log10(std::fabs(value))) + 1 - digits_);
      case Rule::cut: {
        int written = digits_;
        while (!survives(value, written)) ++written;
        return std::pow(10.0, -written);
      }
      case Rule::exactly: break;
    }
    return 0;
  }

  /// Whether the list says so itself: no number has more digits, and some number has all of them. So a test
  /// can't claim fewer digits than there are to pass more easily.
  bool describes(const std::vector<double>& numbers) const {
    const auto all_survive = [&](int digits) {
      return std::all_of(numbers.begin(), numbers.end(), [&](double x) { return survives(x, digits); });
    };
    if (rule_ == Rule::exactly) return true;
    return (rule_ == Rule::cut || all_survive(digits_)) && !all_survive(digits_ - 1);
  }

 private:
  enum class Rule { decimals, digits, cut, exactly };

  Printed(Rule rule, int digits) : rule_(rule), digits_(digits) {}

  bool survives(double x, int digits) const {  // being printed with so many digits
    char text[64];
    const bool significant = rule_ == Rule::digits;
    std::snprintf(text, sizeof text, significant ? "%.*e" : "%.*f", significant ? digits - 1 : digits, x);
    return std::strtod(text, nullptr) == x;
  }

  Rule rule_;
  int digits_;
};

/// The numbers of a JSON array, however deeply nested, in order.
inline std::vector<double> numbers_of(const Json& array) {
  std::vector<double> numbers;
  const auto collect = [&](const auto& self, const Json& node) -> void {
    if (node.is_array()) {
      for (const Json& child : node) self(self, child);
    } else {
      numbers.push_back(node.get<double>());
    }
  };
  collect(collect, array);
  return numbers;
}

/// Compares lists of numbers and keeps count, so that a test can say at its end that it compared something.
class Comparison {
 public:
  /// Checks |got - expected| <= bound[i] for each number, and that the two are as long.
  template <class Got, class Expected>
  void within(const std::string& what, const std::vector<Got>& got, const std::vector<Expected>& expected,
              const std::vector<double>& bound) {
    INFO(what);
    REQUIRE(!expected.empty());
    REQUIRE(got.size() == expected.size());
    REQUIRE(bound.size() == expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) {
      const double error = std::fabs(to_double(got[i]) - to_double(expected[i]));
      count_ += 1;
      largest_error_ = (std::max)(largest_error_, error);
      if (bound[i] > 0) largest_share_ = (std::max)(largest_share_, error / bound[i]);
      if (error <= bound[i]) continue;
      CAPTURE(i, to_double(got[i]), to_double(expected[i]), error, bound[i]);
      CHECK(error <= bound[i]);
    }
  }

  /// The same for printed numbers: what the printing lost, and `rounding` for the two computations.
  template <class Got>
  void printed(const std::string& what, const std::vector<Got>& got, const Json& expected,
               const Printed& print, double rounding) {
    INFO(what);
    const std::vector<double> numbers = numbers_of(expected);
    CHECK(print.describes(numbers));
    std::vector<double> bound;
    for (const double number : numbers) bound.push_back(print.largest_error(number) + rounding);
    within(what, got, numbers, bound);
  }

  /// To be called at the end with how many numbers the file holds for this test. `-s` shows the sentence.
  void finish(const std::string& file, int expected_count) const {
    CHECK(count_ == expected_count);
    REQUIRE(count_ > 0);
    SUCCEED(file << ": " << count_ << " numbers compared, largest error " << largest_error_ << ", at most "
                 << largest_share_ << " of what was allowed");
  }

 private:
  int count_ = 0;
  double largest_error_ = 0, largest_share_ = 0;
};

}  // namespace posenc_test
