// The ranks of a training and their collectives: all-reduce, all-gather, broadcast, barrier. Ranks of one
// host use shared memory, other ranks use gloo. Used by DataParallel and the trainer. A ProcessGroup belongs
// to one thread of one rank. Methods are collective unless noted otherwise: all ranks call them in the same
// order.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <ATen/core/Tensor.h>

#include "stoker/choices.h"
#include "stoker/rendezvous_options.h"
#include "stoker/status.h"
#include "stoker/strong.h"
#include "stoker/time.h"

namespace stoker::train {

class ProcessGroup {
 public:
  /// Connects to all peers. A world size of one needs no connection. Fails with Unavailable or Timeout if a
  /// rank does not join within `connect_within`.
  static Result<std::unique_ptr<ProcessGroup>> connect(const RendezvousOptions& rendezvous);
  ~ProcessGroup();
  ProcessGroup(const ProcessGroup&) = delete;
  ProcessGroup& operator=(const ProcessGroup&) = delete;

  Rank rank() const;
  WorldSize world_size() const;

  /// Collectives of tensors on this GPU, the rank's own, from now on: over NCCL if no two ranks share a GPU,
  /// else through host memory and transport(). Sets the current device of this thread. Does nothing for a
  /// CPU. Invalid for Transport::nccl with shared GPUs, Unavailable in a build without CUDA. Call it once.
  Status use_device(at::Device device);

  /// Replaces every element by its sum over all ranks. Fails if a peer leaves or times out, and names it if
  /// it is known.
  Status all_reduce_sum(std::span<double> values);
  Status all_reduce_sum(at::Tensor tensor);
  /// Copies rank 0's `tensor` to all ranks.
  Status broadcast_from_rank0(at::Tensor tensor);
  /// Returns the `own` of every rank, by rank. Lengths may differ.
  Result<std::vector<std::string>> all_gather(std::string_view own);
  /// Returns once every rank has called it.
  Status barrier();

  /// Records the duration of a step. Limits for straggler reports and timeouts depend on it (wait_limits.h).
  /// Not collective.
  void record_step_time(double seconds);

  /// Publishes that this rank fails, with a one-line reason. Ranks that wait for it fail with that reason.
  /// Does nothing if the reason came from a peer. Not collective, any thread. The group is unusable
  /// afterwards.
  void abandon(std::string_view why);
  /// Publishes `own` and returns the lines of all ranks, by rank. A rank that publishes nothing within
  /// `within` has an empty line. Works after a failed collective. Call it once per group.
  std::vector<std::string> collect_failures(std::string_view own, Duration within);

  /// The transport in use; automatic for a world size of one. Not collective.
  Transport transport() const;
  /// How tensors on GPUs travel: nccl or transport(); automatic without use_device(). Not collective.
  Transport device_transport() const;
  /// Not collective, any thread.
  Traffic traffic() const;
  /// Converts the exception of a collective to a Status that names the responsible rank, if known. Not
  /// collective.
  Status explain(std::string_view operation, const std::exception& error) const;

  /// The c10d objects, for sources that include c10d_internal.h.
  struct Objects;
  Objects* objects() const { return objects_.get(); }

 private:
  explicit ProcessGroup(std::unique_ptr<Objects> objects);
  std::unique_ptr<Objects> objects_;
};

}  // namespace stoker::train
