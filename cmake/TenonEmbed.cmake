# Files that become part of the library.
#
#   tenon_embed(TARGET SYMBOL FILE)
#
# adds to TARGET the bytes of FILE as `const unsigned char SYMBOL[]`, and how many there are as
# `const size_t SYMBOL_size`. Configuring happens anew when FILE changes. Bytes, not a string: compilers
# need not take strings of more than 4095 characters.
function(tenon_embed target symbol file)
  get_filename_component(file "${file}" ABSOLUTE)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${file}")
  file(READ "${file}" bytes HEX)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${bytes}")
  string(REGEX REPLACE "((0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,)(0x..,))" "\\1\n" bytes "${bytes}")
  set(to "${CMAKE_CURRENT_BINARY_DIR}/${symbol}.c")
  file(CONFIGURE OUTPUT "${to}" @ONLY CONTENT "#include <stddef.h>
extern const unsigned char @symbol@[];
extern const size_t @symbol@_size;
const unsigned char @symbol@[] = {
@bytes@};
const size_t @symbol@_size = sizeof @symbol@;
")
  target_sources(${target} PRIVATE "${to}")
endfunction()
