#include "sweep/pruner/pruner.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/hashes/crc32.h"

namespace stoker::sweep {

namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

bool is_better(double a, double b, Goal goal) { return goal == Goal::minimize ? a < b : a > b; }

// The best of the numbers; NaN without one.
double best_of(std::span<const double> values, Goal goal) {
  double best = kNone;
  for (const double value : values) {
    if (!std::isnan(value) && (std::isnan(best) || is_better(value, best, goal))) best = value;
  }
  return best;
}

std::vector<double> values_of(const StudyTrial& trial) {
  std::vector<double> values;
  for (const auto& [step, value] : trial.reports) values.push_back(value);
  return values;
}

// With linear interpolation between the two nearest, as numpy.
double percentile_of(std::vector<double> values, double percentile) {
  std::erase_if(values, [](double value) { return std::isnan(value); });
  if (values.empty()) return kNone;
  std::sort(values.begin(), values.end());
  const double at = percentile / 100 * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (at - static_cast<double>(below)) * (values[above] - values[below]);
}

// Whether the last report is the first one of its interval.
bool is_due(const PrunerOptions& options, const StudyTrial& trial) {
  const std::int64_t step = trial.reports.rbegin()->first;
  if (step < options.warmup_steps) return false;
  const std::int64_t interval =
      (step - options.warmup_steps) / options.interval_steps * options.interval_steps + options.warmup_steps;
  const auto before = std::next(trial.reports.rbegin());
  return before == trial.reports.rend() || before->first < interval;
}

bool stop_by_median(const PrunerOptions& options, Goal goal, const StudyTrial& trial,
                    std::span<const StudyTrial> others) {
  std::int64_t complete = 0;
  std::vector<double> at_step;
  const std::int64_t step = trial.reports.rbegin()->first;
  for (const StudyTrial& other : others) {
    if (other.state != TrialState::complete) continue;
    ++complete;
    if (const auto report = other.reports.find(step); report != other.reports.end())
      at_step.push_back(report->second);
  }
  if (complete == 0 || complete < options.startup_trials || !is_due(options, trial)) return false;
  const double best = best_of(values_of(trial), goal);
  if (std::isnan(best)) return true;
  if (static_cast<std::int64_t>(at_step.size()) < options.min_trials) return false;
  const double part = goal == Goal::minimize ? options.percentile : 100 - options.percentile;
  const double limit = percentile_of(at_step, part);
  return !std::isnan(limit) && is_better(limit, best, goal);
}

// The number of steps of the first trial that ended well, or nullopt.
std::optional<std::int64_t> first_complete_steps(std::span<const StudyTrial> trials) {
  for (const StudyTrial& trial : trials) {
    if (trial.state == TrialState::complete && !trial.reports.empty()) return trial.reports.rbegin()->first;
  }
  return std::nullopt;
}

// Successive halving from a smallest resource on.
struct Halving {
  const PrunerOptions& options;
  Goal goal;
  double min_resource;
  double skipped;  // rungs left out
};

// Li et al., A System for Massively Parallel Hyperparameter Tuning, MLSys 2020, algorithm 2, in the form that
// stops trials. `is_rival`: the trials that compete with this one.
template <typename IsRival>
PrunerDecision halve(const Halving& halving, const StudyTrial& trial, std::span<const StudyTrial> others,
                     const IsRival& is_rival) {
  PrunerDecision decision;
  const auto factor = static_cast<double>(halving.options.reduction_factor);
  const auto [step, value] = *trial.reports.rbegin();
  for (std::size_t rung = trial.rungs.size();; ++rung) {
    const double due = halving.min_resource * std::pow(factor, halving.skipped + static_cast<double>(rung));
    if (static_cast<double>(step) < due) return decision;
    decision.stop = true;
    if (std::isnan(value)) return decision;
    decision.reached.push_back(value);
    std::vector<double> rivals = {value};
    for (const StudyTrial& other : others) {
      if (other.number != trial.number && other.rungs.size() > rung && is_rival(other))
        rivals.push_back(other.rungs[rung]);
    }
    const auto count = static_cast<std::int64_t>(rivals.size());
    if (count <= halving.options.bootstrap_count) return decision;
    std::sort(rivals.begin(), rivals.end(),
              [&](double a, double b) { return is_better(a, b, halving.goal); });
    const std::int64_t promoted = std::max<std::int64_t>(count / halving.options.reduction_factor, 1);
    if (is_better(rivals[static_cast<std::size_t>(promoted - 1)], value, halving.goal)) return decision;
    decision.stop = false;
  }
}

PrunerDecision decide_asha(const PrunerOptions& options, Goal goal, const StudyTrial& trial,
                           std::span<const StudyTrial> others) {
  std::optional<std::int64_t> least = options.min_resource;
  if (!least) {
    const auto steps = first_complete_steps(others);
    if (!steps) return {};
    least = std::max<std::int64_t>(*steps / 100, 1);
  }
  return halve({options, goal, static_cast<double>(*least), static_cast<double>(options.skip_rungs)}, trial,
               others, [](const StudyTrial&) { return true; });
}

struct Brackets {
  std::int64_t min_resource;
  std::vector<std::uint64_t> budgets;  // trials of each bracket, relative
  std::uint64_t total;
};

// Li et al., Hyperband, JMLR 18 (2018), algorithm 1.
std::optional<Brackets> brackets_of(const PrunerOptions& options, std::span<const StudyTrial> trials) {
  const std::int64_t least = options.min_resource.value_or(1);
  std::optional<std::int64_t> most = options.max_resource;
  if (!most) most = first_complete_steps(trials);
  if (!most) return std::nullopt;
  // Steps beyond have no bracket, whose budget would not fit in 64 bits.
  constexpr std::int64_t kMostSteps = 1'000'000'000;
  most = std::clamp<std::int64_t>(*most, 1, kMostSteps);
  const auto factor = static_cast<double>(options.reduction_factor);
  // log(r, f) may be just below a whole number.
  const double rungs =
      std::log(static_cast<double>(std::max(*most, least)) / static_cast<double>(least)) / std::log(factor);
  const auto count = static_cast<std::int64_t>(rungs + 1e-9) + 1;
  Brackets brackets{.min_resource = least, .budgets = {}, .total = 0};
  for (std::int64_t bracket = 0; bracket < count; ++bracket) {
    const auto s = static_cast<double>(count - 1 - bracket);
    brackets.budgets.push_back(
        static_cast<std::uint64_t>(std::ceil(static_cast<double>(count) * std::pow(factor, s) / (s + 1))));
    brackets.total += brackets.budgets.back();
  }
  return brackets;
}

std::int64_t bracket_in(const Brackets& brackets, std::string_view study, TrialNumber number) {
  const std::string key = format("{}_{}", study, number);
  std::uint64_t place = crc32(std::as_bytes(std::span(key))) % brackets.total;
  std::int64_t bracket = 0;
  for (const std::uint64_t budget : brackets.budgets) {
    if (place < budget) break;
    place -= budget;
    ++bracket;
  }
  return bracket;
}

PrunerDecision decide_hyperband(const PrunerOptions& options, Goal goal, std::string_view study,
                                const StudyTrial& trial, std::span<const StudyTrial> others) {
  const auto brackets = brackets_of(options, others);
  if (!brackets) return {};
  const std::int64_t own = bracket_in(*brackets, study, trial.number);
  return halve({options, goal, static_cast<double>(brackets->min_resource), static_cast<double>(own)}, trial,
               others,
               [&](const StudyTrial& other) { return bracket_in(*brackets, study, other.number) == own; });
}

bool stop_by_threshold(const PrunerOptions& options, const StudyTrial& trial) {
  if (!is_due(options, trial)) return false;
  const double value = trial.reports.rbegin()->second;
  return std::isnan(value) || (options.lower && value < *options.lower) ||
         (options.upper && value > *options.upper);
}

bool stop_by_patience(const PrunerOptions& options, Goal goal, const StudyTrial& trial) {
  const std::vector<double> values = values_of(trial);
  const auto recent = static_cast<std::size_t>(options.patience) + 1;
  if (values.size() <= recent) return false;
  const std::span all(values);
  const double before = best_of(all.first(values.size() - recent), goal);
  const double after = best_of(all.last(recent), goal);
  if (std::isnan(before) || std::isnan(after)) return false;
  return goal == Goal::minimize ? before + options.min_delta < after : before - options.min_delta > after;
}

}  // namespace

Status check(const PrunerOptions& options) {
  Status status;
  visit_options(options, [&](std::string_view name, const auto& field, double least) {
    const std::optional<double> value(field);
    if (status.ok() && value && !(*value >= least))
      status = invalid("pruner: {} {} (at least {})", name, *value, least);
  });
  STOKER_RETURN_IF_ERROR(status);
  if (options.percentile > 100) return invalid("pruner: percentile {} (at most 100)", options.percentile);
  if (options.kind == PrunerKind::threshold && !options.lower && !options.upper)
    return invalid("pruner threshold: neither lower nor upper")
        .cure("pruner: {{kind: threshold, upper: 10}}");
  if (options.min_resource && options.max_resource && *options.min_resource > *options.max_resource)
    return invalid("pruner: min_resource {} is above max_resource {}", *options.min_resource,
                   *options.max_resource);
  return {};
}

PrunerDecision decide(const PrunerOptions& options, Goal goal, std::string_view study,
                      const StudyTrial& trial, std::span<const StudyTrial> others) {
  if (trial.reports.empty()) return {};
  switch (options.kind) {
    case PrunerKind::none:
      return {};
    case PrunerKind::median:
      return {stop_by_median(options, goal, trial, others), {}};
    case PrunerKind::asha:
      return decide_asha(options, goal, trial, others);
    case PrunerKind::hyperband:
      return decide_hyperband(options, goal, study, trial, others);
    case PrunerKind::threshold:
      return {stop_by_threshold(options, trial), {}};
    case PrunerKind::patient:
      return {stop_by_patience(options, goal, trial), {}};
  }
  return {};
}

std::int64_t hyperband_bracket(const PrunerOptions& options, std::string_view study, TrialNumber number,
                               std::span<const StudyTrial> trials) {
  const auto brackets = brackets_of(options, trials);
  return brackets ? bracket_in(*brackets, study, number) : 0;
}

}  // namespace stoker::sweep
