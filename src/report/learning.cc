#include "report/learning.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

#include "record/metrics.h"

namespace stoker::report {

namespace {

using record::MetricTable;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kMaxSteps = 9e15;

double cell(const MetricTable& table, std::string_view column, std::size_t row) {
  const auto values = table.column(column);
  return values.empty() ? kNone : values[row];
}

double or_zero(double value) { return std::isfinite(value) && value > 0 ? value : 0; }

std::optional<std::int64_t> whole(double value) {
  if (!std::isfinite(value) || value < 0 || value > kMaxSteps) return std::nullopt;
  return static_cast<std::int64_t>(value);
}

/// Sums over ranks for one step.
struct StepSum {
  double weight = 0;
  double loss = 0;
  double top1 = 0;
  double lr = kNone;
  double seconds = 0;
  double time = 0;
};

/// Collects the metrics of one rank over all attempts.
struct RankRecord {
  RankTime time;
  std::vector<double> step_seconds;
};

constexpr std::array<std::pair<TimePart, std::string_view>, 6> kColumns = {
    {{TimePart::data, "data_s"},
     {TimePart::forward, "forward_s"},
     {TimePart::backward, "backward_s"},
     {TimePart::communication, "communication_s"},
     {TimePart::optimizer, "optimizer_s"},
     {TimePart::checkpoint, "checkpoint_s"}}};

void add_times(const MetricTable& table, RankRecord& rank) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const double step = or_zero(cell(table, "step_s", row));
    double parts = 0;
    for (const auto& [part, column] : kColumns) {
      const double seconds = or_zero(cell(table, column, row));
      rank.time.seconds[static_cast<int>(part)] += seconds;
      parts += seconds;
    }
    rank.time.seconds[static_cast<int>(TimePart::other)] += std::max(0.0, step - parts);
    rank.time.steps += 1;
    rank.step_seconds.push_back(std::max(step, parts));
  }
}

void add_steps(const MetricTable& table, std::map<std::int64_t, StepSum>& steps) {
  for (std::size_t row = 0; row < table.rows(); ++row) {
    const auto step = whole(cell(table, "step", row));
    if (!step) continue;
    StepSum& sum = steps[*step];
    const double weight = or_zero(cell(table, "samples", row));
    sum.weight += weight;
    sum.loss += weight * cell(table, "loss", row);
    sum.top1 += weight * cell(table, "top1", row);
    sum.lr = cell(table, "lr", row);
    sum.seconds = std::max(sum.seconds, or_zero(cell(table, "step_s", row)));
    sum.time = std::max(sum.time, or_zero(cell(table, "time", row)));
  }
}

/// Removes steps from `first` on, which a later attempt repeated.
std::int64_t drop_from(std::vector<StepPoint>& steps, std::int64_t first) {
  const auto keep =
      std::find_if(steps.begin(), steps.end(), [&](const StepPoint& p) { return p.step >= first; });
  const std::int64_t dropped = steps.end() - keep;
  steps.erase(keep, steps.end());
  return dropped;
}

void append_attempt(const AttemptSource& source, const std::map<std::int64_t, StepSum>& steps,
                    Learning& learning) {
  if (steps.empty()) return;
  const std::int64_t first = steps.begin()->first;
  const std::int64_t before = learning.steps.empty() ? 0 : learning.steps.back().step;
  (void)drop_from(learning.steps, first);
  std::erase_if(learning.epochs, [&](const EpochPoint& e) { return e.step >= first; });
  for (const auto& [step, sum] : steps) {
    if (step <= before) ++learning.redone_steps;
    StepPoint point;
    point.step = step;
    point.run_time = source.run_time(sum.time);
    point.loss = sum.weight > 0 ? sum.loss / sum.weight : kNone;
    point.top1 = sum.weight > 0 ? sum.top1 / sum.weight : kNone;
    point.lr = sum.lr;
    point.samples = sum.weight;
    point.seconds = sum.seconds;
    point.attempt = source.attempt.number();
    learning.steps.push_back(point);
  }
}

void read_epochs(const AttemptSource& source, RunFacts& facts) {
  const auto table = record::read_metrics(source.attempt.epochs());
  if (!table) {
    if (table.error().code() != Code::not_found) facts.notes.emplace_back(table.error().message());
    return;
  }
  note_damage(facts, source.attempt.epochs(), table->damaged, table->truncated);
  for (std::size_t row = 0; row < table->rows(); ++row) {
    const auto epoch = whole(cell(*table, "epoch", row));
    const auto step = whole(cell(*table, "step", row));
    if (!epoch) continue;
    std::erase_if(facts.learning.epochs, [&](const EpochPoint& e) { return e.epoch >= *epoch; });
    EpochPoint point{*epoch,
                     step.value_or(0),
                     cell(*table, "train_loss", row),
                     cell(*table, "train_top1", row),
                     cell(*table, "val_loss", row),
                     cell(*table, "val_top1", row),
                     cell(*table, "val_top5", row),
                     cell(*table, "seconds", row),
                     cell(*table, "samples_per_s", row),
                     cell(*table, "validation_s", row),
                     source.attempt.number()};
    facts.learning.epochs.push_back(point);
  }
}

void read_steps(const AttemptSource& source, std::map<int, RankRecord>& ranks, RunFacts& facts) {
  std::map<std::int64_t, StepSum> steps;
  for (int rank : indices_of(source.attempt, "metrics-", ".csv")) {
    const Path file = source.attempt.metrics(rank);
    const auto table = record::read_metrics(file);
    if (!table) {
      facts.notes.emplace_back(table.error().message());
      continue;
    }
    note_damage(facts, file, table->damaged, table->truncated);
    facts.learning.has_metrics = true;
    ranks[rank].time.rank = rank;
    add_times(*table, ranks[rank]);
    add_steps(*table, steps);
  }
  append_attempt(source, steps, facts.learning);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// Splits the running time of rank 0 into its steps, the validations, and the rest.
void split_whole(double validation_s, RunFacts& facts) {
  TimeSplit& time = facts.time;
  if (time.ranks.empty() || time.ranks.front().rank != 0 || facts.running_s <= 0) return;
  RankTime whole = time.ranks.front();
  const double left = std::max(0.0, facts.running_s - whole.step_total());
  whole.seconds[static_cast<int>(TimePart::validation)] = std::min(left, validation_s);
  whole.seconds[static_cast<int>(TimePart::outside)] = left - std::min(left, validation_s);
  time.whole = whole;
}

void measure_speed(RunFacts& facts) {
  constexpr std::size_t kPoints = 120;
  const auto& steps = facts.learning.steps;
  double samples = 0;
  double seconds = 0;
  Series speed{"samples/s", {}, {}};
  const std::size_t bin = std::max<std::size_t>(1, (steps.size() + kPoints - 1) / kPoints);
  for (std::size_t begin = 0; begin < steps.size(); begin += bin) {
    const std::size_t end = std::min(begin + bin, steps.size());
    double bin_samples = 0;
    double bin_seconds = 0;
    for (std::size_t i = begin; i < end; ++i) {
      bin_samples += steps[i].samples;
      bin_seconds += steps[i].seconds;
    }
    samples += bin_samples;
    seconds += bin_seconds;
    if (bin_seconds <= 0) continue;
    const double began = steps[end - 1].run_time - bin_seconds;
    if (!speed.x.empty() && began - speed.x.back() > 2 * bin_seconds) {  // a validation, or another attempt
      speed.x.push_back(began);
      speed.y.push_back(kNone);
    }
    speed.x.push_back(steps[end - 1].run_time);
    speed.y.push_back(bin_samples / bin_seconds);
  }
  facts.samples_per_s = seconds > 0 ? samples / seconds : 0;
  if (!speed.x.empty()) facts.speed.push_back(std::move(speed));
}

}  // namespace

void read_learning(const std::vector<AttemptSource>& attempts, RunFacts& facts) {
  std::map<int, RankRecord> ranks;
  double validation_s = 0;
  for (const AttemptSource& source : attempts) {
    read_steps(source, ranks, facts);
    read_epochs(source, facts);
    if (source.facts->resume_step) facts.learning.resumed_at.push_back(*source.facts->resume_step);
  }
  for (const EpochPoint& epoch : facts.learning.epochs) validation_s += or_zero(epoch.validation_s);
  for (auto& [rank, each] : ranks) {
    if (each.time.steps == 0) continue;
    each.time.median_step_s = median(std::move(each.step_seconds));
    facts.time.ranks.push_back(each.time);
  }
  split_whole(validation_s, facts);
  measure_speed(facts);
  const auto& steps = facts.learning.steps;
  const auto broken = std::find_if(
      steps.begin(), steps.end(), [](const StepPoint& p) { return p.samples > 0 && !std::isfinite(p.loss); });
  if (broken != steps.end()) facts.notes.push_back(format("the loss is NaN from step {}", broken->step));
}

}  // namespace stoker::report
