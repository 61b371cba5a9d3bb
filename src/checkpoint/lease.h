// Tells a step folder that is being written from one whose writer died. Rank 0 leaves a lease in the pending
// folder; whoever finds it later asks whether that process can still be at work. Used by Saver, list and
// prune.
#pragma once

#include "base/status.h"
#include "base/strong.h"
#include "base/text.h"
#include "base/time.h"

namespace stoker::checkpoint {

/// Who writes a pending folder.
struct Lease {
  std::string boot;  ///< identifies the machine's boot and the process namespace
  std::string host;  ///< for people
  std::int64_t pid = 0;
  std::uint64_t started = 0;  ///< in clock ticks since boot: a pid may be used again
  WorldSize world_size{1};
  double expires = 0;  ///< Unix seconds after which the save has given up by itself

  bool operator==(const Lease&) const = default;
};

/// The lease of this process for a save that gives up after `limit`.
Lease make_lease(WorldSize world_size, Duration limit, WallTime now);

std::string lease_text(const Lease& lease);
Result<Lease> parse_lease(std::string_view subject, std::string_view text);

/// Whether a process can still be writing: the one of this machine is looked up, one elsewhere is believed
/// until its lease is over.
bool is_alive(const Lease& lease, WallTime now);

/// What was left in a pending folder: rank 0's lease, or else that of a rank which came before it. not_found
/// when none can be read, since its writer died before or while writing it.
Result<Lease> find_lease(const Path& folder);

/// Whether a pending folder's writer can be at work; one that rank 0 gave up is not alive. Without a readable
/// lease the folder counts as alive for an hour from its last change.
bool is_pending_alive(const Path& folder, WallTime now);

}  // namespace stoker::checkpoint
