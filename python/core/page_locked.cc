#include "core/page_locked.h"

#include <dlfcn.h>
#include <system_error>
#include <thread>

namespace stoker::python {
namespace {

constexpr int kSuccess = 0;        // cudaSuccess
constexpr unsigned kPortable = 1;  // cudaHostAllocPortable: page-locked for every GPU of the process

// torch's own library if it is loaded, wherever it is installed; else the one that the linker finds.
Result<void*> load_library(const std::string& name) {
  if (void* const loaded = ::dlopen(name.c_str(), RTLD_NOW | RTLD_NOLOAD)) return loaded;
  if (void* const found = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL)) return found;
  const char* const why = ::dlerror();
  return unavailable("loader: device: page-locked memory needs the CUDA runtime: {}", why ? why : name)
      .cure("device=None, pin_memory=True");
}

template <typename Function>
bool load_function(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  return function != nullptr;
}

// Runs `work` in a new thread. CUDA's current device belongs to the thread: the caller's does not change, and
// no context is created on a GPU that only happens to be the caller's current one.
template <typename Work>
bool run_in_new_thread(const Work& work) {
  try {
    std::thread(work).join();
    return true;
  } catch (const std::system_error&) {  // no more threads
    return false;
  }
}

}  // namespace

Result<std::shared_ptr<PageLockedMemory>> PageLockedMemory::open(const PageLockedOptions& options) {
  STOKER_ASSIGN_OR_RETURN(library, load_library(options.library));
  Runtime runtime;
  if (!load_function(library, "cudaSetDevice", runtime.set_device) ||
      !load_function(library, "cudaHostAlloc", runtime.host_alloc) ||
      !load_function(library, "cudaFreeHost", runtime.free_host)) {
    return unavailable("loader: device: {} has no cudaHostAlloc", options.library)
        .cure("device=None, pin_memory=True");
  }
  return std::shared_ptr<PageLockedMemory>(new PageLockedMemory(runtime, options.device));
}

std::byte* PageLockedMemory::allocate(std::size_t size) {
  void* memory = nullptr;
  const bool has_run = run_in_new_thread([&] {
    if (runtime_.set_device(device_) != kSuccess) return;
    if (runtime_.host_alloc(&memory, size, kPortable) != kSuccess) memory = nullptr;
  });
  return has_run ? static_cast<std::byte*>(memory) : nullptr;
}

void PageLockedMemory::release(std::byte* memory, std::size_t /*size*/) {
  // Errors have no remedy: at the end of the process, the driver may have released the memory before.
  static_cast<void>(run_in_new_thread([&] {
    static_cast<void>(runtime_.set_device(device_));
    static_cast<void>(runtime_.free_host(memory));
  }));
}

}  // namespace stoker::python
