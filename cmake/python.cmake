# The Python module: python/core (C++, nanobind) over the rooms, python/stoker beside it. In a build tree it is put
# together in <build>/python, so that PYTHONPATH=<build>/python imports it; `pip install .` installs the same files.

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
  target_link_libraries(stoker_python PRIVATE stoker_loader stoker_checkpoint)
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
