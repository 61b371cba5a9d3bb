// Whether an ended run restarts by itself: limits per cause, and a stop after several attempts without
// progress. Pure functions.
#pragma once

#include <span>
#include <string>

#include "job/job.h"
#include "launch/state/history.h"

namespace stoker::launch {

/// The decision after an attempt.
struct Verdict {
  bool will_continue = false;
  std::string why;  ///< one line; "" for a run that continues or is done

  bool is_restart_disabled = false;  ///< restarts after this cause are disabled

  static Verdict yes() { return {true, "", false}; }
  static Verdict no(std::string why) { return {false, std::move(why), false}; }
};

/// The last attempt in `history` is judged; `now` is the newest valid checkpoint. In a chain, a time limit
/// leads to the next link.
Verdict judge_next(const job::Job& job, std::span<const PastAttempt> history, const CheckpointStamp& now);

}  // namespace stoker::launch
