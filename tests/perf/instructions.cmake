# Instructions per element of a rotation, counted by callgrind: they do not depend on the clock or on what else the
# machine does. Two runs that differ by a number of calls; the start-up is in both and cancels.
#   cmake -D VALGRIND= -D PROGRAM= -D SCALAR= -D PAIRING= -D SHAPE=BxSxHxD -D AT_MOST= -D EXPECT= -P instructions.cmake
# With EXPECT=MORE the count must be above AT_MOST.
cmake_minimum_required(VERSION 3.25)

string(REPLACE "x" ";" extents ${SHAPE})
set(elements 1)
foreach(extent IN LISTS extents)
  math(EXPR elements "${elements} * ${extent}")
endforeach()

function(instructions times result)
  execute_process(
    COMMAND ${VALGRIND} --tool=callgrind --callgrind-out-file=/dev/null ${PROGRAM} ${SCALAR} ${PAIRING} ${extents}
            ${times}
    OUTPUT_QUIET
    ERROR_VARIABLE log
    RESULT_VARIABLE code)
  if(NOT code EQUAL 0 OR NOT log MATCHES "Collected : ([0-9]+)")
    message(FATAL_ERROR "callgrind did not count (exit ${code}):\n${log}")
  endif()
  set(${result} ${CMAKE_MATCH_1} PARENT_SCOPE)
endfunction()

set(calls 4)
instructions(1 short)
math(EXPR times "1 + ${calls}")
instructions(${times} long)
math(EXPR hundredths "100 * (${long} - ${short}) / (${calls} * ${elements})")

# AT_MOST is a decimal number; compare in hundredths.
string(REGEX MATCH "^([0-9]+)\\.([0-9][0-9])$" valid "${AT_MOST}")
if(NOT valid)
  message(FATAL_ERROR "AT_MOST: expected a number with two decimals, got '${AT_MOST}'")
endif()
math(EXPR bound "100 * ${CMAKE_MATCH_1} + 1${CMAKE_MATCH_2} - 100")
math(EXPR whole "${hundredths} / 100")
math(EXPR rest "${hundredths} % 100 + 100")
string(SUBSTRING ${rest} 1 2 rest)
message("rotate ${SCALAR} ${PAIRING} ${SHAPE}: ${whole}.${rest} instructions per element, at most ${AT_MOST}")
if(EXPECT STREQUAL "MORE")
  if(NOT hundredths GREATER bound)
    message(FATAL_ERROR "expected more than ${AT_MOST}: the bound would not notice a loop without vectors")
  endif()
elseif(hundredths GREATER bound)
  message(FATAL_ERROR "more than ${AT_MOST}: has a loop lost its vectorisation?")
endif()
