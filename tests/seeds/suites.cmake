include(scripts.cmake)

tenon_test_script(seeds/walk)
