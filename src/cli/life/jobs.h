// Slurm jobs without a run: parsing and output, shared by the commands that take RUN|JOBID.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "cli/runs.h"
#include "launch/status/job_life.h"
#include "stoker/status.h"

namespace stoker::cli {

/// A RUN|JOBID argument: a run, or a Slurm job without a run.
struct Target {
  std::optional<record::RunFolder> run;
  std::string job;  ///< "" for a run
  Status no_run;    ///< why it is not a run
};
/// NotFound if the argument is neither.
Result<Target> find_target(const RunChoice& choice);

/// The job, or all tasks of its array. Without Slurm: the error of the run lookup.
Result<std::vector<launch::JobLife>> query_jobs(const Target& target, slurm::SlurmCommands& scheduler);

/// "job 7", "array 7 (100 tasks)".
std::string name_of(const Target& target, const std::vector<launch::JobLife>& jobs);
/// "failed (exit code 7)", "1 running, 2 done".
std::string summary_text(const std::vector<launch::JobLife>& jobs);
/// "done, but slurm.log:3 contains a failure: job.sh: line 3: trainer: command not found"; "" without any.
std::string doubt_text(const std::vector<observe::SuspectLine>& doubts);

/// Prints a table for a job, or counts and the notable tasks for an array.
void print_jobs(const Target& target, const std::vector<launch::JobLife>& jobs, Output& out);
/// A JSON list of jobs.
std::string json_of(const std::vector<launch::JobLife>& jobs);
std::string json_of(const std::vector<observe::SuspectLine>& doubts);
/// {"calls", "seconds", "per_s", "left"}: the queries to Slurm and the remaining budget.
std::string json_of(const slurm::SlurmCommands& scheduler);

/// "01:12:40".
std::string clock_text(double seconds);

}  // namespace stoker::cli
