// Facts that a rank collects about its node: cores, GPUs, interfaces, fabric, variables. The roots of /sys
// and /proc are injectable. Used by the workers of a `stoker hello`. Thread-safe: no state.
#pragma once

#include <functional>

#include "base/process.h"
#include "netcheck/report.h"
#include "stoker/time.h"

namespace stoker::netcheck {

/// The cores of this process's affinity mask.
std::vector<int> usable_cores();

/// "0-3,8" of {0, 1, 2, 3, 8}.
std::string core_text(const std::vector<int>& cores);
/// Invalid for other text, or more than 65536 cores.
Result<std::vector<int>> parse_cores(std::string_view text);

/// The ports below <sys>/class/infiniband.
std::vector<FabricPort> fabric_ports(const Path& sys = "/sys");

/// One line per GPU, "NVIDIA H100 80GB HBM3", from `nvidia-smi` in PATH. Without that program, no GPUs and no
/// problem.
struct GpuList {
  std::vector<std::string> gpus;
  std::string problem;
};
GpuList list_gpus(const Environment& environment, Deadline deadline);

/// The kVariables that are set.
std::map<std::string, std::string> network_variables(const Environment& environment);

/// The process that uses a TCP port of this host, if /proc shows it to this user: "python3 (process 812)"; or
/// empty.
std::string port_holder(int port, const Path& proc = "/proc");

}  // namespace stoker::netcheck
