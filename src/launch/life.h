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
#include "launch/array/array_state.h"
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

/// How a run that says nothing of its own end has ended, by the state of its job; nothing while the job goes
/// on.
std::optional<Life> ending_of(slurm::JobState state);

/// A run as it is now.
struct RunLife {
  Life life = Life::created;
  std::string note;           ///< why it waits, or why it ended; "" when there is nothing to say
  std::string scheduler_job;  ///< "" outside a queue
  std::string nodes;          ///< compact, of a job that has some: "n[1-4]"
  record::RunState records;
  std::optional<ArrayState> array;  ///< of a run that is an array
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
      ending;                       ///< what Slurm wrote into the batch script's log when it ended the job
  std::string figures;              ///< of an end for lack of memory: "268 MB of 67.1 MB"
  bool was_submitted = false;       ///< as a job: the run is over when that is
  std::optional<ArrayState> array;  ///< of a run that is an array: where its tasks are
};
OwnWord own_word(const record::RunFolder& run, double now);

/// Whether that alone does not tell.
bool wants_scheduler(const OwnWord& own);

/// The verdict from both. `now`: Unix seconds.
RunLife judge_life(const OwnWord& own, const SchedulerWord& word, double now);

/// What one answer of the scheduler may take, and the longest pause between two questions, of what waits for
/// jobs.
inline constexpr Duration kAnswerLimit = std::chrono::seconds(10);
inline constexpr Duration kLongestPause = std::chrono::seconds(15);

/// Why a job waits, in Slurm's word and in plain ones, and for how long if that is known: "Priority: jobs of
/// higher priority are ahead, start likely in 25 min". `now`: Unix seconds.
std::string waiting_note(const slurm::JobFacts& job, double now);

/// What a run or job that is over gives as exit code, so that scripts can tell endings apart: 0 done, 75
/// stopped after a checkpoint, 124 its time was over, 130 cancelled, 137 out of memory, 3 preempted, lost or
/// its node failed (trying again may help), else its own code, or 1.
int exit_code_of(Life life, std::optional<int> own_code);
int exit_code_of(const RunLife& run);

/// All of these runs, with at most two questions to the scheduler for all of them together, and none when
/// their records tell enough. A scheduler that does not answer before `deadline` makes them unknown, never an
/// error.
std::vector<RunLife> look_at(std::span<const record::RunFolder> runs, slurm::Scheduler& scheduler,
                             Deadline deadline);
RunLife look_at(const record::RunFolder& run, slurm::Scheduler& scheduler, Deadline deadline);

}  // namespace stoker::launch
