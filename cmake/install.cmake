# Installation: the two programs, and the C++ library (docs/cpp.md): the headers of include/stoker, one static library for each
# target, and a package for find_package(stoker). stoker::stoker needs no libtorch, stoker::train does. Under pip only the Python
# module is installed.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The rooms behind the public headers, with all that they include.
set(STOKER_LIBRARY_ROOMS base config net slurm codec archive arrays parquet dataset record image loader job checkpoint)

# stoker_library_target(TARGET FILE ROOM...): one static library of the objects of these rooms.
function(stoker_library_target target file)
  add_library(${target} STATIC)
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${file} LINKER_LANGUAGE CXX
                        ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/public)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} INTERFACE $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  set(libraries "")
  foreach(room IN LISTS ARGN)
    target_sources(${target} PRIVATE $<TARGET_OBJECTS:stoker_${room}>)
    get_target_property(own stoker_${room} STOKER_LIBRARIES)
    if(own)
      list(APPEND libraries ${own})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES libraries)
  list(REMOVE_ITEM libraries libtorch::libtorch)
  target_link_libraries(${target} PRIVATE ${libraries} ${CMAKE_DL_LIBS})
endfunction()

function(stoker_add_install)
  install(TARGETS stoker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # Found beside the command, as ../share/stoker/sites; in a build tree it is sites/ of the sources.
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/sites DESTINATION ${CMAKE_INSTALL_DATADIR}/stoker)
  # The smoke test of an installation: with the module as `python -m stoker.smoke`, and for the command alone as a file.
  install(FILES ${CMAKE_SOURCE_DIR}/python/stoker/smoke.py DESTINATION ${CMAKE_INSTALL_DATADIR}/stoker)
  # Modules for Lmod and for Environment Modules: each kind finds only its own.
  set(modules ${CMAKE_INSTALL_DATADIR}/stoker/modulefiles)
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/modulefiles/stoker.lua DESTINATION ${modules}/lmod/stoker RENAME ${PROJECT_VERSION}.lua)
  install(FILES ${CMAKE_SOURCE_DIR}/packaging/modulefiles/stoker.tcl DESTINATION ${modules}/tcl/stoker RENAME ${PROJECT_VERSION})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/stoker DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)
  stoker_library_target(stoker_library stoker ${STOKER_LIBRARY_ROOMS})
  set_target_properties(stoker_library PROPERTIES EXPORT_NAME stoker)
  install(TARGETS stoker_library EXPORT stokerTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT stokerTargets NAMESPACE stoker:: DESTINATION ${package})
  if(TARGET stoker_train)
    install(TARGETS stoker-train RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    # The torch wheel's libraries stay where the build found them.
    get_filename_component(wheel ${Libtorch_c10_LIBRARY} DIRECTORY)
    set_target_properties(stoker-train PROPERTIES INSTALL_RPATH ${wheel})
    if(TARGET stoker-train-cuda)
      install(TARGETS stoker-train-cuda LIBRARY DESTINATION ${CMAKE_INSTALL_BINDIR})
    endif()
    stoker_library_target(stoker_train_library stoker_train train)
    target_link_libraries(stoker_train_library PUBLIC stoker_library)
    set_target_properties(stoker_train_library PROPERTIES EXPORT_NAME train)
    install(TARGETS stoker_train_library EXPORT stokerTrainTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
    install(EXPORT stokerTrainTargets NAMESPACE stoker:: DESTINATION ${package})
  endif()
  if(Libtorch_INCLUDE_DIR)
    get_filename_component(STOKER_TORCH_FOUND_AT ${Libtorch_INCLUDE_DIR} DIRECTORY)
  endif()
  get_property(STOKER_LINKED GLOBAL PROPERTY STOKER_LINKED)
  list(JOIN STOKER_LINKED "\n  " STOKER_LINKED)
  configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/stokerConfig.cmake.in
                                ${CMAKE_BINARY_DIR}/stokerConfig.cmake INSTALL_DESTINATION ${package})
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/stokerConfigVersion.cmake COMPATIBILITY ExactVersion)
  install(FILES ${CMAKE_BINARY_DIR}/stokerConfig.cmake ${CMAKE_BINARY_DIR}/stokerConfigVersion.cmake
                ${CMAKE_SOURCE_DIR}/cmake/FindLibtorch.cmake DESTINATION ${package})
endfunction()
