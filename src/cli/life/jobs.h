// What the commands that take a RUN share for a job of Slurm that is no run of Stoker's: how one is named on
// the command line, and how it is shown.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "cli/output.h"
#include "cli/runs.h"
#include "launch/job_life.h"

namespace stoker::cli {

/// What a word on the command line stands for: a run, or a job of Slurm that no run has.
struct Target {
  std::optional<record::RunFolder> run;
  std::string job;  ///< "" for a run
  Status no_run;    ///< why it is no run
};
/// NotFound for what can be neither.
Result<Target> find_target(const RunChoice& choice);

/// The job, or all tasks of its array. Where there is no Slurm at all: why the word is no run.
Result<std::vector<launch::JobLife>> look_at(const Target& target, slurm::SlurmCommands& scheduler);

/// "job 7", "array 7 (100 tasks)".
std::string name_of(const Target& target, const std::vector<launch::JobLife>& jobs);
/// "failed (exit code 7)", "1 running, 2 done".
std::string sentence(const std::vector<launch::JobLife>& jobs);
/// "done, but slurm.log:3 tells of a failure: job.sh: line 3: trainer: command not found"; "" without any.
std::string doubt_text(const std::vector<observe::Doubt>& doubts);

/// Table of a job, or counts and the tasks worth a look of an array.
void print_jobs(const Target& target, const std::vector<launch::JobLife>& jobs, Output& out);
/// As JSON: an object for each job, a list.
std::string json_of(const std::vector<launch::JobLife>& jobs);
std::string json_of(const std::vector<observe::Doubt>& doubts);
/// {"calls", "seconds", "per_s", "left"}: what was asked of Slurm, and how much of that is still free.
std::string json_of(const slurm::SlurmCommands& scheduler);

/// "01:12:40".
std::string clock_text(double seconds);

}  // namespace stoker::cli
