#pragma once

// The version, in one place: CMake, the package files and the changelog follow it. These are the library's
// only macros.
#define POSENC_VERSION_MAJOR 0
#define POSENC_VERSION_MINOR 1
#define POSENC_VERSION_PATCH 0
