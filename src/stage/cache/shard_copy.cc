#include "stage/cache/shard_copy.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/stat.h>

#include "dataset/shard_source.h"

namespace stoker::stage {
namespace {

using codec::ShardFile;
using codec::ShardPart;
using dataset::kHashBlock;

// The modification time of every cached file: a file that was written to has a different one.
constexpr time_t kCachedTime = 1'000'000'000;
constexpr std::size_t kSampledStride = 64;

bool has_cached_time(const Path& path) {
  struct stat info{};
  return ::lstat(path.c_str(), &info) == 0 && S_ISREG(info.st_mode) && info.st_mtim.tv_sec == kCachedTime &&
         info.st_mtim.tv_nsec == 0;
}

Status set_cached_time(const File& file) {
  const timespec times[] = {{.tv_sec = 0, .tv_nsec = UTIME_OMIT}, {.tv_sec = kCachedTime, .tv_nsec = 0}};
  return ::futimens(file.fd(), times) == 0 ? Status() : posix_error(file.path().string(), errno);
}

Status check_times(const Path& path, const CacheableShard& shard) {
  std::vector<Path> files = {path};
  if (!shard.parts.empty()) {
    files.clear();
    for (const ShardPart& part : shard.parts) files.push_back(path / part.file);
  }
  for (const Path& file : files) {
    if (!has_cached_time(file)) return corrupt("{}: has been changed in the cache", file);
  }
  return {};
}

std::uint64_t begin_of(const dataset::ShardInfo& info, std::size_t block) {
  return std::min<std::uint64_t>(block * kHashBlock, info.bytes);
}

// Reads and compares one block.
Status check_block(const ShardFile& file, const CacheableShard& shard, std::size_t block, const Path& path,
                   std::vector<std::byte>& buffer) {
  const std::uint64_t begin = begin_of(*shard.info, block);
  buffer.resize(begin_of(*shard.info, block + 1) - begin);
  STOKER_RETURN_IF_ERROR(file.read_at(begin, buffer));
  const Digest found = dataset::block_digest(shard.hash, buffer);
  if (found == shard.info->blocks[block]) return {};
  return corrupt("{}: block {} (bytes {} to {}) has the hash {}, the manifest lists {}", path, block, begin,
                 begin + buffer.size(), dataset::short_hash(found),
                 dataset::short_hash(shard.info->blocks[block]));
}

// Writes the bytes of a shard one after another into its file, or into its files.
class ShardOutput {
 public:
  ShardOutput(const Path& path, const CacheableShard& shard) : path_(path), shard_(shard) {}

  Status begin() {
    if (!shard_.parts.empty()) {
      STOKER_RETURN_IF_ERROR(make_directory(path_));
      return next_part();
    }
    return open(path_, shard_.info->bytes);
  }
  Status write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      if (left_ == 0) STOKER_RETURN_IF_ERROR(next_part());
      const auto here = bytes.first(std::min<std::uint64_t>(bytes.size(), left_));
      STOKER_RETURN_IF_ERROR(file_.write(here));
      left_ -= here.size();
      bytes = bytes.subspan(here.size());
    }
    return {};
  }
  Status finish() {
    STOKER_RETURN_IF_ERROR(close());
    while (part_ < shard_.parts.size()) {  // empty ones at the end
      STOKER_RETURN_IF_ERROR(next_part());
      STOKER_RETURN_IF_ERROR(close());
    }
    return {};
  }

 private:
  Status open(const Path& path, std::uint64_t bytes) {
    STOKER_RETURN_IF_ERROR(make_directories(path.parent_path()));
    STOKER_ASSIGN_OR_RETURN(file, File::create_new(path));
    file_ = std::move(file);
    left_ = bytes;
    return bytes == 0 ? Status() : file_.reserve(bytes);
  }
  Status next_part() {
    do {
      STOKER_RETURN_IF_ERROR(close());
      if (part_ == shard_.parts.size()) return {};
      const ShardPart& part = shard_.parts[part_++];
      STOKER_RETURN_IF_ERROR(open(path_ / part.file, part.bytes));
    } while (left_ == 0);
    return {};
  }
  Status close() {
    if (file_.fd() < 0) return {};
    if (::fchmod(file_.fd(), 0444) != 0) return posix_error(file_.path().string(), errno);
    STOKER_RETURN_IF_ERROR(set_cached_time(file_));
    STOKER_RETURN_IF_ERROR(file_.sync());
    const Status status = file_.close();
    file_ = File();
    return status;
  }

  const Path path_;
  const CacheableShard& shard_;
  File file_;
  std::uint64_t left_ = 0;  // of the open file
  std::size_t part_ = 0;    // the next one
};

CopyResult write_shard(const CacheableShard& shard, const Path& source, const Path& target,
                       const CopyProgress& progress) {
  CopyResult result;
  auto file = ShardFile::open(source, shard.parts);
  if (!file.ok()) return {.source = file.status(), .cache = {}};
  const auto size = file->size();
  if (!size.ok()) return {.source = size.status(), .cache = {}};
  if (*size != shard.info->bytes) {
    result.source = corrupt("{}: has {} bytes, the manifest lists {}", source, *size, shard.info->bytes);
    return result;
  }
  ShardOutput output(target, shard);
  result.cache = output.begin();
  if (result.cache.ok()) result.source = progress(0);
  std::vector<std::byte> buffer;
  for (std::size_t block = 0; block < shard.info->blocks.size(); ++block) {
    if (!result.cache.ok() || !result.source.ok()) return result;
    file->will_need(begin_of(*shard.info, block + 1), kHashBlock);
    result.source = check_block(*file, shard, block, source, buffer);
    if (result.source.ok()) result.cache = output.write(buffer);
    if (result.source.ok() && result.cache.ok()) result.source = progress(buffer.size());
  }
  if (result.cache.ok() && result.source.ok()) result.cache = output.finish();
  return result;
}

}  // namespace

Status check_cached(const CacheFolder& cache, const CacheableShard& shard, HitCheck depth) {
  const Path path = cache.shard(shard.key);
  if (!path_exists(path)) return not_found("{}: is not in the cache", shard.info->file);
  STOKER_RETURN_IF_ERROR(check_times(path, shard));
  STOKER_ASSIGN_OR_RETURN(file, ShardFile::open(path, shard.parts));
  if (!shard.parts.empty()) STOKER_RETURN_IF_ERROR(file.check_parts());
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (size != shard.info->bytes)
    return corrupt("{}: has {} bytes, the manifest lists {}", path, size, shard.info->bytes);
  std::vector<std::byte> buffer;
  const std::size_t blocks = shard.info->blocks.size();
  for (std::size_t block = 0; depth != HitCheck::size && block < blocks; ++block) {
    const bool is_sampled = block % kSampledStride == 0 || block + 1 == blocks;
    if (depth == HitCheck::full || is_sampled)
      STOKER_RETURN_IF_ERROR(check_block(file, shard, block, path, buffer));
  }
  return {};
}

Result<record::WorkLease> lease_shard(const CacheFolder& cache, std::string_view key) {
  return record::WorkLease::take(cache.partial() / format("{}.lease", key), "copies the shard");
}

CopyResult copy_shard(const CacheFolder& cache, const CacheableShard& shard, const Path& source,
                      const CopyProgress& progress) {
  const Path target = cache.partial() / format("{}.part", shard.key);
  if (const Status removed = remove_tree(target); !removed.ok())  // of a killed process
    return {.source = {}, .cache = removed};
  CopyResult result = write_shard(shard, source, target, progress);
  if (result.source.ok() && result.cache.ok()) result.cache = rename_path(target, cache.shard(shard.key));
  if (result.source.ok() && result.cache.ok()) {
    result.cache = sync_directory(cache.shards());
  } else {
    (void)remove_tree(target);
  }
  return result;
}

Status remove_shard(const CacheFolder& cache, std::string_view key) {
  const Path hidden = cache.partial() / format("{}.gone-{}", key, random_name());
  const Status status = rename_path(cache.shard(key), hidden);
  if (status.code() == Code::not_found) return {};
  STOKER_RETURN_IF_ERROR(status);
  return remove_tree(hidden);
}

}  // namespace stoker::stage
