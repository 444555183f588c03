# How Latchkey tests are built and handed to ctest. Every test has a label and a time-out.

# How many entries may keep a core busy at the same time.
cmake_host_system_information(RESULT LATCHKEY_CORES QUERY NUMBER_OF_LOGICAL_CORES)

# latchkey_test(<name> LABEL <label> SOURCES <file>... [LIBS <target>...] [TIMEOUT <seconds>]
#               [CASES <n>] [COST <n>] [BUSY]
#               [VERIFY <regex>...] [PLAIN <regex>...])
#
# One GoogleTest program. ctest has an entry, which is a process, for each TEST(); with CASES it has
# one for so many cases of a suite at most: for suites whose cases share something costly, such as a
# running server, and for those with so many cases that starting a process for each would take
# longer than running them.
#
# Most tests wait more than they compute, and many entries run at a time. BUSY are those that
# compute: no more of them run together than there are cores. COST says what should begin first.
#
# VERIFY is matched with the names of entries, "Suite.Case" or "Suite.1of3": those that match belong
# to `./dev verify`, all others to `./dev test`. PLAIN are those that no sanitizer needs to see.
function(latchkey_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg
    "BUSY" "LABEL;TIMEOUT;CASES;COST" "SOURCES;LIBS;VERIFY;PLAIN")
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
  endif()
  foreach(number CASES COST)
    if(NOT arg_${number})
      set(arg_${number} 0)
    endif()
  endforeach()
  foreach(tier VERIFY PLAIN)
    string(TOLOWER ${tier} lower)
    list(JOIN arg_${tier} "|" ${lower})
    if(NOT arg_${tier})
      set(${lower} "^$")
    endif()
  endforeach()
  latchkey_program(${name} SOURCES ${arg_SOURCES} LIBS GTest::gmock_main ${arg_LIBS})
  if(NOT TARGET ${name})
    return()
  endif()
  set(script ${CMAKE_CURRENT_BINARY_DIR}/${name}_entries.cmake)
  configure_file(${PROJECT_SOURCE_DIR}/cmake/gtest_entries.cmake.in ${script}.in @ONLY)
  file(GENERATE OUTPUT ${script} INPUT ${script}.in)
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${script})
endfunction()

# latchkey_fuzz(<name>)
#
# A libFuzzer target from <name>_fuzz.cpp with its corpus in corpus/<name>. ctest runs it for ten
# seconds, starting from the corpus; what it finds on the way stays in the build tree. Without
# LATCHKEY_FUZZ the corpus is played once, which every compiler can do.
function(latchkey_fuzz name)
  set(target latchkey_fuzz_${name})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${name})
  if(NOT LATCHKEY_FUZZ)
    latchkey_program(${target} SOURCES ${name}_fuzz.cpp LIBS latchkey_replay)
    add_test(NAME fuzz.${name}.corpus COMMAND ${target} ${corpus})
    set_tests_properties(fuzz.${name}.corpus PROPERTIES LABELS fuzz TIMEOUT 600)
    return()
  endif()
  latchkey_program(${target} SOURCES ${name}_fuzz.cpp)
  target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  set(found ${CMAKE_CURRENT_BINARY_DIR}/found/${name})
  file(MAKE_DIRECTORY ${found})
  add_test(NAME fuzz.${name} COMMAND ${target}
    -max_total_time=10 -timeout=5 -rss_limit_mb=1024 -print_final_stats=1
    -artifact_prefix=${found}- ${found} ${corpus})
  set_tests_properties(fuzz.${name} PROPERTIES LABELS fuzz TIMEOUT 600)
endfunction()
