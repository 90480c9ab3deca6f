# Builds and installs the library in exported/, then builds a user of it, twice: against what was installed, and against the
# build folders.
#
#   cmake -D SOURCE= -D WORK= -D GENERATOR= -D POSENC_SOURCE= "-DTOOLCHAIN=..." -P exported.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${WORK})
function(run)
  execute_process(COMMAND ${ARGN} COMMAND_ERROR_IS_FATAL ANY)
endfunction()
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE} -B ${WORK}/build ${TOOLCHAIN} -D POSENC_SOURCE=${POSENC_SOURCE} -D
    CMAKE_INSTALL_PREFIX=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build --target install)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/user -B ${WORK}/user ${TOOLCHAIN} -D CMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/user)
run(${WORK}/user/user)
run(${CMAKE_COMMAND} -G ${GENERATOR} -S ${SOURCE}/user -B ${WORK}/user_of_build ${TOOLCHAIN} -D
    encoder_DIR=${WORK}/build -D posenc_DIR=${WORK}/build/posenc)
run(${CMAKE_COMMAND} --build ${WORK}/user_of_build)
run(${WORK}/user_of_build/user)
