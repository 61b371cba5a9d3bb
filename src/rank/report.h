// Messages from `stoker rank` to `stoker run` about its command: regular heartbeats, and the exit. Values and
// their messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "net/message.h"
#include "stoker/status.h"
#include "stoker/strong.h"

namespace stoker::rank {

/// The position of a rank in its training, from its beacon; empty for a command without Stoker.
struct TrainingPosition {
  std::string phase;
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> step;

  bool is_known() const { return !phase.empty(); }
  friend bool operator==(const TrainingPosition&, const TrainingPosition&) = default;
};
/// "epoch 3 step 118, phase backward", counting epochs from 1; "" if unknown.
std::string to_text(const TrainingPosition& where);
/// Reads it from the beacon in `file`.
TrainingPosition read_position(const Path& file);

/// The state of a rank.
struct Heartbeat {
  double stopped_s = 0;  ///< since a signal stopped one of its processes; 0: none stopped
  double silent_s = 0;   ///< without a step and without CPU time
  bool has_beacon = false;
  TrainingPosition where;
  std::string blocked_on;  ///< the address of a host that acknowledges no data; or empty

  friend bool operator==(const Heartbeat&, const Heartbeat&) = default;
};

/// The exit of a rank.
struct RankExit {
  Exit exit;
  std::string start_error;     ///< why the command could not be executed; then `exit` is 127 or 126
  bool stopped_by_us = false;  ///< it was asked to end before
  double time = 0;             ///< Unix seconds when it ended
  double ran_s = 0;
  TrainingPosition where;
  std::string memory;       ///< "out of memory (cgroup limit 32 GB)", or ""
  std::string last_line;    ///< of its output: the last error, else the last line
  std::string left_behind;  ///< remaining processes that were ended: "sleep (process 4711)"
  std::string log_error;    ///< why output is missing in its log, or ""
  std::string stack;        ///< where its main thread was when it was stopped because of a hang, or ""
};

net::ControlMessage to_message(const Heartbeat& heartbeat);
net::ControlMessage to_message(const RankExit& ended);
/// Missing fields are empty or 0: versions may differ during an upgrade.
Heartbeat parse_heartbeat(const net::ControlMessage& message);
RankExit parse_rank_exit(const net::ControlMessage& message);

/// "killed by signal 9 (SIGKILL), out of memory (cgroup limit 32 GB)", "exit code 7", or why it never
/// started.
std::string reason(const RankExit& ended);

}  // namespace stoker::rank
