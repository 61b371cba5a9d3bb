// Ranks that outlive their run. If `stoker run` is killed, its ranks notice it and may save until their grace
// time ends. `stoker resume` waits for them, because two attempts must not write at once. Covers this host
// only. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "record/run_folder.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

/// A live rank on this host.
struct OrphanRank {
  int rank = 0;
  std::int64_t pid = 0;  ///< of its command, or of its `stoker rank` if that is all we know

  friend bool operator==(const OrphanRank&, const OrphanRank&) = default;
};

/// The orphan ranks of an attempt, by rank: processes with a recorded pid that started before the record, and
/// every `stoker rank` of the attempt. May miss processes of other users.
std::vector<OrphanRank> find_orphan_ranks(const record::Attempt& attempt);

struct OrphanWait {
  std::function<void(const std::string&)> on_wait;  ///< called once, if there is a rank to wait for
  std::function<bool()> should_stop;                ///< polled several times a second
};
/// Waits until no rank of the run's last attempt is alive on this host, at most for the grace time of its job
/// plus kOrphanMargin. Unavailable with the ranks' names, or Cancelled when `should_stop`.
Status wait_for_orphan_ranks(const record::RunFolder& run, const OrphanWait& how, Clock& clock);

/// Time for the kernel to clean up a rank that was killed at the end of its grace time.
inline constexpr Duration kOrphanMargin = std::chrono::seconds(10);

}  // namespace stoker::launch
