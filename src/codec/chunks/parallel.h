// Runs work items on several threads and returns the first error. Used to compress and decompress the chunks
// of one block.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/thread.h"
#include "stoker/status.h"

namespace stoker::codec {

/// Calls work(i) for all i below `count`, on at most `threads` threads including this one. After an error no
/// new item starts; the error of the smallest failed i is returned.
template <typename Work>
Status parallel_for(std::size_t threads, std::size_t count, const Work& work) {
  std::atomic<std::size_t> next{0};
  std::atomic<bool> has_failed{false};
  Mutex mutex;
  Status first;
  std::size_t first_at = count;
  const auto run = [&] {
    for (std::size_t i = next.fetch_add(1); i < count && !has_failed.load(); i = next.fetch_add(1)) {
      Status status = work(i);
      if (status.ok()) continue;
      has_failed.store(true);
      MutexLock lock(mutex);
      if (i < first_at) {
        first_at = i;
        first = std::move(status);
      }
    }
  };
  {
    std::vector<Thread> others;
    for (std::size_t t = 1; t < std::min(threads, count); ++t)
      others.emplace_back([&run](StopToken) { run(); });
    run();
  }  // joins; every item ends by itself
  return first;
}

}  // namespace stoker::codec
