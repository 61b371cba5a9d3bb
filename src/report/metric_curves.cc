#include "report/metric_curves.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

#include "record/points/points.h"

namespace stoker::report {

namespace {

using Curves = std::map<std::string, std::map<std::int64_t, MetricPoint>>;

/// Adds the value of one more rank.
void add_rank(double value, MetricPoint& point) {
  // Both ignore NaN, which the mean keeps.
  point.lowest = point.ranks == 0 ? value : std::fmin(point.lowest, value);
  point.highest = point.ranks == 0 ? value : std::fmax(point.highest, value);
  point.mean = (point.mean * point.ranks + value) / (point.ranks + 1);
  ++point.ranks;
}

/// The points of one attempt, over the ranks of these files, which are in the order of the ranks.
Curves read_attempt_curves(const AttemptSource& source, std::span<const record::PointFile> files,
                           RunFacts& facts, std::map<std::string, MetricPoint>& summary) {
  Curves curves;
  std::map<std::string, MetricPoint> own;
  for (std::size_t begin = 0; begin < files.size();) {
    std::size_t end = begin;
    while (end < files.size() && files[end].rank == files[begin].rank) ++end;
    const record::RankPoints rank = record::read_points(files.subspan(begin, end - begin));
    note_damage(facts, files[begin].path, rank.damaged, rank.truncated);
    for (const auto& [name, points] : rank.metrics) {
      for (const record::Point& point : points) {
        MetricPoint& all = curves[name][point.step];
        all.step = point.step;
        all.attempt = source.attempt.number();
        all.run_time = std::max(all.run_time, source.run_time(point.time));
        add_rank(point.value, all);
      }
    }
    for (const auto& [name, point] : rank.summary) add_rank(point.value, own[name]);
    begin = end;
  }
  for (const auto& [name, point] : own) summary[name] = point;
  return curves;
}

void drop_after(std::int64_t step, std::map<std::int64_t, MetricPoint>& points) {
  points.erase(points.upper_bound(step), points.end());
}

void note_not_finite(const MetricCurve& curve, RunFacts& facts) {
  if (curve.points.empty() || std::isfinite(curve.points.back().mean)) return;
  auto first = curve.points.end();
  while (first != curve.points.begin() && !std::isfinite(std::prev(first)->mean)) --first;
  facts.notes.push_back(format("{} is {} from step {}", printable(curve.name),
                               std::isnan(first->mean) ? "NaN" : "infinite", first->step));
}

using Files = std::vector<record::PointFile>;

/// Joins the attempts into `facts`. `files`: by attempt.
void join_attempts(const std::vector<AttemptSource>& attempts, std::span<const Files> files,
                   RunFacts& facts) {
  Curves joined;
  std::map<std::string, MetricPoint> summary;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    // What an attempt repeats replaces the earlier points; so does a resume, for metrics it has not reached
    // yet.
    if (attempts[i].facts->resume_step) {
      for (auto& [name, points] : joined) drop_after(*attempts[i].facts->resume_step, points);
    }
    for (auto& [name, points] : read_attempt_curves(attempts[i], files[i], facts, summary)) {
      auto& before = joined[name];
      drop_after(points.begin()->first - 1, before);
      before.insert(points.begin(), points.end());
    }
  }
  for (const auto& [name, points] : joined) {
    MetricCurve curve{name, {}};
    for (const auto& [step, point] : points) curve.points.push_back(point);
    note_not_finite(curve, facts);
    facts.metrics.push_back(std::move(curve));
  }
  for (const auto& [name, point] : summary) facts.summary.push_back({name, point});
}

}  // namespace

void read_metric_curves(const std::vector<AttemptSource>& attempts, RunFacts& facts) {
  std::vector<Files> files;
  for (const AttemptSource& source : attempts) files.push_back(record::list_point_files(source.attempt));
  join_attempts(attempts, files, facts);
}

void read_task_curves(const std::vector<AttemptSource>& attempts, std::vector<TaskFacts>& tasks) {
  std::map<std::uint32_t, std::vector<Files>> by_task;
  for (std::size_t i = 0; i < attempts.size(); ++i) {
    for (record::PointFile& file : record::list_point_files(attempts[i].attempt)) {
      auto& files = by_task[static_cast<std::uint32_t>(file.rank)];
      files.resize(attempts.size());
      files[i].push_back(std::move(file));
    }
  }
  for (TaskFacts& task : tasks) {
    const auto found = by_task.find(task.number);
    if (found != by_task.end()) join_attempts(attempts, found->second, task.run);
  }
}

const MetricCurve* main_curve(const RunFacts& facts) {
  std::vector<std::string> names;
  for (const MetricCurve& curve : facts.metrics) names.push_back(curve.name);
  const std::string name = record::main_metric(names);
  for (const MetricCurve& curve : facts.metrics) {
    if (curve.name == name && !curve.points.empty()) return &curve;
  }
  return nullptr;
}

}  // namespace stoker::report
