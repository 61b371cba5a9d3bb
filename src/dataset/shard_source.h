// ShardSource: the loader's interface to the bytes of shards, in a dataset folder or in a node's cache. The
// loader requests samples of a split by number and does not know files. Thread-safe: every const
// call may run on any number of threads at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "dataset/manifest.h"
#include "dataset/side_index.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::dataset {

/// The byte range of one file of a sample. `shard` counts within the split.
struct Locator {
  std::uint32_t shard = 0;
  std::uint16_t component = 0;  ///< position in SampleTable::components()
  std::uint32_t crc32c = 0;     ///< of the byte range
  std::uint64_t offset = 0;
  std::uint64_t length = 0;

  bool operator==(const Locator&) const = default;
};

/// The samples of one split, numbered from 0 in packing order. Views the source's index, so it must not
/// outlive its ShardSource. Accessors are O(log shards) and need `sample < size()`.
class SampleTable {
 public:
  SampleTable() = default;
  /// `sections` of the split, in order.
  SampleTable(std::vector<const IndexSection*> sections, const DatasetSchema& schema);

  std::uint64_t size() const { return begin_.empty() ? 0 : begin_.back(); }
  /// Names of the components and which are images; indexed by Locator::component.
  const std::vector<ComponentInfo>& components() const { return components_; }
  /// Files of this sample; at least 1.
  std::uint32_t component_count(std::uint64_t sample) const;
  /// Its `which`-th file, in the order of the shard.
  Locator locate(std::uint64_t sample, std::uint32_t which) const;
  /// Length in the result of locate() for a sample without the component: longer than any file.
  static constexpr std::uint64_t kNoFile = ~std::uint64_t{0};
  /// Writes one file of each of `samples` to `out`: the first of kind `component`; without a component, the
  /// first image, or the first file if there is no image. Much faster than single calls.
  void locate(std::span<const std::uint64_t> samples, std::optional<std::uint16_t> component,
              std::span<Locator> out) const;
  /// Its first image; nullopt without images.
  std::optional<Locator> image(std::uint64_t sample) const;
  /// One for each shard of the split.
  const std::vector<const IndexSection*>& sections() const { return sections_; }
  bool has_labels() const { return has_labels_; }
  /// nullopt if the dataset has no labels.
  std::optional<std::int64_t> label(std::uint64_t sample) const;
  /// Writes the labels of `samples` to `out`; -1 where label() has no value.
  void labels(std::span<const std::uint64_t> samples, std::span<std::int64_t> out) const;
  /// Path and basename without extension, as WebDataset's __key__; empty if the index has no keys.
  std::string_view key(std::uint64_t sample) const;
  /// The shard in the split that holds a sample, and the sample's number in the shard.
  struct SamplePosition {
    std::uint32_t shard = 0;
    std::uint64_t sample = 0;
  };
  SamplePosition position(std::uint64_t sample) const;
  /// Runs of consecutive samples whose largest files are in the same chunk; a shard without chunks counts as
  /// one chunk. The sum is size().
  std::vector<std::uint64_t> samples_per_chunk() const;

 private:
  Locator locator(SamplePosition position, std::uint32_t which) const;
  Locator choose(SamplePosition position, std::optional<std::uint16_t> component) const;
  void fill_buckets();

  std::vector<const IndexSection*> sections_;
  std::vector<std::uint64_t> begin_;  // samples before each section, and their sum
  // The section of samples 0, 2^shift, 2 * 2^shift, ..., and the last section: narrows the search to few
  // sections.
  std::vector<std::uint32_t> buckets_;
  int bucket_shift_ = 0;
  std::vector<ComponentInfo> components_;
  std::vector<std::vector<std::uint16_t>>
      renumber_;  // per section: its component number → number in components_
  bool has_labels_ = false;
};

/// Bytes of one split's shards.
class ShardSource {
 public:
  virtual ~ShardSource() = default;

  virtual const Manifest& manifest() const = 0;
  virtual const SplitInfo& split() const = 0;
  virtual const SampleTable& samples() const = 0;
  /// Fills `out` from byte `offset` of the split's shard, as in locators. For a chunked shard, offsets count
  /// decompressed bytes, and chunks are cached (set_chunk_cache_limit()). Blocks on the storage. Corrupt if
  /// the shard is too short, NotFound or Unavailable if it cannot be opened; the message names the file.
  virtual Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const = 0;
  /// Lets slow storage prefetch bytes. Returns at once and cannot fail; does nothing where unsupported.
  virtual void will_need(std::uint32_t /*shard*/, std::uint64_t /*offset*/, std::uint64_t /*length*/) const {}
  /// The whole shard in memory, or Unavailable if only read() works. Valid as long as the source. Page faults
  /// may block on the storage; truncating an open shard raises SIGBUS.
  virtual Result<std::span<const std::byte>> map(std::uint32_t shard) const = 0;

  /// Corrupt "<file>: sample '<key>' (<component>): CRC-32C expected <x>, found <y>" if `bytes` do not match
  /// the locator.
  Status check(std::uint64_t sample, const Locator& locator, std::span<const std::byte> bytes) const;
};

/// Default limit of cached decompressed chunks.
inline constexpr ByteCount kDefaultChunkCache{256u << 20};

/// Shards read in place from a dataset folder. Opening reads manifest and index and compares them. Shards are
/// opened on first use and must have the size in the manifest. In the folder of a node's cache, a shard that
/// was opened at the source is opened again, at most once a second, when its copy is there.
class LocalShardSource final : public ShardSource {
 public:
  /// Opens the named split, or the only one if the name is empty.
  static Result<std::unique_ptr<LocalShardSource>> open(const Path& dataset, std::string_view split);
  ~LocalShardSource() override;

  const Manifest& manifest() const override;
  const SplitInfo& split() const override;
  const SampleTable& samples() const override;
  Status read(std::uint32_t shard, std::uint64_t offset, std::span<std::byte> out) const override;
  void will_need(std::uint32_t shard, std::uint64_t offset, std::uint64_t length) const override;
  Result<std::span<const std::byte>> map(std::uint32_t shard) const override;
  /// Limit on cached decompressed bytes of chunked shards, besides chunks in use; applies immediately.
  void set_chunk_cache_limit(ByteCount limit);
  /// Decompressed chunks and cache hits.
  codec::ChunkCache::Counts chunk_cache_counts() const;

  /// Bytes that read() returned. Both 0 outside a node's cache.
  struct ReadBytes {
    std::uint64_t source = 0;  ///< of shards whose copy was not there
    std::uint64_t copy = 0;
  };
  ReadBytes read_bytes() const;

 private:
  struct Impl;
  explicit LocalShardSource(std::unique_ptr<Impl> parts);
  std::unique_ptr<Impl> impl_;
};

/// Reads manifest and index of a dataset folder and compares them: one section per shard, same sizes, hashes
/// and counts, and the index is the one that the manifest lists, by size and hash. Every reader of samples
/// opens a dataset here.
struct OpenDataset {
  Manifest manifest;
  SideIndex index;
};
Result<OpenDataset> open_dataset(const Path& folder);

/// Corrupt unless the bytes of index.bin have the size and SHA-256 in the manifest.
Status check_index_bytes(const Path& folder, const OpenDataset& opened);
/// The start of a hash, for messages.
std::string short_hash(const Digest& digest);

}  // namespace stoker::dataset
