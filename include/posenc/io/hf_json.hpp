#pragma once
// Reading config.json strictly: the text into a JSON value that has no duplicate key and no unreasonable
// depth, and a section of it through typed questions that keep count of what was asked, so that a key that
// nobody understood can be named.

#include <cstddef>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "posenc/core/error.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/scalar.hpp"

namespace posenc {
inline namespace v0 {

inline constexpr std::size_t largest_config_bytes = std::size_t{1} << 24;  ///< of the text of a config.json
inline constexpr int largest_config_depth = 32;  ///< of objects and lists in one another

namespace detail {

using HfJson = nlohmann::json;

/// A value as a message shows it.
inline std::string shown(const HfJson& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return concat("a list of ", value.size());
  std::string text = value.dump(-1, ' ', true, HfJson::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

/// The handler of nlohmann's sax_parse. What it refuses is an error of the file, not of the program.
class HfJsonBuilder {
 public:
  HfJson take() { return std::move(root_); }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(HfJson::number_integer_t value) { return put(value); }
  bool number_unsigned(HfJson::number_unsigned_t value) { return put(value); }
  bool number_float(HfJson::number_float_t value, const std::string&) { return put(value); }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(HfJson::binary_t&) { return put(nullptr); }
  bool start_object(std::size_t) { return open(HfJson::object()); }
  bool start_array(std::size_t) { return open(HfJson::array()); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }
  bool key(std::string& name) {
    if (open_.back()->contains(name))
      invalid("config.json: expected each key once, got ", shown(name), " twice");
    key_ = std::move(name);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& token, const HfJson::exception&) {
    invalid("config.json: expected JSON, got ", shown(token), " at byte ", position);
  }

 private:
  HfJson* add(HfJson value) {
    if (open_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    if (open_.back()->is_array()) {
      open_.back()->push_back(std::move(value));
      return &open_.back()->back();
    }
    HfJson& slot = (*open_.back())[key_];
    slot = std::move(value);
    return &slot;
  }
  bool put(HfJson value) {
    add(std::move(value));
    return true;
  }
  // The pointers stay good: a container grows only while it is the innermost open one.
  bool open(HfJson container) {
    if (open_.size() >= static_cast<std::size_t>(largest_config_depth))
      invalid("config.json: expected at most ", largest_config_depth,
              " objects and lists in one another, got more");
    open_.push_back(add(std::move(container)));
    return true;
  }
  bool close() {
    open_.pop_back();
    return true;
  }

  HfJson root_;
  std::vector<HfJson*> open_;
  std::string key_;
};

/// Python writes NaN, Infinity and -Infinity, which are no JSON. They become strings, so that a number that
/// is asked for and is one of them is an error.
inline std::string without_python_numbers(std::string_view text) {
  std::string result;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size();) {
    bool replaced = false;
    if (!quoted)
      for (const std::string_view word : {"-Infinity", "Infinity", "NaN"})
        if (text.substr(i, word.size()) == word) {
          result.append("\"").append(word).append("\"");
          i += word.size();
          replaced = true;
          break;
        }
    if (replaced) continue;
    if (quoted && text[i] == '\\' && i + 1 < text.size())
      result += text[i++];
    else if (text[i] == '"')
      quoted = !quoted;
    result += text[i++];
  }
  return result;
}

/// The text of a config.json.
inline HfJson parse_hf_json(std::string_view text) {
  if (text.size() > largest_config_bytes)
    invalid("config.json: expected at most ", largest_config_bytes, " bytes, got ", text.size());
  HfJsonBuilder builder;
  const std::string json = without_python_numbers(text);
  if (!HfJson::sax_parse(json, &builder)) invalid("config.json: expected JSON, got something else");
  return builder.take();
}

/// One object of a config. A key that is absent and one that is null are the same.
class HfSection {
 public:
  HfSection(const HfJson& object, std::string path, std::vector<std::string>& warnings)
      : object_(&object), path_(std::move(path)), warnings_(&warnings) {
    if (!object.is_object())
      invalid(path_.empty() ? "config.json" : path_, ": expected an object, got ", shown(object));
  }

  const HfJson& object() const { return *object_; }
  const std::string& path() const { return path_; }
  std::vector<std::string>& warnings() const { return *warnings_; }
  std::string where(std::string_view key) const {
    return path_.empty() ? std::string(key) : concat(path_, ".", std::string(key));
  }

  template <class... Parts>
  void warn(std::string_view key, const Parts&... parts) const {
    warnings_->push_back(concat(where(key), ": ", parts...));
  }
  template <class... Parts>
  [[noreturn]] void refuse(std::string_view key, const Parts&... parts) const {
    invalid(where(key), ": ", parts...);
  }

  /// The value, or nullptr; counts as understood.
  const HfJson* find(std::string_view key) {
    used_.emplace(key);
    return peek(key);
  }
  const HfJson* peek(std::string_view key) const {
    const auto found = object_->find(std::string(key));
    return found == object_->end() || found->is_null() ? nullptr : &*found;
  }
  bool has(std::string_view key) const { return peek(key) != nullptr; }
  void understood(std::string_view key) { used_.emplace(key); }
  bool is_understood(std::string_view key) const { return used_.count(std::string(key)) != 0; }

  std::optional<Index> integer(std::string_view key, Index least, Index most) {
    const HfJson* value = find(key);
    if (value == nullptr) return std::nullopt;
    return integer_of(key, *value, least, most);
  }
  std::optional<double> number(std::string_view key) {
    const HfJson* value = find(key);
    if (value == nullptr) return std::nullopt;
    return number_of(key, *value);
  }
  std::optional<bool> boolean(std::string_view key) {
    const HfJson* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_boolean()) refuse(key, "expected true or false, got ", shown(*value));
    return value->get<bool>();
  }
  std::optional<std::string> text(std::string_view key) {
    const HfJson* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_string()) refuse(key, "expected a string, got ", shown(*value));
    return value->get<std::string>();
  }
  std::optional<std::vector<double>> numbers(std::string_view key) {
    return list<double>(key, [&](const HfJson& item) { return number_of(key, item); });
  }
  std::optional<std::vector<Index>> integers(std::string_view key, Index least, Index most) {
    return list<Index>(key, [&](const HfJson& item) { return integer_of(key, item, least, most); });
  }
  std::optional<std::vector<std::string>> texts(std::string_view key) {
    return list<std::string>(key, [&](const HfJson& item) {
      if (!item.is_string()) refuse(key, "expected strings, got ", shown(item));
      return item.get<std::string>();
    });
  }

  /// The same thing under several names: the first that is there. The others must agree, or a warning says
  /// who won.
  std::optional<Index> integer_of_any(std::initializer_list<std::string_view> keys, Index least, Index most) {
    return any<Index>(keys, [&](std::string_view key) { return integer(key, least, most); });
  }
  std::optional<double> number_of_any(std::initializer_list<std::string_view> keys) {
    return any<double>(keys, [&](std::string_view key) { return number(key); });
  }

 private:
  Index integer_of(std::string_view key, const HfJson& value, Index least, Index most) const {
    const bool fits = value.is_number_unsigned() ? value.get<HfJson::number_unsigned_t>() <=
                                                       static_cast<HfJson::number_unsigned_t>(most)
                                                 : value.is_number_integer();
    if (!fits || value.get<Index>() < least || value.get<Index>() > most)
      refuse(key, "expected an integer from ", least, " to ", most, ", got ", shown(value));
    return value.get<Index>();
  }
  double number_of(std::string_view key, const HfJson& value) const {
    const auto* real = value.get_ptr<const HfJson::number_float_t*>();
    if (!value.is_number() || (real != nullptr && !detail::is_finite(*real)))
      refuse(key, "expected a finite number, got ", shown(value));
    return value.get<double>();
  }
  template <class T, class Convert>
  std::optional<std::vector<T>> list(std::string_view key, const Convert& convert) {
    const HfJson* value = find(key);
    if (value == nullptr) return std::nullopt;
    if (!value->is_array()) refuse(key, "expected a list, got ", shown(*value));
    std::vector<T> items;
    for (const HfJson& item : *value) items.push_back(convert(item));
    return items;
  }
  template <class T, class Get>
  std::optional<T> any(std::initializer_list<std::string_view> keys, const Get& get) {
    std::optional<T> winner;
    std::string_view winning;
    for (const std::string_view key : keys) {
      const std::optional<T> value = get(key);
      if (!value) continue;
      if (!winner)
        winner = value, winning = key;
      else if (*winner != *value)
        warn(key, *value, " contradicts ", std::string(winning), ", which is ", *winner, " and won");
    }
    return winner;
  }

  const HfJson* object_;
  std::string path_;
  std::vector<std::string>* warnings_;
  std::set<std::string> used_;
};

}  // namespace detail
}  // namespace v0
}  // namespace posenc
