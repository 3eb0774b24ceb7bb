# What needs AMX or Arm. These run in every `make test`, where they skip what the machine lacks and
# say so; `make hw-test` runs them alone, on a machine that has it.
tenon_test(hw/amx LABELS hw)
tenon_isa_sources(test_hw_amx amx hw/tiles.c)
tenon_test(hw/exercised LABELS hw)
set_property(TEST unit.cpu unit.sha256 APPEND PROPERTY LABELS hw)
