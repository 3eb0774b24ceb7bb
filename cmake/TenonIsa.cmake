# One object file for each instruction set, chosen among at run time (tni_isa_choose).
#
#   tenon_isa_sources(TARGET ISA FILE...)
#
# adds the files to TARGET with the flags of ISA on these files alone, and defines TENON_ISA_<ISA>
# for TARGET as the feature bits that the flags stand for: the `needs` of a row, so that a row is
# there exactly when its object is, and cannot ask for less than its object uses. The bits are
# written with TN_CPU_BIT (tenon/module/cpu.h). On another processor nothing is added; where the compiler
# does not take the flags, or the set's TRY, configuring says so.
#
#   tenon_isa_template(TARGET NAME_tmpl.c ISA isa... [DTYPE dtype...])
#
# compiles one file once per instruction set (and per dtype): for each, a file NAME[_DTYPE]_ISA.c in
# the build folder that includes the template is added to TARGET as tenon_isa_sources does it, with
# ISA defined as the set's name and, for DTYPE f32, REAL_F32. The set tenon_isa_base is what every
# processor of the architecture has: `neon` on aarch64, elsewhere `plain`, which is portable C. It
# has no flags and needs no bits. Files of their own, unlike an object library for each set, keep the
# flags, names of objects and entries of the compilation database apart in one target.
#
# What an object for an instruction set must keep to, as it may not run before its bits are checked:
#   - One function with external linkage for each row, no constructors; everything else is static.
#     Nothing that the linker merges with other objects' copies (`inline` with external linkage, in
#     C++ any template): it might keep this copy for all. The headers it includes declare, or define
#     static functions.
#   - One file, one instruction set, in one target: flags belong to the file.
#   - No atomics for Arm: armv8.2-a, where most of its extensions begin, has new ones.
include(CheckCCompilerFlag)
include(CheckCSourceCompiles)

if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64|amd64)$")
  set(tenon_isa_processor x86)
  set(tenon_isa_base plain)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64|ARM64)$")
  set(tenon_isa_processor arm)
  set(tenon_isa_base neon)
else()
  set(tenon_isa_processor none)
  set(tenon_isa_base plain)
endif()

macro(tenon_isa_define processor isa)
  cmake_parse_arguments(tenon_isa_${isa} "" "TRY" "FLAGS;NEEDS" ${ARGN})
  set(tenon_isa_${isa}_processor ${processor})
endmacro()

set(flags_avx2 -mavx2 -mfma -mf16c)
set(needs_avx2 AVX2 FMA F16C)
set(flags_avx512 ${flags_avx2} -mavx512f -mavx512bw -mavx512dq -mavx512vl)
set(needs_avx512 ${needs_avx2} AVX512F AVX512BW AVX512DQ AVX512VL)

tenon_isa_define(x86 sha FLAGS -msse4.1 -msha NEEDS SSE41 SHA)
tenon_isa_define(x86 avx2 FLAGS ${flags_avx2} NEEDS ${needs_avx2})
tenon_isa_define(x86 avx_vnni FLAGS ${flags_avx2} -mavxvnni NEEDS ${needs_avx2} AVX_VNNI)
tenon_isa_define(x86 avx512 FLAGS ${flags_avx512} NEEDS ${needs_avx512})
tenon_isa_define(x86 avx512_vnni FLAGS ${flags_avx512} -mavx512vnni
                                 NEEDS ${needs_avx512} AVX512_VNNI)
tenon_isa_define(x86 avx512_bf16 FLAGS ${flags_avx512} -mavx512bf16
                                 NEEDS ${needs_avx512} AVX512_BF16)
tenon_isa_define(x86 avx512_fp16 FLAGS ${flags_avx512} -mavx512fp16
                                 NEEDS ${needs_avx512} AVX512_FP16)
# gcc writes a stride in a 32-bit register where long has 32 bits, as on Windows, which no assembler takes.
set(try_amx "#include <immintrin.h>
  int main(int rows, char **at) { _tile_loadd(0, at, rows)$<SEMICOLON> return 0$<SEMICOLON> }")
tenon_isa_define(x86 amx FLAGS ${flags_avx512} -mavx512bf16 -mamx-tile -mamx-int8 -mamx-bf16
                         NEEDS ${needs_avx512} AVX512_BF16 AMX_TILE AMX_INT8 AMX_BF16
                         TRY "${try_amx}")
# gcc 12 has SHA-2 in `crypto` only; no compiler makes up the AES instructions that come with it.
tenon_isa_define(arm arm_sha2 FLAGS -march=armv8-a+crypto NEEDS NEON ARM_SHA2)
tenon_isa_define(arm neon_fp16 FLAGS -march=armv8.2-a+fp16 NEEDS NEON ARM_FP16)
tenon_isa_define(arm neon_dotprod FLAGS -march=armv8.2-a+dotprod NEEDS NEON ARM_DOTPROD)
tenon_isa_define(arm neon_bf16 FLAGS -march=armv8.2-a+bf16 NEEDS NEON ARM_BF16)
tenon_isa_define(arm neon_i8mm FLAGS -march=armv8.2-a+dotprod+i8mm NEEDS NEON ARM_DOTPROD ARM_I8MM)
tenon_isa_define(arm sve FLAGS -march=armv8.2-a+sve NEEDS NEON ARM_FP16 SVE)
tenon_isa_define(arm sve2 FLAGS -march=armv8.2-a+sve2 NEEDS NEON ARM_FP16 SVE SVE2)

# Sets `out` when objects for the instruction set can be made here.
function(tenon_isa_check isa out)
  set(${out} FALSE PARENT_SCOPE)
  if(NOT DEFINED tenon_isa_${isa}_processor)
    message(FATAL_ERROR "no instruction set \"${isa}\" in cmake/TenonIsa.cmake")
  endif()
  if(NOT tenon_isa_${isa}_processor STREQUAL tenon_isa_processor)
    return()
  endif()
  if(TENON_ISAS AND NOT isa IN_LIST TENON_ISAS)
    return()
  endif()
  set(CMAKE_REQUIRED_QUIET TRUE)
  check_c_compiler_flag("${tenon_isa_${isa}_FLAGS}" TENON_ISA_FLAGS_${isa})
  if(NOT TENON_ISA_FLAGS_${isa})
    list(JOIN tenon_isa_${isa}_FLAGS " " flags)
    message(STATUS "Built without ${isa}: the compiler does not take ${flags}")
    return()
  endif()
  if(tenon_isa_${isa}_TRY)
    list(JOIN tenon_isa_${isa}_FLAGS " " CMAKE_REQUIRED_FLAGS)
    string(REPLACE "$<SEMICOLON>" ";" source "${tenon_isa_${isa}_TRY}")
    check_c_source_compiles("${source}" TENON_ISA_TRY_${isa})
    if(NOT TENON_ISA_TRY_${isa})
      message(STATUS "Built without ${isa}: the compiler takes its flags and not its instructions")
      return()
    endif()
  endif()
  set(${out} TRUE PARENT_SCOPE)
endfunction()

function(tenon_isa_sources target isa)
  tenon_isa_check(${isa} possible)
  if(NOT possible)
    return()
  endif()
  foreach(file IN LISTS ARGN)
    get_filename_component(file "${file}" ABSOLUTE)
    get_property(other SOURCE "${file}" TARGET_DIRECTORY ${target} PROPERTY COMPILE_OPTIONS)
    if(other)
      message(FATAL_ERROR "${file} is compiled for an instruction set already: ${other}")
    endif()
    set_property(SOURCE "${file}" TARGET_DIRECTORY ${target}
                 PROPERTY COMPILE_OPTIONS ${tenon_isa_${isa}_FLAGS})
    target_sources(${target} PRIVATE "${file}")
  endforeach()
  list(TRANSFORM tenon_isa_${isa}_NEEDS REPLACE "(.+)" "TN_CPU_BIT(\\1)" OUTPUT_VARIABLE bits)
  list(JOIN bits "|" bits)
  string(TOUPPER "${isa}" name)
  target_compile_definitions(${target} PRIVATE "TENON_ISA_${name}=(${bits})")
endfunction()

function(tenon_isa_template target template)
  cmake_parse_arguments(PARSE_ARGV 2 arg "" "" "ISA;DTYPE")
  get_filename_component(template "${template}" ABSOLUTE)
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${template}")
  get_filename_component(folder "${folder}" DIRECTORY)
  get_filename_component(name "${template}" NAME)
  if(NOT name MATCHES "^(.+)_tmpl\\.c$")
    message(FATAL_ERROR "${template}: the name of a template ends in _tmpl.c")
  endif()
  set(name "${CMAKE_MATCH_1}")
  set(kinds "${arg_DTYPE}")
  if(NOT kinds)
    set(kinds NONE)
  endif()
  foreach(isa IN LISTS arg_ISA)
    set(possible TRUE)
    if(NOT isa STREQUAL tenon_isa_base)
      tenon_isa_check(${isa} possible)
    endif()
    if(NOT possible)
      continue()
    endif()
    foreach(kind IN LISTS kinds)
      set(file "${name}_${kind}_${isa}")
      set(definitions "ISA=${isa}")
      if(kind STREQUAL "NONE")
        set(file "${name}_${isa}")
      else()
        string(TOUPPER "REAL_${kind}" upper)
        list(APPEND definitions "${upper}")
      endif()
      set(file "${PROJECT_BINARY_DIR}/${folder}/${isa}/${file}.c")
      file(CONFIGURE OUTPUT "${file}" CONTENT
           "#include \"${template}\" /* NOLINT(bugprone-suspicious-include) */\n")
      set_property(SOURCE "${file}" TARGET_DIRECTORY ${target}
                   PROPERTY COMPILE_DEFINITIONS "${definitions}")
      if(isa STREQUAL tenon_isa_base)
        target_sources(${target} PRIVATE "${file}")
      else()
        tenon_isa_sources(${target} ${isa} "${file}")
      endif()
    endforeach()
  endforeach()
endfunction()
