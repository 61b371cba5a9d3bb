// Starts a daemon of a lab and reads its last log line. Private to src/lab.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/lab.h"
#include "stoker/time.h"

namespace stoker::lab {

/// One daemon to start.
struct Daemon {
  std::string name;               ///< of its log: log/<name>.out
  std::vector<std::string> argv;  ///< argv[0] is resolved by find_tool()
  pid_t holder = 0;               ///< process whose namespaces it joins; 0: this process's
  std::string node;               ///< the node it works for, or empty
  int core = -1;                  ///< the core it and its children are pinned to, or -1
  Environment extra;              ///< in addition to PATH, SLURM_CONF and STOKER_LAB_MEMBER
};

/// Starts it in a new session with /dev/null as input and nothing else inherited; returns its pid.
Result<pid_t> launch(const Lab& lab, const Daemon& daemon);

/// A daemon that is starting.
struct StartingDaemon {
  std::string name;
  pid_t pid = 0;
};
/// Waits until `is_ready()`. Unavailable if the daemon exits before, Timeout at the deadline, both with the
/// last line of its log.
template <typename Ready>
Status wait_until(const Lab& lab, const StartingDaemon& daemon, Deadline deadline, const Ready& is_ready);

/// The last line of a daemon's logs; may be empty.
std::string last_log_line(const Lab& lab, std::string_view daemon);

Status ended_early(const Lab& lab, const StartingDaemon& daemon);
Status startup_timeout(const Lab& lab, const StartingDaemon& daemon);

/// Whether this process is running (a zombie is not).
bool is_running(pid_t pid);

template <typename Ready>
Status wait_until(const Lab& lab, const StartingDaemon& daemon, Deadline deadline, const Ready& is_ready) {
  while (!is_ready()) {
    if (!is_running(daemon.pid)) return ended_early(lab, daemon);
    if (deadline.passed()) return startup_timeout(lab, daemon);
    RealClock().sleep(std::chrono::milliseconds(10));
  }
  return {};
}

}  // namespace stoker::lab
