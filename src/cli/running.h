// What `run`, `submit` and `resume` share: reading what was asked for, starting it, and saying how it ended.
#pragma once

#include <chrono>
#include <functional>

#include "base/process.h"
#include "cli/arguments.h"
#include "cli/commands.h"
#include "job/job.h"
#include "launch/array/array_file.h"
#include "launch/next/turn.h"
#include "launch/run.h"
#include "launch/script/own_script.h"

namespace stoker::cli {

/// What sbatch may take: it tries for a while when the controller is busy.
inline constexpr std::chrono::seconds kSubmitPatience{60};

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

/// The same for the chosen tasks of an array.
int submit_array_request(launch::Request request, const launch::ArrayFile& array, bool dry_run, Output& out);

/// The same for a batch script of people's own.
int submit_script_request(const launch::PlannedScript& plan, bool dry_run, Output& out);
/// The batch script around it; what is not taken yet, as the run's id, stands for what it will be.
Result<std::string> script_to_show(const launch::PlannedScript& plan);

/// The batch script of the request; what is not taken yet, as the run's id, stands for what it will be.
Result<std::string> script_of(launch::Request request);

/// From here on a reader who has gone (`stoker run job.yaml | head -1`) is an error of the write and ends
/// nothing: the run goes on. Before the first line of what starts one.
void outlive_readers();

/// Runs the request to its end, prints, and returns the exit code; shows the plan only with `dry_run`.
/// `what_next` is asked when the attempt has ended, if there is one.
int run_request(launch::Request request, bool dry_run, Output& out,
                const std::function<launch::Next(const launch::RunResult&)>& what_next = {});

}  // namespace stoker::cli
