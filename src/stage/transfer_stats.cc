#include "stage/transfer_stats.h"

#include <cerrno>
#include <sys/statvfs.h>

#include "base/hash.h"
#include "stoker/bytes.h"
#include "stoker/text.h"

namespace stoker::stage {
namespace {

// Each file needs about one additional block.
constexpr std::uint64_t kBytesPerFile = 4096;

// The finalizer of SplitMix64: sums of its values collide as rarely as random numbers.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

TransferStats& TransferStats::operator+=(const TransferStats& other) {
  files += other.files;
  bytes += other.bytes;
  received_bytes += other.received_bytes;
  cached_bytes += other.cached_bytes;
  fingerprint += other.fingerprint;
  return *this;
}

std::uint64_t fingerprint_of(std::string_view name, std::uint64_t bytes, std::uint32_t crc) {
  const std::uint64_t both = static_cast<std::uint64_t>(crc32c(name)) << 32 | crc;
  return mix(mix(both) + bytes);
}

Status check_free_space(std::string_view subject, const SpaceNeeded& need, const Path& folder) {
  struct statvfs disk{};
  if (::statvfs(folder.c_str(), &disk) != 0) return posix_error(folder.string(), errno);
  const std::uint64_t bytes = need.bytes + need.files * kBytesPerFile;
  const std::uint64_t free = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (bytes > free) {
    return no_space("{}: needs {}, but only {} are free in {}", subject, rounded(ByteCount{bytes}),
                    rounded(ByteCount{free}), folder);
  }
  // Filesystems that create inodes on demand report a total of 0.
  if (disk.f_files > 0 && need.files > disk.f_favail) {
    return no_space("{}: needs {} inodes, but only {} are free in {}", subject, grouped(need.files),
                    grouped(disk.f_favail), folder);
  }
  return {};
}

}  // namespace stoker::stage
