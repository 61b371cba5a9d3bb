// Disk faults: a file that fills a node's local disk or the shared folder.
#include <cerrno>
#include <fcntl.h>
#include <unistd.h>

#include "base/file.h"
#include "lab/fault/actions.h"
#include "lab/fault/slurm_query.h"

namespace stoker::lab::fault {
namespace {

constexpr auto kShared = "shared";
constexpr auto kFileName = ".stoker-fault-fill";
// Larger free space indicates a disk shared with other programs.
constexpr ByteCount kMaxFilled = 2_GiB;

Path folder_of(const Lab& lab, std::string_view target) {
  return target == kShared ? lab.shared() : lab.local_from_host(*lab.find(target));
}

// Allocates every free block, in large pieces first, which avoids writing on most file systems.
Status fill_disk(const Path& path) {
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
    if (size > static_cast<off_t>(kMaxFilled.value)) return {};  // another process freed space
  }
  return {};
}

}  // namespace

Status prepare_fill(const Lab& lab, const FaultRequest& request, JournalEntry* entry) {
  if (request.target != kShared) {
    STOKER_ASSIGN_OR_RETURN(node, find_node(lab, request.target));
    entry->target = node->name;
  }
  const std::string disk = entry->target == kShared ? "shared disk" : "local disk";
  STOKER_ASSIGN_OR_RETURN(free, free_space(folder_of(lab, entry->target)));
  if (free > kMaxFilled) {
    return invalid(
               "{}: the {} is a folder of this host with {} free: filling it would fill the host (limit {})",
               entry->target, disk, rounded(free), to_text(kMaxFilled))
        .cure("STOKER_LAB_DIR=/a/small/disk stoker lab up     (or: --mode namespaces, and a node's disk)");
  }
  entry->text = format("{} full ({} taken)", disk, rounded(free));
  return {};
}

Status fill(Lab& lab, JournalEntry* entry) { return fill_disk(folder_of(lab, entry->target) / kFileName); }

Result<std::string> undo_fill(Lab& lab, const JournalEntry& entry) {
  if (entry.target != kShared) STOKER_RETURN_IF_ERROR(find_node(lab, entry.target).status());
  const Path folder = folder_of(lab, entry.target);
  const Status removed = remove_file(folder / kFileName);
  if (!removed.ok() && removed.code() != Code::not_found) return removed;
  STOKER_ASSIGN_OR_RETURN(free, free_space(folder));
  return format("{} free", rounded(free));
}

}  // namespace stoker::lab::fault
