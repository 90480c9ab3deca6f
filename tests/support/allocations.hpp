#pragma once
// Counts what a call allocates, by operator new or by Eigen. It replaces the program's operator new, so one
// file of a program includes it, before anything that includes Eigen.
//
// Eigen's assertions are counted too: with EIGEN_RUNTIME_NO_MALLOC one of them is that it may allocate.

#define EIGEN_RUNTIME_NO_MALLOC
#include <cstdint>
#include <cstdlib>
#include <new>

namespace posenc_test {

/// While it counts, each allocation of this thread is one more.
inline thread_local int allocations = 0;
inline thread_local bool counting = false;

/// A pointer goes here so that no compiler leaves its allocation out.
inline void* volatile used = nullptr;

/// What Eigen asserts: with EIGEN_RUNTIME_NO_MALLOC, also that it may allocate.
inline void eigen_asserts(bool condition) {
  if (!condition) ++allocations;
}

}  // namespace posenc_test

#define eigen_assert(condition) posenc_test::eigen_asserts(static_cast<bool>(condition))

#include <Eigen/Core>

namespace {

void* allocate(std::size_t size, std::align_val_t alignment = std::align_val_t{0}) noexcept {
  if (posenc_test::counting) ++posenc_test::allocations;
  const auto a = static_cast<std::size_t>(alignment);
  return a == 0 ? std::malloc(size == 0 ? 1 : size) : std::aligned_alloc(a, size / a * a + a);
}

// Not inlined: g++ 12 would take operator new and free for a mismatch.
[[gnu::noinline]] void release(void* memory) noexcept { std::free(memory); }

void* or_throw(void* memory) {
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

// All forms, because the sanitizers bring their own of those that are left out.
using Size = std::size_t;
using Align = std::align_val_t;
using NoThrow = std::nothrow_t;
void* operator new(Size n) { return or_throw(allocate(n)); }
void* operator new[](Size n) { return or_throw(allocate(n)); }
void* operator new(Size n, Align a) { return or_throw(allocate(n, a)); }
void* operator new[](Size n, Align a) { return or_throw(allocate(n, a)); }
void* operator new(Size n, const NoThrow&) noexcept { return allocate(n); }
void* operator new[](Size n, const NoThrow&) noexcept { return allocate(n); }
void* operator new(Size n, Align a, const NoThrow&) noexcept { return allocate(n, a); }
void* operator new[](Size n, Align a, const NoThrow&) noexcept { return allocate(n, a); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, Size) noexcept { release(p); }
void operator delete[](void* p, Size) noexcept { release(p); }
void operator delete(void* p, Align) noexcept { release(p); }
void operator delete[](void* p, Align) noexcept { release(p); }
void operator delete(void* p, Size, Align) noexcept { release(p); }
void operator delete[](void* p, Size, Align) noexcept { release(p); }
void operator delete(void* p, const NoThrow&) noexcept { release(p); }
void operator delete[](void* p, const NoThrow&) noexcept { release(p); }
void operator delete(void* p, Align, const NoThrow&) noexcept { release(p); }
void operator delete[](void* p, Align, const NoThrow&) noexcept { release(p); }

namespace posenc_test {

/// The allocations of a call.
template <class Call>
int allocations_of(const Call& call) {
  allocations = 0;
  counting = true;
  Eigen::internal::set_is_malloc_allowed(false);
  call();
  Eigen::internal::set_is_malloc_allowed(true);
  counting = false;
  return allocations;
}

}  // namespace posenc_test
