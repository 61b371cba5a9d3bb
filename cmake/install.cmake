# Installing: the two programs, and the rooms that programs of others are made of (docs/cpp.md), as static libraries
# with their headers and a package for find_package(stoker). Under pip the Python module is all there is to install.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(STOKER_INSTALLED_ROOMS base config format net slurm record job data stage checkpoint)

function(stoker_install_room room export)
  set_target_properties(stoker_${room} PROPERTIES EXPORT_NAME ${room})
  install(TARGETS stoker_${room} EXPORT ${export} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  # As in the sources a header is included by its path from src/: "torch/session.h", or <stoker/torch/session.h>.
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/src/${room} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/stoker
          FILES_MATCHING PATTERN "*.h"
          PATTERN "*test*" EXCLUDE PATTERN "*sandbox.h" EXCLUDE PATTERN "*_internal.h" EXCLUDE
          PATTERN "gloo_stub" EXCLUDE PATTERN "json.h" EXCLUDE)
endfunction()

function(stoker_add_install)
  install(TARGETS stoker RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  # Found beside the command, as ../share/stoker/sites; in a build tree it is sites/ of the sources.
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/sites DESTINATION ${CMAKE_INSTALL_DATADIR}/stoker)
  install(TARGETS stoker_flags EXPORT stokerTargets)
  set_target_properties(stoker_flags PROPERTIES EXPORT_NAME flags)
  foreach(room IN LISTS STOKER_INSTALLED_ROOMS)
    stoker_install_room(${room} stokerTargets)
  endforeach()
  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/stoker)
  install(EXPORT stokerTargets NAMESPACE stoker:: DESTINATION ${package})
  if(TARGET stoker_torch)
    install(TARGETS stoker-train RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
    # The torch wheel's libraries lie where the build found them.
    get_filename_component(wheel ${Libtorch_c10_LIBRARY} DIRECTORY)
    set_target_properties(stoker-train PROPERTIES INSTALL_RPATH ${wheel})
    stoker_install_room(torch stokerTorchTargets)
    install(EXPORT stokerTorchTargets NAMESPACE stoker:: DESTINATION ${package})
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
