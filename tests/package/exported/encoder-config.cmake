include(CMakeFindDependencyMacro)
find_dependency(posenc)
include(${CMAKE_CURRENT_LIST_DIR}/encoder-targets.cmake)
