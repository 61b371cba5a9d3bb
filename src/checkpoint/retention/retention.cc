#include "checkpoint/retention/retention.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "base/file.h"
#include "checkpoint/layout.h"
#include "checkpoint/lease.h"

namespace stoker::checkpoint {

namespace {

// From the oldest on: the first valid step of each interval is kept.
void keep_first_of_each_interval(std::vector<PlannedStep>& plan, double interval_s) {
  std::set<std::int64_t> seen;
  for (auto planned = plan.rbegin(); planned != plan.rend(); ++planned) {
    if (planned->step.state != StepState::valid) continue;
    const auto interval = static_cast<std::int64_t>(std::floor(planned->step.written / interval_s));
    if (seen.insert(interval).second && planned->reason == RetentionReason::removed)
      planned->reason = RetentionReason::first_of_interval;
  }
}

// Keeps the best by the metric; newer ones first if equal. Steps without the metric do not count.
void keep_best(std::vector<PlannedStep>& plan, const RetentionPolicy& rule) {
  std::vector<std::pair<double, PlannedStep*>> measured;
  for (PlannedStep& planned : plan) {
    const auto value = planned.step.state_values.number(rule.metric);
    if (planned.step.state != StepState::valid || !value.ok() || std::isnan(*value)) continue;
    measured.emplace_back(is_lower_better(rule.metric) ? *value : -*value, &planned);
  }
  std::stable_sort(measured.begin(), measured.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  measured.resize(std::min(measured.size(), static_cast<std::size_t>(rule.keep_best)));
  for (const auto& [value, planned] : measured) {
    if (planned->reason == RetentionReason::removed) planned->reason = RetentionReason::best;
  }
}

// Plan for these steps, given in ascending order.
Result<std::vector<PlannedStep>> plan_of(const Path& directory, const std::vector<Step>& steps,
                                         const RetentionPolicy& rule, Depth depth, Progress& progress) {
  std::vector<PlannedStep> plan;
  int valid = 0;
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    const bool may_stay = valid < rule.keep_last || rule.keep_every > Duration::zero() || rule.keep_best > 0;
    STOKER_ASSIGN_OR_RETURN(info,
                            inspect_step(directory, *step, may_stay ? depth : Depth::structure, progress));
    const bool is_valid = info.state == StepState::valid;
    const RetentionReason reason = valid >= rule.keep_last ? RetentionReason::removed
                                   : is_valid              ? RetentionReason::newest
                                                           : RetentionReason::newer_invalid;
    valid += is_valid ? 1 : 0;
    plan.push_back({std::move(info), reason});
  }
  if (rule.keep_every > Duration::zero()) keep_first_of_each_interval(plan, Seconds(rule.keep_every).count());
  if (rule.keep_best > 0) keep_best(plan, rule);
  return plan;
}

}  // namespace

bool is_lower_better(std::string_view metric) {
  const std::string name = to_lower(metric);
  constexpr std::string_view kWords[] = {"loss", "error", "perplexity"};
  return std::ranges::any_of(kWords,
                             [&](std::string_view word) { return name.find(word) != std::string::npos; });
}

std::vector<Path> remove_abandoned(const Path& directory, WallTime now) {
  std::vector<Path> removed;
  const auto names = list_directory(directory);
  if (!names.ok()) return removed;
  for (const std::string& name : *names) {
    const Path folder = directory / name;
    const auto hidden = hidden_folder(name);
    if (!hidden || !folder_exists(folder)) continue;
    if (!hidden->is_removed && is_pending_alive(folder, now)) continue;
    if (remove_tree(folder).ok()) removed.push_back(folder);
  }
  return removed;
}

Status remove_step(const Path& folder) {
  const auto step = step_of_folder(folder.filename().string());
  STOKER_CHECK(step.has_value());
  const Path away = folder.parent_path() / removed_folder_name(*step);
  STOKER_RETURN_IF_ERROR(rename_path(folder, away));
  return remove_tree(away);
}

Result<std::vector<PlannedStep>> plan_pruning(const Path& directory, const RetentionPolicy& rule, Depth depth,
                                              Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(steps, step_folders(directory));
  return plan_of(directory, steps, rule, depth, progress);
}

Result<std::vector<Path>> prune_steps(const Path& directory, const RetentionPolicy& rule, Step published,
                                      const Path& protected_step) {
  std::vector<Path> removed;
  if (rule.keep_last <= 0) return removed;
  STOKER_ASSIGN_OR_RETURN(steps, step_folders(directory));
  std::erase_if(steps, [&](Step step) { return step > published; });
  NoProgress progress;
  STOKER_ASSIGN_OR_RETURN(plan, plan_of(directory, steps, rule, Depth::structure, progress));
  std::error_code error;
  const Path protected_folder =
      protected_step.empty() ? protected_step : std::filesystem::weakly_canonical(protected_step, error);
  for (const PlannedStep& planned : plan) {
    if (planned.reason != RetentionReason::removed) continue;
    if (std::filesystem::weakly_canonical(planned.step.folder, error) == protected_folder) continue;
    STOKER_RETURN_IF_ERROR(remove_step(planned.step.folder));
    removed.push_back(planned.step.folder);
  }
  return removed;
}

}  // namespace stoker::checkpoint
