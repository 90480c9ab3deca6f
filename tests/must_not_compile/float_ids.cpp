// Ids are integers: a float tensor of ids is a mistake upstream.
#include "encoders.hpp"

void mistake(const Encoders& e, const posenc::Positions& at, Tensor3& x, Tensor2& m, const Tensor2& ids) {
  e.token.embed(x, ids);             // wrong
  e.token.embed_vjp(m, ids, x);      // wrong
  e.token.embed_vjp_sparse(ids, x);  // wrong
  e.layer.embed(x, ids, at);         // wrong
}
