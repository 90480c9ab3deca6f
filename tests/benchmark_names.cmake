# Every benchmark that a row of the report is made of is one that posenc_bench knows.
#   cmake -D PROGRAM= -D PYTHON= -D REPORT= -P benchmark_names.cmake
cmake_minimum_required(VERSION 3.25)
execute_process(
  COMMAND ${PROGRAM} --benchmark_list_tests
  COMMAND ${PYTHON} ${REPORT} --missing
  OUTPUT_VARIABLE missing
  RESULTS_VARIABLE codes)
if(NOT codes STREQUAL "0;0")
  message(FATAL_ERROR "posenc_bench lacks what the report needs (exit codes ${codes}):\n${missing}")
endif()
