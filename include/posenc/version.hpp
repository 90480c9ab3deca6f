#pragma once

#include "posenc/core/language.hpp"

// The version, in one place: CMake, the package files and the changelog follow it. These are the library's
// only macros.
/// Changes when the API breaks.
#define POSENC_VERSION_MAJOR 0
/// Changes when the API grows; while the major version is 0, also when it breaks.
#define POSENC_VERSION_MINOR 2
/// Changes when only the inside does.
#define POSENC_VERSION_PATCH 0
