# What is installed, how others find it (find_package, pkg-config), and the Debian package that
# `cpack -G DEB` makes of it.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

install(DIRECTORY include/jitsoftmax TYPE INCLUDE)
install(TARGETS jitsoftmax_static jitsoftmax_shared EXPORT jitsoftmaxTargets
  INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
if(JITSOFTMAX_BUILD_TOOLS)
  install(TARGETS jitsoftmax_program)
endif()

set(config_dir "${CMAKE_INSTALL_LIBDIR}/cmake/jitsoftmax")
install(EXPORT jitsoftmaxTargets NAMESPACE jitsoftmax:: DESTINATION "${config_dir}")
configure_package_config_file(cmake/jitsoftmaxConfig.cmake.in "${PROJECT_BINARY_DIR}/package/jitsoftmaxConfig.cmake"
  INSTALL_DESTINATION "${config_dir}" NO_SET_AND_CHECK_MACRO)
# Before 1.0 the C++ interface may change with the minor number.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/package/jitsoftmaxConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/package/jitsoftmaxConfig.cmake"
              "${PROJECT_BINARY_DIR}/package/jitsoftmaxConfigVersion.cmake" DESTINATION "${config_dir}")

# Relative to itself, so that an installed tree can be moved.
file(RELATIVE_PATH prefix_from_pc "${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig" "${CMAKE_INSTALL_PREFIX}")
configure_file(cmake/jitsoftmax.pc.in "${PROJECT_BINARY_DIR}/package/jitsoftmax.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/package/jitsoftmax.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")

set(CPACK_PACKAGE_NAME libjitsoftmax)
set(CPACK_PACKAGE_VENDOR "The libjitsoftmax maintainers")
set(CPACK_PACKAGE_CONTACT "${CPACK_PACKAGE_VENDOR}" CACHE STRING "The maintainer that the Debian package names")
set(CPACK_VERBATIM_VARIABLES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)  # and ldconfig runs when it is installed
find_program(dpkg_shlibdeps dpkg-shlibdeps NO_CACHE)
if(dpkg_shlibdeps)
  set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
else()
  message(STATUS "No dpkg-shlibdeps here (dpkg-dev): a Debian package that is made here names no dependencies")
endif()
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DATADIR}/doc/${CPACK_PACKAGE_NAME}" RENAME copyright)
include(CPack)
