// What a rank can tell of its place by itself: cores, GPUs, interfaces, fabric, variables. Roots of /sys are
// injectable. Used by the member of a `stoker hello`. Thread-safe: no state.
#pragma once

#include <functional>

#include "base/process.h"
#include "base/time.h"
#include "rank/hello/report.h"

namespace stoker::rank::hello {

/// The cores this process may run on.
std::vector<int> usable_cores();

/// "0-3,8" of {0, 1, 2, 3, 8}.
std::string core_text(const std::vector<int>& cores);
/// Invalid when it is not that, or has more than 65536.
Result<std::vector<int>> parse_cores(std::string_view text);

/// The ports below <sys>/class/infiniband.
std::vector<FabricPort> fabric_ports(const Path& sys = "/sys");

/// One line per GPU, "NVIDIA H100 80GB HBM3", by `nvidia-smi` of PATH; none and no problem without that
/// program.
struct GpuList {
  std::vector<std::string> gpus;
  std::string problem;
};
GpuList list_gpus(const Environment& environment, Deadline deadline);

/// Those of kVariables that are set.
std::map<std::string, std::string> network_variables(const Environment& environment);

/// Who listens on or holds a TCP port of this host, as far as /proc tells this user: "python3 (process 812)";
/// or empty.
std::string port_holder(int port, const Path& proc = "/proc");

}  // namespace stoker::rank::hello
