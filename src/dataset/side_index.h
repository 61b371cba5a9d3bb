// The side index (index.bin): shard, offset, CRC-32C and label of each sample, so that one positional read
// loads any sample. Self-contained sections, one per shard. Written by pack and index builders, read by the
// loader and verify. Readers are immutable and thread-safe. Layout: docs/formats/index.md.
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
#include "codec/chunks/chunk_map.h"
#include "codec/load.h"
#include "dataset/manifest.h"
#include "stoker/status.h"

namespace stoker::dataset {

/// The meaning of locators in a section.
enum class LocatorKind : std::uint16_t {
  byte_range = 1,   ///< offset and length in the shard file
  row = 2,          ///< row group and row (reserved)
  array_slice = 3,  ///< slice of an array (reserved)
  unpacked = 4,     ///< offset and length among the decompressed bytes of the shard's chunks
};

/// The byte range of one file of one sample in its shard.
struct Component {
  std::uint64_t offset = 0;  ///< in the shard's file, or among the decompressed bytes of its chunks
  std::uint64_t length = 0;  ///< below 2^48
  std::uint32_t crc32c = 0;  ///< of the byte range; Castagnoli, initial and final value 0xffffffff
  std::uint16_t name = 0;    ///< position in the section's names()

  bool operator==(const Component&) const = default;
};

/// One sample, as passed by a writer.
struct SampleEntry {
  std::string key;
  std::int64_t label = 0;  ///< ignored when the section has no labels
  std::vector<Component> components;
};

/// Collects the samples of one shard and encodes its section.
class SectionBuilder {
 public:
  /// Whether the section has a label column.
  enum class Labels { none, int64 };
  explicit SectionBuilder(Labels labels) : labels_(labels) {}

  /// The number of a component name (an extension in lower case), added if new.
  std::uint16_t name(std::string_view component);
  /// REQUIRES: at least one component, names from name().
  void add(const SampleEntry& sample);
  /// Sets the offsets of all components in the order of add(), if they were unknown before. Empty: no change.
  /// REQUIRES: otherwise one per component.
  void set_offsets(std::span<const std::uint64_t> offsets);
  std::uint64_t samples() const { return first_.size(); }
  /// The shard is chunked: all offsets count decompressed bytes.
  void set_chunks(const codec::ChunkMap& chunks) { chunks_ = chunks.encode(); }
  /// The section's bytes; deterministic.
  std::string encode(std::uint64_t shard_bytes, const Digest& shard_hash) const;

 private:
  Labels labels_;
  std::vector<std::string> names_;
  std::vector<std::uint32_t> first_;
  std::vector<Component> components_;
  std::vector<std::int64_t> label_;
  std::vector<std::uint32_t> key_begin_;
  std::string keys_;
  std::string chunks_;  // empty: the shard is not chunked
};

/// A section that parse() has checked completely: every accessor is safe for i < samples(). Views the parsed
/// bytes.
class IndexSection {
 public:
  /// Corrupt or Invalid, starting with `subject`, for a wrong CRC, columns beyond the end, locators beyond
  /// the shard, an unknown kind or an unknown mandatory column.
  static Result<IndexSection> parse(std::span<const std::byte> bytes, std::string_view subject);

  std::uint64_t samples() const { return samples_; }
  std::uint64_t shard_bytes() const { return shard_bytes_; }
  /// Upper bound of all offsets: the shard's size, or its decompressed size.
  std::uint64_t offset_limit() const { return chunks_ ? chunks_->bytes() : shard_bytes_; }
  /// null if the shard is not chunked. Owned by the section and its copies.
  const codec::ChunkMap* chunks() const { return chunks_.get(); }
  const Digest& shard_hash() const { return shard_hash_; }
  const std::vector<std::string>& names() const { return names_; }
  std::uint32_t component_count(std::uint64_t sample) const {
    return codec::load<std::uint32_t>(first_, sample * 4 + 4) -
           codec::load<std::uint32_t>(first_, sample * 4);
  }
  Component component(std::uint64_t sample, std::uint32_t which) const {
    return component_at(std::uint64_t{codec::load<std::uint32_t>(first_, sample * 4)} + which);
  }
  bool has_labels() const { return has_labels_; }
  /// REQUIRES: has_labels().
  std::int64_t label(std::uint64_t sample) const { return codec::load<std::int64_t>(labels_, sample * 8); }
  /// Prefetches component(sample, 0) into the CPU cache.
  void prefetch(std::uint64_t sample) const {
    __builtin_prefetch(first_.data() + sample * 4);
    // Exact if all samples have the same number of files.
    __builtin_prefetch(components_.data() + sample * per_sample_ * kComponentBytes);
  }
  bool has_keys() const { return has_keys_; }
  /// Empty without a key column.
  std::string_view key(std::uint64_t sample) const;

 private:
  struct Reader;
  Status parse_columns(std::span<const std::byte> bytes, std::string_view subject);
  Status check(std::uint64_t components, std::string_view subject) const;
  Component component_at(std::uint64_t i) const {
    const std::size_t at = i * kComponentBytes;
    const auto packed = codec::load<std::uint64_t>(components_, at + 8);
    return {.offset = codec::load<std::uint64_t>(components_, at),
            .length = packed & kLengthMask,
            .crc32c = codec::load<std::uint32_t>(components_, at + 16),
            .name = static_cast<std::uint16_t>(packed >> 48)};
  }

  static constexpr std::size_t kComponentBytes = 20;
  static constexpr std::uint64_t kLengthMask = (std::uint64_t{1} << 48) - 1;

  std::uint64_t samples_ = 0;
  std::uint64_t per_sample_ = 1;  // components, rounded down
  std::uint64_t shard_bytes_ = 0;
  Digest shard_hash_{};
  std::vector<std::string> names_;
  std::span<const std::byte> first_, components_, labels_, key_begin_, keys_;
  bool has_labels_ = false;
  bool has_keys_ = false;
  std::shared_ptr<const codec::ChunkMap> chunks_;  // shared by copies
};

/// SHA-256 of the samples without their offsets: for each section the number of samples, for each sample its
/// key, its label (-1 without one) and the names, lengths and CRC-32Cs of its files. Encoding:
/// docs/formats/manifest.md.
Digest content_digest(std::span<const IndexSection> sections);

/// Adds the section's samples to `counts` by label; -1 is not counted. Stops at the first sample with an
/// invalid label and returns it.
std::optional<std::uint64_t> count_classes(const IndexSection& section, std::span<std::uint64_t> counts);

/// The whole file: header, section table, sections in the order of the manifest's shards.
std::string encode_index(std::span<const std::string> sections);

/// index.bin, mapped or in memory. Sections are parsed and checked when opened. Movable; sections view its
/// bytes.
class SideIndex {
 public:
  static Result<SideIndex> open(const Path& file);
  /// Views `bytes`, which must outlive the result.
  static Result<SideIndex> parse(std::span<const std::byte> bytes, std::string_view subject);

  const std::vector<IndexSection>& sections() const { return sections_; }
  std::uint64_t samples() const;
  /// The whole file.
  std::span<const std::byte> bytes() const { return bytes_; }
  /// SHA-256 of header and table. The table has the CRC-32C of each section, which parse() compares, so the
  /// digest identifies the whole index at the cost of its table.
  Digest table_digest() const;

 private:
  MappedFile file_;
  std::span<const std::byte> bytes_;
  std::vector<IndexSection> sections_;
};

/// Sets the size and the hashes of the index in the manifest. REQUIRES: `index` is from encode_index().
void describe_index(std::string_view index, Manifest& manifest);

}  // namespace stoker::dataset
