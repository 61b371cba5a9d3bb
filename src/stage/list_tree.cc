#include "stage/list_tree.h"

#include <map>
#include <sys/stat.h>

namespace stoker::stage {
namespace {

constexpr int kDeepest = 256;

class TreeLister {
 public:
  TreeLister(const Path& source, const std::string& name, Progress& progress, TreeUse use)
      : source_(source), name_(name), progress_(progress), is_in_use_(use == TreeUse::in_use) {}

  Result<std::vector<ArchiveEntry>> run() {
    STOKER_RETURN_IF_ERROR(add(source_, name_, 0));
    return std::move(entries_);
  }

 private:
  Status add(const Path& path, const std::string& name, int depth) {
    if (progress_.stop_requested()) return cancelled("stage: interrupted");
    if (depth > kDeepest) return invalid("{}: nested more than {} folders deep", path, kDeepest);
    struct stat info{};
    if (::lstat(path.c_str(), &info) != 0) return vanished(posix_error(path.string(), errno));
    ArchiveEntry entry{.name = name};
    entry.mode = info.st_mode & 07777;
    entry.mtime = info.st_mtim.tv_sec;
    entry.mtime_ns = static_cast<std::uint32_t>(info.st_mtim.tv_nsec);
    if (S_ISREG(info.st_mode)) {
      add_file(std::move(entry), info);
      return {};
    }
    if (S_ISLNK(info.st_mode)) {
      entry.kind = EntryKind::symbolic_link;
      std::error_code error;
      entry.link = std::filesystem::read_symlink(path, error).string();
      if (error) return vanished(posix_error(path.string(), error.value()));
      entries_.push_back(std::move(entry));
      return {};
    }
    if (!S_ISDIR(info.st_mode)) return {};
    entry.kind = EntryKind::folder;
    entries_.push_back(std::move(entry));
    const auto names = list_directory(path);
    if (!names.ok()) return vanished(names.status());
    for (const std::string& each : *names)
      STOKER_RETURN_IF_ERROR(add(path / each, name + "/" + each, depth + 1));
    return {};
  }

  Status vanished(Status status) const {
    return is_in_use_ && status.code() == Code::not_found ? Status() : status;
  }

  void add_file(ArchiveEntry entry, const struct stat& info) {
    entry.bytes = static_cast<std::uint64_t>(info.st_size);
    if (info.st_nlink > 1 && !is_in_use_) {
      const auto [first, is_new] = names_.emplace(std::pair(info.st_dev, info.st_ino), entry.name);
      if (!is_new) {
        entry.kind = EntryKind::hard_link;
        entry.link = first->second;
        entry.bytes = 0;
      }
    }
    entries_.push_back(std::move(entry));
  }

  const Path& source_;
  const std::string& name_;
  Progress& progress_;
  const bool is_in_use_;
  std::vector<ArchiveEntry> entries_;
  std::map<std::pair<dev_t, ino_t>, std::string> names_;  // of files with several
};

}  // namespace

Result<std::vector<ArchiveEntry>> list_tree(const Path& source, const std::string& name, Progress& progress,
                                            TreeUse use) {
  return TreeLister(source, name, progress, use).run();
}

Path source_of(const ArchiveEntry& entry, const Path& source, const std::string& name) {
  return entry.name.size() == name.size() ? source : source / entry.name.substr(name.size() + 1);
}

Status check_unchanged(const File& file, const ArchiveEntry& entry) {
  struct stat now{};
  if (::fstat(file.fd(), &now) != 0) return posix_error(file.path().string(), errno);
  const bool is_same = static_cast<std::uint64_t>(now.st_size) == entry.bytes &&
                       now.st_mtim.tv_sec == entry.mtime &&
                       static_cast<std::uint32_t>(now.st_mtim.tv_nsec) == entry.mtime_ns;
  if (is_same) return {};
  return unavailable("{}: changed while it was being copied", file.path());
}

}  // namespace stoker::stage
