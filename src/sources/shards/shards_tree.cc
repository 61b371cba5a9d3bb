#include "sources/shards/shards_tree.h"

#include <cstring>
#include <map>

#include "archive/tfrecord.h"
#include "base/hash.h"
#include "codec/load.h"

namespace stoker::sources {

namespace {

// The open shards of a thread. A packing thread has a separate descriptor table.
class OpenShards {
 public:
  /// Clears the cache of a different tree.
  void switch_to(std::uint64_t tree) {
    if (tree_ == tree) return;
    files_.clear();
    tree_ = tree;
  }
  const File* find(std::uint32_t shard) const {
    const auto found = files_.find(shard);
    return found == files_.end() ? nullptr : &found->second;
  }
  const File* keep(std::uint32_t shard, File file) {
    constexpr std::size_t kMax = 32;  // of the 1024 descriptors that a process usually has
    if (files_.size() >= kMax) files_.erase(files_.begin());
    return &files_.emplace(shard, std::move(file)).first->second;
  }

 private:
  std::uint64_t tree_ = 0;
  std::map<std::uint32_t, File> files_;
};

}  // namespace

ShardsTree::ShardsTree(Path folder, ChecksumScope checksum_scope, std::shared_ptr<RateLimiter> rate_limiter)
    : folder_(std::move(folder)),
      checksum_scope_(checksum_scope),
      rate_limiter_(std::move(rate_limiter)),
      number_(next_tree_id()) {}

std::uint32_t ShardsTree::add_shard(std::string file, std::uint64_t bytes,
                                    std::shared_ptr<const File> unpacked) {
  shards_.push_back({std::move(file), bytes, std::move(unpacked)});
  return static_cast<std::uint32_t>(shards_.size() - 1);
}

std::uint64_t ShardsTree::add_place(const ShardPlace& place) {
  places_.push_back(place);
  return places_.size() - 1;
}

Result<Listing> ShardsTree::list(const std::string&) const { return Listing{}; }

Status ShardsTree::read(std::string_view folder, const SourceFile& file, FileBytes& into) const {
  const ShardPlace& place = places_[file.place];
  STOKER_ASSIGN_OR_RETURN(shard, open(place.shard));
  if (checksum_scope_ == ChecksumScope::record) return read_from_record(*shard, file, into);
  const std::span<std::byte> room = into.resize(file.bytes);
  STOKER_RETURN_IF_ERROR(shard->read_at(place.offset, room));
  return checksum_scope_ == ChecksumScope::file ? check(folder, file, crc32c(room)) : Status();
}

bool ShardsTree::has_parts(const SourceFile&) const { return checksum_scope_ != ChecksumScope::record; }

Status ShardsTree::read_part(std::string_view folder, const SourceFile& file, std::uint64_t offset,
                             std::span<std::byte> out) const {
  struct Running {
    std::uint64_t tree = 0;
    std::uint64_t place = 0;
    std::uint64_t next = 0;
    std::uint32_t crc = 0;
  };
  thread_local Running running;
  const ShardPlace& place = places_[file.place];
  STOKER_ASSIGN_OR_RETURN(shard, open(place.shard));
  STOKER_RETURN_IF_ERROR(shard->read_at(place.offset + offset, out));
  if (offset == 0) running = {.tree = number_, .place = file.place};
  STOKER_CHECK(running.tree == number_ && running.place == file.place && running.next == offset);
  running.crc = crc32c(out, running.crc);
  running.next += out.size();
  return running.next == file.bytes && checksum_scope_ == ChecksumScope::file
             ? check(folder, file, running.crc)
             : Status();
}

std::string ShardsTree::display_path(std::string_view path) const {
  if (folder_.empty()) return path.empty() ? "." : printable(path);
  const std::string name = printable(folder_.string());
  return path.empty() ? name : format("{}: {}", name, printable(path));
}

std::string ShardsTree::name_of(std::uint32_t shard) const {
  return printable((folder_ / shards_[shard].file).string());
}

Result<const File*> ShardsTree::open(std::uint32_t shard) const {
  // Opened before the threads started: all descriptor tables have it.
  if (shards_[shard].unpacked) return shards_[shard].unpacked.get();
  thread_local OpenShards opened;
  opened.switch_to(number_);
  if (const File* file = opened.find(shard)) return file;
  rate_limiter_->acquire();
  STOKER_ASSIGN_OR_RETURN(file, File::open_read(folder_ / shards_[shard].file));
  STOKER_ASSIGN_OR_RETURN(size, file.size());
  if (size == shards_[shard].bytes) return opened.keep(shard, std::move(file));
  if (checksum_scope_ == ChecksumScope::file)
    return corrupt("{}: has {} bytes, the manifest has {}", name_of(shard), size, shards_[shard].bytes);
  return unavailable("{}: changed while packing (it had {} bytes)", name_of(shard), shards_[shard].bytes)
      .cure("rerun the command when no process writes there");
}

Status ShardsTree::check(std::string_view folder, const SourceFile& file, std::uint32_t found) const {
  const ShardPlace& place = places_[file.place];
  if (found == place.crc32c) return {};
  return corrupt("{}: '{}': CRC-32C expected {:08x}, found {:08x}", name_of(place.shard),
                 printable(child(folder, file.name)), place.crc32c, found)
      .cure("stoker data verify {} --full", shell_quote(folder_.string()));
}

// The CRC covers the whole record: reads it, then keeps the bytes of the file.
Status ShardsTree::read_from_record(const File& shard, const SourceFile& file, FileBytes& into) const {
  constexpr std::uint64_t kHead = 12;  // the length and its CRC
  constexpr std::uint64_t kTail = 4;   // the data's CRC
  const ShardPlace& place = places_[file.place];
  const std::span<std::byte> record = into.resize(place.record_bytes);
  STOKER_RETURN_IF_ERROR(shard.read_at(place.record_at, record));
  const auto stored = codec::load<std::uint32_t>(record, record.size() - kTail);
  const std::uint32_t found = masked_crc(crc32c(record.subspan(kHead, record.size() - kHead - kTail)));
  if (found != stored) {
    return corrupt("{}: byte {}: the record's CRC is wrong (expected {:08x}, found {:08x})",
                   name_of(place.shard), place.record_at, stored, found);
  }
  std::memmove(record.data(), record.data() + (place.offset - place.record_at), file.bytes);
  into.shrink(file.bytes);
  return {};
}

}  // namespace stoker::sources
