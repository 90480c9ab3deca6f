// A device is a pool of Eigen, or has its parallelFor.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, Tensor2& m, const Ids& ids,
             std::vector<int>* device) {
  e.sinusoidal.add(device, x, at);                               // wrong
  e.sinusoidal.encode(device, x, at);                            // wrong
  e.learned.add(device, x, at);                                  // wrong
  e.learned.embed(device, x, at);                                // wrong
  e.token.embed(device, x, ids);                                 // wrong
  e.layer.embed(device, x, ids, at);                             // wrong
  e.dropout.apply(device, x, posenc::Mode::train, 1);            // wrong
  e.dropout.apply_vjp(device, x, posenc::Mode::train, 1);        // wrong
  e.rope.rotate(device, x, at);                                  // wrong
  e.rope.rotate(device, x, at, Axes::shd);                       // wrong
  e.rope.rotate_vjp(device, x, at);                              // wrong
  e.rope.rotate_inverse(device, x, at);                          // wrong
  e.rope.shift(device, x, 3);                                    // wrong
  e.rope.cos_sin(device, x, x, at);                              // wrong
  e.table.rotate(device, x, at);                                 // wrong
  e.table.rotate_vjp(device, x, at);                             // wrong
  e.table_of_rows.rotate(device, x);                             // wrong
  e.table_of_rows.rotate_vjp(device, x);                         // wrong
  e.xpos.rotate_query(device, x, at);                            // wrong
  e.xpos.rotate_key(device, x, at);                              // wrong
  e.xpos.rotate_query_vjp(device, x, at);                        // wrong
  e.xpos.rotate_key_vjp(device, x, at);                          // wrong
  e.rebase.apply(device, x, at);                                 // wrong
  e.temperature.scale(device, x, at);                            // wrong
  e.alibi.add(device, x, at, at);                                // wrong
  posenc::softmax(device, x, e.alibi, at, at);                   // wrong
  posenc::softmax(device, x, posenc::NoBias(), at, at);          // wrong
  posenc::rotate_per_row(device, x, e.ropes, e.choice, at);      // wrong
  posenc::rotate_per_row_vjp(device, x, e.ropes, e.choice, at);  // wrong
  e.sinusoidal.add(device, x, x, at);                            // wrong
  e.learned.add(device, x, x, at);                               // wrong
  e.dropout.apply(device, x, x, posenc::Mode::train, 1);         // wrong
  e.rope.rotate(device, x, x, at);                               // wrong
  e.rope.rotate_vjp(device, x, x, at);                           // wrong
  e.table.rotate(device, x, x, at);                              // wrong
  e.table.rotate_vjp(device, x, x, at);                          // wrong
  e.table_of_rows.rotate(device, x, x);                          // wrong
  e.table_of_rows.rotate_vjp(device, x, x);                      // wrong
  e.alibi.add(device, x, x, at, at);                             // wrong
  posenc::softmax(device, x, x, e.alibi, at, at);                // wrong
  posenc::softmax_vjp(device, x, x);                             // wrong
  e.token.logits(device, m, m);                                  // wrong
  e.learned.add_vjp(device, m, at, x);                           // wrong
}
