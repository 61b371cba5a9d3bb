// Where the ranks of a training meet, how they talk, and what that cost. No libtorch. Plain values.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "base/strong.h"
#include "base/text.h"

namespace stoker::record {
class Trace;
}  // namespace stoker::record

namespace stoker::torch {

/// How bytes get from rank to rank.
enum class Transport {
  automatic,      ///< shared memory where all ranks are on one host, two levels where some are, else gloo
  shared_memory,  ///< fails where not all ranks are on one host
  two_level,      ///< shared memory within each host, gloo between them; never asked for
  gloo,           ///< TCP, also within one host
};

/// Where the ranks meet, and how long they wait for each other.
struct Rendezvous {
  Rank rank{0};
  WorldSize world_size{1};
  std::string address = "127.0.0.1";  ///< rank 0's host; it listens there
  std::uint16_t port = 0;
  std::string
      interface;  ///< network interface for the traffic between ranks; empty: the one that reaches `address`
  Transport transport = Transport::automatic;  ///< rank 0's counts
  /// Which host this is: equal for ranks that can share memory. Empty: as net::shm::place() finds.
  std::string place;
  /// Where collectives are traced beside `flight`; shared with who records the steps, null for nowhere.
  std::shared_ptr<record::Trace> trace = nullptr;
  Path flight;  ///< where this rank's collectives are recorded (docs/formats/flight.md); empty: nowhere
  std::chrono::milliseconds connect_within{60'000};
  /// The longest one collective may wait for another rank; longer when steps take long (saw_step).
  std::chrono::milliseconds answer_within{300'000};
  /// How long a rank that others wait for may be stopped by a signal. Over shared memory only.
  std::chrono::milliseconds stopped_within{10'000};
  /// Told, by any thread, when a collective waits much longer than usual: who is missing, and what it does.
  /// Over shared memory only.
  std::function<void(std::string_view)> on_late = {};
};

/// What the collectives of a stretch of training cost. Differences of two readings are meaningful.
struct Traffic {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;   ///< handed to collectives by this rank
  double in_flight_s = 0;    ///< time with at least one collective under way
  double last_issued_s = 0;  ///< monotonic time at which the latest one was started
};

}  // namespace stoker::torch
