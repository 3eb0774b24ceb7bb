# tenon_test_script(FOLDER/NAME [SANITIZED] [LABELS ...]): a suite that is a Python script,
# FOLDER/NAME.py, run on the build folder as FOLDER.NAME. Exit 77 is a skip. SANITIZED: `make test` runs it
# with the address sanitizer, too.
include_guard()
find_package(Python3 COMPONENTS Interpreter QUIET)

function(tenon_test_script path)
  cmake_parse_arguments(ARG "SANITIZED" "" "LABELS" ${ARGN})
  if(NOT ARG_SANITIZED)
    list(APPEND ARG_LABELS release-only)
  endif()
  string(REPLACE "/" "." name "${path}")
  get_filename_component(folder "${path}" DIRECTORY)
  if(Python3_Interpreter_FOUND)
    add_test(NAME ${name} COMMAND ${Python3_EXECUTABLE} -B
      "${CMAKE_CURRENT_SOURCE_DIR}/${path}.py" "${PROJECT_BINARY_DIR}")
    set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77)
  else()
    add_test(NAME ${name} COMMAND ${CMAKE_COMMAND} -E echo "skipped: ${name}: python3 is not here")
    set_tests_properties(${name} PROPERTIES SKIP_REGULAR_EXPRESSION "skipped: ")
  endif()
  set(environment ${test_environment})
  if(TENON_SANITIZE AND CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
    # The search for leaks takes 3 seconds of each process there, and a script starts hundreds. The C suites search.
    list(APPEND environment LSAN_OPTIONS=detect_leaks=0)
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${test_timeout} LABELS "${folder};${ARG_LABELS}"
    ENVIRONMENT "${environment}" ENVIRONMENT_MODIFICATION "${test_variables}")
endfunction()
