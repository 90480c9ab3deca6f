# For our own tests, examples and benchmarks only. Nothing here reaches the target `posenc` or its users.
if(CMAKE_VERSION VERSION_LESS 3.25)
  message(FATAL_ERROR "posenc's own tests, examples and benchmarks need CMake 3.25 or newer; the library alone needs "
                      "3.16: leave POSENC_BUILD_TESTS, POSENC_BUILD_EXAMPLES and POSENC_BUILD_BENCHMARKS OFF")
endif()

set(data_dir ${PROJECT_SOURCE_DIR}/../shared/data)
cmake_path(NORMAL_PATH data_dir)
if(NOT EXISTS ${data_dir})
  set(data_dir "")
endif()
set(POSENC_DATA_DIR "${data_dir}" CACHE PATH "Models and reference numbers for tests and examples")

set(POSENC_WARNINGS -Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow)
if(POSENC_WERROR)
  list(APPEND POSENC_WARNINGS -Werror)
endif()

# posenc_program(NAME SOURCES...): the executable <build>/bin/posenc_NAME, with every warning on.
function(posenc_program NAME)
  set(target posenc_${NAME})
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE posenc::posenc)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
  if(NOT MSVC)
    target_compile_options(${target} PRIVATE ${POSENC_WARNINGS})
  endif()
endfunction()
