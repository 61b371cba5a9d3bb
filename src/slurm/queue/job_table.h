// What squeue, sacct, scontrol and sbatch print, read as values. Columns are found by their names in the
// header, so that a column more, less or elsewhere in another release does no harm; login banners before the
// header are passed over, and rows that are none are counted, never guessed at. Every size is bounded.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/status.h"
#include "slurm/queue/job_state.h"

namespace stoker::slurm {

/// The first part of a job that came to a bad end: its batch script or one srun.
struct StepFacts {
  std::string id;  ///< "812345.batch", "812345.0"
  JobState state = JobState::unknown;
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
};

/// One job, or one task of an array, as Slurm tells it.
struct JobFacts {
  std::string id;  ///< "812345", "812301_17", "812400+1"
  JobState state = JobState::unknown;
  std::string state_text;  ///< as written: "CANCELLED by 1000"
  std::string reason;      ///< why it waits, or why it ended; "" for None
  std::string name;
  std::string comment;
  std::string partition;
  std::string nodes;             ///< compact: "n[1-4]"; "" while it has none
  std::optional<int> exit_code;  ///< of the batch script
  std::optional<int> exit_signal;
  std::optional<double> start;  ///< Unix seconds; of a pending job when it is expected to start
  std::optional<double> end;
  std::optional<int> restarts;         ///< how often it was requeued
  std::optional<int> worst_step_code;  ///< the highest exit code of its steps: its script may end with 0
  std::string user;
  Path log;                         ///< of its batch script, where the controller tells it
  std::string array;                ///< the id of the array it is a task of
  std::optional<StepFacts> failed;  ///< where accounting tells its steps
};

/// Jobs of one listing.
struct JobList {
  std::vector<JobFacts> jobs;
  std::size_t damaged = 0;  ///< rows that are no job

  /// The job of that id, null when it is not there. Looks at all of them: for many ids make a JobIndex.
  const JobFacts* find(std::string_view id) const;
};

/// Finds jobs of a list by id or comment, however many there are. The list must outlive it.
class JobIndex {
 public:
  explicit JobIndex(const JobList& list);
  const JobFacts* by_id(std::string_view id) const;
  const JobFacts* by_comment(std::string_view comment) const;

 private:
  std::unordered_map<std::string_view, const JobFacts*> ids_;
  std::unordered_map<std::string_view, const JobFacts*> comments_;
};

constexpr std::size_t kMostJobs = 1'000'000;

/// Reads what `squeue_arguments` or `sacct_arguments` ask for: a header, then rows with fields parted by '|'.
/// The last column takes the rest of its row. Rows of steps ("812345.batch") are no jobs: the first that came
/// to a bad end is told by its job, when that stands before it. Corrupt when there is no header.
Result<JobList> parse_job_table(std::string_view program, std::string_view text);

/// Reads `scontrol show job`, in one line per job (-o) or in several. Corrupt when there is no job in it.
Result<JobList> parse_job_records(std::string_view text);

/// The job id in what `sbatch --parsable` printed ("812345", "812345;cluster"), whatever stands before it.
/// Corrupt when no line is one.
Result<std::string> parse_submitted(std::string_view text);

/// "812345", "812301_17", "812400+1": what may be given to Slurm's commands as a job id.
bool is_job_id(std::string_view text);

/// "812301" of "812301_17", of "812301_[18-60%20]" and of itself: the job that was submitted.
std::string_view submitted_job(std::string_view id);
/// 17 of "812301_17"; nothing when it is no single task of an array.
std::optional<std::int64_t> array_task(std::string_view id);

/// A time as Slurm writes it: Unix seconds (SLURM_TIME_FORMAT=%s), or "2026-11-21T10:03:11" in local time.
/// Nothing for "N/A", "Unknown", "None".
std::optional<double> parse_slurm_time(std::string_view text);

}  // namespace stoker::slurm
