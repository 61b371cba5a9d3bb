// How a daemon of a lab is started, and what it said when it ended. Used by the files of this room that start
// one; not for others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "lab/lab.h"

namespace stoker::lab {

/// One daemon to start.
struct Daemon {
  std::string name;               ///< of its log: log/<name>.out
  std::vector<std::string> argv;  ///< argv[0] is found as find_tool finds it
  pid_t holder = 0;               ///< whose namespaces it gets; 0: this process's
  std::string node;               ///< the node it works for, or empty
  int core = -1;                  ///< the one core it and its children get, or -1
  Environment extra;              ///< beside PATH, SLURM_CONF and the lab's mark
};

/// Starts it in a session of its own, with /dev/null as input and nothing else inherited; its pid.
Result<pid_t> launch(const Lab& lab, const Daemon& daemon);

/// Waits until `is_ready()`. Unavailable "lab1: slurmctld ended: <its last words>" when `pid` ends before,
/// and Timeout "lab1: slurmctld does not answer after 30 s" at the deadline, both with the last line of its
/// log.
struct Awaited {
  std::string name;
  pid_t pid = 0;
};
template <typename Ready>
Status wait_until(const Lab& lab, const Awaited& daemon, Deadline deadline, const Ready& is_ready);

/// The last line that a daemon wrote to its logs; empty when there is none.
std::string last_words(const Lab& lab, std::string_view daemon);

Status ended_early(const Lab& lab, const Awaited& daemon);
Status does_not_answer(const Lab& lab, const Awaited& daemon);

bool is_running(pid_t pid);

template <typename Ready>
Status wait_until(const Lab& lab, const Awaited& daemon, Deadline deadline, const Ready& is_ready) {
  while (!is_ready()) {
    if (!is_running(daemon.pid)) return ended_early(lab, daemon);
    if (deadline.passed()) return does_not_answer(lab, daemon);
    RealClock().sleep(std::chrono::milliseconds(10));
  }
  return {};
}

}  // namespace stoker::lab
