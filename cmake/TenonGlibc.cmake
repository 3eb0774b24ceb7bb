# -DTENON_GLIBC=2.28: the library, the modules and the command run with glibc 2.28 and later, whatever glibc this machine has.
# They are linked against stubs that have the symbols of this machine's glibc with their older versions.
set(TENON_GLIBC "" CACHE STRING "Oldest glibc that the build must run with, such as 2.28; empty: this machine's")

if(TENON_GLIBC)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(stubs "${PROJECT_BINARY_DIR}/glibc")
  execute_process(COMMAND "${Python3_EXECUTABLE}" -B "${PROJECT_SOURCE_DIR}/bindings/python/glibc.py"
    "${stubs}" "${TENON_GLIBC}" "${CMAKE_C_COMPILER}" COMMAND_ERROR_IS_FATAL ANY)
  # As an option: CMake would write a link directory into the run path of what is built, which could not start then.
  target_link_options(tenon_flags INTERFACE "-L${stubs}")
  # Before glibc 2.34 threads, loading and shared memory are in libraries of their own.
  target_link_libraries(tenon_flags INTERFACE
    "-Wl,--push-state,--no-as-needed -lpthread -ldl -lrt -Wl,--pop-state")
endif()
