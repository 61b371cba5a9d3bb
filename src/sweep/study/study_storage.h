// Where a study keeps its trials if not in its own folder. Study decides, the storage keeps: numbers, states
// and values are given out by its own atomic operations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"
#include "sweep/study/definition.h"
#include "sweep/trial.h"

namespace stoker::sweep {

/// A trial that has a number and no point yet.
struct BegunTrial {
  TrialNumber number = 0;
  Assignment fixed;    ///< values that whoever enqueued it chose
  std::string origin;  ///< of an enqueued trial
};

/// What to begin.
enum class Begin {
  any,       ///< an enqueued trial, or else a new one
  enqueued,  ///< an enqueued trial only
};

class StudyStorage {
 public:
  virtual ~StudyStorage() = default;

  /// The address of the study, as open_study() reads it.
  virtual const std::string& location() const = 0;
  /// Makes `folder` the place of the runs of this study. Invalid if it has the runs of a different one.
  virtual Status bind(const Path& folder) = 0;
  /// A name of the study for this cluster: that of the folder's binding, empty without one.
  virtual const std::string& folder_id() const = 0;
  /// StudyTrial::worker of the trials that begin from now on. A trial that this worker had begun when it was
  /// killed, and that has no point, ends as failed. REQUIRES: bind().
  virtual Status set_worker(const std::string& name) = 0;

  /// Trials that are new or have changed since the last read. Their `point` has NaN for a parameter that they
  /// do not have; that of a trial outside the space is left out and counted in outside(). The worker of a
  /// trial of a different folder is "<its id>/<name>".
  virtual Result<std::vector<StudyTrial>> read() = 0;
  virtual std::uint64_t outside() const = 0;

  /// Gets a number that no other process gets; nullopt for Begin::enqueued without such a trial.
  virtual Result<std::optional<BegunTrial>> begin(Begin what) = 0;
  /// Begins a trial with the point of an earlier one, as its next attempt.
  virtual Result<TrialNumber> begin_again(const StudyTrial& earlier) = 0;
  /// Sets the point, the origin and the sampler's state of a trial that begin() returned.
  virtual Status set_point(const StudyTrial& trial) = 0;
  /// Adds a report, and the trial's metric at each rung so far.
  virtual Status report(TrialNumber number, std::int64_t step, double value,
                        const std::vector<double>& rungs) = 0;
  /// Sets the values of each seed of a trial.
  virtual Status set_seeds(TrialNumber number, const SeedValues& seeds) = 0;
  /// Ends a trial. Invalid if another process ended it.
  virtual Status end(TrialNumber number, TrialState state, const std::vector<double>& values,
                     const std::string& message) = 0;
};

}  // namespace stoker::sweep
