#include "farm/run/task_choice.h"

#include <algorithm>
#include <filesystem>
#include <limits>

namespace stoker::farm {

bool is_current(const TaskExtras& task) {
  if (task.makes.empty()) return false;
  std::error_code error;
  auto oldest = std::filesystem::file_time_type::max();
  for (const Path& file : task.makes) {
    oldest = std::min(oldest, std::filesystem::last_write_time(file, error));
    if (error) return false;
  }
  for (const Path& file : task.inputs) {
    const auto written = std::filesystem::last_write_time(file, error);
    if (error || written > oldest) return false;
  }
  return true;
}

TaskChoice::TaskChoice(const FarmState& state, const MachineResources& machine, bool retries_failed)
    : state_(state), machine_(machine) {
  const auto count = static_cast<TaskIndex>(state.list().size());
  if (retries_failed) {
    for (TaskIndex task = 0; task < count; ++task) {
      if (is_failure(state.outcome(task))) reopen(task);
    }
  }
  if (state.list().extras(0) != nullptr) reopen_outdated();
}

void TaskChoice::reopen(TaskIndex task) {
  if (reopened_.empty()) reopened_.resize(state_.list().size());
  reopened_[task] = static_cast<std::uint16_t>(std::min<std::uint32_t>(state_.attempts(task) + 1, 0xFFFF));
}

// A task that makes files is open again when one is outdated, or when what it comes after is open.
void TaskChoice::reopen_outdated() {
  const TaskList& list = state_.list();
  const auto count = static_cast<TaskIndex>(list.size());
  std::vector<std::uint32_t> left(count);
  std::vector<std::vector<TaskIndex>> followers(count);
  std::vector<TaskIndex> ready;
  for (TaskIndex task = 0; task < count; ++task) {
    left[task] = static_cast<std::uint32_t>(list.extras(task)->after.size());
    for (const TaskIndex before : list.extras(task)->after) followers[before].push_back(task);
    if (left[task] == 0) ready.push_back(task);
    has_order_ = has_order_ || left[task] > 0;
  }
  for (std::size_t i = 0; i < ready.size(); ++i) {
    const TaskIndex task = ready[i];
    const TaskExtras& extras = *list.extras(task);
    const bool waits = std::any_of(extras.after.begin(), extras.after.end(),
                                   [&](TaskIndex before) { return !is_satisfied(before); });
    if (is_satisfied(task) && !extras.makes.empty() && (waits || !is_current(extras))) reopen(task);
    for (const TaskIndex next : followers[task]) {
      if (--left[next] == 0) ready.push_back(next);
    }
  }
}

bool TaskChoice::is_reopened(TaskIndex task) const {
  return !reopened_.empty() && reopened_[task] == state_.attempts(task) + 1;
}

bool TaskChoice::is_open(TaskIndex task) const {
  const TaskOutcome outcome = state_.outcome(task);
  return outcome == TaskOutcome::waiting || outcome == TaskOutcome::stopped || is_reopened(task);
}

bool TaskChoice::is_satisfied(TaskIndex task) const {
  return is_success(state_.outcome(task)) && !is_reopened(task);
}

bool TaskChoice::is_claimable(TaskIndex task, const std::function<bool(TaskIndex)>& is_mine) const {
  if (!is_open(task) || state_.owner(task)) return false;
  const TaskExtras* const extras = state_.list().extras(task);
  if (extras == nullptr) return true;
  return std::all_of(extras->after.begin(), extras->after.end(),
                     [&](TaskIndex before) { return is_satisfied(before) || is_mine(before); }) &&
         check_needs(next_needs(task), machine_).ok();
}

TaskNeeds TaskChoice::next_needs(TaskIndex task) const {
  TaskNeeds needs = state_.list().needs(task);
  const std::uint32_t doublings = state_.memory_doublings(task);
  if (!needs.memory || doublings == 0) return needs;
  const std::uint64_t most = std::max(machine_.memory.value, needs.memory->value);
  for (std::uint32_t i = 0; i < doublings && needs.memory->value < most; ++i)
    needs.memory =
        ByteCount{std::min(needs.memory->value <= most / 2 ? needs.memory->value * 2 : most, most)};
  return needs;
}

}  // namespace stoker::farm
