#pragma once
// The bytes of a fuzzer as choices.

#include <cstddef>
#include <cstdint>
#include <iterator>

namespace posenc_test {

/// Bytes that are used up one by one, then zeros.
class Choices {
 public:
  Choices(const std::uint8_t* data, std::size_t size) : data_(data), size_(size) {}
  bool left() const { return at_ < size_; }
  std::uint8_t byte() { return left() ? data_[at_++] : std::uint8_t{0}; }
  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    for (int i = 0; i < bytes; ++i) value = value << 8 | byte();
    return value;
  }
  template <class List>
  auto one_of(const List& list) {
    return list[byte() % std::size(list)];
  }

 private:
  const std::uint8_t* data_;
  std::size_t size_, at_ = 0;
};

}  // namespace posenc_test
