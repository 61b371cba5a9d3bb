// The states of a job as Slurm's commands write them, from 20.11 on, and what they mean to people. A word
// that is not known is a job that is still there until something else proves it: new releases bring new
// words. Thread-safe: no state.
#pragma once

#include <string>
#include <string_view>

namespace stoker::slurm {

enum class JobState {
  pending,     ///< waits, also to be started again (REQUEUED, REQUEUE_HOLD, ...)
  running,     ///< has its nodes, also while they are being set up
  suspended,   ///< has its nodes and does not run
  completing,  ///< has ended; its processes are being ended or its files brought back
  completed,   ///< the script ended with exit code 0
  failed,      ///< it ended with another one
  cancelled,
  timeout,
  out_of_memory,
  node_failed,  ///< a node was lost (NODE_FAIL) or did not come up (BOOT_FAIL)
  preempted,
  deadline,  ///< --deadline passed
  unknown,   ///< a word that is not known here: not over until something else says so
};
/// "pending", "out of memory", ...
std::string_view to_text(JobState state);

/// The state behind "RUNNING", "CANCELLED by 1000", "OUT_OF_ME+", "PD"; letters of either case.
JobState parse_job_state(std::string_view text);

/// The job has come to its end and will not run again under this id.
bool is_over(JobState state);

/// What a pending job waits for, in plain words: "jobs of higher priority are ahead" for Priority; "" for a
/// reason that is not known here, which is then worth showing as it is.
std::string_view reason_words(std::string_view reason);

}  // namespace stoker::slurm
