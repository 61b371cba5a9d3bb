// Whether the folders of a run are still where they were opened. A user or a purge of the disk may remove,
// move or replace them while ranks work: open files then accept output that no reader finds. Used by every
// supervisor. A FolderPresence belongs to one thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/time.h"

namespace stoker::rank {

/// Device and inode of a folder. Both stay the same while the folder is open.
struct FolderIdentity {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  friend bool operator==(const FolderIdentity&, const FolderIdentity&) = default;
};

/// What stat(2) returned for the path of a folder.
struct FolderFacts {
  int error = 0;            ///< errno; 0: `identity` is the entry at this path
  FolderIdentity identity;  ///< may be a different folder of the same name
  Path moved_to;            ///< present path of the opened folder, if it has a different one
};

enum class FolderState { present, removed, moved, replaced };

/// The state of a folder that was opened as `opened`. ENOENT, ENOTDIR and ESTALE mean that it is gone; every
/// other error of a filesystem counts as present.
FolderState judge_folder(const FolderIdentity& opened, const FolderFacts& facts);

/// A folder that is no longer where it was opened.
struct FolderLoss {
  FolderState state = FolderState::removed;
  bool is_run = true;  ///< the run folder; false: only the attempt's folder in it
  Path folder;
  Path moved_to;  ///< where the opened folder is now; empty if it is removed or unknown
};

/// "run folder /runs/x: was removed during the run; logs, events, metrics and checkpoints in it are lost"
std::string describe_loss(const FolderLoss& loss);
/// The command that undoes the loss: "mv /new /runs/x"; "" without one.
std::string undo_command(const FolderLoss& loss);

/// Observes the run folder and the folder of an attempt in it. Each loss of them is reported once.
class FolderPresence {
 public:
  FolderPresence() = default;
  /// Opens `attempt`, which is `<run>/attempts/<n>`, and its run folder. A folder that cannot be opened is
  /// not observed.
  explicit FolderPresence(const Path& attempt);

  /// Checks once a second at most, with two stat(2). A loss counts when two checks in a row agree.
  std::optional<FolderLoss> check(MonoTime now);
  /// Checks immediately. For the end of a run.
  std::optional<FolderLoss> check_now();

 private:
  struct Folder {
    Fd opened;
    FolderIdentity identity;
    Path path;
    bool is_run = true;
  };
  void add(const Path& path, bool is_run);
  std::optional<FolderLoss> find_loss() const;

  std::vector<Folder> folders_;  // the run folder first: it explains the loss of all folders in it
  std::optional<MonoTime> last_check_;
  bool is_suspected_ = false;
  bool is_reported_ = false;
};

}  // namespace stoker::rank
