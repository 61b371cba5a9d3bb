// Detects ranks that are stopped, hang, are blocked by a cut link or are unreachable, from their heartbeats.
// Decides which notes to print and when to give a rank up. Used by RankGroup; one RankMonitor per rank. No
// I/O.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "job/job.h"
#include "rank/report.h"
#include "rank/verdict.h"
#include "stoker/time.h"

namespace stoker::rank {

/// Monitoring state of one rank in addition to its RankStatus.
struct RankMonitor {
  std::optional<MonoTime> last_message;
  Heartbeat heartbeat;
  bool reported_stopped = false;
  bool reported_silent = false;
  bool was_probed = false;  ///< for a missing heartbeat
  bool reported_unheard = false;
  bool reported_blocked = false;
  bool is_unresponsive = false;                 ///< it was given up without a heartbeat
  std::optional<MonoTime> ended_externally_at;  ///< when a signal from outside ended it
};

/// Facts for a check; the functions are called only when needed.
struct MonitorFacts {
  MonoTime now;
  job::Timeouts timeouts;
  bool is_peer_stopped = false;      ///< a different rank is stopped or unheard: this one may wait for it
  bool are_all_silent = false;       ///< the other ranks, at least one, make no progress either
  std::function<void()> send_probe;  ///< a message that the kernel of its host acknowledges
  std::function<bool()> has_unacknowledged_data;         ///< sent to the rank's host
  std::function<bool()> is_stopped_here;                 ///< its `stoker rank` is stopped on this machine
  std::function<std::string(std::string_view)> host_at;  ///< the rank and host for an address
};

struct MonitorResult {
  std::vector<std::string> notes;
  std::optional<DetectedFailure> failure;  ///< `time` is not set
};

/// A rank that is ended after such a silence may hang.
inline constexpr Duration kLongSilence = std::chrono::seconds(60);

/// Whether there are other ranks, all run, and none has made progress for half of `stall` or for
/// kLongSilence. `monitors` is by rank.
bool are_peers_silent(Rank rank, const std::vector<RankStatus>& statuses,
                      const std::vector<RankMonitor>& monitors, Duration stall);

/// Checks a running rank.
MonitorResult check_rank(const RankStatus& status, RankMonitor& monitor, const MonitorFacts& facts);

}  // namespace stoker::rank
