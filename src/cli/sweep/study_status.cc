#include "cli/sweep/study_status.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/json/json.h"
#include "base/language/counted.h"
#include "cli/output.h"
#include "stoker/time.h"
#include "sweep/results/progress.h"
#include "sweep/results/ranking.h"
#include "sweep/results/trial_table.h"

namespace stoker::cli {
namespace {

using Json = nlohmann::ordered_json;
using sweep::StudyTrial;

constexpr std::size_t kMostRunning = 20;
constexpr std::size_t kMostReasons = 5;

std::string time_text(double seconds) {
  return rounded_duration(std::chrono::duration_cast<Duration>(Seconds(std::max(seconds, 0.0))));
}

std::string rate_text(double per_hour) {
  return format("{} trials/h",
                per_hour < 1000 ? format("{:.3g}", per_hour) : grouped(static_cast<std::uint64_t>(per_hour)));
}

std::vector<const StudyTrial*> running_trials(const sweep::Study& study) {
  std::vector<const StudyTrial*> running;
  for (const StudyTrial& trial : study.trials()) {
    if (trial.state == sweep::TrialState::running) running.push_back(&trial);
  }
  return running;
}

void print_best(const sweep::Study& study, double now, Output& out) {
  const sweep::Definition& definition = study.definition();
  for (std::size_t i = 0; i < definition.objectives.size(); ++i) {
    const auto improvements = sweep::improvements(definition, study.trials(), i);
    if (improvements.empty()) continue;
    const StudyTrial& best = *improvements.back().trial;
    out.line("best     {} {:.4g} in trial {}, {} ago: {}", definition.objectives[i].metric,
             improvements.back().value, best.number, time_text(now - best.ended),
             printable(sweep::to_text(definition.space.decode(best.point))));
  }
}

void print_pace(const sweep::Study& study, double now, Output& out) {
  const sweep::StudyPace pace = sweep::pace_of(study.definition(), study.trials(), now);
  if (std::isnan(pace.per_hour)) return;
  std::string text = "pace     " + rate_text(pace.per_hour);
  if (!std::isnan(pace.seconds_left))
    text += format(", the last one expected in {}", time_text(pace.seconds_left));
  if (running_trials(study).empty()) text += ", none is running";
  out.line("{}", text);
}

void print_failures(const sweep::Study& study, Output& out) {
  const auto groups = sweep::failures(study.trials());
  for (std::size_t i = 0; i < std::min(groups.size(), kMostReasons); ++i) {
    out.line("failed   {}: {}", counted(groups[i].trials.size(), "trial"),
             groups[i].message.empty() ? "no reason was given" : printable(groups[i].message));
  }
  if (groups.size() > kMostReasons)
    out.line("... and {}", counted(groups.size() - kMostReasons, "more reason"));
}

void print_running(const sweep::Study& study, double now, Output& out) {
  const auto running = running_trials(study);
  std::vector<std::vector<std::string>> rows;
  for (const StudyTrial* trial : running) {
    if (rows.size() == kMostRunning) break;
    const auto last = trial->reports.rbegin();
    const bool has_report = last != trial->reports.rend();
    rows.push_back({format("{}", trial->number), time_text(now - trial->started),
                    has_report ? format("{}", last->first) : "-",
                    has_report ? format("{:.4g}", last->second) : "-",
                    printable(sweep::to_text(study.definition().space.decode(trial->point)))});
  }
  if (!rows.empty())
    out.table({"TRIAL", "RUNNING", "STEP", study.definition().objectives[0].metric, "PARAMETERS"}, rows);
  if (running.size() > rows.size())
    out.line("... and {}", counted(running.size() - rows.size(), "more trial"));
}

Json json_number(double number) { return std::isfinite(number) ? Json(number) : Json(); }

Json json_of_running(const sweep::Study& study, const StudyTrial& trial, double now) {
  const auto last = trial.reports.rbegin();
  const bool has_report = last != trial.reports.rend();
  return {{"trial", trial.number},
          {"attempt", trial.attempt},
          {"seconds", now - trial.started},
          {"step", has_report ? Json(last->first) : Json()},
          {"value", has_report ? json_number(last->second) : Json()},
          {"params", parse_json<Json>(sweep::json_values(study.definition().space.decode(trial.point)))}};
}

std::string progress_text(const sweep::Study& study, double now) {
  const sweep::Definition& definition = study.definition();
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < definition.objectives.size(); ++i) {
    const auto improvements = sweep::improvements(definition, study.trials(), i);
    if (!improvements.empty())
      parts.push_back(format("best {} {:.4g} in trial {}", definition.objectives[i].metric,
                             improvements.back().value, improvements.back().trial->number));
  }
  const sweep::StudyPace pace = sweep::pace_of(definition, study.trials(), now);
  if (!std::isnan(pace.per_hour)) parts.push_back(rate_text(pace.per_hour));
  if (!std::isnan(pace.seconds_left)) parts.push_back(format("{} left", time_text(pace.seconds_left)));
  return printable(join(parts, ", "));
}

}  // namespace

void print_study_status(const sweep::Study& study, double now, Output& out) {
  out.line("{}", sweep::summary_text(study.definition(), study.trials()));
  print_best(study, now, out);
  print_pace(study, now, out);
  print_failures(study, out);
  print_running(study, now, out);
}

std::string study_status_json(const sweep::Study& study, double now) {
  const sweep::Definition& definition = study.definition();
  const sweep::TrialCounts counts = sweep::count_trials(study.trials());
  const sweep::StudyPace pace = sweep::pace_of(definition, study.trials(), now);
  Json best = Json::array(), running = Json::array(), failed = Json::array();
  for (std::size_t i = 0; i < definition.objectives.size(); ++i) {
    const auto improvements = sweep::improvements(definition, study.trials(), i);
    if (improvements.empty()) continue;
    best.push_back({{"metric", definition.objectives[i].metric},
                    {"value", improvements.back().value},
                    {"trial", improvements.back().trial->number},
                    {"ended", improvements.back().trial->ended}});
  }
  for (const StudyTrial* trial : running_trials(study))
    running.push_back(json_of_running(study, *trial, now));
  for (const sweep::FailureGroup& group : sweep::failures(study.trials()))
    failed.push_back({{"message", group.message}, {"trials", group.trials}});
  return json_text(Json{{"study", definition.name},
                        {"folder", study.folder().string()},
                        {"counts",
                         {{"complete", counts.complete},
                          {"pruned", counts.pruned},
                          {"running", counts.running},
                          {"failed", counts.failed}}},
                        {"most_trials", definition.most_trials > 0 ? Json(definition.most_trials) : Json()},
                        {"skipped", sweep::skipped_points(study.trials())},
                        {"best", best},
                        {"trials_per_hour", json_number(pace.per_hour)},
                        {"seconds_left", json_number(pace.seconds_left)},
                        {"running", running},
                        {"failures", failed}});
}

std::vector<StudyLine> list_studies() {
  std::vector<StudyLine> lines;
  auto names = list_directory(".");
  if (!names.ok()) return lines;
  std::sort(names->begin(), names->end());
  const double now = unix_seconds(RealClock().wall());
  for (const std::string& name : *names) {
    if (!name.ends_with(".study") || !sweep::Study::is_in(name)) continue;
    StudyLine line{.folder = name, .text = {}, .progress = {}, .json = {}};
    const auto study = sweep::Study::open(name);
    line.text = study.ok() ? sweep::summary_text(study->definition(), study->trials())
                           : std::string(study.error().message());
    if (study.ok()) {
      line.progress = progress_text(*study, now);
      line.json = study_status_json(*study, now);
      line.is_running = sweep::count_trials(study->trials()).running > 0;
    }
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace stoker::cli
