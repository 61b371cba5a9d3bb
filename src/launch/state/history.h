// Why the attempts of a run ended, from their records and from Slurm's messages in the batch log. The restart
// policy depends on it. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "record/run_events.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

/// Why an attempt ended.
enum class Cause {
  done,
  stopped,  ///< exit code 75: saved and stopped on request
  timeout,  ///< time limit reached
  preempted,
  node_failed,  ///< a node failed, or everything on it
  requeued,     ///< by hand: scontrol requeue
  failed,       ///< a failure of the run
  out_of_memory,
  cancelled,  ///< by a user
};
/// "preempted", "node failed", ...
std::string_view to_text(Cause cause);
/// The cause by the recorded ending, without Slurm's messages.
Cause cause_of(record::Outcome outcome, int exit_code, std::string_view reason);

/// Identifies the checkpoint that an attempt started from. A file may be rewritten under the same name.
struct CheckpointStamp {
  std::string path;    ///< "" without a checkpoint
  double written = 0;  ///< modification time, Unix seconds

  friend bool operator==(const CheckpointStamp&, const CheckpointStamp&) = default;
};
/// The stamp of a checkpoint's path; an empty path means no checkpoint.
CheckpointStamp checkpoint_stamp(const Path& checkpoint);

/// One ended attempt.
struct PastAttempt {
  int number = 0;
  Cause cause = Cause::failed;
  CheckpointStamp started_from;
};

/// The attempts that have started since the last submission, in order. `next_job`: Slurm's id of the job
/// after the last one, or "" if it has not started. A job that lost a rank and was requeued by Slurm had a
/// node failure. REQUIRES: none of them is still running.
std::vector<PastAttempt> history_of(const record::RunFolder& run, std::string_view next_job = "");

/// Whether an attempt of the run was submitted to a queue.
bool was_submitted(const record::RunFolder& run);

}  // namespace stoker::launch
