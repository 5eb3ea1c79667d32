# What `cmake --install` puts where: the shared library, the headers, the CMake package, pkg-config, the plugins' folder.
include(CMakePackageConfigHelpers)
set(HEDDLE_PLUGIN_INSTALL_DIR "${CMAKE_INSTALL_LIBDIR}/heddle/plugins" CACHE STRING "Where plugins are installed, relative to the prefix")
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/heddle")

install(TARGETS heddle heddle_plugin_api EXPORT heddle-targets
        LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}"
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(DIRECTORY "${CMAKE_CURRENT_SOURCE_DIR}/include/heddle" DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}" FILES_MATCHING PATTERN "*.h")
install(EXPORT heddle-targets NAMESPACE heddle:: DESTINATION "${package_dir}")

configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/heddle-config.cmake.in" "${CMAKE_CURRENT_BINARY_DIR}/heddle-config.cmake"
                              INSTALL_DESTINATION "${package_dir}" PATH_VARS HEDDLE_PLUGIN_INSTALL_DIR)
# ABI 0.x matches exactly, and so does the package while its major version is 0.
write_basic_package_version_file("${CMAKE_CURRENT_BINARY_DIR}/heddle-config-version.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/heddle-config.cmake" "${CMAKE_CURRENT_BINARY_DIR}/heddle-config-version.cmake"
              "${PROJECT_SOURCE_DIR}/cmake/heddle_add_plugin.cmake" "${PROJECT_SOURCE_DIR}/cmake/heddle_plugin.map"
        DESTINATION "${package_dir}")

# pkg-config: heddle for programs that embed the runtime, heddle-plugin for a plugin built by a plain compiler command.
file(RELATIVE_PATH HEDDLE_PREFIX_FROM_PC "/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/")
file(STRINGS "${CMAKE_CURRENT_SOURCE_DIR}/include/heddle/abi.h" abi_numbers REGEX "^#define HEDDLE_ABI_(MAJOR|MINOR) [0-9]+$")
string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]*([0-9]+)" "\\1.\\2" HEDDLE_ABI_VERSION "${abi_numbers}")
foreach(module heddle heddle-plugin)
  configure_file("${PROJECT_SOURCE_DIR}/cmake/${module}.pc.in" "${CMAKE_CURRENT_BINARY_DIR}/${module}.pc" @ONLY)
  install(FILES "${CMAKE_CURRENT_BINARY_DIR}/${module}.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
endforeach()
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
