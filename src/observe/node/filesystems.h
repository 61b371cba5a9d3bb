// Bytes read and written on this node by kind of filesystem: shared ones (Lustre and NFS have counters that
// users may read) and node-local disks. The counters cover the whole node. Thread-compatible.
#pragma once

#include <string>
#include <vector>

#include "observe/node/counter.h"

namespace stoker::observe {

/// One line of /proc/self/mountinfo.
struct MountedFilesystem {
  std::string device;  ///< "0:52": the same for all mounts of one filesystem
  std::string point;   ///< "/scratch"
  std::string kind;    ///< "nfs4", "lustre", "ext4"
  std::string source;  ///< "server:/export", "/dev/vda"
};
/// Skips damaged lines.
std::vector<MountedFilesystem> parse_mounts(std::string_view mountinfo);
/// Whether nodes share filesystems of this kind: Lustre, NFS, GPFS, BeeGFS, FUSE and others.
bool is_shared_kind(std::string_view kind);

/// Counts since the filesystems were mounted, or since boot. Unset: not readable.
struct FilesystemUse {
  Counter read_bytes;
  Counter write_bytes;
  Counter opens;

  FilesystemUse& operator+=(const FilesystemUse& other);
};

/// From the stats file of one Lustre mount. Bytes are what programs requested, page cache included.
FilesystemUse parse_lustre_stats(std::string_view stats);
/// From /proc/self/mountstats: all NFS mounts, each filesystem once. Bytes are what the servers sent and
/// received.
FilesystemUse parse_nfs_stats(std::string_view mountstats, const std::vector<MountedFilesystem>& mounts);
/// From /proc/diskstats: the sum of these disks.
FilesystemUse parse_disk_stats(std::string_view diskstats, const std::vector<std::string>& disks);

class FilesystemReader {
 public:
  /// Finds the counters of the mounted filesystems, and the disks of this node.
  static FilesystemReader find(const NodeRoots& roots);

  bool has_shared() const { return has_nfs_ || !lustre_.empty(); }
  bool has_local() const { return !disks_.empty(); }
  FilesystemUse shared() const;
  FilesystemUse local() const;

  /// "lustre /scratch, nfs4 /home": shared filesystems with counters; "" without one.
  const std::string& counted() const { return counted_; }
  /// The shared filesystems whose counters users cannot read; "" without one.
  const std::string& uncounted() const { return uncounted_; }

 private:
  Path proc_;
  std::vector<MountedFilesystem> mounts_;
  std::vector<Path> lustre_;  // stats files
  bool has_nfs_ = false;
  std::vector<std::string> disks_;
  std::string counted_;
  std::string uncounted_;
};

}  // namespace stoker::observe
