# tenon_kernel_rows(TARGET NAME FILES...): the list of the kernel rows that FILES define, so that a new kernel needs no
# entry in a shared file.
#
# A definition is a line that starts with `const tn_kernel_row X = {`. The header NAME.h, which TARGET may include,
# defines the macro NAME(ROW), with NAME in upper case: ROW(X) for every X, in the order of FILES. Every file must
# define a row. Configuring happens anew when one of FILES changes.
function(tenon_kernel_rows target name)
  string(TOUPPER ${name} macro)
  set(rows "")
  foreach(file IN LISTS ARGN)
    get_filename_component(file "${file}" ABSOLUTE)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
    file(STRINGS "${file}" lines REGEX "^const tn_kernel_row [a-z0-9_]+ = ")
    if(NOT lines)
      message(FATAL_ERROR "${file}: no line starts with `const tn_kernel_row NAME = {`")
    endif()
    foreach(line IN LISTS lines)
      string(REGEX REPLACE "^const tn_kernel_row ([a-z0-9_]+) = .*" "\\1" row "${line}")
      string(APPEND rows " \\\n    ROW(${row})")
    endforeach()
  endforeach()
  file(CONFIGURE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/rows/${name}.h" @ONLY
    CONTENT "/* Written by cmake/TenonRows.cmake. */\n#define @macro@(ROW)@rows@\n")
  target_include_directories(${target} PRIVATE "${CMAKE_CURRENT_BINARY_DIR}/rows")
endfunction()
