# Runs after each build of a test executable: asks it for its test cases and writes them down for ctest.
# One process serves one case. The labels follow the tags: a case tagged [property] has the label `property` in place
# of `unit`, and one tagged [threads] has `threads` besides.
#
#   cmake -D EXECUTABLE= -D NAME= -D LABELS= -D CATCH_VERSION= -D DATA_DIR= -D OUTPUT= -P discover.cmake
cmake_minimum_required(VERSION 3.25)

# The names as a list. Brackets would glue list elements together in CMake, so they are spelled out until the end.
function(cases_of spec out)
  if(CATCH_VERSION VERSION_LESS 3)
    set(arguments --list-test-names-only)  # leaves with the number of cases
  else()
    set(arguments --list-tests --verbosity quiet)
  endif()
  execute_process(COMMAND "${EXECUTABLE}" ${arguments} ${spec} OUTPUT_VARIABLE names ERROR_VARIABLE complaint
                  RESULT_VARIABLE result)
  if(NOT result MATCHES "^[0-9]+$" OR NOT complaint STREQUAL "")
    message(FATAL_ERROR "${NAME} cannot list its test cases: ${result}\n${names}${complaint}")
  endif()
  if(names MATCHES ";")
    message(FATAL_ERROR "${NAME}: a test case has a semicolon in its name:\n${names}")
  endif()
  string(REPLACE "[" "@open@" names "${names}")
  string(REPLACE "]" "@close@" names "${names}")
  string(REPLACE "\\" "@back@" names "${names}")
  string(REGEX REPLACE "\n+" ";" names "${names}")
  list(REMOVE_ITEM names "")
  list(TRANSFORM names STRIP)
  set(${out} "${names}" PARENT_SCOPE)
endfunction()

cases_of("" all)
cases_of("[property]" properties)
cases_of("[threads]" threads)
if(all STREQUAL "")
  message(FATAL_ERROR "${NAME} has no test case")
endif()

set(script "")
set(environment "")
if(NOT DATA_DIR STREQUAL "")
  set(environment " ENVIRONMENT [==[POSENC_DATA_DIR=${DATA_DIR}]==]")
endif()
foreach(name IN LISTS all)
  set(labels ${LABELS})
  if(name IN_LIST properties)
    list(REMOVE_ITEM labels unit)
    list(APPEND labels property)
  endif()
  if(name IN_LIST threads)
    list(APPEND labels threads)
  endif()

  # Catch2 reads , [ ] and \ in a test specification, so they are escaped there.
  set(spec "${name}")
  string(REPLACE "@back@" "\\\\" spec "${spec}")
  string(REPLACE "@open@" "\\[" spec "${spec}")
  string(REPLACE "@close@" "\\]" spec "${spec}")
  string(REPLACE "," "\\," spec "${spec}")
  string(REPLACE "@back@" "\\" name "${name}")
  string(REPLACE "@open@" "[" name "${name}")
  string(REPLACE "@close@" "]" name "${name}")

  # Without this Catch2 2.13 passes a name that matches nothing; 3.x fails of itself.
  set(strict "")
  if(CATCH_VERSION VERSION_LESS 3)
    set(strict " --warn NoTests")
  endif()

  string(APPEND script "add_test([==[${NAME}: ${name}]==] [==[${EXECUTABLE}]==] [==[${spec}]==]${strict})\n")
  string(APPEND script "set_tests_properties([==[${NAME}: ${name}]==] PROPERTIES LABELS [==[${labels}]==] TIMEOUT 600"
                       "${environment})\n")
endforeach()
file(WRITE "${OUTPUT}" "${script}")
