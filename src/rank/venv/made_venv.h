// A Python virtual environment on a node's own disk, made of a requirements file by the first of the node's
// ranks that comes, and found by the others and by later attempts of the job. Used by `stoker environment
// run`. Thread-compatible; any number of processes at once.
#pragma once

#include <string>

#include "base/process.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::rank {

/// What to make.
struct VenvRequest {
  Path requirements;
  Path wheelhouse;          ///< empty: where pip is set up to look
  Environment environment;  ///< PATH with the python3 to use, SLURM_TMPDIR, ...
};

/// One that is there.
struct MadeVenv {
  Path folder;
  bool is_new = false;  ///< this process made it
  double seconds = 0;   ///< that it took
  std::string note;     ///< why it is not on the local disk; "" when it is
};

/// Where virtual environments are made, the best first: $SLURM_TMPDIR, $TMPDIR, /tmp, and last the attempt's
/// folder
/// ($STOKER_ATTEMPT_DIR), where each node has its own.
std::vector<Path> venv_places(const Environment& environment, const std::string& host);

/// Makes it, or waits until another process of the node has. One that is not this user's alone is passed over
/// for the next place, and `note` says so; in a place that users share (1777) it is in a folder of this
/// user's own. NotFound when there is no python3 or no such file; Invalid with pip's own words when packages
/// cannot be had; NoSpace when no place has room.
Result<MadeVenv> make_venv(const VenvRequest& request, Deadline deadline);

/// `environment` with the virtual environment's programs first.
Environment with_venv(Environment environment, const Path& folder);

}  // namespace stoker::rank
