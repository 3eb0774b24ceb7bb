# The Rust crate in bindings/rust.
include(scripts.cmake)

if(UNIX AND NOT APPLE)
  tenon_test_script(rust/crate)
endif()
