// Heads have at most a batch and a sequence around them.
#include "posenc/posenc.hpp"

#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Eigen::Tensor<float, 5>& q) {
  e.rope.rotate(q, at);                                          // wrong
  e.rope.rotate(q, at, Axes::bshd);                              // wrong
  e.rope.shift(q, 3, Axes::bshd);                                // wrong
  e.table.rotate(q, at, Axes::bshd);                             // wrong
  e.xpos.rotate_query(q, at, Axes::bshd);                        // wrong
  e.rebase.apply(q, at, Axes::bshd);                             // wrong
  e.temperature.scale(q, at, Axes::bshd);                        // wrong
  posenc::rotate_per_row(q, e.ropes, e.choice, at, Axes::bshd);  // wrong
}
