// Where a run is in its life, from its own records and from the word of the scheduler: what one of them
// cannot know the other often does. Derived anew each time, stored nowhere. Used by status, logs, wait,
// cancel, resume. Thread-compatible.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/time.h"
#include "record/run_folder.h"
#include "record/state.h"
#include "slurm/queue/scheduler.h"

namespace stoker::launch {

enum class Life {
  created,  ///< a folder without an attempt
  queued,
  running,
  done,
  failed,
  stopped,    ///< on request: after a checkpoint, or by a signal
  cancelled,  ///< by scancel or `stoker cancel`
  timeout,    ///< its time was over
  out_of_memory,
  node_failed,
  preempted,
  lost,     ///< its supervisor is gone, and nobody knows how it ended
  unknown,  ///< the scheduler could not be asked, and the records alone do not tell
};
/// "queued", "out of memory", ...
std::string_view to_text(Life life);
/// It has come to an end and will not go on by itself.
bool is_over(Life life);

/// A run as it is now.
struct RunLife {
  Life life = Life::created;
  std::string note;           ///< why it waits, or why it ended; "" when there is nothing to say
  std::string scheduler_job;  ///< "" outside a queue
  std::string nodes;          ///< compact, of a job that has some: "n[1-4]"
  record::RunState records;
};

/// What the scheduler said of a run's job.
struct SchedulerWord {
  enum class Kind {
    not_asked,
    no_answer,  ///< `problem` says why
    not_known,  ///< it answered, and has no such job (any more)
    known,
  };
  Kind kind = Kind::not_asked;
  slurm::JobFacts job;
  Status problem;
};

/// What a run's own folder tells.
struct OwnWord {
  record::RunState records;
  std::optional<slurm::JobState>
      ending;  ///< what Slurm wrote into the batch script's log when it ended the job
};
OwnWord own_word(const record::RunFolder& run, double now);

/// Whether that alone does not tell.
bool wants_scheduler(const OwnWord& own);

/// The verdict from both. `now`: Unix seconds.
RunLife judge_life(const OwnWord& own, const SchedulerWord& word, double now);

/// All of these runs, with at most two questions to the scheduler for all of them together, and none when
/// their records tell enough. A scheduler that does not answer before `deadline` makes them unknown, never an
/// error.
std::vector<RunLife> look_at(std::span<const record::RunFolder> runs, slurm::Scheduler& scheduler,
                             Deadline deadline);
RunLife look_at(const record::RunFolder& run, slurm::Scheduler& scheduler, Deadline deadline);

}  // namespace stoker::launch
