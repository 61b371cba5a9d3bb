// Futex waits on memory shared by processes. Used by Exchange. Thread-safe: no state.
#pragma once

#include <atomic>
#include <cstdint>
#include <ctime>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>

#include "stoker/time.h"

namespace stoker::net::shm {

/// Sleeps while `word` equals `seen`, until a wake-up, or for `at_most`. May wake spuriously.
inline void wait_while(std::atomic<std::uint32_t>& word, std::uint32_t seen, Duration at_most) {
  const timespec limit{static_cast<time_t>(at_most.count() / 1'000'000'000), at_most.count() % 1'000'000'000};
  // The word is shared by processes, so neither call uses a private futex.
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, &limit, nullptr, 0);
}

inline void wake_all(std::atomic<std::uint32_t>& word) {
  ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

}  // namespace stoker::net::shm
