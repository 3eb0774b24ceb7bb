# Which object file uses which; see symbols.py. floors.py and operators.py need no build: scripts/lint runs them.
# Generators for several configurations name objects differently.
include(scripts.cmake)

if(UNIX AND CMAKE_NM AND NOT CMAKE_CONFIGURATION_TYPES)
  set(objects "${CMAKE_NM}\n")
  foreach(library tenon_core ${TENON_MODULES})
    if(NOT TARGET ${library})
      set(library tenon-${library})
    endif()
    string(APPEND objects "${library}\t$<JOIN:$<TARGET_OBJECTS:${library}>,\n${library}\t>\n")
  endforeach()
  file(GENERATE OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/architecture/objects.txt" CONTENT "${objects}")
  tenon_test_script(architecture/symbols)
endif()
