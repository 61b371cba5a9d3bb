#include "observe/progress.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "observe/csv_tail.h"
#include "record/metrics.h"

namespace stoker::observe {
namespace {

std::optional<double> last(const record::MetricTable& table, std::string_view column) {
  const auto values = table.column(column);
  if (values.empty() || std::isnan(values.back())) return std::nullopt;
  return values.back();
}

std::optional<std::int64_t> last_integer(const record::MetricTable& table, std::string_view column) {
  const auto value = last(table, column);
  if (!value || std::abs(*value) > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

std::optional<double> rate(const record::MetricTable& table) {
  const auto time = table.column("time");
  const auto samples = table.column("samples");
  if (time.size() < 2 || samples.size() != time.size()) return std::nullopt;
  double sum = 0;
  for (const double count : samples.subspan(1)) sum += count;
  const double seconds = time.back() - time.front();
  if (!(seconds > 0) || !(sum > 0)) return std::nullopt;
  return sum / seconds;
}

void apply_points(const record::Attempt& attempt, RunProgress& progress) {
  progress.metrics = record::read_last_values(attempt);
  if (progress.metrics.empty()) return;
  std::vector<std::string> names;
  std::int64_t step = 0;
  for (const record::LastValue& value : progress.metrics) {
    names.push_back(value.metric);
    step = std::max(step, value.step);
  }
  if (!progress.step) progress.step = step;
  const std::string main = record::main_metric(names);
  for (const record::LastValue& value : progress.metrics) {
    if (value.metric == main) progress.main_metric = value;
  }
  if (progress.main_metric && !progress.loss && !std::isnan(progress.main_metric->mean))
    progress.loss = progress.main_metric->mean;
}

}  // namespace

RunProgress read_progress(const record::Attempt& attempt, int world_size) {
  RunProgress progress;
  if (const auto steps = read_tail(attempt.metrics(0))) {
    progress.epoch = last_integer(*steps, "epoch");
    progress.step = last_integer(*steps, "step");
    progress.loss = last(*steps, "loss");
    if (const auto samples_per_s = rate(*steps)) progress.samples_per_s = *samples_per_s * world_size;
  }
  apply_points(attempt, progress);
  if (const auto epochs = read_tail(attempt.epochs())) progress.validation_top1 = last(*epochs, "val_top1");
  return progress;
}

}  // namespace stoker::observe
