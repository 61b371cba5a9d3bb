// Proposes the next point of a study. Samplers keep no state: a proposal is a function of seed, trial number
// and history, so any process may ask. Thread-safe.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "stoker/status.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// The samplers of this library.
enum class SamplerKind {
  automatic,  ///< gp until 150 trials have ended, then tpe
  gp,         ///< Gaussian process with expected improvement; several objectives: as tpe
  tpe,        ///< multivariate tree-structured Parzen estimator
  random,     ///< uniform
  grid,       ///< every point once, in order
  sobol,      ///< scrambled Sobol sequence
  halton,     ///< scrambled Halton sequence
  optuna,     ///< one of Optuna's, see sweep/optuna/proposer.h
};
constexpr std::array<std::string_view, 8> names_of(SamplerKind) {
  return {"auto", "gp", "tpe", "random", "grid", "sobol", "halton", "optuna"};
}

/// What a sampler knows.
struct History {
  const Space& space;
  std::span<const Goal> goals;             ///< of each objective, at least one
  std::span<const StudyTrial> trials;      ///< in order of their numbers; running ones too
  std::span<const StudyTrial> prior = {};  ///< complete trials of other studies
};

/// Proposes points.
class Sampler {
 public:
  virtual ~Sampler() = default;
  /// A feasible point for this trial, or nullopt when no point is left (grid). Invalid if no feasible point
  /// was found in 10 000 tries.
  virtual Result<std::optional<Coordinates>> propose(TrialNumber number, const History& history) const = 0;
};

/// Fails with Invalid when the kind cannot serve the space: a grid of infinitely many or over 10^9 points, a
/// Sobol or Halton sequence of over 64 parameters. REQUIRES: not SamplerKind::optuna.
Result<std::unique_ptr<Sampler>> make_sampler(SamplerKind kind, const Space& space, std::uint64_t seed);

}  // namespace stoker::sweep
