// Shared by `stoker run` and `stoker submit`: from a job to a run folder. Functions without state.
#pragma once

#include <string>
#include <vector>

#include "base/process.h"
#include "launch/start/run.h"
#include "record/run_folder.h"
#include "stoker/status.h"

namespace stoker::launch {

/// What every rank starts.
struct RankCommand {
  std::vector<std::string> words;
  Path libraries;  ///< for LD_LIBRARY_PATH; empty: nothing
};
/// The job's command, or the trainer that trainers::find_trainer() chooses in `environment`, the one of the
/// ranks before the job's variables. NotFound without a trainer.
Result<RankCommand> rank_command(const job::Job& job, const Path& stoker, const Environment& environment);

/// Facts of a new run that are not in its job.
struct NewRun {
  std::vector<std::string> command;  ///< of every rank
  std::vector<std::string> hosts;    ///< planned; empty while queued
  std::string scheduler_job;         ///< "" outside an allocation
};
/// Creates the run folder of `request`, with `yaml` as its effective job file.
Result<record::RunFolder> make_run_folder(const Request& request, const NewRun& run, const std::string& yaml);

}  // namespace stoker::launch
