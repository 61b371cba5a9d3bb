# The rooms of src/, the rooms each may include beside base, and the libraries it uses. This is the one place
# that knows: the build links from it, and script/check refuses an #include that it does not allow.
#
#   stoker_room(NAME [COLD]  ROOMS <rooms it may include>  LIBRARIES <external libraries>)
# A cold room waits, asks and talks, but computes nothing that takes time: -O1 compiles it in two thirds of the time.
# A room without sources yet is skipped.

include(CheckLinkerFlag)
include(libraries)

set(STOKER_COLD $<$<CONFIG:Release>:-O1>)
option(STOKER_TOGETHER "with GCC: compile the sources of one folder together, some at a time" ON)
# At most so many, and of so many bytes: whoever touches one of them first waits for the others, too.
set(STOKER_TOGETHER_MOST 8)
math(EXPR STOKER_TOGETHER_BYTES "44 * 1024")
# Older than each source that somebody works on.
set(STOKER_TOGETHER_SINCE ${CMAKE_BINARY_DIR}/together.stamp)
# Folders whose sources are compiled singly, for several processors each.
set(STOKER_APART "/kernels/")
option(STOKER_PRECOMPILED_HEADERS "with GCC: read others' headers once per kind of room" ON)
# ccache asks for it.
set(STOKER_PRECOMPILED -fpch-preprocess)

set(STOKER_ROOMS "" CACHE INTERNAL "rooms that have sources")

function(stoker_room name)
  cmake_parse_arguments(room "COLD" "" "ROOMS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_main)\\.cc$")
  if(NOT sources)
    return()
  endif()
  add_library(stoker_${name} STATIC ${sources})
  target_link_libraries(stoker_${name} PUBLIC stoker_flags)
  if(room_COLD)
    target_compile_options(stoker_${name} PRIVATE ${STOKER_COLD})
  endif()
  foreach(other IN LISTS room_ROOMS)
    if(TARGET stoker_${other})
      target_link_libraries(stoker_${name} PUBLIC stoker_${other})
    endif()
  endforeach()
  if(NOT name STREQUAL "base")
    target_link_libraries(stoker_${name} PUBLIC stoker_base)
  endif()
  target_link_libraries(stoker_${name} PRIVATE ${room_LIBRARIES})
  if(STOKER_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    stoker_precompile_headers(${name} "${room_COLD}")
  endif()
  if(STOKER_TOGETHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    stoker_compile_together(stoker_${name} "${sources}")
  endif()
  if(STOKER_TESTS AND tests)
    add_executable(${name}_test ${tests})
    target_link_libraries(${name}_test PRIVATE stoker_${name} ${room_LIBRARIES} stoker_test_flags)
    if(name STREQUAL "torch")  # whose own macros make the shared one useless
      target_precompile_headers(torch_test PRIVATE <ATen/core/Tensor.h> <gmock/gmock.h> <gtest/gtest.h>)
    else()
      target_precompile_headers(${name}_test REUSE_FROM stoker_test_headers)
    endif()
    if(STOKER_TOGETHER AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
      stoker_compile_together(${name}_test "${tests}")
    endif()
    add_test(NAME ${name} COMMAND ${name}_test --gtest_brief=1)
    set(limit 300)
    if(STOKER_SANITIZE)  # with which those that save many checkpoints take five times as long
      set(limit 1800)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${limit})
  endif()
endfunction()

# The sources of one folder are compiled a few at a time as one: what they include is read once for them all, which halves
# the time of a first build. So names in the unnamed namespaces of one folder differ. A source that is touched after the first
# build leaves the others for good, so that the next change to it compiles it alone. Sources that have flags of their own are
# left alone by CMake. With clang, which clang-tidy follows, each source is compiled alone and needs all that it names.
function(stoker_compile_together target sources)
  if(NOT EXISTS ${STOKER_TOGETHER_SINCE})
    file(TOUCH ${STOKER_TOGETHER_SINCE})
  endif()
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${sources})
  foreach(source IN LISTS sources)
    if(source MATCHES "${STOKER_APART}")
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src)
    string(MAKE_C_IDENTIFIER "${folder}" key)
    file(SIZE ${source} own_bytes)
    if(NOT DEFINED part_${key})
      set(part_${key} 0)
      set(count_${key} 0)
      set(bytes_${key} 0)
    endif()
    math(EXPR count_${key} "${count_${key}} + 1")
    math(EXPR bytes_${key} "${bytes_${key}} + ${own_bytes}")
    if(count_${key} GREATER STOKER_TOGETHER_MOST OR bytes_${key} GREATER STOKER_TOGETHER_BYTES)
      math(EXPR part_${key} "${part_${key}} + 1")
      set(count_${key} 1)
      set(bytes_${key} ${own_bytes})
    endif()
    if(NOT "${source}" IS_NEWER_THAN "${STOKER_TOGETHER_SINCE}")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${key}_${part_${key}})
    endif()
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # A source's own types are seen as a header's once another source includes it.
  target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
endfunction()

# Others' headers are read once instead of by every source: a fifth of all time that goes into compiling, in the torch room
# two fifths. With clang, which clang-tidy follows, each source needs all that it names.
function(stoker_precompile_headers name is_cold)
  # With them GCC's false alarms on string + (bug 105651) come under these names.
  target_compile_options(stoker_${name} PRIVATE ${STOKER_PRECOMPILED} -Wno-stringop-overflow -Wno-array-bounds)
  if(name STREQUAL "torch")
    target_precompile_headers(stoker_torch PRIVATE <ATen/core/Tensor.h> <torch/csrc/distributed/c10d/Backend.hpp>)
    return()
  endif()
  set(owner stoker_headers)
  if(is_cold)
    set(owner stoker_cold_headers)
  endif()
  if(NOT TARGET ${owner})
    file(WRITE ${CMAKE_BINARY_DIR}/${owner}.cc "\n")
    add_library(${owner} OBJECT EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/${owner}.cc)
    target_link_libraries(${owner} PRIVATE stoker_flags)
    target_compile_options(${owner} PRIVATE ${STOKER_PRECOMPILED} $<$<BOOL:${is_cold}>:${STOKER_COLD}>)
    target_precompile_headers(${owner} PRIVATE <algorithm> <chrono> <filesystem> <functional> <map> <memory> <optional>
                              <span> <string> <string_view> <variant> <vector>)
  endif()
  target_precompile_headers(stoker_${name} REUSE_FROM ${owner})
endfunction()

# Texts in another language, as a function of room base.
function(stoker_embed_catalogue code name)
  set(source ${CMAKE_BINARY_DIR}/${name}.cc)
  set(po ${CMAKE_SOURCE_DIR}/po/${code}.po)
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${source} DEPENDS ${po} ${script} VERBATIM
                     COMMAND ${CMAKE_COMMAND} -DTEXT=${po} -DSOURCE=${source} -DNAME=${name} -P ${script})
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  target_sources(stoker_base PRIVATE ${source})
endfunction()

# Reading GoogleTest's headers takes half of a test's compilation: they are read once for all rooms.
function(stoker_add_test_headers)
  add_library(stoker_test_flags INTERFACE)
  target_link_libraries(stoker_test_flags INTERFACE stoker_flags GTest::gmock_main GTest::gmock)
  # A test is compiled more often than it runs: its own code need not be fast, what it calls is. -O0 takes 13 % less than -O1.
  target_compile_options(stoker_test_flags INTERFACE $<$<CONFIG:Release>:-O0> $<$<CXX_COMPILER_ID:GNU>:${STOKER_PRECOMPILED}>)
  file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cc "int main() {}\n")
  add_executable(stoker_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cc)
  target_link_libraries(stoker_test_headers PRIVATE stoker_test_flags)
  target_precompile_headers(stoker_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

function(stoker_add_rooms)
  if(STOKER_TESTS)
    stoker_add_test_headers()
  endif()
  stoker_room(base LIBRARIES stoker::fmt stoker::json stoker::crypto stoker::isal stoker::xxhash Threads::Threads)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/version.cc PROPERTIES COMPILE_DEFINITIONS
                              STOKER_VERSION="${PROJECT_VERSION}")
  stoker_embed_catalogue(fr french_catalogue)
  stoker_room(config COLD ROOMS LIBRARIES stoker::yaml)
  stoker_room(format ROOMS LIBRARIES stoker::json stoker::blosc stoker::deflate stoker::lz4 stoker::snappy stoker::zlib
              stoker::zstd stoker::isal)
  stoker_room(net ROOMS LIBRARIES stoker::sodium stoker::json Threads::Threads)
  stoker_room(slurm COLD ROOMS LIBRARIES stoker::re2)
  stoker_room(record ROOMS LIBRARIES stoker::json)
  stoker_room(job COLD ROOMS config slurm net LIBRARIES stoker::json)
  stoker_room(data ROOMS config format LIBRARIES stoker::jpeg stoker::hwy stoker::png stoker::webp stoker::json Threads::Threads stoker::isal)
  stoker_room(checkpoint ROOMS format net record LIBRARIES stoker::json Threads::Threads)
  stoker_room(observe COLD ROOMS record slurm LIBRARIES stoker::re2 stoker::json)
  stoker_room(stage ROOMS data format net slurm record LIBRARIES stoker::zstd stoker::isal stoker::json Threads::Threads)
  stoker_room(rank COLD ROOMS job slurm net format record checkpoint observe stage LIBRARIES stoker::json stoker::hwloc)
  stoker_room(launch COLD ROOMS job rank slurm record checkpoint observe stage LIBRARIES stoker::json)
  stoker_room(lab COLD ROOMS slurm net LIBRARIES stoker::json)
  stoker_room(explain COLD ROOMS config format net slurm record job data checkpoint observe stage LIBRARIES stoker::re2 stoker::json)
  # What reads logs of gigabytes. With headers precompiled at -O1 GCC 12 crashes on it.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/explain/failure/automaton.cc PROPERTIES
                              COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> SKIP_PRECOMPILE_HEADERS ON)
  stoker_room(report COLD ROOMS config format net slurm record job data checkpoint observe stage explain
              LIBRARIES stoker::json)
  if(STOKER_TORCH AND EXISTS ${CMAKE_SOURCE_DIR}/src/torch/train_main.cc)
    find_package(Libtorch 2.13 REQUIRED)
    stoker_room(torch ROOMS data stage checkpoint net record job LIBRARIES libtorch::libtorch stoker::json)
    # The wheel has gloo but not its headers; only this source may see our declarations in their place.
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/torch/gloo_backend.cc PROPERTIES
                                INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/src/torch/gloo_stub)
  endif()
  stoker_room(cli COLD ROOMS config format net slurm record job data checkpoint observe stage rank launch lab explain report
              LIBRARIES stoker::cli11 stoker::json stoker::re2)
endfunction()

function(stoker_add_programs)
  add_executable(stoker ${CMAKE_SOURCE_DIR}/src/cli/stoker_main.cc)
  if(TARGET stoker_cli)
    target_link_libraries(stoker PRIVATE stoker_cli)
  endif()
  target_link_options(stoker PRIVATE -Wl,--as-needed)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT STOKER_SANITIZE)
    # A fifth of its start would go into looking up what libstdc++ names. Nothing that it loads later is C++. Some
    # distributions have no static one.
    check_linker_flag(CXX -static-libstdc++ STOKER_STATIC_RUNTIME)
    if(STOKER_STATIC_RUNTIME)
      target_link_options(stoker PRIVATE -static-libstdc++ -static-libgcc)
    endif()
  endif()
  if(STOKER_TESTS)
    # What tests/test_zarr.py and tests/test_hdf5.py drive.
    add_executable(arrays ${CMAKE_SOURCE_DIR}/tests/programs/arrays.cc)
    target_link_libraries(arrays PRIVATE stoker_format)
    # What tests/test_parquet_tables.py drives.
    add_executable(tables ${CMAKE_SOURCE_DIR}/tests/programs/tables.cc)
    target_link_libraries(tables PRIVATE stoker_format)
  endif()
  if(TARGET stoker_torch)
    add_executable(stoker-train ${CMAKE_SOURCE_DIR}/src/torch/train_main.cc)
    target_link_libraries(stoker-train PRIVATE stoker_torch libtorch::libtorch)
    if(STOKER_TESTS)
      # What tests/training/test_exactness.py compares with Python.
      add_executable(torch-steps ${CMAKE_SOURCE_DIR}/tests/programs/torch_steps.cc)
      target_link_libraries(torch-steps PRIVATE stoker_torch libtorch::libtorch)
    endif()
  endif()
endfunction()

# One harness per parser: fuzz/<parser>_fuzz.cc, those of datasets in fuzz/data/, of arrays in fuzz/arrays/, linked with
# every room but torch and cli.
function(stoker_add_fuzzers)
  file(GLOB harnesses CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/fuzz/*_fuzz.cc
       ${CMAKE_SOURCE_DIR}/fuzz/*/*_fuzz.cc)
  add_custom_target(fuzzers)
  foreach(harness IN LISTS harnesses)
    get_filename_component(name ${harness} NAME_WE)
    add_executable(${name} ${harness})
    add_dependencies(fuzzers ${name})
    target_compile_options(${name} PRIVATE -fsanitize=fuzzer)
    target_link_options(${name} PRIVATE -fsanitize=fuzzer)
    foreach(room base config format net slurm record job data checkpoint observe rank lab explain)
      if(TARGET stoker_${room})
        target_link_libraries(${name} PRIVATE stoker_${room})
      endif()
    endforeach()
  endforeach()
endfunction()

# C++ benchmarks: bench/<workload>_bench.cc (google-benchmark, no libtorch).
function(stoker_add_benches)
  file(GLOB benches CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.cc)
  foreach(bench IN LISTS benches)
    get_filename_component(name ${bench} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${bench})
    foreach(room base config format net slurm record job data checkpoint observe rank)
      if(TARGET stoker_${room})
        target_link_libraries(${name} PRIVATE stoker_${room})
      endif()
    endforeach()
    target_link_libraries(${name} PRIVATE stoker::benchmark)
  endforeach()
endfunction()
