# How modules come in, on systems with POSIX processes and ELF libraries.
if(NOT UNIX OR APPLE)
  return()
endif()

# tenon_stub(NAME [OF STUB] [CALLED MODULE] [DEFINITIONS ...] [OPTIONS ...] [SANITIZER KIND]): a
# module for the tests, stubs/NAME.so, built from loader/stub.c as STUB_<STUB>.
set(stub_folder "${CMAKE_CURRENT_BINARY_DIR}/loader/stubs")
function(tenon_stub name)
  cmake_parse_arguments(ARG "" "OF;CALLED;SANITIZER" "DEFINITIONS;OPTIONS" ${ARGN})
  if(NOT ARG_OF)
    set(ARG_OF ${name})
  endif()
  if(NOT ARG_CALLED)
    set(ARG_CALLED ${name})
  endif()
  string(TOUPPER "STUB_${ARG_OF}" stub)
  add_library(stub_${name} MODULE loader/stub.c)
  target_include_directories(stub_${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(stub_${name} PRIVATE _GNU_SOURCE STUB=${stub}
    STUB_NAME="${ARG_CALLED}" ${ARG_DEFINITIONS})
  if(ARG_SANITIZER)
    target_compile_options(stub_${name} PRIVATE -fsanitize=${ARG_SANITIZER})
    target_link_options(stub_${name} PRIVATE -fsanitize=${ARG_SANITIZER})
  else()
    target_link_libraries(stub_${name} PRIVATE tenon_flags)
  endif()
  target_link_options(stub_${name} PRIVATE ${ARG_OPTIONS})
  set_target_properties(stub_${name} PROPERTIES
    PREFIX "" OUTPUT_NAME ${name} LIBRARY_OUTPUT_DIRECTORY "${stub_folder}" SKIP_BUILD_RPATH ON)
  set(stubs ${stubs} stub_${name} PARENT_SCOPE)
endfunction()

# A vendor's library in two releases, built as strangers build theirs.
foreach(release 1 2)
  add_library(stub_vendor_${release} MODULE loader/vendor.c)
  target_compile_definitions(stub_vendor_${release} PRIVATE STUB_VENDOR_RELEASE=${release})
  target_link_options(stub_vendor_${release} PRIVATE -Wl,-soname,libstubvendor.so.${release}
    -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/loader/vendor.map)
  set_target_properties(stub_vendor_${release} PROPERTIES
    PREFIX lib OUTPUT_NAME stubvendor SUFFIX .so.${release} C_VISIBILITY_PRESET default
    LIBRARY_OUTPUT_DIRECTORY "${stub_folder}")
  list(APPEND stubs stub_vendor_${release})
endforeach()

# One that needs a library of which there is no file of that name.
foreach(name gone lame)
  add_library(stub_vendor_${name} MODULE loader/vendor.c)
  target_compile_definitions(stub_vendor_${name} PRIVATE STUB_VENDOR_RELEASE=1)
  target_link_options(stub_vendor_${name} PRIVATE -Wl,--version-script=${CMAKE_CURRENT_SOURCE_DIR}/loader/vendor.map)
  set_target_properties(stub_vendor_${name} PROPERTIES PREFIX lib OUTPUT_NAME stub${name} SUFFIX .so
    C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY "${stub_folder}" SKIP_BUILD_RPATH ON)
  list(APPEND stubs stub_vendor_${name})
endforeach()
target_link_options(stub_vendor_gone PRIVATE -Wl,-soname,libstubgone.so.7)
target_link_options(stub_vendor_lame PRIVATE -Wl,--no-as-needed "$<TARGET_FILE:stub_vendor_gone>")
add_dependencies(stub_vendor_lame stub_vendor_gone)

foreach(name good other_minor other_major small_table unknown_flags sanitizer_flag bad_name
        no_version null_table failing_entry crashing_entry bad_platform bad_library bad_kernel
        bad_language bad_communicator borrowed_name no_rows unavailable wordless_probe failing_probe
        starving_probe foreign_words telling_probe no_device negative_devices endless_devices half_there
        crashing_probe exiting_probe hanging_probe straying_probe logging_probe crashing_constructor
        hanging_constructor crashing_properties hanging_properties crashing_destructor
        hanging_destructor exiting_destructor)
  tenon_stub(${name})
endforeach()
tenon_stub(absent_good OF unavailable CALLED good)
tenon_stub(unresolved OF good DEFINITIONS STUB_USES_MISSING)
tenon_stub(no_entry OF good DEFINITIONS tn_module_entry=another_entry)
tenon_stub(vendor DEFINITIONS STUB_VENDOR_FILES="$<TARGET_FILE:stub_vendor_2>")
tenon_stub(vendorless OF vendor)
tenon_stub(needy OF good OPTIONS -Wl,--no-as-needed "$<TARGET_FILE:stub_vendor_1>")
add_dependencies(stub_needy stub_vendor_1)

# One of another sanitizer than the host's, where the compiler has it.
include(CheckCSourceCompiles)
if("address" IN_LIST TENON_SANITIZE)
  set(other thread)
else()
  set(other address)
endif()
set(CMAKE_REQUIRED_FLAGS -fsanitize=${other})
check_c_source_compiles("int main(void) { return 0; }" TENON_COMPILES_${other})
unset(CMAKE_REQUIRED_FLAGS)
if(TENON_COMPILES_${other})
  tenon_stub(other_sanitizer OF good SANITIZER ${other})
endif()

# tenon_loader_test(NAME ...): a suite that knows where the stubs and the child program are.
function(tenon_loader_test name)
  tenon_test(loader/${name} ${ARGN} DEFINITIONS STUBS="${stub_folder}"
    PROBE="$<TARGET_FILE:tenon-probe>" OTHER_SANITIZER="${other}"
    HAVE_OTHER_SANITIZER=$<BOOL:${TENON_COMPILES_${other}}>)
  add_dependencies(test_loader_${name} ${stubs} tenon-probe)
endfunction()

tenon_loader_test(loader)
tenon_loader_test(search)
tenon_loader_test(verdicts)
tenon_loader_test(concurrency LABELS concurrency)

# The vendor's library is found by its bare name, as an installed one is. By DT_RPATH and not its
# successor, which counts for the object alone that calls dlopen: a sanitizer's run-time would be
# that one.
tenon_loader_test(bind)
set_target_properties(test_loader_bind PROPERTIES BUILD_RPATH "${stub_folder}")
target_link_options(test_loader_bind PRIVATE -Wl,--disable-new-dtags)

add_executable(loader_privileges_child loader/privileges_child.c)
target_link_libraries(loader_privileges_child PRIVATE tenon_inside tenon_flags)
target_compile_definitions(loader_privileges_child PRIVATE _GNU_SOURCE)
set_target_properties(loader_privileges_child PROPERTIES
  RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/loader")
tenon_loader_test(privileges)
target_compile_definitions(test_loader_privileges PRIVATE
  CHILD="$<TARGET_FILE:loader_privileges_child>")
add_dependencies(test_loader_privileges loader_privileges_child)
