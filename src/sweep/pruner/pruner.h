// Decides from the metric that a trial reports whether to stop it early. Pruners keep no state: what
// successive halving remembers is in the trials (StudyTrial::rungs). The rules are Optuna's, so that a study
// gives the same answers there. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "stoker/status.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// The pruners of this library.
enum class PrunerKind {
  none,
  median,     ///< stops a trial whose best value so far is worse than the median at the same step
  asha,       ///< asynchronous successive halving
  hyperband,  ///< asha with several smallest resources side by side
  threshold,  ///< stops a trial whose metric leaves a range
  patient,    ///< stops a trial that has stopped improving
};
constexpr std::array<std::string_view, 6> names_of(PrunerKind) {
  return {"none", "median", "asha", "hyperband", "threshold", "patient"};
}

/// Options of all pruners; each reads its own.
struct PrunerOptions {
  PrunerKind kind = PrunerKind::none;
  // median, threshold
  std::int64_t startup_trials = 5;  ///< median: complete trials before one is stopped
  std::int64_t warmup_steps = 0;    ///< steps of a trial in which it is not stopped
  std::int64_t interval_steps = 1;  ///< steps between decisions
  std::int64_t min_trials = 1;      ///< median: values at the step before one is stopped
  double percentile = 50;           ///< median: the better part that continues, in percent
  // asha, hyperband
  std::optional<std::int64_t> min_resource;  ///< the step of the first decision. Unset: asha a hundredth of
                                             ///< the first complete trial's steps, hyperband 1
  std::optional<std::int64_t> max_resource;  ///< hyperband: the last step. Unset: of the first complete trial
  std::int64_t reduction_factor = 4;         ///< one trial in this many continues
  std::int64_t skip_rungs = 0;               ///< asha: first decisions left out
  std::int64_t bootstrap_count = 0;          ///< asha: trials at a decision before one continues
  // threshold
  std::optional<double> lower;
  std::optional<double> upper;
  // patient
  std::int64_t patience = 10;  ///< reports without improvement
  double min_delta = 0;        ///< the smallest change that counts as improvement
};

/// Whether an option is a whole number, of an option's type or a reference to it.
template <typename Field>
inline constexpr bool is_whole_option =
    std::is_same_v<std::remove_cvref_t<Field>, std::int64_t> ||
    std::is_same_v<std::remove_cvref_t<Field>, std::optional<std::int64_t>>;

/// Calls visit(name, field, least) for each option but the kind: the one list that reading, writing and
/// checking use. `least`: its smallest value.
template <typename Options, typename Visit>
void visit_options(Options& options, const Visit& visit) {
  constexpr double kAny = -std::numeric_limits<double>::infinity();
  visit("startup_trials", options.startup_trials, 0.0);
  visit("warmup_steps", options.warmup_steps, 0.0);
  visit("interval_steps", options.interval_steps, 1.0);
  visit("min_trials", options.min_trials, 1.0);
  visit("percentile", options.percentile, 0.0);
  visit("min_resource", options.min_resource, 1.0);
  visit("max_resource", options.max_resource, 1.0);
  visit("reduction_factor", options.reduction_factor, 2.0);
  visit("skip_rungs", options.skip_rungs, 0.0);
  visit("bootstrap_count", options.bootstrap_count, 0.0);
  visit("lower", options.lower, kAny);
  visit("upper", options.upper, kAny);
  visit("patience", options.patience, 0.0);
  visit("min_delta", options.min_delta, 0.0);
}

/// Invalid when an option is out of its range.
Status check(const PrunerOptions& options);

/// What a report leads to.
struct PrunerDecision {
  bool stop = false;
  /// The trial's metric at the rungs that it reached now: append to StudyTrial::rungs.
  std::vector<double> reached;
};

/// Decides about the last report of `trial`. `others`: the study's trials in order of their numbers, with or
/// without `trial`. `study`: the study's name, which hyperband divides the trials by.
PrunerDecision decide(const PrunerOptions& options, Goal goal, std::string_view study,
                      const StudyTrial& trial, std::span<const StudyTrial> others);

/// The bracket of hyperband that a trial belongs to: the number of its rungs that are left out. 0 while the
/// largest resource is not known. REQUIRES: options.kind is hyperband.
std::int64_t hyperband_bracket(const PrunerOptions& options, std::string_view study, TrialNumber number,
                               std::span<const StudyTrial> trials);

}  // namespace stoker::sweep
