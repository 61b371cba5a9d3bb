#include "report/metric_curves.h"

#include <algorithm>
#include <cmath>
#include <map>

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

/// The points of one attempt, over its ranks.
Curves read_attempt_curves(const AttemptSource& source, RunFacts& facts,
                           std::map<std::string, MetricPoint>& summary) {
  Curves curves;
  const std::vector<record::PointFile> files = record::list_point_files(source.attempt);
  std::map<std::string, MetricPoint> own;
  for (std::size_t begin = 0; begin < files.size();) {
    std::size_t end = begin;
    while (end < files.size() && files[end].rank == files[begin].rank) ++end;
    const record::RankPoints rank = record::read_points(std::span(files).subspan(begin, end - begin));
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

}  // namespace

void read_metric_curves(const std::vector<AttemptSource>& attempts, RunFacts& facts) {
  Curves joined;
  std::map<std::string, MetricPoint> summary;
  for (const AttemptSource& source : attempts) {
    // What an attempt repeats replaces the earlier points; so does a resume, for metrics it has not reached
    // yet.
    if (source.facts->resume_step) {
      for (auto& [name, points] : joined) drop_after(*source.facts->resume_step, points);
    }
    for (auto& [name, points] : read_attempt_curves(source, facts, summary)) {
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
