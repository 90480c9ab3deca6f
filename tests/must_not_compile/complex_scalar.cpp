// float, double, half and bfloat16 are the scalars.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Eigen::Tensor<std::complex<float>, 3>& z,
             Eigen::Tensor<std::complex<float>, 2>& c, const Ids& ids, const Tensor3& x) {
  e.sinusoidal.add(z, at);                               // wrong
  e.sinusoidal.encode(z, at);                            // wrong
  e.learned.add(z, at);                                  // wrong
  e.learned.embed(z, at);                                // wrong
  e.token.embed(z, ids);                                 // wrong
  e.layer.embed(z, ids, at);                             // wrong
  e.dropout.apply(z, posenc::Mode::train, 1);            // wrong
  e.dropout.apply_vjp(z, posenc::Mode::train, 1);        // wrong
  e.rope.rotate(z, at);                                  // wrong
  e.rope.rotate(z, at, Axes::shd);                       // wrong
  e.rope.rotate_vjp(z, at);                              // wrong
  e.rope.rotate_inverse(z, at);                          // wrong
  e.rope.shift(z, 3);                                    // wrong
  e.rope.cos_sin(z, z, at);                              // wrong
  e.table.rotate(z, at);                                 // wrong
  e.table.rotate_vjp(z, at);                             // wrong
  e.table_of_rows.rotate(z);                             // wrong
  e.table_of_rows.rotate_vjp(z);                         // wrong
  e.xpos.rotate_query(z, at);                            // wrong
  e.xpos.rotate_key(z, at);                              // wrong
  e.xpos.rotate_query_vjp(z, at);                        // wrong
  e.xpos.rotate_key_vjp(z, at);                          // wrong
  e.rebase.apply(z, at);                                 // wrong
  e.temperature.scale(z, at);                            // wrong
  e.alibi.add(z, at, at);                                // wrong
  posenc::softmax(z, e.alibi, at, at);                   // wrong
  posenc::softmax(z, posenc::NoBias(), at, at);          // wrong
  posenc::rotate_per_row(z, e.ropes, e.choice, at);      // wrong
  posenc::rotate_per_row_vjp(z, e.ropes, e.choice, at);  // wrong
  e.sinusoidal.add(z, z, at);                            // wrong
  e.learned.add(z, z, at);                               // wrong
  e.dropout.apply(z, z, posenc::Mode::train, 1);         // wrong
  e.rope.rotate(z, z, at);                               // wrong
  e.rope.rotate_vjp(z, z, at);                           // wrong
  e.table.rotate(z, z, at);                              // wrong
  e.table.rotate_vjp(z, z, at);                          // wrong
  e.table_of_rows.rotate(z, z);                          // wrong
  e.table_of_rows.rotate_vjp(z, z);                      // wrong
  e.alibi.add(z, z, at, at);                             // wrong
  posenc::softmax(z, z, e.alibi, at, at);                // wrong
  posenc::softmax_vjp(z, z);                             // wrong
  e.learned.add_vjp(c, at, x);                           // wrong
  e.token.embed_vjp(c, ids, x);                          // wrong
  e.layer.embed_vjp(c, ids, at, x);                      // wrong
  e.token.logits(c, x);                                  // wrong
  e.token.logits_vjp(c, c, x, x);                        // wrong
}
