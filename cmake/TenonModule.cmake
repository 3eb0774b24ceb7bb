# tenon_module(NAME [APART] SOURCES ...): one module that ships with Tenon, as backends/tenon-NAME.so. APART: as
# apart/tenon-NAME.so, where nothing looks for modules, and not installed.
# It gets the module headers and no others, and links nothing but C's mathematics: whatever else it lacks would be sought
# in the process it is loaded into, which need not have it, and so fails the build (where no sanitizer has it so).
function(tenon_module name)
  cmake_parse_arguments(ARG "APART" "" "SOURCES" ${ARGN})
  set(folder "${PROJECT_BINARY_DIR}/backends")
  if(ARG_APART)
    set(folder "${PROJECT_BINARY_DIR}/apart")
  endif()
  add_library(tenon-${name} MODULE ${ARG_SOURCES})
  target_include_directories(tenon-${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(tenon-${name} PRIVATE tenon_flags m)
  set_target_properties(tenon-${name} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${folder}")
  if(UNIX AND NOT APPLE)
    target_link_options(tenon-${name} PRIVATE -Wl,-z,nodelete -Wl,-z,now -Wl,--as-needed)
    if(NOT TENON_SANITIZE)
      target_link_options(tenon-${name} PRIVATE -Wl,-z,defs)
    endif()
  endif()
  if(NOT ARG_APART)
    install(TARGETS tenon-${name} LIBRARY DESTINATION "${TENON_MODULE_DIR}")
  endif()
endfunction()
