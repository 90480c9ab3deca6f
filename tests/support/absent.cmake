# Stands in for a test that cannot run here: ctest shows it as skipped, with the reason. Where nothing may be missing
# (POSENC_REQUIRE_DATA, or CI) it fails instead, so that a run cannot go green by leaving tests out. A CI without the
# data says so by setting POSENC_REQUIRE_DATA=OFF in its environment.
#
#   cmake -D REASON= -D REQUIRED= -P absent.cmake
cmake_minimum_required(VERSION 3.25)
if(DEFINED ENV{POSENC_REQUIRE_DATA})
  set(REQUIRED $ENV{POSENC_REQUIRE_DATA})
elseif("$ENV{CI}" STREQUAL "true")
  set(REQUIRED ON)
endif()
if(REQUIRED)
  message(FATAL_ERROR "required here, and cannot run: ${REASON}")
endif()
message("SKIPPED: ${REASON}")
