# The conformance suite on platforms that are right and on one that is not; the seed's sample device; the
# example of a platform out of the tree.
include(scripts.cmake)
if(NOT UNIX OR APPLE)
  return()
endif()

# tenon_conformance_module(NAME SOURCES...): a module for the tests, conformance/modules/tenon-NAME.so.
set(conformance_folder "${CMAKE_CURRENT_BINARY_DIR}/conformance/modules")
function(tenon_conformance_module name)
  add_library(conformance_${name} MODULE ${ARGN})
  target_include_directories(conformance_${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(conformance_${name} PRIVATE _GNU_SOURCE)
  target_link_libraries(conformance_${name} PRIVATE tenon_flags Threads::Threads)
  set_target_properties(conformance_${name} PROPERTIES PREFIX "" OUTPUT_NAME tenon-${name}
    LIBRARY_OUTPUT_DIRECTORY "${conformance_folder}" SKIP_BUILD_RPATH ON)
endfunction()

find_package(Threads REQUIRED)
tenon_conformance_module(seed-sample conformance/seed_sample.c)
tenon_conformance_module(faulty conformance/faulty.c conformance/faulty_queue.c)
tenon_conformance_module(lathe conformance/kernels_module.c)
tenon_conformance_module(lathe-cpu conformance/kernels_module.c)
target_compile_definitions(conformance_lathe-cpu PRIVATE KERNELS_ONLY)

# Stand-ins for platforms without a module of their own: tests/python/test_stand_ins.py.
tenon_conformance_module(stand-in-rocm conformance/stand_in_platform.c)
target_compile_definitions(conformance_stand-in-rocm PRIVATE STAND_IN_ROCM)
tenon_conformance_module(stand-in-metal conformance/stand_in_platform.c)
target_compile_definitions(conformance_stand-in-metal PRIVATE STAND_IN_METAL)

# The example is built outside by its own Makefile in conformance/outside.py; here with the flags and the
# sanitizer of the rest.
set(ferry "${PROJECT_SOURCE_DIR}/examples/out-of-tree")
tenon_conformance_module(ferry ${ferry}/tenon-ferry.c ${ferry}/line.c)
add_executable(ferry-server ${ferry}/server.c ${ferry}/server_memory.c ${ferry}/server_stream.c)
target_compile_definitions(ferry-server PRIVATE _GNU_SOURCE)
target_link_libraries(ferry-server PRIVATE tenon_flags Threads::Threads)
set_target_properties(ferry-server PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${conformance_folder}" SKIP_BUILD_RPATH ON)

tenon_test(conformance/sample SOURCES conformance/seed_sample.c
  DEFINITIONS tn_module_entry=seed_sample_entry)
tenon_test(conformance/ferry
  DEFINITIONS FERRY="$<TARGET_FILE:conformance_ferry>")
add_dependencies(test_conformance_ferry conformance_ferry ferry-server)

tenon_test_script(conformance/platforms)
tenon_test_script(conformance/faults)
tenon_test_script(conformance/kernels)
tenon_test_script(conformance/outside)

# A request for more memory than there can be is refused by a sanitizer's allocator too, if it is told to.
set_property(TEST conformance.platforms conformance.faults conformance.kernels conformance.outside APPEND PROPERTY
  ENVIRONMENT ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1)
