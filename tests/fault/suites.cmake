# Everything fails once, in turn. POSIX only: that is where the seam for system calls is.
if(NOT UNIX)
  return()
endif()

set(fault_modules early late starved wary willing)
foreach(module IN LISTS fault_modules)
  string(TOUPPER ${module} upper)
  add_library(test_fault_${module} MODULE fault/module.c)
  target_compile_definitions(test_fault_${module} PRIVATE ${upper} "NAME=\"${module}\"")
  target_include_directories(test_fault_${module} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(test_fault_${module} PRIVATE tenon_flags)
  set_target_properties(test_fault_${module} PROPERTIES PREFIX "" OUTPUT_NAME tenon-${module}
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/fault/${module}")
endforeach()

# The suites have the library inside, so their own folder is where it looks for its modules.
file(MAKE_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/fault")
file(CREATE_LINK "${PROJECT_BINARY_DIR}/backends" "${CMAKE_CURRENT_BINARY_DIR}/fault/backends"
     SYMBOLIC)

set(fault_needs tenon-probe)
foreach(module IN LISTS fault_modules)
  list(APPEND fault_needs test_fault_${module})
endforeach()
foreach(module IN LISTS TENON_MODULES)
  list(APPEND fault_needs tenon-${module})
endforeach()

foreach(suite calls memory modules)
  tenon_test(fault/${suite} DEFINITIONS
    "TENON_TEST_FAULT=\"${CMAKE_CURRENT_BINARY_DIR}/fault\""
    "TENON_TEST_PROBE=\"$<TARGET_FILE:tenon-probe>\""
    $<$<BOOL:${TENON_DESCRIBED}>:TENON_TEST_DESCRIBED>)
  add_dependencies(test_fault_${suite} ${fault_needs})
endforeach()
tenon_test(fault/platforms SOURCES unit/world.c)
tenon_test(fault/attention SOURCES unit/attention_rows.c DEFINITIONS SOURCE_FOLDER="${PROJECT_SOURCE_DIR}")
tenon_test(fault/dispatch SOURCES unit/toy.c)
tenon_test(fault/check)
tenon_test(fault/attention_video)
tenon_test(fault/einsum)
tenon_test(fault/fft)
tenon_test(fault/files)
tenon_test(fault/graphs)
