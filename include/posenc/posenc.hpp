#pragma once
// posenc: positional encodings for transformers, over Eigen tensors. Position enters a transformer in one of
// three places, and the folders say so:
//
//   embedding/   added to the token embeddings
//   rotary/      turns queries and keys
//   bias/        added to the attention scores
//
// core/ holds what they share. Every header also stands on its own.

#include "posenc/bias/alibi.hpp"
#include "posenc/core/angles.hpp"
#include "posenc/core/error.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/scalar.hpp"
#include "posenc/core/table.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"
#include "posenc/embedding/dropout.hpp"
#include "posenc/embedding/learned_positions.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/embedding/token_embedding.hpp"
#include "posenc/embedding/transformer_embedding.hpp"
#include "posenc/rotary/convert_pairing.hpp"
#include "posenc/rotary/frequencies.hpp"
#include "posenc/rotary/kernel.hpp"
#include "posenc/rotary/pairing.hpp"
#include "posenc/rotary/rotary.hpp"
#include "posenc/rotary/rotary_table.hpp"
#include "posenc/version.hpp"
