#include "diagnose/machine_fault.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "diagnose/log_line.h"

namespace stoker::diagnose {
namespace {

// Rules for processes that the kernel or Slurm killed for their memory, most specific first: srun names the
// node and the task, slurmstepd only the step.
constexpr std::array<std::string_view, 5> kMemoryKills = {
    "srun-out-of-memory", "rank-out-of-memory", "kernel-oom", "cgroup-oom-kill", "memory-limit-exceeded"};
// Recorded faults of a GPU, and the errors that CUDA and its libraries then report to the program.
constexpr std::array<std::string_view, 4> kDeviceFaults = {"xid-fell-off-bus", "xid-memory", "xid-nvlink",
                                                           "xid-firmware"};
constexpr std::string_view kXidInLog = "gpu-xid";
constexpr std::array<std::string_view, 7> kDeviceErrors = {
    "launch-failure", "illegal-memory-access", "ecc-error", "gpu-fell-off",
    "cublas-failed",  "cudnn-failed",          "no-gpu"};

// Whether the kernel's line about a fault of a GPU is close to the error that the program reports.
bool is_fault_in_log(const Suspect& fault, const Suspect& cause) {
  constexpr std::uint64_t kNear = 200;
  if (fault.hit->rule->name != kXidInLog || fault.log->is_record || cause.log->is_record) return false;
  const std::uint64_t a = fault.hit->line, b = cause.hit->line;
  return fault.log != cause.log || std::max(a, b) - std::min(a, b) <= kNear;
}

// The GPU's fault behind an error that the program reports.
std::optional<Suspect> device_fault(const Suspect& cause, const std::vector<Suspect>& end) {
  const FailureRule& rule = *cause.hit->rule;
  const bool is_of_device = is_device_error(rule);
  if (rule.failure_class != FailureClass::general && !is_of_device) return std::nullopt;
  const bool names_cuda = is_of_device || cause.hit->text.find("CUDA") != std::string::npos;
  for (const Suspect& each : end) {
    if (each.log->is_record && is_among(each.hit->rule->name, kDeviceFaults)) return each;
    if (names_cuda && is_fault_in_log(each, cause)) return each;
  }
  return std::nullopt;
}

}  // namespace

bool is_device_error(const FailureRule& rule) { return is_among(rule.name, kDeviceErrors); }

std::optional<Suspect> memory_kill(const std::vector<Suspect>& end) {
  std::optional<Suspect> best;
  std::size_t best_order = kMemoryKills.size();
  for (const Suspect& each : end) {
    const auto order = static_cast<std::size_t>(
        std::find(kMemoryKills.begin(), kMemoryKills.end(), each.hit->rule->name) - kMemoryKills.begin());
    const bool names_node = !node_named_in(each.hit->text).node.empty();
    const bool is_better = order < best_order || (best && order == best_order && names_node &&
                                                  node_named_in(best->hit->text).node.empty());
    if (order == kMemoryKills.size() || !is_better) continue;
    best = each;
    best_order = order;
  }
  return best;
}

Suspect fault_behind(const Suspect& cause, const std::vector<Suspect>& end) {
  Suspect behind = cause;
  // An unknown exception of a peer may be an effect of the kill.
  if (cause.hit->rule->failure_class == FailureClass::general ||
      is_among(cause.hit->rule->name, kMemoryKills)) {
    if (const auto kill = memory_kill(end)) behind = *kill;
  }
  return device_fault(behind, end).value_or(behind);
}

std::optional<int> rank_of_fault(const Suspect& cause, const std::vector<Suspect>& end) {
  if (cause.hit->rule->name != kXidInLog || cause.rank() >= 0) return std::nullopt;
  for (const Suspect& each : end) {
    if (each.rank() >= 0 && is_device_error(*each.hit->rule)) return each.rank();
  }
  return std::nullopt;
}

}  // namespace stoker::diagnose
