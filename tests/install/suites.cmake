include(scripts.cmake)

if(UNIX AND NOT APPLE)
  tenon_test_script(install/installed TIMEOUT 300)
  tenon_test_script(install/builds TIMEOUT 1800)
  set_tests_properties(install.builds PROPERTIES PROCESSORS 2)
endif()
