# The module cuda: NVIDIA's GPUs. It links nothing of NVIDIA's, so it builds anywhere.
set(cuda_sources)
foreach(part context copy describe discover driver event graph libraries memory nvml proc properties stream
             verdict visible)
  list(APPEND cuda_sources cuda/platform/${part}.c)
endforeach()
foreach(part code find nvrtc ready texts)
  list(APPEND cuda_sources cuda/compile/${part}.c)
endforeach()
foreach(part attention attention_admit attention_back each finish layout matmul random reduce rows)
  list(APPEND cuda_sources cuda/kernels/${part}.c)
endforeach()
foreach(part admit after blas common gemm grouped library matmul rows shape)
  list(APPEND cuda_sources cuda/cublas/${part}.c)
endforeach()
foreach(part attention bias dropout empty engine graph library packed rows sdpa sdpa_back shape)
  list(APPEND cuda_sources cuda/cudnn/${part}.c)
endforeach()
tenon_module(cuda SOURCES cuda/module.c ${cuda_sources})
target_compile_definitions(tenon-cuda PRIVATE $<$<BOOL:${UNIX}>:_GNU_SOURCE>)

# tenon_cuda_texts(TARGET): the kernels' texts become part of it. Random numbers are made by the text that
# defines them for every platform.
set(cuda_kernels "${CMAKE_CURRENT_LIST_DIR}/kernels" CACHE INTERNAL "")
function(tenon_cuda_texts target)
  foreach(file args.h common.cuh functions.cuh rows.cuh each.cu permute.cu softmax.cu norm.cu rotary.cu
               reduce.cu random.cu matmul.cu matmul_finish.cu dropout.cu attention.cu attention_tile.cuh attention_back.cu
               attention_empty.cu attention_few.cu attention_join.cu)
    string(REGEX REPLACE "\\..*" "" name "${file}")
    tenon_embed(${target} cuda_text_${name} "${cuda_kernels}/${file}")
  endforeach()
  tenon_embed(${target} cuda_text_attention_rows "${cuda_kernels}/attention.cuh")
  tenon_embed(${target} cuda_text_philox "${PROJECT_SOURCE_DIR}/include/tenon/module/philox.h")
  tenon_embed(${target} cuda_text_numbers "${PROJECT_SOURCE_DIR}/src/device/random/numbers.h")
endfunction()
tenon_cuda_texts(tenon-cuda)

# Kernels that are compiled ahead, for the architectures that TENON_CUDA_READY lists, where NVIDIA's compiler is;
# the others are compiled for the very device when they are first needed.
find_file(TENON_NVRTC_LIBRARY NAMES libnvrtc.so.13 libnvrtc.so.12 HINTS ENV CUDA_PATH ENV CUDA_HOME
  PATHS /usr/local/cuda /opt/cuda PATH_SUFFIXES lib64 targets/x86_64-linux/lib)
set(TENON_CUDA_READY "" CACHE STRING "architectures whose kernels are compiled ahead: sm_80;sm_90a;sm_100")
if(NOT TENON_CUDA_READY OR NOT TENON_NVRTC_LIBRARY OR CMAKE_CROSSCOMPILING OR NOT UNIX)
  target_sources(tenon-cuda PRIVATE cuda/ready/none.c)
  return()
endif()
set(ready_sources cuda/ready/make.c cuda/ready/none.c)
foreach(part compile/find compile/nvrtc compile/ready compile/texts kernels/attention kernels/attention_admit
             kernels/attention_back kernels/each kernels/finish kernels/layout kernels/matmul kernels/reduce
             kernels/rows)
  list(APPEND ready_sources cuda/${part}.c)
endforeach()
add_executable(cuda-ready ${ready_sources})
target_include_directories(cuda-ready PRIVATE "${PROJECT_SOURCE_DIR}/include")
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
