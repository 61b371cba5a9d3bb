# Finds the libtorch inside a `torch` wheel and offers it as libtorch::libtorch (headers, libraries, build rpath).
#
#   STOKER_TORCH_PREFIX   the wheel's folder (the one with include/ and lib/); default: torch of .venv
#   Libtorch_VERSION      of the wheel, without the part after '+'
#   Libtorch_CUDA         whether it is a CUDA wheel
#   STOKER_CUDA_INCLUDE   folder of CUDA's and NCCL's headers; empty: the wheels beside torch, or build/cuda-headers
#   Libtorch_CUDA_INCLUDES  the folders with these headers; empty if some are missing
#
# The wheel's own TorchConfig.cmake insists on a CUDA toolkit for a CUDA wheel; it is not needed here, because
# no source is compiled by nvcc and the wheel contains the CUDA libraries.
include(FindPackageHandleStandardArgs)

set(STOKER_TORCH_PREFIX "" CACHE PATH "Folder of the torch wheel with include/ and lib/; empty: torch of .venv")
set(prefix "${STOKER_TORCH_PREFIX}")
if(NOT prefix)
  file(GLOB candidates ${CMAKE_SOURCE_DIR}/.venv/lib/python3*/site-packages/torch)
  if(candidates)
    list(GET candidates 0 prefix)
  endif()
endif()

# A prefix that changed must be looked up again: the results are not cached entries of the user's.
foreach(entry INCLUDE_DIR torch_LIBRARY torch_cpu_LIBRARY c10_LIBRARY torch_cuda_LIBRARY c10_cuda_LIBRARY)
  unset(Libtorch_${entry} CACHE)
endforeach()
find_path(Libtorch_INCLUDE_DIR ATen/core/Tensor.h HINTS ${prefix}/include NO_DEFAULT_PATH)
foreach(library torch torch_cpu c10 torch_cuda c10_cuda)
  find_library(Libtorch_${library}_LIBRARY ${library} HINTS ${prefix}/lib NO_DEFAULT_PATH)
endforeach()
set(Libtorch_VERSION "")
if(EXISTS ${prefix}/version.py)
  file(STRINGS ${prefix}/version.py line REGEX "^__version__ = ")
  string(REGEX MATCH "[0-9]+\\.[0-9]+\\.[0-9]+" Libtorch_VERSION "${line}")
endif()
set(Libtorch_CUDA OFF)
if(Libtorch_torch_cuda_LIBRARY)
  set(Libtorch_CUDA ON)
endif()

# What ATen/cuda, c10/cuda and ProcessGroupNCCL.hpp include. torch's wheel depends on wheels with most of it, but not on those
# with crt/ and nv/: script/bootstrap adds them.
set(STOKER_CUDA_INCLUDE "" CACHE PATH "Folder of CUDA's and NCCL's headers; empty: beside torch, or build/cuda-headers")
set(Libtorch_CUDA_INCLUDES "")
set(Libtorch_missing_header "")
file(GLOB folders ${STOKER_CUDA_INCLUDE} ${prefix}/../nvidia/*/include ${CMAKE_SOURCE_DIR}/build/cuda-headers/include)
foreach(header cuda_runtime_api.h crt/host_config.h nv/target nccl.h cublas_v2.h cusparse.h cusolverDn.h)
  find_path(Libtorch_header_folder ${header} PATHS ${folders} NO_DEFAULT_PATH NO_CACHE)
  if(NOT Libtorch_header_folder)
    set(Libtorch_missing_header ${header})
  endif()
  list(APPEND Libtorch_CUDA_INCLUDES ${Libtorch_header_folder})
  unset(Libtorch_header_folder)
endforeach()
list(REMOVE_DUPLICATES Libtorch_CUDA_INCLUDES)
if(Libtorch_missing_header)
  set(Libtorch_CUDA_INCLUDES "")
  if(Libtorch_CUDA)
    message(WARNING "stoker-train is built without GPU support: no ${Libtorch_missing_header} beside torch. Try: script/lib/cuda_headers.py build/cuda-headers")
  endif()
endif()

find_package_handle_standard_args(Libtorch
  REQUIRED_VARS Libtorch_INCLUDE_DIR Libtorch_torch_LIBRARY Libtorch_torch_cpu_LIBRARY Libtorch_c10_LIBRARY
  VERSION_VAR Libtorch_VERSION
  REASON_FAILURE_MESSAGE "no torch wheel: try script/bootstrap --for build, or -DSTOKER_TORCH_PREFIX=<folder of torch>, or -DSTOKER_TORCH=OFF")

if(Libtorch_FOUND AND NOT TARGET libtorch::libtorch)
  add_library(libtorch::libtorch INTERFACE IMPORTED GLOBAL)
  # IMPORTED targets are system headers, so the wheel's warnings are not ours.
  target_include_directories(libtorch::libtorch INTERFACE
    ${Libtorch_INCLUDE_DIR} ${Libtorch_INCLUDE_DIR}/torch/csrc/api/include)
  # How the wheels are built; without them the distributed headers declare nothing.
  target_compile_definitions(libtorch::libtorch INTERFACE USE_DISTRIBUTED USE_C10D_GLOO _GLIBCXX_USE_CXX11_ABI=1)
  # First, because libtorch.so of 2.11 exports parts of std::filesystem that crash when called from outside.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_link_libraries(libtorch::libtorch INTERFACE -Wl,--push-state,--no-as-needed -lstdc++ -Wl,--pop-state)
  endif()
  foreach(library torch torch_cpu torch_cuda c10_cuda c10)
    if(Libtorch_${library}_LIBRARY)
      add_library(libtorch::${library} SHARED IMPORTED GLOBAL)
      set_target_properties(libtorch::${library} PROPERTIES IMPORTED_LOCATION ${Libtorch_${library}_LIBRARY})
      target_link_libraries(libtorch::libtorch INTERFACE libtorch::${library})
    endif()
  endforeach()
  # Kernels register themselves when libtorch_cuda is loaded, and libtorch.so loads that of the torch found at run time: the
  # linker must not drop them as unused.
  target_link_options(libtorch::libtorch INTERFACE LINKER:--no-as-needed)
  if(Libtorch_CUDA)
    # What it needs in turn (the driver, the wheel's own CUDA packages) is found when it runs, not when we link.
    target_link_options(libtorch::libtorch INTERFACE LINKER:--allow-shlib-undefined)
  endif()
endif()
unset(prefix)
