#include "train/device/cuda_part.h"

#include <dlfcn.h>
#include <filesystem>

namespace stoker::train {

#ifdef STOKER_CUDA
const CudaPart& torch_cuda();  // train/cuda/torch_cuda.h, which includes this folder
#endif

namespace {

constexpr const char* kTorchForCuda = "libtorch_cuda.so";
constexpr const char* kLibrary = "stoker-train-cuda.so";
constexpr const char* kFunction = "stoker_train_cuda_part";

Result<const CudaPart*> find_part() {
#ifdef STOKER_CUDA
  return &torch_cuda();
#else
  // libtorch.so of a torch for CUDA has loaded it.
  if (::dlopen(kTorchForCuda, RTLD_LAZY | RTLD_NOLOAD) == nullptr)
    return unavailable("this torch is built for CPUs only");
  std::error_code failure;
  const Path program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (failure) return unavailable("/proc/self/exe: {}", failure.message());
  return load_cuda_part(program.parent_path() / kLibrary);
#endif
}

const Result<const CudaPart*>& found_part() {
  static const Result<const CudaPart*> found = find_part();
  return found;
}

}  // namespace

const CudaPart* cuda_part() { return found_part().ok() ? *found_part() : nullptr; }

Status no_cuda_part_reason() { return found_part().ok() ? Status() : found_part().error(); }

Result<const CudaPart*> load_cuda_part(const Path& library) {
  const auto reason = [] {
    const char* const text = ::dlerror();
    return printable(text == nullptr ? "no reason given" : text);
  };
  void* const loaded = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded == nullptr) return unavailable("{}", reason());
  const auto part = reinterpret_cast<const CudaPart* (*)()>(::dlsym(loaded, kFunction));
  if (part == nullptr) return unavailable("{}", reason());
  return part();
}

}  // namespace stoker::train
