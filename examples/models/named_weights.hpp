#pragma once
// Tensors of a file by name, handed out to the parameters of a model. Each is asked for in the shape that the
// model needs and used once; what is left over at the end belongs to another model.

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/byte_reader.hpp"
#include "models/error.hpp"
#include "models/json_tensors.hpp"
#include "models/safetensors.hpp"
#include "transformer/matrix.hpp"
#include "transformer/parameters.hpp"

namespace models {

class NamedWeights {
 public:
  using Shape = std::vector<std::int64_t>;

  explicit NamedWeights(JsonTensors file) : name_(std::move(file.name)) {
    for (auto& [name, tensor] : file.tensors) add(name, std::move(tensor.shape), std::move(tensor.values));
  }
  NamedWeights(Safetensors file, std::string name) : name_(std::move(name)) {
    for (NamedTensor& tensor : file.tensors)
      add(tensor.name, std::move(tensor.shape), std::move(tensor.values));
  }

  [[noreturn]] void fail(const std::string& what) const { throw InputError(name_ + ": " + printable(what)); }

  /// Whether a tensor of this name is there and not used yet.
  bool contains(const std::string& name) const { return tensors_.contains(name); }

  /// Extent `axis` of a tensor, from 1 to a million, so that products of two and a few thousand don't
  /// overflow.
  std::int64_t extent(const std::string& name, std::size_t axis) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) fail("it has no tensor " + name);
    const Shape& shape = found->second.shape;
    if (axis >= shape.size() || shape[axis] < 1 || shape[axis] > 1'000'000)
      fail(name + ": expected at most a million rows and columns, got shape " + shape_text(shape));
    return shape[axis];
  }

  /// Throws unless the file holds as many numbers: before memory is taken for a model of that size.
  void require_numbers(std::int64_t count) const {
    if (count > numbers_)
      fail("expected " + std::to_string(count) + " numbers, it has " + std::to_string(numbers_));
  }

  /// The numbers of a tensor, row-major.
  std::vector<float> take(const std::string& name, const Shape& shape) {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) fail("it has no tensor " + name);
    if (found->second.shape != shape)
      fail(name + ": expected shape " + shape_text(shape) + ", got " + shape_text(found->second.shape));
    std::vector<float> values = std::move(found->second.values);
    tensors_.erase(found);
    return values;
  }

  /// A vector or table becomes the parameter as it is.
  template <class Scalar>
  void fill(transformer::Parameters<Scalar>& parameters, const std::string& parameter,
            const std::string& name) {
    const auto& entry = parameters.entry(parameter);
    const std::vector<float> values = take(name, Shape(entry.shape.begin(), entry.shape.end()));
    std::transform(values.begin(), values.end(), parameters.values(entry).begin(),
                   [](float value) { return static_cast<Scalar>(value); });
  }

  /// A linear map `name`.weight, stored (out, in), becomes the weight of a Linear, which is (in, out), and
  /// `name`.bias, if there is one, its bias.
  template <class Scalar>
  void fill_linear(transformer::Parameters<Scalar>& parameters, const std::string& linear,
                   const std::string& name) {
    fill_linear(parameters, linear, {name});
  }
  /// The same for several maps of one input, side by side, such as queries, keys and values.
  template <class Scalar>
  void fill_linear(transformer::Parameters<Scalar>& parameters, const std::string& linear,
                   std::initializer_list<std::string> names) {
    using transformer::Matrix;
    const auto& weight = parameters.entry(linear + ".weight");
    const Eigen::Index in = weight.shape[0], out = weight.shape[1];
    Eigen::Map<Matrix<Scalar>> to(parameters.values(weight).data(), in, out);
    Eigen::Index column = 0;
    for (const std::string& name : names) {
      const Eigen::Index wide = extent(name + ".weight", 0);
      if (wide > out - column)
        fail(name + ".weight: expected at most " + std::to_string(out - column) + " rows");
      const std::vector<float> stored = take(name + ".weight", {wide, in});
      to.middleCols(column, wide) =
          Eigen::Map<const Matrix<float>>(stored.data(), wide, in).transpose().template cast<Scalar>();
      if (contains(name + ".bias")) {
        const std::vector<float> bias = take(name + ".bias", {wide});
        std::transform(bias.begin(), bias.end(),
                       parameters.values(parameters.entry(linear + ".bias")).begin() + column,
                       [](float value) { return static_cast<Scalar>(value); });
      }
      column += wide;
    }
    if (column != out)
      fail(linear + ": expected " + std::to_string(out) + " rows, got " + std::to_string(column));
  }

  /// The gain and the bias of a LayerNorm.
  template <class Scalar>
  void fill_norm(transformer::Parameters<Scalar>& parameters, const std::string& norm,
                 const std::string& name) {
    fill(parameters, norm + ".weight", name + ".weight");
    fill(parameters, norm + ".bias", name + ".bias");
  }

  /// A tensor that the model has no use for.
  void drop(const std::string& name) { tensors_.erase(name); }

  void require_all_used() const {
    if (!tensors_.empty()) fail("tensor " + tensors_.begin()->first + " has no place in this model");
  }

 private:
  struct Tensor {
    Shape shape;
    std::vector<float> values;
  };

  void add(const std::string& name, Shape shape, std::vector<float> values) {
    numbers_ += static_cast<std::int64_t>(values.size());
    tensors_.emplace(name, Tensor{std::move(shape), std::move(values)});
  }

  std::string name_;
  std::int64_t numbers_ = 0;
  std::map<std::string, Tensor> tensors_;
};

}  // namespace models
