#include "stage/copy.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "stage/archive.h"
#include "stage/publish.h"
#include "stage/write.h"

namespace stoker::stage {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCopyPiece = 4u << 20;
constexpr int kDeepest = 256;

enum class Changes { refused, accepted };

// A file, or a folder with its contents, as a source of entries.
class CopyTree final : public EntrySource {
 public:
  // `name`: name in the target folder.
  CopyTree(Path source, std::string name, Changes changes, Progress& progress)
      : source_(std::move(source)), name_(std::move(name)), changes_(changes), progress_(progress) {}

  Result<std::vector<ArchiveEntry>> list() override {
    std::vector<ArchiveEntry> entries;
    STOKER_RETURN_IF_ERROR(add(name_, 0, entries));
    return entries;
  }

  Status read(const ArchiveEntry& entry, const ByteSink& piece) const override {
    const Path path = place_of(entry.name);
    STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
    std::vector<std::byte> buffer(std::min<std::uint64_t>(kCopyPiece, entry.bytes));
    for (std::uint64_t done = 0; done < entry.bytes;) {
      const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), entry.bytes - done));
      STOKER_RETURN_IF_ERROR(file.read_at(done, part));
      STOKER_RETURN_IF_ERROR(piece(part));
      done += part.size();
    }
    struct stat now{};
    if (::fstat(file.fd(), &now) != 0) return posix_error(path.string(), errno);
    const bool is_same =
        static_cast<std::uint64_t>(now.st_size) == entry.bytes && now.st_mtim.tv_sec == entry.mtime;
    if (is_same || changes_ == Changes::accepted) return {};
    return unavailable("{}: changed while it was being copied", path);
  }

 private:
  Status add(const std::string& name, int depth, std::vector<ArchiveEntry>& entries) {
    const Path path = place_of(name);
    if (progress_.stop_requested()) return cancelled("stage: interrupted");
    if (depth > kDeepest) return invalid("{}: nested more than {} folders deep", path, kDeepest);
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return posix_error(path.string(), errno);
    ArchiveEntry entry{.name = name};
    entry.mode = info.st_mode & 07777;
    entry.mtime = info.st_mtim.tv_sec;
    if (S_ISREG(info.st_mode)) {
      entry.bytes = static_cast<std::uint64_t>(info.st_size);
    } else if (S_ISDIR(info.st_mode)) {
      entry.kind = EntryKind::folder;
    } else if (S_ISLNK(info.st_mode)) {
      entry.kind = EntryKind::symbolic_link;
      std::error_code error;
      entry.link = fs::read_symlink(path, error).string();
      if (error) return posix_error(path.string(), error.value());
    } else {
      return {};
    }
    const bool is_folder = entry.kind == EntryKind::folder;
    entries.push_back(std::move(entry));
    if (!is_folder) return {};
    STOKER_ASSIGN_OR_RETURN(names, list_directory(path));
    for (const std::string& each : names) STOKER_RETURN_IF_ERROR(add(name + "/" + each, depth + 1, entries));
    return {};
  }

  Path place_of(const std::string& name) const {
    return name.size() == name_.size() ? source_ : source_ / name.substr(name_.size() + 1);
  }

  const Path source_;
  const std::string name_;
  const Changes changes_;
  Progress& progress_;
};

// Ensures that everything written below `folder` is on its disk or file server.
Status sync_filesystem(const Path& folder) {
  const Fd opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened || ::syncfs(opened.get()) != 0) return posix_error(folder.string(), errno);
  return {};
}

// Uses the protocol in write.cc.
Result<TransferStats> copy(const Path& source, const Path& target, Changes changes, Progress& progress) {
  const Path folder = target.parent_path();
  const std::string name = target.filename().string();
  STOKER_ASSIGN_OR_RETURN(pending, PendingFolder::create(folder));
  CopyTree tree(source, name, changes, progress);
  STOKER_ASSIGN_OR_RETURN(entries, tree.list());
  STOKER_RETURN_IF_ERROR(check_free_space(printable(name), space_needed(entries), folder));
  STOKER_ASSIGN_OR_RETURN(stats, write_entries(tree, entries, pending.path(), 0, progress));
  if (changes == Changes::accepted) STOKER_RETURN_IF_ERROR(sync_filesystem(pending.path()));
  STOKER_RETURN_IF_ERROR(std::move(pending).publish());
  return stats;
}

}  // namespace

Result<TransferStats> copy_in(const Path& source, const Path& folder, Progress& progress) {
  // "data/" has the name "data".
  const Path clean = (source / "").lexically_normal().parent_path();
  return copy(clean, folder / clean.filename(), Changes::refused, progress);
}

Result<TransferStats> copy_out(const Path& source, const Path& target, Progress& progress) {
  STOKER_RETURN_IF_ERROR(make_directories(target.parent_path()));
  return copy(source, target, Changes::accepted, progress);
}

}  // namespace stoker::stage
