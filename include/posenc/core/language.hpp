#pragma once
// The first header that any other reaches: an older language is refused here, in one sentence, before its
// compiler meets the word `concept`.

// MSVC's __cplusplus stays at 1997 unless told otherwise.
#if !defined(__cpp_concepts) || __cpp_concepts < 201907L || (__cplusplus <= 201703L && !defined(_MSVC_LANG))
#error "posenc needs C++20: compile with -std=c++20 or newer, by g++ 12, clang 14 or newer"
#include "posenc/needs_cxx20"  // there is no such file: a fatal error, so that nothing buries the sentence
#endif
