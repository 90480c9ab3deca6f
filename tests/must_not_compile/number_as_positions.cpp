// 5: the fifth position, or five of them?
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, const Ids& ids) {
  e.sinusoidal.add(x, 5);                           // wrong
  e.sinusoidal.encode(x, 5);                        // wrong
  e.learned.add(x, x, 5);                           // wrong
  e.learned.embed(x, 5);                            // wrong
  e.layer.embed(x, ids, 5);                         // wrong
  e.rope.rotate(x, 5);                              // wrong
  e.rope.rotate(x, 5, Axes::shd);                   // wrong
  e.rope.rotate_vjp(x, x, 5);                       // wrong
  e.rope.rotate_inverse(x, 5);                      // wrong
  e.table.rotate(x, 5);                             // wrong
  e.xpos.rotate_query(x, 5);                        // wrong
  e.rebase.apply(x, 5);                             // wrong
  e.temperature.scale(x, 5);                        // wrong
  e.alibi.add(x, 5, at);                            // wrong
  posenc::softmax(x, e.alibi, at, 5);               // wrong
  posenc::rotate_per_row(x, e.ropes, e.choice, 5);  // wrong
}
