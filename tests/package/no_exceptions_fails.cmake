# The failing call must end the program, after its message on stderr.
cmake_minimum_required(VERSION 3.25)
execute_process(COMMAND ${PROGRAM} fail OUTPUT_VARIABLE out ERROR_VARIABLE err RESULT_VARIABLE result)
if(NOT out MATCHES "runs")
  message(FATAL_ERROR "the calls before the failing one did not run: ${out}${err}")
endif()
if(result EQUAL 0 OR NOT err MATCHES "posenc: .*expected.*got 7")
  message(FATAL_ERROR "the failing call left with \"${result}\" and wrote on stderr: ${err}")
endif()
