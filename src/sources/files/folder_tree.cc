#include "sources/files/folder_tree.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <dirent.h>
#include <fcntl.h>
#include <functional>
#include <map>
#include <sys/stat.h>
#include <unistd.h>

namespace stoker::sources {

namespace {

std::int64_t modified_ns(const struct stat& info) {
  return info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;
}

// Cached descriptors of folders in which a thread has opened files: opening by name avoids a walk from the
// root. Folders that do not fit or cannot be opened are not cached.
class OpenFolders {
 public:
  /// Clears the cache of a different tree.
  void switch_to(std::uint64_t tree) {
    if (tree_ == tree) return;
    folders_.clear();
    tree_ = tree;
  }
  /// The descriptor of `folder`, or -1. `open` opens a new folder.
  template <typename Open>
  int find(std::string_view folder, Open open) {
    constexpr std::size_t kMax = 32;  // of the 1024 descriptors that a process usually has
    if (const auto found = folders_.find(folder); found != folders_.end()) return found->second.get();
    if (folders_.size() >= kMax) return -1;
    return folders_.emplace(std::string(folder), open()).first->second.get();
  }

 private:
  std::uint64_t tree_ = 0;
  std::map<std::string, Fd, std::less<>> folders_;
};

// Reads files below a folder; subclasses list them.
class DiskTree : public SourceTree {
 public:
  DiskTree(std::string root, std::shared_ptr<RateLimiter> rate_limiter)
      : root_(std::move(root)), rate_limiter_(std::move(rate_limiter)) {}

  Status read(std::string_view folder, const SourceFile& file, FileBytes& into) const override {
    STOKER_ASSIGN_OR_RETURN(fd, open(folder, file));
    // One byte more than expected: virtual files have no size, and some disks fail on empty files.
    const std::span<std::byte> room = into.resize(file.bytes + 1);
    std::size_t have = 0;
    do {
      const ssize_t n = ::read(fd.get(), room.data() + have, room.size() - have);
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return posix_error(display_path(child(folder, file.name)), errno);
      if (n == 0) break;
      have += static_cast<std::size_t>(n);
    } while (have < file.bytes);
    into.shrink(file.bytes);
    if (have != file.bytes) return changed(folder, file, format("had {} bytes", file.bytes));
    return check_unchanged(fd, folder, file);
  }

  Status read_part(std::string_view folder, const SourceFile& file, std::uint64_t offset,
                   std::span<std::byte> out) const override {
    STOKER_ASSIGN_OR_RETURN(fd, open(folder, file));
    std::size_t have = 0;
    while (have < out.size()) {
      const ssize_t n =
          ::pread(fd.get(), out.data() + have, out.size() - have, static_cast<off_t>(offset + have));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return posix_error(display_path(child(folder, file.name)), errno);
      if (n == 0) break;
      have += static_cast<std::size_t>(n);
    }
    return check_unchanged(fd, folder, file);
  }

  std::string display_path(std::string_view path) const override { return printable(full(path)); }

 protected:
  std::string full(std::string_view path) const {
    if (path.empty()) return root_;
    if (root_.empty() || root_.back() == '/') return root_ + std::string(path);
    return child(root_, path);
  }
  RateLimiter& rate_limiter() const { return *rate_limiter_; }

 private:
  Result<Fd> open(std::string_view folder, const SourceFile& file) const {
    thread_local OpenFolders folders;
    constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NOCTTY;
    folders.switch_to(number_);
    const int at = folders.find(folder, [&] {
      rate_limiter_->acquire();
      const std::string path = full(folder);
      return Fd(::open(path.empty() ? "." : path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    });
    rate_limiter_->acquire();
    Fd fd(at >= 0 ? ::openat(at, file.name.c_str(), kFlags)
                  : ::open(full(child(folder, file.name)).c_str(), kFlags));
    if (fd) return fd;
    const int error = errno;
    const std::string path = display_path(child(folder, file.name));
    if (error == ENOENT) {
      return unavailable("{}: disappeared while packing", path)
          .cure("rerun the command when no process removes files there");
    }
    return posix_error(path, error);
  }

  // After a read: whether the file is unchanged since it was listed.
  Status check_unchanged(const Fd& fd, std::string_view folder, const SourceFile& file) const {
    struct stat info{};
    if (::fstat(fd.get(), &info) != 0) return posix_error(display_path(child(folder, file.name)), errno);
    const bool has_its_size = static_cast<std::uint64_t>(info.st_size) == file.bytes;
    if (has_its_size && modified_ns(info) == file.modified_ns) return {};
    return changed(folder, file,
                   has_its_size ? "was modified after it was listed" : format("had {} bytes", file.bytes));
  }

  Status changed(std::string_view folder, const SourceFile& file, std::string_view what) const {
    return unavailable("{}: changed while packing (it {})", display_path(child(folder, file.name)), what)
        .cure("rerun the command when no process writes there");
  }

  std::string root_;
  std::uint64_t number_ = next_tree_id();
  // Shared by the trees and listings of one pack: one limit for all of them.
  std::shared_ptr<RateLimiter> rate_limiter_;
};

class FolderTree final : public DiskTree {
 public:
  FolderTree(std::string root, std::shared_ptr<RateLimiter> rate_limiter, Progress* progress)
      : DiskTree(std::move(root), std::move(rate_limiter)), progress_(progress) {}

  Result<Listing> list(const std::string& folder) const override {
    const std::string path = full(folder);
    const std::unique_ptr<DIR, int (*)(DIR*)> stream(::opendir(path.c_str()), ::closedir);
    if (!stream) return posix_error(printable(path), errno);
    STOKER_ASSIGN_OR_RETURN(names, names_in(stream.get(), folder));
    std::sort(names.begin(), names.end(), [](const Name& a, const Name& b) { return a.inode < b.inode; });
    Listing listing;
    for (Name& name : names)
      STOKER_RETURN_IF_ERROR(add_entry(::dirfd(stream.get()), folder, name.text, listing));
    listing.sort();
    return listing;
  }

 private:
  struct Name {
    std::uint64_t inode = 0;
    std::string text;
  };

  Result<std::vector<Name>> names_in(DIR* stream, const std::string& folder) const {
    std::vector<Name> names;
    for (;;) {
      errno = 0;
      const dirent* entry = ::readdir(stream);
      if (entry == nullptr) break;
      const std::string_view name = entry->d_name;
      if (name != "." && name != "..") names.push_back({entry->d_ino, std::string(name)});
    }
    if (errno != 0) return posix_error(printable(full(folder)), errno);
    return names;
  }

  // Follows symbolic links.
  Status add_entry(int fd, const std::string& folder, std::string& name, Listing& listing) const {
    constexpr std::uint64_t kReportEvery = 1024;
    if (name.front() == '.') {
      listing.left_out.push_back({child(folder, name), std::string(kHidden), {}});
      return {};
    }
    rate_limiter().acquire();
    if (const std::uint64_t seen = ++seen_; seen % kReportEvery == 0 || rate_limiter().is_limited()) {
      progress_->report({.done = seen, .total = 0, .unit = "files listed", .bytes = {}});
      if (progress_->stop_requested()) return cancelled("{}: interrupted while listing", display_path(""));
    }
    struct stat info{};
    if (::fstatat(fd, name.c_str(), &info, 0) != 0) {
      // Removed since its folder was read: ignored.
      const int error = errno;
      if (error == ENOENT && ::fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) return {};
      if (error != ENOENT && error != ELOOP) return posix_error(display_path(child(folder, name)), error);
      listing.left_out.push_back({child(folder, name), "not a file", "a broken link"});
    } else if (S_ISDIR(info.st_mode)) {
      listing.folders.push_back(std::move(name));
    } else if (!S_ISREG(info.st_mode)) {
      listing.left_out.push_back({child(folder, name), "not a file", "a pipe, socket or device"});
    } else {
      add_file(listing, folder,
               {std::move(name), static_cast<std::uint64_t>(info.st_size), modified_ns(info), 0});
    }
    return {};
  }

  Progress* progress_;  // outlives the listing; not used afterwards
  mutable std::atomic<std::uint64_t> seen_{0};
};

// A list of paths as folders.
class PathsTree final : public DiskTree {
 public:
  PathsTree(std::string root, std::shared_ptr<RateLimiter> rate_limiter, VirtualFolders folders)
      : DiskTree(std::move(root), std::move(rate_limiter)), folders_(std::move(folders)) {}
  Result<Listing> list(const std::string& folder) const override { return folders_.list(folder); }

 private:
  VirtualFolders folders_;
};

// The deepest common folder of all paths, or "".
std::string_view common_folder(const std::vector<std::string>& paths) {
  const auto folder_of = [](std::string_view path) {
    const std::size_t slash = path.rfind('/');
    return slash == std::string_view::npos ? std::string_view() : path.substr(0, slash + 1);
  };
  std::string_view common = folder_of(paths.front());
  for (const std::string& path : paths) {
    while (!common.empty() && !path.starts_with(common))
      common = folder_of(common.substr(0, common.size() - 1));
  }
  return common;
}

// "./a//b" as "a/b"; keeps '..'.
std::string normalized_path(std::string_view path) {
  std::string normal = path.starts_with('/') ? "/" : "";
  for (std::string_view part : split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (!normal.empty() && normal.back() != '/') normal += '/';
    normal += part;
  }
  return normal;
}

}  // namespace

std::unique_ptr<SourceTree> folder_tree(std::string root, std::shared_ptr<RateLimiter> rate_limiter,
                                        Progress* progress) {
  return std::make_unique<FolderTree>(std::move(root), std::move(rate_limiter), progress);
}

Result<std::unique_ptr<SourceTree>> paths_tree(std::string_view text, std::string_view subject,
                                               std::shared_ptr<RateLimiter> rate_limiter,
                                               Progress& progress) {
  const char separator = text.find('\0') == std::string_view::npos ? '\n' : '\0';
  std::vector<std::string> paths;
  for (std::string_view line : split(text, separator)) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    if (line.size() > kPathLimit) {
      return invalid("{}: path {} has {} bytes (at most {})", subject, paths.size() + 1, line.size(),
                     kPathLimit);
    }
    paths.push_back(normalized_path(line));
  }
  if (paths.empty()) return invalid("{}: no paths", subject);
  const std::string root(common_folder(paths));
  VirtualFolders folders;
  std::uint64_t seen = 0;
  for (const std::string& path : paths) {
    if (progress.stop_requested()) return cancelled("{}: interrupted while checking paths", subject);
    rate_limiter->acquire();
    struct stat info{};
    if (::stat(path.c_str(), &info) != 0) return posix_error(printable(path), errno);
    const std::string_view below = std::string_view(path).substr(root.size());
    for (std::string_view part : split(below, '/')) {
      if (part == "..") return invalid("{}: '..' below the common folder of all paths", printable(path));
    }
    if (!S_ISREG(info.st_mode)) {
      folders.leave_out(below, "not a file", S_ISDIR(info.st_mode) ? "a folder" : "a pipe, socket or device");
    } else {
      folders.add(below, {{}, static_cast<std::uint64_t>(info.st_size), modified_ns(info), 0});
    }
    progress.report({.done = ++seen, .total = paths.size(), .unit = "paths checked", .bytes = {}});
  }
  folders.sort();
  if (const auto twin = folders.duplicate()) {
    return invalid("{}: '{}' appears twice", subject, printable(root + *twin));
  }
  return std::unique_ptr<SourceTree>(
      std::make_unique<PathsTree>(root, std::move(rate_limiter), std::move(folders)));
}

}  // namespace stoker::sources
