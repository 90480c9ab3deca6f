# Every header, included alone by an older standard or with an older Eigen, is refused in one sentence: it is the first
# error, and nothing but the fatal error that stops the compiler follows.
#
#   cmake -D COMPILER= -D FLAGS= -D HEADERS= -D OLD_EIGEN= -D WORK= -P older_language.cmake
cmake_minimum_required(VERSION 3.25)
separate_arguments(FLAGS UNIX_COMMAND "${FLAGS}")
get_filename_component(name ${COMPILER} NAME)
set(source ${WORK}/older_language_${name}.cpp)

function(expect_sentence sentence header)
  file(WRITE ${source} "#include <${header}>\n")
  execute_process(COMMAND ${COMPILER} ${ARGN} ${source} OUTPUT_QUIET ERROR_VARIABLE said RESULT_VARIABLE result)
  string(REGEX MATCHALL "error: [^\n]*" errors "${said}")
  list(LENGTH errors count)
  if(result EQUAL 0 OR NOT errors MATCHES "^error: (#error )?\"${sentence}" OR NOT count EQUAL 2)
    message("${said}")
    message(SEND_ERROR "${header}: expected the one sentence \"${sentence}\"")
  endif()
endfunction()

# The preprocessor alone meets the sentence, at a tenth of the price.
foreach(header IN LISTS HEADERS)
  expect_sentence("posenc needs C\\+\\+20: " ${header} -std=c++17 ${FLAGS} -E)
endforeach()
foreach(standard c++14 c++17 gnu++17)
  expect_sentence("posenc needs C\\+\\+20: " posenc/posenc.hpp -std=${standard} ${FLAGS} -fsyntax-only)
endforeach()
expect_sentence("posenc needs Eigen 3.4 or newer" posenc/core/scalar.hpp -std=c++20 -I${OLD_EIGEN} ${FLAGS} -E)
