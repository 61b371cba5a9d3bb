// A timeline of one rank's steps for Perfetto and chrome://tracing: the phases of each step next to the
// collectives, so that overlap is visible. Written by room train during training, for the number of steps
// that the job requests. Layout: docs/formats/run.md#trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/thread.h"
#include "record/beacon.h"
#include "record/trace/flight.h"
#include "stoker/status.h"

namespace stoker::record {

/// The writer. Thread-safe: collectives start and end on other threads than steps. Every step is on disk when
/// the next one starts, so a killed rank loses only its last step.
class Trace {
 public:
  /// Creates or replaces the file; records the first `steps` steps.
  static Result<std::unique_ptr<Trace>> create(const Path& file, int rank, std::string_view host,
                                               std::uint64_t steps);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// Sets the current phase of the training thread.
  void enter(Phase phase);
  /// Ends the previous step and starts `step`, unless it has started already.
  void at(std::uint32_t epoch, std::uint64_t step);
  /// A collective started or ended: `number` is the same in both calls.
  void begin(std::uint64_t number, const Collective& collective);
  void end(std::uint64_t number, CollectiveOutcome outcome);
  /// Writes the remaining events and closes the file. Returns the first error; a trace that cannot be written
  /// does not end the training.
  Status finish();

 private:
  Trace(File file, int rank, std::uint64_t steps);
  double now_us() const;
  void close_phase(double now) STOKER_REQUIRES_LOCK(mutex_);
  void close_step(double now) STOKER_REQUIRES_LOCK(mutex_);
  void flush() STOKER_REQUIRES_LOCK(mutex_);

  const int rank_;
  const std::uint64_t most_steps_;
  const double wall_us_;  ///< at the monotonic time `mono_us_`
  const double mono_us_;
  Mutex mutex_;
  File file_ STOKER_GUARDED_BY(mutex_);
  std::string text_ STOKER_GUARDED_BY(mutex_);  ///< not on disk yet
  Status error_ STOKER_GUARDED_BY(mutex_);
  bool is_over_ STOKER_GUARDED_BY(mutex_) = false;
  std::uint64_t steps_ STOKER_GUARDED_BY(mutex_) = 0;
  std::uint64_t step_ STOKER_GUARDED_BY(mutex_) = 0;
  std::uint32_t epoch_ STOKER_GUARDED_BY(mutex_) = 0;
  double step_since_ STOKER_GUARDED_BY(mutex_) = -1;   ///< negative: not in a step
  double phase_since_ STOKER_GUARDED_BY(mutex_) = -1;  ///< negative: not in a phase
  Phase phase_ STOKER_GUARDED_BY(mutex_) = Phase::start;
};

}  // namespace stoker::record
