// An output has the axes of its input.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, const Tensor2& m) {
  e.sinusoidal.add(x, m, at);                     // wrong
  e.learned.add(x, m, at);                        // wrong
  e.dropout.apply(x, m, posenc::Mode::train, 1);  // wrong
  e.rope.rotate(x, m, at);                        // wrong
  e.rope.rotate_vjp(x, m, at);                    // wrong
  e.table.rotate(x, m, at);                       // wrong
  e.table.rotate_vjp(x, m, at);                   // wrong
  e.table_of_rows.rotate(x, m);                   // wrong
  e.table_of_rows.rotate_vjp(x, m);               // wrong
  e.alibi.add(x, m, at, at);                      // wrong
  posenc::softmax(x, m, e.alibi, at, at);         // wrong
  posenc::softmax_vjp(x, m);                      // wrong
}
