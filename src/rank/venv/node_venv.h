// A Python virtual environment on a node's local disk, created from a requirements file by the first rank of
// the node, and reused by its other ranks and later attempts of the job. Used by `stoker environment run`.
// Thread-compatible; any number of processes at once.
#pragma once

#include <string>

#include "base/process.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::rank {

/// A request for an environment.
struct VenvRequest {
  Path requirements;
  Path wheelhouse;          ///< empty: pip's configured index
  Environment environment;  ///< PATH with the python3 to use, SLURM_TMPDIR, ...
};

/// A ready environment.
struct NodeVenv {
  Path folder;
  bool is_new = false;  ///< this process created it
  double seconds = 0;   ///< the time to create it
  std::string note;     ///< why it is not on the local disk; or ""
};

/// Locations for virtual environments, preferred first: $SLURM_TMPDIR, $TMPDIR, /tmp, and last the attempt's
/// folder ($STOKER_ATTEMPT_DIR), with one environment per node.
std::vector<Path> venv_locations(const Environment& environment, const std::string& host);

/// Creates it, or waits until another process of the node has. Skips locations where other users can write,
/// and explains that in `note`; in a shared folder (1777) it uses a private subfolder. NotFound without
/// python3 or the file; Invalid with pip's message when packages are unavailable; NoSpace when no location
/// has enough space.
Result<NodeVenv> make_venv(const VenvRequest& request, Deadline deadline);

/// `environment` with the virtual environment's programs first in PATH.
Environment with_venv(Environment environment, const Path& folder);

}  // namespace stoker::rank
