// The processes below this one, as /proc tells: what they do, how to end every one of them. A process that
// called setsid or daemonised is still below us, because we are a subreaper (prctl(2)). Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "base/status.h"

namespace stoker::rank {

/// One process as /proc/<pid>/stat shows it.
struct ProcessFacts {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;
  char state = '?';         ///< 'R', 'S', 'D', 'T' stopped, 't' traced, 'Z' ended
  std::uint64_t start = 0;  ///< clock ticks since boot: with the pid, who it is
  double cpu_s = 0;         ///< user and system time of all its threads
  bool is_exiting = false;  ///< ended, or being cleared away: whatever it is sent now comes too late
};

/// NotFound when there is no such process.
Result<ProcessFacts> process_facts(pid_t pid, const Path& proc = "/proc");
/// Reads one line of /proc/<pid>/stat; Corrupt when it is none.
Result<ProcessFacts> parse_stat(std::string_view line);

/// All processes below `root`, `root` left out, ended ones (state 'Z') too. Costs a few file reads per thread
/// below `root`, not per process of the machine. One that is started or orphaned meanwhile may be missed: ask
/// again.
std::vector<ProcessFacts> descendants(pid_t root, const Path& proc = "/proc");

/// Sends the signal unless the pid belongs to another process by now. A stopped process gets SIGCONT too, so
/// that it can act on it.
void signal_process(const ProcessFacts& process, int signal);

/// True if the process has a handler of its own for the signal.
bool handles_signal(pid_t pid, int signal, const Path& proc = "/proc");

/// Makes this process the parent of every orphan below it.
Status become_subreaper();
/// Reaps children that have ended, those in `kept` left for their owners. False once there is no child at
/// all.
bool reap_orphans(const std::vector<pid_t>& kept);

/// How many processes the memory limit of this process's cgroup has killed, and that limit; zeros where it
/// cannot be read.
struct MemoryKills {
  std::uint64_t count = 0;
  std::uint64_t limit_bytes = 0;
};
MemoryKills memory_kills(const Path& proc = "/proc", const Path& cgroups = "/sys/fs/cgroup");

}  // namespace stoker::rank
