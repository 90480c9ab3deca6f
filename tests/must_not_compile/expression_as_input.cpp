// An expression has no memory to read from.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, Tensor2& m, const Ids& ids,
             std::span<double> slopes) {
  e.sinusoidal.add(x, x * 2.0f, at);                          // wrong
  e.learned.add(x, x * 2.0f, at);                             // wrong
  e.dropout.apply(x, x * 2.0f, posenc::Mode::train, 1);       // wrong
  e.rope.rotate(x, x * 2.0f, at);                             // wrong
  e.rope.rotate_vjp(x, x * 2.0f, at);                         // wrong
  e.table.rotate(x, x * 2.0f, at);                            // wrong
  e.table.rotate_vjp(x, x * 2.0f, at);                        // wrong
  e.table_of_rows.rotate(x, x * 2.0f);                        // wrong
  e.table_of_rows.rotate_vjp(x, x * 2.0f);                    // wrong
  e.alibi.add(x, x * 2.0f, at, at);                           // wrong
  posenc::softmax(x, x * 2.0f, e.alibi, at, at);              // wrong
  posenc::softmax_vjp(x, x * 2.0f);                           // wrong
  e.sinusoidal.scale_vjp(x * 2.0f, at);                       // wrong
  e.learned.add_vjp(m, at, x * 2.0f);                         // wrong
  e.token.embed_vjp(m, ids, x * 2.0f);                        // wrong
  e.token.embed_vjp_sparse(ids, x * 2.0f);                    // wrong
  e.token.logits(m, m * 2.0f);                                // wrong
  e.token.logits_vjp(m, m, m, m * 2.0f);                      // wrong
  e.alibi.add_vjp(slopes, x * 2.0f, at, at);                  // wrong
  const double slope = e.sinusoidal.scale_vjp(x * 2.0f, at);  // wrong
  static_cast<void>(slope);
}
