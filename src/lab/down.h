// Removes a lab. Used by `stoker lab down`, by up and by the guardian. Only one process at a time per lab.
#pragma once

#include <string_view>

#include "lab/lab.h"

namespace stoker::lab {

/// What `down` removed.
struct Removed {
  int processes = 0;
  int mounts = 0;      ///< on this host, below the lab's folder
  int namespaces = 0;  ///< network namespaces
  int links = 0;       ///< the bridge and this host's veth ends
  bool folder = false;
  bool nothing() const { return processes + mounts + namespaces + links == 0 && !folder; }
};

/// Kills and removes a lab: its state is disposable. Works without lab.json, on a partly created or deleted
/// lab, and on one already removed. Includes remove_orphans().
Result<Removed> down(std::string_view name);

/// Removes processes, network namespaces and links of labs of this name whose folder no longer exists. Does
/// nothing unless run as root.
Result<Removed> remove_orphans(std::string_view name);

}  // namespace stoker::lab
