#pragma once
// What the live page computes, as C functions over the headers: compiled to WebAssembly for the page, and
// natively for posenc_live_numbers, which prints the same numbers.
//
// Each function leaves its numbers in one buffer and returns how many there are; live_values() points to them
// until the next call. Arguments have the ranges of the page's controls: posenc's own checks catch the rest,
// which in WebAssembly, without exceptions, ends the program.

extern "C" {

const double* live_values();

/// Room for `bytes` bytes of text, to be filled before a call that reads it.
char* live_text(int bytes);

/// The frequencies of a sinusoidal encoding, in radians per position: d_model / 2 of them.
int live_sinusoidal_frequencies(int d_model, double base);

/// Rows of a sinusoidal encoding, (count, dims): row k stands at position (first + k) / per_position.
/// per_position is a power of two, so that the fraction is exact.
int live_sinusoidal_rows(int d_model, double base, double first, int per_position, int count, int dims);

/// One self-attention layer on two sentences, which stand in live_text one after the other. With n and m
/// words (at most live_longest_sentence): n, m, then for each of none, sinusoidal, learned, RoPE, ALiBi and
/// causal ALiBi: by how much the readings of the two differ, the attention weights of the first sentence,
/// (heads, n, n), and of the second, (heads, m, m). Nothing where a sentence has no word.
int live_attention(int bytes_of_first, int bytes_of_second);

/// How RoPE is scaled. Unused numbers of a scheme may be anything.
///   0 none
///   1 linear         factor
///   2 dynamic NTK    factor, trained, length
///   3 NTK, fixed     factor (alpha)
///   4 YaRN           factor, trained, first = beta_fast, second = beta_slow
///   5 Llama 3        factor, trained, first = low_freq_factor, second = high_freq_factor
///   6 proportional   first = partial_rotary_factor
/// The attention factor; the frequencies before, head_dim / 2 of them; and after.
int live_rope_frequencies(int scheme, int head_dim, double theta, double factor, double trained,
                          double length, double first, double second);

/// Scores against the distance, for a query and a key of ones: (distances, 3) of the distance, q k / head_dim
/// without scaling, and with it. Distances from 0 to 2^octaves, every integer at first, then 32 an octave.
int live_rope_scores(int octaves, int scheme, int head_dim, double theta, double factor, double trained,
                     double length, double first, double second);

/// ALiBi: the slopes of the heads.
int live_alibi_slopes(int num_heads);

/// ALiBi's bias of one head for `size` queries and keys, (size, size). form: 0 symmetric, 1 causal, 2 key
/// position.
int live_alibi_matrix(int num_heads, int head, int form, int size);

/// ALiBi's bias of every head at one distance, the key before the query.
int live_alibi_at(int num_heads, double distance);

/// cos and sin of every pair of a head at one position, (pairs, 7): the frequency, then cos and sin from
/// exact angles in float, from exact angles in double, and from float32 angles.
int live_angles(int head_dim, double theta, double position);

}  // extern "C"

/// Sentences are cut off after so many words.
inline constexpr int live_longest_sentence = 12;
