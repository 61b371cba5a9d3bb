// Disks: a file that takes what is left, on a node's local disk or in the shared folder.
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/fault/act.h"
#include "lab/fault/ask.h"

namespace stoker::lab::fault {
namespace {

constexpr auto kShared = "shared";
constexpr auto kFileName = ".stoker-fault-fill";
// More than this is left free only on a disk that others use too.
constexpr ByteCount kMostFilled = 2_GiB;

Path folder_of(const Lab& lab, std::string_view target) {
  return target == kShared ? lab.shared() : lab.local_from_host(*lab.find(target));
}

// Takes every free block. Reserved in large pieces first, because that writes nothing on most filesystems.
Status take_all(const Path& path) {
  const Fd file(::open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!file) return posix_error(path.string(), errno);
  off_t size = 0;
  for (off_t piece = off_t{64} << 20; piece >= 4096;) {
    const int refused = ::posix_fallocate(file.get(), size, piece);
    if (refused == 0) {
      size += piece;
    } else if (refused == ENOSPC || refused == EFBIG) {
      piece /= 4;
    } else {
      return posix_error(path.string(), refused);
    }
    if (size > static_cast<off_t>(kMostFilled.value)) return {};  // somebody else freed space meanwhile
  }
  return {};
}

}  // namespace

Status prepare_fill(const Lab& lab, const Request& request, Entry* entry) {
  if (request.target != kShared) {
    OK_OR_RETURN(node, find_node(lab, request.target));
    entry->target = node->name;
  }
  const std::string disk = entry->target == kShared ? "shared disk" : "local disk";
  OK_OR_RETURN(free, free_space(folder_of(lab, entry->target)));
  if (free > kMostFilled) {
    return invalid(
               "{}: the {} is a folder of this host, where {} are free: filling it would fill the host (at "
               "most "
               "{})",
               entry->target, disk, rounded(free), to_text(kMostFilled))
        .cure("STOKER_LAB_DIR=/a/small/disk stoker lab up     (or: --mode namespaces, and a node's disk)");
  }
  entry->text = format("{} full ({} taken)", disk, rounded(free));
  return {};
}

Status fill(Lab& lab, Entry* entry) { return take_all(folder_of(lab, entry->target) / kFileName); }

Result<std::string> undo_fill(Lab& lab, const Entry& entry) {
  if (entry.target != kShared) RETURN_IF_ERROR(find_node(lab, entry.target).status());
  const Path folder = folder_of(lab, entry.target);
  const Status removed = remove_file(folder / kFileName);
  if (!removed.ok() && removed.code() != Code::not_found) return removed;
  OK_OR_RETURN(free, free_space(folder));
  return format("{} free", rounded(free));
}

}  // namespace stoker::lab::fault
