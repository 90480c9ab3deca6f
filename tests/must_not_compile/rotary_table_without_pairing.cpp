// Which dimensions turn together is never guessed.
#include "encoders.hpp"

void mistake(const Tensor2& m) {
  const posenc::RotaryTable table(m, m);              // wrong
  const posenc::RotaryTable<float, 2> of_type(m, m);  // wrong
}
