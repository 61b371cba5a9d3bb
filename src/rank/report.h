// What `stoker rank` tells `stoker run` about its command: now and then how it gets on, and once how it
// ended. Values and their messages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/process.h"
#include "base/status.h"
#include "base/strong.h"
#include "net/message.h"

namespace stoker::rank {

/// Where in the training a rank is, by its beacon; all empty for a command that knows nothing of Stoker.
struct Whereabouts {
  std::string phase;
  std::optional<std::int64_t> epoch;
  std::optional<std::int64_t> step;

  bool is_known() const { return !phase.empty(); }
  friend bool operator==(const Whereabouts&, const Whereabouts&) = default;
};
/// "epoch 3 step 118, phase backward", the first epoch being 1; "" when not known.
std::string to_text(const Whereabouts& where);
/// As the beacon in `file` says.
Whereabouts read_whereabouts(const Path& file);

/// How a rank gets on.
struct Beat {
  double stopped_s = 0;  ///< since a process of it was stopped by a signal; 0: none is
  double silent_s = 0;   ///< without a step and without CPU time
  bool has_beacon = false;
  Whereabouts where;
  std::string waits_for;  ///< the address of a host that acknowledges nothing it sends; or empty

  friend bool operator==(const Beat&, const Beat&) = default;
};

/// How a rank ended.
struct Ended {
  Exit exit;
  std::string start_error;     ///< why the command could not be executed; then `exit` is 127 or 126
  bool stopped_by_us = false;  ///< it was asked to end before
  double time = 0;             ///< Unix seconds when it ended
  double ran_s = 0;
  Whereabouts where;
  std::string memory;         ///< "out of memory (cgroup limit 32 GB)", or ""
  std::string last_line;      ///< of what it printed, standard error before standard output
  std::string left_behind;    ///< processes that it left and that were ended: "sleep (process 4711)"
  std::string log_complaint;  ///< what is missing in its log, or ""
};

net::Message to_message(const Beat& beat);
net::Message to_message(const Ended& ended);
/// Fields that are missing read as empty or 0: versions may differ for the length of an upgrade.
Beat parse_beat(const net::Message& message);
Ended parse_ended(const net::Message& message);

/// "killed by signal 9 (SIGKILL), out of memory (cgroup limit 32 GB)", "exit code 7", or why it never
/// started.
std::string reason(const Ended& ended);

}  // namespace stoker::rank
