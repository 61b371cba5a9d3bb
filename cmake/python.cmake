# The Python module: python/core (C++, nanobind) over the rooms, python/stoker beside it. In a build tree it is put
# together in <build>/python, so that PYTHONPATH=<build>/python imports it; `pip install .` installs the same files.

# For other interpreters than one on this machine, script/package names their headers and compiles nanobind's sources itself:
# nanobind's own CMake functions serve one interpreter, and ask it.

# Under pip, scikit-build-core selects Python and nanobind; otherwise both come from .venv.
if(NOT SKBUILD AND NOT Python_EXECUTABLE AND EXISTS ${CMAKE_SOURCE_DIR}/.venv/bin/python)
  set(Python_EXECUTABLE ${CMAKE_SOURCE_DIR}/.venv/bin/python)
endif()

function(stoker_add_python_module)
  find_package(Python 3.10 COMPONENTS Interpreter Development.Module)
  if(Python_FOUND AND NOT nanobind_ROOT)
    execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_ROOT
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  endif()
  find_package(nanobind CONFIG QUIET)
  if(NOT Python_FOUND OR NOT nanobind_FOUND)
    if(SKBUILD)
      message(FATAL_ERROR "the Python module needs Python's headers and nanobind")
    endif()
    message(STATUS "Python's headers or nanobind not found: the Python module is not built")
    return()
  endif()

  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/core/*.cc)
  nanobind_add_module(stoker_python NB_STATIC STABLE_ABI NOMINSIZE ${sources})
  set(package ${CMAKE_BINARY_DIR}/python/stoker)
  set_target_properties(stoker_python PROPERTIES OUTPUT_NAME _core LIBRARY_OUTPUT_DIRECTORY ${package})
  target_include_directories(stoker_python PRIVATE ${CMAKE_SOURCE_DIR}/python)
  target_link_libraries(stoker_python PRIVATE stoker_loader stoker_checkpoint stoker_record stoker_sweep ${CMAKE_DL_LIBS})
  # The rooms' own symbols stay inside: another extension may load a different version of the same libraries.
  target_link_options(stoker_python PRIVATE -Wl,--exclude-libs,ALL -Wl,--as-needed)

  file(GLOB modules RELATIVE ${CMAKE_SOURCE_DIR}/python/stoker CONFIGURE_DEPENDS
       ${CMAKE_SOURCE_DIR}/python/stoker/*.py ${CMAKE_SOURCE_DIR}/python/stoker/*.pyi
       ${CMAKE_SOURCE_DIR}/python/stoker/py.typed)
  file(MAKE_DIRECTORY ${package})
  foreach(module IN LISTS modules)
    file(CREATE_LINK ${CMAKE_SOURCE_DIR}/python/stoker/${module} ${package}/${module} SYMBOLIC)
  endforeach()
  if(SKBUILD)
    install(TARGETS stoker_python LIBRARY DESTINATION stoker)
  endif()
endfunction()

# stoker_add_portable_modules(INTERPRETER...): a module for each, INTERPRETER being "310=<folder of its headers>"; from 312 on the
# stable ABI, which later versions load too. NANOBIND is the folder of the Python package. One file each: modules/_core.<suffix>.
function(stoker_add_portable_modules nanobind)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/core/*.cc)
  set(map ${CMAKE_SOURCE_DIR}/packaging/module.map)
  foreach(interpreter IN LISTS ARGN)
    string(REGEX MATCH "^([0-9]+)=(.*)$" parts "${interpreter}")
    if(NOT parts)
      message(FATAL_ERROR "STOKER_PYTHONS: '${interpreter}': expected VERSION=HEADERS, as in 311=/usr/include/python3.11")
    endif()
    set(version ${CMAKE_MATCH_1})
    set(module stoker_python_${version})
    add_library(${module}_nanobind OBJECT ${nanobind}/src/nb_combined.cpp)
    target_compile_definitions(${module}_nanobind PRIVATE NB_BUILD NB_COMPACT_ASSERTIONS)
    target_compile_options(${module}_nanobind PRIVATE -fno-strict-aliasing)
    add_library(${module} MODULE ${sources} $<TARGET_OBJECTS:${module}_nanobind>)
    set(suffix .cpython-${version}-${CMAKE_SYSTEM_PROCESSOR}-linux-gnu.so)
    foreach(target IN ITEMS ${module} ${module}_nanobind)
      target_include_directories(${target} SYSTEM PRIVATE ${CMAKE_MATCH_2} ${nanobind}/include
                                 ${nanobind}/ext/robin_map/include)
      set_target_properties(${target} PROPERTIES CXX_VISIBILITY_PRESET hidden)
      if(version GREATER_EQUAL 312)
        target_compile_definitions(${target} PRIVATE Py_LIMITED_API=0x030C0000)
        # Python.h includes it only without the stable ABI; nanobind's headers rely on that.
        target_compile_options(${target} PRIVATE "SHELL:-include cstdio")
        set(suffix .abi3.so)
      endif()
    endforeach()
    target_include_directories(${module} PRIVATE ${CMAKE_SOURCE_DIR}/python)
    target_link_libraries(${module} PRIVATE stoker_loader stoker_checkpoint stoker_record stoker_sweep ${CMAKE_DL_LIBS})
    target_link_options(${module} PRIVATE -Wl,--version-script=${map} -Wl,--gc-sections)
    set_target_properties(${module} PROPERTIES PREFIX "" OUTPUT_NAME _core SUFFIX ${suffix} LINK_DEPENDS ${map}
                          LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/modules)
  endforeach()
endfunction()
