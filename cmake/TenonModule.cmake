# tenon_module(NAME SOURCES ...): one module that ships with Tenon, as backends/tenon-NAME.so.
# It gets the module headers and no others, and links nothing.
function(tenon_module name)
  cmake_parse_arguments(ARG "" "" "SOURCES" ${ARGN})
  add_library(tenon-${name} MODULE ${ARG_SOURCES})
  target_include_directories(tenon-${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_link_libraries(tenon-${name} PRIVATE tenon_flags)
  set_target_properties(tenon-${name} PROPERTIES
    PREFIX "" LIBRARY_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/backends")
  if(UNIX AND NOT APPLE)
    target_link_options(tenon-${name} PRIVATE -Wl,-z,nodelete -Wl,-z,now -Wl,--as-needed)
  endif()
  install(TARGETS tenon-${name} LIBRARY DESTINATION "${TENON_MODULE_DIR}")
endfunction()
