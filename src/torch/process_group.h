// The ranks of one training and what they can do together: sums, copies from rank 0, a barrier, all over
// gloo. Used by DataParallel and the trainer. One ProcessGroup belongs to one thread of one rank; every call
// below is collective unless it says otherwise: all ranks make it, in the same order.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <ATen/core/Tensor.h>

#include "base/status.h"
#include "base/strong.h"

namespace stoker::torch {

/// Where the ranks meet, and how long they wait for each other.
struct Rendezvous {
  Rank rank{0};
  WorldSize world_size{1};
  std::string address = "127.0.0.1";  ///< rank 0's host; it listens there
  std::uint16_t port = 0;
  std::string
      interface;  ///< network interface for the traffic between ranks; empty: the one that reaches `address`
  std::chrono::milliseconds connect_within{60'000};
  std::chrono::milliseconds answer_within{300'000};  ///< the longest one collective may wait for another rank
};

/// What the collectives of a stretch of training cost. Differences of two readings are meaningful.
struct Traffic {
  std::uint64_t calls = 0;
  std::uint64_t bytes = 0;   ///< handed to collectives by this rank
  double in_flight_s = 0;    ///< time with at least one collective under way
  double last_issued_s = 0;  ///< monotonic time at which the latest one was started
};

class ProcessGroup {
 public:
  /// Connects this rank to all others. A world of one connects to nobody. Fails with Unavailable or Timeout
  /// when rank 0 or another rank does not come within `connect_within`.
  static Result<std::unique_ptr<ProcessGroup>> connect(const Rendezvous& meeting);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  Rank rank() const;
  WorldSize world_size() const;

  /// Every element becomes its sum over all ranks. Fails, naming the peer where that is known, when one of
  /// them left or does not answer in time.
  Status sum(std::span<double> values);
  /// `tensor` becomes rank 0's.
  Status copy_from_first(at::Tensor tensor);
  /// Returns when every rank has come here.
  Status barrier();

  /// Not collective, any thread.
  Traffic traffic() const;
  /// `error` as thrown out of a collective: what happened and, where it can be told, which rank caused it.
  /// Not collective.
  Status explain(std::string_view operation, const std::exception& error) const;

  /// The c10d objects, for the sources that include them (torch/c10d_internal.h).
  struct Objects;
  Objects* objects() const { return objects_.get(); }

 private:
  explicit ProcessGroup(std::unique_ptr<Objects> objects);
  std::unique_ptr<Objects> objects_;
};

}  // namespace stoker::torch
