// What the events of a trace mean, by their names: kernels, copies, operators, steps. Names of torch.profiler
// (Kineto), of NVIDIA and AMD GPUs, and of the traces of Stoker's trainer. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "profile/trace/event_stream.h"

namespace stoker::profile {

enum class EventKind {
  none,
  step,
  // On a GPU.
  compute,
  gpu_communication,
  host_to_device,
  copy,
  // On the host.
  data,
  optimizer,
  checkpoint,
  backward,
  forward,             ///< any other operator
  host_communication,  ///< of gloo or MPI, or of Stoker's trainer
};
inline constexpr std::size_t kEventKinds = static_cast<std::size_t>(EventKind::host_communication) + 1;

EventKind kind_of(const TraceEvent& event);
/// N of "ProfilerStep#N" and "step N".
std::optional<std::int64_t> step_number(std::string_view name);

}  // namespace stoker::profile
