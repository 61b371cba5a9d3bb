// What ranks do together, whoever moves the bytes: the ranks of one host (exchange.h), or of several
// (two_level.h). Used by the backend in room torch. Calls are made by one thread at a time, on all ranks in
// the same order; each blocks until its data are there, at most until its deadline. After an error every
// further call fails the same way.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "net/shm/element.h"
#include "net/shm/region.h"

namespace stoker::net::shm {

class Collectives {
 public:
  Collectives() = default;
  virtual ~Collectives() = default;
  Collectives(const Collectives&) = delete;
  Collectives& operator=(const Collectives&) = delete;

  /// This rank among all that take part.
  virtual Seat seat() const = 0;
  /// How long a call may wait, and after how long it tells who is missing; from the next wait on. Any thread.
  virtual void set_answer_within(Duration duration) = 0;
  virtual void set_named_after(Duration duration) = 0;
  /// Makes a call that waits, and all later ones, fail as Cancelled within a tenth of a second. Any thread.
  virtual void cancel() = 0;
  /// Says that this rank takes part no more, and why: whoever waits for it fails with that text, as Invalid.
  /// One line, cut to 511 bytes. Any thread.
  virtual void abandon(std::string_view why) = 0;

  /// `data` becomes the sum (least, ...) over all ranks.
  virtual Status all_reduce(std::span<std::byte> data, Arithmetic arithmetic) = 0;
  /// As all_reduce on rank `root`; what the others' data become is not said.
  virtual Status reduce(std::span<std::byte> data, Arithmetic arithmetic, Rank root) = 0;
  /// `data` becomes rank `root`'s, which does not wait for the others to have taken it.
  virtual Status broadcast(std::span<std::byte> data, Element element, Rank root) = 0;
  /// into[r] becomes rank r's `own`. REQUIRES: into[r] has the size of `own`.
  virtual Status all_gather(std::span<const std::byte> own, Element element,
                            std::span<const std::span<std::byte>> into) = 0;
  /// `own` becomes the sum of all ranks' parts[this rank]. REQUIRES: parts[r] has the size of `own`.
  virtual Status reduce_scatter(std::span<const std::span<const std::byte>> parts, std::span<std::byte> own,
                                Arithmetic arithmetic) = 0;
  /// Returns when all ranks have come.
  virtual Status barrier() = 0;
};

}  // namespace stoker::net::shm
