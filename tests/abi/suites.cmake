include(scripts.cmake)

tenon_test_script(abi/headers)
tenon_test(abi/layout)
if(UNIX AND NOT APPLE)
  tenon_test_script(abi/exports)
  tenon_test_script(abi/scopes)

  add_library(test_abi_twice MODULE abi/twice.c)
  target_include_directories(test_abi_twice PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(test_abi_twice PRIVATE tenon_flags)
  set_target_properties(test_abi_twice PROPERTIES PREFIX "" OUTPUT_NAME tenon-twice
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/abi")
  tenon_test(abi/two_copies LABELS concurrency DEFINITIONS
    "TENON_TEST_LIBRARY=\"$<TARGET_FILE:tenon>\""
    "TENON_TEST_BACKENDS=\"${PROJECT_BINARY_DIR}/backends\""
    "TENON_TEST_TWICE=\"$<TARGET_FILE:test_abi_twice>\"")
  add_dependencies(test_abi_two_copies tenon test_abi_twice)
endif()
