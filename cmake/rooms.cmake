# The rooms of src/, the rooms each may include beside base, and the libraries it uses. This is the only list: the build links
# from it, and script/check refuses an #include that it does not allow.
#
#   stoker_room(NAME [COLD] [LIBTORCH] [PUBLIC <its headers in include/stoker>] ROOMS <rooms it may include>
#               [TESTS <rooms that only its tests include>] [WITHOUT <regular expression of sources>]
#               LIBRARIES <external libraries>)
# A COLD room parses, waits and talks to other programs, but computes nothing that takes time: -O1 compiles it in two thirds of
# the time. LIBTORCH: its sources include libtorch. A room without sources is skipped.

include(CheckLinkerFlag)
include(libraries)

set(STOKER_COLD $<$<CONFIG:Release>:-O1>)
option(STOKER_UNITY "compile the sources of one folder in groups (off in the presets dev and libcxx)" ON)
# The largest group: a change to one of its sources compiles all of it.
set(STOKER_UNITY_SOURCES 8)
math(EXPR STOKER_UNITY_BYTES "44 * 1024")
# Folders whose sources are compiled one by one, for several processors each.
set(STOKER_NO_UNITY "/kernels/")
option(STOKER_PRECOMPILED_HEADERS "with GCC: precompile external headers once per kind of room" ON)
# ccache needs it.
set(STOKER_PRECOMPILED -fpch-preprocess)

set_property(GLOBAL PROPERTY STOKER_ROOMS "")

function(stoker_room name)
  cmake_parse_arguments(room "COLD;LIBTORCH" "WITHOUT" "PUBLIC;ROOMS;TESTS;LIBRARIES" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/${name}/*.cc)
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|_main)\\.cc$")
  if(room_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "^${room_WITHOUT}$")
  endif()
  if(NOT sources)
    return()
  endif()
  set_property(GLOBAL APPEND PROPERTY STOKER_ROOMS ${name})
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
  set_target_properties(stoker_${name} PROPERTIES STOKER_LIBRARIES "${room_LIBRARIES}")
  if(STOKER_PRECOMPILED_HEADERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    stoker_precompile_headers(${name} "${room_COLD}" "${room_LIBTORCH}")
  endif()
  if(STOKER_UNITY)
    stoker_unity_groups(stoker_${name} "${sources}")
  endif()
  if(STOKER_TESTS AND tests)
    add_executable(${name}_test ${tests})
    # The rooms of TESTS come later: CMake looks for their targets when it generates.
    list(TRANSFORM room_TESTS PREPEND stoker_)
    target_link_libraries(${name}_test PRIVATE ${room_TESTS} stoker_${name} ${room_LIBRARIES} stoker_test_flags)
    if(room_LIBTORCH)  # whose own macros make the shared precompiled header useless
      target_precompile_headers(${name}_test PRIVATE <ATen/core/Tensor.h> <gmock/gmock.h> <gtest/gtest.h>)
    else()
      target_precompile_headers(${name}_test REUSE_FROM stoker_test_headers)
    endif()
    if(STOKER_UNITY)
      stoker_unity_groups(${name}_test "${tests}")
    endif()
    add_test(NAME ${name} COMMAND ${name}_test --gtest_brief=1)
    set(limit 300)
    if(STOKER_SANITIZE)  # tests that save many checkpoints take five times as long
      set(limit 1800)
    endif()
    set_tests_properties(${name} PROPERTIES TIMEOUT ${limit})
  endif()
endfunction()

# src/train/cuda. Against a torch for CPUs, where CUDA's headers are there, it is a library beside the programs: they load it when
# the torch that they find at run time is one for CUDA (src/train/device/cuda_part.cc), whose names it leaves undefined.
function(stoker_add_cuda_part)
  if(NOT Libtorch_CUDA_INCLUDES)
    return()
  endif()
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/train/cuda/*.cc)
  if(NOT Libtorch_CUDA)
    add_library(stoker-train-cuda MODULE ${sources})
    target_link_libraries(stoker-train-cuda PRIVATE stoker_flags stoker_base libtorch::libtorch)
    target_link_options(stoker-train-cuda PRIVATE LINKER:--exclude-libs,ALL)
    target_compile_definitions(stoker-train-cuda PRIVATE C10_CUDA_NO_CMAKE_CONFIGURE_FILE)
    set_target_properties(stoker-train-cuda PROPERTIES PREFIX "" CXX_VISIBILITY_PRESET hidden
                          LIBRARY_OUTPUT_DIRECTORY $<TARGET_FILE_DIR:stoker-train>)
  endif()
  set_source_files_properties(${sources} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON COMPILE_DEFINITIONS USE_C10D_NCCL
                              INCLUDE_DIRECTORIES "${Libtorch_CUDA_INCLUDES}")
endfunction()

# CMake's unity groups, one or more for each folder: headers are read once for a group, which halves the time of a first build.
# Names in the unnamed namespaces of one folder must differ. CMake leaves sources with their own flags alone. The preset libcxx,
# and with it clang-tidy, compiles each source alone, so that each includes all that it names.
function(stoker_unity_groups target sources)
  foreach(source IN LISTS sources)
    if(source MATCHES "${STOKER_NO_UNITY}")
      continue()
    endif()
    cmake_path(GET source PARENT_PATH folder)
    cmake_path(RELATIVE_PATH folder BASE_DIRECTORY ${CMAKE_SOURCE_DIR}/src)
    string(MAKE_C_IDENTIFIER "${folder}" key)
    file(SIZE ${source} own_bytes)
    if(NOT DEFINED group_${key})
      set(group_${key} 0)
      set(count_${key} 0)
      set(bytes_${key} 0)
    endif()
    math(EXPR count_${key} "${count_${key}} + 1")
    math(EXPR bytes_${key} "${bytes_${key}} + ${own_bytes}")
    if(count_${key} GREATER STOKER_UNITY_SOURCES OR bytes_${key} GREATER STOKER_UNITY_BYTES)
      math(EXPR group_${key} "${group_${key}} + 1")
      set(count_${key} 1)
      set(bytes_${key} ${own_bytes})
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${key}_${group_${key}})
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # In a unity source, types of the sources count as types of a header.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()

# External headers are parsed once instead of once per source: a fifth of the whole compile time, two fifths with libtorch.
# clang, and with it clang-tidy, parses them for each source.
function(stoker_precompile_headers name is_cold has_libtorch)
  # With precompiled headers GCC's false alarms on string + (bug 105651) come under these names.
  target_compile_options(stoker_${name} PRIVATE ${STOKER_PRECOMPILED} -Wno-stringop-overflow -Wno-array-bounds)
  if(has_libtorch)
    target_precompile_headers(stoker_${name} PRIVATE <ATen/core/Tensor.h> <torch/csrc/distributed/c10d/Backend.hpp>)
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

# A text file, embedded as a function of a room. The header declares the function.
function(stoker_embed_text room file namespace name header)
  set(source ${CMAKE_BINARY_DIR}/${name}.cc)
  set(text ${CMAKE_SOURCE_DIR}/${file})
  set(script ${CMAKE_SOURCE_DIR}/cmake/embed.cmake)
  add_custom_command(OUTPUT ${source} DEPENDS ${text} ${script} VERBATIM
                     COMMAND ${CMAKE_COMMAND} -DTEXT=${text} -DSOURCE=${source} -DNAME=${name} -DNAMESPACE=${namespace}
                             -DHEADER=${header} -P ${script})
  set_source_files_properties(${source} PROPERTIES COMPILE_OPTIONS -Wno-overlength-strings)
  target_sources(stoker_${room} PRIVATE ${source})
endfunction()

# Parsing GoogleTest's headers takes half of a test's compilation: they are precompiled once for all rooms.
function(stoker_add_test_headers)
  add_library(stoker_test_flags INTERFACE)
  target_link_libraries(stoker_test_flags INTERFACE stoker_flags GTest::gmock_main GTest::gmock)
  # A test is compiled more often than it runs: only the room's code is optimised. -O0 takes 13 % less time than -O1.
  target_compile_options(stoker_test_flags INTERFACE $<$<CONFIG:Release,RelWithDebInfo>:-O0> $<$<CXX_COMPILER_ID:GNU>:${STOKER_PRECOMPILED}>)
  file(WRITE ${CMAKE_BINARY_DIR}/test_headers.cc "int main() {}\n")
  add_executable(stoker_test_headers EXCLUDE_FROM_ALL ${CMAKE_BINARY_DIR}/test_headers.cc)
  target_link_libraries(stoker_test_headers PRIVATE stoker_test_flags)
  target_precompile_headers(stoker_test_headers PRIVATE <gmock/gmock.h> <gtest/gtest.h>)
endfunction()

function(stoker_add_rooms)
  if(STOKER_TESTS)
    stoker_add_test_headers()
  endif()
  stoker_room(base PUBLIC bytes choices progress status strong tensor_view text time ROOMS LIBRARIES stoker::fmt stoker::json stoker::crypto stoker::isal stoker::xxhash Threads::Threads)
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/base/version.cc PROPERTIES COMPILE_DEFINITIONS
                              STOKER_VERSION="${PROJECT_VERSION}")
  stoker_embed_text(base po/fr.po stoker french_catalogue base/language/catalogue.h)
  stoker_room(config COLD ROOMS LIBRARIES stoker::yaml)
  stoker_room(net ROOMS LIBRARIES stoker::crypto stoker::sodium stoker::json Threads::Threads)
  stoker_room(slurm COLD ROOMS LIBRARIES stoker::re2)

  stoker_room(codec ROOMS LIBRARIES stoker::json stoker::blosc stoker::deflate stoker::lz4 stoker::snappy
              stoker::zlib stoker::zstd stoker::isal)
  stoker_room(archive ROOMS codec TESTS dataset LIBRARIES stoker::json stoker::isal stoker::zstd)
  stoker_room(arrays ROOMS codec archive LIBRARIES stoker::json)
  stoker_room(parquet ROOMS codec archive LIBRARIES stoker::json)
  stoker_room(dataset PUBLIC dataset ROOMS codec archive arrays parquet LIBRARIES stoker::json)

  stoker_room(image PUBLIC transform_options ROOMS LIBRARIES stoker::jpeg stoker::hwy stoker::png stoker::webp)
  stoker_room(record PUBLIC metrics ROOMS image LIBRARIES stoker::json Threads::Threads)
  stoker_room(loader PUBLIC fields loader sampler ROOMS codec dataset image TESTS pack LIBRARIES stoker::json stoker::png Threads::Threads)
  stoker_room(sources ROOMS codec archive arrays parquet dataset image LIBRARIES stoker::json)
  stoker_room(pack ROOMS config codec archive arrays parquet dataset image sources LIBRARIES stoker::json Threads::Threads)
  stoker_room(inspect ROOMS codec archive arrays parquet dataset image sources pack LIBRARIES stoker::json)
  stoker_room(stage ROOMS net codec archive dataset record LIBRARIES stoker::zstd stoker::isal stoker::json Threads::Threads)

  stoker_room(job COLD ROOMS config slurm LIBRARIES stoker::json stoker::re2)
  stoker_room(checkpoint PUBLIC checkpoint state_values ROOMS archive LIBRARIES stoker::json Threads::Threads)
  stoker_room(observe COLD ROOMS slurm record LIBRARIES stoker::re2 stoker::json)

  stoker_room(track COLD ROOMS record job LIBRARIES stoker::json Threads::Threads)

  stoker_room(rank COLD ROOMS net slurm dataset record job observe LIBRARIES stoker::json stoker::hwloc)
  stoker_room(trainers COLD ROOMS rank LIBRARIES stoker::json Threads::Threads)
  stoker_room(launch COLD ROOMS slurm record stage job checkpoint observe rank trainers LIBRARIES stoker::json)
  stoker_room(sweep ROOMS config record observe LIBRARIES stoker::json)
  stoker_embed_text(sweep src/sweep/optuna/bridge.py stoker::sweep optuna_bridge_script sweep/optuna/bridge.h)
  stoker_room(trials COLD ROOMS config slurm record job launch sweep LIBRARIES stoker::json)
  stoker_room(farm ROOMS config codec slurm record observe rank LIBRARIES stoker::json stoker::xxhash)
  stoker_room(netcheck COLD ROOMS net job observe rank LIBRARIES stoker::json)
  stoker_room(lab COLD ROOMS net slurm LIBRARIES stoker::json)

  stoker_room(bash COLD ROOMS LIBRARIES)
  stoker_room(script_lint COLD ROOMS config slurm job bash LIBRARIES stoker::re2)
  stoker_room(draft COLD ROOMS config slurm bash script_lint LIBRARIES)
  stoker_room(preflight COLD ROOMS net slurm dataset record loader pack stage job observe rank trainers script_lint LIBRARIES stoker::json)
  stoker_room(transfer ROOMS codec dataset record stage job launch preflight LIBRARIES stoker::json Threads::Threads)
  stoker_embed_text(transfer src/transfer/far_side.sh stoker::transfer far_side_script transfer/protocol.h)
  stoker_room(diagnose COLD ROOMS archive slurm record job observe script_lint LIBRARIES stoker::re2)
  # It scans logs of gigabytes. With headers precompiled at -O1 GCC 12 crashes on it.
  set_source_files_properties(${CMAKE_SOURCE_DIR}/src/diagnose/automaton.cc PROPERTIES
                              COMPILE_OPTIONS $<$<CONFIG:Release>:-O3> SKIP_PRECOMPILE_HEADERS ON)
  stoker_room(report COLD ROOMS record job observe sweep LIBRARIES stoker::json)
  stoker_room(profile ROOMS archive record job LIBRARIES stoker::json)
  stoker_room(manual COLD ROOMS LIBRARIES)

  if(STOKER_TORCH AND EXISTS ${CMAKE_SOURCE_DIR}/src/train/train_main.cc)
    find_package(Libtorch 2.11 REQUIRED)
    set(without_cuda WITHOUT "${CMAKE_SOURCE_DIR}/src/train/cuda/.*")
    if(Libtorch_CUDA AND Libtorch_CUDA_INCLUDES)
      set(without_cuda "")
      set_source_files_properties(${CMAKE_SOURCE_DIR}/src/train/device/cuda_part.cc PROPERTIES COMPILE_DEFINITIONS STOKER_CUDA)
    endif()
    stoker_room(train LIBTORCH ${without_cuda} PUBLIC adaptive data_parallel ema exceptions gradients model model_state optimizer
                process_group rendezvous_options schedule session sgd sync_batch_norm
                ROOMS net dataset record image loader job checkpoint LIBRARIES libtorch::libtorch stoker::json)
    # The wheel has gloo but not its headers: only this source sees our declarations in their place.
    set_source_files_properties(${CMAKE_SOURCE_DIR}/src/train/comm/gloo_backend.cc PROPERTIES
                                INCLUDE_DIRECTORIES ${CMAKE_SOURCE_DIR}/src/train/gloo_stub)
    stoker_add_cuda_part()
  endif()

  stoker_room(cli COLD ROOMS config net slurm dataset record loader sources pack inspect stage job checkpoint observe rank trainers launch
              netcheck lab track sweep farm trials script_lint draft preflight transfer diagnose report profile manual LIBRARIES stoker::cli11 stoker::json stoker::re2)
endfunction()

# Links all rooms except libtorch and terminal output. Used by fuzz harnesses and benches.
function(stoker_link_rooms target)
  get_property(rooms GLOBAL PROPERTY STOKER_ROOMS)
  list(REMOVE_ITEM rooms train cli)
  list(REVERSE rooms)
  list(TRANSFORM rooms PREPEND stoker_)
  target_link_libraries(${target} PRIVATE ${rooms})
endfunction()

# The commit of `stoker --version`, asked for in each build. Only this program has it: a new commit compiles one small source
# and links one program, and not the tests.
function(stoker_add_commit target)
  set(source ${CMAKE_BINARY_DIR}/commit.cc)
  set(script ${CMAKE_SOURCE_DIR}/cmake/commit.cmake)
  add_custom_target(stoker_commit BYPRODUCTS ${source} VERBATIM
                    COMMAND ${CMAKE_COMMAND} -DCOMMIT=${STOKER_COMMIT} -DSOURCES=${CMAKE_SOURCE_DIR} -DSOURCE=${source} -P ${script})
  set_source_files_properties(${source} PROPERTIES GENERATED ON)
  target_sources(${target} PRIVATE ${source})
  add_dependencies(${target} stoker_commit)
endfunction()

function(stoker_add_programs)
  add_executable(stoker ${CMAKE_SOURCE_DIR}/src/cli/stoker_main.cc)
  stoker_add_commit(stoker)
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
    target_link_libraries(arrays PRIVATE stoker_arrays)
    # What tests/test_parquet_tables.py drives.
    add_executable(tables ${CMAKE_SOURCE_DIR}/tests/programs/tables.cc)
    target_link_libraries(tables PRIVATE stoker_parquet)
    # What tests/test_foreign_fixtures.py drives.
    add_executable(archives ${CMAKE_SOURCE_DIR}/tests/programs/archives.cc)
    target_link_libraries(archives PRIVATE stoker_archive)
  endif()
  if(TARGET stoker_train)
    add_executable(stoker-train ${CMAKE_SOURCE_DIR}/src/train/train_main.cc)
    target_link_libraries(stoker-train PRIVATE stoker_train libtorch::libtorch)
    if(TARGET stoker-train-cuda)
      add_dependencies(stoker-train stoker-train-cuda)
    endif()
    if(STOKER_BENCH)
      add_executable(gpu-steps ${CMAKE_SOURCE_DIR}/bench/gpu_steps.cc)
      target_link_libraries(gpu-steps PRIVATE stoker_train libtorch::libtorch)
    endif()
    if(STOKER_TESTS)
      # What tests/training/test_exactness.py compares with Python.
      add_executable(torch-steps ${CMAKE_SOURCE_DIR}/tests/programs/torch_steps.cc)
      target_link_libraries(torch-steps PRIVATE stoker_train libtorch::libtorch)
    endif()
  endif()
endfunction()

# One harness per parser: fuzz/<parser>_fuzz.cc, or in a folder of fuzz/ by subject.
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
    stoker_link_rooms(${name})
  endforeach()
endfunction()

# C++ benchmarks: bench/<workload>_bench.cc (google-benchmark, no libtorch).
function(stoker_add_benches)
  file(GLOB benches CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/bench/*_bench.cc)
  foreach(bench IN LISTS benches)
    get_filename_component(name ${bench} NAME_WE)
    add_executable(${name} EXCLUDE_FROM_ALL ${bench})
    stoker_link_rooms(${name})
    target_link_libraries(${name} PRIVATE stoker::benchmark)
  endforeach()
endfunction()
