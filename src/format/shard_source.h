// ShardSource: how the loader gets bytes, wherever they lie: a dataset folder now, a node's cache later. The
// loader asks for samples of a split by number and never knows of files. Thread-safe: every const call may
// run on any number of threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/status.h"
#include "format/manifest.h"
#include "format/side_index.h"

namespace stoker::formats {

/// Where one file of a sample lies, ready to be read. `shard` counts within the split.
struct Locator {
  std::uint32_t shard = 0;
  std::uint16_t component = 0;  ///< position in SampleTable::components()
  std::uint32_t crc32c = 0;     ///< of the bytes offset .. offset + length
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool operator==(const Locator&) const = default;
};

/// The samples of one split, numbered from 0 in the order they were packed. Views the source's index: lives
/// no longer than its ShardSource. Accessors are O(log shards) and need `sample < size()`.
class SampleTable {
 public:
  SampleTable() = default;
  /// `sections` are the split's, in order.
  SampleTable(std::vector<const IndexSection*> sections, const Schema& schema);

  std::uint64_t size() const { return begin_.empty() ? 0 : begin_.back(); }
  /// Names of component kinds and which are images; Locator::component points here.
  const std::vector<ComponentInfo>& components() const { return components_; }
  /// Files of this sample; at least 1.
  std::uint32_t component_count(std::uint64_t sample) const;
  /// Its `which`-th file, in the order they lie in the shard.
  Locator locate(std::uint64_t sample, std::uint32_t which) const;
  /// Length of what locate() gives for a sample that has no such file: longer than any file.
  static constexpr std::uint64_t kNoFile = ~std::uint64_t{0};
  /// One file of each of `samples`, written to `out`: its first of kind `component`; without one its first
  /// image, or its first file when it has no image. For many samples, much faster than one by one.
  void locate(std::span<const std::uint64_t> samples, std::optional<std::uint16_t> component,
              std::span<Locator> out) const;
  /// Its first image; nothing if it has none.
  std::optional<Locator> image(std::uint64_t sample) const;
  /// One for each shard of the split.
  const std::vector<const IndexSection*>& sections() const { return sections_; }
  bool has_labels() const { return has_labels_; }
  /// Nothing if the dataset has no labels.
  std::optional<std::int64_t> label(std::uint64_t sample) const;
  /// Those of `samples`, written to `out`; -1 where label() has none.
  void labels(std::span<const std::uint64_t> samples, std::span<std::int64_t> out) const;
  /// Path and basename without extension, as WebDataset's __key__; empty if the index has no keys.
  std::string_view key(std::uint64_t sample) const;
  /// Which shard of the split holds it, and how many samples lie before it there.
  struct Place {
    std::uint32_t shard = 0;
    std::uint64_t sample = 0;
  };
  Place place(std::uint64_t sample) const;
  /// Samples, one behind another, whose largest files lie in the same chunk; a shard that is not packed
  /// counts as one chunk. Their sum is size().
  std::vector<std::uint64_t> samples_per_chunk() const;

 private:
  Locator locator(Place place, std::uint32_t which) const;
  Locator choose(Place place, std::optional<std::uint16_t> component) const;
  void fill_buckets();

  std::vector<const IndexSection*> sections_;
  std::vector<std::uint64_t> begin_;  // samples before each section, and their sum
  // Which section holds sample 0, 2^shift, 2 * 2^shift, ..., and the last section: between two neighbours
  // there are few to search.
  std::vector<std::uint32_t> buckets_;
  int bucket_shift_ = 0;
  std::vector<ComponentInfo> components_;
  std::vector<std::vector<std::uint16_t>> renumber_;  // per section: its name number → ours
  bool has_labels_ = false;
};

/// Bytes of one split's shards.
class ShardSource {
 public:
  virtual ~ShardSource() = default;

  virtual const Manifest& manifest() const = 0;
  virtual const SplitInfo& split() const = 0;
  virtual const SampleTable& samples() const = 0;
  /// Fills `out` from byte `offset` of the split's shard, where locators lead: of a packed one its unpacked
  /// bytes, each chunk being kept for those who come next (keep_chunks()). Blocks on the storage. Corrupt if
  /// the shard is too short, NotFound or Unavailable if it cannot be opened; the text names the file.
  virtual Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// Bytes that will soon be read: slow storage may begin to fetch them. Returns at once, does nothing where
  /// the source knows no such thing, and cannot fail.
  virtual void will_need(std::uint32_t /*shard*/, std::uint64_t /*offset*/, std::uint64_t /*length*/) const {}
  /// The whole shard in memory, or Unavailable where only read() works. Valid as long as the source. Touching
  /// it may block on the storage; a shard that is truncated after it was opened raises SIGBUS.
  virtual Result<std::span<const std::byte>> map(std::uint32_t shard) const = 0;

  /// Corrupt "<file>: sample '<key>' (<component>): CRC-32C expected <x>, found <y>" if `bytes` are not those
  /// the locator was written for.
  Status check(std::uint64_t sample, const Locator& locator, std::span<const std::byte> bytes) const;
};

/// What sources keep of unpacked chunks unless they are told otherwise.
inline constexpr ByteCount kKeptChunks{256u << 20};

/// Shards read in place from a dataset folder. Opening reads manifest and index and compares them; shards are
/// opened when first touched and must then have the size the manifest says.
class LocalShardSource final : public ShardSource {
 public:
  /// The split of that name; empty: the only one.
  static Result<std::unique_ptr<LocalShardSource>> open(const Path& dataset, std::string_view split);
  ~LocalShardSource() override;

  const Manifest& manifest() const override;
  const SplitInfo& split() const override;
  const SampleTable& samples() const override;
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override;
  void will_need(std::uint32_t shard, std::uint64_t offset, std::uint64_t length) const override;
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override;
  /// How many unpacked bytes of packed shards are kept at most, beside those that are being read: from now
  /// on.
  void keep_chunks(ByteCount limit);
  /// Of chunks that were unpacked, and that were still there.
  ChunkCache::Counts chunk_counts() const;

 private:
  struct Parts;
  explicit LocalShardSource(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

/// Reads manifest and index of a dataset folder and compares them: one section per shard, same sizes, hashes
/// and counts. What `LocalShardSource::open` and `stoker data verify` start with.
struct OpenDataset {
  Manifest manifest;
  SideIndex index;
};
Result<OpenDataset> open_dataset(const Path& folder);

}  // namespace stoker::formats
