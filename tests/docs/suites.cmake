# Every snippet of the pages, and the links between them.
find_package(Python3 COMPONENTS Interpreter)
if(Python3_FOUND)
  set(release "")
  if(NOT TENON_SANITIZE AND NOT TENON_COVERAGE)
    set(release --release)
  endif()
  add_test(NAME docs.snippets COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs/snippets.py
    --source ${PROJECT_SOURCE_DIR} --build ${PROJECT_BINARY_DIR} ${release})
  add_test(NAME docs.pages COMMAND ${Python3_EXECUTABLE} ${CMAKE_CURRENT_SOURCE_DIR}/docs/pages.py
    ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
  set_tests_properties(docs.snippets docs.pages PROPERTIES TIMEOUT ${test_timeout}
    LABELS "docs;release-only")
  include(scripts.cmake)
  if(UNIX)
    tenon_test_script(docs/settings)
    tenon_test_script(docs/dispatch)
    tenon_test_script(docs/tutorial)
  endif()
else()
  message(STATUS "python3 is not here: the tests of the pages are left out")
endif()
