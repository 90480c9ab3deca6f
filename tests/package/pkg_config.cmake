# Compiles and runs the consumer with nothing but a compiler and what pkg-config says.
#   cmake -D PKG_CONFIG= -D COMPILER= -D FLAGS= -D PREFIX= -D VERSION= -D SOURCE= -D PROGRAM= -P pkg_config.cmake
cmake_minimum_required(VERSION 3.25)
set(ENV{PKG_CONFIG_PATH} "${PREFIX}/share/pkgconfig:$ENV{PKG_CONFIG_PATH}")
execute_process(COMMAND ${PKG_CONFIG} --modversion posenc OUTPUT_VARIABLE version OUTPUT_STRIP_TRAILING_WHITESPACE
                        COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PKG_CONFIG} --cflags posenc OUTPUT_VARIABLE cflags OUTPUT_STRIP_TRAILING_WHITESPACE
                        COMMAND_ERROR_IS_FATAL ANY)
if(NOT version STREQUAL VERSION)
  message(FATAL_ERROR "pkg-config says version ${version}, expected ${VERSION}")
endif()
if(cflags MATCHES "(^| )-[^I]")
  message(FATAL_ERROR "pkg-config brings more than include folders: ${cflags}")
endif()
separate_arguments(arguments UNIX_COMMAND "${FLAGS} ${cflags}")
execute_process(COMMAND ${COMPILER} -std=c++20 ${arguments} ${SOURCE} -o ${PROGRAM} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${PROGRAM} COMMAND_ERROR_IS_FATAL ANY)
