// A list says neither that it is explicit positions nor that it is starts.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, const Ids& ids,
             const std::vector<int>& list) {
  e.sinusoidal.add(x, list);                           // wrong
  e.sinusoidal.encode(x, list);                        // wrong
  e.learned.add(x, x, list);                           // wrong
  e.learned.embed(x, list);                            // wrong
  e.layer.embed(x, ids, list);                         // wrong
  e.rope.rotate(x, list);                              // wrong
  e.rope.rotate(x, list, Axes::shd);                   // wrong
  e.rope.rotate_vjp(x, x, list);                       // wrong
  e.rope.rotate_inverse(x, list);                      // wrong
  e.table.rotate(x, list);                             // wrong
  e.xpos.rotate_query(x, list);                        // wrong
  e.rebase.apply(x, list);                             // wrong
  e.temperature.scale(x, list);                        // wrong
  e.alibi.add(x, list, at);                            // wrong
  posenc::softmax(x, e.alibi, at, list);               // wrong
  posenc::rotate_per_row(x, e.ropes, e.choice, list);  // wrong
}
