// File access for crash-safe code: bounded reads, replace by rename, fsync of folders, positional reads,
// memory maps. Errors name the path. Functions are thread-safe. Objects belong to one thread unless noted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker {

/// An owned file descriptor.
class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept;
  ~Fd();

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }
  void reset();

 private:
  int fd_ = -1;
};

/// An open file. read_at may be called from several threads at once.
class File {
 public:
  File() = default;
  static Result<File> open_read(const Path& path);
  /// Like open_read, but Invalid for a pipe, whose open would block. Paths below /dev are opened as by
  /// open_read, because shells place pipes there.
  static Result<File> open_regular(const Path& path);
  /// Creates or truncates.
  static Result<File> create(const Path& path);
  /// Exists if the path exists.
  static Result<File> create_new(const Path& path);
  /// Creates the file if missing. Each write appends in one system call.
  static Result<File> open_append(const Path& path);
  static Result<File> open_read_write(const Path& path);

  /// Fills all of `out`, or Corrupt "<path>: ends at byte N, expected at least M".
  Status read_at(std::uint64_t offset, std::span<std::byte> out) const;
  /// Up to `most` bytes from `offset`, fewer only at the end of the file. Asks the filesystem even beyond
  /// size(), which a client of a shared filesystem may remember from before another node appended.
  Result<std::string> read_available(std::uint64_t offset, std::size_t most) const;
  Status write(std::span<const std::byte> data);
  Status write(std::string_view text);
  Status write_at(std::uint64_t offset, std::span<const std::byte> data);
  Status truncate(std::uint64_t size);
  /// Allocates space, so that a full disk is detected before writing. Ok if the filesystem does not support
  /// it.
  Status reserve(std::uint64_t size);
  /// fsync(2).
  Status sync();
  Result<std::uint64_t> size() const;
  /// Closes and returns the error of close(2), where NFS reports an exceeded quota.
  Status close();

  int fd() const { return fd_.get(); }
  const Path& path() const { return path_; }

 private:
  File(Fd fd, Path path) : fd_(std::move(fd)), path_(std::move(path)) {}
  static Result<File> open_with(const Path& path, int flags);

  Fd fd_;
  Path path_;
};

/// A read-only map of a file. Readable from any thread. Access raises SIGBUS if the file is truncated, so map
/// only files that are published by rename and never changed.
class MappedFile {
 public:
  MappedFile() = default;
  static Result<MappedFile> open(const Path& path);
  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

/// The whole file, or Invalid "<path>: larger than <limit>".
Result<std::string> read_file(const Path& path, ByteCount limit = 64_MiB);
/// Like read_file for files in /proc and /sys, whose size reads as 0.
Result<std::string> read_pseudo_file(const Path& path);

/// Whether a replaced file must survive a power failure.
enum class Durability { none, synced };
/// Who may read a new file: everybody whom the umask allows, or only its owner (mode 600).
enum class Access { umask, owner };
/// Writes `<path>.<random>.tmp`, optionally syncs it, renames it to `path` and optionally syncs the folder.
/// Readers see the old or the new file. A failure leaves no temporary file.
Status write_file(const Path& path, std::string_view content, Durability durability = Durability::none,
                  Access access = Access::umask);
/// Like write_file(), but Exists if the path exists: of several processes one succeeds, on NFS too. No reader
/// sees an incomplete file.
Status write_new_file(const Path& path, std::string_view content, Durability durability = Durability::none);

Status make_directories(const Path& path);
/// mkdir(2): Exists if the path exists.
Status make_directory(const Path& path);
/// fsync(2) of a folder: renames in it then survive a power failure.
Status sync_directory(const Path& path);
Status rename_path(const Path& from, const Path& to);
Status remove_file(const Path& path);
/// Removes a folder recursively. Ok if it does not exist.
Status remove_tree(const Path& path);
/// Names in a folder, sorted by bytes, without "." and "..".
Result<std::vector<std::string>> list_directory(const Path& path);
bool path_exists(const Path& path);
bool folder_exists(const Path& path);
/// Free bytes for this user on the filesystem of `path`.
Result<ByteCount> free_space(const Path& path);

/// `length` random lower-case letters and digits from the system's random source, for unique names.
std::string random_name(std::size_t length = 8);

/// A new folder in $TMPDIR or /tmp, removed recursively by the destructor. For tests and short-lived work.
class TempDirectory {
 public:
  TempDirectory();
  /// In `root`, which must exist.
  explicit TempDirectory(const Path& root);
  ~TempDirectory();
  TempDirectory(const TempDirectory&) = delete;
  TempDirectory& operator=(const TempDirectory&) = delete;
  const Path& path() const { return path_; }
  Path operator/(std::string_view name) const { return path_ / name; }

 private:
  Path path_;
};

}  // namespace stoker
