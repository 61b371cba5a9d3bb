// Collectives, independent of the transport: within one host (exchange.h) or across hosts (two_level.h). Used
// by the backend in room train. One thread at a time makes calls, in the same order on all ranks. Each call
// blocks until its data is complete, at most until its deadline. After an error, every further call fails
// with the same error.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "net/shm/element.h"
#include "net/shm/region.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::net::shm {

class Collectives {
 public:
  Collectives() = default;
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  /// Position of this rank in the group.
  virtual GroupPosition position() const = 0;
  /// The timeout of calls, and the time after which stragglers are reported. Applies from the next wait on.
  /// Any thread.
  virtual void set_call_timeout(Duration duration) = 0;
  virtual void set_straggler_after(Duration duration) = 0;
  /// Fails the current and all later calls as Cancelled within 0.1 s. Any thread.
  virtual void cancel() = 0;
  /// Leaves the group with a reason: waiting peers fail with this text, as Invalid. One line, cut to 511
  /// bytes. Any thread.
  virtual void abandon(std::string_view why) = 0;

  /// Replaces `data` by its reduction over all ranks.
  virtual Status all_reduce(std::span<std::byte> data, ReduceSpec arithmetic) = 0;
  /// Like all_reduce on rank `root`. On the other ranks `data` is unspecified afterwards.
  virtual Status reduce(std::span<std::byte> data, ReduceSpec arithmetic, Rank root) = 0;
  /// Replaces `data` by rank `root`'s data. The root does not wait for its peers.
  virtual Status broadcast(std::span<std::byte> data, Element element, Rank root) = 0;
  /// Copies rank r's `own` to into[r]. REQUIRES: into[r] has the size of `own`.
  virtual Status all_gather(std::span<const std::byte> own, Element element,
                            std::span<const std::span<std::byte>> into) = 0;
  /// Replaces `own` by the reduction of all ranks' parts[this rank]. REQUIRES: parts[r] has the size of
  /// `own`.
  virtual Status reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                                ReduceSpec arithmetic) = 0;
  /// Returns after all ranks have arrived.
  virtual Status barrier() = 0;
};

}  // namespace stoker::net::shm
