# posenc_live_numbers against numbers known beforehand, and what it says to settings without a meaning.
#   cmake -D PROGRAM= -D WORK= -P numbers_test.cmake
cmake_minimum_required(VERSION 3.25)

function(numbers_of settings)
  file(WRITE ${WORK}/live_settings.jsonl "${settings}\n")
  execute_process(
    COMMAND ${PROGRAM}
    INPUT_FILE ${WORK}/live_settings.jsonl
    OUTPUT_VARIABLE out
    ERROR_VARIABLE err
    RESULT_VARIABLE result)
  set(out "${out}" PARENT_SCOPE)
  set(err "${err}" PARENT_SCOPE)
  set(result "${result}" PARENT_SCOPE)
endfunction()

function(expect settings member expected)
  numbers_of("${settings}")
  string(JSON got GET "${out}" ${member})
  string(REGEX REPLACE "[ \n]" "" got "${got}")
  if(NOT result EQUAL 0 OR NOT got STREQUAL expected)
    message(FATAL_ERROR "${settings}\nexpected ${member} ${expected}, got ${got} (exit code ${result}) ${err}")
  endif()
endfunction()

set(alibi "{\"panel\": \"alibi\", \"heads\": 8, \"head\": 1, \"form\": 1, \"size\": 2, \"distance\": 4}")
expect("${alibi}" slopes "[0.5,0.25,0.125,0.0625,0.03125,0.015625,0.0078125,0.00390625]")
expect("${alibi}" at "[-2.0,-1.0,-0.5,-0.25,-0.125,-0.0625,-0.03125,-0.015625]")
expect("${alibi}" matrix "[-0.0,\"-inf\",-0.25,-0.0]")
expect("{\"panel\": \"waves\", \"d_model\": 8, \"base\": 10000, \"position\": 0, \"fractions\": 64, \"curve_fractions\": 8, \"window\": 1}" row
       "[0.0,1.0,0.0,1.0,0.0,1.0,0.0,1.0]")
expect("{\"panel\": \"angles\", \"head_dim\": 2, \"theta\": 10000, \"position\": 0}" definition_cos "[1.0]")

function(expect_error settings message)
  numbers_of("${settings}")
  if(NOT result EQUAL 2 OR NOT err MATCHES "^posenc_live_numbers: [^\n]*${message}[^\n]*\n$")
    message(FATAL_ERROR "${settings}\nexpected exit code 2 and one line with '${message}', got ${result}: ${err}")
  endif()
endfunction()

expect_error("{\"panel\": \"clock\"}" "expected waves, attention, rope, alibi or angles, got clock")
expect_error("{\"panel\": \"alibi\"}" "heads")
expect_error("{\"panel\": " "parse error")
