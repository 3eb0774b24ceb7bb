# The Python package, on the release build: a library with a sanitizer cannot be opened by a Python
# without.
find_package(Python3 COMPONENTS Interpreter QUIET)
if(UNIX AND NOT APPLE AND Python3_Interpreter_FOUND AND NOT TENON_SANITIZE AND NOT TENON_COVERAGE)
  file(GLOB suites RELATIVE "${CMAKE_CURRENT_SOURCE_DIR}/python" CONFIGURE_DEPENDS
    "${CMAKE_CURRENT_SOURCE_DIR}/python/test_*.py")
  foreach(suite ${suites})
    string(REGEX REPLACE "^test_(.*)\\.py$" "python.\\1" name "${suite}")
    add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B
      "${CMAKE_CURRENT_SOURCE_DIR}/python/run.py" "${PROJECT_BINARY_DIR}" "${suite}")
    # Also where a GPU is: it is then the current platform and the default device.
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${test_timeout} LABELS "python;gpu"
      ENVIRONMENT "${test_environment}" ENVIRONMENT_MODIFICATION "${test_variables}")
  endforeach()
endif()
