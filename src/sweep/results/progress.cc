#include "sweep/results/progress.h"

#include <algorithm>
#include <map>
#include <string_view>

#include "base/enum_names.h"
#include "base/language/counted.h"
#include "sweep/results/ranking.h"

namespace stoker::sweep {

namespace {

constexpr std::size_t kPaceWindow = 50;

}  // namespace

std::vector<const StudyTrial*> ended_trials(std::span<const StudyTrial> trials) {
  std::vector<const StudyTrial*> ended;
  for (const StudyTrial& trial : trials) {
    if (trial.state != TrialState::running) ended.push_back(&trial);
  }
  std::stable_sort(ended.begin(), ended.end(),
                   [](const StudyTrial* a, const StudyTrial* b) { return a->ended < b->ended; });
  return ended;
}

std::vector<Improvement> improvements(const Definition& definition, std::span<const StudyTrial> trials,
                                      std::size_t objective) {
  const Goal goal = definition.objectives[objective].goal;
  const std::vector<const StudyTrial*> ended = ended_trials(trials);
  std::vector<Improvement> result;
  for (std::size_t place = 0; place < ended.size(); ++place) {
    if (ended[place]->state != TrialState::complete) continue;
    const double value = ended[place]->values[objective];
    if (result.empty() || loss_of(value, goal) < loss_of(result.back().value, goal))
      result.push_back({ended[place], place, value});
  }
  return result;
}

std::vector<FailureGroup> failures(std::span<const StudyTrial> trials) {
  std::vector<FailureGroup> groups;
  std::map<std::string_view, std::size_t> places;
  for (const StudyTrial& trial : trials) {
    if (trial.state != TrialState::failed) continue;
    const auto [place, is_new] = places.try_emplace(trial.message, groups.size());
    if (is_new) groups.push_back({trial.message, {}});
    groups[place->second].trials.push_back(trial.number);
  }
  std::stable_sort(groups.begin(), groups.end(), [](const FailureGroup& a, const FailureGroup& b) {
    return a.trials.size() > b.trials.size();
  });
  return groups;
}

StudyPace pace_of(const Definition& definition, std::span<const StudyTrial> trials, double now) {
  StudyPace pace;
  std::vector<double> endings;
  double first_start = std::numeric_limits<double>::infinity();
  bool is_running = false;
  for (const StudyTrial& trial : trials) {
    first_start = std::min(first_start, trial.started);
    is_running = is_running || trial.state == TrialState::running;
    if (trial.state == TrialState::complete || trial.state == TrialState::pruned)
      endings.push_back(trial.ended);
  }
  if (endings.empty()) return pace;
  std::sort(endings.begin(), endings.end());
  const std::size_t count = std::min(endings.size(), kPaceWindow);
  const double begin = count < endings.size() ? endings[endings.size() - count - 1] : first_start;
  const double seconds = (is_running ? now : endings.back()) - begin;
  if (!(seconds > 0)) return pace;
  pace.per_hour = static_cast<double>(count) / seconds * 3600;
  if (!is_running || definition.most_trials <= endings.size()) return pace;
  pace.seconds_left = static_cast<double>(definition.most_trials - endings.size()) / pace.per_hour * 3600;
  return pace;
}

std::uint64_t skipped_points(std::span<const StudyTrial> trials) {
  std::uint64_t count = 0;
  for (const StudyTrial& trial : trials) count += trial.skipped;
  return count;
}

std::string summary_text(const Definition& definition, std::span<const StudyTrial> trials) {
  const TrialCounts counts = count_trials(trials);
  std::string objectives;
  for (const Objective& objective : definition.objectives)
    objectives +=
        format("{}{} {}", objectives.empty() ? "" : ", ", stoker::to_text(objective.goal), objective.metric);
  std::string text = format("{}: {}, sampler {}, {} complete", definition.name, objectives,
                            sampler_name(definition), counts.complete);
  if (definition.most_trials > 0) text += format(" of {}", definition.most_trials);
  if (counts.running > 0) text += format(", {} running", counts.running);
  if (counts.pruned > 0) text += format(", {} pruned", counts.pruned);
  if (counts.failed > 0) text += format(", {} failed", counts.failed);
  const std::uint64_t skipped = skipped_points(trials);
  if (skipped > 0) text += format(", {} skipped", counted(skipped, "point"));
  return text;
}

}  // namespace stoker::sweep
