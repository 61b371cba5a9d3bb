// Sends the points of a run to trackers, once or until the run has ended. Each tracker has its own thread,
// state and position, so that a slow one delays no other. What cannot be delivered waits in the run's files.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/thread.h"
#include "record/run_folder.h"
#include "stoker/status.h"
#include "stoker/time.h"
#include "track/push/choices.h"

namespace stoker::track {

struct PushOptions {
  record::RunFolder run;
  Path folder;  ///< of states and files; created
  std::vector<TrackerChoice> trackers;
  bool follows = false;           ///< until `is_over`, and unreachable trackers are tried for as long
  std::function<bool()> is_over;  ///< no further attempt follows; called by all threads
  NoteSink note;                  ///< called by all threads, one at a time
  std::optional<std::uint32_t> task = {};  ///< of an array: only the points of this task
  /// The state of the run; by default describe_run(). Called by all threads.
  std::function<TrackedRun()> describe = {};
};

struct PushResult {
  std::string tracker;
  std::uint64_t delivered = 0;  ///< points, by this call
  std::uint64_t total = 0;      ///< points of the run that the tracker has
  std::uint64_t refused = 0;    ///< of all calls: the tracker does not accept them
  std::uint64_t waiting = 0;    ///< points that are not delivered; counted up to kMostCounted
  Status status;                ///< why

  bool is_complete() const { return status.ok() && waiting == 0; }
};
inline constexpr std::uint64_t kMostCounted = 1'000'000;

/// How a push in progress is ended. Thread-safe.
class PushControl {
 public:
  /// Deliver what is there, until the deadline.
  void finish_by(Deadline deadline);
  /// End after the current request.
  void stop() { finish_by(Deadline::at(MonoTime())); }
  bool is_finishing() const { return finish_ns_.load() != kNever; }
  bool must_end() const;
  /// Sleeps, but not longer than the deadline or a call of finish_by().
  void wait(Duration duration) const;

 private:
  static constexpr std::int64_t kNever = INT64_MAX;
  std::atomic<std::int64_t> finish_ns_{kNever};
};

/// A push in the background.
class Push {
 public:
  explicit Push(PushOptions options);
  ~Push();
  PushControl& control() { return control_; }
  bool is_done() const;
  /// Waits for the end. In the order of the trackers.
  std::vector<PushResult> finish();

 private:
  PushOptions options_;
  PushControl control_;
  Mutex note_mutex_;
  std::vector<PushResult> results_;  // each by its thread, until finish()
  std::atomic<std::size_t> running_;
  std::vector<Thread> threads_;
};

}  // namespace stoker::track
