// Every collective of a rank, numbered and timed: what they cost together, and the latest of them in a file
// that outlives the rank. Thread-safe: collectives end on threads of their backend.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "record/trace/flight.h"
#include "record/trace/trace.h"
#include "torch/traffic_meter.h"

namespace stoker::torch {

class Ledger {
 public:
  /// From now on collectives are written there too. REQUIRES: none has begun.
  void keep_in(record::FlightRecorder recorder) { flight_ = std::move(recorder); }
  /// And in this trace, which is shared with who records the steps. REQUIRES: none has begun, and collectives
  /// are kept in a file.
  void trace_in(std::shared_ptr<record::Trace> trace) { trace_ = std::move(trace); }
  /// Its number, from 1.
  std::uint64_t begin(const record::Collective& collective) {
    meter_.begin(collective.bytes);
    const std::uint64_t number = flight_.begin(collective);
    if (trace_) trace_->begin(number, collective);
    return number;
  }
  /// Where the collective under way is now. REQUIRES: they end in the order they began.
  void moved_to(record::CollectiveOutcome level) { flight_.mark(ended_.load() + 1, level); }
  void end(std::uint64_t number, record::CollectiveOutcome outcome) {
    ended_ = number;
    if (trace_) trace_->end(number, outcome);
    flight_.end(number, outcome);
    meter_.end();
  }
  Traffic traffic() const { return meter_.traffic(); }

 private:
  TrafficMeter meter_;
  std::atomic<std::uint64_t> ended_{0};  ///< the latest one
  record::FlightRecorder flight_;
  std::shared_ptr<record::Trace> trace_;
};

}  // namespace stoker::torch
