# How Latchkey code is compiled: the functions that make rooms, libraries and programs.

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

# A compiler cache is welcome, not needed.
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(LATCHKEY_CCACHE ccache)
  mark_as_advanced(LATCHKEY_CCACHE)
  if(LATCHKEY_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER ${LATCHKEY_CCACHE})
  endif()
endif()

# Several sources at a time, as one: the headers are read once for all of them. What is declared in
# one file is visible in the next, so shadowing and the like are looked for in the plain build only.
if(LATCHKEY_UNITY)
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 32)
endif()

# A debug build links twenty large programs, which mold does in a tenth of the time.
if(PROJECT_IS_TOP_LEVEL AND CMAKE_BUILD_TYPE STREQUAL "Debug")
  find_program(LATCHKEY_MOLD mold)
  mark_as_advanced(LATCHKEY_MOLD)
  if(LATCHKEY_MOLD)
    add_link_options(-fuse-ld=mold)
  endif()
endif()

# What the product is compiled with on top of everything, and the tests are not: explorations and
# the simulator run the rooms a million times, and checks of undefined behaviour are for our code.
set(LATCHKEY_ROOM_FLAGS "" CACHE STRING "Further flags for the rooms under src/ and the command")

set(LATCHKEY_WARNINGS
  -Wall -Wextra -Wpedantic -Werror
  -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
  -Woverloaded-virtual -Wcast-align -Wcast-qual -Wformat=2 -Wimplicit-fallthrough
  -Wundef -Wunused -Wextra-semi -Wdouble-promotion
  # A designated initializer leaves out what keeps its default.
  -Wno-missing-field-initializers)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  list(APPEND LATCHKEY_WARNINGS -Wduplicated-cond -Wlogical-op -Wredundant-decls
    # At -O2 this one sees ghosts inside std::variant and std::optional.
    -Wno-maybe-uninitialized)
elseif(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  list(APPEND LATCHKEY_WARNINGS -Wthread-safety -Wnewline-eof)
endif()
if(LATCHKEY_UNITY)
  list(APPEND LATCHKEY_WARNINGS -Wno-shadow -Wno-subobject-linkage)
endif()

if(LATCHKEY_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "LATCHKEY_FUZZ needs clang: configure with --preset clang")
  endif()
  set(LATCHKEY_FUZZ_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all)
endif()

# "address", "thread" or nothing.
string(REGEX MATCH "sanitize=(address|thread)" LATCHKEY_SANITIZER "${CMAKE_CXX_FLAGS_DEBUG}")
set(LATCHKEY_SANITIZER "${CMAKE_MATCH_1}")

# latchkey_options(<target>): what every Latchkey target is compiled with.
function(latchkey_options target)
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR}/src)
  if(LATCHKEY_WERROR)
    target_compile_options(${target} PRIVATE ${LATCHKEY_WARNINGS})
  endif()
  # A program takes of a static library what it uses, and not all that stands in the same file: a
  # client that locks and nothing else has a third less code to load and to keep.
  target_compile_options(${target} PRIVATE
    $<$<NOT:$<CONFIG:Debug>>:-ffunction-sections>
    $<$<NOT:$<CONFIG:Debug>>:-fdata-sections>)
  target_link_options(${target} PRIVATE $<$<NOT:$<CONFIG:Debug>>:-Wl,--gc-sections>)
  if(LATCHKEY_FUZZ)
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link ${LATCHKEY_FUZZ_FLAGS})
    target_link_options(${target} PRIVATE ${LATCHKEY_FUZZ_FLAGS})
  endif()
endfunction()

# latchkey_room(<room> [DEPS <room>...] [LIBS <target>...] [SOURCES <file>...] [ALONE <file>...]
#               [TESTS <file>...] [THREADED_TESTS <file>...])
#
# Makes the target latchkey_<room> from src/<room>. DEPS are the rooms it may include, LIBS the
# third-party targets it compiles against. ALONE are those of the sources that cannot be compiled
# together with others. TESTS are the unit tests beside the sources, and THREADED_TESTS those with
# more than one thread; they are all linked into latchkey_unit_tests. A room with no SOURCES yet is
# a set of headers.
function(latchkey_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;LIBS;SOURCES;ALONE;TESTS;THREADED_TESTS")
  if(arg_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "latchkey_room(${room}): what is ${arg_UNPARSED_ARGUMENTS}?")
  endif()
  set(target latchkey_${room})
  list(TRANSFORM arg_DEPS PREPEND latchkey_)
  if(arg_SOURCES)
    add_library(${target} OBJECT ${arg_SOURCES})
    set_source_files_properties(${arg_ALONE} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
    latchkey_options(${target})
    target_compile_options(${target} PRIVATE ${LATCHKEY_ROOM_FLAGS})
    target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} PUBLIC ${arg_DEPS} ${arg_LIBS})
  else()
    add_library(${target} INTERFACE)
    target_include_directories(${target} INTERFACE ${PROJECT_SOURCE_DIR}/include)
    target_link_libraries(${target} INTERFACE ${arg_DEPS} ${arg_LIBS})
  endif()
  list(TRANSFORM arg_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  list(TRANSFORM arg_THREADED_TESTS PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
  set_property(GLOBAL APPEND PROPERTY LATCHKEY_UNIT_TESTS ${arg_TESTS} ${arg_THREADED_TESTS})
  set_property(GLOBAL APPEND PROPERTY LATCHKEY_THREADED_UNIT_TESTS ${arg_THREADED_TESTS})
endfunction()

# latchkey_library(<name> [TARGET <target>] ROOMS <room>... LIBS <target>...)
#
# Makes the installed library latchkey::<name> from rooms, and <name>_rooms: the same objects as a
# static archive whose inner symbols are visible, for our own tests and programs. LIBS are what a
# user of the library needs at run time. TARGET is for a library that shares its name with a room.
#
# Two libraries may have rooms in common, and a program may use both: what they have in common is
# the same code twice, hidden in a shared library and taken once from static ones.
function(latchkey_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TARGET" "ROOMS;LIBS")
  set(library ${name})
  if(arg_TARGET)
    set(library ${arg_TARGET})
  endif()
  set(objects "")
  foreach(room IN LISTS arg_ROOMS)
    get_target_property(type latchkey_${room} TYPE)
    if(type STREQUAL "OBJECT_LIBRARY")
      list(APPEND objects $<TARGET_OBJECTS:latchkey_${room}>)
    endif()
  endforeach()

  add_library(${library} ${objects})
  add_library(latchkey::${name} ALIAS ${library})
  add_library(${name}_rooms STATIC EXCLUDE_FROM_ALL ${objects})
  # While the version starts with 0, every minor version is an ABI of its own.
  set_target_properties(${library} PROPERTIES
    OUTPUT_NAME ${name}
    EXPORT_NAME ${name}
    VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    VERIFY_INTERFACE_HEADER_SETS ON)
  foreach(target ${library} ${name}_rooms)
    set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
    latchkey_options(${target})
    target_link_libraries(${target} PRIVATE ${arg_LIBS})
  endforeach()
  target_compile_features(${library} PUBLIC cxx_std_20)
  target_include_directories(${name}_rooms PUBLIC
    ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
endfunction()

# latchkey_program(<name> SOURCES <file>... [LIBS <target>...])
#
# A program that may reach into the rooms: the command, test peers, benchmarks.
function(latchkey_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;LIBS")
  if(NOT arg_SOURCES)
    message(STATUS "${name}: no sources yet")
    return()
  endif()
  add_executable(${name} ${arg_SOURCES})
  latchkey_options(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${name} PRIVATE latchkey_rooms latchkey_server_rooms latchkey_testing_rooms
    ${arg_LIBS})
endfunction()
