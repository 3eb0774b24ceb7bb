# tenon.hpp, the C++ interface of the library, and the example that uses it.
include(scripts.cmake)

if(UNIX AND NOT APPLE)
  tenon_test_script(cpp/face)
  tenon_test_script(cpp/classifier)
endif()
