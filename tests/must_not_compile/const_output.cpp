// A const tensor cannot be written.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, const Tensor3& x, const Tensor2& m,
             const Ids& ids, const Eigen::DefaultDevice& device) {
  e.sinusoidal.add(x, at);                                                // wrong
  e.sinusoidal.encode(x, at);                                             // wrong
  e.learned.add(x, at);                                                   // wrong
  e.learned.embed(x, at);                                                 // wrong
  e.token.embed(x, ids);                                                  // wrong
  e.layer.embed(x, ids, at);                                              // wrong
  e.dropout.apply(x, posenc::Mode::train, 1);                             // wrong
  e.dropout.apply_vjp(x, posenc::Mode::train, 1);                         // wrong
  e.rope.rotate(x, at);                                                   // wrong
  e.rope.rotate(x, at, Axes::shd);                                        // wrong
  e.rope.rotate_vjp(x, at);                                               // wrong
  e.rope.rotate_inverse(x, at);                                           // wrong
  e.rope.shift(x, 3);                                                     // wrong
  e.rope.cos_sin(x, x, at);                                               // wrong
  e.table.rotate(x, at);                                                  // wrong
  e.table.rotate_vjp(x, at);                                              // wrong
  e.table_of_rows.rotate(x);                                              // wrong
  e.table_of_rows.rotate_vjp(x);                                          // wrong
  e.xpos.rotate_query(x, at);                                             // wrong
  e.xpos.rotate_key(x, at);                                               // wrong
  e.xpos.rotate_query_vjp(x, at);                                         // wrong
  e.xpos.rotate_key_vjp(x, at);                                           // wrong
  e.rebase.apply(x, at);                                                  // wrong
  e.temperature.scale(x, at);                                             // wrong
  e.alibi.add(x, at, at);                                                 // wrong
  posenc::softmax(x, e.alibi, at, at);                                    // wrong
  posenc::softmax(x, posenc::NoBias(), at, at);                           // wrong
  posenc::rotate_per_row(x, e.ropes, e.choice, at);                       // wrong
  posenc::rotate_per_row_vjp(x, e.ropes, e.choice, at);                   // wrong
  e.sinusoidal.add(x, x, at);                                             // wrong
  e.learned.add(x, x, at);                                                // wrong
  e.dropout.apply(x, x, posenc::Mode::train, 1);                          // wrong
  e.rope.rotate(x, x, at);                                                // wrong
  e.rope.rotate_vjp(x, x, at);                                            // wrong
  e.table.rotate(x, x, at);                                               // wrong
  e.table.rotate_vjp(x, x, at);                                           // wrong
  e.table_of_rows.rotate(x, x);                                           // wrong
  e.table_of_rows.rotate_vjp(x, x);                                       // wrong
  e.alibi.add(x, x, at, at);                                              // wrong
  posenc::softmax(x, x, e.alibi, at, at);                                 // wrong
  posenc::softmax_vjp(x, x);                                              // wrong
  e.learned.add_vjp(m, at, x);                                            // wrong
  e.token.embed_vjp(m, ids, x);                                           // wrong
  e.layer.embed_vjp(m, ids, at, x);                                       // wrong
  e.token.logits(m, x);                                                   // wrong
  e.token.logits_vjp(m, m, x, x);                                         // wrong
  posenc::convert_pairing(m, Pairing::adjacent, Pairing::half, e.heads);  // wrong
  e.alibi.tile(m, 0, at, at);                                             // wrong
  e.sinusoidal.add(device, x, at);                                        // wrong
  e.rope.rotate(device, x, at);                                           // wrong
  e.rope.rotate(device, x, x, at);                                        // wrong
  posenc::softmax(device, x, e.alibi, at, at);                            // wrong
}
