#include "profile/trace/trace_events.h"

#include <algorithm>
#include <initializer_list>

#include "stoker/text.h"

namespace stoker::profile {
namespace {

bool begins_with(std::string_view name, std::initializer_list<std::string_view> beginnings) {
  return std::ranges::any_of(beginnings, [name](std::string_view each) { return name.starts_with(each); });
}

// record_function() labels that name a part.
EventKind kind_of_label(std::string_view name) {
  if (name == "data") return EventKind::data;
  if (name == "forward") return EventKind::forward;
  if (name == "backward") return EventKind::backward;
  if (name == "optimizer") return EventKind::optimizer;
  if (name == "checkpoint") return EventKind::checkpoint;
  if (name == "communication") return EventKind::host_communication;
  return EventKind::none;
}

EventKind kind_of_kernel(std::string_view name) {
  constexpr std::string_view kNames[] = {"nccl", "rccl", "mscclKernel", "msccl"};
  const bool is_collective =
      std::ranges::any_of(kNames, [name](std::string_view each) { return name.find(each) < name.size(); });
  return is_collective ? EventKind::gpu_communication : EventKind::compute;
}

EventKind kind_of_copy(std::string_view name) {
  return name.find("HtoD") < name.size() || name.find("HostToDevice") < name.size()
             ? EventKind::host_to_device
             : EventKind::copy;
}

EventKind kind_of_operator(std::string_view name, bool is_annotation) {
  if (name.starts_with("ProfilerStep#")) return EventKind::step;
  if (name.starts_with("enumerate(DataLoader)")) return EventKind::data;
  if (name.starts_with("Optimizer.")) return EventKind::optimizer;
  if (name.starts_with("autograd::engine::evaluate_function")) return EventKind::backward;
  if (begins_with(name, {"gloo:", "mpi:", "ucc:"})) return EventKind::host_communication;
  // Starts of collectives, not their time.
  if (begins_with(name, {"nccl:", "rccl:", "c10d::", "record_param_comms"})) return EventKind::none;
  if (is_annotation) {
    const EventKind label = kind_of_label(name);
    // Other labels may enclose anything.
    return name.ends_with("DataParallel.forward") ? EventKind::forward : label;
  }
  return EventKind::forward;
}

}  // namespace

EventKind kind_of(const TraceEvent& event) {
  if (event.phase != "X") return EventKind::none;
  const std::string_view category = event.category;
  if (category == "cpu_op") return kind_of_operator(event.name, false);
  if (category == "kernel") return kind_of_kernel(event.name);
  if (category == "cuda_runtime" || category == "cuda_driver" || category == "hip_runtime")
    return EventKind::forward;
  if (category == "gpu_memcpy") return kind_of_copy(event.name);
  if (category == "gpu_memset") return EventKind::copy;
  if (category == "user_annotation") return kind_of_operator(event.name, true);
  if (category == "python_function")
    return event.name.find("serialization.py") < event.name.size() && event.name.ends_with(": save")
               ? EventKind::checkpoint
               : EventKind::none;
  if (category == "step") return EventKind::step;
  if (category == "phase") return kind_of_label(event.name);
  return EventKind::none;
}

std::optional<std::int64_t> step_number(std::string_view name) {
  const std::size_t at = name.find_last_of("# ");
  std::int64_t number = 0;
  if (at >= name.size() || !parse_number(name.substr(at + 1), &number) || number < 0) return std::nullopt;
  return number;
}

}  // namespace stoker::profile
