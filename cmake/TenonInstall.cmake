# What `cmake --install` lays down: library, headers, modules, command, and the two ways to find
# them (CMake package, pkg-config).
include(CMakePackageConfigHelpers)

install(TARGETS tenon EXPORT TenonTargets
  LIBRARY DESTINATION "${CMAKE_INSTALL_LIBDIR}" RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}"
  ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
install(DIRECTORY include/tenon DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(EXPORT TenonTargets NAMESPACE Tenon::
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Tenon")
configure_package_config_file(cmake/TenonConfig.cmake.in "${PROJECT_BINARY_DIR}/TenonConfig.cmake"
  INSTALL_DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Tenon" PATH_VARS TENON_MODULE_DIR)
# While the major is 0 a minor may break; a consumer asks for the one it was written for.
write_basic_package_version_file("${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/TenonConfig.cmake" "${PROJECT_BINARY_DIR}/TenonConfigVersion.cmake"
  DESTINATION "${CMAKE_INSTALL_LIBDIR}/cmake/Tenon")

# The prefix as seen from the .pc file, so that an installed tree can be moved.
file(RELATIVE_PATH TENON_PC_PREFIX "/prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig" "/prefix")
string(REGEX REPLACE "/$" "" TENON_PC_PREFIX "${TENON_PC_PREFIX}")
configure_file(cmake/tenon.pc.in "${PROJECT_BINARY_DIR}/tenon.pc" @ONLY)
install(FILES "${PROJECT_BINARY_DIR}/tenon.pc" DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
install(FILES LICENSE README.md CHANGELOG.md CONTRIBUTING.md DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY docs DESTINATION "${CMAKE_INSTALL_DOCDIR}"
  FILES_MATCHING PATTERN "*.md" PATTERN "*.png" PATTERN "*.svg")

install(DIRECTORY backends/described/devices DESTINATION "${CMAKE_INSTALL_DATADIR}/tenon"
  FILES_MATCHING PATTERN "*.device")

# Sources only: whoever built an example in the source tree has programs there too.
install(DIRECTORY examples DESTINATION "${CMAKE_INSTALL_DATADIR}/tenon"
  FILES_MATCHING PATTERN "*.c" PATTERN "*.cc" PATTERN "*.zig" PATTERN "*.h" PATTERN "*.hpp" PATTERN "*.py" PATTERN "*.md" PATTERN "*.txt"
  PATTERN "Makefile" PATTERN "__pycache__" EXCLUDE)

find_program(SCDOC scdoc)
if(SCDOC)
  add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/tenon.1"
    COMMAND sh -c "${SCDOC} < '${PROJECT_SOURCE_DIR}/man/tenon.1.scd' > tenon.1"
    WORKING_DIRECTORY "${PROJECT_BINARY_DIR}" DEPENDS man/tenon.1.scd VERBATIM)
  add_custom_target(man ALL DEPENDS "${PROJECT_BINARY_DIR}/tenon.1")
  install(FILES "${PROJECT_BINARY_DIR}/tenon.1" DESTINATION "${CMAKE_INSTALL_MANDIR}/man1")
else()
  message(STATUS "scdoc is not here: the man page is not built")
endif()

# What users get, without tests and benchmarks: what `make build` builds.
add_custom_target(product)
add_dependencies(product tenon tenon_command)
foreach(target tenon-probe man)
  if(TARGET ${target})
    add_dependencies(product ${target})
  endif()
endforeach()
foreach(module IN LISTS TENON_MODULES)
  add_dependencies(product tenon-${module})
endforeach()
