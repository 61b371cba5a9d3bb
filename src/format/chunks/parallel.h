// Runs one piece of work for each of a count on several threads and gives the first error. For packing and
// unpacking the chunks of one block.
#pragma once

#include <atomic>
#include <cstddef>
#include <vector>

#include "base/status.h"
#include "base/thread.h"

namespace stoker::formats {

/// Calls work(i) for all i below `count`, on at most `threads` threads, this one among them. After an error
/// no other piece begins; the error of the smallest i that has one is returned.
template <typename Work>
Status for_each_on(std::size_t threads, std::size_t count, const Work& work) {
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
  }  // joins: each piece ends by itself
  return first;
}

}  // namespace stoker::formats
