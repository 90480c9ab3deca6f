#pragma once
// What the compiler says of a wrong call. Left alone, it lists every overload and why each is none.
//
// So every verb has one overload more, for arguments of which some can't be what the verb takes in their
// place. The result of that one can't be destroyed: the compiler refuses the call where it stands, and begins
// with our sentence. For a right call it is no overload, since `refused` is no type then. (Whether a call is
// right, in a concept: requires { { rope.rotate(x, at) } -> std::same_as<void>; })

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "posenc/core/parallel.hpp"
#include "posenc/core/tensor.hpp"

namespace posenc {
inline namespace v0 {

class Positions;

namespace detail {

enum class Mistake {
  none,
  device,
  no_tensor,
  scalar,
  expression_as_output,
  expression_as_input,
  const_output,
  temporary_output,
  other_scalar,
  other_rank,
  ids
};

/// Converts to whatever the caller wanted, so that nothing else is wrong with the call.
struct AnyResult {
  template <class T>
  operator T() const;
};

/// The result of a call with a mistake.
template <Mistake>
struct Refused;
template <>
struct Refused<Mistake::device> : AnyResult {
  ~Refused() __attribute__((unavailable(
      "posenc: the first argument is neither a tensor nor a device: expected Eigen::ThreadPoolDevice, "
      "Eigen::DefaultDevice or a type with parallelFor(n, cost, f)")));
};
template <>
struct Refused<Mistake::no_tensor> : AnyResult {
  ~Refused() __attribute__((
      unavailable("posenc: expected a tensor or matrix of Eigen, or a View of foreign memory: view(pointer, "
                  "extents)")));
};
template <>
struct Refused<Mistake::scalar> : AnyResult {
  ~Refused() __attribute__((
      unavailable("posenc: expected elements of type float, double, Eigen::half or Eigen::bfloat16")));
};
template <>
struct Refused<Mistake::expression_as_output> : AnyResult {
  ~Refused() __attribute__((unavailable(
      "posenc: an expression has no memory to write to: evaluate it into a tensor or matrix first")));
};
template <>
struct Refused<Mistake::expression_as_input> : AnyResult {
  ~Refused() __attribute__((unavailable(
      "posenc: an expression has no memory to read from: evaluate it into a tensor or matrix first")));
};
template <>
struct Refused<Mistake::const_output> : AnyResult {
  ~Refused() __attribute__((unavailable("posenc: the output is const, so its elements cannot be written")));
};
template <>
struct Refused<Mistake::temporary_output> : AnyResult {
  ~Refused() __attribute__((unavailable(
      "posenc: the output is a temporary that owns its memory, so the result would be lost: give it a "
      "name")));
};
template <>
struct Refused<Mistake::other_scalar> : AnyResult {
  ~Refused() __attribute__((unavailable("posenc: output and input must have the same scalar type")));
};
template <>
struct Refused<Mistake::other_rank> : AnyResult {
  ~Refused() __attribute__((unavailable("posenc: output and input must have the same rank")));
};
template <>
struct Refused<Mistake::ids> : AnyResult {
  ~Refused() __attribute__((unavailable(
      "posenc: expected ids of 32- or 64-bit signed integers in a tensor, matrix, View or list")));
};

/// What stands in one place of a call. Places behind the last one are not looked at.
enum class Role {
  out,          // written
  in,           // read
  in_of_out,    // read, with the scalar type and rank of the output
  maybe_in,     // the same, but it may be left out: then the call is in place
  scores,       // the same in front of a bias
  ids,          // integers
  of_any_type,  // storage, written, of elements of any type
  anything
};
template <Role...>
struct Roles {};

/// A tensor or an expression of one, with elements that are no integers: what is never ids or positions.
template <class T>
concept tensor_or_expression =
    eigen_expression<T> || (storage_not_expression<T> && !std::integral<scalar_of<T>>);

template <class T>
concept no_tensor_at_all = !eigen_expression<T> && !storage_not_expression<T> && !contiguous_list<T>;

template <class...>
inline constexpr bool starts_with_tensor = false;
template <class T, class... Args>
inline constexpr bool starts_with_tensor<T, Args...> = tensor_or_expression<T>;

template <class...>
inline constexpr bool starts_with_positions = false;
template <class T, class... Args>
inline constexpr bool starts_with_positions<T, Args...> = std::same_as<std::remove_cvref_t<T>, Positions>;

template <class T>
constexpr Mistake input_mistake(Mistake expression = Mistake::expression_as_input) {
  if constexpr (readable_tensor<T>) return Mistake::none;
  if constexpr (eigen_expression<T>) return expression;
  return storage_not_expression<T> ? Mistake::scalar : Mistake::no_tensor;
}

template <class T>
constexpr Mistake output_mistake() {
  if constexpr (!readable_tensor<T>)
    return input_mistake<T>(Mistake::expression_as_output);
  else if constexpr (!elements_are_writable<T>)
    return Mistake::const_output;
  else
    return not_an_owning_temporary<T> ? Mistake::none : Mistake::temporary_output;
}

template <class T, class Out>
constexpr Mistake input_mistake_beside() {
  if constexpr (!readable_tensor<T> || !readable_tensor<Out>)
    return input_mistake<T>();
  else if constexpr (!std::same_as<scalar_of<T>, scalar_of<Out>>)
    return Mistake::other_scalar;
  else
    return rank_of<T> == rank_of<Out> ? Mistake::none : Mistake::other_rank;
}

template <Role role, class T, class Out>
constexpr Mistake mistake_as() {
  if constexpr (role == Role::out) {
    return output_mistake<T>();
  } else if constexpr (role == Role::in) {
    return input_mistake<T>();
  } else if constexpr (role == Role::in_of_out || role == Role::maybe_in || role == Role::scores) {
    return input_mistake_beside<T, Out>();
  } else if constexpr (role == Role::ids) {
    return integer_tensor<T> ? Mistake::none : Mistake::ids;
  } else if constexpr (role == Role::of_any_type) {
    if constexpr (!storage_not_expression<T>)
      return eigen_expression<T> ? Mistake::expression_as_output : Mistake::no_tensor;
    else if constexpr (!elements_are_writable<T>)
      return Mistake::const_output;
    else
      return not_an_owning_temporary<T> ? Mistake::none : Mistake::temporary_output;
  }
  return Mistake::none;
}

template <class...>
struct Arguments {};

template <class Out, class... Args>
constexpr Mistake mistake_among(Roles<>, Arguments<Args...>) {
  return Mistake::none;
}
template <class Out, Role... roles>
  requires(sizeof...(roles) > 0)
constexpr Mistake mistake_among(Roles<roles...>, Arguments<>) {
  return Mistake::none;  // too few arguments: the compiler's own words do
}
template <class Out, Role role, Role... roles, class T, class... Args>
constexpr Mistake mistake_among(Roles<role, roles...>, Arguments<T, Args...> arguments) {
  if constexpr ((role == Role::maybe_in || role == Role::scores) && !tensor_or_expression<T>) {
    return mistake_among<Out>(Roles<roles...>(), arguments);
  } else if constexpr (role == Role::scores && starts_with_positions<Args...>) {
    return Mistake::none;  // T is a bias
  } else {
    constexpr Mistake mistake = mistake_as<role, T, Out>();
    if constexpr (mistake != Mistake::none)
      return mistake;
    else
      return mistake_among<Out>(Roles<roles...>(), Arguments<Args...>());
  }
}

template <class R>
constexpr Mistake mistake_in(R, Arguments<>) {
  return Mistake::none;
}
template <class R, class Out, class... Args>
constexpr Mistake mistake_in(R, Arguments<Out, Args...> arguments) {
  return mistake_among<Out>(R(), arguments);
}

/// The first mistake in a call of a verb of these roles, before which there may be a device.
template <class R, class... Args>
inline constexpr Mistake mistake_of = Mistake::none;
template <Role role, Role... roles, class T, class... Args>
inline constexpr Mistake mistake_of<Roles<role, roles...>, T, Args...> =
    role == Role::out && no_tensor_at_all<T> && starts_with_tensor<Args...>
        ? Mistake::device
        : mistake_in(Roles<role, roles...>(), Arguments<T, Args...>());
template <Role role, Role... roles, device T, class... Args>
inline constexpr Mistake mistake_of<Roles<role, roles...>, T, Args...> =
    mistake_in(Roles<role, roles...>(), Arguments<Args...>());

/// The result of a call of these arguments where there is a mistake in it; else no type.
template <class R, class... Args>
  requires(mistake_of<R, Args...> != Mistake::none)
using refused = Refused<mistake_of<R, Args...>>;

using InPlace = Roles<Role::out>;
using InOrOutOfPlace = Roles<Role::out, Role::maybe_in>;

}  // namespace detail
}  // namespace v0
}  // namespace posenc
