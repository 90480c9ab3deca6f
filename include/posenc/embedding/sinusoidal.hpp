#pragma once
// Sinusoidal position encoding, added to token embeddings.
//
// "Attention Is All You Need" (Vaswani et al. 2017), section 3.5, d = d_model:
//
//   PE(p, 2i)     = sin(p / 10000^(2i/d))
//   PE(p, 2i + 1) = cos(p / 10000^(2i/d))
//
// The first dimensions turn fastest: pair 0 by one radian per position, the last pair by little more than
// 1/10000. There is no table and no max_len: any position, also a negative one, is computed when it is asked
// for.
//
// Implementations differ in four independent choices, each an option here (defaults are the paper's):
//
//                              exponent                layout        order       first position
//   the paper, XLM, VideoMAE   two_i_over_d            interleaved   sin_first   0
//   Pegasus, CTRL, HF Marian   two_i_over_d            halves        sin_first   0
//   Marian, fairseq, Whisper   i_over_half_minus_one   halves        sin_first   0 (or roberta_positions)
//   tensor2tensor, OpenNMT     i_over_half_minus_one   halves        sin_first   1
//   MusicGen                   i_over_half_minus_one   halves        cos_first   0
//   Florence-2                 i_over_half             halves        sin_first   0
//
// Position p of a call is row p + first_position of the table that these implementations build, and
// padding_idx is a row of that table: XGLM's {first_position 2, padding_idx 1} starts with row 2, and its
// zeros stand at position -1.

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "posenc/core/angles.hpp"
#include "posenc/core/finite.hpp"
#include "posenc/core/mistakes.hpp"
#include "posenc/core/parallel.hpp"
#include "posenc/core/positions.hpp"
#include "posenc/core/power.hpp"
#include "posenc/core/tensor.hpp"
#include "posenc/core/tile.hpp"

namespace posenc {
inline namespace v0 {

/// The exponent e(i) of frequency i, base^-e(i). `half` is the number of frequencies.
enum class SinusoidExponent {
  two_i_over_d,           ///< 2i / d_model: the paper
  i_over_half_minus_one,  ///< i / (half - 1): the last frequency is exactly 1 / base. A single frequency
                          ///< is 1, as in tensor2tensor; fairseq divides by zero there
  i_over_half             ///< i / half: equals 2i / d_model where d_model is even
};

/// Where the sine and the cosine of a frequency stand.
enum class SinusoidLayout {
  interleaved,  ///< s0 c0 s1 c1 ...
  halves        ///< s0 s1 ... c0 c1 ...
};

/// Which function of a pair comes first.
enum class SinusoidOrder { sin_first, cos_first };

/// What the last column is when d_model is odd.
enum class OddDim {
  refuse,       ///< an odd d_model is an error
  zero_last,    ///< zero, after floor(d/2) whole pairs: fairseq
  longer_first  ///< the first function alone, at one frequency more: Marian, and the paper's formula read
                ///< literally
};

/// The choices in which implementations differ; the defaults are the paper's.
struct SinusoidalConfig {
  std::optional<Index> d_model = std::nullopt;  ///< the width of a row; TransformerEmbedding alone
                                                ///< can do without: its tokens have one
  double base = 10000.0;                        ///< the slowest frequency is about 1 / base
  SinusoidExponent exponent = SinusoidExponent::two_i_over_d;  ///< the rule of frequency i
  SinusoidLayout layout = SinusoidLayout::interleaved;         ///< where sine and cosine stand
  SinusoidOrder order = SinusoidOrder::sin_first;              ///< which of them comes first
  OddDim odd_dim = OddDim::refuse;                             ///< the last column of an odd d_model
  Position first_position = 0;  ///< position p is row p + first_position: 1 in tensor2tensor, 2 in XGLM
  std::optional<Position> padding_idx = std::nullopt;  ///< the row that is zero, first_position counted
                                                       ///< in: fairseq
  double scale = 1.0;                                  ///< multiplies every value
};

namespace detail {

inline void require_valid(const SinusoidalConfig& config) {
  if (!config.d_model) invalid("d_model: expected the width of a row, got nothing");
  if (*config.d_model <= 0) invalid("d_model: expected at least 1, got ", *config.d_model);
  require_width("d_model", *config.d_model);
  if (*config.d_model % 2 != 0 && config.odd_dim == OddDim::refuse)
    invalid("d_model: expected an even number (or an odd_dim rule for the last column), got ",
            *config.d_model);
  if (!is_positive(config.base)) invalid("base: expected a positive finite number, got ", config.base);
  if (!is_finite(config.scale)) invalid("scale: expected a finite number, got ", config.scale);
  if (config.first_position < -largest_position || config.first_position > largest_position)
    out_of_range("first_position: expected a position within 2^60 of zero, got ", config.first_position);
}

}  // namespace detail

/// The frequencies of a configuration, in radians per position, fastest first: d_model / 2 of them (rounded
/// up for OddDim::longer_first). Throws std::invalid_argument for a configuration that defines none.
inline std::vector<double> sinusoidal_frequencies(const SinusoidalConfig& config) {
  detail::require_valid(config);
  const Index d_model = *config.d_model,
              half = (d_model + (config.odd_dim == OddDim::longer_first ? 1 : 0)) / 2;
  switch (config.exponent) {
    case SinusoidExponent::two_i_over_d: return detail::falling_powers(config.base, 2, d_model, half);
    case SinusoidExponent::i_over_half_minus_one:
      return detail::falling_powers(config.base, 1, (std::max)(half - 1, Index{1}), half);
    case SinusoidExponent::i_over_half: return detail::falling_powers(config.base, 1, half, half);
  }
  return {};
}

/// The encoder: an immutable value, cheap to copy, shared freely between threads.
class Sinusoidal {
 public:
  /// Throws std::invalid_argument for a configuration without a meaning, std::out_of_range for a
  /// first_position beyond 2^60.
  explicit Sinusoidal(const SinusoidalConfig& config) : Sinusoidal(config, sinusoidal_frequencies(config)) {}

  /// With frequencies of your own (radians per position) in place of the exponent rule; as many as the rule
  /// has.
  Sinusoidal(const SinusoidalConfig& config, const std::vector<double>& frequencies)
      : config_(config), angles_(frequencies) {
    detail::require_valid(config);
    const Index half = (*config.d_model + (config.odd_dim == OddDim::longer_first ? 1 : 0)) / 2;
    detail::require_equal("frequencies", half, angles_.size());
  }

  /// What it was made from.
  const SinusoidalConfig& config() const { return config_; }
  /// The width of a row.
  Index d_model() const { return *config_.d_model; }

  /// x += PE(at), in place. x: (seq, d_model) or (batch, seq, d_model); `at` has seq positions, shared or per
  /// row. Throws std::invalid_argument where the shapes don't fit. The gradient with respect to x is the
  /// identity.
  template <writable_tensor X>
  void add(X&& x, const Positions& at) const {
    add(Eigen::DefaultDevice(), x, x, at);
  }
  /// The same on a device.
  template <device D, writable_tensor X>
  void add(const D& device, X&& x, const Positions& at) const {
    add(device, x, x, at);
  }

  /// out = x + PE(at). out is x itself or memory apart from it.
  template <writable_tensor Out, readable_beside<Out> X>
  void add(Out&& out, const X& x, const Positions& at) const {
    add(Eigen::DefaultDevice(), out, x, at);
  }
  /// The same on a device.
  template <device D, writable_tensor Out, readable_beside<Out> X>
  void add(const D& device, Out&& out, const X& x, const Positions& at) const {
    const auto checked = detail::out_and_in("out", out, "x", x);
    add_views<scalar_of<Out>>(device, detail::as_bsd(checked.out), detail::as_bsd(checked.in), at);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InOrOutOfPlace, Args...> add(Args&&...) const;

  /// out = PE(at). out: (seq, d_model) or (batch, seq, d_model).
  template <writable_tensor Out>
  void encode(Out&& out, const Positions& at) const {
    encode(Eigen::DefaultDevice(), out, at);
  }
  /// The same on a device.
  template <device D, writable_tensor Out>
  void encode(const D& device, Out&& out, const Positions& at) const {
    using S = scalar_of<Out>;
    encode_views<S>(device, detail::as_bsd(detail::output_view("out", out)), at);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::InPlace, Args...> encode(Args&&...) const;

  /// The rows of positions first, first + 1, ... as a (count, d_model) tensor, for those who want to look at
  /// it.
  template <scalar_type S = float>
  Eigen::Tensor<S, 2, Eigen::RowMajor> table(Index count, Position first = 0) const {
    const Positions at = consecutive(first, count);
    (void)detail::checked_count("table", count, d_model());
    Eigen::Tensor<S, 2, Eigen::RowMajor> rows(count, d_model());
    encode(rows, at);
    return rows;
  }

  /// d(loss) / d(scale) given dy = d(loss) / d(out): for a learned scale (alpha of SpeechT5 and
  /// Transformer-TTS). dy: (seq, d_model) or (batch, seq, d_model). Summed in double, in logical order.
  template <readable_tensor Dy>
  double scale_vjp(const Dy& dy, const Positions& at) const {
    using S = scalar_of<Dy>;
    const View<const S, 3> g = detail::as_bsd(detail::input_view(dy));
    require_fit(g, at, "dy");
    return scale_gradient<S>(g, at);
  }

  /// A wrong call: the compiler says what is wrong with it.
  template <class... Args>
  detail::refused<detail::Roles<detail::Role::in>, Args...> scale_vjp(Args&&...) const;

  /// row[c] = PE(position, first + c) for c in [0, columns): the definition, for kernels that fuse it.
  template <std::floating_point C>
  void encode_row(Position position, Index first, Index columns, C* row) const {
    detail::AngleScratch<C>::with(
        [&](detail::AngleScratch<C>& scratch) { encode_row(scratch, position, first, columns, row); });
  }
  /// The same with scratch of the caller's, which neighbouring positions profit from.
  template <std::floating_point C>
  void encode_row(detail::AngleScratch<C>& scratch, Position position, Index first, Index columns,
                  C* row) const {
    encode_row(scratch, position, first, columns, row, config_.scale);
  }

 private:
  template <class T>
  void require_fit(const View<T, 3>& x, const Positions& at, const char* name) const {
    if (x.extent(2) != d_model())
      detail::invalid(name, ": expected ", d_model(), " features (d_model) on the last axis, got ",
                      x.extent(2));
    detail::require_positions("at", at, x.extent(0), x.extent(1));
  }

  // The verbs end here whatever tensor they were called with, so each scalar type compiles the kernel once.
  template <scalar_type S, device D>
  void add_views(const D& device, const View<S, 3>& out, const View<const S, 3>& in,
                 const Positions& at) const {
    require_fit(out, at, "x");
    using C = compute_t<S>;
    detail::map_tiles<S, detail::AngleScratch<C>>(
        device, out, at.rows() == 1,
        [&](detail::AngleScratch<C>& scratch, const detail::Tile& tile, C* rows) {
          encode_tile(scratch, at, tile, rows);
        },
        [&](const detail::Tile& tile, const compute_t<S>* encoding, compute_t<S>* sum) {
          detail::add_tile(tile.of(in), encoding, sum);
        });
  }

  template <scalar_type S, device D>
  void encode_views(const D& device, const View<S, 3>& out, const Positions& at) const {
    require_fit(out, at, "out");
    using C = compute_t<S>;
    detail::map_tiles<S, detail::AngleScratch<C>>(
        device, out, at.rows() == 1,
        [&](detail::AngleScratch<C>& scratch, const detail::Tile& tile, C* rows) {
          encode_tile(scratch, at, tile, rows);
        },
        [](const detail::Tile& tile, const compute_t<S>* encoding, compute_t<S>* result) {
          std::copy_n(encoding, tile.rows * tile.columns, result);
        });
  }

  // Each row goes through a packed buffer, so that one loop adds it up whatever the strides: a compiler that
  // contracts a * b + c would round the versions of a strided loop differently.
  template <scalar_type S>
  double scale_gradient(const View<const S, 3>& dy, const Positions& at) const {
    double sum = 0;
    constexpr Index block = detail::tile_elements<double>;
    alignas(64) std::array<compute_t<S>, std::size_t{block}> gradient;
    alignas(64) std::array<double, std::size_t{block}> encoding;
    for (Index b = 0; b < dy.extent(0); ++b)
      for (Index s = 0; s < dy.extent(1); ++s)
        for (Index first = 0; first < d_model(); first += block) {
          const Index columns = (std::min)(block, d_model() - first);
          detail::load_tile(detail::Tile{b, s, 1, first, columns}.of(dy), gradient.data());
          detail::AngleScratch<double>::with([&](detail::AngleScratch<double>& scratch) {
            encode_row(scratch, at(b, s), first, columns, encoding.data(), 1.0);
          });
          for (std::size_t c = 0; c < static_cast<std::size_t>(columns); ++c)
            sum += static_cast<double>(gradient[c]) * encoding[c];
        }
    return sum;
  }

  template <std::floating_point C>
  void encode_tile(detail::AngleScratch<C>& scratch, const Positions& at, const detail::Tile& tile,
                   C* rows) const {
    for (Index r = 0; r < tile.rows; ++r)
      encode_row(scratch, at(tile.batch, tile.seq + r), tile.first, tile.columns, rows + r * tile.columns,
                 config_.scale);
  }

  template <std::floating_point C>
  void encode_row(detail::AngleScratch<C>& scratch, Position position, Index first, Index columns, C* row,
                  double scale) const {
    const Position table_row = position + config_.first_position;
    if (table_row == config_.padding_idx) {
      std::fill_n(row, columns, C{0});
      return;
    }
    constexpr Index block = detail::tile_elements<C>;
    alignas(64) std::array<C, std::size_t{block}> cos, sin;
    const bool interleaved = config_.layout == SinusoidLayout::interleaved;
    const Index pairs = angles_.size(), last = first + columns;
    // Column of pair i: `step` i for the first function of the pair, `step` i + `gap` for the second.
    const Index step = interleaved ? 2 : 1, gap = interleaved ? 1 : pairs;
    const Index d = d_model(), zero = d % 2 != 0 && config_.odd_dim == OddDim::zero_last ? d - 1 : d;
    for (Index i = 0; i < pairs; i += block) {
      const Index n = (std::min)(block, pairs - i);
      const auto meets = [&](Index offset) {
        return i * step + offset < last && (i + n - 1) * step + offset >= first;
      };
      if (!meets(0) && !meets(gap)) continue;
      const auto same = [&](Index) { return table_row; };
      angles_.cos_sin_rows(scratch, same, 1, i, n, cos.data(), sin.data(), 0, scale);
      const bool sin_first = config_.order == SinusoidOrder::sin_first;
      const C *const one = sin_first ? sin.data() : cos.data(), *const two =
                                                                    sin_first ? cos.data() : sin.data();
      if (interleaved && 2 * i >= first && 2 * (i + n) <= (std::min)(last, zero)) {
        detail::interleave(one, two, n, row + 2 * i - first);
        continue;
      }
      for (const bool second : {false, true}) {
        const C* values = second ? two : one;
        const Index offset = second ? gap : 0;
        // The pairs of this block whose column lies in [first, min(last, zero)).
        const Index end = (std::min)(last, zero);
        const Index lo = (std::max)(i, (first - offset + step - 1) / step);
        const Index hi = (std::min)(i + n, end - offset <= 0 ? Index{0} : (end - offset + step - 1) / step);
        for (Index j = (std::max)(lo, Index{0}); j < hi; ++j) row[j * step + offset - first] = values[j - i];
      }
    }
    if (zero < last && zero >= first) row[zero - first] = C{0};
  }

  SinusoidalConfig config_;
  detail::Angles angles_;
};

}  // namespace v0
}  // namespace posenc
