#pragma once

#include <stdexcept>
#include <string>

namespace models {

/// Something that the user gave cannot be used: a file, a sentence, an option. The message is one line.
struct InputError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace models
