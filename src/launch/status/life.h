// The state of a run, from its records and from the scheduler's status: each one may know what the other
// cannot. Derived on each call, never stored. Used by status, logs, wait, cancel, resume. Thread-compatible.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "launch/state/array_state.h"
#include "record/run_folder.h"
#include "record/state.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::launch {

enum class Life {
  created,  ///< a folder without an attempt
  queued,
  running,
  done,
  failed,
  stopped,    ///< on request: after a checkpoint, or by a signal
  cancelled,  ///< by scancel or `stoker cancel`
  timeout,    ///< time limit reached
  out_of_memory,
  node_failed,
  preempted,
  lost,     ///< its supervisor is gone, and the ending is unknown
  unknown,  ///< the scheduler did not answer, and the records do not suffice
};
/// "queued", "out of memory", ...
std::string_view to_text(Life life);
/// Whether the run has ended and will not restart by itself.
bool is_over(Life life);

/// The ending of a run without a recorded one, by the state of its job; nothing while the job runs.
std::optional<Life> ending_of(slurm::JobState state);

/// The current state of a run.
struct RunLife {
  Life life = Life::created;
  std::string note;           ///< why it waits or ended; may be ""
  std::string scheduler_job;  ///< "" outside a queue
  std::string nodes;          ///< compact, for a job with nodes: "n[1-4]"
  record::RunState records;
  std::optional<ArrayState> array;  ///< for an array
};

/// "preempted", "running on n[1-4]", "failed (rank 1 (n2) exited: exit code 7)".
std::string to_text(const RunLife& run);

/// The scheduler's answer about a run's job.
struct SchedulerStatus {
  enum class Kind {
    not_asked,
    no_answer,  ///< `problem` has the reason
    not_known,  ///< it answered, and has no such job (any more)
    known,
  };
  Kind kind = Kind::not_asked;
  slurm::JobInfo job;
  Status problem;
};

/// The state recorded in a run's folder.
struct RecordedStatus {
  record::RunState records;
  std::optional<slurm::JobState> ending;  ///< Slurm's reason in the batch script's log for ending the job
  std::string figures;                    ///< for an end out of memory: "268 MB of 67.1 MB"
  bool was_submitted = false;             ///< as a job, whose end is the end of the run
  std::optional<ArrayState> array;        ///< for an array: the state of its tasks
  Status problem;                         ///< why the tasks are not known: a damaged array.json
};
RecordedStatus read_recorded_status(const record::RunFolder& run, double now);

/// Whether the records alone do not suffice.
bool needs_scheduler(const RecordedStatus& own);

/// Combines both. `now`: Unix seconds.
RunLife judge_life(const RecordedStatus& own, const SchedulerStatus& status, double now);

/// Time limit of one scheduler query, and the longest interval between two, when waiting for jobs.
inline constexpr Duration kAnswerLimit = std::chrono::seconds(10);
inline constexpr Duration kLongestPollInterval = std::chrono::seconds(15);

/// Why a job waits, with Slurm's reason and an explanation, and the expected start: "Priority: jobs of higher
/// priority are ahead, start likely in 25 min". `now`: Unix seconds.
std::string waiting_note(const slurm::JobInfo& job, double now);

/// The exit code of an ended run or job, so that scripts can distinguish endings: 0 done, 75 stopped after a
/// checkpoint, 124 time limit, 130 cancelled, 137 out of memory, 3 preempted, lost or node failure (a retry
/// may help), else its own code, or 1.
int exit_code_of(Life life, std::optional<int> own_code);
int exit_code_of(const RunLife& run);

/// The states of all these runs, with at most two scheduler queries in total, and none if the records
/// suffice. If the scheduler does not answer before `deadline`, the states are unknown; that is no error.
std::vector<RunLife> query_life(std::span<const record::RunFolder> runs, slurm::Scheduler& scheduler,
                                Deadline deadline);
RunLife query_life(const record::RunFolder& run, slurm::Scheduler& scheduler, Deadline deadline);

}  // namespace stoker::launch
