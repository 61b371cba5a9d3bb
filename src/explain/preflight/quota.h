// What somebody may use of a filesystem, as its own programs tell it: `lfs` of Lustre, `quota` of NFS,
// `mmlsquota` of GPFS (Storage Scale), `beegfs-ctl` and `beegfs` of BeeGFS; the kernel elsewhere. Used for
// the room that a job finds. Looks; thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <sys/types.h>

#include "base/bytes.h"
#include "base/status.h"
#include "base/time.h"

namespace stoker::explain {

/// What somebody has used of what he may use. Empty: no limit.
struct Quota {
  ByteCount used;
  std::optional<ByteCount> most;
  std::uint64_t files = 0;
  std::optional<std::uint64_t> most_files;

  friend bool operator==(const Quota&, const Quota&) = default;
};

/// Reads what `lfs quota -q` and `quota -w -p` print: the first row of a filesystem, in one line or with its
/// name on a line of its own. The lower of soft and hard limit counts; nothing without such a row.
std::optional<Quota> parse_quota(std::string_view text);

/// Whose quota is looked for, and where.
struct QuotaOf {
  uid_t user = 0;
  gid_t group = 0;     ///< what new files in the folder belong to
  std::string device;  ///< of the mount: "gpfs0" or "/dev/gpfs0"; "" for any
  Path folder;
};

/// Reads `mmlsquota -Y`: columns by the names of its header. Of the user's row, the group's and that of the
/// fileset the one that leaves the least counts; with quotas of each fileset only those whose name is part of
/// the path. What is in doubt counts as used.
std::optional<Quota> parse_gpfs_quota(std::string_view text, const QuotaOf& of);

/// Reads `beegfs-ctl --getquota --csv`. With several storage pools the row that leaves the most counts, since
/// nobody says in which of them the folder lies.
std::optional<Quota> parse_beegfs_csv(std::string_view text, std::uint64_t id);

/// Reads `beegfs quota list-usage --raw --output ndjson` of BeeGFS 8, the user's and the group's rows.
std::optional<Quota> parse_beegfs_lines(std::string_view text, const QuotaOf& of);

enum class Filesystem { lustre, nfs, gpfs, beegfs, other };

/// By what statfs(2) says. Fails when it fails.
Result<Filesystem> filesystem_of(const Path& folder);

struct QuotaAnswer {
  std::optional<Quota> quota;
  std::string trouble;  ///< why nothing is known although there may be a quota; "" when all is well
};

/// Asks the program of that kind of filesystem, or the kernel. Ends by the deadline.
QuotaAnswer ask_quota(Filesystem kind, const Path& folder, Deadline deadline);

}  // namespace stoker::explain
