// What `stoker run` and `stoker submit` share on the way from a job to a run folder. Functions without state.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "launch/run.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// What every rank of the job executes: its command, or the stoker-train that lies beside `stoker`. NotFound
/// when there is none.
Result<std::vector<std::string>> rank_command(const job::Job& job, const Path& stoker);

/// What is known of a new run beside its job.
struct NewRun {
  std::vector<std::string> command;  ///< of every rank
  std::vector<std::string> hosts;    ///< planned; empty while the queue has not decided
  std::string scheduler_job;         ///< "" outside an allocation
};
/// Makes the run folder of `request`, with `yaml` as its effective job file.
Result<record::RunFolder> make_run_folder(const Request& request, const NewRun& run, const std::string& yaml);

/// The name of this process's user, or its number.
std::string user_name();

}  // namespace stoker::launch
