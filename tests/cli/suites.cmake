include(scripts.cmake)

if(UNIX)
  tenon_test_script(cli/commands)
  tenon_test_script(cli/documents)
  tenon_test_script(cli/surroundings TIMEOUT 120)
endif()
