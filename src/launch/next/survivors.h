// Ranks that outlive their run. One that was killed outright tells nobody: its ranks notice by themselves,
// and may save and end until their grace time is over. Used by `stoker resume`, whose ranks must not write
// beside them. Knows of this host alone. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// A rank that lives on this host.
struct Survivor {
  int rank = 0;
  std::int64_t pid = 0;  ///< of its command, or of its `stoker rank` where only that is known

  friend bool operator==(const Survivor&, const Survivor&) = default;
};

/// Those of an attempt, by rank: processes that have the pid which its events name and began before these
/// did, and every `stoker rank` that was started for it. Other users' processes are not all seen.
std::vector<Survivor> survivors(const record::Attempt& attempt);

struct SurvivorWait {
  std::function<void(const std::string&)> on_wait;  ///< called once, when there is somebody to wait for
  std::function<bool()> should_stop;                ///< asked several times a second
};
/// Waits until no rank of the run's last attempt lives on this host, at most for the grace time of that
/// attempt's job and kSurvivorMargin. Unavailable, naming the ranks, or Cancelled when `should_stop`.
Status wait_for_survivors(const record::RunFolder& run, const SurvivorWait& how, Clock& clock);

/// What the kernel may take to clear a rank away that was killed at the end of its grace time.
inline constexpr Duration kSurvivorMargin = std::chrono::seconds(10);

}  // namespace stoker::launch
