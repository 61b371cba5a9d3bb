// Parsers of the output of squeue, sacct, scontrol and sbatch. Columns are found by their header names, so
// that additional, missing or reordered columns of other releases do no harm. Login banners before the header
// are skipped, and malformed rows are counted. All sizes are bounded. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "slurm/queue/job_state.h"
#include "stoker/status.h"

namespace stoker::slurm {

/// The first failed step of a job: its batch script or an srun.
struct JobStepInfo {
  std::string id;  ///< "812345.batch", "812345.0"
  JobState state = JobState::unknown;
  std::optional<int> exit_code;
  std::optional<int> exit_signal;
};

/// One job, or one task of an array.
struct JobInfo {
  std::string id;  ///< "812345", "812301_17", "812400+1"
  JobState state = JobState::unknown;
  std::string state_text;  ///< as printed: "CANCELLED by 1000"
  std::string reason;      ///< why it is pending or has ended; "" for None
  std::string name;
  std::string comment;
  std::string partition;
  std::string nodes;             ///< compact: "n[1-4]"; "" without nodes
  std::optional<int> exit_code;  ///< of the batch script
  std::optional<int> exit_signal;
  std::optional<double> start;  ///< Unix seconds; for a pending job the expected start
  std::optional<double> end;
  std::optional<int> restarts;         ///< number of requeues
  std::optional<int> worst_step_code;  ///< the highest exit code of its steps, which the script may hide
  std::string user;
  Path log;                           ///< of its batch script, if the controller reports it
  std::string array;                  ///< id of its array, for an array task
  std::optional<JobStepInfo> failed;  ///< if accounting reports steps
};

/// Jobs of one listing.
struct JobList {
  std::vector<JobInfo> jobs;
  std::size_t damaged = 0;  ///< malformed rows

  /// The job with this id, or null. Linear search: use a JobIndex for many ids.
  const JobInfo* find(std::string_view id) const;
};

/// Index of a list by id and comment. The list must outlive it.
class JobIndex {
 public:
  explicit JobIndex(const JobList& list);
  const JobInfo* by_id(std::string_view id) const;
  const JobInfo* by_comment(std::string_view comment) const;

 private:
  std::unordered_map<std::string_view, const JobInfo*> ids_;
  std::unordered_map<std::string_view, const JobInfo*> comments_;
};

constexpr std::size_t kMaxJobs = 1'000'000;

/// Parses the output for `squeue_arguments` or `sacct_arguments`: a header, then rows with fields separated
/// by '|'. The last column contains the rest of its row. Step rows ("812345.batch") are not jobs: the first
/// failed step is added to the job before it. Corrupt without a header.
Result<JobList> parse_job_table(std::string_view program, std::string_view text);

/// Parses `scontrol show job`, with one line per job (-o) or several. Corrupt without a job.
Result<JobList> parse_job_records(std::string_view text);

/// The job id in the output of `sbatch --parsable` ("812345", "812345;cluster"), after any other output.
/// Corrupt without a job id.
Result<std::string> parse_sbatch_output(std::string_view text);

/// Whether Slurm's commands accept the text as a job id: "812345", "812301_17", "812400+1".
bool is_job_id(std::string_view text);

/// The id of the submitted job: "812301" for "812301_17", "812301_[18-60%20]" and "812301".
std::string_view base_job_id(std::string_view id);
/// 17 for "812301_17"; nullopt if it is not a single array task.
std::optional<std::int64_t> array_task(std::string_view id);

/// A time in Slurm's output: Unix seconds (SLURM_TIME_FORMAT=%s), or "2026-11-21T10:03:11" in local time.
/// Nullopt for "N/A", "Unknown", "None".
std::optional<double> parse_slurm_time(std::string_view text);

}  // namespace stoker::slurm
