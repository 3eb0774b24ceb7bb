include(scripts.cmake)

# The operators' test problems as text, for scripts of several folders.
add_executable(test_cli_op_problems cli/op_problems.c)
target_link_libraries(test_cli_op_problems PRIVATE tenon tenon_flags)
set_target_properties(test_cli_op_problems PROPERTIES OUTPUT_NAME op_problems
  RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cli")
if(UNIX)
  add_executable(test_cli_print_decision cli/print_decision.c)
  target_link_libraries(test_cli_print_decision PRIVATE tenon tenon_flags)
  set_target_properties(test_cli_print_decision PROPERTIES OUTPUT_NAME print_decision
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cli")
  # Pages of machines that are made up, for cli/page.
  add_executable(test_cli_page_big cli/page_big.c)
  target_link_libraries(test_cli_page_big PRIVATE tenon tenon_page tenon_flags)
  set_target_properties(test_cli_page_big PROPERTIES OUTPUT_NAME page_big
    RUNTIME_OUTPUT_DIRECTORY "${CMAKE_CURRENT_BINARY_DIR}/cli")
  tenon_test_script(cli/cache SANITIZED)
  tenon_test_script(cli/commands SANITIZED)
  tenon_test_script(cli/conformance)
  tenon_test_script(cli/devices SANITIZED)
  tenon_test_script(cli/documents)
  tenon_test_script(cli/einsum_path SANITIZED)
  tenon_test_script(cli/explain)
  tenon_test_script(cli/libraries)
  tenon_test_script(cli/lock)
  tenon_test_script(cli/mask_image SANITIZED)
  tenon_test_script(cli/new_module)
  tenon_test_script(cli/page)
  tenon_test_script(cli/settings)
  tenon_test_script(cli/summary)
  tenon_test_script(cli/surroundings)
  tenon_test_script(cli/trials)
  # The suite asks for more memory than there can be.
  set_property(TEST cli.documents APPEND PROPERTY
    ENVIRONMENT ASAN_OPTIONS=allocator_may_return_null=1)
endif()
