// A trial of a study: a point of the space, what it reported, and how it ended. Values; thread-compatible.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/space/space.h"

namespace stoker::sweep {

/// From the first one that asked: 0, 1, 2, ...
using TrialNumber = std::uint64_t;

/// Where a trial is.
enum class TrialState {
  running,   ///< proposed and not ended
  complete,  ///< has a value for each objective
  pruned,    ///< stopped early by the pruner
  failed,    ///< ended without a value
};
constexpr std::array<std::string_view, 4> names_of(TrialState) {
  return {"running", "complete", "pruned", "failed"};
}

/// Whether smaller or larger values of an objective are better.
enum class Goal { minimize, maximize };
constexpr std::array<std::string_view, 2> names_of(Goal) { return {"minimize", "maximize"}; }

/// A value of an objective, so that smaller is better.
inline double loss_of(double value, Goal goal) { return goal == Goal::minimize ? value : -value; }
/// Whether the losses `a` are nowhere larger than `b`, and smaller in one objective.
bool dominates(std::span<const double> a, std::span<const double> b);

/// The values of a trial's objectives for each of its seeds.
using SeedValues = std::map<std::uint64_t, std::vector<double>>;

/// One trial.
struct StudyTrial {
  TrialNumber number = 0;
  std::uint32_t attempt = 0;  ///< how often it was tried before
  TrialState state = TrialState::running;
  std::string origin;                      ///< what proposed it: a sampler's name, "first 0", "grid 12"
  std::string worker;                      ///< who started this attempt: "n1-0", see Study::set_worker()
  Coordinates point;                       ///< of the study's space
  std::vector<double> values;              ///< one for each objective; empty unless complete
  SeedValues seeds;                        ///< that they are the average of; empty without Definition::seeds
  std::map<std::int64_t, double> reports;  ///< metric by step; NaN where the metric was not finite
  std::vector<double> rungs;               ///< its metric where it reached each rung of successive halving
  double started = 0;                      ///< Unix time in seconds
  double ended = 0;                        ///< Unix time in seconds, 0 while it runs
  std::string message;                     ///< why it failed
  std::string sampler_state;               ///< what a sampler of Optuna remembers of it; empty without one
  std::uint64_t skipped = 0;  ///< points that the sampler proposed before, and that had been tried
};

/// loss_of() each value. REQUIRES: the trial is complete.
std::vector<double> losses_of(const StudyTrial& trial, std::span<const Goal> goals);

}  // namespace stoker::sweep
