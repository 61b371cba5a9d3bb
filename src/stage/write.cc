// Everything that comes onto a node's disk, out of an archive or a folder, is written so:
//   1. what there is to write is decided and checked, and whether there is room for it
//   2. a folder with a name of its own is made inside the target (publish.h)
//   3. in there: folders, then files by several threads, then hard links, then symbolic links, so that
//      nothing is ever written through a link; last the folders' modes and times
//   4. what lies at its top is renamed into the target             <- it exists from here on
// A failure before 4 removes that folder again; a kill leaves it, under a name that nobody reads.
#include "stage/write.h"

#include <algorithm>
#include <atomic>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

#include "base/file.h"
#include "base/hash.h"
#include "base/thread.h"

namespace stoker::stage {
namespace {

constexpr int kMostThreads = 16;

int threads_for(int wanted) {
  if (wanted > 0) return std::min(wanted, kMostThreads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostThreads);
}

// Bits that would run a file as somebody else are dropped; its owner can always read it, and remove it.
mode_t mode_of(const Entry& entry) {
  return static_cast<mode_t>((entry.mode & 0777) | (entry.kind == Kind::folder ? 0700u : 0600u));
}

Status set_time(int fd, const Path& path, std::int64_t mtime) {
  if (mtime <= 0) return {};
  const timespec times[] = {{mtime, 0}, {mtime, 0}};
  const int done =
      fd >= 0 ? ::futimens(fd, times) : ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  return done == 0 ? Status() : posix_error(path.string(), errno);
}

class Writing {
 public:
  Writing(const Archive& archive, const std::vector<Entry>& entries, Path folder, Progress& progress)
      : archive_(archive), entries_(entries), folder_(std::move(folder)), progress_(progress) {}

  Status run(int threads) {
    RETURN_IF_ERROR(make_folders());
    RETURN_IF_ERROR(write_files(threads));
    RETURN_IF_ERROR(make_links());
    return finish_folders();
  }
  Moved moved() const { return {files_.load(), bytes_.load(), fingerprint_.load()}; }

 private:
  Status make_folders();
  Status write_files(int threads);
  void work();
  Status write(const Entry& entry);
  Status make_links();
  Status finish_folders();
  void count(const Entry& entry, std::uint32_t crc);
  void tell();

  // Constant after construction.
  const Archive& archive_;
  const std::vector<Entry>& entries_;
  const Path folder_;
  Progress& progress_;
  // Own synchronization.
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> files_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> fingerprint_{0};
  std::atomic<bool> has_failed_{false};
  Mutex mu_;
  Status problem_ GUARDED_BY(mu_);
};

// Also those that the archive has no member for.
Status Writing::make_folders() {
  std::set<std::string> folders;
  for (const Entry& entry : entries_) {
    const std::string below = entry.kind == Kind::folder ? entry.name + "/" : entry.name;
    for (std::size_t slash = below.find('/'); slash != std::string::npos; slash = below.find('/', slash + 1))
      folders.insert(below.substr(0, slash));
  }
  // Sorted by bytes a folder stands before what is in it.
  for (const std::string& name : folders) RETURN_IF_ERROR(make_directory(folder_ / name));
  return {};
}

Status Writing::write_files(int threads) {
  std::vector<Thread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back([this](const StopToken&) { work(); });
  work();
  workers.clear();
  const MutexLock lock(mu_);
  return problem_;
}

void Writing::work() {
  while (!has_failed_) {
    const std::size_t i = next_++;
    if (i >= entries_.size()) return;
    if (entries_[i].kind != Kind::file) continue;
    Status status = progress_.stop_requested() ? cancelled("stage: interrupted") : write(entries_[i]);
    if (status.ok()) continue;
    const MutexLock lock(mu_);
    if (problem_.ok()) problem_ = std::move(status);
    has_failed_ = true;
  }
}

Status Writing::write(const Entry& entry) {
  const Path path = folder_ / entry.name;
  OK_OR_RETURN(file, File::create_new(path));
  std::uint32_t crc = 0;
  std::uint64_t written = 0;
  const auto take = [&](std::span<const std::byte> piece) -> Status {
    if (progress_.stop_requested()) return cancelled("stage: interrupted");
    RETURN_IF_ERROR(file.write(piece));
    crc = crc32c(piece, crc);
    written += piece.size();
    bytes_ += piece.size();
    tell();
    return {};
  };
  RETURN_IF_ERROR(archive_.read(entry, take));
  OK_OR_RETURN(size, file.size());
  if (written != entry.bytes || size != entry.bytes) {
    return corrupt("{}: has {} bytes, expected {}", printable(entry.name), grouped(std::min(size, written)),
                   grouped(entry.bytes));
  }
  if (::fchmod(file.fd(), mode_of(entry)) != 0) return posix_error(path.string(), errno);
  RETURN_IF_ERROR(set_time(file.fd(), path, entry.mtime));
  RETURN_IF_ERROR(file.close());
  count(entry, crc);
  return {};
}

void Writing::count(const Entry& entry, std::uint32_t crc) {
  fingerprint_ += fingerprint_of(entry.name, entry.bytes, crc);
  ++files_;
  tell();
}

void Writing::tell() {
  progress_.report(
      {.done = files_.load(), .total = entries_.size(), .unit = "files", .bytes = {bytes_.load()}});
}

Status Writing::make_links() {
  for (const Entry& entry : entries_) {
    if (entry.kind != Kind::hard_link) continue;
    if (::link((folder_ / entry.link).c_str(), (folder_ / entry.name).c_str()) != 0)
      return posix_error((folder_ / entry.name).string(), errno);
    count(entry, crc32c(entry.link));
  }
  for (const Entry& entry : entries_) {
    if (entry.kind != Kind::symbolic_link) continue;
    const Path path = folder_ / entry.name;
    if (::symlink(entry.link.c_str(), path.c_str()) != 0) return posix_error(path.string(), errno);
    RETURN_IF_ERROR(set_time(-1, path, entry.mtime));
    count(entry, crc32c(entry.link));
  }
  return {};
}

// Inner ones first: writing into a folder changes its time, and a mode may forbid it.
Status Writing::finish_folders() {
  for (auto entry = entries_.rbegin(); entry != entries_.rend(); ++entry) {
    if (entry->kind != Kind::folder) continue;
    const Path path = folder_ / entry->name;
    if (::chmod(path.c_str(), mode_of(*entry)) != 0) return posix_error(path.string(), errno);
    RETURN_IF_ERROR(set_time(-1, path, entry->mtime));
  }
  return {};
}

}  // namespace

Need need_of(const std::vector<Entry>& entries) {
  Need need{.files = entries.size(), .bytes = 0};
  for (const Entry& entry : entries) need.bytes += entry.bytes;
  return need;
}

Result<Moved> write_entries(const Archive& from, const std::vector<Entry>& entries, const Path& folder,
                            int threads, Progress& progress) {
  Writing writing(from, entries, folder, progress);
  RETURN_IF_ERROR(writing.run(threads_for(threads)));
  return writing.moved();
}

}  // namespace stoker::stage
