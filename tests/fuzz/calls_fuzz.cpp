// libFuzzer target of the library's calls: extents, strides, positions and options of any value, in every
// constructor and verb.
//
// A call returns or throws std::invalid_argument or std::out_of_range with a message of posenc's, and one
// that throws has written nothing. Tensors that have elements lie in memory that is there; all others may
// say what they like. Sizes that a call allocates are a few or absurd, so that the machine's memory is never
// what decides.

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "fuzz/choices.hpp"
#include "posenc/posenc.hpp"

namespace {

using posenc::Axes;
using posenc::Index;
using posenc::Pairing;
using posenc::Position;
using posenc::Positions;
using posenc::View;
using posenc::Window;

constexpr std::int64_t edges[] = {std::numeric_limits<std::int64_t>::min(),
                                  std::numeric_limits<std::int64_t>::max(),
                                  std::int64_t{1} << 62,
                                  -(std::int64_t{1} << 62),
                                  std::int64_t{1} << 61,
                                  std::int64_t{1} << 60,
                                  -(std::int64_t{1} << 60),
                                  std::int64_t{1} << 48,
                                  std::int64_t{1} << 32,
                                  std::int64_t{1} << 31,
                                  -(std::int64_t{1} << 31),
                                  std::int64_t{1} << 41};
constexpr double reals[] = {0,
                            1,
                            0.1,
                            0.5,
                            2,
                            10000,
                            1e300,
                            -1,
                            1e60,
                            1e-300,
                            8192,
                            -1e18,
                            9.3e18,
                            std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::quiet_NaN()};

/// Memory that a call may write, and what was in it.
struct Memory {
  std::vector<float> floats;
  std::vector<float> before;
};

class Calls {
 public:
  Calls(const std::uint8_t* data, std::size_t size) : choices_(data, size), shared_(some_memory(256)) {}

  void run() {
    while (choices_.left()) {
      try {
        for (auto& memory : owned_) memory->before = memory->floats;
        call(choices_.byte() % 14);
      } catch (const std::invalid_argument& error) {
        refused(error.what());
      } catch (const std::out_of_range& error) {
        refused(error.what());
      }
    }
  }

 private:
  void refused(std::string_view message) {
    if (message.substr(0, 8) != "posenc: ") std::abort();
    for (const auto& memory : owned_)
      if (std::memcmp(memory->floats.data(), memory->before.data(), 4 * memory->floats.size()) != 0)
        std::abort();
  }

  // ---- Numbers.
  std::int64_t any() {
    switch (choices_.byte() % 4) {
      case 0: return choices_.one_of(edges);
      case 1:
        return static_cast<std::int64_t>(static_cast<std::uint64_t>(choices_.one_of(edges)) +
                                         choices_.byte() % 8 - 4);
      case 2: return static_cast<std::int64_t>(choices_.number(8));
      default: return few();
    }
  }
  std::int64_t few() { return choices_.byte() % 10 - 2; }
  std::int64_t small() { return choices_.byte() % 6; }
  /// A size that is allocated.
  std::int64_t size() {
    const std::int64_t n = any();
    return n < 10 || n > std::int64_t{1} << 40 ? n : small();
  }
  /// Mostly right.
  std::int64_t or_any(std::int64_t usual) { return choices_.byte() % 8 == 0 ? any() : usual; }
  std::int64_t or_size(std::int64_t usual) { return choices_.byte() % 8 == 0 ? size() : usual; }
  double real() {
    return choices_.byte() % 4 == 0 ? std::bit_cast<double>(choices_.number(8)) : choices_.one_of(reals);
  }
  double or_real(double usual) { return choices_.byte() % 8 == 0 ? real() : usual; }
  template <class E>
  E one(int count) {
    return static_cast<E>(choices_.byte() % count);
  }
  std::optional<Position> maybe() {
    return choices_.byte() % 4 == 0 ? std::optional<Position>(any()) : std::nullopt;
  }

  // ---- Tensors.
  float* some_memory(std::size_t n) {
    owned_.push_back(std::make_unique<Memory>());
    owned_.back()->floats.assign(n, 0.5f);
    owned_.back()->before = owned_.back()->floats;
    return owned_.back()->floats.data();
  }
  static bool is_empty(const auto& extents) {
    return std::any_of(extents.begin(), extents.end(), [](Index n) { return n == 0; });
  }
  template <std::size_t Rank>
  View<float, Rank> tensor(std::array<Index, Rank> extents) {
    std::array<Index, Rank> strides{};
    switch (choices_.byte() % 16) {
      case 0:  // of no elements, over memory or none: it may say what it likes
        for (Index& n : extents) n = or_any(n);
        for (Index& stride : strides) stride = any();
        if (!is_empty(extents)) extents[static_cast<std::size_t>(choices_.byte()) % Rank] = 0;
        return {choices_.byte() % 2 == 0 ? nullptr : shared_, extents, strides};
      case 1:  // no memory
        for (Index& n : extents) n = or_any(n);
        if (choices_.byte() % 2 == 0) return {nullptr, extents};
        for (Index& stride : strides) stride = any();
        return {nullptr, extents, strides};
      case 2:  // a part of the memory that calls share
        for (Index& n : extents) n = choices_.byte() % 8 == 0 ? small() : n;
        for (Index& stride : strides) stride = choices_.byte() % 17 - 8;
        return in(shared_, 256, extents, strides);
      case 3:
        for (Index& n : extents) n = choices_.byte() % 8 == 0 ? small() : n;
        break;
      default: break;
    }
    if (*std::min_element(extents.begin(), extents.end()) < 0 ||
        *std::max_element(extents.begin(), extents.end()) > 9)
      return {nullptr, extents};
    std::array<std::size_t, Rank> order{};
    for (std::size_t n = 0; n < Rank; ++n) order[n] = n;
    const std::size_t swapped = choices_.byte() % 4 == 0 ? choices_.byte() % Rank : Rank - 1;
    std::swap(order[swapped], order[Rank - 1]);
    Index step = 1;
    for (std::size_t n = Rank; n-- > 0;)
      strides[order[n]] = step, step *= (std::max)(extents[order[n]], Index{1});
    if (choices_.byte() % 4 == 0 && step <= 200) return in(shared_, 256, extents, strides);
    return {some_memory(static_cast<std::size_t>(step)), extents, strides};
  }
  /// Of these extents and strides somewhere in n numbers; of fewer where they don't fit.
  template <std::size_t Rank>
  View<float, Rank> in(float* memory, Index n, std::array<Index, Rank> extents,
                       const std::array<Index, Rank>& strides) {
    Index low = 0, high = 0;
    for (std::size_t axis = 0; axis < Rank; ++axis) {
      extents[axis] = std::clamp(extents[axis], Index{0}, Index{9});
      const Index way = (std::max)(extents[axis] - 1, Index{0}) * strides[axis];
      (way < 0 ? low : high) += way;
    }
    if (high - low >= n) return in(memory, n, std::array<Index, Rank>{}, strides);
    return {memory - low + choices_.byte() % (n - (high - low)), extents, strides};
  }

  // ---- Positions.
  Positions positions(Index count) {
    Positions at = positions_of(count);
    if (choices_.byte() % 8 == 0) at = on_axes(at, or_any(2));
    if (choices_.byte() % 8 == 0) at = at.shifted(any());
    if (choices_.byte() % 8 == 0) at = at.shifted(any());
    if (choices_.byte() % 8 == 0) at = at.row(few());
    if (choices_.byte() % 8 == 0) at = at.axis(few());
    if (choices_.byte() % 8 == 0) at = at.reversed_axes();
    return at;
  }
  Positions positions_of(Index count) {
    switch (choices_.byte() % 16) {
      case 0: return posenc::consecutive(any(), count);
      case 1: return posenc::consecutive(any(), any());
      case 2: return posenc::consecutive(integers<1>({small()}), or_any(count));
      case 3: return posenc::position_ids(integers<2>({small(), count}));
      case 4: {
        const auto ids = integers<2>({small(), count});
        ids_.push_back(ids);
        return posenc::borrowed_position_ids(ids_.back());
      }
      case 5: return posenc::axis_positions(integers<3>({small(), small(), count}));
      case 6: return posenc::positions_from_mask(integers<2>({small(), count}), any());
      case 7: return posenc::positions_from_cu_seqlens(std::vector<Position>{or_any(0), size()});
      case 8: return posenc::roberta_positions(integers<2>({small(), count}), any());
      case 9: return posenc::grid_positions({size(), size(), size()}, or_any(0));
      case 10: return posenc::merge_block_positions(size(), size(), size(), size());
      case 11: return posenc::patch_centers(size(), size());
      case 12: {
        const posenc::MropeSegment segments[] = {{.text = or_size(2)},
                                                 {.frames = or_size(2),
                                                  .rows = or_size(1),
                                                  .columns = or_size(2),
                                                  .interval = or_real(1),
                                                  .start = maybe(),
                                                  .spatial_start = maybe()},
                                                 {.text = or_size(1), .start = maybe()}};
        return posenc::mrope_positions(segments).at;
      }
      case 13: {
        std::vector<Positions> rows;
        for (Index n = small(); n > 0; --n) rows.push_back(posenc::consecutive(any(), small()));
        return posenc::stacked(rows, size(), choices_.byte() % 2 == 0, or_any(0));
      }
      case 14: {
        std::vector<posenc::Coordinate> values;
        for (Index n = small(); n > 0; --n)
          values.push_back(choices_.byte() % 2 == 0 ? posenc::Coordinate::of(real())
                                                    : posenc::Coordinate::ratio(any(), any()));
        return posenc::coordinates(values, or_any(1));
      }
      default: return posenc::consecutive(small(), count);
    }
  }
  /// Integers over memory of their own, mostly small ones, or none at all.
  template <std::size_t Rank>
  View<const Position, Rank> integers(std::array<Index, Rank> extents) {
    std::array<Index, Rank> strides{};
    if (choices_.byte() % 8 == 0) {
      for (Index& n : extents) n = or_any(n);
      for (Index& stride : strides) stride = any();
      if (!is_empty(extents)) extents[0] = 0;
      return {nullptr, extents, strides};
    }
    Index count = 1;
    for (Index& n : extents) n = std::clamp(n, Index{0}, Index{9}), count *= n;
    integers_.push_back(std::vector<Position>(static_cast<std::size_t>(count)));
    for (Position& value : integers_.back()) value = or_any(small());
    return {integers_.back().data(), extents};
  }

  // ---- Encoders.
  posenc::RotaryFrequencies frequencies() {
    if (choices_.byte() % 4 != 0) return posenc::rotary_frequencies({.head_dim = 6});
    posenc::RotaryFrequencies f;
    f.head_dim = or_any(6);
    for (Index n = small(); n > 0; --n) f.inv_freq.push_back(or_real(0.5));
    f.attention_factor = or_real(1);
    if (choices_.byte() % 2 == 0)
      for (std::size_t n = 0; n < f.inv_freq.size(); ++n) f.axis.push_back(static_cast<int>(or_any(small())));
    return f;
  }
  posenc::Rotary rotary() {
    const Window windows[] = {Window::leading(), Window::trailing()};
    const Window window = choices_.byte() % 8 == 0 ? Window::starting_at(any()) : choices_.one_of(windows);
    return posenc::Rotary(frequencies(), one<Pairing>(4), window, one<posenc::AngleMode>(2));
  }
  std::array<Index, 4> heads() { return {1 + small() % 2, small(), 1 + small() % 3, or_any(6)}; }
  posenc::Alibi alibi() {
    return posenc::Alibi(posenc::AlibiConfig{.num_heads = or_size(3),
                                             .alibi_bias_max = or_real(8),
                                             .form = one<posenc::AlibiForm>(3),
                                             .scale = or_real(1),
                                             .head_offset = or_any(0)});
  }
  posenc::SinusoidalConfig sinusoidal() {
    return {.d_model = or_size(4),
            .base = or_real(10000),
            .exponent = one<posenc::SinusoidExponent>(3),
            .layout = one<posenc::SinusoidLayout>(2),
            .order = one<posenc::SinusoidOrder>(2),
            .odd_dim = one<posenc::OddDim>(3),
            .first_position = or_any(0),
            .padding_idx = maybe(),
            .scale = or_real(1)};
  }
  posenc::LearnedPositions<float> learned() {
    return posenc::LearnedPositions<float>(tensor<2>({5, 4}), {.offset = or_any(0), .padding_idx = maybe()});
  }
  posenc::TokenEmbedding<float> token() {
    return posenc::TokenEmbedding<float>(tensor<2>({5, 4}), {.scale = or_real(2), .padding_idx = maybe()});
  }

  // ---- Calls.
  void call(int which) {
    switch (which) {
      case 0: return views();
      case 1: return (void)positions(any());
      case 2: return rotations();
      case 3: return tables();
      case 4: return more_rotations();
      case 5: return sinusoids();
      case 6: return lookups();
      case 7: return token_gradients();
      case 8: return layers();
      case 9: return dropouts();
      case 10: return biases();
      case 11: return softmaxes();
      case 12: return conversions();
      default: return frequency_rules();
    }
  }

  void views() {
    std::array<Index, 3> extents{any(), any(), any()}, strides{any(), any(), any()};
    float* const data = choices_.byte() % 2 == 0 ? nullptr : shared_;
    View<float, 3> x =
        choices_.byte() % 2 == 0 ? View<float, 3>(data, extents) : View<float, 3>(data, extents, strides);
    if (x.size() != 0 && data == nullptr) std::abort();
    x = x.permute({choices_.byte() % 3u, choices_.byte() % 3u, choices_.byte() % 3u});
    x = x.slice(choices_.byte() % 4u, any(), any());
    (void)posenc::split_heads(x, any());
    Eigen::TensorMap<Eigen::Tensor<float, 3>> map(data, extents[0], extents[1], extents[2]);
    (void)posenc::view(map);
  }
  void rotations() {
    const posenc::Rotary rope = rotary();
    const auto extents = heads();
    const auto axes = choices_.byte() % 2 == 0 ? Axes::bshd : Axes::bhsd;
    const auto x = tensor<4>(extents);
    const Positions at = positions(x.extent(axes == Axes::bshd ? 1 : 2));
    switch (choices_.byte() % 6) {
      case 0: return rope.rotate(x, at, axes);
      case 1: return rope.rotate(tensor<4>(x.extents()), x, at, axes);
      case 2: return rope.rotate_vjp(tensor<4>(x.extents()), x, at, axes);
      case 3: return rope.rotate_inverse(x, at, axes);
      case 4: {
        const std::vector<Position> deltas(static_cast<std::size_t>(small()), any());
        return rope.shift(x, deltas, axes);
      }
      default: {
        const std::array<Index, 2> table{small(), or_any(3)};
        const auto cos = tensor<2>(table);
        return rope.cos_sin(cos, tensor<2>(cos.extents()), positions(cos.extent(0)));
      }
    }
  }
  void tables() {
    const auto cos = tensor<2>({5, 3});
    const posenc::RotaryTable<float, 2> rope(cos, tensor<2>(cos.extents()), one<Pairing>(4),
                                             Window::leading(), one<posenc::TableWidth>(2));
    const auto x = tensor<4>(heads());
    const Positions at = positions(x.extent(1));
    switch (choices_.byte() % 4) {
      case 0: return rope.rotate(x, at, Axes::bshd);
      case 1: return rope.rotate_vjp(tensor<4>(x.extents()), x, at, Axes::bshd);
      default: break;
    }
    const auto rows = tensor<3>({1, x.extent(1), 3});
    const posenc::RotaryTable<float, 3> of_tokens(rows, tensor<3>(rows.extents()), Pairing::half);
    of_tokens.rotate(x, Axes::bshd);
  }
  void more_rotations() {
    const auto x = tensor<4>(heads());
    const Positions at = positions(x.extent(1));
    switch (choices_.byte() % 4) {
      case 0: return posenc::KeyRebase(rotary(), rotary()).apply(x, at, Axes::bshd);
      case 1: {
        const std::vector<posenc::Rotary> ropes(2, rotary());
        const std::vector<Index> choice(static_cast<std::size_t>(x.extent(0) < 9 ? x.extent(0) : 0),
                                        or_any(1));
        return posenc::rotate_per_row(x, ropes, choice, at, Axes::bshd);
      }
      case 2: {
        const posenc::Xpos xpos(rotary(),
                                {.gamma = or_real(0.4), .scale_base = or_real(512), .centre = or_any(0)});
        (void)xpos.decay(any(), any());
        return choices_.byte() % 2 == 0 ? xpos.rotate_query(x, at, Axes::bshd)
                                        : xpos.rotate_key_vjp(x, at, Axes::bshd);
      }
      default: {
        const posenc::AttentionTemperature t(
            {.rule = one<posenc::TemperatureRule>(3), .scale = or_real(0.1), .length = or_real(8192)});
        (void)t.value(any());
        return t.scale(x, at, Axes::bshd);
      }
    }
  }
  void sinusoids() {
    const posenc::Sinusoidal s(sinusoidal());
    const auto x = tensor<3>({small(), small(), or_any(4)});
    const Positions at = positions(x.extent(1));
    switch (choices_.byte() % 4) {
      case 0: return s.add(x, at);
      case 1: return s.add(tensor<3>(x.extents()), x, at);
      case 2: (void)s.scale_vjp(x, at); return;
      default: (void)s.table(size(), any()); return s.encode(x, at);
    }
  }
  void lookups() {
    const auto x = tensor<3>({small(), small(), or_any(4)});
    const Positions at = positions(x.extent(1));
    const auto positions = learned();
    switch (choices_.byte() % 4) {
      case 0: return positions.add(x, at);
      case 1: return positions.add(tensor<3>(x.extents()), x, at);
      case 2: return positions.embed(x, at);
      default: return positions.add_vjp(tensor<2>({5, 4}), at, x);
    }
  }
  void token_gradients() {
    const auto embedding = token();
    const auto x = tensor<3>({small(), small(), or_any(4)});
    const auto ids = integers<2>({x.extent(0), x.extent(1)});
    switch (choices_.byte() % 5) {
      case 0: return embedding.embed(x, ids);
      case 1: return embedding.embed_vjp(tensor<2>({5, 4}), ids, x);
      case 2: (void)embedding.embed_vjp_sparse(ids, x); return;
      case 3: return embedding.logits(tensor<3>({x.extent(0), x.extent(1), or_any(5)}), x);
      default:
        return embedding.logits_vjp(tensor<3>(x.extents()), tensor<2>({5, 4}), x,
                                    tensor<3>({x.extent(0), x.extent(1), or_any(5)}));
    }
  }
  void layers() {
    using Layer = posenc::TransformerEmbedding<float>;
    const char* names[] = {"sinusoidal", "none", "learned"};
    const char* const name = choices_.one_of(names);
    const posenc::TransformerEmbeddingConfig config{
        .position_embedding_type = name, .dropout = or_real(0.5), .sinusoidal = sinusoidal()};
    const Layer layer = name == names[2] ? Layer(token(), learned(), config) : Layer(token(), config);
    const auto x = tensor<3>({small(), small(), or_any(4)});
    const auto ids = integers<2>({x.extent(0), x.extent(1)});
    const Positions at = positions(x.extent(1));
    const auto mode = one<posenc::Mode>(2);
    switch (choices_.byte() % 3) {
      case 0: return layer.embed(x, ids, at, mode, choices_.number(8));
      case 1: return layer.embed_vjp(tensor<2>({5, 4}), ids, at, x, mode);
      default: return layer.embed_vjp(tensor<2>({5, 4}), tensor<2>({5, 4}), ids, at, x, mode);
    }
  }
  void dropouts() {
    const posenc::Dropout dropout(or_real(0.5));
    const auto x = tensor<4>({small(), small(), small(), small()});
    const auto mode = one<posenc::Mode>(2);
    const auto first = static_cast<std::uint64_t>(or_any(0));
    if (choices_.byte() % 2 == 0) return dropout.apply(x, mode, 1, first);
    dropout.apply(tensor<4>(x.extents()), x, mode, 1, first);
  }
  void biases() {
    const posenc::Alibi bias = alibi();
    const auto scores = tensor<4>({small(), or_any(3), small(), small()});
    const Positions q = positions(scores.extent(2)), k = positions(scores.extent(3));
    switch (choices_.byte() % 5) {
      case 0: return bias.add(scores, q, k);
      case 1: return bias.add(tensor<4>(scores.extents()), scores, q, k);
      case 2: {
        const auto tile = tensor<2>({scores.extent(2), scores.extent(3)});
        return bias.tile(tile, or_any(1), q, k);
      }
      case 3: {
        std::vector<float> row(static_cast<std::size_t>(small()));
        bias.row(row, or_any(1), any(), k);
        (void)bias.value(any(), any(), any());
        return;
      }
      default: {
        std::vector<double> slopes(static_cast<std::size_t>(small()));
        return bias.add_vjp(slopes, scores, q, k);
      }
    }
  }
  void softmaxes() {
    const auto scores = tensor<4>({small(), or_any(3), small(), small()});
    const Positions q = positions(scores.extent(2)), k = positions(scores.extent(3));
    const posenc::SoftmaxConfig config{.scale = or_real(1), .causal = choices_.byte() % 2 == 0};
    switch (choices_.byte() % 4) {
      case 0: return posenc::softmax(scores, alibi(), q, k, config);
      case 1: return posenc::softmax(tensor<4>(scores.extents()), scores, alibi(), q, k, config);
      case 2: return posenc::softmax(tensor<4>(scores.extents()), scores, posenc::NoBias(), q, k, config);
      default: return posenc::softmax_vjp(tensor<4>(scores.extents()), scores, or_real(1));
    }
  }
  void conversions() {
    const auto weights = tensor<2>({6, small()});
    posenc::HeadLayout layout;
    layout.num_heads = or_any(1), layout.head_dim = or_any(6);
    if (choices_.byte() % 4 == 0) layout.rotary_dim = or_any(4);
    if (choices_.byte() % 4 == 0) layout.window = Window::starting_at(any());
    posenc::convert_pairing(weights, one<Pairing>(4), one<Pairing>(4), layout);
  }
  void frequency_rules() {
    posenc::RotaryConfig config;
    config.head_dim = or_size(8), config.rope_theta = or_real(10000);
    config.partial_rotary_factor = or_real(1);
    if (choices_.byte() % 4 == 0) config.rotary_dim = or_size(4);
    const Index length = any();
    switch (choices_.byte() % 12) {
      case 0:
        (void)posenc::axial_frequencies({.head_dim = size(), .axes = size(), .rope_theta = real()});
        return;
      case 1: (void)posenc::pixtral_frequencies(size(), real()); return;
      case 2: (void)posenc::dinov3_frequencies(size(), real()); return;
      case 3:
        (void)posenc::mrope_sections(posenc::rotary_frequencies(config), {or_any(2), any(), any()});
        return;
      case 4:
        (void)posenc::mrope_interleaved(posenc::rotary_frequencies(config), {or_any(2), any(), any()});
        return;
      case 5:
        (void)posenc::ernie_sections(posenc::rotary_frequencies(config), {or_any(2), any(), any()});
        return;
      case 6: (void)posenc::dynamic_ntk_frequencies(config, {real(), length}, any()); return;
      case 7:
        (void)posenc::yarn_frequencies(config,
                                       {.factor = real(), .original_max_position_embeddings = length});
        return;
      case 8:
        (void)posenc::llama3_scaled(posenc::rotary_frequencies(config),
                                    {.factor = real(), .original_max_position_embeddings = length});
        return;
      case 9:
        (void)posenc::ggml_yarn_frequencies(
            config, {.freq_scale = real(), .n_ctx_orig = length, .ext_factor = real()});
        return;
      case 10:
        (void)posenc::proportional_frequencies(config, {.partial_rotary_factor = real(), .factor = real()});
        return;
      default: {
        posenc::LongRopeConfig scaling;
        scaling.short_factor.assign(4, real()), scaling.long_factor.assign(4, real());
        scaling.original_max_position_embeddings = length;
        (void)posenc::longrope_frequencies(config, scaling, posenc::longrope_choice(scaling, any()));
        return;
      }
    }
  }

  posenc_test::Choices choices_;
  std::vector<std::unique_ptr<Memory>> owned_;
  std::vector<std::vector<Position>> integers_;
  std::vector<View<const Position, 2>> ids_;
  float* shared_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Calls(data, size).run();
  return 0;
}
