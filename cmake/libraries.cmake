# External libraries under one name each, stoker::<library>. Some are linked statically on purpose:
# the command may need at most ten shared libraries beside the C and C++ runtimes.
find_package(Threads REQUIRED)
find_package(PkgConfig REQUIRED)
find_package(GTest QUIET)
if(STOKER_TESTS AND NOT GTest_FOUND)
  message(STATUS "GoogleTest not found: unit tests are not built")
  set(STOKER_TESTS OFF)
endif()

# stoker_library(NAME header.h  library or path, static one first)
function(stoker_library name header)
  find_path(${name}_INCLUDE_DIR ${header} REQUIRED)
  find_library(${name}_LIBRARY NAMES ${ARGN} REQUIRED)
  add_library(stoker::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(stoker::${name} INTERFACE ${${name}_INCLUDE_DIR})
  target_link_libraries(stoker::${name} INTERFACE ${${name}_LIBRARY})
  list(JOIN ARGN " " files)
  set_property(GLOBAL APPEND PROPERTY STOKER_LINKED "\"${name} ${files}\"")  # for stokerConfig.cmake.in
endfunction()

function(stoker_header_library name header)
  find_path(${name}_INCLUDE_DIR ${header} REQUIRED)
  add_library(stoker::${name} INTERFACE IMPORTED GLOBAL)
  target_include_directories(stoker::${name} INTERFACE ${${name}_INCLUDE_DIR})
  set_property(GLOBAL APPEND PROPERTY STOKER_LINKED "\"${name}\"")
endfunction()

# A static library of Debian for programs only, because it is not built with -fPIC: the Python module
# loads the shared one.
function(stoker_embedded_library name header)
  stoker_library(${name} ${header} lib${name}.a ${name})
  find_library(${name}_SHARED NAMES ${name} REQUIRED)
  set_property(TARGET stoker::${name} PROPERTY INTERFACE_LINK_LIBRARIES
               $<IF:$<STREQUAL:$<TARGET_PROPERTY:TYPE>,MODULE_LIBRARY>,${${name}_SHARED},${${name}_LIBRARY}>)
endfunction()

# A static library for the command only, because resolving its symbols would take a fifth of the command's start. Other
# programs may load the shared one through another dependency, and must not contain two copies.
function(stoker_command_library name header)
  stoker_library(${name} ${header} ${name})
  find_library(${name}_STATIC NAMES lib${name}.a ${name} REQUIRED)  # some distributions have no static one
  set_property(TARGET stoker::${name} PROPERTY INTERFACE_LINK_LIBRARIES
               $<IF:$<STREQUAL:$<TARGET_PROPERTY:NAME>,stoker>,${${name}_STATIC},${${name}_LIBRARY}>)
endfunction()

stoker_header_library(fmt fmt/format.h)
target_compile_definitions(stoker::fmt INTERFACE FMT_HEADER_ONLY)
stoker_header_library(json nlohmann/json.hpp)
stoker_header_library(cli11 CLI/CLI.hpp)
# Header-only, except where the headers check themselves: with a sanitizer, or without optimisation.
if(STOKER_SANITIZE OR CMAKE_BUILD_TYPE STREQUAL "Debug")
  stoker_library(hwy hwy/highway.h hwy)
else()
  stoker_header_library(hwy hwy/highway.h)
endif()
stoker_header_library(xxhash xxhash.h)
stoker_library(yaml yaml.h yaml)
stoker_command_library(crypto openssl/sha.h)
stoker_library(isal isa-l.h isal)
stoker_embedded_library(deflate libdeflate.h)
stoker_embedded_library(blosc blosc.h)
stoker_embedded_library(lz4 lz4.h)
stoker_embedded_library(snappy snappy-c.h)
stoker_library(zlib zlib.h z)
stoker_library(zstd zstd.h zstd)
stoker_library(sodium sodium.h sodium)
stoker_library(jpeg jpeglib.h jpeg)
stoker_library(png png.h png)
stoker_library(webp webp/decode.h webp)
stoker_library(hwloc hwloc.h hwloc)
stoker_library(re2 re2/re2.h libre2.a re2)
find_package(benchmark QUIET)
if(benchmark_FOUND)
  add_library(stoker::benchmark INTERFACE IMPORTED GLOBAL)
  target_link_libraries(stoker::benchmark INTERFACE benchmark::benchmark_main)
else()
  set(STOKER_BENCH OFF)
endif()
