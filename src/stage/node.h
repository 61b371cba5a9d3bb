// One node's part in staging: its folder, and the job's input on the node's local disk before its ranks
// start. Used by `stoker stage`, which runs once per node. Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "stage/unpack.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::stage {

/// Files to stage in and out.
struct StageRequest {
  std::vector<Path> unpack;       ///< archives
  std::vector<Path> copy;         ///< files and folders
  std::vector<std::string> back;  ///< paths relative to the folder on the node
  OutsideLinks links = OutsideLinks::refused;
};

/// Base of the run folders on this node: `requested` if it is set, else SLURM_TMPDIR, TMPDIR or /tmp.
Path node_local_base(const Path& requested, const Environment& environment);

/// A run's folder on this node's disk, owned as long as this object exists. Not accessible to other users.
class NodeFolder {
 public:
  /// Creates `base`/stoker-<run id>, empty. First deletes folders of this user's dead runs in `base`. If
  /// another live process uses that name (several Slurm nodes may share a disk), a number is appended.
  static Result<NodeFolder> create(const Path& base, const std::string& run_id);

  const Path& path() const { return path_; }
  Status remove() &&;
  /// Keeps the folder under a name that later runs do not delete, and returns it.
  Result<Path> keep() &&;

 private:
  NodeFolder(Path path, Fd owner) : path_(std::move(path)), owner_(std::move(owner)) {}

  Path path_;
  Fd owner_;
};

/// Stages all files into `folder`. Invalid, NotFound, Corrupt, NoSpace if one of them fails.
Result<TransferStats> stage_in(const StageRequest& request, const Path& folder, Progress& progress);

/// The error with a cure if it is NoSpace.
Status with_room_cure(Status problem);

}  // namespace stoker::stage
