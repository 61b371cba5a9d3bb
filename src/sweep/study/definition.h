// What a study is: its space, objectives, sampler and pruner, as written in study.json. It never changes
// while the study lives, because the journals refer to the parameters by their order. Values.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sweep/optuna/proposer.h"
#include "sweep/pruner/pruner.h"
#include "sweep/sampler/sampler.h"
#include "sweep/space/space.h"

namespace stoker::sweep {

/// The newest version of study.json and of the journals.
inline constexpr int kStudyFormat = 3;

/// A value that trials are judged by.
struct Objective {
  std::string metric;  ///< as the run records it ("val_acc")
  Goal goal = Goal::minimize;

  friend bool operator==(const Objective&, const Objective&) = default;
};

/// The value of a trial over its seeds.
enum class SeedAverage { mean, median };
constexpr std::array<std::string_view, 2> names_of(SeedAverage) { return {"mean", "median"}; }

/// A study without its trials.
struct Definition {
  std::string name;  ///< 1 to 64 letters, digits, '.', '_', '-'
  std::string id;    ///< distinguishes two studies of the same name; random
  Space space;
  std::vector<Objective> objectives;  ///< at least one
  SamplerKind sampler = SamplerKind::automatic;
  OptunaSampler optuna;  ///< with SamplerKind::optuna
  std::uint64_t seed = 0;
  PrunerOptions pruner;
  bool skip_tried = true;               ///< a point that was complete before is not proposed again
  std::uint64_t most_trials = 0;        ///< trials that may start, failed ones not counted; 0: any number
  std::vector<Coordinates> first;       ///< points that are tried before the sampler proposes
  std::vector<std::string> warm_start;  ///< studies and tables with trials that the sampler knows beforehand
  std::uint64_t prior_trials = 0;       ///< the number of these trials
  std::vector<std::uint64_t> seeds;     ///< `stoker sweep FILE` runs each trial with each; empty: once
  SeedAverage seed_average = SeedAverage::mean;  ///< the value of such a trial

  std::vector<Goal> goals() const;
};

/// "tpe", "optuna.CmaEsSampler".
std::string sampler_name(const Definition& definition);

/// Invalid when the name, the objectives or the pruner are not valid, or the sampler cannot serve the space.
Status check(const Definition& definition);

/// One JSON object.
std::string to_json(const Definition& definition);
/// Corrupt for anything that to_json() does not write; Invalid for a newer version. `subject` names the file.
Result<Definition> definition_from_json(std::string_view text, std::string_view subject);

}  // namespace stoker::sweep
