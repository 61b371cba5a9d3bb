// Makes a lab, and takes it away. Used by `stoker lab up|down`. Only one process at a time per lab.
#pragma once

#include <string_view>

#include "base/progress.h"
#include "lab/lab.h"

namespace stoker::lab {

/// Makes the lab and returns when all its nodes are idle. On failure nothing of it is left. Exists when there
/// is one of that name; Unavailable with the line that installs what is missing, or when the kernel refuses
/// namespaces; NoSpace on a full disk; Invalid for options that make no sense.
Result<Lab> up(const Options& options, const Progress& progress);

/// What `down` took away.
struct Removed {
  int processes = 0;
  int mounts = 0;      ///< of this host, under the lab's folder
  int namespaces = 0;  ///< network namespaces
  int links = 0;       ///< the bridge and this host's ends of cables
  bool folder = false;
  bool nothing() const { return processes + mounts + namespaces + links == 0 && !folder; }
};

/// Ends everything of that lab, by force: its state is disposable. Needs no lab.json: works on a lab that was
/// half made, whose folder is partly gone, or that was taken away before (then it removes nothing). What
/// remove_orphans() removes goes, too.
Result<Removed> down(std::string_view name);

/// Takes away what is left of labs of that name whose folder is gone, wherever it was: processes, network
/// namespaces and links that a crash left. Nothing for others than root, who have none.
Result<Removed> remove_orphans(std::string_view name);

}  // namespace stoker::lab
