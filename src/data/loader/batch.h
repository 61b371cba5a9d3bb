// The memory behind Batch and where it waits for the next use. Only the loader includes it.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "base/thread.h"
#include "data/loader.h"

namespace stoker::data {

/// One batch's worth of memory. Belongs to one thread at a time.
struct Batch::Memory {
  struct Free {
    void operator()(float* p) const { std::free(p); }
  };

  /// Nothing when memory is short.
  static std::unique_ptr<Memory> allocate(std::size_t floats);

  std::unique_ptr<float[], Free> images;
  std::size_t image_floats = 0;  // of one sample
  std::vector<std::int64_t> labels;
  std::vector<std::uint64_t> samples;
  Epoch epoch;
  OrderState after;
};

/// Memory given back by batches. Thread-safe; shared by the loader and its batches.
struct Batch::Pool {
  std::unique_ptr<Memory> take() EXCLUDES_LOCK(mutex) {
    MutexLock lock(mutex);
    if (free.empty()) return nullptr;
    std::unique_ptr<Memory> memory = std::move(free.back());
    free.pop_back();
    return memory;
  }
  void give(std::unique_ptr<Memory> memory) EXCLUDES_LOCK(mutex) {
    MutexLock lock(mutex);
    free.push_back(std::move(memory));
  }

  Mutex mutex;  // taken after Loader::Engine's
  std::vector<std::unique_ptr<Memory>> free GUARDED_BY(mutex);
};

}  // namespace stoker::data
