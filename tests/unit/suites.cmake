# The base floor.
tenon_test(unit/base)
tenon_test(unit/form)
# The os floor.
tenon_test(unit/cache LABELS concurrency)
tenon_test(unit/cpu)
tenon_test(unit/elf)
tenon_test(unit/pool LABELS concurrency)
tenon_test(unit/sha256)
