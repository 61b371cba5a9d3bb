#include "launch/start/snapshot.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <set>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/json/json.h"
#include "base/process.h"
#include "base/secrets.h"
#include "launch/start/sent_files.h"

namespace stoker::launch {
namespace {

constexpr std::chrono::seconds kGitTimeout{60};

Result<std::string> git(std::vector<std::string> arguments, const Path& folder) {
  Command command;
  command.argv = {"git", "--no-optional-locks", "--no-pager"};
  command.argv.insert(command.argv.end(), arguments.begin(), arguments.end());
  command.directory = folder;
  STOKER_ASSIGN_OR_RETURN(done, run_program(command, Deadline::after(kGitTimeout), 64_MiB));
  if (!done.exit.ok())
    return not_found("code.snapshot: {}: {}", folder,
                     printable(trim(done.err.substr(0, done.err.find('\n')))));
  return std::move(done.out);
}

Status copy_bytes(const Path& from, const Path& to, mode_t mode) {
  const Fd in(::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!in) return posix_error(from.string(), errno);
  const Fd out(::open(to.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
  if (!out) return posix_error(to.string(), errno);
  for (;;) {
    ssize_t count = ::copy_file_range(in.get(), nullptr, out.get(), nullptr, std::size_t{1} << 30, 0);
    if (count == 0) return {};
    if (count > 0) continue;
    if (errno == EINTR) continue;
    if (errno != EXDEV && errno != EINVAL && errno != ENOSYS && errno != EOPNOTSUPP)
      return posix_error(to.string(), errno);
    break;
  }
  // Fallback for file systems without copy_file_range.
  std::string buffer(std::size_t{1} << 20, '\0');
  for (;;) {
    const ssize_t count = ::read(in.get(), buffer.data(), buffer.size());
    if (count == 0) return {};
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return posix_error(from.string(), errno);
    for (ssize_t done = 0; done < count;) {
      const ssize_t written =
          ::write(out.get(), buffer.data() + done, static_cast<std::size_t>(count - done));
      if (written < 0 && errno != EINTR) return posix_error(to.string(), errno);
      done += std::max<ssize_t>(written, 0);
    }
  }
}

Status copy_one(const Path& from, const Path& to, Snapshot& snapshot) {
  struct stat info{};
  // Deleted after git listed it: treated as deleted before.
  if (::lstat(from.c_str(), &info) != 0)
    return errno == ENOENT ? Status() : posix_error(from.string(), errno);
  if (S_ISLNK(info.st_mode)) {
    std::error_code error;
    std::filesystem::copy_symlink(from, to, error);
    if (error) return posix_error(to.string(), error.value());
  } else if (S_ISREG(info.st_mode)) {
    STOKER_RETURN_IF_ERROR(copy_bytes(from, to, (info.st_mode & S_IXUSR) != 0 ? 0555 : 0444));
    snapshot.bytes.value += static_cast<std::uint64_t>(info.st_size);
  } else {
    return {};  // a submodule's folder or a device is no code
  }
  ++snapshot.files;
  return {};
}

bool is_below(const Path& name, const Path& folder) {
  const Path relative = name.lexically_relative(folder);
  return !relative.empty() && *relative.begin() != "..";
}

// A folder without a repository may have been sent over ssh.
std::optional<CodeListing> list_sent(const Path& folder) {
  std::error_code error;
  const Path place = std::filesystem::canonical(folder, error);
  for (Path root = place; !error; root = root.parent_path()) {
    if (auto files = read_sent(root); files.ok())
      return CodeListing{.root = root,
                         .inside = place.lexically_relative(root),
                         .files = std::move(*files),
                         .left_out = {},
                         .secret = {}};
    if (root == root.parent_path()) break;
  }
  return std::nullopt;
}

}  // namespace

Result<CodeListing> list_code(const CodeSource& place) {
  CodeListing listing;
  const auto top = git({"rev-parse", "--show-toplevel"}, place.folder);
  if (!top.ok()) {
    auto sent = list_sent(place.folder);
    return sent ? Result<CodeListing>(std::move(*sent)) : top.status();
  }
  listing.root = std::string(trim(*top));
  std::error_code error;
  listing.inside = std::filesystem::canonical(place.folder, error).lexically_relative(listing.root);
  const Path runs = std::filesystem::weakly_canonical(place.runs, error).lexically_relative(listing.root);
  const bool has_runs_inside = !runs.empty() && *runs.begin() != "..";
  // Each name follows a status letter and a blank; "?" marks untracked files.
  STOKER_ASSIGN_OR_RETURN(
      names, git({"ls-files", "-z", "-t", "--cached", "--others", "--exclude-standard"}, listing.root));
  for (std::string_view entry : split(names, '\0')) {
    if (entry.size() < 3) continue;
    std::string name(entry.substr(2));
    const bool is_untracked = entry.front() == '?';
    if (is_untracked && has_runs_inside && is_below(name, runs)) continue;
    struct stat info{};
    const bool is_large = is_untracked && ::lstat((listing.root / name).c_str(), &info) == 0 &&
                          S_ISREG(info.st_mode) &&
                          static_cast<std::uint64_t>(info.st_size) > place.untracked_limit.value;
    if (is_untracked && is_secret_file(name)) {
      listing.secret.push_back(std::move(name));
    } else {
      (is_large ? listing.left_out : listing.files).push_back(std::move(name));
    }
  }
  std::sort(listing.files.begin(), listing.files.end());
  listing.files.erase(std::unique(listing.files.begin(), listing.files.end()), listing.files.end());
  return listing;
}

Result<CodeListing> list_code(const job::Job& job) {
  return list_code({.folder = job.working_directory,
                    .runs = job.record.directory,
                    .untracked_limit = job.code.untracked_limit});
}

Result<Snapshot> take_snapshot(const CodeListing& listing, const record::RunFolder& run) {
  const Path root = std::filesystem::absolute(run.folder() / "code").lexically_normal();
  Snapshot snapshot{.directory = (root / listing.inside).lexically_normal()};
  STOKER_RETURN_IF_ERROR(make_directories(snapshot.directory));
  std::set<Path> made;
  for (const std::string& name : listing.files) {
    const Path folder = (root / name).parent_path();
    if (made.insert(folder).second) STOKER_RETURN_IF_ERROR(make_directories(folder));
    STOKER_RETURN_IF_ERROR(
        copy_one(listing.root / name, root / name, snapshot).with_context("code.snapshot"));
  }
  nlohmann::ordered_json facts = {{"root", printable(listing.root.string())},
                                  {"files", snapshot.files},
                                  {"bytes", snapshot.bytes.value},
                                  {"left_out", nlohmann::ordered_json::array()},
                                  {"secret", nlohmann::ordered_json::array()}};
  for (const std::string& name : listing.left_out) facts["left_out"].push_back(printable(name));
  for (const std::string& name : listing.secret) facts["secret"].push_back(printable(name));
  STOKER_RETURN_IF_ERROR(write_file(root / ".stoker-snapshot.json", json_text(facts, 1) + "\n"));
  return snapshot;
}

std::vector<std::string> left_out_notes(const CodeListing& listing) {
  std::vector<std::string> notes;
  const auto note = [&](const std::vector<std::string>& names, std::string_view why) {
    constexpr std::size_t kShown = 3;
    if (names.empty()) return;
    std::vector<std::string> shown;
    for (std::size_t i = 0; i < std::min(kShown, names.size()); ++i) shown.push_back(printable(names[i]));
    const std::string more =
        names.size() > kShown ? format(" and {} more", grouped(names.size() - kShown)) : "";
    notes.push_back(format("code.snapshot: left out {}{}: {}", join(shown, ", "), more, why));
  };
  note(listing.secret, "may hold secrets and not in git (set them in the environment of the job)");
  note(listing.left_out, "not in git and over the limit (code.untracked_limit)");
  return notes;
}

bool needs_snapshot(const job::Job& job, const std::optional<record::RunFolder>& resumed) {
  return job.code.snapshot && !resumed;
}

}  // namespace stoker::launch
