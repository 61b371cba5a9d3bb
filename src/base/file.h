// Files as crash-safe code needs them: whole reads with a bound, replace by rename, fsync of folders,
// positional reads, memory maps. Errors name the path. Functions are thread-safe; objects belong to one
// thread unless said.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"

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

/// An open file with whole reads and writes. read_at may be called from several threads at once.
class File {
 public:
  File() = default;
  static Result<File> open_read(const Path& path);
  /// The same of what should be a file in somebody's folder: Invalid for a pipe, which would be waited for,
  /// for ever. Below /dev, where shells have their pipes, it is open_read.
  static Result<File> open_regular(const Path& path);
  /// Creates or truncates.
  static Result<File> create(const Path& path);
  /// Fails with Exists if the path is taken.
  static Result<File> create_new(const Path& path);
  /// Creates if missing; every write goes to the end in one system call.
  static Result<File> open_append(const Path& path);
  static Result<File> open_read_write(const Path& path);

  /// Fills all of `out`, or Corrupt "<path>: ends at byte N, expected at least M".
  Status read_at(std::uint64_t offset, std::span<std::byte> out) const;
  Status write(std::span<const std::byte> data);
  Status write(std::string_view text);
  Status write_at(std::uint64_t offset, std::span<const std::byte> data);
  Status truncate(std::uint64_t size);
  /// Reserves space, so that a full disk shows before writing. Ok where the filesystem cannot.
  Status reserve(std::uint64_t size);
  /// fsync(2).
  Status sync();
  Result<std::uint64_t> size() const;
  /// Closes and reports what close(2) says (NFS reports a full quota there).
  Status close();

  int fd() const { return fd_.get(); }
  const Path& path() const { return path_; }

 private:
  File(Fd fd, Path path) : fd_(std::move(fd)), path_(std::move(path)) {}
  static Result<File> open_with(const Path& path, int flags);

  Fd fd_;
  Path path_;
};

/// A file mapped for reading. Immutable, so readable from any thread. A file truncated under it raises SIGBUS
/// on access, as for every map: only map files that are published by rename and never changed.
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

/// The whole file, at most `limit` bytes: beyond it Invalid "<path>: larger than <limit>".
Result<std::string> read_file(const Path& path, ByteCount limit = 64_MiB);
/// Like read_file for files in /proc and /sys, whose size reads as 0.
Result<std::string> read_pseudo_file(const Path& path);

/// Whether a replaced file must survive a power cut.
enum class Durability { none, synced };
/// Writes `<path>.<random>.tmp`, syncs if asked, renames it over `path`, and syncs the folder if asked.
/// Readers see the old file or the new one; nothing is left behind on failure.
Status write_file(const Path& path, std::string_view content, Durability durability = Durability::none);

Status make_directories(const Path& path);
/// mkdir(2): Exists if it is there already, by whomever.
Status make_directory(const Path& path);
/// fsync(2) of a folder, after which renames in it survive a power cut.
Status sync_directory(const Path& path);
Status rename_path(const Path& from, const Path& to);
Status remove_file(const Path& path);
/// Removes a folder and all in it. Ok if it is not there.
Status remove_tree(const Path& path);
/// Names in a folder, sorted by bytes, without "." and "..".
Result<std::vector<std::string>> list_directory(const Path& path);
bool path_exists(const Path& path);
bool folder_exists(const Path& path);
/// Free bytes for this user on the filesystem of `path`.
Result<ByteCount> free_space(const Path& path);

/// 16 bytes from the system's random source as 8 lower-case letters and digits: for names nobody else has.
std::string random_name(std::size_t length = 8);

/// A fresh folder under $TMPDIR or /tmp, removed with all in it when destroyed. For tests and short-lived
/// work.
class TempDirectory {
 public:
  TempDirectory();
  /// Under `root`, which must be there.
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
