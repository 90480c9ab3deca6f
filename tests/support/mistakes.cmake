# Compiles one file of mistakes without making an object, and checks what the compiler says of them.
#
#   cmake -D COMPILER= -D FLAGS= -D SOURCE= -D SENTENCE= -P mistakes.cmake
#
# SENTENCE must stand in the first three lines of what it says, and in every error of it; and each line of SOURCE that
# ends with the comment `wrong` must be named.
cmake_minimum_required(VERSION 3.25)
separate_arguments(FLAGS UNIX_COMMAND "${FLAGS}")
execute_process(COMMAND ${COMPILER} ${FLAGS} -fsyntax-only ${SOURCE} OUTPUT_VARIABLE said ERROR_VARIABLE said
                RESULT_VARIABLE result)
# The list separator and what CMake takes for brackets of its own.
string(REGEX REPLACE "[;[]" "," lines "${said}")
string(REPLACE "]" "," lines "${lines}")

function(fail WHY)
  message("${said}")
  message(FATAL_ERROR "${SOURCE}: ${WHY}")
endfunction()

if(result EQUAL 0)
  fail("must not compile, and does")
endif()
string(REGEX MATCH "^[^\n]*\n[^\n]*\n[^\n]*" first "${lines}")
string(FIND "${first}" "${SENTENCE}" found)
if(found EQUAL -1)
  fail("the first three lines don't say \"${SENTENCE}\"")
endif()
string(REGEX MATCHALL "[^\n]*error: [^\n]*" errors "${lines}")
foreach(error IN LISTS errors)
  string(FIND "${error}" "${SENTENCE}" found)
  if(found EQUAL -1)
    fail("expected \"${SENTENCE}\", got \"${error}\"")
  endif()
endforeach()

set(number 0)
set(wrong 0)
get_filename_component(name ${SOURCE} NAME)
file(READ ${SOURCE} source)
string(REGEX REPLACE "[;[]" "," source "${source}")
string(REPLACE "]" "," source "${source}")
string(REGEX MATCHALL "[^\n]*\n" source "${source}")
foreach(line IN LISTS source)
  math(EXPR number "${number} + 1")
  if(line MATCHES "// wrong\n$")
    math(EXPR wrong "${wrong} + 1")
    if(NOT lines MATCHES "${name}:${number}:")
      fail("nothing is said of line ${number}: ${line}")
    endif()
  endif()
endforeach()
if(wrong EQUAL 0)
  fail("no line ends with the comment `wrong`")
endif()
message(STATUS "${wrong} mistakes, each refused with \"${SENTENCE}\"")
