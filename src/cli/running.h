// What `run`, `submit` and `resume` share: reading what was asked for, starting it, and saying how it ended.
#pragma once

#include "base/process.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "job/job.h"
#include "launch/run.h"

namespace stoker::cli {

/// Where this executable is.
Result<Path> own_program();

/// The words as they were typed, for the run's records.
std::vector<std::string> typed_words(std::string_view command, std::span<const std::string> words);

/// JOB and the options with which `run` and `submit` take one.
struct JobChoice {
  std::string job;
  std::vector<std::string> set;
  bool dry_run = false;
};

/// The job file with the values laid over it, as a request of `command`, which was given `words`.
Result<launch::Request> request_of(const JobChoice& choice, std::string_view command,
                                   std::span<const std::string> words);

/// Submits the request, prints, and returns the exit code; shows the batch script only with `dry_run`.
int submit_request(launch::Request request, bool dry_run, Output& out);

/// Runs the request to its end, prints, and returns the exit code; shows the plan only with `dry_run`.
int run_request(launch::Request request, bool dry_run, Output& out);

}  // namespace stoker::cli
