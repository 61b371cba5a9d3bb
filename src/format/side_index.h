// The side index (index.bin): where each sample's bytes lie in which shard, with a CRC-32C and a label, so
// that any sample is one positional read away. Self-contained sections, one per shard. Written by pack and
// index builders, read by the loader and verify. Readers are immutable and thread-safe.
// Layout: docs/formats/index.md.
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
#include "base/status.h"
#include "format/chunked/chunk_map.h"
#include "format/load.h"
#include "format/manifest.h"

namespace stoker::formats {

/// How locators in a section are to be read.
enum class LocatorKind : std::uint16_t {
  byte_range = 1,   ///< offset and length in the shard file
  row = 2,          ///< row group and row (reserved)
  array_slice = 3,  ///< slice of an array (reserved)
  unpacked = 4,     ///< offset and length among the unpacked bytes of the shard's chunks
};

/// Where one file of one sample lies in its shard.
struct Component {
  std::uint64_t offset = 0;  ///< in the shard's file; among the unpacked bytes of its chunks, if it has such
  std::uint64_t length = 0;  ///< below 2^48
  std::uint32_t crc32c = 0;  ///< of exactly these bytes; Castagnoli, initial and final value 0xffffffff
  std::uint16_t name = 0;    ///< position in the section's names()

  bool operator==(const Component&) const = default;
};

/// One sample, as a writer gives it.
struct SampleEntry {
  std::string key;
  std::int64_t label = 0;  ///< ignored when the section has no labels
  std::vector<Component> components;
};

/// Collects the samples of one shard and encodes its section.
class SectionBuilder {
 public:
  /// `has_labels` decides for the whole section. Labels::none writes no label column.
  enum class Labels { none, int64 };
  explicit SectionBuilder(Labels labels) : labels_(labels) {}

  /// The number of a component name (an extension in lower case), added if new.
  std::uint16_t name(std::string_view component);
  /// REQUIRES: at least one component, names from name().
  void add(const SampleEntry& sample);
  /// The offsets of all components in the order in which they were added, where they were not known then.
  /// Empty: nothing changes. REQUIRES: else one for each.
  void place(std::span<const std::uint64_t> offsets);
  std::uint64_t samples() const { return first_.size(); }
  /// The shard is packed: all offsets are those of unpacked bytes.
  void set_chunks(const ChunkMap& chunks) { chunks_ = chunks.encode(); }
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
  std::string chunks_;  // empty: the shard is not packed
};

/// A section that was checked whole when it was parsed: every accessor is then safe for i < samples().
/// Views the bytes it was parsed from.
class IndexSection {
 public:
  /// Corrupt or Invalid, starting with `subject`, for anything that does not hold: CRC, columns beyond the
  /// end, locators beyond the shard, an unknown kind or a column that must be understood.
  static Result<IndexSection> parse(std::span<const std::byte> bytes, std::string_view subject);

  std::uint64_t samples() const { return samples_; }
  std::uint64_t shard_bytes() const { return shard_bytes_; }
  /// Where all offsets lie below: its bytes, or those that its chunks unpack to.
  std::uint64_t reach() const { return chunks_ ? chunks_->bytes() : shard_bytes_; }
  /// Of a shard that is packed, else null. Lives no longer than the section, or copies of it.
  const ChunkMap* chunks() const { return chunks_.get(); }
  const Digest& shard_hash() const { return shard_hash_; }
  const std::vector<std::string>& names() const { return names_; }
  std::uint32_t component_count(std::uint64_t sample) const {
    return load<std::uint32_t>(first_, sample * 4 + 4) - load<std::uint32_t>(first_, sample * 4);
  }
  Component component(std::uint64_t sample, std::uint32_t which) const {
    return component_at(std::uint64_t{load<std::uint32_t>(first_, sample * 4)} + which);
  }
  bool has_labels() const { return has_labels_; }
  /// REQUIRES: has_labels().
  std::int64_t label(std::uint64_t sample) const { return load<std::int64_t>(labels_, sample * 8); }
  /// A hint that component(sample, 0) will be asked for soon.
  void expect(std::uint64_t sample) const {
    __builtin_prefetch(first_.data() + sample * 4);
    // Right where all samples have the same number of files.
    __builtin_prefetch(components_.data() + sample * per_sample_ * kComponentBytes);
  }
  bool has_keys() const { return has_keys_; }
  /// Empty without a key column.
  std::string_view key(std::uint64_t sample) const;

 private:
  struct Reader;
  Status take_columns(std::span<const std::byte> bytes, std::string_view subject);
  Status check(std::uint64_t components, std::string_view subject) const;
  Component component_at(std::uint64_t i) const {
    const std::size_t at = i * kComponentBytes;
    const auto packed = load<std::uint64_t>(components_, at + 8);
    return {.offset = load<std::uint64_t>(components_, at),
            .length = packed & kLengthMask,
            .crc32c = load<std::uint32_t>(components_, at + 16),
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
  std::shared_ptr<const ChunkMap> chunks_;  // shared by copies
};

/// SHA-256 of what the sections say of their samples, which is all but where files lie: for each section how
/// many samples, for each sample its key, its label (-1 for none) and the names, lengths and CRC-32Cs of its
/// files. Numbers and texts as docs/formats/manifest.md has them.
Digest content_of(std::span<const IndexSection> sections);

/// Adds the section's samples to those of their classes, by label; -1 counts nowhere. Stops at a sample whose
/// label is no class, and gives it.
std::optional<std::uint64_t> count_classes(const IndexSection& section, std::span<std::uint64_t> counts);

/// The whole file: header, section table, sections in the order of the manifest's shards.
std::string encode_index(std::span<const std::string> sections);

/// index.bin, mapped or held. Sections are parsed and checked when opened. Movable; sections view its bytes.
class SideIndex {
 public:
  static Result<SideIndex> open(const Path& file);
  /// Views `bytes`, which must outlive the result.
  static Result<SideIndex> parse(std::span<const std::byte> bytes, std::string_view subject);

  const std::vector<IndexSection>& sections() const { return sections_; }
  std::uint64_t samples() const;

 private:
  MappedFile file_;
  std::vector<IndexSection> sections_;
};

}  // namespace stoker::formats
