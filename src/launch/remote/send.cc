#include "launch/remote/send.h"

#include <algorithm>
#include <chrono>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <unistd.h>

#include "base/language/counted.h"
#include "base/process.h"
#include "base/secrets.h"
#include "launch/start/snapshot.h"
#include "stage/listing.h"

namespace stoker::launch {
namespace {

constexpr std::chrono::minutes kPackPatience{5};
constexpr ByteCount kLargestFile = 10_MiB;
constexpr ByteCount kMaxBytes = 500_MiB;
constexpr std::size_t kMaxFiles = 20'000;
// Folders that never contain code.
constexpr std::string_view kNoCode[] = {"runs",  "__pycache__",    "node_modules",
                                        "wandb", "lightning_logs", "checkpoints"};

// Outside a repository: small files, except in hidden folders and virtual environments.
Result<CodeListing> walk(const Path& folder) {
  CodeListing listing;
  listing.root = folder;
  listing.inside = ".";
  std::error_code error;
  std::filesystem::recursive_directory_iterator each(folder, error);
  for (; !error && each != std::filesystem::end(each); each.increment(error)) {
    const Path name = each->path().filename();
    struct stat info{};
    if (::lstat(each->path().c_str(), &info) != 0) continue;
    if (S_ISDIR(info.st_mode)) {
      const bool is_code =
          !name.string().starts_with(".") && !path_exists(each->path() / "pyvenv.cfg") &&
          std::find(std::begin(kNoCode), std::end(kNoCode), name.string()) == std::end(kNoCode);
      if (!is_code) each.disable_recursion_pending();
      continue;
    }
    if (!S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode)) continue;
    const std::string relative = each->path().lexically_relative(folder).string();
    const bool is_large =
        S_ISREG(info.st_mode) && static_cast<std::uint64_t>(info.st_size) > kLargestFile.value;
    if (is_secret_file(relative)) {
      listing.secret.push_back(relative);
    } else {
      (is_large ? listing.left_out : listing.files).push_back(relative);
    }
    if (listing.files.size() > kMaxFiles) break;
  }
  if (error) return posix_error(printable(folder.string()), error.value());
  return listing;
}

// Converts names relative to the repository into names below this folder; drops all other names.
std::vector<std::string> below(const CodeListing& listing, const std::vector<std::string>& names,
                               const Path& folder) {
  std::vector<std::string> kept;
  for (const std::string& name : names) {
    const Path inside = listing.inside == "." ? Path(name) : Path(name).lexically_relative(listing.inside);
    if (inside.empty() || *inside.begin() == "..") continue;
    kept.push_back((folder / inside).lexically_normal().string());
  }
  return kept;
}

Status check_amount(const FilesToSend& what, const std::string& folder) {
  if (what.files.size() <= kMaxFiles && what.bytes <= kMaxBytes.value) return {};
  return invalid("{}: {}, {}: too much to send with a job (at most {} files, {})", folder,
                 counted(what.files.size(), "file"), rounded(ByteCount{what.bytes}), grouped(kMaxFiles),
                 rounded(kMaxBytes))
      .cure("exclude data with .gitignore, and use its path on the host");
}

}  // namespace

Result<FilesToSend> list_files_to_send(const std::string& job, const Path& here) {
  const Path file = (here / job).lexically_normal();
  const Path relative = file.lexically_relative(here);
  if (!path_exists(file)) return not_found("{}: no such file", printable(job));
  if (Path(job).is_absolute() || relative.empty() || *relative.begin() == "..")
    return invalid("{}: must be a relative path below the current folder (--host)", printable(job));
  const Path folder = relative.parent_path();
  auto listing = list_code({.folder = here / folder, .runs = here / "runs", .untracked_limit = kLargestFile});
  if (!listing.ok() && listing.error().code() == Code::not_found) listing = walk(here / folder);
  if (!listing.ok()) return std::move(listing).error();
  FilesToSend what;
  what.below = folder.string();
  what.files = below(*listing, listing->files, folder);
  what.left_out = below(*listing, listing->left_out, folder);
  what.secret = below(*listing, listing->secret, folder);
  // Included even if git ignores it.
  what.files.push_back(relative.string());
  std::sort(what.files.begin(), what.files.end());
  what.files.erase(std::unique(what.files.begin(), what.files.end()), what.files.end());
  std::erase_if(what.files, [&](const std::string& name) {
    struct stat info{};
    if (::lstat((here / name).c_str(), &info) != 0) return true;  // deleted without git rm
    if (S_ISREG(info.st_mode)) what.bytes += static_cast<std::uint64_t>(info.st_size);
    return !S_ISREG(info.st_mode) && !S_ISLNK(info.st_mode);
  });
  STOKER_RETURN_IF_ERROR(check_amount(what, folder.empty() ? "." : printable(folder.string())));
  return what;
}

Result<File> pack_files_to_send(const FilesToSend& what, const Path& here) {
  const TempDirectory folder;
  ::chmod(folder.path().c_str(), 0700);
  std::string names;
  for (const std::string& name : what.files) names += name + '\0';
  STOKER_RETURN_IF_ERROR(write_file(folder / "names", names));
  Command command;
  command.argv = {"tar",
                  "--create",
                  "--format=posix",
                  "--file=" + (folder / "tar").string(),
                  "--no-recursion",
                  "--null",
                  "--verbatim-files-from",
                  "--directory=" + here.string(),
                  "--files-from=" + (folder / "names").string()};
  STOKER_ASSIGN_OR_RETURN(done, run_program(command, Deadline::after(kPackPatience)));
  // 1: a file changed while it was read.
  if (done.exit.signal != 0 || done.exit.code > 1)
    return unavailable("tar: {}", printable(trim(done.err.substr(0, done.err.find('\n')))));
  // The folder is removed; the open file remains.
  return File::open_read(folder / "tar");
}

}  // namespace stoker::launch
