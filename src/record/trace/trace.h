// A timeline of one rank's steps for Perfetto and chrome://tracing: the phases of each step, and the
// exchanges between ranks beside them, so that one sees what overlaps. Written by room torch while it trains,
// for as many steps as the job asks for. Layout: docs/formats/run.md#trace.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/status.h"
#include "base/thread.h"
#include "record/beacon.h"
#include "record/trace/flight.h"

namespace stoker::record {

/// The writing side. Thread-safe: exchanges begin and end on other threads than steps. Every step is on disk
/// when the next one begins, so a rank that is killed leaves a trace of all but its last.
class Trace {
 public:
  /// Creates or replaces the file; `steps` steps go into it, nothing after them.
  static Result<std::unique_ptr<Trace>> create(const Path& file, int rank, std::string_view host,
                                               std::uint64_t steps);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  /// The training thread is in that phase from now on.
  void enter(Phase phase);
  /// Step `step` begins, unless it has; the one before it is over.
  void at(std::uint32_t epoch, std::uint64_t step);
  /// An exchange began, or ended: `number` is the same in both.
  void begin(std::uint64_t number, const Collective& collective);
  void end(std::uint64_t number, CollectiveOutcome outcome);
  /// Writes what is left and closes the file. The first error there was: a trace that could not be written
  /// ends no training.
  Status finish();

 private:
  Trace(File file, int rank, std::uint64_t steps);
  double now_us() const;
  void close_phase(double now) REQUIRES_LOCK(mutex_);
  void close_step(double now) REQUIRES_LOCK(mutex_);
  void flush() REQUIRES_LOCK(mutex_);

  const int rank_;
  const std::uint64_t most_steps_;
  const double wall_us_;  ///< at the monotonic time `mono_us_`
  const double mono_us_;
  Mutex mutex_;
  File file_ GUARDED_BY(mutex_);
  std::string text_ GUARDED_BY(mutex_);  ///< not on disk yet
  Status error_ GUARDED_BY(mutex_);
  bool is_over_ GUARDED_BY(mutex_) = false;
  std::uint64_t steps_ GUARDED_BY(mutex_) = 0;
  std::uint64_t step_ GUARDED_BY(mutex_) = 0;
  std::uint32_t epoch_ GUARDED_BY(mutex_) = 0;
  double step_since_ GUARDED_BY(mutex_) = -1;   ///< below 0: in no step
  double phase_since_ GUARDED_BY(mutex_) = -1;  ///< below 0: in no phase
  Phase phase_ GUARDED_BY(mutex_) = Phase::start;
};

}  // namespace stoker::record
