# How Latchkey tests are built and handed to ctest. Every test has a label and a time-out.

include(GoogleTest)

# latchkey_test(<name> LABEL <label> SOURCES <file>... [LIBS <target>...] [TIMEOUT <seconds>]
#               [PER_SUITE])
#
# One GoogleTest program. ctest sees one test per TEST(), or, with PER_SUITE, one per test suite:
# for suites whose cases share something costly, such as a running server, and for those with so
# many cases that starting a process for each would take longer than running them.
function(latchkey_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "PER_SUITE" "LABEL;TIMEOUT" "SOURCES;LIBS")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  latchkey_program(${name} SOURCES ${arg_SOURCES} LIBS GTest::gmock_main ${arg_LIBS})
  if(NOT TARGET ${name})
    return()
  endif()
  if(arg_PER_SUITE)
    set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}_suites.cmake)
    configure_file(${PROJECT_SOURCE_DIR}/cmake/gtest_suites.cmake.in ${script}.in @ONLY)
    file(GENERATE OUTPUT ${script} INPUT ${script}.in)
    set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
  else()
    gtest_discover_tests(${name}
      NO_PRETTY_VALUES
      TEST_PREFIX ${arg_LABEL}.
      DISCOVERY_MODE PRE_TEST
      DISCOVERY_TIMEOUT 300
      PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT})
  endif()
endfunction()

# latchkey_fuzz(<name>)
#
# A libFuzzer target from <name>_fuzz.cpp with its corpus in corpus/<name>. ctest runs it for ten
# seconds, starting from the corpus; what it finds on the way stays in the build tree.
function(latchkey_fuzz name)
  set(target latchkey_fuzz_${name})
  latchkey_program(${target} SOURCES ${name}_fuzz.cpp)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  set(found ${CMAKE_CURRENT_BINARY_DIR}/found/${name})
  file(MAKE_DIRECTORY ${found})
  add_test(NAME fuzz.${name} COMMAND ${target}
    -max_total_time=10 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1
    -artifact_prefix=${found}- ${found} ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 600)
endfunction()
