# Flags shared by every target: language level, warnings as errors, sanitizers, ccache, output folders.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

find_program(CCACHE ccache)
if(CCACHE)
  # Precompiled headers: ccache cannot see whether they use a macro such as __TIME__ or one defined by -D. Ours contain only
  # third-party headers, which do not.
  set(CMAKE_CXX_COMPILER_LAUNCHER env CCACHE_SLOPPINESS=pch_defines,time_macros ${CCACHE})
endif()

# One interface target instead of global options: the torch room's own headers do not survive -Werror.
add_library(stoker_flags INTERFACE)
target_compile_features(stoker_flags INTERFACE cxx_std_20)
target_include_directories(stoker_flags INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
                           $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
foreach(option -Wall -Wextra -Werror -Wno-missing-field-initializers)
  target_compile_options(stoker_flags INTERFACE $<BUILD_INTERFACE:${option}>)
endforeach()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  target_compile_options(stoker_flags INTERFACE $<BUILD_INTERFACE:-Wno-restrict>)  # false alarms on string + (GCC bug 105651)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  # libstdc++ 12's own std::stable_sort uses std::get_temporary_buffer, which clang 19 calls deprecated.
  target_compile_options(stoker_flags INTERFACE $<BUILD_INTERFACE:-Wthread-safety>
                         $<BUILD_INTERFACE:-Wno-deprecated-declarations>)
endif()

if(STOKER_STDLIB)
  add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-stdlib=${STOKER_STDLIB}>)
  add_link_options(-stdlib=${STOKER_STDLIB})
endif()
if(STOKER_SANITIZE)
  # -O1 compiles in half of the time of -O2.
  add_compile_options(-fsanitize=${STOKER_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g1 -O1)
  add_link_options(-fsanitize=${STOKER_SANITIZE})
endif()
if(STOKER_FUZZ)
  # Coverage counters in the rooms guide the fuzzer.
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
