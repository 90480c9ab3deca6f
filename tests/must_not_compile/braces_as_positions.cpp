// The same for a list in braces.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, const Ids& ids) {
  e.sinusoidal.add(x, {0, 1, 2});                           // wrong
  e.sinusoidal.encode(x, {0, 1, 2});                        // wrong
  e.learned.add(x, x, {0, 1, 2});                           // wrong
  e.learned.embed(x, {0, 1, 2});                            // wrong
  e.layer.embed(x, ids, {0, 1, 2});                         // wrong
  e.rope.rotate(x, {0, 1, 2});                              // wrong
  e.rope.rotate(x, {0, 1, 2}, Axes::shd);                   // wrong
  e.rope.rotate_vjp(x, x, {0, 1, 2});                       // wrong
  e.rope.rotate_inverse(x, {0, 1, 2});                      // wrong
  e.table.rotate(x, {0, 1, 2});                             // wrong
  e.xpos.rotate_query(x, {0, 1, 2});                        // wrong
  e.rebase.apply(x, {0, 1, 2});                             // wrong
  e.temperature.scale(x, {0, 1, 2});                        // wrong
  e.alibi.add(x, {0, 1, 2}, at);                            // wrong
  posenc::softmax(x, e.alibi, at, {0, 1, 2});               // wrong
  posenc::rotate_per_row(x, e.ropes, e.choice, {0, 1, 2});  // wrong
}
