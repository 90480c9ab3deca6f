// A pointer has no shape.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, float* x, std::vector<float>& v) {
  e.sinusoidal.add(x, at);                     // wrong
  e.rope.rotate(x, at, Axes::bshd);            // wrong
  e.rope.rotate(v, at, Axes::bshd);            // wrong
  posenc::softmax(x, e.alibi, at, at);         // wrong
  e.dropout.apply(v, posenc::Mode::train, 1);  // wrong
}
