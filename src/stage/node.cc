// A run's folder on a node's disk belongs to the process that has locked the file `.stoker-owner` in it; the
// kernel unlocks it when that process dies, however it does. So:
//   1. a folder of a hidden name is made, the file in it made and locked
//   2. the folder is renamed to stoker-<run>                       <- others see it, and that it is owned
//   3. at the end all in it is removed, the file last
// Whoever finds a folder whose file nobody has locked removes it: its run is dead. A folder without the file
// is none of ours, or was kept on purpose.
#include "stage/node.h"

#include <algorithm>
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
// Nodes of Slurm on one host, as in a lab.
constexpr int kMostNodes = 1000;
constexpr std::time_t kOldSeconds = 3600;

std::string value_of(const Environment& environment, std::string_view name) {
  for (const auto& [key, value] : environment) {
    if (key == name) return value;
  }
  return "";
}

// What is wanted back must be below the folder, also where somebody put a link in the way.
Result<Path> inside(const Path& folder, const std::string& name) {
  std::error_code error;
  const Path root = std::filesystem::weakly_canonical(folder, error);
  const Path path = std::filesystem::weakly_canonical(folder / name, error);
  const auto [end, unused] = std::mismatch(root.begin(), root.end(), path.begin(), path.end());
  if (error || end != root.end() || path == root)
    return invalid("stage.back: '{}' leads out of the staged folder", printable(name));
  return path;
}

// The file, locked; nothing when another process has it, or it is not there or not ours.
Fd own(const Path& folder) {
  Fd file(::open((folder / kOwner).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
  struct stat info{};
  if (!file || ::fstat(file.get(), &info) != 0 || info.st_uid != ::geteuid()) return {};
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) return {};
  // Between open and lock its owner may have removed it.
  return ::fstat(file.get(), &info) == 0 && info.st_nlink > 0 ? std::move(file) : Fd();
}

// All but the file first: as long as it is there somebody else can finish what we do not.
Status empty_and_remove(const Path& folder) {
  OK_OR_RETURN(names, list_directory(folder));
  for (const std::string& name : names) {
    if (name != kOwner) RETURN_IF_ERROR(remove_tree(folder / name));
  }
  return remove_tree(folder);
}

// A new one that is not locked yet may be about to be.
bool is_old_and_ours(const Path& folder) {
  struct stat info{};
  return ::lstat(folder.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == ::geteuid() &&
         info.st_mtim.tv_sec + kOldSeconds < ::time(nullptr);
}

void remove_what_the_dead_left(const Path& base) {
  const auto names = list_directory(base);
  for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
    const std::string& name = (*names)[i];
    if (name.starts_with(kHidden) && is_old_and_ours(base / name)) (void)remove_tree(base / name);
    if (!name.starts_with(kPrefix)) continue;
    if (const Fd owner = own(base / name)) (void)empty_and_remove(base / name);
  }
}

}  // namespace

Path base_on_node(const Path& wish, const Environment& environment) {
  if (!wish.empty()) return wish;
  for (std::string_view name : {"SLURM_TMPDIR", "TMPDIR"}) {
    if (Path base = value_of(environment, name); !base.empty()) return base;
  }
  return "/tmp";
}

Result<NodeFolder> NodeFolder::create(const Path& base, const std::string& run_id) {
  RETURN_IF_ERROR(make_directories(base));
  remove_what_the_dead_left(base);
  const Path hidden = base / (std::string(kHidden) + random_name());
  RETURN_IF_ERROR(make_directory(hidden));
  // In /tmp everybody could look.
  if (::chmod(hidden.c_str(), 0700) != 0) return posix_error(hidden.string(), errno);
  RETURN_IF_ERROR(File::create_new(hidden / kOwner).status());
  Fd owner = own(hidden);
  if (!owner) return unavailable("{}: its file {} cannot be locked", hidden, kOwner);
  for (int i = 1; i <= kMostNodes; ++i) {
    const Path path = base / format("{}{}{}", kPrefix, run_id, i == 1 ? "" : format(".{}", i));
    // Never over one that is there: it has the file in it.
    if (::rename(hidden.c_str(), path.c_str()) == 0) return NodeFolder(path, std::move(owner));
    if (errno != EEXIST && errno != ENOTEMPTY && errno != ENOTDIR) return posix_error(path.string(), errno);
  }
  (void)remove_tree(hidden);
  return exists("{}: this and {} more names are taken", base / (std::string(kPrefix) + run_id), kMostNodes);
}

Status NodeFolder::remove() && { return empty_and_remove(path_); }

Result<Path> NodeFolder::keep() && {
  const Path kept =
      path_.parent_path() /
      format("{}{}-{}", kKept, path_.filename().string().substr(kPrefix.size()), random_name(4));
  RETURN_IF_ERROR(rename_path(path_, kept));
  RETURN_IF_ERROR(remove_file(kept / kOwner));
  return kept;
}

namespace {

Result<Moved> bring(const Wanted& wanted, const Path& folder, Progress& progress) {
  Moved all;
  for (const Path& archive : wanted.unpack) {
    OK_OR_RETURN(moved, unpack(archive, folder, {.links = wanted.links}, progress));
    all += moved;
  }
  for (const Path& source : wanted.copy) {
    OK_OR_RETURN(moved, copy_in(source, folder, progress));
    all += moved;
  }
  return all;
}

}  // namespace

Result<Moved> stage_in(const Wanted& wanted, const Path& folder, Progress& progress) {
  auto all = bring(wanted, folder, progress);
  if (all.ok() || all.status().code() != Code::no_space) return all;
  return Status(all.status())
      .cure("stage: {{directory: DIR}}, a folder of a disk that has room on every node");
}

Result<Moved> stage_back(const Wanted& wanted, const Path& folder, const Path& to,
                         std::vector<std::string>* missing, Progress& progress) {
  Moved all;
  Status problem = make_directories(to);
  for (const std::string& name : wanted.back) {
    auto source = inside(folder, name);
    if (source.ok() && !path_exists(*source)) {
      missing->push_back(name);
      continue;
    }
    // "a/results/" goes to "a" as "results", whatever it is a link to.
    const Path clean = (Path(name) / "").lexically_normal().parent_path();
    const auto moved =
        source.ok() ? copy_back(*source, to / clean, progress) : Result<Moved>(std::move(source).error());
    if (moved.ok()) all += *moved;
    if (!moved.ok() && problem.ok()) problem = moved.status();
  }
  if (!problem.ok()) return problem;
  return all;
}

}  // namespace stoker::stage
