// The arguments of `stoker farm`. Used by farm.cc, farm_job.cc and farm_views.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "farm/ledger/farm_state.h"
#include "farm/run/task_process.h"
#include "farm/submit/allocations.h"
#include "job/job.h"

namespace stoker::cli {

struct FarmRequest {
  std::string tasks;
  std::vector<std::string> command;
  farm::TaskNeeds needs;  ///< of tasks that do not set them
  std::int64_t at_once = 0;
  std::int64_t retries = 0;
  bool retries_failed = false;
  bool is_pinned = false;
  std::string signal = "TERM";
  Duration signal_before = std::chrono::seconds(60);
  bool is_dry_run = false;
  bool shows_status = false;
  bool shows_output = false;
  bool shows_list = false;
  std::vector<std::string> chosen;     ///< tasks to show; empty: all
  std::string job_file;                ///< `--job`
  std::vector<std::string> set;        ///< overrides of its values
  std::optional<job::Job> job;         ///< as read from it
  farm::AllocationRequest allocation;  ///< time 0: run here
};

/// Numbers as typed, before they are checked.
struct FarmNumbers {
  std::int64_t cores = 1;
  std::int64_t gpus = 0;
  std::optional<std::int64_t> nodes;
  std::int64_t cpus_per_node = 0;
  std::int64_t gpus_per_node = 0;
  std::int64_t allocations = 0;
  std::optional<Duration> time;
  std::optional<Duration> signal_before = std::chrono::seconds(60);
};

/// Reads the job file. Outside of an allocation, its resources and its options of Slurm apply where the
/// command line has none. Invalid for settings that a farm cannot have.
Status read_farm_job(FarmRequest& request, FarmNumbers& numbers);

/// What the tasks of a farm run in.
struct TaskEnvironment {
  Environment variables;
  farm::TaskWrapper wrapper;
};
/// With the modules, environments, variables and container of the job file, if there is one. Loads modules.
Result<TaskEnvironment> task_environment(const std::optional<job::Job>& job, Output& out);
/// Sets STOKER_DATA_<NAME> for the datasets of the job file, and copies each one with place local or auto to
/// this node. A dataset that cannot be copied is read where it is, with a note.
Status place_data(const job::Job& job, Environment& variables, Output& out);
/// Reports missing modules and programs and limits of the site before the submission.
Status check_farm_job(const std::optional<job::Job>& job, Output& out);

/// `--status`, `--output` and `--list`.
int show_farm(const FarmRequest& request, Output& out);
/// A task with its outcome as `--list` and `--json` name it.
std::string outcome_text(const farm::FarmState& state, farm::TaskIndex task);

}  // namespace stoker::cli
