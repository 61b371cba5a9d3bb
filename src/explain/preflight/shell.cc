// What the shell that a job is submitted from takes along: its limits; and the ports that ranks may meet on.
#include <sys/resource.h>

#include "base/text.h"
#include "explain/preflight/notes.h"
#include "net/port.h"

namespace stoker::explain {
namespace {

constexpr rlim_t kFewFiles = 1024;

struct ShellLimit {
  int resource;
  Level level;
  rlim_t least;  // from here on it does not matter
  std::string_view option;
  std::string_view what;
  std::string_view unit;
};

// rlim_t's largest value means no limit.
constexpr ShellLimit kLimits[] = {
    {RLIMIT_CPU, Level::job, RLIM_INFINITY, "-t", "CPU seconds, after which a process is killed", "s"},
    {RLIMIT_FSIZE, Level::job, RLIM_INFINITY, "-f", "the largest file that may be written", "bytes"},
    {RLIMIT_AS, Level::time, RLIM_INFINITY, "-v",
     "address space, of which CUDA takes more than there is memory", "bytes"},
    {RLIMIT_NOFILE, Level::time, kFewFiles, "-n", "open files", ""},
};

}  // namespace

void check_limits(const Surroundings& around, Notes& notes) {
  for (const ShellLimit& limit : kLimits) {
    struct rlimit value{};
    if (::getrlimit(static_cast<decltype(RLIMIT_CPU)>(limit.resource), &value) != 0) continue;
    if (value.rlim_cur == RLIM_INFINITY || value.rlim_cur >= limit.least) continue;
    const std::string amount =
        format("{}{}{}", std::uint64_t{value.rlim_cur}, limit.unit.empty() ? "" : " ", limit.unit);
    const std::string what = notes.say(limit.what);
    notes.found_here(
        "shell-limit", limit.level, format("ulimit {}", limit.option),
        around.has_queue ? notes.say("{}: {}; sbatch takes it along into the job", what, amount)
                         : quoted(format("{}: {}", what, amount)),
        value.rlim_max > value.rlim_cur
            ? format("ulimit {} {}", limit.option, value.rlim_max == RLIM_INFINITY ? "unlimited" : "hard")
            : "");
  }
}

void check_ports(const job::Job& job, const Surroundings& around, Notes& notes) {
  std::optional<net::PortRange> range;
  std::string by = notes.say("below the ports of outgoing connections");
  if (around.site && around.site->first_port && around.site->last_port) {
    range = net::PortRange{static_cast<std::uint16_t>(*around.site->first_port),
                           static_cast<std::uint16_t>(*around.site->last_port)};
    by = notes.say("{} (site {})", *range, around.site->name);
  }
  const auto wished = job.environment.variables.find("MASTER_PORT");
  if (wished != job.environment.variables.end()) {
    std::uint64_t port = 0;
    if (!parse_number(wished->second, &port) || port == 0 || port > 65535) return;
    constexpr std::string_view kKey = "environment.variables.MASTER_PORT";
    if (range && (port < range->first || port > range->last)) {
      notes.found("port-range", Level::job, kKey,
                  notes.say("{} is not one of {}, which the nodes let through", port, by),
                  notes.say("leave it out"));
    } else {
      notes.found("fixed-port", Level::advice, kKey,
                  notes.say("of two jobs on one node the second finds {} taken", port),
                  notes.say("leave it out: a free port is found for each run"));
    }
    return;
  }
  const auto port = net::PortReservation::find(0, range);
  if (port.ok()) {
    notes.fact("port",
               range ? notes.say("a free one is found in {}", by) : notes.say("a free one is found {}", by));
  } else {
    notes.found_here("no-port", around.has_queue ? Level::time : Level::job, "ports",
                     quoted(std::string(port.error().message())));
  }
}

}  // namespace stoker::explain
