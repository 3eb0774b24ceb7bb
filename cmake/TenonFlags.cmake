# How every object of Tenon is compiled: one interface target, so that library, modules, command
# and tests cannot drift apart.
include(CheckCCompilerFlag)
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
  # gcc clears and copies structs of some hundred bytes by `rep stos` and `rep movs`, whose start takes
  # processors up to 20 ns: as long as a small product.
  set(strategy "vector_loop:512:noalign,libcall:-1:noalign")
  set(CMAKE_REQUIRED_QUIET TRUE)
  check_c_compiler_flag(
    "-mmemset-strategy=${strategy};-mmemcpy-strategy=${strategy}" TENON_FLAGS_STRATEGY)
  unset(CMAKE_REQUIRED_QUIET)
  if(TENON_FLAGS_STRATEGY)
    target_compile_options(tenon_flags INTERFACE
      -mmemset-strategy=${strategy} -mmemcpy-strategy=${strategy})
  endif()
  if(TENON_WERROR)
    target_compile_options(tenon_flags INTERFACE -Werror)
  endif()
endif()

# Each suite links the whole library, which is large with a sanitizer: lld takes a third of ld's time.
if(TENON_SANITIZE AND CMAKE_C_COMPILER_ID MATCHES "Clang")
  find_program(TENON_LLD NAMES ld.lld)
  if(TENON_LLD)
    target_link_options(tenon_flags INTERFACE -fuse-ld=lld)
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
