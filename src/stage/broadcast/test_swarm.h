// For tests: nodes of a swarm in one process.
#pragma once

#include <atomic>

#include "stage/broadcast/piece_schedule.h"
#include "stoker/progress.h"

namespace stoker::stage {

/// Nothing is read twice because the machine is slow.
inline constexpr SwarmLimits kPatient{
    .late_request_s = 90, .late_reading_s = 90, .missed_s = 90, .alone_s = 90, .join_s = 90};

/// Ends all nodes after the first error, as a run does.
class StopAfterError final : public Progress {
 public:
  void report(const ProgressState&) override {}
  bool stop_requested() const override { return has_failed; }
  std::atomic<bool> has_failed = false;
};

}  // namespace stoker::stage
