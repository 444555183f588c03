# What `cmake --install` puts where, so that find_package(latchkey) and pkg-config find it.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/latchkey)

install(TARGETS latchkey latchkey_server_library latchkey_testing_library
  EXPORT latchkey_targets FILE_SET HEADERS)
install(EXPORT latchkey_targets NAMESPACE latchkey:: DESTINATION ${config_dir})

configure_package_config_file(
  ${PROJECT_SOURCE_DIR}/cmake/latchkey-config.cmake.in
  ${PROJECT_BINARY_DIR}/latchkey-config.cmake
  INSTALL_DESTINATION ${config_dir})
write_basic_package_version_file(
  ${PROJECT_BINARY_DIR}/latchkey-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES
  ${PROJECT_BINARY_DIR}/latchkey-config.cmake
  ${PROJECT_BINARY_DIR}/latchkey-config-version.cmake
  DESTINATION ${config_dir})

# A static library brings its needs into the user's link line, a shared one has them inside.
if(BUILD_SHARED_LIBS)
  set(pc_openssl "Requires.private: openssl")
else()
  set(pc_openssl "Requires: openssl")
endif()
# The prefix follows from where the .pc file lies, so that the tree can be moved.
file(RELATIVE_PATH pc_prefix
  /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
# latchkey_pkg_config(<library> <description> <its line of needs>): so that pkg-config finds it.
function(latchkey_pkg_config library description requires)
  set(file ${PROJECT_BINARY_DIR}/${library}.pc)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/latchkey.pc.in ${file} @ONLY)
  install(FILES ${file} DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()
latchkey_pkg_config(latchkey "${PROJECT_DESCRIPTION}" "${pc_openssl}")
latchkey_pkg_config(latchkey_server "A ZooKeeper-compatible server of one machine"
  "Requires: latchkey")
latchkey_pkg_config(latchkey_testing "A simulated service for tests" "Requires: latchkey")
