// Which dimensions turn together is never guessed.
#include "encoders.hpp"

void mistake() {
  const posenc::Rotary rope(posenc::rotary_frequencies({.head_dim = 128}));  // wrong
}
