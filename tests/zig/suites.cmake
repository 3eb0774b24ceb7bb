# The example in Zig, where a Zig compiler is installed.
include(scripts.cmake)

if(UNIX AND NOT APPLE)
  tenon_test_script(zig/example)
endif()
