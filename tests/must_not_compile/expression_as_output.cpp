// An expression has no memory to write to.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, Tensor2& m, const Ids& ids,
             Eigen::MatrixXf& q) {
  e.sinusoidal.add(x * 2.0f, at);                                                // wrong
  e.sinusoidal.encode(x * 2.0f, at);                                             // wrong
  e.learned.add(x * 2.0f, at);                                                   // wrong
  e.learned.embed(x * 2.0f, at);                                                 // wrong
  e.token.embed(x * 2.0f, ids);                                                  // wrong
  e.layer.embed(x * 2.0f, ids, at);                                              // wrong
  e.dropout.apply(x * 2.0f, posenc::Mode::train, 1);                             // wrong
  e.dropout.apply_vjp(x * 2.0f, posenc::Mode::train, 1);                         // wrong
  e.rope.rotate(x * 2.0f, at);                                                   // wrong
  e.rope.rotate(x * 2.0f, at, Axes::shd);                                        // wrong
  e.rope.rotate_vjp(x * 2.0f, at);                                               // wrong
  e.rope.rotate_inverse(x * 2.0f, at);                                           // wrong
  e.rope.shift(x * 2.0f, 3);                                                     // wrong
  e.rope.cos_sin(x * 2.0f, x * 2.0f, at);                                        // wrong
  e.table.rotate(x * 2.0f, at);                                                  // wrong
  e.table.rotate_vjp(x * 2.0f, at);                                              // wrong
  e.table_of_rows.rotate(x * 2.0f);                                              // wrong
  e.table_of_rows.rotate_vjp(x * 2.0f);                                          // wrong
  e.xpos.rotate_query(x * 2.0f, at);                                             // wrong
  e.xpos.rotate_key(x * 2.0f, at);                                               // wrong
  e.xpos.rotate_query_vjp(x * 2.0f, at);                                         // wrong
  e.xpos.rotate_key_vjp(x * 2.0f, at);                                           // wrong
  e.rebase.apply(x * 2.0f, at);                                                  // wrong
  e.temperature.scale(x * 2.0f, at);                                             // wrong
  e.alibi.add(x * 2.0f, at, at);                                                 // wrong
  posenc::softmax(x * 2.0f, e.alibi, at, at);                                    // wrong
  posenc::softmax(x * 2.0f, posenc::NoBias(), at, at);                           // wrong
  posenc::rotate_per_row(x * 2.0f, e.ropes, e.choice, at);                       // wrong
  posenc::rotate_per_row_vjp(x * 2.0f, e.ropes, e.choice, at);                   // wrong
  e.sinusoidal.add(x * 2.0f, x, at);                                             // wrong
  e.learned.add(x * 2.0f, x, at);                                                // wrong
  e.dropout.apply(x * 2.0f, x, posenc::Mode::train, 1);                          // wrong
  e.rope.rotate(x * 2.0f, x, at);                                                // wrong
  e.rope.rotate_vjp(x * 2.0f, x, at);                                            // wrong
  e.table.rotate(x * 2.0f, x, at);                                               // wrong
  e.table.rotate_vjp(x * 2.0f, x, at);                                           // wrong
  e.table_of_rows.rotate(x * 2.0f, x);                                           // wrong
  e.table_of_rows.rotate_vjp(x * 2.0f, x);                                       // wrong
  e.alibi.add(x * 2.0f, x, at, at);                                              // wrong
  posenc::softmax(x * 2.0f, x, e.alibi, at, at);                                 // wrong
  posenc::softmax_vjp(x * 2.0f, x);                                              // wrong
  e.learned.add_vjp(m * 2.0f, at, x);                                            // wrong
  e.token.embed_vjp(m * 2.0f, ids, x);                                           // wrong
  e.layer.embed_vjp(m * 2.0f, ids, at, x);                                       // wrong
  e.token.logits(m * 2.0f, x);                                                   // wrong
  e.token.logits_vjp(m * 2.0f, m * 2.0f, x, x);                                  // wrong
  posenc::convert_pairing(m * 2.0f, Pairing::adjacent, Pairing::half, e.heads);  // wrong
  e.alibi.tile(m * 2.0f, 0, at, at);                                             // wrong
  e.rope.rotate((2 * q).transpose(), at);                                        // wrong
  e.rope.rotate(q + q, at);                                                      // wrong
}
