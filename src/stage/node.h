// One node's part in staging: what a job wants on the node's own disk is brought there before its ranks
// start, and what it wants back is copied away after they have ended. Used by `stoker stage`, which runs once
// per node. Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "base/progress.h"
#include "base/status.h"
#include "stage/unpack.h"

namespace stoker::stage {

/// What to bring and what to take away.
struct Wanted {
  std::vector<Path> unpack;       ///< archives
  std::vector<Path> copy;         ///< files and folders
  std::vector<std::string> back;  ///< names below the folder on the node
  OutsideLinks links = OutsideLinks::refused;
};

/// Where runs have their folders on this node: `wish` if one is given, else SLURM_TMPDIR, TMPDIR or /tmp.
Path base_on_node(const Path& wish, const Environment& environment);

/// A run's folder on this node's disk, ours while this object lives. Nobody else can look into it.
class NodeFolder {
 public:
  /// `base`/stoker-<run id>, empty. What dead runs of this user left in `base` goes first. Where another
  /// living process has that name (several nodes of Slurm may share a disk) a number is put behind it.
  static Result<NodeFolder> create(const Path& base, const std::string& run_id);

  const Path& path() const { return path_; }
  Status remove() &&;
  /// Leaves it there under a name by which no later run removes it, and returns that.
  Result<Path> keep() &&;

 private:
  NodeFolder(Path path, Fd owner) : path_(std::move(path)), owner_(std::move(owner)) {}

  Path path_;
  Fd owner_;
};

/// Brings everything into `folder`. Invalid, NotFound, Corrupt, NoSpace: something of it cannot be brought.
Result<Moved> stage_in(const Wanted& wanted, const Path& folder, Progress& progress);

/// Copies back what is there of `wanted.back` into `to`, which is made. One that is missing is named in
/// `missing` and is no error; after one that cannot be copied the others still are, and the first error is
/// returned.
Result<Moved> stage_back(const Wanted& wanted, const Path& folder, const Path& to,
                         std::vector<std::string>* missing, Progress& progress);

}  // namespace stoker::stage
