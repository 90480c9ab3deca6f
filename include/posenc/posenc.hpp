#pragma once
// posenc: positional encodings for transformers, over Eigen tensors. Position enters a transformer in one of
// three places, and the folders say so:
//
//   embedding/   added to the token embeddings
//   rotary/      turns queries and keys
//   bias/        added to the attention scores
//
// core/ holds what they share. Every header also stands on its own. The readers of model files, posenc/io,
// are not included here.

// Rotary comes first because compilers print the way to a header before an error in it, and a forgotten
// Axes is one.
#include "posenc/rotary/rotary.hpp"

#include "posenc/bias/alibi.hpp"
#include "posenc/bias/masks.hpp"
#include "posenc/bias/relative.hpp"
#include "posenc/bias/rules/clipped.hpp"
#include "posenc/bias/rules/grid_offset.hpp"
#include "posenc/bias/rules/t5_buckets.hpp"
#include "posenc/bias/score_bias.hpp"
#include "posenc/bias/softmax.hpp"
#include "posenc/core/angles.hpp"
#include "posenc/core/checked.hpp"
#include "posenc/core/error.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/language.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/overlap.hpp"
#include "posenc/core/pack.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/power.hpp"
#include "posenc/core/scalar.hpp"
#include "posenc/core/stack.hpp"
#include "posenc/core/table.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"
#include "posenc/embedding/dropout.hpp"
#include "posenc/embedding/learned_positions.hpp"
#include "posenc/embedding/sinusoidal.hpp"
#include "posenc/embedding/token_embedding.hpp"
#include "posenc/embedding/transformer_embedding.hpp"
#include "posenc/rotary/attention_temperature.hpp"
#include "posenc/rotary/axes.hpp"
#include "posenc/rotary/convert_pairing.hpp"
#include "posenc/rotary/frequencies.hpp"
#include "posenc/rotary/kernel.hpp"
#include "posenc/rotary/key_rebase.hpp"
#include "posenc/rotary/pairing.hpp"
#include "posenc/rotary/per_row.hpp"
#include "posenc/rotary/position_grids.hpp"
#include "posenc/rotary/rotary_table.hpp"
#include "posenc/rotary/scaling.hpp"
#include "posenc/rotary/scaling/dynamic_ntk.hpp"
#include "posenc/rotary/scaling/explicit.hpp"
#include "posenc/rotary/scaling/linear.hpp"
#include "posenc/rotary/scaling/llama3.hpp"
#include "posenc/rotary/scaling/longrope.hpp"
#include "posenc/rotary/scaling/proportional.hpp"
#include "posenc/rotary/scaling/yarn.hpp"
#include "posenc/rotary/xpos.hpp"
#include "posenc/version.hpp"
