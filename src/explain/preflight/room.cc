#include "explain/preflight/room.h"

#include <sys/statvfs.h>

#include "base/text.h"

namespace stoker::explain {

Room room_within(Room room, const Quota& quota) {
  if (quota.most) {
    const ByteCount left{quota.most->value > quota.used.value ? quota.most->value - quota.used.value : 0};
    if (left < room.bytes) {
      room.bytes = left;
      room.bytes_by = "of your quota";
    }
  }
  if (quota.most_files) {
    const std::uint64_t left = *quota.most_files > quota.files ? *quota.most_files - quota.files : 0;
    if (!room.files || left < *room.files) {
      room.files = left;
      room.files_by = "of your quota";
    }
  }
  return room;
}

Result<Room> room_of(const Path& folder, Deadline deadline) {
  struct statvfs about{};
  if (::statvfs(folder.c_str(), &about) != 0) return posix_error(printable(folder.string()), errno);
  Room room;
  room.bytes = {static_cast<std::uint64_t>(about.f_bavail) * about.f_frsize};
  // Filesystems that make inodes as they need them say 0, or what is no number of files.
  if (about.f_files > 0 && about.f_files < (std::uint64_t{1} << 50)) room.files = about.f_favail;
  OK_OR_RETURN(kind, filesystem_of(folder));
  const QuotaAnswer answer = ask_quota(kind, folder, deadline);
  room.quota_trouble = answer.trouble;
  return answer.quota ? room_within(room, *answer.quota) : room;
}

}  // namespace stoker::explain
