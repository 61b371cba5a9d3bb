// Everything staged to a node's disk, from an archive or a folder, is written as follows:
//   1. List and check the entries, and check the free space.
//   2. Create a folder with a unique name inside the target (publish.h).
//   3. In it, create folders, then files with several threads, then hard links, then symbolic links, so that
//      nothing is ever written through a link; finally set the folders' modes and times.
//   4. Rename its top-level entries into the target: they exist from here on.
// A failure before 4 deletes that folder; after a kill it remains under a name that nothing reads.
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

constexpr int kMaxThreads = 16;

int threads_for(int wanted) {
  if (wanted > 0) return std::min(wanted, kMaxThreads);
  return std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMaxThreads);
}

// Clears setuid bits; the owner can always read and delete the file.
mode_t mode_of(const ArchiveEntry& entry) {
  return static_cast<mode_t>((entry.mode & 0777) | (entry.kind == EntryKind::folder ? 0700u : 0600u));
}

Status set_time(int fd, const Path& path, const ArchiveEntry& entry) {
  if (entry.mtime <= 0) return {};
  const timespec time{entry.mtime, static_cast<long>(entry.mtime_ns)};
  const timespec times[] = {time, time};
  const int done =
      fd >= 0 ? ::futimens(fd, times) : ::utimensat(AT_FDCWD, path.c_str(), times, AT_SYMLINK_NOFOLLOW);
  return done == 0 ? Status() : posix_error(path.string(), errno);
}

Result<TransferStats> make_links(const std::vector<ArchiveEntry>& entries, const Path& folder) {
  TransferStats stats;
  const auto count = [&](const ArchiveEntry& entry) {
    stats.files += 1;
    stats.fingerprint += fingerprint_of(entry.name, entry.bytes, crc32c(entry.link));
  };
  for (const ArchiveEntry& entry : entries) {
    if (entry.kind != EntryKind::hard_link) continue;
    if (::link((folder / entry.link).c_str(), (folder / entry.name).c_str()) != 0)
      return posix_error((folder / entry.name).string(), errno);
    count(entry);
  }
  for (const ArchiveEntry& entry : entries) {
    if (entry.kind != EntryKind::symbolic_link) continue;
    const Path path = folder / entry.name;
    if (::symlink(entry.link.c_str(), path.c_str()) != 0) return posix_error(path.string(), errno);
    STOKER_RETURN_IF_ERROR(set_time(-1, path, entry));
    count(entry);
  }
  return stats;
}

class EntryWriter {
 public:
  EntryWriter(const EntrySource& archive, const std::vector<ArchiveEntry>& entries, Path folder,
              Progress& progress)
      : archive_(archive), entries_(entries), folder_(std::move(folder)), progress_(progress) {}

  Result<TransferStats> run(int threads) {
    STOKER_RETURN_IF_ERROR(make_folders(entries_, folder_));
    STOKER_RETURN_IF_ERROR(write_files(threads));
    STOKER_ASSIGN_OR_RETURN(stats, finish_tree(entries_, folder_));
    stats += {.files = files_.load(), .bytes = bytes_.load(), .fingerprint = fingerprint_.load()};
    return stats;
  }

 private:
  Status write_files(int threads);
  void work();
  Status write(const ArchiveEntry& entry);
  void count(const ArchiveEntry& entry, std::uint32_t crc);
  void report_progress();

  // Constant after construction.
  const EntrySource& archive_;
  const std::vector<ArchiveEntry>& entries_;
  const Path folder_;
  Progress& progress_;
  // Synchronized internally.
  std::atomic<std::size_t> next_{0};
  std::atomic<std::uint64_t> files_{0};
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> fingerprint_{0};
  std::atomic<bool> has_failed_{false};
  Mutex mu_;
  Status problem_ STOKER_GUARDED_BY(mu_);
};

Status EntryWriter::write_files(int threads) {
  std::vector<Thread> workers;
  for (int i = 1; i < threads; ++i) workers.emplace_back([this](const StopToken&) { work(); });
  work();
  workers.clear();
  const MutexLock lock(mu_);
  return problem_;
}

void EntryWriter::work() {
  while (!has_failed_) {
    const std::size_t i = next_++;
    if (i >= entries_.size()) return;
    if (entries_[i].kind != EntryKind::file) continue;
    Status status = progress_.stop_requested() ? cancelled("stage: interrupted") : write(entries_[i]);
    if (status.ok()) continue;
    const MutexLock lock(mu_);
    if (problem_.ok()) problem_ = std::move(status);
    has_failed_ = true;
  }
}

Status EntryWriter::write(const ArchiveEntry& entry) {
  const Path path = folder_ / entry.name;
  STOKER_ASSIGN_OR_RETURN(file, File::create_new(path));
  std::uint32_t crc = 0;
  std::uint64_t written = 0;
  const auto write_piece = [&](std::span<const std::byte> piece) -> Status {
    if (progress_.stop_requested()) return cancelled("stage: interrupted");
    STOKER_RETURN_IF_ERROR(file.write(piece));
    crc = crc32c(piece, crc);
    written += piece.size();
    bytes_ += piece.size();
    report_progress();
    return {};
  };
  STOKER_RETURN_IF_ERROR(archive_.read(entry, write_piece));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (written != entry.bytes || size != entry.bytes) {
    return corrupt("{}: has {} bytes, expected {}", printable(entry.name), grouped(std::min(size, written)),
                   grouped(entry.bytes));
  }
  STOKER_RETURN_IF_ERROR(finish_file(file, entry));
  STOKER_RETURN_IF_ERROR(file.close());
  count(entry, crc);
  return {};
}

void EntryWriter::count(const ArchiveEntry& entry, std::uint32_t crc) {
  fingerprint_ += fingerprint_of(entry.name, entry.bytes, crc);
  ++files_;
  report_progress();
}

void EntryWriter::report_progress() {
  progress_.report(
      {.done = files_.load(), .total = entries_.size(), .unit = "files", .bytes = {bytes_.load()}});
}

}  // namespace

// Including folders without a member in the archive.
Status make_folders(const std::vector<ArchiveEntry>& entries, const Path& folder) {
  std::set<std::string> folders;
  for (const ArchiveEntry& entry : entries) {
    const std::string below = entry.kind == EntryKind::folder ? entry.name + "/" : entry.name;
    for (std::size_t slash = below.find('/'); slash != std::string::npos; slash = below.find('/', slash + 1))
      folders.insert(below.substr(0, slash));
  }
  // In byte order, a folder precedes its contents.
  for (const std::string& name : folders) STOKER_RETURN_IF_ERROR(make_directory(folder / name));
  return {};
}

Status finish_file(const File& file, const ArchiveEntry& entry) {
  if (::fchmod(file.fd(), mode_of(entry)) != 0) return posix_error(file.path().string(), errno);
  return set_time(file.fd(), file.path(), entry);
}

// Inner folders first: writing into a folder changes its time, and a mode may forbid writing.
Result<TransferStats> finish_tree(const std::vector<ArchiveEntry>& entries, const Path& folder) {
  STOKER_ASSIGN_OR_RETURN(stats, make_links(entries, folder));
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->kind != EntryKind::folder) continue;
    const Path path = folder / entry->name;
    if (::chmod(path.c_str(), mode_of(*entry)) != 0) return posix_error(path.string(), errno);
    STOKER_RETURN_IF_ERROR(set_time(-1, path, *entry));
  }
  return stats;
}

SpaceNeeded space_needed(const std::vector<ArchiveEntry>& entries) {
  SpaceNeeded need{.files = entries.size(), .bytes = 0};
  for (const ArchiveEntry& entry : entries) need.bytes += entry.bytes;
  return need;
}

Result<TransferStats> write_entries(const EntrySource& from, const std::vector<ArchiveEntry>& entries,
                                    const Path& folder, int threads, Progress& progress) {
  return EntryWriter(from, entries, folder, progress).run(threads_for(threads));
}

}  // namespace stoker::stage
