// Where packed sequences end is a list.
#include "encoders.hpp"

void mistake(const Tensor2& x, const Ids& ids) {
  posenc::positions_from_cu_seqlens(x);    // wrong
  posenc::positions_from_cu_seqlens(ids);  // wrong
}
