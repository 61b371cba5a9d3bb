// The descendants of this process from /proc: their state, and how to end all of them. A process that called
// setsid or became a daemon is still a descendant, because we are a subreaper (prctl(2)). Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <string>
#include <sys/types.h>
#include <vector>

#include "stoker/status.h"

namespace stoker::rank {

/// One process from /proc/<pid>/stat.
struct ProcessFacts {
  pid_t pid = 0;
  pid_t parent = 0;
  std::string name;
  char state = '?';         ///< 'R', 'S', 'D', 'T' stopped, 't' traced, 'Z' ended
  std::uint64_t start = 0;  ///< clock ticks since boot: identifies the process together with the pid
  double cpu_s = 0;         ///< user and system time of all its threads
  bool is_exiting = false;  ///< ended or being torn down: a signal now comes too late
};

/// NotFound without such a process.
Result<ProcessFacts> process_facts(pid_t pid, const Path& proc = "/proc");
/// Parses one line of /proc/<pid>/stat; Corrupt for other text.
Result<ProcessFacts> parse_stat(std::string_view line);

/// All descendants of `root`, without `root`, including zombies (state 'Z'). Costs a few file reads per
/// thread below `root`, not per process of the machine. May miss a process that is started or orphaned
/// concurrently: call it again.
std::vector<ProcessFacts> descendants(pid_t root, const Path& proc = "/proc");

/// Sends the signal unless the pid was reused. A stopped process also gets SIGCONT, so that it can handle the
/// signal.
void signal_process(const ProcessFacts& process, int signal);

/// Whether the process has a handler for the signal.
bool handles_signal(pid_t pid, int signal, const Path& proc = "/proc");

/// Makes this process the parent of all its orphaned descendants.
Status become_subreaper();
/// Reaps ended children, except the pids in `kept`, whose owners reap them. False when there is no child
/// left.
bool reap_orphans(const std::vector<pid_t>& kept);

/// The number of processes killed by the memory limit of this process's cgroup, and that limit; zeros if
/// unreadable.
struct MemoryKills {
  std::uint64_t count = 0;
  std::uint64_t limit_bytes = 0;
};
MemoryKills memory_kills(const Path& proc = "/proc", const Path& cgroups = "/sys/fs/cgroup");

}  // namespace stoker::rank
