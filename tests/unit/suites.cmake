# The base floor.
tenon_test(unit/base)
tenon_test(unit/form)
# The os floor.
tenon_test(unit/cpu)
tenon_test(unit/cpu_judge)
tenon_test(unit/elf)
tenon_test(unit/parallel LABELS concurrency)
tenon_test(unit/pool LABELS concurrency)
tenon_test(unit/sha256)
if(UNIX)
  tenon_test(unit/cache LABELS concurrency)
  tenon_test(unit/cache_files)
  tenon_test(unit/cache_folder)
  tenon_test(unit/fork LABELS concurrency)
  tenon_test(unit/process)
endif()
if(CMAKE_SYSTEM_NAME STREQUAL "Linux")
  tenon_test(unit/machine TIMEOUT 300 SOURCES unit/machine_trees.c unit/machine_trees_truth.c
    unit/machine_trees_write.c)
  tenon_test(unit/machine_cases SOURCES unit/machine_trees.c)
  tenon_test(unit/machine_containers SOURCES unit/machine_trees.c)
  tenon_test(unit/machine_real)
endif()
# The registry floor.
tenon_test(unit/registry)
# The device floor.
tenon_test(unit/random LABELS concurrency)
tenon_test(unit/random_numbers TIMEOUT 300)
