// Four axes: (batch, seq, heads, dim) or (batch, heads, seq, dim)? The caller must say.
#include "posenc/posenc.hpp"

#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor4& q, const Tensor4& x) {
  e.rope.rotate(q, at);                              // wrong
  e.rope.rotate(q, x, at);                           // wrong
  e.rope.rotate_vjp(q, at);                          // wrong
  e.rope.rotate_inverse(q, at);                      // wrong
  e.rope.shift(q, 3);                                // wrong
  e.table.rotate(q, at);                             // wrong
  e.table.rotate(q, x, at);                          // wrong
  e.table_of_rows.rotate(q);                         // wrong
  e.xpos.rotate_query(q, at);                        // wrong
  e.xpos.rotate_key_vjp(q, at);                      // wrong
  e.rebase.apply(q, at);                             // wrong
  e.temperature.scale(q, at);                        // wrong
  posenc::rotate_per_row(q, e.ropes, e.choice, at);  // wrong
}
