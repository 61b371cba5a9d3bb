// A run's folder on a node's disk belongs to the process that has locked the file `.stoker-owner` in it; the
// kernel releases the lock when that process dies. Steps:
//   1. Create a folder with a hidden name, create the file in it and lock it.
//   2. Rename the folder to stoker-<run>: others now see it as owned.
//   3. At the end delete its contents, the file last.
// A process that finds a folder with an unlocked file deletes the folder: its run is dead. A folder without
// the file does not belong to Stoker, or was kept on purpose.
#include "stage/node.h"

#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "stage/copy.h"

namespace stoker::stage {
namespace {

constexpr std::string_view kOwner = ".stoker-owner";
constexpr std::string_view kPrefix = "stoker-";
constexpr std::string_view kHidden = ".stoker-new-";
constexpr std::string_view kKept = "kept-stoker-";
// Several Slurm nodes on one host, as in a lab.
constexpr int kMaxNodes = 1000;
constexpr std::time_t kOldSeconds = 3600;

// The locked file; nothing if another process holds the lock, or the file does not exist or belongs to
// another user.
Fd lock_owner_file(const Path& folder) {
  Fd file(::open((folder / kOwner).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0 || info.st_uid != ::geteuid()) return {};
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  // Between open and lock its owner may have deleted it.
  return ::fstat(file.get(), &info) == 0 && info.st_nlink > 0 ? std::move(file) : Fd();
}

// Deletes everything else before the file: as long as the file exists, another process can finish the
// deletion.
Status empty_and_remove(const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(folder));
  for (const std::string& name : names) {
    if (name != kOwner) STOKER_RETURN_IF_ERROR(remove_tree(folder / name));
  }
  return remove_tree(folder);
}

// A new folder may not be locked yet.
bool is_stale(const Path& folder) {
  struct stat info{};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         info.st_mtim.tv_sec + kOldSeconds < ::time(nullptr);
}

void remove_stale_folders(const Path& base) {
  const auto names = list_directory(base);
  for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
    const std::string& name = (*names)[i];
    if (name.starts_with(kHidden) && is_stale(base / name)) (void)remove_tree(base / name);
    if (!name.starts_with(kPrefix)) continue;
    if (const Fd owner = lock_owner_file(base / name)) (void)empty_and_remove(base / name);
  }
}

}  // namespace

Path node_local_base(const Path& requested, const Environment& environment) {
  if (!requested.empty()) return requested;
  for (std::string_view name : {"SLURM_TMPDIR", "TMPDIR"}) {
    if (Path base = variable(environment, name); !base.empty()) return base;
  }
  return "/tmp";
}

Result<NodeFolder> NodeFolder::create(const Path& base, const std::string& run_id) {
  STOKER_RETURN_IF_ERROR(make_directories(base));
  remove_stale_folders(base);
  const Path hidden = base / (std::string(kHidden) + random_name());
  STOKER_RETURN_IF_ERROR(make_directory(hidden));
  // Folders in /tmp are readable by others by default.
  if (::chmod(hidden.c_str(), 0700) != 0) return posix_error(hidden.string(), errno);
  STOKER_RETURN_IF_ERROR(File::create_new(hidden / kOwner).status());
  Fd owner = lock_owner_file(hidden);
  if (!owner) return unavailable("{}: its file {} cannot be locked", hidden, kOwner);
  for (int i = 1; i <= kMaxNodes; ++i) {
    const Path path = base / format("{}{}{}", kPrefix, run_id, i == 1 ? "" : format(".{}", i));
    // Fails if the target exists, because it contains the file.
    if (::rename(hidden.c_str(), path.c_str()) == 0) return NodeFolder(path, std::move(owner));
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) return posix_error(path.string(), errno);
  }
  (void)remove_tree(hidden);
  return exists("{}: this and {} other names are in use", base / (std::string(kPrefix) + run_id), kMaxNodes);
}

Status NodeFolder::remove() && { return empty_and_remove(path_); }

Result<Path> NodeFolder::keep() && {
  const Path kept =
      path_.parent_path() /
      format("{}{}-{}", kKept, path_.filename().string().substr(kPrefix.size()), random_name(4));
  STOKER_RETURN_IF_ERROR(rename_path(path_, kept));
  STOKER_RETURN_IF_ERROR(remove_file(kept / kOwner));
  return kept;
}

namespace {

Result<TransferStats> copy_all_in(const StageRequest& request, const Path& folder, Progress& progress) {
  TransferStats all;
  for (const Path& archive : request.unpack) {
    STOKER_ASSIGN_OR_RETURN(stats, unpack(archive, folder, {.links = request.links}, progress));
    all += stats;
  }
  for (const Path& source : request.copy) {
    STOKER_ASSIGN_OR_RETURN(stats, copy_in(source, folder, progress));
    all += stats;
  }
  return all;
}

}  // namespace

Status with_room_cure(Status problem) {
  if (problem.code() != Code::no_space) return problem;
  return std::move(problem).cure(
      "stage: {{directory: DIR}}, a folder on a disk with enough space on every node");
}

Result<TransferStats> stage_in(const StageRequest& request, const Path& folder, Progress& progress) {
  auto all = copy_all_in(request, folder, progress);
  if (!all.ok()) return with_room_cure(all.status());
  return all;
}

}  // namespace stoker::stage
