// Positions are integers, or coordinates(values).
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor4& q, const Tensor2& ids) {
  e.rope.rotate(q, posenc::position_ids(ids), Axes::bshd);  // wrong
}
