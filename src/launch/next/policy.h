// Whether a run that has ended goes on by itself: how often after which cause, and not when attempt after
// attempt leaves nothing new. Pure functions.
#pragma once

#include <span>
#include <string>

#include "job/job.h"
#include "launch/next/history.h"

namespace stoker::launch {

/// What is decided after an attempt, and why.
struct Verdict {
  bool goes_on = false;
  std::string why;  ///< one line; "" for a run that goes on and for one that is done

  bool is_usual = false;  ///< nobody asked for more than one attempt after such an end

  static Verdict yes() { return {true, "", false}; }
  static Verdict no(std::string why) { return {false, std::move(why), false}; }
};

/// `history` ends with the attempt that is judged; `now` is the newest valid checkpoint. In a chain an end of
/// time is what its links are for.
Verdict judge_next(const job::Job& job, std::span<const PastAttempt> history, const Mark& now);

}  // namespace stoker::launch
