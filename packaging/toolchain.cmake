# A build for another machine's glibc: compilers and libraries of packaging/libraries.py, in the folder STOKER_PORTABLE. Nothing of
# this machine's libraries is seen.
set(CMAKE_TRY_COMPILE_PLATFORM_VARIABLES STOKER_PORTABLE STOKER_ARCH STOKER_GNU)
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${STOKER_ARCH})
set(CMAKE_C_COMPILER ${STOKER_PORTABLE}/tools/cc)
set(CMAKE_CXX_COMPILER ${STOKER_PORTABLE}/tools/c++)
if(STOKER_GNU)  # packaging/sysroot.py
  set(CMAKE_C_COMPILER ${STOKER_PORTABLE}/tools/gcc)
  set(CMAKE_CXX_COMPILER ${STOKER_PORTABLE}/tools/g++)
endif()
set(CMAKE_AR ${STOKER_PORTABLE}/tools/ar CACHE FILEPATH "")
set(CMAKE_RANLIB ${STOKER_PORTABLE}/tools/ranlib CACHE FILEPATH "")
set(CMAKE_FIND_ROOT_PATH ${STOKER_PORTABLE})
if(STOKER_GNU)
  list(PREPEND CMAKE_FIND_ROOT_PATH ${STOKER_PORTABLE}/gnu)
endif()
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# The same bytes wherever it is built, without debug information and unused functions.
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_INIT
      "-ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${STOKER_PORTABLE}=portable -g0 -ffunction-sections -fdata-sections")
endforeach()
foreach(kind IN ITEMS EXE MODULE)
  set(CMAKE_${kind}_LINKER_FLAGS_INIT "-s -Wl,--gc-sections")
endforeach()
