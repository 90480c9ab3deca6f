# Compiles one file without making an object, and checks what the compiler says.
#
#   cmake -D COMPILER= -D FLAGS= -D SOURCE= [-D EXPECT_ERROR=regex] -P compile.cmake
#
# Without EXPECT_ERROR the file must compile. With it, the file must be refused and the compiler's words must
# match: a file that is refused for another reason fails the test.
cmake_minimum_required(VERSION 3.25)
separate_arguments(FLAGS UNIX_COMMAND "${FLAGS}")
execute_process(COMMAND ${COMPILER} ${FLAGS} -fsyntax-only ${SOURCE} OUTPUT_VARIABLE said ERROR_VARIABLE said
                RESULT_VARIABLE result)
if(EXPECT_ERROR STREQUAL "")
  if(NOT result EQUAL 0)
    message("${said}")
    message(FATAL_ERROR "${SOURCE} must compile")
  endif()
elseif(result EQUAL 0)
  message(FATAL_ERROR "${SOURCE} must not compile, and does")
elseif(NOT said MATCHES "${EXPECT_ERROR}")
  message("${said}")
  message(FATAL_ERROR "${SOURCE} is refused as it must be, but no message matches \"${EXPECT_ERROR}\"")
endif()
