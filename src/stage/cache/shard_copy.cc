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
Status read_block(const ShardFile& file, const CacheableShard& shard, std::size_t block, const Path& path,
                  std::vector<std::byte>& buffer) {
  const std::uint64_t begin = begin_of(*shard.info, block);
  buffer.resize(begin_of(*shard.info, block + 1) - begin);
  STOKER_RETURN_IF_ERROR(file.read_at(begin, buffer));
  return check_block(shard, block, buffer).with_context(path.string());
}

// What killed processes left of the shard.
Status remove_partial(const CacheFolder& cache, std::string_view key) {
  STOKER_ASSIGN_OR_RETURN(names, list_directory(cache.partial()));
  for (const std::string& name : names) {
    if (name.starts_with(format("{}.part", key))) STOKER_RETURN_IF_ERROR(remove_tree(cache.partial() / name));
  }
  return {};
}

Status make_unwritable(const Path& path) {
  STOKER_ASSIGN_OR_RETURN(file, File::open_read_write(path));
  if (::fchmod(file.fd(), 0444) != 0) return posix_error(path.string(), errno);
  STOKER_RETURN_IF_ERROR(set_cached_time(file));
  STOKER_RETURN_IF_ERROR(file.sync());
  return file.close();
}

}  // namespace

Status check_block(const CacheableShard& shard, std::size_t block, std::span<const std::byte> bytes) {
  const std::uint64_t begin = begin_of(*shard.info, block);
  const Digest found = dataset::block_digest(shard.hash, bytes);
  if (found == shard.info->blocks[block]) return {};
  return corrupt("block {} (bytes {} to {}) has the hash {}, the manifest lists {}", block, begin,
                 begin + bytes.size(), dataset::short_hash(found),
                 dataset::short_hash(shard.info->blocks[block]));
}

Result<codec::ShardFile> open_source(const CacheableShard& shard, const Path& source) {
  STOKER_ASSIGN_OR_RETURN(file, ShardFile::open(source, shard.parts));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (size == shard.info->bytes) return std::move(file);
  return corrupt("{}: has {} bytes, the manifest lists {}", source, size, shard.info->bytes);
}

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
      STOKER_RETURN_IF_ERROR(read_block(file, shard, block, path, buffer));
  }
  return {};
}

Result<record::WorkLease> lease_shard(const CacheFolder& cache, std::string_view key) {
  return record::WorkLease::take(cache.partial() / format("{}.lease", key), "copies the shard");
}

PartialShard::PartialShard(Path path, Path target, std::vector<ShardPart> files)
    : path_(std::move(path)), target_(std::move(target)), files_(std::move(files)) {
  for (const ShardPart& file : files_) ends_.push_back((ends_.empty() ? 0 : ends_.back()) + file.bytes);
}

Result<PartialShard> PartialShard::create(const CacheFolder& cache, const CacheableShard& shard) {
  STOKER_RETURN_IF_ERROR(remove_partial(cache, shard.key));
  // A name for each writer: a process that was stopped for so long that it lost its lease writes to no copy
  // but its own.
  const Path path = cache.partial() / format("{}.part-{}", shard.key, random_name());
  const bool is_file = shard.parts.empty();
  PartialShard partial(path, cache.shard(shard.key),
                       is_file ? std::vector<ShardPart>{{"", shard.info->bytes}} : shard.parts);
  if (!is_file) STOKER_RETURN_IF_ERROR(make_directory(path));
  for (std::size_t i = 0; i < partial.files_.size(); ++i) {
    const Path name = partial.file(i);
    STOKER_RETURN_IF_ERROR(make_directories(name.parent_path()));
    STOKER_ASSIGN_OR_RETURN(file, File::create_new(name));
    STOKER_RETURN_IF_ERROR(file.reserve(partial.files_[i].bytes));
    STOKER_RETURN_IF_ERROR(file.truncate(partial.files_[i].bytes));  // the quota counts sizes
    STOKER_RETURN_IF_ERROR(file.close());
  }
  return partial;
}

PartialShard::~PartialShard() {
  if (!path_.empty()) (void)remove_tree(path_);
}

Path PartialShard::file(std::size_t i) const {
  return files_[i].file.empty() ? path_ : path_ / files_[i].file;
}

Status PartialShard::write(std::uint64_t offset, std::span<const std::byte> bytes) const {
  auto end = std::upper_bound(ends_.begin(), ends_.end(), offset);
  while (!bytes.empty()) {
    if (end == ends_.end()) return internal("{}: is written beyond its end", path_);
    const auto number = static_cast<std::size_t>(end - ends_.begin());
    const auto here = bytes.first(std::min<std::uint64_t>(bytes.size(), *end - offset));
    STOKER_ASSIGN_OR_RETURN(file, File::open_read_write(this->file(number)));
    STOKER_RETURN_IF_ERROR(file.write_at(offset - (*end - files_[number].bytes), here));
    STOKER_RETURN_IF_ERROR(file.close());
    offset += here.size();
    bytes = bytes.subspan(here.size());
    while (end != ends_.end() && *end <= offset) ++end;  // empty ones, too
  }
  return {};
}

Status PartialShard::publish() && {
  for (std::size_t i = 0; i < files_.size(); ++i) STOKER_RETURN_IF_ERROR(make_unwritable(file(i)));
  STOKER_RETURN_IF_ERROR(rename_path(path_, target_));
  path_.clear();
  return sync_directory(target_.parent_path());
}

CopyResult copy_shard(const CacheFolder& cache, const CacheableShard& shard, const Path& source,
                      const CopyProgress& progress) {
  const auto file = open_source(shard, source);
  if (!file.ok()) return {.source = file.status(), .cache = {}};
  return copy_open_shard(cache, shard, *file, source, progress);
}

CopyResult copy_open_shard(const CacheFolder& cache, const CacheableShard& shard,
                           const codec::ShardFile& file, const Path& name, const CopyProgress& progress) {
  auto partial = PartialShard::create(cache, shard);
  if (!partial.ok()) return {.source = {}, .cache = partial.status()};
  if (Status status = progress(0); !status.ok()) return {.source = std::move(status), .cache = {}};
  std::vector<std::byte> buffer;
  for (std::size_t block = 0; block < shard.info->blocks.size(); ++block) {
    file.will_need(begin_of(*shard.info, block + 1), kHashBlock);
    Status status = read_block(file, shard, block, name, buffer);
    if (!status.ok()) return {.source = std::move(status), .cache = {}};
    status = partial->write(begin_of(*shard.info, block), buffer);
    if (!status.ok()) return {.source = {}, .cache = std::move(status)};
    status = progress(buffer.size());
    if (!status.ok()) return {.source = std::move(status), .cache = {}};
  }
  return {.source = {}, .cache = std::move(*partial).publish()};
}

}  // namespace stoker::stage
