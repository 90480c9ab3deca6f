#pragma once
// A mutator that now and then starts again from a file that is whole: most of a reader is behind checks that
// random bytes do not pass.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace posenc_test {

inline std::size_t start_from(const std::string& whole, std::uint8_t* data, std::size_t size,
                              std::size_t most, unsigned seed) {
  if (seed % 64 == 0 || size == 0) {
    size = (std::min)(whole.size(), most);
    std::copy_n(whole.data(), size, data);
  }
  return LLVMFuzzerMutate(data, size, most);
}

}  // namespace posenc_test
