#include "data/pack/verify.h"

#include <algorithm>
#include <atomic>

#include "base/hash.h"
#include "base/stopwatch.h"
#include "base/thread.h"
#include "format/chunked/chunk_reader.h"
#include "format/shard_source.h"

namespace stoker::data {

namespace {

using formats::Component;
using formats::IndexSection;
using formats::ShardInfo;

constexpr std::size_t kShownDigits = 12;

std::string short_hash(const Digest& digest) { return hex(digest).substr(0, kShownDigits); }

// One file of one sample, on the way through a shard.
struct Extent {
  Component component;
  std::uint64_t sample = 0;
  std::uint32_t crc = 0;
  formats::ChunkMap::Turn turn = {};  // when its chunk is read
};

// Checks one shard: a single pass from front to back feeds both the block hashes and the CRCs.
class ShardCheck {
 public:
  ShardCheck(const Path& folder, formats::BlockHash hash, const ShardInfo& info, const IndexSection& section)
      : info_(info), section_(section), path_(folder / info.file), hash_(hash) {}

  std::vector<Damage> damaged;

  /// Whether the shard is there and of the right size.
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

  /// `go_on(bytes)` is told of progress; false ends the check.
  template <typename GoOn>
  void check_bytes(const GoOn& go_on) {
    if (!section_.chunks()) list_extents();
    const Result<formats::ShardFile> file = formats::ShardFile::open(path_, parts());
    if (!file.ok()) return add("-", format("{} bytes", info_.bytes), std::string(file.status().message()));
    Bytes buffer(hash_ == formats::BlockHash::sha256 ? kTogether * formats::kHashBlock : kPiece);
    for (std::size_t block = 0; block < info_.blocks.size(); block += together()) {
      const Result<std::uint64_t> bytes = hash_ == formats::BlockHash::sha256
                                              ? check_by_sha256(*file, block, buffer)
                                              : check_by_crc32c(*file, block, buffer);
      if (!bytes.ok()) return;  // it is in `damaged`
      if (!go_on(*bytes)) return;
    }
    if (section_.chunks()) check_unpacked(*file, go_on);
    add_bad_blocks();
  }

 private:
  using Bytes = std::vector<std::byte>;
  static constexpr std::size_t kTogether = 2;        // blocks: two are hashed in little more time than one
  static constexpr std::size_t kPiece = 256u << 10;  // stays in a core's own cache
  static constexpr double kSlow = 1e-9;              // seconds for a byte: no page cache

  std::vector<formats::ShardPart> parts() const {
    return section_.chunks() ? section_.chunks()->parts() : std::vector<formats::ShardPart>();
  }

  bool check_parts() {
    const Result<formats::ShardFile> file = formats::ShardFile::open(path_, parts());
    const Status status = file.ok() ? file->check_parts() : file.status();
    if (!status.ok()) add("-", format("{} files", parts().size()), std::string(status.message()));
    return status.ok();
  }

  std::size_t together() const { return hash_ == formats::BlockHash::sha256 ? kTogether : 1; }
  std::uint64_t begin_of(std::size_t block) const {
    return std::min(block * formats::kHashBlock, info_.bytes);
  }

  // Reads and compares as many blocks from `block` on as are hashed together; how many bytes they have.
  Result<std::uint64_t> check_by_sha256(const formats::ShardFile& file, std::size_t block, Bytes& buffer) {
    const std::uint64_t begin = begin_of(block);
    std::vector<std::span<const std::byte>> read;
    Status status;
    for (std::size_t b = block; b < std::min(block + kTogether, info_.blocks.size()) && status.ok(); ++b) {
      const auto bytes = std::span(buffer).subspan(begin_of(b) - begin, begin_of(b + 1) - begin_of(b));
      status = read_piece(file, b, begin_of(b), bytes);
      if (status.ok()) read.push_back(bytes);
    }
    read_ahead(file, block + kTogether);
    if (read.size() == kTogether) {
      const auto both = sha256_of_two(read[0], read[1]);
      for (std::size_t i = 0; i < kTogether; ++i) compare(block + i, both[i]);
    } else if (!read.empty()) {
      compare(block, sha256(read[0]));
    }
    RETURN_IF_ERROR(status);
    return begin_of(block + kTogether) - begin;
  }

  Result<std::uint64_t> check_by_crc32c(const formats::ShardFile& file, std::size_t block, Bytes& buffer) {
    const std::uint64_t begin = begin_of(block), end = begin_of(block + 1);
    formats::BlockHasher hasher(hash_);
    read_ahead(file, block + 1);
    for (std::uint64_t at = begin; at < end; at += kPiece) {
      const auto bytes = std::span(buffer).first(std::min<std::uint64_t>(kPiece, end - at));
      RETURN_IF_ERROR(read_piece(file, block, at, bytes));
      hasher.update(bytes);
    }
    compare(block, hasher.finish());
    return end - begin;
  }

  Status read_piece(const formats::ShardFile& file, std::size_t block, std::uint64_t at,
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

  // Storage that is slower than the hashes works on what comes next meanwhile.
  void read_ahead(const formats::ShardFile& file, std::size_t block) const {
    const std::uint64_t begin = begin_of(block), end = begin_of(block + together());
    if (!is_slow_ || begin == end) return;
    file.will_need(begin, end - begin);
  }

  void compare(std::size_t block, const Digest& found) {
    if (found != info_.blocks[block]) bad_blocks_.push_back({block, found});
  }

  void add(std::string sample, std::string expected, std::string found) {
    damaged.push_back({info_.file, std::move(sample), std::move(expected), std::move(found)});
  }

  // The files of a packed shard, in the order in which they lie in its chunks.
  template <typename GoOn>
  void check_unpacked(const formats::ShardFile& file, const GoOn& go_on) {
    constexpr std::uint64_t kLeast = 64u << 20;  // for each thread; of a table a row group's columns
    constexpr std::uint64_t kUnpacked = 64u << 20;
    const ByteCount kept{std::max(kLeast, section_.chunks()->held_for_turns())};
    list_extents();
    const formats::ChunkReader reader(*section_.chunks(), std::make_shared<formats::ChunkCache>(kept),
                                      info_.file, formats::ChunkReader::Keep::records);
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
      if (!go_on(0)) return;
    }
  }

  void list_extents() {
    for (std::uint64_t s = 0; s < section_.samples(); ++s) {
      for (std::uint32_t c = 0; c < section_.component_count(s); ++c) {
        extents_.push_back({.component = section_.component(s, c), .sample = s, .crc = 0});
      }
    }
    const formats::ChunkMap* const chunks = section_.chunks();
    const bool has_windows = chunks != nullptr && chunks->has_windows() && !chunks->has_columns();
    if (has_windows) return;  // over grids: chunk by chunk as they are
    // Pack writes them in order; an index made by others need not.
    const bool is_shared = chunks != nullptr && chunks->shares_chunks();
    for (Extent& extent : extents_) {
      const std::uint64_t at = extent.component.offset;
      extent.turn = is_shared ? chunks->turn(at) : formats::ChunkMap::Turn{.at = at};
    }
    std::ranges::sort(extents_, {}, &Extent::turn);
  }

  // Adds a block to the CRCs of the files that lie in it, and judges those that end in it.
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

  // Blocks whose damage no file's CRC has told: it lies in headers or padding.
  void add_bad_blocks() {
    for (const BadBlock& bad : bad_blocks_) {
      const std::uint64_t begin = bad.block * formats::kHashBlock;
      const auto lies_in = [&](const Component& c) {
        return c.offset < begin + formats::kHashBlock && c.offset + c.length > begin;
      };
      if (std::any_of(bad_files_.begin(), bad_files_.end(), lies_in)) continue;
      const bool is_crc = hash_ == formats::BlockHash::crc32c;
      add(format("block {}", bad.block),
          format("{} {}", is_crc ? "CRC-32C" : "SHA-256", shown(info_.blocks[bad.block])), shown(bad.found));
    }
  }

  std::string shown(const Digest& digest) const {
    constexpr std::size_t kCrcDigits = 8;
    return hash_ == formats::BlockHash::crc32c ? hex(digest).substr(0, kCrcDigits) : short_hash(digest);
  }

  struct BadBlock {
    std::size_t block = 0;
    Digest found{};
  };

  const ShardInfo& info_;
  const IndexSection& section_;
  Path path_;
  formats::BlockHash hash_;
  std::vector<Extent> extents_;
  std::vector<Extent> open_;  // begun in an earlier block
  std::size_t next_ = 0;
  std::vector<BadBlock> bad_blocks_;
  std::vector<Component> bad_files_;
  bool is_slow_ = false;  // the last read
};

struct Task {
  const ShardInfo* info = nullptr;
  const IndexSection* section = nullptr;
  std::vector<Damage> damaged;
};

Status check_index_hash(const Path& dataset, const formats::OpenDataset& opened) {
  const std::string name = printable((dataset / formats::kIndexFile).string());
  OK_OR_RETURN(index, MappedFile::open(dataset / formats::kIndexFile));
  const formats::Manifest& manifest = opened.manifest;
  const Digest found = sha256(index.bytes());
  if (index.bytes().size() != manifest.index_bytes || found != manifest.index_hash) {
    return corrupt("{}: is not the index that the manifest names (SHA-256 expected {}, found {})", name,
                   short_hash(manifest.index_hash), short_hash(found));
  }
  if (!manifest.content) return {};
  const Digest content = formats::content_of(opened.index.sections());
  if (content == *manifest.content) return {};
  return corrupt("{}: its samples are not those of version {} (content expected {}, found {})", name,
                 manifest.short_version(), short_hash(*manifest.content), short_hash(content));
}

// How many samples of each class the manifest counts, against the index.
Status check_class_samples(const Path& dataset, const formats::OpenDataset& opened) {
  const std::vector<std::string>& classes = opened.manifest.schema.classes;
  if (classes.empty()) return {};
  std::size_t number = 0;
  for (const formats::SplitInfo& split : opened.manifest.splits) {
    std::vector<std::uint64_t> found(classes.size());
    for (const ShardInfo& shard : split.shards) {
      const IndexSection& section = opened.index.sections()[number++];
      const std::optional<std::uint64_t> sample = formats::count_classes(section, found);
      if (!sample) continue;
      return corrupt("{}: sample {} of {} has label {} of {} classes",
                     printable((dataset / formats::kIndexFile).string()), *sample, shard.file,
                     section.label(*sample), classes.size());
    }
    for (std::size_t c = 0; c < split.class_samples.size(); ++c) {
      if (split.class_samples[c] == found[c]) continue;
      return corrupt("{}: split '{}' has {} of class '{}', the index {}",
                     printable((dataset / formats::kManifestFile).string()), split.name,
                     grouped(split.class_samples[c]), printable(classes[c]), grouped(found[c]));
    }
  }
  return {};
}

}  // namespace

Result<VerifyReport> verify_dataset(const Path& dataset, VerifyDepth depth, int threads, Progress& progress) {
  OK_OR_RETURN(opened, formats::open_dataset(dataset));
  RETURN_IF_ERROR(check_index_hash(dataset, opened));
  RETURN_IF_ERROR(check_class_samples(dataset, opened));
  std::vector<Task> tasks;
  for (const formats::SplitInfo& split : opened.manifest.splits) {
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
    return cancelled("{}: stopped before all was compared", printable(dataset.string()));
  VerifyReport report;
  for (Task& task : tasks) {
    report.damages += task.damaged.size();
    for (Damage& damage : task.damaged) {
      if (report.damaged.size() < VerifyReport::kMostDamage) report.damaged.push_back(std::move(damage));
    }
  }
  report.manifest = std::move(opened.manifest);
  return report;
}

}  // namespace stoker::data
