// How much faster steps would be without a part. Ranks that wait for each other in collectives gain only what
// the slowest of them gains: the model takes, step by step, the time until the last rank is ready and adds
// the collective itself. Used by the readers of records and traces. An object belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "profile/parts.h"

namespace stoker::profile {

/// Steps of all ranks side by side. Memory is independent of the number of ranks.
class StepModel {
 public:
  /// For `steps` consecutive steps.
  explicit StepModel(std::size_t steps) : steps_(steps) {}

  /// Adds a rank's times of the step at `index`. REQUIRES: index < steps; a rank adds a step at most once.
  void add(std::size_t index, const PartTimes& times);

  /// Only steps that all `ranks` ranks added count. Each is at least 1; nullopt without such a step, or if
  /// nothing would be left.
  std::optional<double> gain_without(ProfilePart part, int ranks) const;
  /// If each rank was as busy as their mean; 1 for one rank.
  std::optional<double> gain_of_balance(int ranks) const;

 private:
  struct Step {
    int ranks = 0;
    Nanos longest = 0;                            ///< the whole step
    Nanos busiest = 0;                            ///< without communication
    Nanos busy_sum = 0;                           ///< over ranks
    std::array<Nanos, kParts> busiest_without{};  ///< without communication and that part
  };
  /// Sums over the counted steps of their length, and of `shortened` of them.
  template <typename Shortened>
  std::optional<double> gain(int ranks, const Shortened& shortened) const;

  std::vector<Step> steps_;
};

}  // namespace stoker::profile
