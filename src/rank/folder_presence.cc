#include "rank/folder_presence.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <system_error>
#include <utility>

#include "stoker/text.h"

namespace stoker::rank {
namespace {

using namespace std::chrono_literals;

constexpr Duration kCheckEvery = 1s;

FolderIdentity identity_of(const struct stat& info) {
  return {static_cast<std::uint64_t>(info.st_dev), static_cast<std::uint64_t>(info.st_ino)};
}

// The kernel knows the present path of an open folder. The path of a removed one leads nowhere.
Path present_path(const Fd& opened, const FolderIdentity& identity) {
  std::error_code error;
  Path path = std::filesystem::read_symlink(format("/proc/self/fd/{}", opened.get()), error);
  struct stat info{};
  const bool is_there = !error && ::stat(path.c_str(), &info) == 0 && identity_of(info) == identity;
  return is_there ? path : Path();
}

}  // namespace

FolderState judge_folder(const FolderIdentity& opened, const FolderFacts& facts) {
  switch (facts.error) {
    case 0:
      return facts.identity == opened ? FolderState::present : FolderState::replaced;
    case ENOENT:
    case ENOTDIR:
    case ESTALE:
      return facts.moved_to.empty() ? FolderState::removed : FolderState::moved;
    default:
      return FolderState::present;
  }
}

std::string describe_loss(const FolderLoss& loss) {
  const std::string folder =
      format("{} {}", loss.is_run ? "run folder" : "attempt folder", printable(loss.folder.string()));
  const std::string now = printable(loss.moved_to.string());
  switch (loss.state) {
    case FolderState::present:
      break;
    case FolderState::removed:
      return format("{}: was removed during the run; {} in it are lost", folder,
                    loss.is_run ? "logs, events, metrics and checkpoints" : "logs, events and metrics");
    case FolderState::moved:
      return format("{}: was moved to {} during the run; new files are not written there", folder, now);
    case FolderState::replaced:
      return format("{}: was replaced during the run; its logs, events and metrics are {}", folder,
                    now.empty() ? "lost" : "in " + now);
  }
  return format("{}: is in its place", folder);
}

std::string undo_command(const FolderLoss& loss) {
  if (loss.state != FolderState::moved) return "";
  return format("mv {} {}", shell_quote(loss.moved_to.string()), shell_quote(loss.folder.string()));
}

FolderPresence::FolderPresence(const Path& attempt) {
  // Ranks use absolute paths, too: a moved working directory counts as a moved run.
  std::error_code error;
  const Path folder = std::filesystem::absolute(attempt, error).lexically_normal();
  add(folder.parent_path().parent_path(), true);
  add(folder, false);
}

void FolderPresence::add(const Path& path, bool is_run) {
  Fd opened(::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  struct stat info{};
  if (!opened || ::fstat(opened.get(), &info) != 0) return;
  folders_.push_back({std::move(opened), identity_of(info), path, is_run});
}

std::optional<FolderLoss> FolderPresence::find_loss() const {
  for (const Folder& folder : folders_) {
    struct stat info{};
    FolderFacts facts;
    if (::stat(folder.path.c_str(), &info) != 0) {
      facts.error = errno;
    } else {
      facts.identity = identity_of(info);
    }
    if (judge_folder(folder.identity, facts) == FolderState::present) continue;
    facts.moved_to = present_path(folder.opened, folder.identity);
    return FolderLoss{judge_folder(folder.identity, facts), folder.is_run, folder.path, facts.moved_to};
  }
  return std::nullopt;
}

std::optional<FolderLoss> FolderPresence::check(MonoTime now) {
  if (is_reported_ || (last_check_ && now - *last_check_ < kCheckEvery)) return std::nullopt;
  last_check_ = now;
  std::optional<FolderLoss> loss = find_loss();
  const bool was_suspected = std::exchange(is_suspected_, loss.has_value());
  if (!was_suspected) return std::nullopt;
  is_reported_ = loss.has_value();
  return loss;
}

std::optional<FolderLoss> FolderPresence::check_now() {
  if (is_reported_) return std::nullopt;
  std::optional<FolderLoss> loss = find_loss();
  is_reported_ = loss.has_value();
  return loss;
}

}  // namespace stoker::rank
