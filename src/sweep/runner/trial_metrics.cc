#include "sweep/runner/trial_metrics.h"

#include <algorithm>
#include <cmath>

#include "record/points/points.h"

namespace stoker::sweep {

namespace {

enum MetricSource { kNumber, kOutput, kPoints };

// The number after "name:" or "name =" in a line, where the name is a whole word.
std::optional<double> named_value(std::string_view line, std::string_view name) {
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '/' || c == '.';
  };
  for (std::size_t at = line.find(name); at != std::string_view::npos; at = line.find(name, at + 1)) {
    if (at > 0 && is_part(line[at - 1])) continue;
    std::string_view rest = line.substr(at + name.size());
    while (!rest.empty() && (rest[0] == ' ' || rest[0] == '"' || rest[0] == '\'')) rest.remove_prefix(1);
    if (rest.empty() || (rest[0] != ':' && rest[0] != '=')) continue;
    rest.remove_prefix(1);
    rest = trim(rest);
    rest = rest.substr(0, rest.find_first_of(" ,;|)]}\t%"));
    if (double value = 0; parse_number(rest, &value)) return value;
  }
  return std::nullopt;
}

}  // namespace

Result<TrialMetrics> TrialMetrics::create(const Definition& definition, const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(log, observe::LogMetrics::create(""));
  return TrialMetrics(definition, folder, std::move(log));
}

void TrialMetrics::set(std::string_view metric, int source, std::optional<std::int64_t> step, double value) {
  const auto& objectives = definition_->objectives;
  const auto objective = std::find_if(objectives.begin(), objectives.end(),
                                      [&](const Objective& o) { return o.metric == metric; });
  if (objective == objectives.end()) return;
  Known& known = known_.try_emplace(objective->metric, Known{value, source}).first->second;
  if (known.source > source) return;
  known = {value, source};
  if (step && objective == objectives.begin()) new_reports_[*step] = value;
}

void TrialMetrics::read_line(std::string_view line) {
  const std::string_view text = trim(line);
  if (text.empty()) return;
  double number = 0;
  last_line_ = parse_number(text, &number) ? std::optional(number) : std::nullopt;
  if (const auto found = log_.read(line)) {
    for (const auto& [name, value] : found->values) set(name, kOutput, found->step, value);
    return;
  }
  for (const Objective& objective : definition_->objectives) {
    if (const auto value = named_value(line, objective.metric))
      set(objective.metric, kOutput, std::nullopt, *value);
  }
}

void TrialMetrics::read_point(std::string_view line) {
  if (const auto point = record::parse_point(line)) set(point->metric, kPoints, point->step, point->value);
}

void TrialMetrics::read_output(std::string_view bytes) {
  splitter_.feed(bytes, [this](std::string_view line) { read_line(line); });
}

std::vector<ObjectiveReport> TrialMetrics::poll() {
  // Without the file, or when it cannot be read now, the next poll has its lines.
  (void)points_.read_new([this](std::string_view line) { read_point(line); });
  std::vector<ObjectiveReport> reports;
  for (const auto& [step, value] : new_reports_) reports.push_back({step, value});
  new_reports_.clear();
  return reports;
}

Result<std::vector<double>> TrialMetrics::finish() {
  if (!splitter_.unfinished().empty()) read_line(std::string(splitter_.unfinished()));
  if (definition_->objectives.size() == 1 && last_line_)
    set(definition_->objectives[0].metric, kNumber, std::nullopt, *last_line_);
  std::vector<double> values;
  for (const Objective& objective : definition_->objectives) {
    const auto found = known_.find(objective.metric);
    if (found == known_.end()) return not_found("no {} in its points and its output", objective.metric);
    values.push_back(found->second.value);
  }
  return values;
}

}  // namespace stoker::sweep
