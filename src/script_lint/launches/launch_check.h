// The model of launchers: who starts how many processes where, and how they find each other. Follows srun,
// mpirun, torchrun, accelerate and deepspeed through `bash -c`, variables and called scripts, and reports
// combinations that do not add up. Reads called scripts and executes nothing. Used by the rules for scripts,
// by the checks of a job file's command, and by `stoker explain`. Thread-safe: no state.
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
  LauncherCopies copies = {};  ///< of "separate-trainings": the trainings
};

/// Problems of a batch script, in the order of its text.
std::vector<LaunchProblem> find_launch_problems(const Script& script, const LintContext& context);

/// Problems of the command of a job file, which Stoker starts once per rank. `as_of`: like
/// LintContext::as_of.
std::vector<LaunchProblem> find_launch_problems(const job::Job& job, const slurm::Lookup& environment,
                                                std::optional<double> as_of = {});

/// Whether a rule for scripts is about processes that start in the wrong number or never connect: the rules
/// of LaunchProblem, and rules about ranks and addresses.
bool is_launch_rule(std::string_view rule);

}  // namespace stoker::script_lint
