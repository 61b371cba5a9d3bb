// Shared by the commands that take a RUN: finds runs by name.
#pragma once

#include <chrono>
#include <string>

#include "cli/arguments.h"
#include "record/run_folder.h"
#include "slurm/queue/scheduler.h"
#include "stoker/status.h"

namespace stoker::cli {

struct RunChoice {
  std::string run = "last";
  std::string runs = "runs";
};

/// Declares the positional RUN (default `last`) and the option --runs.
void add_run_choice(Arguments& arguments, RunChoice* choice);
/// Help text of RUN.
inline constexpr const char* kRunHelp = "Run id, unique prefix, folder, Slurm job id, or 'last' [last]";
/// Slurm's commands with this process's environment.
slurm::SlurmCommands make_scheduler();
/// Timeout of queries to Slurm's controller.
inline constexpr std::chrono::seconds kSchedulerTimeout{10};
/// A path relative to the current folder, if it is below it.
std::string display_path(const Path& path);
/// The run's name for a suggested command: "last" for a run in runs/, else its folder.
std::string run_reference(const record::RunFolder& run);

/// Finds the run.
Result<record::RunFolder> find_run(const RunChoice& choice);
/// Like find_run(), for commands that need a run: distinguishes a job without a run from an unknown name.
Result<record::RunFolder> find_resumable_run(const RunChoice& choice);
/// Attempt `number` of a run, or the last one for 0. NotFound lists the existing attempts.
Result<record::Attempt> find_attempt(const record::RunFolder& run, std::int64_t number);

}  // namespace stoker::cli
