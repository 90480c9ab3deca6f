// Each element is computed in the type of the output, and rounded once.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, const Eigen::Tensor<double, 3>& y,
             Eigen::Tensor<double, 3>& z) {
  e.sinusoidal.add(x, z, at);                     // wrong
  e.learned.add(x, z, at);                        // wrong
  e.dropout.apply(x, z, posenc::Mode::train, 1);  // wrong
  e.rope.rotate(x, z, at);                        // wrong
  e.rope.rotate_vjp(x, z, at);                    // wrong
  e.table.rotate(x, z, at);                       // wrong
  e.table.rotate_vjp(x, z, at);                   // wrong
  e.table_of_rows.rotate(x, z);                   // wrong
  e.table_of_rows.rotate_vjp(x, z);               // wrong
  e.alibi.add(x, z, at, at);                      // wrong
  posenc::softmax(x, z, e.alibi, at, at);         // wrong
  posenc::softmax_vjp(x, z);                      // wrong
  e.sinusoidal.add(z, x, at);                     // wrong
  e.learned.add(z, x, at);                        // wrong
  e.dropout.apply(z, x, posenc::Mode::train, 1);  // wrong
  e.rope.rotate(z, x, at);                        // wrong
  e.rope.rotate_vjp(z, x, at);                    // wrong
  e.table.rotate(z, x, at);                       // wrong
  e.table.rotate_vjp(z, x, at);                   // wrong
  e.table_of_rows.rotate(z, x);                   // wrong
  e.table_of_rows.rotate_vjp(z, x);               // wrong
  e.alibi.add(z, x, at, at);                      // wrong
  posenc::softmax(z, x, e.alibi, at, at);         // wrong
  posenc::softmax_vjp(z, x);                      // wrong
}
