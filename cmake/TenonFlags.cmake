# How every object of Tenon is compiled: one interface target, so that library, modules, command
# and tests cannot drift apart.
add_library(tenon_flags INTERFACE)

if(NOT MSVC)
  target_compile_options(tenon_flags INTERFACE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wvla -Wundef -Wformat=2 -Wwrite-strings
    -Wcast-qual -Wimplicit-fallthrough
    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>
    $<$<COMPILE_LANGUAGE:C>:-Wmissing-prototypes>
    -ffp-contract=off
    # The same sources give the same bytes wherever they lie.
    -ffile-prefix-map=${PROJECT_SOURCE_DIR}=. -ffile-prefix-map=${PROJECT_BINARY_DIR}=.)
  if(TENON_WERROR)
    target_compile_options(tenon_flags INTERFACE -Werror)
  endif()
endif()

foreach(kind IN LISTS TENON_SANITIZE)
  target_compile_options(tenon_flags INTERFACE -fsanitize=${kind} -fno-omit-frame-pointer)
  target_link_options(tenon_flags INTERFACE -fsanitize=${kind})
  if(kind STREQUAL "undefined")
    target_compile_options(tenon_flags INTERFACE -fno-sanitize-recover=undefined)
  endif()
endforeach()

if(TENON_COVERAGE)
  target_compile_options(tenon_flags INTERFACE --coverage -O0)
  target_link_options(tenon_flags INTERFACE --coverage)
endif()
