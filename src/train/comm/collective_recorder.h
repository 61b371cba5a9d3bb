// Numbers, times and records every collective of a rank. A file keeps the latest ones after the rank has
// died. Thread-safe: collectives end on threads of their backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

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
  /// Returns the collective's number, from 1.
  std::uint64_t begin(const record::Collective& collective) {
    meter_.begin(collective.bytes);
    const std::uint64_t number = flight_.begin(collective);
    if (trace_) trace_->begin(number, collective);
    return number;
  }
  /// Sets the level of the running collective. REQUIRES: collectives end in the order in which they began.
  void set_level(record::CollectiveOutcome level) { flight_.mark(ended_.load() + 1, level); }
  void end(std::uint64_t number, record::CollectiveOutcome outcome) {
    ended_ = number;
    if (trace_) trace_->end(number, outcome);
    flight_.end(number, outcome);
    meter_.end();
  }
  Traffic traffic() const { return meter_.traffic(); }

 private:
  TrafficMeter meter_;
  std::atomic<std::uint64_t> ended_{0};  ///< number of the last collective that ended
  record::FlightRecorder flight_;
  std::shared_ptr<record::Trace> trace_;
};

}  // namespace stoker::train
