// Options of the rendezvous, and traffic counters. No libtorch. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "stoker/choices.h"
#include "stoker/strong.h"
#include "stoker/text.h"

namespace stoker::record {
class Trace;
}  // namespace stoker::record

namespace stoker::train {

/// Where ranks rendezvous, and their timeouts.
struct RendezvousOptions {
  Rank rank{0};
  WorldSize world_size{1};
  std::string address = "127.0.0.1";  ///< host of rank 0, which listens there
  std::uint16_t port = 0;
  std::string interface;  ///< network interface for gloo; empty: the interface that reaches `address`
  Transport transport = Transport::automatic;  ///< the value of rank 0 applies
  /// Identifies the host: equal for ranks that can share memory. Empty: net::shm::shared_memory_domain().
  std::string place;
  /// Trace for collectives, in addition to `flight`; shared with the recorder of the steps; may be null.
  std::shared_ptr<record::Trace> trace = nullptr;
  Path flight;  ///< flight recorder file of this rank (docs/formats/flight.md); empty: not recorded
  std::chrono::milliseconds connect_within{60'000};
  /// Timeout of a collective; extended if steps take long (record_step_time).
  std::chrono::milliseconds call_timeout{300'000};
  /// How long a signal may stop a rank that its peers wait for. Shared memory only.
  std::chrono::milliseconds stopped_timeout{10'000};
  /// Called on any thread when a collective waits much longer than usual, with the straggler and its
  /// activity. Shared memory only.
  std::function<void(std::string_view)> on_straggler = {};
};

/// Counters of collectives. The difference of two readings covers the time between them.
struct Traffic {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;   ///< passed to collectives by this rank
  double in_flight_s = 0;    ///< time with at least one running collective
  double last_issued_s = 0;  ///< monotonic start time of the latest one
};

}  // namespace stoker::train
