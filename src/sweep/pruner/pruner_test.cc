#include "sweep/pruner/pruner.h"

#include <cmath>
#include <limits>

#include "base/golden_test.h"

namespace stoker::sweep {
namespace {

// The options of one of Optuna's pruners.
PrunerOptions options_of(const nlohmann::json& row) {
  const std::string pruner = row["pruner"];
  const nlohmann::json& arguments = row["args"];
  const auto whole = [&](const char* name, std::int64_t otherwise) {
    return arguments.value(name, otherwise);
  };
  PrunerOptions options;
  if (pruner == "MedianPruner" || pruner == "PercentilePruner") options.kind = PrunerKind::median;
  if (pruner == "SuccessiveHalvingPruner") options.kind = PrunerKind::asha;
  if (pruner == "HyperbandPruner") options.kind = PrunerKind::hyperband;
  if (pruner == "ThresholdPruner") options.kind = PrunerKind::threshold;
  if (pruner == "PatientPruner") options.kind = PrunerKind::patient;
  EXPECT_NE(options.kind, PrunerKind::none) << pruner;
  options.startup_trials = whole("n_startup_trials", 5);
  options.warmup_steps = whole("n_warmup_steps", 0);
  options.interval_steps = whole("interval_steps", 1);
  options.min_trials = whole("n_min_trials", 1);
  options.percentile = arguments.value("percentile", 50.0);
  if (arguments.contains("min_resource")) options.min_resource = arguments["min_resource"];
  if (arguments.contains("max_resource")) options.max_resource = arguments["max_resource"];
  options.reduction_factor = whole("reduction_factor", options.kind == PrunerKind::hyperband ? 3 : 4);
  options.skip_rungs = whole("min_early_stopping_rate", 0);
  options.bootstrap_count = whole("bootstrap_count", 0);
  if (arguments.contains("upper")) options.upper = arguments["upper"];
  options.patience = whole("patience", 10);
  options.min_delta = arguments.value("min_delta", 0.0);
  return options;
}

struct Outcome {
  std::optional<std::int64_t> pruned_at;
  std::vector<double> rungs;
};

// Feeds a curve to the pruner, value by value, until it stops; then the trial joins the list.
Outcome feed(const PrunerOptions& options, Goal goal, const nlohmann::json& curve, std::int64_t first_step,
             std::vector<StudyTrial>& trials) {
  StudyTrial trial;
  trial.number = trials.size();
  Outcome outcome;
  std::int64_t step = first_step;
  for (const auto& value : curve) {
    trial.reports[step] = value.is_null() ? std::nan("") : value.get<double>();
    const PrunerDecision decision = decide(options, goal, "golden", trial, trials);
    trial.rungs.insert(trial.rungs.end(), decision.reached.begin(), decision.reached.end());
    if (decision.stop) {
      outcome.pruned_at = step;
      break;
    }
    ++step;
  }
  trial.state = outcome.pruned_at ? TrialState::pruned : TrialState::complete;
  if (!outcome.pruned_at) trial.values = {trial.reports.rbegin()->second};
  outcome.rungs = trial.rungs;
  trials.push_back(trial);
  return outcome;
}

TEST(Pruner, all_decide_as_optuna_does) {
  const nlohmann::json reference = golden("pruners.json");
  for (const auto& row : reference["cases"]) {
    SCOPED_TRACE(row["name"].get<std::string>() + " " + row["direction"].get<std::string>());
    const PrunerOptions options = options_of(row);
    const Goal goal = row["direction"] == "minimize" ? Goal::minimize : Goal::maximize;
    ASSERT_TRUE(check(options).ok());
    std::vector<StudyTrial> trials;
    for (const auto& decision : row["decisions"]) {
      const auto& curve = reference["table"][trials.size()];
      const Outcome outcome = feed(options, goal, curve, row["first_step"], trials);
      std::optional<std::int64_t> expected;
      if (!decision["pruned_at"].is_null()) expected = decision["pruned_at"].get<std::int64_t>();
      EXPECT_EQ(outcome.pruned_at, expected) << "trial " << decision["trial"];
      std::vector<double> rungs;
      if (decision.contains("rungs")) {
        for (std::size_t i = 0; i < decision["rungs"].size(); ++i)
          rungs.push_back(decision["rungs"]["completed_rung_" + std::to_string(i)]);
      }
      EXPECT_EQ(outcome.rungs, rungs) << "trial " << decision["trial"];
    }
  }
}

TEST(Pruner, hyperband_divides_the_trials_as_optuna_does) {
  const nlohmann::json reference = golden("pruners.json")["hyperband"];
  PrunerOptions options{.kind = PrunerKind::hyperband};
  options.max_resource = 32;
  options.reduction_factor = 3;
  for (std::size_t i = 0; i < reference["bracket_of_trial"].size(); ++i)
    EXPECT_EQ(hyperband_bracket(options, "golden", i, {}), reference["bracket_of_trial"][i]) << i;
}

TEST(Pruner, options_out_of_range_are_refused) {
  PrunerOptions options{.kind = PrunerKind::asha};
  options.reduction_factor = 1;
  EXPECT_EQ(check(options).message(), "pruner: reduction_factor 1 (at least 2)");
  options.reduction_factor = 3;
  options.min_resource = 10;
  options.max_resource = 5;
  EXPECT_EQ(check(options).message(), "pruner: min_resource 10 is above max_resource 5");
  EXPECT_EQ(check({.kind = PrunerKind::threshold}).message(), "pruner threshold: neither lower nor upper");
}

TEST(Pruner, steps_of_any_size_are_decided) {
  for (const PrunerKind kind :
       {PrunerKind::median, PrunerKind::asha, PrunerKind::hyperband, PrunerKind::patient}) {
    std::vector<StudyTrial> trials;
    PrunerOptions options{.kind = kind};
    options.reduction_factor = 2;
    for (const std::int64_t step : {std::int64_t{0}, std::numeric_limits<std::int64_t>::max(),
                                    std::numeric_limits<std::int64_t>::min()}) {
      StudyTrial trial;
      trial.number = trials.size();
      trial.state = TrialState::complete;
      trial.reports[step] = 1;
      const PrunerDecision decision = decide(options, Goal::minimize, "s", trial, trials);
      EXPECT_LE(decision.reached.size(), 64);
      trials.push_back(trial);
    }
  }
}

TEST(Pruner, a_trial_without_reports_continues) {
  for (const PrunerKind kind :
       {PrunerKind::median, PrunerKind::asha, PrunerKind::hyperband, PrunerKind::patient})
    EXPECT_FALSE(decide({.kind = kind}, Goal::minimize, "s", StudyTrial{}, {}).stop);
}

}  // namespace
}  // namespace stoker::sweep
