// Distinguishes a step folder being written from one whose writer died. Rank 0 writes a lease to the pending
// folder; a later reader checks whether that process can still be alive. In a published step it names the
// process that saved it. Used by Saver, list and prune.
#pragma once

#include <array>
#include <string_view>

#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/text.h"
#include "stoker/time.h"

namespace stoker::checkpoint {

/// Writer of a pending folder.
struct Lease {
  std::string boot;  ///< identifies the machine's boot and the process namespace
  std::string host;  ///< for display
  std::int64_t pid = 0;
  std::uint64_t started = 0;  ///< in clock ticks since boot: pids are reused
  WorldSize world_size{1};
  double expires = 0;  ///< Unix time after which the save has aborted by itself

  bool operator==(const Lease&) const = default;
};

/// Lease of this process for a save with this time limit.
Lease make_lease(WorldSize world_size, Duration limit, WallTime now);

std::string lease_text(const Lease& lease);
Result<Lease> parse_lease(std::string_view subject, std::string_view text);

/// Whether the process can still be writing. It is looked up if it is on this machine, and otherwise assumed
/// alive until the lease expires.
bool is_alive(const Lease& lease, WallTime now);

/// Where the process of a lease is, as far as this machine can tell.
enum class WriterState {
  self,       ///< this process, or the one that it was forked from
  running,    ///< another process of this machine
  ended,      ///< it was on this machine
  elsewhere,  ///< on another machine: unknown
};
constexpr std::array<std::string_view, 4> names_of(WriterState) {
  return {"self", "running", "ended", "elsewhere"};
}
/// Independent of the lease's expiry.
WriterState writer_state(const Lease& lease);

/// The lease in a pending folder: rank 0's, or of a rank that came earlier. not_found if none is readable
/// because its writer died first.
Result<Lease> find_lease(const Path& folder);

/// Whether the writer of a pending folder can be alive; false after an abort by rank 0. Without a lease the
/// folder counts as alive for an hour after its last change, with an unreadable one for two minutes.
bool is_pending_alive(const Path& folder, WallTime now);

}  // namespace stoker::checkpoint
