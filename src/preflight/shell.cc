#include "preflight/shell.h"

#include <sys/resource.h>

#include "net/port.h"
#include "stoker/text.h"

namespace stoker::preflight {
namespace {

constexpr rlim_t kFewFiles = 1024;

struct ShellLimit {
  int resource;
  Level level;
  rlim_t least;  // smaller values matter
  std::string_view option;
  std::string_view what;
  std::string_view unit;
};

// rlim_t's largest value means no limit.
constexpr ShellLimit kLimits[] = {
    {RLIMIT_CPU, Level::job, RLIM_INFINITY, "-t", "CPU seconds per process", "s"},
    {RLIMIT_FSIZE, Level::job, RLIM_INFINITY, "-f", "maximum file size", "bytes"},
    {RLIMIT_AS, Level::time, RLIM_INFINITY, "-v", "address space, which CUDA needs beyond physical memory",
     "bytes"},
    {RLIMIT_NOFILE, Level::time, kFewFiles, "-n", "open files", ""},
};

}  // namespace

void check_limits(const HostContext& host, Notes& notes) {
  for (const ShellLimit& limit : kLimits) {
    struct rlimit value{};
    if (::getrlimit(static_cast<decltype(RLIMIT_CPU)>(limit.resource), &value) != 0) continue;
    if (value.rlim_cur == RLIM_INFINITY || value.rlim_cur >= limit.least) continue;
    const std::string amount =
        format("{}{}{}", std::uint64_t{value.rlim_cur}, limit.unit.empty() ? "" : " ", limit.unit);
    const Message what = message(limit.what);
    notes.found_here(
        "shell-limit", limit.level, format("ulimit {}", limit.option),
        host.has_queue ? message("{}: {}; sbatch passes it to the job", what, amount)
                       : message("{}: {}", what, amount),
        value.rlim_max > value.rlim_cur
            ? format("ulimit {} {}", limit.option, value.rlim_max == RLIM_INFINITY ? "unlimited" : "hard")
            : "");
  }
}

void check_ports(const job::Job& job, const HostContext& host, Notes& notes) {
  std::optional<net::PortRange> range;
  Message by = message("below the ephemeral port range");
  if (host.site && host.site->first_port && host.site->last_port) {
    range = net::PortRange{static_cast<std::uint16_t>(*host.site->first_port),
                           static_cast<std::uint16_t>(*host.site->last_port)};
    by = message("{} (site {})", *range, host.site->name);
  }
  const auto requested = job.environment.variables.find("MASTER_PORT");
  if (requested != job.environment.variables.end()) {
    std::uint64_t port = 0;
    if (!parse_number(requested->second, &port) || port == 0 || port > 65535) return;
    constexpr std::string_view kKey = "environment.variables.MASTER_PORT";
    if (range && (port < range->first || port > range->last)) {
      notes.found("port-range", Level::job, kKey,
                  message("{} is not in {}, the open ports of the nodes", port, by), message("omit it"));
    } else {
      notes.found("fixed-port", Level::advice, kKey,
                  message("a second job on the same node finds {} in use", port),
                  message("omit it: each run finds a free port"));
    }
    return;
  }
  const auto port = net::PortReservation::find(0, range);
  if (port.ok()) {
    notes.fact("port", range ? message("chosen automatically at start, in {}", by)
                             : message("chosen automatically at start, {}", by));
  } else {
    notes.found_here("no-port", host.has_queue ? Level::time : Level::job, "ports",
                     std::string(port.error().message()));
  }
}

}  // namespace stoker::preflight
