// How the attempts of a run came to their ends, from their own records and from Slurm's words in the batch
// log. What goes on by itself is judged from it. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "record/run_events.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// Why an attempt ended.
enum class Cause {
  done,
  stopped,  ///< exit code 75: saved and stopped when asked to
  timeout,  ///< its time was over
  preempted,
  node_failed,  ///< a node was lost, or everything on it
  requeued,     ///< by hand: scontrol requeue
  failed,       ///< a failure of its own
  out_of_memory,
  cancelled,  ///< by a person
};
/// "preempted", "node failed", ...
std::string_view to_text(Cause cause);
/// As an ending tells of itself, without a word of Slurm's.
Cause cause_of(record::Outcome outcome, int exit_code, std::string_view reason);

/// Which checkpoint an attempt began with. A file may be written again under the same name.
struct Mark {
  std::string path;    ///< "" from the start
  double written = 0;  ///< last change, Unix seconds

  friend bool operator==(const Mark&, const Mark&) = default;
};
/// The mark of a checkpoint's path; an empty path is a start from nothing.
Mark mark_of(const Path& checkpoint);

/// One attempt that has begun and is over.
struct PastAttempt {
  int number = 0;
  Cause cause = Cause::failed;
  Mark began_with;
};

/// The attempts since the run was last submitted, those that have begun, in order. `next_job`: Slurm's id of
/// the job that comes after the last one, or "" when none has begun yet: a job that lost a rank and that
/// Slurm started again by itself had lost a node. REQUIRES: none of them runs any more.
std::vector<PastAttempt> history_of(const record::RunFolder& run, std::string_view next_job = "");

}  // namespace stoker::launch
