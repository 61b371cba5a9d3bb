#include "preflight/free_space.h"

#include <sys/statvfs.h>

#include "stoker/text.h"

namespace stoker::preflight {

FreeSpace within_quota(FreeSpace space, const Quota& quota) {
  if (quota.bytes_limit) {
    const ByteCount left{
        quota.bytes_limit->value > quota.used.value ? quota.bytes_limit->value - quota.used.value : 0};
    if (left < space.bytes) {
      space.bytes = left;
      space.bytes_limited_by = "of your quota";
    }
  }
  if (quota.files_limit) {
    const std::uint64_t left = *quota.files_limit > quota.files ? *quota.files_limit - quota.files : 0;
    if (!space.files || left < *space.files) {
      space.files = left;
      space.files_limited_by = "of your quota";
    }
  }
  return space;
}

Result<FreeSpace> free_space_of(const Path& folder, Deadline deadline) {
  struct statvfs about{};
  if (::statvfs(folder.c_str(), &about) != 0) return posix_error(printable(folder.string()), errno);
  FreeSpace space;
  space.bytes = {static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize};
  // Filesystems with dynamic inodes report 0 or an arbitrary number.
  if (about.f_files > 0 && about.f_files < (std::uint64_t{1} << 50)) space.files = about.f_favail;
  STOKER_ASSIGN_OR_RETURN(kind, filesystem_of(folder));
  const QuotaResult answer = query_quota(kind, folder, deadline);
  space.quota_error = answer.error;
  return answer.quota ? within_quota(space, *answer.quota) : space;
}

}  // namespace stoker::preflight
