// What the verbs accept and refuse. Compiling is passing.
#include <array>
#include <complex>
#include <concepts>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "posenc/posenc.hpp"

namespace {

using posenc::integer_tensor;
using posenc::readable_tensor;
using posenc::scalar_type;
using posenc::View;
using posenc::writable_tensor;

using Tensor = Eigen::Tensor<float, 3, Eigen::RowMajor>;
using Fixed = Eigen::TensorFixedSize<double, Eigen::Sizes<2, 3, 4>>;
using Map = Eigen::TensorMap<Eigen::Tensor<Eigen::half, 3>>;
using Matrix = Eigen::Matrix<Eigen::bfloat16, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

// Scalars: four, and no others.
static_assert(scalar_type<float> && scalar_type<double>);
static_assert(scalar_type<Eigen::half> && scalar_type<Eigen::bfloat16>);
static_assert(!scalar_type<int> && !scalar_type<bool> && !scalar_type<long double>);
static_assert(!scalar_type<std::complex<float>>);

// Every storage may be read and written, in each layout, with each index type, const or not.
static_assert(writable_tensor<Tensor&> && readable_tensor<const Tensor&>);
static_assert(writable_tensor<Eigen::Tensor<float, 4>&>);
static_assert(writable_tensor<Eigen::Tensor<float, 4, Eigen::RowMajor, int>&>);
static_assert(writable_tensor<Fixed&> && readable_tensor<const Fixed&>);
static_assert(writable_tensor<Map&> && writable_tensor<Matrix&>);
static_assert(writable_tensor<Eigen::ArrayXXf&> && writable_tensor<Eigen::Map<Eigen::MatrixXf>&>);
static_assert(writable_tensor<Eigen::Ref<Eigen::MatrixXf>&>);
static_assert(writable_tensor<Eigen::Block<Eigen::MatrixXf>&>);
static_assert(writable_tensor<View<float, 4>&> && readable_tensor<View<const float, 4>&>);

// The transpose of storage is storage, and as writable as what it turns.
template <class T>
using transpose_of = decltype(std::declval<T>().transpose());
static_assert(writable_tensor<transpose_of<Eigen::MatrixXf&>> && writable_tensor<transpose_of<Matrix&>>);
static_assert(writable_tensor<transpose_of<Eigen::Map<Eigen::MatrixXf>&>>);
static_assert(writable_tensor<transpose_of<Eigen::Ref<Eigen::MatrixXf>&>>);
static_assert(writable_tensor<transpose_of<Eigen::Block<Eigen::MatrixXf>&>>);
static_assert(writable_tensor<transpose_of<transpose_of<Eigen::ArrayXXf&>>>);
static_assert(writable_tensor<decltype(std::declval<Eigen::VectorXf&>().head(3))>);
static_assert(readable_tensor<transpose_of<const Eigen::MatrixXf&>>);
static_assert(!writable_tensor<transpose_of<const Eigen::MatrixXf&>>);
static_assert(!writable_tensor<transpose_of<Eigen::Map<const Eigen::MatrixXf>&>>);
static_assert(!writable_tensor<transpose_of<Eigen::Ref<const Eigen::MatrixXf>&>>);

// A temporary that maps memory of somebody else is an output, a temporary that owns its memory is a mistake.
static_assert(writable_tensor<Map> && writable_tensor<View<float, 4>>);
static_assert(writable_tensor<Eigen::Map<Eigen::MatrixXf>> && writable_tensor<Eigen::Block<Eigen::MatrixXf>>);
static_assert(!writable_tensor<Tensor> && !writable_tensor<Fixed> && !writable_tensor<Matrix>);
static_assert(readable_tensor<Tensor>);

// Const elements can be read only, wherever the const stands. A const map, like a const span, is writable.
static_assert(!writable_tensor<const Tensor&>);
static_assert(!writable_tensor<const Matrix&>);
static_assert(!writable_tensor<View<const float, 4>>);
static_assert(!writable_tensor<Eigen::TensorMap<const Tensor>>);
static_assert(!writable_tensor<Eigen::TensorMap<Eigen::Tensor<const float, 3>>>);
static_assert(!writable_tensor<Eigen::Map<const Eigen::MatrixXf>>);
static_assert(readable_tensor<Eigen::TensorMap<Eigen::Tensor<const float, 3>>>);
static_assert(writable_tensor<const View<float, 4>&>);

// Expressions have no memory. TensorRef has data() and dimension(), and is one all the same.
static_assert(!readable_tensor<decltype(std::declval<Tensor&>() * 2.0f)>);
static_assert(!readable_tensor<decltype(std::declval<Tensor&>().shuffle(std::array<int, 3>{0, 2, 1}))>);
static_assert(!readable_tensor<Eigen::TensorRef<Tensor>>);
static_assert(!readable_tensor<decltype((std::declval<Eigen::MatrixXf&>() * 2.0f).transpose())>);
static_assert(!readable_tensor<decltype((std::declval<Eigen::MatrixXf&>() * 2.0f).transpose().topRows(1))>);
static_assert(!readable_tensor<decltype((std::declval<Eigen::MatrixXf&>() * 2.0f).topRows(1).transpose())>);
static_assert(!readable_tensor<decltype(std::declval<Eigen::MatrixXf&>() * 2.0f)>);

// Wrong scalars, and what is no tensor at all.
static_assert(!readable_tensor<Eigen::Tensor<int, 3>&>);
static_assert(!readable_tensor<Eigen::Tensor<std::complex<float>, 3>&>);
static_assert(!readable_tensor<float*> && !readable_tensor<std::vector<float>&> && !readable_tensor<int>);

// Ids and positions: signed integers of 32 or 64 bits.
static_assert(integer_tensor<Eigen::Tensor<std::int64_t, 2, Eigen::RowMajor>&>);
static_assert(integer_tensor<const Eigen::Tensor<std::int32_t, 1>&>);
static_assert(integer_tensor<Eigen::VectorXi&>);
static_assert(integer_tensor<std::vector<std::int64_t>&> && integer_tensor<const std::vector<std::int32_t>&>);
static_assert(integer_tensor<std::span<const std::int64_t>> && integer_tensor<std::array<std::int32_t, 4>&>);
static_assert(integer_tensor<View<const std::int64_t, 2>>);
static_assert(!integer_tensor<Tensor&> && !integer_tensor<std::vector<float>&>);
static_assert(!integer_tensor<Eigen::Tensor<bool, 2>&>);
static_assert(!integer_tensor<Eigen::Tensor<std::int16_t, 2>&>);
static_assert(!integer_tensor<std::int64_t> && !integer_tensor<std::int64_t*>);

// Whether a verb takes a call is asked with its result: a call with a mistake has another.
template <class X>
concept rotates = requires(const posenc::Rotary& rope, X&& x, const posenc::Positions& at) {
  { rope.rotate(static_cast<X&&>(x), at) } -> std::same_as<void>;
};
static_assert(rotates<Tensor&> && rotates<Map> && rotates<View<float, 2>>);
static_assert(!rotates<const Tensor&> && !rotates<Tensor> && !rotates<float*>);
static_assert(!rotates<decltype(std::declval<Tensor&>() * 2.0f)>);

// Encoders are values that are copied, shared and compared to nothing but themselves.
template <class T>
concept value = std::is_copy_constructible_v<T> && std::is_copy_assignable_v<T> &&
                std::is_nothrow_move_constructible_v<T> && std::is_nothrow_move_assignable_v<T> &&
                !std::is_polymorphic_v<T>;
static_assert(value<posenc::TokenEmbedding<float>> && value<posenc::Sinusoidal>);
static_assert(value<posenc::LearnedPositions<double>> && value<posenc::Rotary> && value<posenc::Alibi>);
static_assert(value<posenc::Dropout> && value<posenc::TransformerEmbedding<float>>);
static_assert(value<posenc::Positions> && value<View<float, 4>>);
static_assert(std::is_trivially_copyable_v<View<float, 4>>);

// A pairing makes a Rotary of frequencies. (tests/must_not_compile shows that nothing is guessed.)
using Frequencies = decltype(posenc::rotary_frequencies({.head_dim = 128}));
static_assert(std::is_constructible_v<posenc::Rotary, Frequencies, posenc::Pairing>);
static_assert(!std::is_convertible_v<int, posenc::Alibi>);

// A row of biases goes to memory that is still there afterwards.
template <class Row>
concept takes_row = requires(const posenc::Alibi& alibi, Row&& row, const posenc::Positions& at) {
  alibi.row(static_cast<Row&&>(row), 0, 0, at);
};
static_assert(takes_row<std::vector<float>&> && takes_row<std::span<float>> &&
              !takes_row<std::vector<float>>);

}  // namespace
