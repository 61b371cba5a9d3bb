// Quotas of a user from filesystem tools: `lfs` of Lustre, `quota` of NFS, `mmlsquota` of GPFS (Storage
// Scale), `beegfs-ctl` and `beegfs` of BeeGFS; from the kernel otherwise. Used for free space. Read-only.
// Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "stoker/bytes.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::preflight {

/// Usage and limits. Empty limit: unlimited.
struct Quota {
  ByteCount used;
  std::optional<ByteCount> bytes_limit;
  std::uint64_t files = 0;
  std::optional<std::uint64_t> files_limit;

  friend bool operator==(const Quota&, const Quota&) = default;
};

/// Parses the output of `lfs quota -q` and `quota -w -p`: the first filesystem row, with its name on the same
/// or on a separate line. Uses the lower of soft and hard limit; nothing without such a row.
std::optional<Quota> parse_quota(std::string_view text);

/// The user, group and folder of a quota.
struct QuotaTarget {
  uid_t user = 0;
  gid_t group = 0;     ///< group of new files in the folder
  std::string device;  ///< of the mount: "gpfs0" or "/dev/gpfs0"; "" for any
  Path folder;
};

/// Parses `mmlsquota -Y` by the column names of its header. Uses the tightest quota of user, group and
/// fileset; with per-fileset quotas only filesets in the path. In-doubt blocks count as used.
std::optional<Quota> parse_gpfs_quota(std::string_view text, const QuotaTarget& target);

/// Parses `beegfs-ctl --getquota --csv`. With several storage pools the largest remaining quota counts,
/// because the pool of the folder is unknown.
std::optional<Quota> parse_beegfs_csv(std::string_view text, std::uint64_t id);

/// Parses `beegfs quota list-usage --raw --output ndjson` of BeeGFS 8: rows of the user and the group.
std::optional<Quota> parse_beegfs_lines(std::string_view text, const QuotaTarget& target);

enum class Filesystem { lustre, nfs, gpfs, beegfs, other };

/// From statfs(2). Fails if statfs fails.
Result<Filesystem> filesystem_of(const Path& folder);

struct QuotaResult {
  std::optional<Quota> quota;
  std::string error;  ///< why the quota is unknown; "" without an error
};

/// Runs the quota program of the filesystem, or queries the kernel. Returns by the deadline.
QuotaResult query_quota(Filesystem kind, const Path& folder, Deadline deadline);

}  // namespace stoker::preflight
