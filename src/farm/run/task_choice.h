// Which tasks a worker may claim: not done, not owned, ready, and possible on this machine. Used by
// worker.cc. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "farm/ledger/farm_state.h"
#include "farm/run/node_resources.h"

namespace stoker::farm {

/// Whether all files that the task makes are there, and none is older than a file that it needs.
bool is_current(const TaskExtras& task);

class TaskChoice {
 public:
  /// `state` and `machine` must outlive it. Tasks that failed before are to run again with `retries_failed`;
  /// tasks that are done when a file is missing, or older than what they need.
  TaskChoice(const FarmState& state, const MachineResources& machine, bool retries_failed);

  /// Whether the task is still to be run, by this or another worker.
  bool is_open(TaskIndex task) const;
  /// Whether it is done, and what it makes counts.
  bool is_satisfied(TaskIndex task) const;
  /// Open, unowned, possible on this machine, and all that it comes after is satisfied or owned by the same
  /// worker.
  bool is_claimable(TaskIndex task, const std::function<bool(TaskIndex)>& is_mine) const;
  /// What its next attempt needs: after ends for lack of memory twice as much each, at most the machine's.
  TaskNeeds next_needs(TaskIndex task) const;
  /// Whether tasks wait for others.
  bool has_order() const { return has_order_; }

 private:
  bool is_reopened(TaskIndex task) const;
  void reopen(TaskIndex task);
  void reopen_outdated();

  const FarmState& state_;
  const MachineResources& machine_;
  std::vector<std::uint16_t> reopened_;  // attempts + 1 of ended tasks that are to run again; else 0
  bool has_order_ = false;
};

}  // namespace stoker::farm
