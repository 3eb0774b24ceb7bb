# Tenon and other libraries in one process. What is not installed is skipped, and says so.
include(scripts.cmake)

if(UNIX AND NOT APPLE)
  tenon_test_script(peers/bench_scripts)
  tenon_test_script(peers/numpy_dlpack)
  tenon_test_script(peers/numpy_fft)
endif()
