# The random campaign: the program of its batches, and what `make test` and `make gpu-test` run of it. `make attack`
# runs it for long, from a new seed.
if(NOT UNIX OR APPLE OR CMAKE_CROSSCOMPILING)
  return()
endif()
find_package(Threads REQUIRED)
find_package(Python3 COMPONENTS Interpreter QUIET)

add_executable(attack attack/main.c attack/problem.c attack/numerics.c attack/arguments.c
  attack/arguments_build.c attack/bits.c attack/threads.c attack/forks.c attack/texts.c)
target_include_directories(attack PRIVATE "${CMAKE_CURRENT_SOURCE_DIR}")
target_compile_definitions(attack PRIVATE _GNU_SOURCE)
target_compile_options(attack PRIVATE $<$<CONFIG:Release>:-O1>)
target_link_libraries(attack PRIVATE tenon tenon_flags Threads::Threads m) # as a program of a user does
set_target_properties(attack PROPERTIES RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/attack")

# tenon_attack(NAME LABEL OPTION...): a campaign as a suite.
function(tenon_attack name label)
  add_test(NAME attack.${name} COMMAND ${Python3_EXECUTABLE} -B
    "${CMAKE_CURRENT_SOURCE_DIR}/attack/attack.py" "${PROJECT_BINARY_DIR}" ${ARGN})
  set_tests_properties(attack.${name} PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT ${test_timeout}
    LABELS "attack;${label}" ENVIRONMENT "${test_environment}" ENVIRONMENT_MODIFICATION "${test_variables}")
endfunction()

if(Python3_Interpreter_FOUND AND NOT TENON_SANITIZE) # with a sanitizer the step attack of scripts/test runs it
  tenon_attack(campaign release-only --rounds 1 --seed 1)
  tenon_attack(gpu gpu --device cuda:0 --seconds 60)
endif()
if(TENON_SANITIZE)
  set_target_properties(attack PROPERTIES EXCLUDE_FROM_ALL ON)
endif()
