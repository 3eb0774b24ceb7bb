include(scripts.cmake)

if(UNIX AND NOT APPLE)
  tenon_test_script(install/installed)
  tenon_test_script(install/examples)
  tenon_test_script(install/builds)
  set_tests_properties(install.builds PROPERTIES PROCESSORS 2)
endif()
