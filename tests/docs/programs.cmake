# The programs of the reference pages, docs/programs/*.cpp, as one executable: `posenc_docs_programs NAME` runs one of
# them. Each stands in a namespace of its own in one generated file, because most of the time goes into Eigen's headers.
file(GLOB programs CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/programs/*.cpp)
set(includes "#include <cstdio>\n#include <string>\n")
set(bodies "")
set(choices "")
foreach(program IN LISTS programs)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${program})
  get_filename_component(name ${program} NAME_WE)
  file(READ ${program} text)
  string(REGEX MATCHALL "#include [^\n]*" lines "${text}")
  string(REPLACE ";" "\n" lines "${lines}")
  string(APPEND includes "${lines}\n")
  string(REGEX REPLACE "#include [^\n]*" "" text "${text}")
  string(REPLACE "\nint main() {" "\nvoid run() {" text "${text}")
  string(APPEND bodies "namespace ${name} {\n#line 1 \"${program}\"\n${text}\n}  // namespace ${name}\n")
  string(APPEND choices "  if (name == \"${name}\") return ${name}::run(), 0;\n")
endforeach()
set(generated ${CMAKE_CURRENT_BINARY_DIR}/docs_programs.cpp)
file(
  CONFIGURE
  OUTPUT ${generated}
  CONTENT
    "@includes@\n@bodies@\nint main(int argc, char** argv) {\n  const std::string name = argc == 2 ? argv[1] : \"\";\n@choices@  std::fprintf(stderr, \"there is no program '%s'\\n\", name.c_str());\n  return 2;\n}\n"
  @ONLY)
posenc_program(docs_programs ${generated})
