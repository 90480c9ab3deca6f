# What an installed posenc is: the headers, a package file for CMake, one for pkg-config, and the licence.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir ${CMAKE_INSTALL_DATADIR}/cmake/posenc)

# Include folders in the old way: a file set reaches nobody before CMake 3.23.
install(DIRECTORY include/posenc DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.hpp")
install(TARGETS posenc EXPORT posenc-targets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT posenc-targets NAMESPACE posenc:: DESTINATION ${package_dir})
# The build folder is a package as well, so that the build folder of a library that links posenc can be one.
export(EXPORT posenc-targets NAMESPACE posenc:: FILE ${PROJECT_BINARY_DIR}/posenc-targets.cmake)

configure_package_config_file(cmake/posenc-config.cmake.in ${PROJECT_BINARY_DIR}/posenc-config.cmake
                              INSTALL_DESTINATION ${package_dir})
configure_file(cmake/posenc-config-version.cmake.in ${PROJECT_BINARY_DIR}/posenc-config-version.cmake @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/posenc-config.cmake ${PROJECT_BINARY_DIR}/posenc-config-version.cmake
        DESTINATION ${package_dir})

# The prefix is written relative to the .pc file, so that an installed tree can be moved.
set(pkgconfig_dir ${CMAKE_INSTALL_DATADIR}/pkgconfig)
if(IS_ABSOLUTE ${CMAKE_INSTALL_DATADIR})
  set(pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH up /prefix/${pkgconfig_dir} /prefix)
  string(REGEX REPLACE "/$" "" up "${up}")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
if(IS_ABSOLUTE ${CMAKE_INSTALL_INCLUDEDIR})
  set(pc_includedir ${CMAKE_INSTALL_INCLUDEDIR})
else()
  set(pc_includedir "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}")
endif()
configure_file(cmake/posenc.pc.in ${PROJECT_BINARY_DIR}/posenc.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/posenc.pc DESTINATION ${pkgconfig_dir})

install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/licenses/posenc)
