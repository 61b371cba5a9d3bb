// Runs a command as a trial: passes the parameters, follows its objective, stops it on the decision of the
// pruner, and ends the trial. Belongs to one thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "stoker/time.h"
#include "sweep/study/study.h"

namespace stoker::sweep {

/// How to run trials.
struct TrialRunOptions {
  std::vector<std::string> command;  ///< see fill_command()
  /// Between SIGTERM and SIGKILL for a trial that is stopped.
  Duration grace = std::chrono::seconds(10);
  /// Receives the output of the command.
  std::function<void(std::string_view)> output;
  /// A signal that this process received and the command is to get; the trial then fails. Polled.
  std::function<std::optional<int>()> next_signal;
};

/// How a trial ended.
struct TrialRunResult {
  StudyTrial trial;
  std::optional<int> signal;  ///< that ended it
};

/// Runs the command in the current folder, as a process group, and ends the trial in the study. Its output
/// goes to trials/<number>/output.log of the study, which is also its STOKER_ATTEMPT_DIR. Errors are errors
/// of the study; a command that cannot be started is a failed trial.
Result<TrialRunResult> run_trial(Study& study, const Proposal& proposal, const TrialRunOptions& options);

}  // namespace stoker::sweep
