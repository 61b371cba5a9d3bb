// Proposes points by a sampler of Optuna. As with Stoker's samplers, a proposal is a function of seed, trial
// number and history: Optuna gets all of it for each trial. Belongs to one thread.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "stoker/status.h"
#include "sweep/sampler/sampler.h"

namespace stoker::sweep {

class OptunaBridge;

/// A sampler of Optuna.
struct OptunaSampler {
  std::string name;            ///< of its class in optuna.samplers
  std::string options = "{}";  ///< keyword arguments as a JSON object

  friend bool operator==(const OptunaSampler&, const OptunaSampler&) = default;
};

/// Invalid when the name is no name of a class.
Status check(const OptunaSampler& sampler);

/// A point, and what the sampler remembers of its trial (StudyTrial::sampler_state).
struct OptunaPoint {
  Coordinates point;
  std::string state;
};

class OptunaProposer {
 public:
  OptunaProposer(OptunaSampler sampler, std::uint64_t seed);
  OptunaProposer(OptunaProposer&&) noexcept;
  ~OptunaProposer();

  /// Starts Optuna and makes the sampler. Invalid with a cure where Optuna or a module that the sampler needs
  /// is not installed, for an unknown sampler and for options that it does not have.
  Status prepare();

  /// A feasible point for this trial. One that is_wanted() refuses is replaced by another one, at most 20
  /// times. Invalid if none of 1 000 points is feasible.
  Result<OptunaPoint> propose(TrialNumber number, const History& history,
                              const std::function<bool(const Coordinates&)>& is_wanted);

 private:
  OptunaSampler sampler_;
  std::uint64_t seed_;
  std::unique_ptr<OptunaBridge> bridge_;
};

}  // namespace stoker::sweep
