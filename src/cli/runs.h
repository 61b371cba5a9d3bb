// What the commands that take a RUN share: where runs are, how one is named on the command line.
#pragma once

#include <chrono>
#include <string>

#include "base/status.h"
#include "cli/arguments.h"
#include "record/run_folder.h"
#include "slurm/queue/scheduler.h"

namespace stoker::cli {

/// RUN and --runs of a command.
struct RunChoice {
  std::string run = "last";
  std::string runs = "runs";
};

/// Declares the positional RUN (`last` if left out) and the option --runs.
void add_run_choice(Arguments& arguments, RunChoice* choice);
/// What `--help` says a RUN may be.
inline constexpr const char* kWhatIsARun =
    "run id, a unique prefix of one, a folder, a job id of Slurm, or 'last' [last]";
/// Slurm's commands with this process's environment.
slurm::SlurmCommands make_scheduler();
/// How long Slurm's controller may take for an answer before it is told that it gives none.
inline constexpr std::chrono::seconds kSchedulerPatience{10};
/// A path as a person at this prompt would type it.
std::string near(const Path& path);
/// How the run is best named in a command to type: "last" for one in runs/, its folder elsewhere.
std::string name_to_type(const record::RunFolder& run);

/// The run that was chosen.
Result<record::RunFolder> find_run(const RunChoice& choice);
/// The same for commands that need a run: a job that is none is told from a word that means nothing.
Result<record::RunFolder> find_run_to_go_on(const RunChoice& choice);
/// Attempt `number` of a run, or the last one if it is 0. NotFound names the attempts there are.
Result<record::Attempt> find_attempt(const record::RunFolder& run, std::int64_t number);

}  // namespace stoker::cli
