#pragma once
// Every parameter of a model by name, in one flat vector. A layer keeps only Slots into it, so a model is a
// plain value, its gradient is a vector of the same layout, and an optimiser is a loop.

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "posenc/embedding/dropout.hpp"
#include "transformer/matrix.hpp"

namespace transformer {

/// Where a parameter lies in the flat vector: a (rows, cols) matrix, row-major. A vector has one row.
struct Slot {
  Index offset = 0, rows = 0, cols = 0;
};

/// Random numbers that are the same with every standard library.
class Random {
 public:
  explicit Random(std::uint64_t seed) : generator_(seed) {}
  double uniform() { return static_cast<double>(generator_() >> 11) * 0x1p-53; }  // [0, 1)
  double normal() {                                                               // Box and Muller 1958
    const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
    return radius * std::cos(2.0 * std::numbers::pi * uniform());
  }
  std::uint64_t bits() { return generator_(); }

 private:
  std::mt19937_64 generator_;
};

/// How a parameter starts.
struct Init {
  enum class Kind { constant, uniform, normal } kind = Kind::constant;
  double value = 0.0;  ///< the constant, the bound of the uniform, or the standard deviation

  static Init constant(double value) { return {Kind::constant, value}; }
  static Init normal(double deviation) { return {Kind::normal, deviation}; }
  /// Glorot & Bengio 2010: the variance of activations and of gradients stays about the same.
  static Init xavier(Index fan_in, Index fan_out) {
    return {Kind::uniform, std::sqrt(6.0 / static_cast<double>(fan_in + fan_out))};
  }
};

template <class Scalar>
class Parameters {
 public:
  struct Entry {
    std::string name;
    std::vector<Index> shape;  // (out) or (in, out)
    Index offset, size;
    Init init;
  };

  explicit Parameters(std::uint64_t seed = 1) : seed_(seed) {}

  /// Adds a (rows, cols) matrix.
  Slot add(std::string name, Index rows, Index cols, Init init) {
    return append(std::move(name), {rows, cols}, rows, cols, init);
  }
  /// Adds a vector.
  Slot add(std::string name, Index size, Init init) { return append(std::move(name), {size}, 1, size, init); }

  /// Allocates and fills every entry, in the order they were added. Called once, by the model.
  void initialize() {
    flat_.resize(count_);
    Random random(seed_);
    for (const Entry& entry : entries_)
      for (Scalar& value : values(entry)) {
        if (entry.init.kind == Init::Kind::constant) value = static_cast<Scalar>(entry.init.value);
        if (entry.init.kind == Init::Kind::uniform)
          value = static_cast<Scalar>(entry.init.value * (2.0 * random.uniform() - 1.0));
        if (entry.init.kind == Init::Kind::normal)
          value = static_cast<Scalar>(entry.init.value * random.normal());
      }
  }

  const std::vector<Entry>& entries() const { return entries_; }
  Index count() const { return count_; }

  std::span<Scalar> values(const Entry& entry) {
    return {flat_.data() + entry.offset, static_cast<std::size_t>(entry.size)};
  }
  std::span<const Scalar> values(const Entry& entry) const {
    return {flat_.data() + entry.offset, static_cast<std::size_t>(entry.size)};
  }
  /// The entry of this name. Throws std::invalid_argument where there is none.
  const Entry& entry(const std::string& name) const {
    for (const Entry& candidate : entries_)
      if (candidate.name == name) return candidate;
    throw std::invalid_argument("parameters: there is no \"" + name + "\"");
  }

  Vector<Scalar>& flat() { return flat_; }
  const Vector<Scalar>& flat() const { return flat_; }

  View<const Scalar, 2> view(const Slot& slot) const {
    return {flat_.data() + slot.offset, {slot.rows, slot.cols}};
  }

 private:
  Slot append(std::string name, std::vector<Index> shape, Index rows, Index cols, Init init) {
    entries_.push_back({std::move(name), std::move(shape), count_, rows * cols, init});
    const Slot slot{count_, rows, cols};
    count_ += rows * cols;
    return slot;
  }

  std::vector<Entry> entries_;
  Index count_ = 0;
  std::uint64_t seed_;
  Vector<Scalar> flat_;
};

/// One pass over one part of a batch: what is read, what is written, and whether dropout acts.
template <class Scalar>
struct Pass {
  const Parameters<Scalar>& parameters;
  Workspace<Scalar>& workspace;
  Vector<Scalar>* gradients = nullptr;  // laid out as the parameters; a backward pass adds to it
  posenc::Mode mode = posenc::Mode::eval;
  std::uint64_t seed = 0;  // of this step's dropout

  auto weight(const Slot& slot) const { return matrix(parameters.view(slot)); }
  View<Scalar, 2> gradient_view(const Slot& slot) const {
    return {gradients->data() + slot.offset, {slot.rows, slot.cols}};
  }
  auto gradient(const Slot& slot) const { return matrix(gradient_view(slot)); }
};

}  // namespace transformer
