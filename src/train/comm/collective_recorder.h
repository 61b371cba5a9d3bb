// Numbers, times and records every collective of a rank. A file keeps the latest ones after the rank has
// died. Thread-safe: collectives end on threads of their backend.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>

#include "base/thread.h"
#include "record/trace/flight.h"
#include "record/trace/trace.h"
#include "train/comm/traffic_meter.h"

namespace stoker::train {

class CollectiveRecorder {
 public:
  /// Also records collectives in this file. REQUIRES: no collective has begun.
  void record_to(record::FlightRecorder recorder) { flight_ = std::move(recorder); }
  /// Also traces collectives. The trace is shared with the recorder of the steps. REQUIRES: no collective has
  /// begun, and record_to() was called.
  void trace_to(std::shared_ptr<record::Trace> trace) { trace_ = std::move(trace); }
  /// Where a collective runs.
  enum class Place { host, gpu };

  /// Returns the collective's number, from 1.
  std::uint64_t begin(const record::Collective& collective, Place place) {
    meter_.begin(collective.bytes);
    const std::uint64_t number = flight_.begin(collective);
    if (trace_) trace_->begin(number, collective);
    if (place == Place::host) {
      const MutexLock lock(mutex_);
      on_host_.push_back(number);
    }
    return number;
  }
  /// Sets the level of the collective that runs on the host.
  void set_level(record::CollectiveOutcome level) {
    const MutexLock lock(mutex_);
    if (!on_host_.empty()) flight_.mark(on_host_.front(), level);
  }
  void end(std::uint64_t number, record::CollectiveOutcome outcome) {
    {
      const MutexLock lock(mutex_);
      std::erase(on_host_, number);
    }
    if (trace_) trace_->end(number, outcome);
    flight_.end(number, outcome);
    meter_.end();
  }
  Traffic traffic() const { return meter_.traffic(); }

 private:
  TrafficMeter meter_;
  Mutex mutex_;
  std::deque<std::uint64_t> on_host_ STOKER_GUARDED_BY(mutex_);  ///< numbers of unfinished collectives
  record::FlightRecorder flight_;
  std::shared_ptr<record::Trace> trace_;
};

}  // namespace stoker::train
