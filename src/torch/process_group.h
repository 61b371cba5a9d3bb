// The ranks of one training and what they can do together: sums, copies from rank 0, a barrier; through
// memory that they share where all are on one host, else over gloo. Used by DataParallel and the trainer. One
// ProcessGroup belongs to one thread of one rank; every call below is collective unless it says otherwise:
// all ranks make it, in the same order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "base/status.h"
#include "base/strong.h"
#include "base/time.h"
#include "torch/rendezvous.h"

namespace stoker::torch {

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
  /// The same for a tensor.
  Status sum(at::Tensor tensor);
  /// `tensor` becomes rank 0's.
  Status copy_from_first(at::Tensor tensor);
  /// Every rank's `own`, in the order of ranks; they may differ in length.
  Result<std::vector<std::string>> gather(std::string_view own);
  /// Returns when every rank has come here.
  Status barrier();

  /// A step took so long: what waits for other ranks are unusual follows from that
  /// (communication/wait_limits.h). Not collective.
  void saw_step(double seconds);

  /// Says that this rank goes no further, and why in one line: ranks that wait for it fail with that reason.
  /// Does nothing when that was another rank's reason, which all hear from that one. Not collective, any
  /// thread; the group is of no more use.
  void abandon(std::string_view why);
  /// Leaves a line for the other ranks and returns all ranks' lines, in the order of ranks; empty for those
  /// that left none within `within`. Works after a collective has failed, once per group.
  std::vector<std::string> last_words(std::string_view own, Duration within);

  /// What the ranks use; automatic in a world of one. Not collective.
  Transport transport() const;
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
