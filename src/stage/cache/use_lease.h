// Which processes use which dataset of a cache. A dataset in use loses no shard. A lease is a file with the
// identity of a process; it ends with the process. Thread-safe: the folder is the only state.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "record/state.h"
#include "stage/cache/cache_folder.h"
#include "stoker/status.h"

namespace stoker::stage {

/// The use of a dataset by a living process.
struct DatasetLease {
  std::string version;
  record::ProcessIdentity process;
};

/// Leases the dataset to a process, which may be a different one than this, such as the shell of a batch
/// script, until that process has ended. Returns the lease's file; removing it ends the lease.
Result<Path> begin_lease(const CacheFolder& cache, std::string_view version,
                         const record::ProcessIdentity& process);

/// The lease of this process, while the object exists.
class OwnLease {
 public:
  static Result<OwnLease> begin(const CacheFolder& cache, std::string_view version);
  OwnLease(OwnLease&& other) noexcept : file_(std::exchange(other.file_, {})) {}
  OwnLease& operator=(OwnLease&&) = delete;
  ~OwnLease();
  /// Shows hosts and containers that cannot see this process that it lives: call it at least once a day.
  void refresh() const;

 private:
  explicit OwnLease(Path file) : file_(std::move(file)) {}
  Path file_;
};

/// All leases of living processes. Files of dead ones are removed. A process in a container or on a different
/// node cannot be seen: its lease counts for a day after its last heartbeat.
Result<std::vector<DatasetLease>> living_leases(const CacheFolder& cache);

}  // namespace stoker::stage
