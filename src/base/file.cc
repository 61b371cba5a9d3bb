#include "base/file.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <dirent.h>
#include <fcntl.h>
#include <memory>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace stoker {

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    reset();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

Fd::~Fd() { reset(); }

void Fd::reset() {
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

namespace {

std::string subject(const Path& path) { return printable(path.string()); }

}  // namespace

Result<File> File::open_with(const Path& path, int flags) {
  for (;;) {
    const int fd = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    if (fd >= 0) return File(Fd(fd), path);
    if (errno != EINTR) return posix_error(subject(path), errno);
  }
}

Result<File> File::open_read(const Path& path) { return open_with(path, O_RDONLY); }

Result<File> File::open_regular(const Path& path) {
  if (path.native().starts_with("/dev/")) return open_read(path);
  STOKER_ASSIGN_OR_RETURN(file, open_with(path, O_RDONLY | O_NONBLOCK));  // has no effect on regular files
  struct stat info{};
  if (::fstat(file.fd(), &info) != 0) return posix_error(subject(path), errno);
  if (S_ISFIFO(info.st_mode)) return invalid("{}: expected a file, got a pipe", subject(path));
  return std::move(file);
}

Result<File> File::create(const Path& path) { return open_with(path, O_WRONLY | O_CREAT | O_TRUNC); }
Result<File> File::create_new(const Path& path) { return open_with(path, O_WRONLY | O_CREAT | O_EXCL); }
Result<File> File::open_append(const Path& path) { return open_with(path, O_WRONLY | O_CREAT | O_APPEND); }
Result<File> File::open_read_write(const Path& path) { return open_with(path, O_RDWR | O_CREAT); }

Result<std::string> File::read_available(std::uint64_t offset, std::size_t most) const {
  std::string text(most, '\0');
  std::size_t filled = 0;
  while (filled < most) {
    const ssize_t got =
        ::pread(fd_.get(), text.data() + filled, most - filled, static_cast<off_t>(offset + filled));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return posix_error(path_.string(), errno);
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  text.resize(filled);
  return text;
}

Status File::read_at(std::uint64_t offset, std::span<std::byte> out) const {
  std::size_t done = 0;
  while (done < out.size()) {
    const ssize_t n =
        ::pread(fd_.get(), out.data() + done, out.size() - done, static_cast<off_t>(offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return posix_error(subject(path_), errno);
    if (n == 0) {
      return corrupt("{}: ends at byte {}, expected at least {}", subject(path_), offset + done,
                     offset + out.size());
    }
    done += static_cast<std::size_t>(n);
  }
  return {};
}

Status File::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t n = ::write(fd_.get(), data.data(), data.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return posix_error(subject(path_), errno);
    data = data.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status File::write(std::string_view text) {
  return write(std::as_bytes(std::span(text.data(), text.size())));
}

Status File::write_at(std::uint64_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t n = ::pwrite(fd_.get(), data.data(), data.size(), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return posix_error(subject(path_), errno);
    data = data.subspan(static_cast<std::size_t>(n));
    offset += static_cast<std::uint64_t>(n);
  }
  return {};
}

Status File::truncate(std::uint64_t size) {
  if (::ftruncate(fd_.get(), static_cast<off_t>(size)) != 0) return posix_error(subject(path_), errno);
  return {};
}

Status File::reserve(std::uint64_t size) {
  // The raw system call: glibc's posix_fallocate writes zeros if the filesystem does not support it.
  if (size == 0 || ::fallocate(fd_.get(), FALLOC_FL_KEEP_SIZE, 0, static_cast<off_t>(size)) == 0) return {};
  if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG) return posix_error(subject(path_), errno);
  return {};
}

Status File::sync() {
  if (::fsync(fd_.get()) != 0) return posix_error(subject(path_), errno);
  return {};
}

Result<std::uint64_t> File::size() const {
  struct stat info{};
  if (::fstat(fd_.get(), &info) != 0) return posix_error(subject(path_), errno);
  return static_cast<std::uint64_t>(info.st_size);
}

Status File::close() {
  if (fd_ && ::close(fd_.release()) != 0 && errno != EINTR) return posix_error(subject(path_), errno);
  return {};
}

Result<MappedFile> MappedFile::open(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(path));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  MappedFile mapped;
  if (size == 0) return mapped;
  void* address = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd(), 0);
  if (address == MAP_FAILED) return posix_error(subject(path), errno);
  mapped.bytes_ = {static_cast<const std::byte*>(address), size};
  return mapped;
}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  return *this;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

namespace {

Result<std::string> read_all(const File& file, std::uint64_t limit) {
  std::string content;
  char buffer[65536];
  for (;;) {
    const ssize_t n = ::read(file.fd(), buffer, sizeof buffer);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return posix_error(subject(file.path()), errno);
    if (n == 0) return content;
    if (content.size() + static_cast<std::size_t>(n) > limit) {
      return invalid("{}: larger than {}", subject(file.path()), rounded(ByteCount{limit}));
    }
    content.append(buffer, static_cast<std::size_t>(n));
  }
}

}  // namespace

Result<std::string> read_file(const Path& path, ByteCount limit) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_regular(path));
  return read_all(file, limit.value);
}

Result<std::string> read_pseudo_file(const Path& path) { return read_file(path, 4_MiB); }

Status write_file(const Path& path, std::string_view content, Durability durability, Access access) {
  const Path temporary = path.string() + "." + random_name() + ".tmp";
  const auto write_and_rename = [&]() -> Status {
    STOKER_ASSIGN_OR_RETURN(file, File::create_new(temporary));
    if (access == Access::owner && ::fchmod(file.fd(), 0600) != 0)
      return posix_error(subject(temporary), errno);
    STOKER_RETURN_IF_ERROR(file.write(content));
    if (durability == Durability::synced) STOKER_RETURN_IF_ERROR(file.sync());
    STOKER_RETURN_IF_ERROR(file.close());
    return rename_path(temporary, path);
  };
  if (Status status = write_and_rename(); !status.ok()) {
    ::unlink(temporary.c_str());
    // The error names the caller's path, not the temporary file.
    std::string message(status.message());
    if (message.starts_with(subject(temporary))) message.replace(0, subject(temporary).size(), subject(path));
    return Status(status.code(), std::move(message));
  }
  if (durability == Durability::none) return {};
  return sync_directory(path.has_parent_path() ? path.parent_path() : Path("."));
}

Status write_new_file(const Path& path, std::string_view content, Durability durability) {
  const Path own = path.string() + "." + random_name() + ".tmp";
  STOKER_RETURN_IF_ERROR(write_file(own, content, durability));
  // A link, unlike a rename, replaces nothing.
  int problem = ::link(own.c_str(), path.c_str()) == 0 ? 0 : errno;
  // NFS may repeat a request whose answer was lost: two links are the own file.
  struct stat facts{};
  if (problem == EEXIST && ::stat(own.c_str(), &facts) == 0 && facts.st_nlink == 2) problem = 0;
  ::unlink(own.c_str());
  if (problem != 0) return posix_error(subject(path), problem);
  if (durability == Durability::none) return {};
  return sync_directory(path.has_parent_path() ? path.parent_path() : Path("."));
}

Status make_directories(const Path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) return posix_error(subject(path), error.value());
  return {};
}

Status make_directory(const Path& path) {
  if (::mkdir(path.c_str(), 0777) != 0) return posix_error(subject(path), errno);
  return {};
}

Status sync_directory(const Path& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd) return posix_error(subject(path), errno);
  // Some network filesystems reject fsync of a folder. Their renames are durable on the server.
  if (::fsync(fd.get()) != 0 && errno != EINVAL && errno != ENOTSUP) return posix_error(subject(path), errno);
  return {};
}

Status rename_path(const Path& from, const Path& to) {
  if (::rename(from.c_str(), to.c_str()) != 0) return posix_error(subject(to), errno);
  return {};
}

Status remove_file(const Path& path) {
  if (::unlink(path.c_str()) != 0) return posix_error(subject(path), errno);
  return {};
}

Status remove_tree(const Path& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (error) return posix_error(subject(path), error.value());
  return {};
}

Result<std::vector<std::string>> list_directory(const Path& path) {
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(::opendir(path.c_str()), ::closedir);
  if (!directory) return posix_error(subject(path), errno);
  std::vector<std::string> names;
  for (;;) {
    errno = 0;
    const dirent* entry = ::readdir(directory.get());
    if (entry == nullptr) break;
    const std::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
  }
  if (errno != 0) return posix_error(subject(path), errno);
  std::sort(names.begin(), names.end());
  return names;
}

bool path_exists(const Path& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0;
}

bool folder_exists(const Path& path) {
  struct stat info{};
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}

Result<ByteCount> free_space(const Path& path) {
  struct statvfs info{};
  if (::statvfs(path.c_str(), &info) != 0) return posix_error(subject(path), errno);
  return ByteCount{static_cast<std::uint64_t>(info.f_bavail) * info.f_frsize};
}

std::string random_name(std::size_t length) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz234567";
  std::string name(length, '\0');
  STOKER_CHECK(::getrandom(name.data(), name.size(), 0) == static_cast<ssize_t>(name.size()));
  for (char& c : name) c = kLetters[static_cast<unsigned char>(c) % kLetters.size()];
  return name;
}

namespace {

Path temporary_root() {
  const char* root = std::getenv("TMPDIR");
  return root != nullptr && *root != '\0' ? root : "/tmp";
}

}  // namespace

TempDirectory::TempDirectory() : TempDirectory(temporary_root()) {}

TempDirectory::TempDirectory(const Path& root) : path_(root / ("stoker-" + random_name(12))) {
  STOKER_CHECK(make_directory(path_).ok());
}

TempDirectory::~TempDirectory() { (void)remove_tree(path_); }

}  // namespace stoker
