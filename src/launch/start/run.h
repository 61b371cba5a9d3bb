// One run from its job to its ending: the plan, the run folder with its capsule, the ranks, and the summary.
// Used by `stoker run` and `stoker resume`. Main thread only: the ranks' supervisor changes the process.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "job/job.h"
#include "launch/staging/staging.h"
#include "launch/status/life.h"
#include "rank/plan.h"
#include "rank/verdict.h"
#include "record/run_folder.h"
#include "stoker/checkpoint.h"
#include "stoker/status.h"

namespace stoker::launch {

/// Where a run resumes.
struct ResumePoint {
  Path step;                                     ///< a checkpoint; empty: the beginning
  std::vector<checkpoint::SkippedStep> skipped;  ///< newer ones, with the reason why each is invalid
};

/// A request to run a job.
struct Request {
  job::Job job;
  std::string job_file;            ///< as typed
  job::LoadOptions load;           ///< settings applied to it
  std::vector<std::string> typed;  ///< the command line
  Path stoker;                     ///< this executable; stoker-train is expected next to it
  int out_fd = 1;                  ///< destination of rank 0's standard output
  int err_fd = 2;
  std::vector<std::string> changes;          ///< for a resumed run: describe_changes()
  std::vector<std::string> ignored_changes;  ///< for a resumed run: describe_job_file_changes()
  std::optional<record::RunFolder> resumed;  ///< resume this run instead of creating one
  std::optional<int> last_known_attempt;     ///< its last attempt when it was seen to be over; 0: none
  std::optional<record::Attempt> prepared;   ///< run this submitted attempt of it
  std::optional<ResumePoint> resume_from;    ///< the resume point, if already known
  int links = 0;                             ///< of the chain of this job; 0 without a chain
  bool is_link_of_task = false;              ///< a task of an array, as a link of the task's chain
};

/// Everything decided before anything is written.
struct Prepared {
  rank::Plan plan;
  std::vector<std::string> command;  ///< of every rank; `stoker-train --job ...` for a `train` job
  Environment environment;           ///< environment of the ranks, without the run's variables
  std::vector<std::string> notes;    ///< modules that were replaced while loading
};
/// Decides it, and checks that the job's datasets, virtual environment, working directory and stoker-train
/// exist.
Result<Prepared> prepare(const Request& request);

/// The newest valid checkpoint of the run, from any program; the beginning without one. Corrupt or NotFound
/// when Stoker has checkpoints here and none is valid.
Result<ResumePoint> find_resume_point(const Request& request, const record::RunFolder& folder);

/// The result of an ended run.
struct RunResult {
  record::RunFolder folder;
  record::Attempt attempt;
  rank::Ending ending;
  std::string checkpoint;  ///< "last checkpoint: step 100, valid", "no checkpoint yet"
  bool can_resume = false;
  bool has_command = false;                ///< of the user, in place of the built-in trainer
  std::string cure;                        ///< for causes with a cure
  Status stage_out_status;                 ///< of `stage.back`
  std::vector<StagedNode> back;            ///< the files staged out, by node
  std::vector<StagedNode> rest;            ///< datasets copied beside the ranks, by node
  std::vector<std::string> tracker_notes;  ///< lines about points that trackers did not receive
};

/// Callbacks before the ranks start.
class Observer {
 public:
  virtual ~Observer() = default;
  /// The run folder exists.
  virtual void on_run_created(const record::RunFolder& folder, const record::Attempt& attempt,
                              const ResumePoint& from) = 0;
  /// Something that the user should know, in one line: files that a snapshot leaves out.
  virtual void on_note(const std::string&) {}
  /// The job's files are on its nodes' local disks.
  virtual void on_staged(const std::vector<StagedNode>&) {}
};

/// Creates the run (or the next attempt of `request.resumed`), runs it and returns when none of its processes
/// is left. Fails when it could not start.
Result<RunResult> run(const Request& request, const Prepared& prepared, Observer& observer);

/// Invalid when the run is done, running or queued; Unavailable when its state is unknown.
Status check_resumable(const record::RunFolder& folder, const RunLife& life);

/// The job and folder to resume; `life` is the run's current state. A done run is resumed only with settings
/// that extend it: more epochs or steps, or another command. Errors of check_resumable; Invalid when a
/// setting or a dataset would make it a different run, or a setting would have no effect.
Result<Request> resume_request(const record::RunFolder& folder, const RunLife& life,
                               const std::vector<std::string>& settings);

}  // namespace stoker::launch
