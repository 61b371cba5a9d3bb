#include "report/results.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace stoker::report {
namespace {

// Settings that do not change a result.
bool is_bookkeeping(std::string_view key) {
  return key == "name" || key.starts_with("record.") || key.starts_with("checkpoint.directory");
}

double last_finite(const MetricCurve& curve) {
  for (auto point = curve.points.rbegin(); point != curve.points.rend(); ++point) {
    if (std::isfinite(point->mean)) return point->mean;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

}  // namespace

Better better_of(std::string_view name) {
  const std::string text = to_lower(name);
  const auto has = [&](auto... words) { return ((text.find(words) != std::string::npos) || ...); };
  if (has("samples/s", "throughput", "acc", "top-1", "top1", "top-5", "top5", "f1", "auc", "bleu", "iou",
          "reward"))
    return Better::higher;
  if (has("loss", "error", "perplexity", ", s", "seconds", "time", "latency")) return Better::lower;
  return Better::unknown;
}

std::vector<std::pair<std::string, double>> results_of(const RunFacts& run) {
  std::vector<std::pair<std::string, double>> results;
  const auto add = [&](std::string name, double value) {
    if (std::isfinite(value)) results.emplace_back(std::move(name), value);
  };
  if (!run.learning.epochs.empty()) {
    const EpochPoint& last = run.learning.epochs.back();
    add("validation loss", last.val_loss);
    add("validation top-1", last.val_top1);
    add("validation top-5", last.val_top5);
    add("training loss", last.train_loss);
  } else if (!run.learning.steps.empty()) {
    add("training loss", run.learning.steps.back().loss);
  }
  for (const MetricCurve& curve : run.metrics) add(curve.name, last_finite(curve));
  for (const SummaryValue& value : run.summary) add(value.name, value.value.mean);
  if (run.samples_per_s > 0) add("samples/s", run.samples_per_s);
  double slowest = 0;
  for (const RankTime& rank : run.time.ranks) slowest = std::max(slowest, rank.median_step_s);
  if (slowest > 0) add("median step, s", slowest);
  for (TimePart part : kStepParts) {
    double most = 0;
    for (const RankTime& rank : run.time.ranks) {
      if (rank.steps > 0) most = std::max(most, rank.seconds_in(part) / static_cast<double>(rank.steps));
    }
    if (most > 0) add(format("{} per step, s", to_text(part)), most);
  }
  if (run.running_s > 0) add("running time, s", run.running_s);
  return results;
}

std::vector<std::pair<std::string, std::string>> settings_of(const RunFacts& run) {
  std::vector<std::pair<std::string, std::string>> settings;
  if (!run.job) return settings;
  // Every value that differs from an empty job.
  for (job::Difference& setting : job::differences(job::Job{}, *run.job)) {
    if (!is_bookkeeping(setting.key)) settings.emplace_back(std::move(setting.key), std::move(setting.after));
  }
  return settings;
}

}  // namespace stoker::report
