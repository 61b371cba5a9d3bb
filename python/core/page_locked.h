// Page-locked memory for batches that are copied to a GPU. It comes from the CUDA runtime that torch has
// loaded, so that neither building nor importing the module needs CUDA. Thread-safe.
#pragma once

#include <memory>
#include <string>

#include "stoker/loader.h"
#include "stoker/status.h"

namespace stoker::python {

struct PageLockedOptions {
  std::string library;  ///< file name of the CUDA runtime: "libcudart.so.13"
  int device = 0;       ///< CUDA's number of the GPU whose context locks the pages; every GPU can use them
};

/// The library stays loaded until the process ends.
class PageLockedMemory final : public loader::BatchAllocator {
 public:
  /// Fails with Unavailable if the library cannot be loaded or has no cudaHostAlloc.
  static Result<std::shared_ptr<PageLockedMemory>> open(const PageLockedOptions& options);

  std::byte* allocate(std::size_t size) override;
  void release(std::byte* memory, std::size_t size) override;

 private:
  // Functions of the CUDA runtime; they return 0 for success.
  struct Runtime {
    int (*set_device)(int device) = nullptr;                                       // cudaSetDevice
    int (*host_alloc)(void** memory, std::size_t size, unsigned flags) = nullptr;  // cudaHostAlloc
    int (*free_host)(void* memory) = nullptr;                                      // cudaFreeHost
  };
  PageLockedMemory(const Runtime& runtime, int device) : runtime_(runtime), device_(device) {}

  const Runtime runtime_;
  const int device_;
};

}  // namespace stoker::python
