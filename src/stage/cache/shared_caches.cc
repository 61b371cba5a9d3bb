#include "stage/cache/shared_caches.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>

namespace stoker::stage {
namespace {

constexpr mode_t kOwnerOnly = 0700;
constexpr mode_t kSearchable = 0711;
constexpr std::string_view kPrefix = "stoker-cache-";

bool is_users_cache(std::string_view name) {
  if (!name.starts_with(kPrefix)) return false;
  name.remove_prefix(kPrefix.size());
  return !name.empty() && std::ranges::all_of(name, [](char c) { return c >= '0' && c <= '9'; });
}

// Opens a name in a folder whose owner may be hostile: no link is followed, no device, pipe or other
// filesystem is opened or waited for.
Fd open_in(int folder, const std::string& name, int flags, std::uint64_t device) {
  struct stat info{};
  if (::fstatat(folder, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0 || info.st_dev != device) return {};
  Fd opened(::openat(folder, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (opened && (::fstat(opened.get(), &info) != 0 || info.st_dev != device)) return {};
  return opened;
}

}  // namespace

Status share_cache(const CacheFolder& cache) {
  // First the parts that stay hidden.
  const std::pair<Path, mode_t> modes[] = {{cache.partial(), kOwnerOnly}, {cache.datasets(), kOwnerOnly},
                                           {cache.leases(), kOwnerOnly},  {cache.path() / "uses", kOwnerOnly},
                                           {cache.shards(), kSearchable}, {cache.path(), kSearchable}};
  for (const auto& [path, mode] : modes) {
    if (::chmod(path.c_str(), mode) != 0) return posix_error(path.string(), errno);
  }
  return {};
}

SharedCaches SharedCaches::beside(const CacheFolder& cache) {
  SharedCaches caches;
  struct stat info{};
  if (::stat(cache.path().c_str(), &info) != 0) return caches;
  caches.device_ = info.st_dev;
  const Path base = cache.path().parent_path();
  const auto names = list_directory(base);
  for (std::size_t i = 0; names.ok() && i < names->size(); ++i) {
    const Path folder = base / (*names)[i];
    if (is_users_cache((*names)[i]) && folder != cache.path()) caches.folders_.push_back(folder);
  }
  return caches;
}

std::optional<CopyResult> SharedCaches::copy(const CacheFolder& cache, const CacheableShard& shard,
                                             const CopyProgress& progress) const {
  const auto file = open(shard);
  if (!file.ok()) return std::nullopt;
  CopyResult copied = copy_open_shard(cache, shard, *file, "another user's cache", progress);
  const bool is_wrong = !copied.source.ok() && copied.source.code() != Code::cancelled;
  return is_wrong ? std::nullopt : std::optional(std::move(copied));
}

Result<codec::ShardFile> SharedCaches::open(const CacheableShard& shard) const {
  // A CRC does not identify bytes.
  const bool is_safe = shard.hash == dataset::BlockHash::sha256 && shard.parts.empty();
  for (std::size_t i = 0; is_safe && i < folders_.size(); ++i) {
    const Fd cache = open_in(AT_FDCWD, folders_[i].string(), O_PATH | O_DIRECTORY, device_);
    const Fd shards = cache ? open_in(cache.get(), "shards", O_PATH | O_DIRECTORY, device_) : Fd();
    const Fd file = shards ? open_in(shards.get(), shard.key, O_RDONLY, device_) : Fd();
    struct stat info{};
    if (!file || ::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode) ||
        static_cast<std::uint64_t>(info.st_size) != shard.info->bytes)
      continue;
    auto opened = File::open_read(format("/proc/self/fd/{}", file.get()));  // exactly this file
    if (opened.ok()) return codec::ShardFile(*std::move(opened));
  }
  return not_found("{}: no other user has it", shard.info->file);
}

}  // namespace stoker::stage
