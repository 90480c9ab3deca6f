// The result would be lost with the temporary.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, const Tensor3& x, const Ids& ids) {
  e.sinusoidal.add(Tensor3(1, 1, 512), at);                                             // wrong
  e.sinusoidal.encode(Tensor3(1, 1, 512), at);                                          // wrong
  e.learned.add(Tensor3(1, 1, 512), at);                                                // wrong
  e.learned.embed(Tensor3(1, 1, 512), at);                                              // wrong
  e.token.embed(Tensor3(1, 1, 512), ids);                                               // wrong
  e.layer.embed(Tensor3(1, 1, 512), ids, at);                                           // wrong
  e.dropout.apply(Tensor3(1, 1, 512), posenc::Mode::train, 1);                          // wrong
  e.dropout.apply_vjp(Tensor3(1, 1, 512), posenc::Mode::train, 1);                      // wrong
  e.rope.rotate(Tensor3(1, 1, 512), at);                                                // wrong
  e.rope.rotate(Tensor3(1, 1, 512), at, Axes::shd);                                     // wrong
  e.rope.rotate_vjp(Tensor3(1, 1, 512), at);                                            // wrong
  e.rope.rotate_inverse(Tensor3(1, 1, 512), at);                                        // wrong
  e.rope.shift(Tensor3(1, 1, 512), 3);                                                  // wrong
  e.rope.cos_sin(Tensor3(1, 1, 512), Tensor3(1, 1, 512), at);                           // wrong
  e.table.rotate(Tensor3(1, 1, 512), at);                                               // wrong
  e.table.rotate_vjp(Tensor3(1, 1, 512), at);                                           // wrong
  e.table_of_rows.rotate(Tensor3(1, 1, 512));                                           // wrong
  e.table_of_rows.rotate_vjp(Tensor3(1, 1, 512));                                       // wrong
  e.xpos.rotate_query(Tensor3(1, 1, 512), at);                                          // wrong
  e.xpos.rotate_key(Tensor3(1, 1, 512), at);                                            // wrong
  e.xpos.rotate_query_vjp(Tensor3(1, 1, 512), at);                                      // wrong
  e.xpos.rotate_key_vjp(Tensor3(1, 1, 512), at);                                        // wrong
  e.rebase.apply(Tensor3(1, 1, 512), at);                                               // wrong
  e.temperature.scale(Tensor3(1, 1, 512), at);                                          // wrong
  e.alibi.add(Tensor3(1, 1, 512), at, at);                                              // wrong
  posenc::softmax(Tensor3(1, 1, 512), e.alibi, at, at);                                 // wrong
  posenc::softmax(Tensor3(1, 1, 512), posenc::NoBias(), at, at);                        // wrong
  posenc::rotate_per_row(Tensor3(1, 1, 512), e.ropes, e.choice, at);                    // wrong
  posenc::rotate_per_row_vjp(Tensor3(1, 1, 512), e.ropes, e.choice, at);                // wrong
  e.sinusoidal.add(Tensor3(1, 1, 512), x, at);                                          // wrong
  e.learned.add(Tensor3(1, 1, 512), x, at);                                             // wrong
  e.dropout.apply(Tensor3(1, 1, 512), x, posenc::Mode::train, 1);                       // wrong
  e.rope.rotate(Tensor3(1, 1, 512), x, at);                                             // wrong
  e.rope.rotate_vjp(Tensor3(1, 1, 512), x, at);                                         // wrong
  e.table.rotate(Tensor3(1, 1, 512), x, at);                                            // wrong
  e.table.rotate_vjp(Tensor3(1, 1, 512), x, at);                                        // wrong
  e.table_of_rows.rotate(Tensor3(1, 1, 512), x);                                        // wrong
  e.table_of_rows.rotate_vjp(Tensor3(1, 1, 512), x);                                    // wrong
  e.alibi.add(Tensor3(1, 1, 512), x, at, at);                                           // wrong
  posenc::softmax(Tensor3(1, 1, 512), x, e.alibi, at, at);                              // wrong
  posenc::softmax_vjp(Tensor3(1, 1, 512), x);                                           // wrong
  e.learned.add_vjp(Tensor2(1, 512), at, x);                                            // wrong
  e.token.embed_vjp(Tensor2(1, 512), ids, x);                                           // wrong
  e.layer.embed_vjp(Tensor2(1, 512), ids, at, x);                                       // wrong
  e.token.logits(Tensor2(1, 512), x);                                                   // wrong
  e.token.logits_vjp(Tensor2(1, 512), Tensor2(1, 512), x, x);                           // wrong
  posenc::convert_pairing(Tensor2(1, 512), Pairing::adjacent, Pairing::half, e.heads);  // wrong
  e.alibi.tile(Tensor2(1, 512), 0, at, at);                                             // wrong
}
