#include "trials/run_values.h"

#include <algorithm>
#include <optional>
#include <span>

#include "record/metrics.h"
#include "record/points/points.h"
#include "sweep/runner/trial_metrics.h"

namespace stoker::trials {

namespace {

using Curve = std::map<std::int64_t, double>;

constexpr std::uint64_t kEndBytes = 1 << 20;

record::RankPoints rank_points(const record::Attempt& attempt, CurveExtent extent) {
  std::vector<record::PointFile> files = record::list_point_files(attempt);
  std::erase_if(files, [&](const record::PointFile& file) { return file.rank != files.front().rank; });
  record::PointLimits limits;
  if (extent == CurveExtent::end) limits.tail_bytes = kEndBytes;
  return record::read_points(files, limits);
}

Curve column_curve(const Path& file, std::string_view metric) {
  Curve curve;
  const auto table = record::read_metrics(file);
  if (!table || !table->has(metric) || !table->has("step")) return curve;
  const auto steps = table->column("step");
  const auto values = table->column(metric);
  for (std::size_t row = 0; row < table->rows(); ++row)
    curve[static_cast<std::int64_t>(steps[row])] = values[row];
  return curve;
}

Curve attempt_curve(const record::Attempt& attempt, std::string_view metric, CurveExtent extent) {
  Curve curve;
  const record::RankPoints points = rank_points(attempt, extent);
  if (const auto found = points.metrics.find(metric); found != points.metrics.end()) {
    for (const record::Point& point : found->second) curve[point.step] = point.value;
    return curve;
  }
  const auto is_column = [&](std::span<const std::string_view> columns) {
    return std::find(columns.begin(), columns.end(), metric) != columns.end();
  };
  if (is_column(record::kEpochColumns)) return column_curve(attempt.epochs(), metric);
  if (is_column(record::kStepColumns)) return column_curve(attempt.metrics(0), metric);
  return curve;
}

std::optional<double> summary_value(const record::Attempt& attempt, std::string_view metric) {
  const record::RankPoints points = rank_points(attempt, CurveExtent::all);
  const auto found = points.summary.find(metric);
  return found == points.summary.end() ? std::nullopt : std::optional(found->second.value);
}

// The end of the output of rank 0, or of a batch script.
std::string end_of_log(const record::Attempt& attempt) {
  for (const Path& path : {attempt.log(0), attempt.batch_log()}) {
    const auto file = File::open_read(path);
    const auto size = file ? file->size() : Result<std::uint64_t>(file.error());
    if (!size || *size == 0) continue;
    std::string text(std::min(*size, kEndBytes), '\0');
    if (file->read_at(*size - text.size(), std::as_writable_bytes(std::span(text))).ok()) return text;
  }
  return "";
}

std::optional<double> log_value(const record::Attempt& attempt, const sweep::Objective& objective,
                                std::size_t objectives) {
  sweep::Definition one;
  one.objectives = {objective};
  // The last line may be a number only for one objective.
  if (objectives > 1) one.objectives.push_back(objective);
  auto metrics = sweep::TrialMetrics::create(one, attempt.folder());
  if (!metrics) return std::nullopt;
  metrics->read_output(end_of_log(attempt));
  const auto values = metrics->finish();
  return values ? std::optional(values->front()) : std::nullopt;
}

std::optional<double> read_value(const record::RunFolder& run, const std::vector<record::Attempt>& attempts,
                                 const sweep::Objective& objective, std::size_t objectives) {
  const Curve curve = read_curve(run, objective.metric, CurveExtent::all);
  if (!curve.empty()) return curve.rbegin()->second;
  for (auto attempt = attempts.rbegin(); attempt != attempts.rend(); ++attempt) {
    if (const auto value = summary_value(*attempt, objective.metric)) return value;
    if (const auto value = log_value(*attempt, objective, objectives)) return value;
  }
  return std::nullopt;
}

}  // namespace

Curve read_curve(const record::RunFolder& run, std::string_view metric, CurveExtent extent) {
  Curve all;
  const auto attempts = run.attempts();
  if (!attempts) return all;
  for (const record::Attempt& attempt : *attempts) {
    Curve own = attempt_curve(attempt, metric, extent);
    if (own.empty()) continue;
    all.erase(all.lower_bound(own.begin()->first), all.end());
    all.merge(own);
  }
  return all;
}

Result<std::vector<double>> read_values(const record::RunFolder& run, const sweep::Definition& definition) {
  STOKER_ASSIGN_OR_RETURN(attempts, run.attempts());
  std::vector<double> values;
  for (const sweep::Objective& objective : definition.objectives) {
    const auto value = read_value(run, attempts, objective, definition.objectives.size());
    if (!value) return not_found("no {} in its metrics and its log", objective.metric);
    values.push_back(*value);
  }
  return values;
}

}  // namespace stoker::trials
