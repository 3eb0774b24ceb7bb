# NVIDIA's GPUs. What needs no GPU runs against a stub of the driver (stub.h says what it is and is not);
# suites with the label gpu run against the real one, and skip without it.
if(NOT TENON_CUDA OR CMAKE_CROSSCOMPILING)
  return()
endif()
include(scripts.cmake)
find_package(Threads REQUIRED)

# tenon_cuda_stub(NAME FILE SOURCES...): one of the vendor's libraries as a stub, cuda/stub/FILE.
set(cuda_stub_folder "${CMAKE_CURRENT_BINARY_DIR}/cuda/stub")
function(tenon_cuda_stub name file)
  add_library(${name} MODULE ${ARGN} cuda/stub_common.c)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/include")
  target_compile_definitions(${name} PRIVATE _GNU_SOURCE)
  target_link_libraries(${name} PRIVATE tenon_flags Threads::Threads)
  set_target_properties(${name} PROPERTIES PREFIX "" SUFFIX "" OUTPUT_NAME ${file}
    C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY "${cuda_stub_folder}" SKIP_BUILD_RPATH ON)
  target_link_options(${name} PRIVATE -Wl,-soname,${file})
endfunction()
tenon_cuda_stub(stub_cuda libcuda.so.1 cuda/stub_driver.c cuda/stub_graph.c cuda/stub_memory.c
  cuda/stub_stream.c)
tenon_cuda_stub(stub_nvml libnvidia-ml.so.1 cuda/stub_nvml.c)
tenon_cuda_stub(stub_cublas_lt libcublasLt.so.13 cuda/stub_cublas_lt.c)
tenon_cuda_stub(stub_cublas libcublas.so.13 cuda/stub_cublas.c)
tenon_cuda_stub(stub_cublas_early libcublas.so.12 cuda/stub_cublas.c)
target_compile_definitions(stub_cublas_early PRIVATE STUB_EARLY)
set_target_properties(stub_cublas_early PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cuda/stub_early")
tenon_cuda_stub(stub_cudnn libcudnn_graph.so.9 cuda/stub_cudnn.c cuda/stub_cudnn_graph.c)
target_link_libraries(stub_cudnn PRIVATE m)
tenon_cuda_stub(stub_cufft libcufft.so.12 cuda/stub_cufft.c)

# In a folder of its own: with it every kernel is accepted, and next to none runs.
tenon_cuda_stub(stub_nvrtc libnvrtc.so.13 cuda/stub_nvrtc.c)
set_target_properties(stub_nvrtc PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cuda/stub_compiler")

set(cuda_platform "${PROJECT_SOURCE_DIR}/backends/cuda/platform")
tenon_test(cuda/find SOURCES "${PROJECT_SOURCE_DIR}/backends/cuda/compile/find.c"
  DEFINITIONS STAND_IN="${cuda_stub_folder}/libnvidia-ml.so.1")
add_dependencies(test_cuda_find stub_nvml)
set(cuda_compile "${PROJECT_SOURCE_DIR}/backends/cuda/compile")
tenon_test(cuda/ready SOURCES ${cuda_compile}/find.c ${cuda_compile}/nvrtc.c ${cuda_compile}/ready.c)
tenon_test(cuda/visible SOURCES ${cuda_platform}/visible.c)
tenon_test(cuda/verdict SOURCES ${cuda_platform}/verdict.c ${cuda_platform}/driver.c)
tenon_test(cuda/proc SOURCES ${cuda_platform}/proc.c ${cuda_platform}/verdict.c ${cuda_platform}/driver.c)

# tenon_cuda_test(NAME ...): a suite that has the module and the stub.
function(tenon_cuda_test name)
  tenon_test(cuda/${name} ${ARGN}
    DEFINITIONS CUDA_MODULE="$<TARGET_FILE:tenon-cuda>" CUDA_STUB="${cuda_stub_folder}/libcuda.so.1")
  add_dependencies(test_cuda_${name} tenon-cuda stub_cuda stub_nvml)
  set_property(TEST cuda.${name} APPEND PROPERTY ENVIRONMENT
    "LD_LIBRARY_PATH=${cuda_stub_folder}" ASAN_OPTIONS=allocator_may_return_null=1
    TSAN_OPTIONS=allocator_may_return_null=1)
  set_property(TEST cuda.${name} APPEND PROPERTY ENVIRONMENT_MODIFICATION CUDA_VISIBLE_DEVICES=unset:)
endfunction()
tenon_cuda_test(device LABELS concurrency)
tenon_cuda_test(capture)
add_dependencies(test_cuda_capture stub_cublas stub_cublas_lt stub_cudnn)
tenon_cuda_test(calls)
tenon_cuda_test(order)
add_test(NAME cuda.order_poolless COMMAND test_cuda_order poolless)
set_tests_properties(cuda.order_poolless PROPERTIES TIMEOUT ${test_timeout} LABELS cuda ENVIRONMENT
  "${test_environment};LD_LIBRARY_PATH=${cuda_stub_folder}" ENVIRONMENT_MODIFICATION
  CUDA_VISIBLE_DEVICES=unset:)
tenon_cuda_test(started)
tenon_cuda_test(listed LABELS concurrency SOURCES $<TARGET_OBJECTS:tenon-cuda>)
tenon_cuda_test(products LABELS concurrency)
target_compile_definitions(test_cuda_products PRIVATE
  LT_STUB="${cuda_stub_folder}/libcublasLt.so.13" BLAS_STUB="${cuda_stub_folder}/libcublas.so.13")
add_dependencies(test_cuda_products stub_cublas stub_cublas_lt stub_nvrtc)
set_property(TEST cuda.products APPEND PROPERTY ENVIRONMENT
  "LD_LIBRARY_PATH=${cuda_stub_folder}:${CMAKE_CURRENT_BINARY_DIR}/cuda/stub_compiler")
tenon_cuda_test(cufft LABELS concurrency)
target_compile_definitions(test_cuda_cufft PRIVATE FFT_STUB="${cuda_stub_folder}/libcufft.so.12")
add_dependencies(test_cuda_cufft stub_cufft stub_nvrtc)
set_property(TEST cuda.cufft APPEND PROPERTY ENVIRONMENT
  "LD_LIBRARY_PATH=${cuda_stub_folder}:${CMAKE_CURRENT_BINARY_DIR}/cuda/stub_compiler")
tenon_cuda_test(cudnn_threads LABELS concurrency)
add_dependencies(test_cuda_cudnn_threads stub_cudnn)

tenon_cuda_test(hopper SOURCES $<TARGET_OBJECTS:tenon-cuda>)
tenon_cuda_test(decode SOURCES $<TARGET_OBJECTS:tenon-cuda>)
tenon_cuda_test(backward SOURCES $<TARGET_OBJECTS:tenon-cuda>)
tenon_cuda_test(backward_hopper SOURCES $<TARGET_OBJECTS:tenon-cuda>)
tenon_cuda_test(sparse SOURCES $<TARGET_OBJECTS:tenon-cuda>)

# The kernels' texts through NVIDIA's compiler, where that is.
tenon_cuda_test(kernels SOURCES $<TARGET_OBJECTS:tenon-cuda>)
target_include_directories(test_cuda_kernels PRIVATE "${cuda_rows_folder}")
if(TENON_NVRTC_LIBRARY)
  get_filename_component(folder "${TENON_NVRTC_LIBRARY}" DIRECTORY)
  set_property(TEST cuda.kernels APPEND PROPERTY ENVIRONMENT
    "LD_LIBRARY_PATH=${cuda_stub_folder}:${folder}")
endif()

# The kernels' numbers, by a C++ compiler of the host that has _Float16: on Arm g++ has it from version 13 on.
file(WRITE "${CMAKE_CURRENT_BINARY_DIR}/float16.cc" "_Float16 x;\n")
foreach(name c++ g++ clang++)
  find_program(TENON_${name} NAMES ${name})
  if(TENON_${name} AND NOT TENON_CXX_FLOAT16)
    execute_process(COMMAND "${TENON_${name}}" -fsyntax-only "${CMAKE_CURRENT_BINARY_DIR}/float16.cc"
      RESULT_VARIABLE failed OUTPUT_QUIET ERROR_QUIET)
    if(NOT failed)
      set(TENON_CXX_FLOAT16 "${TENON_${name}}" CACHE FILEPATH "A C++ compiler that has _Float16")
    endif()
  endif()
endforeach()
set(cuda_cublas "${PROJECT_SOURCE_DIR}/backends/cuda/lib/cublas")
tenon_test(cuda/numbers LABELS release-only SOURCES cuda/fft_row.c cuda/finished_row.c cuda/math_row.c
  cuda/padded_row.c
  ${cuda_cublas}/cublas_after.c ${cuda_cublas}/cublas_pad.c ${cuda_cublas}/cublas_shape.c
  ${cuda_cublas}/cublas_cost.c "${PROJECT_SOURCE_DIR}/backends/cuda/lib/cufft/cufft_shape.c" ${cuda_planning} DEFINITIONS
  HOST_CUDA="${CMAKE_CURRENT_SOURCE_DIR}/cuda/host_cuda.h" HOST_INCLUDE="${PROJECT_SOURCE_DIR}/include"
  HOST_CXX="${TENON_CXX_FLOAT16}")
target_include_directories(test_cuda_numbers PRIVATE "${cuda_rows_folder}")
tenon_cuda_texts(test_cuda_numbers)

tenon_test_script(cuda/platform)
tenon_test_script(cuda/transcript)
tenon_test_script(cuda/rows)
tenon_test_script(cuda/cublas)
tenon_test_script(cuda/cudnn)
tenon_test_script(cuda/attention)
set_property(TEST cuda.platform APPEND PROPERTY ENVIRONMENT
  ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1)

# On a machine with a GPU, and skipped on others; alone by `make gpu-test`.
tenon_test_script(cuda/gpu LABELS gpu)
foreach(name hardware hardware_kernels hardware_memory hardware_products)
  tenon_test(cuda/${name} LABELS gpu DEFINITIONS CUDA_MODULE="$<TARGET_FILE:tenon-cuda>")
  add_dependencies(test_cuda_${name} tenon-cuda)
endforeach()
target_sources(test_cuda_hardware_kernels PRIVATE $<TARGET_OBJECTS:tenon-cuda>)
set_tests_properties(cuda.hardware_memory PROPERTIES RUN_SERIAL ON) # it takes all memory that there is

add_test(NAME cuda.hardware_calls COMMAND test_cuda_calls)
set_tests_properties(cuda.hardware_calls PROPERTIES TIMEOUT ${test_timeout} LABELS "cuda;gpu"
  ENVIRONMENT "${test_environment}")

# Our declarations against NVIDIA's headers, where those are.
find_path(TENON_CUDA_INCLUDE cuda.h HINTS ENV CUDA_PATH ENV CUDA_HOME PATHS /usr/local/cuda /opt/cuda
  PATH_SUFFIXES include targets/x86_64-linux/include)
tenon_test(cuda/headers)
if(TENON_CUDA_INCLUDE)
  target_sources(test_cuda_headers PRIVATE cuda/headers_vendor.c)
  set_source_files_properties(cuda/headers_vendor.c PROPERTIES
    INCLUDE_DIRECTORIES "${TENON_CUDA_INCLUDE}" COMPILE_OPTIONS "-std=gnu11;-Wno-pedantic")
  target_compile_definitions(test_cuda_headers PRIVATE HAS_CUDA_HEADER)
endif()
foreach(part nvml nvrtc)
  if(NOT EXISTS "${TENON_CUDA_INCLUDE}/${part}.h")
    continue()
  endif()
  target_sources(test_cuda_headers PRIVATE cuda/headers_${part}.c)
  set_source_files_properties(cuda/headers_${part}.c PROPERTIES INCLUDE_DIRECTORIES "${TENON_CUDA_INCLUDE}"
    COMPILE_OPTIONS "-std=gnu11;-Wno-pedantic;-Wno-undef;-Wno-strict-prototypes")
  string(TOUPPER ${part} name)
  target_compile_definitions(test_cuda_headers PRIVATE HAS_${name}_HEADER)
endforeach()
tenon_test(cuda/cublas_headers)
if(EXISTS "${TENON_CUDA_INCLUDE}/cublasLt.h" AND EXISTS "${TENON_CUDA_INCLUDE}/cublas_v2.h")
  target_sources(test_cuda_cublas_headers PRIVATE cuda/cublas_headers_vendor.c)
  set_source_files_properties(cuda/cublas_headers_vendor.c PROPERTIES
    INCLUDE_DIRECTORIES "${TENON_CUDA_INCLUDE}"
    COMPILE_OPTIONS "-std=gnu11;-Wno-pedantic;-Wno-undef;-Wno-strict-prototypes")
  target_compile_definitions(test_cuda_cublas_headers PRIVATE HAS_CUBLAS_HEADER)
endif()

tenon_test(cuda/cufft_headers)
if(EXISTS "${TENON_CUDA_INCLUDE}/cufftXt.h")
  target_sources(test_cuda_cufft_headers PRIVATE cuda/cufft_headers_vendor.c)
  set_source_files_properties(cuda/cufft_headers_vendor.c PROPERTIES
    INCLUDE_DIRECTORIES "${TENON_CUDA_INCLUDE}"
    COMPILE_OPTIONS "-std=gnu11;-Wno-pedantic;-Wno-undef;-Wno-strict-prototypes")
  target_compile_definitions(test_cuda_cufft_headers PRIVATE HAS_CUFFT_HEADER)
endif()

# The same of cuDNN's header, which lies apart, and our graphs against the library itself, which plans without a
# device where a driver can be opened: one that says that there is none.
find_path(TENON_CUDNN_INCLUDE cudnn_graph.h HINTS ENV CUDNN_PATH "${TENON_CUDA_INCLUDE}" PATH_SUFFIXES include)
find_file(TENON_CUDNN_LIBRARY libcudnn_graph.so.9 HINTS ENV CUDNN_PATH PATHS /usr/local/cuda /usr
  PATH_SUFFIXES lib lib64 lib/x86_64-linux-gnu)
tenon_test(cuda/cudnn_headers)
if(TENON_CUDNN_INCLUDE AND TENON_CUDA_INCLUDE)
  target_sources(test_cuda_cudnn_headers PRIVATE cuda/cudnn_headers_vendor.c)
  set_source_files_properties(cuda/cudnn_headers_vendor.c PROPERTIES
    INCLUDE_DIRECTORIES "${TENON_CUDNN_INCLUDE};${TENON_CUDA_INCLUDE}"
    COMPILE_OPTIONS "-std=gnu11;-Wno-pedantic;-Wno-undef;-Wno-strict-prototypes")
  target_compile_definitions(test_cuda_cudnn_headers PRIVATE HAS_CUDNN_HEADER)
endif()
tenon_test(cuda/cudnn_shape SOURCES $<TARGET_OBJECTS:tenon-cuda>)
tenon_test(cuda/cudnn_engines SOURCES $<TARGET_OBJECTS:tenon-cuda>
  DEFINITIONS CUDNN_LIBRARY="$<$<BOOL:${TENON_CUDNN_LIBRARY}>:${TENON_CUDNN_LIBRARY}>")
tenon_cuda_stub(stub_planner libcuda.so.1 cuda/stub_planner.c)
set_target_properties(stub_planner PROPERTIES
  LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cuda/planner")
add_dependencies(test_cuda_cudnn_engines stub_planner)
set_property(TEST cuda.cudnn_engines APPEND PROPERTY ENVIRONMENT
  "LD_LIBRARY_PATH=${CMAKE_CURRENT_BINARY_DIR}/cuda/planner")
