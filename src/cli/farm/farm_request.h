// The arguments of `stoker farm`. Used by farm.cc and farm_views.cc.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cli/output.h"
#include "farm/ledger/farm_state.h"
#include "farm/submit/allocations.h"

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
  farm::AllocationRequest allocation;  ///< time 0: run here
};

/// `--status`, `--output` and `--list`.
int show_farm(const FarmRequest& request, Output& out);
/// A task with its outcome as `--list` and `--json` name it.
std::string outcome_text(const farm::FarmState& state, farm::TaskIndex task);

}  // namespace stoker::cli
