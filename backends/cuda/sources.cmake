# The module cuda: NVIDIA's GPUs. It links nothing of NVIDIA's, so it builds anywhere.
# cuda/NAME/ is the operator NAME, cuda/kernels/ what operators share, cuda/lib/ the vendor's libraries.
file(GLOB cuda_operators CONFIGURE_DEPENDS cuda/*/*.c)
list(FILTER cuda_operators EXCLUDE REGEX "/cuda/(compile|kernels|platform|ready)/")
file(GLOB cuda_shared CONFIGURE_DEPENDS cuda/compile/*.c cuda/kernels/*.c cuda/lib/*/*.c cuda/platform/*.c)
tenon_module(cuda SOURCES cuda/module.c ${cuda_operators} ${cuda_shared})
set(cuda_row_files ${cuda_operators})
list(FILTER cuda_row_files INCLUDE REGEX "_cuda\\.c$")
tenon_kernel_rows(tenon-cuda cuda_rows ${cuda_row_files})
set(cuda_rows_folder "${CMAKE_CURRENT_BINARY_DIR}/rows" CACHE INTERNAL "") # of cuda_rows.h
target_compile_definitions(tenon-cuda PRIVATE $<$<BOOL:${UNIX}>:_GNU_SOURCE>)

# tenon_cuda_texts(TARGET): the kernels' texts become part of it. Random numbers are made by the text that
# defines them for every platform.
set(cuda_folder "${CMAKE_CURRENT_LIST_DIR}" CACHE INTERNAL "")
function(tenon_cuda_texts target)
  file(GLOB texts CONFIGURE_DEPENDS "${cuda_folder}/*/*.cu" "${cuda_folder}/*/*.cuh"
    "${cuda_folder}/*/*args.h" "${cuda_folder}/*/*schedule.h")
  list(APPEND texts "${PROJECT_SOURCE_DIR}/include/tenon/module/philox.h"
    "${PROJECT_SOURCE_DIR}/src/device/random/numbers.h")
  foreach(file IN LISTS texts)
    get_filename_component(name "${file}" NAME)
    string(REPLACE "." "_" symbol "${name}")
    tenon_embed(${target} cuda_text_${symbol} "${file}")
  endforeach()
endfunction()
tenon_cuda_texts(tenon-cuda)

# What plans the operators' kernels, without a driver.
set(cuda_planning ${cuda_operators})
foreach(part compile/texts kernels/elementwise kernels/layout kernels/rowwise)
  list(APPEND cuda_planning "${CMAKE_CURRENT_LIST_DIR}/${part}.c")
endforeach()
set(cuda_planning ${cuda_planning} CACHE INTERNAL "")

# Kernels that are compiled ahead, for the architectures that TENON_CUDA_READY lists, where NVIDIA's compiler is;
# the others are compiled for the very device when they are first needed.
find_file(TENON_NVRTC_LIBRARY NAMES libnvrtc.so.13 libnvrtc.so.12 HINTS ENV CUDA_PATH ENV CUDA_HOME
  PATHS /usr/local/cuda /opt/cuda PATH_SUFFIXES lib64 targets/x86_64-linux/lib)
set(TENON_CUDA_READY "" CACHE STRING "architectures whose kernels are compiled ahead: sm_80;sm_90a;sm_100")
if(NOT TENON_CUDA_READY OR NOT TENON_NVRTC_LIBRARY OR CMAKE_CROSSCOMPILING OR NOT UNIX)
  target_sources(tenon-cuda PRIVATE cuda/ready/none.c)
  return()
endif()
set(ready_sources cuda/ready/make.c cuda/ready/none.c ${cuda_planning})
foreach(part find nvrtc ready)
  list(APPEND ready_sources cuda/compile/${part}.c)
endforeach()
add_executable(cuda-ready ${ready_sources})
target_include_directories(cuda-ready PRIVATE "${PROJECT_SOURCE_DIR}/include" "${cuda_rows_folder}")
target_compile_definitions(cuda-ready PRIVATE _GNU_SOURCE)
target_link_libraries(cuda-ready PRIVATE tenon_flags m ${CMAKE_DL_LIBS})
tenon_cuda_texts(cuda-ready)
set(ready_files "")
foreach(architecture IN LISTS TENON_CUDA_READY)
  set(file "${CMAKE_CURRENT_BINARY_DIR}/cuda_ready_${architecture}.bin")
  add_custom_command(OUTPUT "${file}" DEPENDS cuda-ready VERBATIM
    COMMAND cuda-ready "${TENON_NVRTC_LIBRARY}" "${architecture}" "${file}"
    COMMENT "Compiling CUDA kernels for ${architecture}")
  list(APPEND ready_files "${file}")
endforeach()
set(ready_all "${CMAKE_CURRENT_BINARY_DIR}/cuda_ready.bin")
add_custom_command(OUTPUT "${ready_all}" DEPENDS ${ready_files} VERBATIM
  COMMAND ${CMAKE_COMMAND} -E cat ${ready_files} > "${ready_all}")
target_sources(tenon-cuda PRIVATE cuda/ready/data.c)
set_source_files_properties(cuda/ready/data.c PROPERTIES OBJECT_DEPENDS "${ready_all}"
  COMPILE_DEFINITIONS "CUDA_READY_FILE=\"${ready_all}\"")
