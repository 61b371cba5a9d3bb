#include "pack/verify.h"

#include <algorithm>
#include <atomic>

#include "base/hash.h"
#include "base/language/counted.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "codec/chunks/chunk_reader.h"
#include "dataset/shard_source.h"

namespace stoker::pack {

namespace {

using dataset::Component;
using dataset::IndexSection;
using dataset::ShardInfo;
using dataset::short_hash;

// One file of a sample, with its running CRC.
struct Extent {
  Component component;
  std::uint64_t sample = 0;
  std::uint32_t crc = 0;
  codec::ChunkMap::ReadKey turn = {};  // when its chunk is read
};

// Checks one shard: a single sequential pass computes block hashes and CRCs.
class ShardCheck {
 public:
  ShardCheck(const Path& folder, dataset::BlockHash hash, const ShardInfo& info, const IndexSection& section)
      : info_(info), section_(section), path_(folder / info.file), hash_(hash) {}

  std::vector<Damage> damaged;

  /// Whether the shard exists and has the right size.
  bool check_size() {
    if (!parts().empty()) return check_parts();
    std::error_code error;
    const std::uint64_t size = std::filesystem::file_size(path_, error);
    const std::string expected = format("{} bytes", info_.bytes);
    if (error) {
      add("-", expected, error == std::errc::no_such_file_or_directory ? "missing" : error.message());
      return false;
    }
    if (size != info_.bytes) add("-", expected, format("{} bytes", size));
    return size == info_.bytes;
  }

  /// Calls `report_progress(bytes)`; false ends the check.
  template <typename ProgressFunction>
  void check_bytes(const ProgressFunction& report_progress) {
    if (!section_.chunks()) list_extents();
    const Result<codec::ShardFile> file = codec::ShardFile::open(path_, parts());
    if (!file.ok()) return add("-", format("{} bytes", info_.bytes), std::string(file.status().message()));
    Bytes buffer(hash_ == dataset::BlockHash::sha256 ? kBlocksPerRead * dataset::kHashBlock : kPiece);
    for (std::size_t block = 0; block < info_.blocks.size(); block += blocks_per_read()) {
      const Result<std::uint64_t> bytes = hash_ == dataset::BlockHash::sha256
                                              ? check_by_sha256(*file, block, buffer)
                                              : check_by_crc32c(*file, block, buffer);
      if (!bytes.ok()) return;  // already in `damaged`
      if (!report_progress(*bytes)) return;
    }
    if (section_.chunks()) check_unpacked(*file, report_progress);
    add_bad_blocks();
  }

 private:
  using Bytes = std::vector<std::byte>;
  static constexpr std::size_t kBlocksPerRead = 2;   // two blocks are hashed in little more time than one
  static constexpr std::size_t kPiece = 256u << 10;  // fits a core's cache
  static constexpr double kSlow = 1e-9;              // seconds per byte: slower than the page cache

  std::vector<codec::ShardPart> parts() const {
    return section_.chunks() ? section_.chunks()->parts() : std::vector<codec::ShardPart>();
  }

  bool check_parts() {
    const Result<codec::ShardFile> file = codec::ShardFile::open(path_, parts());
    const Status status = file.ok() ? file->check_parts() : file.status();
    if (!status.ok()) add("-", counted(parts().size(), "file"), std::string(status.message()));
    return status.ok();
  }

  std::size_t blocks_per_read() const { return hash_ == dataset::BlockHash::sha256 ? kBlocksPerRead : 1; }
  std::uint64_t begin_of(std::size_t block) const {
    return std::min(block * dataset::kHashBlock, info_.bytes);
  }

  // Reads and compares kBlocksPerRead blocks from `block` on; returns their bytes.
  Result<std::uint64_t> check_by_sha256(const codec::ShardFile& file, std::size_t block, Bytes& buffer) {
    const std::uint64_t begin = begin_of(block);
    std::vector<std::span<const std::byte>> read;
    Status status;
    for (std::size_t b = block; b < std::min(block + kBlocksPerRead, info_.blocks.size()) && status.ok();
         ++b) {
      const auto bytes = std::span(buffer).subspan(begin_of(b) - begin, begin_of(b + 1) - begin_of(b));
      status = read_piece(file, b, begin_of(b), bytes);
      if (status.ok()) read.push_back(bytes);
    }
    read_ahead(file, block + kBlocksPerRead);
    if (read.size() == kBlocksPerRead) {
      const auto both = sha256_pair(read[0], read[1]);
      for (std::size_t i = 0; i < kBlocksPerRead; ++i) compare(block + i, both[i]);
    } else if (!read.empty()) {
      compare(block, sha256(read[0]));
    }
    STOKER_RETURN_IF_ERROR(status);
    return begin_of(block + kBlocksPerRead) - begin;
  }

  Result<std::uint64_t> check_by_crc32c(const codec::ShardFile& file, std::size_t block, Bytes& buffer) {
    const std::uint64_t begin = begin_of(block), end = begin_of(block + 1);
    dataset::BlockHasher hasher(hash_);
    read_ahead(file, block + 1);
    for (std::uint64_t at = begin; at < end; at += kPiece) {
      const auto bytes = std::span(buffer).first(std::min<std::uint64_t>(kPiece, end - at));
      STOKER_RETURN_IF_ERROR(read_piece(file, block, at, bytes));
      hasher.update(bytes);
    }
    compare(block, hasher.finish());
    return end - begin;
  }

  Status read_piece(const codec::ShardFile& file, std::size_t block, std::uint64_t at,
                    std::span<std::byte> into) {
    const Stopwatch watch;
    Status status = file.read_at(at, into);
    is_slow_ = watch.seconds() > kSlow * static_cast<double>(into.size());
    if (status.ok()) {
      feed(at, into);
    } else {
      add(format("block {}", block), shown(info_.blocks[block]), std::string(status.message()));
    }
    return status;
  }

  // Prefetches if the storage is slower than hashing.
  void read_ahead(const codec::ShardFile& file, std::size_t block) const {
    const std::uint64_t begin = begin_of(block), end = begin_of(block + blocks_per_read());
    if (!is_slow_ || begin == end) return;
    file.will_need(begin, end - begin);
  }

  void compare(std::size_t block, const Digest& found) {
    if (found != info_.blocks[block]) bad_blocks_.push_back({block, found});
  }

  void add(std::string sample, std::string expected, std::string found) {
    damaged.push_back({info_.file, std::move(sample), std::move(expected), std::move(found)});
  }

  // The files of a packed shard, in chunk order.
  template <typename ProgressFunction>
  void check_unpacked(const codec::ShardFile& file, const ProgressFunction& report_progress) {
    constexpr std::uint64_t kLeast = 64u << 20;  // per thread; for a table the columns of a row group
    constexpr std::uint64_t kUnpacked = 64u << 20;
    const ByteCount kept{std::max(kLeast, section_.chunks()->cache_bytes_in_read_order())};
    list_extents();
    const codec::ChunkReader reader(*section_.chunks(), std::make_shared<codec::ChunkCache>(kept), info_.file,
                                    codec::ChunkReader::CacheContent::records);
    Bytes bytes;
    for (Extent& extent : extents_) {
      const Component& c = extent.component;
      Status status;
      for (std::uint64_t at = 0; at < c.length && status.ok(); at += bytes.size()) {
        bytes.resize(std::min(kUnpacked, c.length - at));
        status = reader.read(file, c.offset + at, bytes);
        extent.crc = crc32c(bytes, extent.crc);
      }
      if (!status.ok() || extent.crc != c.crc32c) {
        add(name_of(extent), format("CRC-32C {:08x}", c.crc32c),
            status.ok() ? format("{:08x}", extent.crc) : std::string(status.message()));
      }
      if (!report_progress(0)) return;
    }
  }

  void list_extents() {
    for (std::uint64_t s = 0; s < section_.samples(); ++s) {
      for (std::uint32_t c = 0; c < section_.component_count(s); ++c) {
        extents_.push_back({.component = section_.component(s, c), .sample = s, .crc = 0});
      }
    }
    const codec::ChunkMap* const chunks = section_.chunks();
    const bool has_windows = chunks != nullptr && chunks->has_windows() && !chunks->has_columns();
    if (has_windows) return;  // windows over grids are already in chunk order
    // Pack writes files in order; indexes of other shards may differ.
    const bool is_shared = chunks != nullptr && chunks->shares_chunks();
    for (Extent& extent : extents_) {
      const std::uint64_t at = extent.component.offset;
      extent.turn = is_shared ? chunks->read_key(at) : codec::ChunkMap::ReadKey{.at = at};
    }
    std::ranges::sort(extents_, {}, &Extent::turn);
  }

  // Adds a block to the CRCs of its files, and compares the completed ones.
  void feed(std::uint64_t begin, std::span<const std::byte> bytes) {
    const std::uint64_t end = begin + bytes.size();
    while (next_ < extents_.size() && extents_[next_].component.offset < end)
      open_.push_back(extents_[next_++]);
    std::erase_if(open_, [&](Extent& extent) {
      const Component& c = extent.component;
      const std::uint64_t from = std::max(begin, c.offset);
      const std::uint64_t to = std::min(end, c.offset + c.length);
      if (from < to) extent.crc = crc32c(bytes.subspan(from - begin, to - from), extent.crc);
      if (c.offset + c.length > end) return false;
      if (extent.crc != c.crc32c) {
        bad_files_.push_back(c);
        add(name_of(extent), format("CRC-32C {:08x}", c.crc32c), format("{:08x}", extent.crc));
      }
      return true;
    });
  }

  std::string name_of(const Extent& extent) const {
    return format("{}.{}", printable(section_.key(extent.sample)), section_.names()[extent.component.name]);
  }

  // Damaged blocks without a damaged file: headers or padding.
  void add_bad_blocks() {
    for (const BadBlock& bad : bad_blocks_) {
      const std::uint64_t begin = bad.block * dataset::kHashBlock;
      const auto overlaps = [&](const Component& c) {
        return c.offset < begin + dataset::kHashBlock && c.offset + c.length > begin;
      };
      if (std::any_of(bad_files_.begin(), bad_files_.end(), overlaps)) continue;
      const bool is_crc = hash_ == dataset::BlockHash::crc32c;
      add(format("block {}", bad.block),
          format("{} {}", is_crc ? "CRC-32C" : "SHA-256", shown(info_.blocks[bad.block])), shown(bad.found));
    }
  }

  std::string shown(const Digest& digest) const {
    constexpr std::size_t kCrcDigits = 8;
    return hash_ == dataset::BlockHash::crc32c ? hex(digest).substr(0, kCrcDigits) : short_hash(digest);
  }

  struct BadBlock {
    std::size_t block = 0;
    Digest found{};
  };

  const ShardInfo& info_;
  const IndexSection& section_;
  Path path_;
  dataset::BlockHash hash_;
  std::vector<Extent> extents_;
  std::vector<Extent> open_;  // started in an earlier block
  std::size_t next_ = 0;
  std::vector<BadBlock> bad_blocks_;
  std::vector<Component> bad_files_;
  bool is_slow_ = false;  // of the last read
};

struct ShardTask {
  const ShardInfo* info = nullptr;
  const IndexSection* section = nullptr;
  std::vector<Damage> damaged;
};

Status check_index_hash(const Path& dataset, const dataset::OpenDataset& opened) {
  STOKER_RETURN_IF_ERROR(dataset::check_index_bytes(dataset, opened));
  const std::string name = printable((dataset / dataset::kIndexFile).string());
  const dataset::Manifest& manifest = opened.manifest;
  if (!manifest.content) return {};
  const Digest content = dataset::content_digest(opened.index.sections());
  if (content == *manifest.content) return {};
  return corrupt("{}: does not match version {} (content expected {}, found {})", name,
                 manifest.short_version(), short_hash(*manifest.content), short_hash(content));
}

// Compares the class counts of the manifest with the index.
Status check_class_samples(const Path& dataset, const dataset::OpenDataset& opened) {
  const std::vector<std::string>& classes = opened.manifest.schema.classes;
  if (classes.empty()) return {};
  std::size_t number = 0;
  for (const dataset::SplitInfo& split : opened.manifest.splits) {
    std::vector<std::uint64_t> found(classes.size());
    for (const ShardInfo& shard : split.shards) {
      const IndexSection& section = opened.index.sections()[number++];
      const std::optional<std::uint64_t> sample = dataset::count_classes(section, found);
      if (!sample) continue;
      return corrupt("{}: sample {} of {} has label {} of {} classes",
                     printable((dataset / dataset::kIndexFile).string()), *sample, shard.file,
                     section.label(*sample), classes.size());
    }
    for (std::size_t c = 0; c < split.class_samples.size(); ++c) {
      if (split.class_samples[c] == found[c]) continue;
      return corrupt("{}: split '{}' has {} of class '{}', the index has {}",
                     printable((dataset / dataset::kManifestFile).string()), split.name,
                     grouped(split.class_samples[c]), printable(classes[c]), grouped(found[c]));
    }
  }
  return {};
}

}  // namespace

Result<VerifyReport> verify_dataset(const Path& dataset, VerifyDepth depth, int threads, Progress& progress) {
  STOKER_ASSIGN_OR_RETURN(opened, dataset::open_dataset(dataset));
  if (depth != VerifyDepth::sizes) {
    STOKER_RETURN_IF_ERROR(check_index_hash(dataset, opened));
    STOKER_RETURN_IF_ERROR(check_class_samples(dataset, opened));
  }
  std::vector<ShardTask> tasks;
  for (const dataset::SplitInfo& split : opened.manifest.splits) {
    for (const ShardInfo& shard : split.shards) {
      tasks.push_back({.info = &shard, .section = &opened.index.sections()[tasks.size()], .damaged = {}});
    }
  }
  const std::uint64_t total = opened.manifest.bytes();
  std::atomic<std::uint64_t> done{0};
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      ShardCheck check(dataset, opened.manifest.schema.block_hash, *tasks[i].info, *tasks[i].section);
      if (check.check_size() && depth == VerifyDepth::bytes) {
        check.check_bytes([&](std::uint64_t bytes) {
          const std::uint64_t now = done += bytes;
          progress.report({.done = now >> 20, .total = total >> 20, .unit = "MiB", .bytes = {now}});
          return !progress.stop_requested();
        });
      }
      tasks[i].damaged = std::move(check.damaged);
    }
  };
  {
    std::vector<Thread> helpers;
    for (int t = 1; t < threads; ++t) helpers.emplace_back([&](const StopToken&) { work(); });
    work();
  }
  if (progress.stop_requested())
    return cancelled("{}: interrupted before all files were compared", printable(dataset.string()));
  VerifyReport report;
  for (ShardTask& task : tasks) {
    report.damages += task.damaged.size();
    for (Damage& damage : task.damaged) {
      if (report.damaged.size() < VerifyReport::kMaxDamage) report.damaged.push_back(std::move(damage));
    }
  }
  report.manifest = std::move(opened.manifest);
  return report;
}

}  // namespace stoker::pack
