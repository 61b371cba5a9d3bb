// Sends the points of a run to one tracker. For push.cc only. One thread.
#pragma once

#include <functional>
#include <optional>

#include "record/work_lease.h"
#include "track/push/push.h"
#include "track/run/track_state.h"
#include "track/run/tracker.h"

namespace stoker::track {

class Pusher {
 public:
  /// All must outlive the object.
  Pusher(const PushOptions& options, const PushControl& control, NoteSink note)
      : options_(options), control_(control), note_(std::move(note)), reader_(options.run, options.task) {}
  PushResult run(const TrackerChoice& choice);

 private:
  Status push(Tracker& tracker);
  Status take_lease();
  TrackedRun describe() const { return options_.describe ? options_.describe() : describe_run(options_.run); }
  Status deliver(Tracker& tracker, const PointBatch& batch, bool is_repeated);
  Status pass(Tracker& tracker);
  Status save();
  /// Until it succeeds, fails for ever, or the push has to end. `attempt` gets whether it is repeated.
  Status keep_trying(const std::function<Status(bool is_repeated)>& attempt);
  std::uint64_t count_waiting();

  const PushOptions& options_;
  const PushControl& control_;
  NoteSink note_;
  std::string name_;
  Path state_file_;
  PointReader reader_;
  TrackState state_;
  std::optional<record::WorkLease> lease_;
  std::uint64_t delivered_ = 0;
};

}  // namespace stoker::track
