# Kernels against loops and libraries that know nothing of them.
include(scripts.cmake)

# The reference kernels, which all others are checked against.
foreach(suite admit attention_tables elements matmul number rows)
  tenon_test(kernels/ref_${suite} TIMEOUT 120)
endforeach()
foreach(suite attention attention_backward)
  tenon_test(kernels/ref_${suite} TIMEOUT 120 LABELS concurrency)
endforeach()
if(UNIX AND NOT APPLE)
  add_library(test_kernels_ref_door MODULE kernels/ref_door.c)
  target_link_libraries(test_kernels_ref_door PRIVATE tenon_inside tenon_flags)
  set_target_properties(test_kernels_ref_door PROPERTIES PREFIX "" OUTPUT_NAME ref_door
    LIBRARY_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/kernels")
  foreach(script ref_attention_numpy ref_numpy)
    tenon_test_script(kernels/${script})
  endforeach()
endif()

# The processor's own, and those through libraries; the latter skip what is not installed.
foreach(suite each rows walk)
  tenon_test(kernels/cpu_${suite} TIMEOUT 120)
endforeach()
foreach(suite cpu_blis cpu_mkl cpu_onednn cpu_openblas vendor_headers)
  tenon_test(kernels/${suite} TIMEOUT 120 LABELS libraries)
endforeach()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  tenon_test(kernels/cpu_libraries TIMEOUT 120 LABELS libraries)
endif()
tenon_test(kernels/cpu_large TIMEOUT 300 LABELS concurrency)
tenon_test(kernels/cpu_attention TIMEOUT 240 LABELS concurrency)
tenon_test(kernels/cpu_attention_backward TIMEOUT 240 LABELS concurrency)
tenon_test(kernels/cpu_attention_low TIMEOUT 240 LABELS concurrency hw)
tenon_test(kernels/cpu_attention_low_backward TIMEOUT 240 LABELS concurrency)
tenon_test(kernels/cpu_attention_math TIMEOUT 240 LABELS concurrency hw)
tenon_test(kernels/cpu_matmul TIMEOUT 240 LABELS concurrency)
tenon_test(kernels/cpu_matmul_cut)
tenon_test(kernels/cpu_matmul_few TIMEOUT 240 LABELS concurrency hw)
tenon_test(kernels/cpu_matmul_low TIMEOUT 240 LABELS concurrency hw)
tenon_test(kernels/cpu_matmul_cost)

# Every row there is, by the library's own check.
tenon_test(kernels/rows TIMEOUT 600 LABELS hw)
