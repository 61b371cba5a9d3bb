// Shared by `run`, `submit` and `resume`: builds a request from a job file, runs it, prints the result.
#pragma once

#include <functional>

#include "base/process.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "job/job.h"
#include "launch/next/attempt_decision.h"
#include "launch/start/run.h"

namespace stoker::cli {

/// The path of this executable.
Result<Path> own_program();

/// The command line as typed, for the run's records.
std::vector<std::string> typed_command(std::string_view command, std::span<const std::string> words);

/// JOB and its options.
struct JobChoice {
  std::string job;
  std::vector<std::string> set;
  bool dry_run = false;
};

/// Loads the job file with its overrides as a request of `command` with the arguments `words`.
Result<launch::Request> request_of(const JobChoice& choice, std::string_view command,
                                   std::span<const std::string> words);

/// Ignores SIGPIPE, so that a run continues when its reader exits (`stoker run job.yaml | head -1`). Call
/// before the first output.
void ignore_sigpipe();

/// Runs the request, prints, and returns the exit code; with `dry_run` only shows the plan.
/// `on_attempt_end` is called after the attempt, if set.
int run_request(launch::Request request, bool dry_run, Output& out,
                const std::function<launch::NextAction(const launch::RunResult&)>& on_attempt_end = {});

}  // namespace stoker::cli
