// The model of launchers: who starts how many processes where, and how they find each other. Follows srun,
// mpirun, torchrun, accelerate and deepspeed through `bash -c`, variables and called scripts, and reports
// combinations that do not add up. Reads called scripts and executes nothing. Used by the rules for scripts
// and by the checks of a job file's command. Thread-safe: no state.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/language/message.h"
#include "job/job.h"
#include "script_lint/lint.h"
#include "script_lint/script.h"

namespace stoker::script_lint {

/// A combination of launchers that loses the job.
struct LaunchProblem {
  std::string_view rule;  ///< "separate-trainings", "rendezvous", "agent-per-task" or "nested-launcher"
  bash::Span at;          ///< the call in the outermost script
  Message text;
  Message fix;
  std::optional<Edit> edit;
};

/// Problems of a batch script, in the order of its text.
std::vector<LaunchProblem> find_launch_problems(const Script& script, const LintContext& context);

/// Problems of the command of a job file, which Stoker starts once per rank.
std::vector<LaunchProblem> find_launch_problems(const job::Job& job, const slurm::Lookup& environment);

}  // namespace stoker::script_lint
