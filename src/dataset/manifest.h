// manifest.json describes a dataset: its shards, and their hashes. It is written last, so a folder without it
// is not a dataset. Used by pack, the loader, staging, the capsule. Plain values, thread-safe to read.
// Layout: docs/formats/manifest.md.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "stoker/status.h"

namespace stoker::dataset {

constexpr std::string_view kManifestFile = "manifest.json";
constexpr std::string_view kIndexFile = "index.bin";
/// Folder of unfinished work of `stoker data pack` inside the dataset folder.
constexpr std::string_view kPendingFolder = ".packing";
/// Shards are hashed in blocks of this size, the last one shorter, so that parts can be verified alone.
constexpr std::uint64_t kHashBlock = 4u << 20;

/// How blocks of shards are hashed.
enum class BlockHash {
  sha256,  ///< detects forged blocks too
  crc32c,  ///< detects damage only, at the speed of memory
};

/// "sha256", "crc32c".
std::string_view to_text(BlockHash hash);

/// The digest of one block, computed in pieces. A CRC-32C is in the first four bytes, most significant first;
/// the rest is zero. Thread-compatible.
class BlockHasher {
 public:
  explicit BlockHasher(BlockHash hash) : hash_(hash) {}
  void update(std::span<const std::byte> bytes);
  /// The same with a known CRC-32C of the bytes.
  void update(std::span<const std::byte> bytes, std::uint32_t crc32c);
  /// The digest of all bytes. Resets the hasher.
  Digest finish();

 private:
  BlockHash hash_;
  Sha256 sha256_;
  std::uint32_t crc_ = 0;
};

/// The digest of a whole block.
Digest block_digest(BlockHash hash, std::span<const std::byte> block);

/// A shard's hash: SHA-256 over the concatenated digests of its blocks.
Digest shard_hash(std::span<const Digest> blocks);

/// One shard file.
struct ShardInfo {
  std::string file;  ///< name inside the dataset folder; never holds a '/'
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  Digest hash{};
  std::vector<Digest> blocks;

  bool operator==(const ShardInfo&) const = default;
};

/// A named part of the dataset ("train", "val"; "all" if the source had no splits). Its samples are numbered
/// from 0, in the order of its shards.
struct SplitInfo {
  std::string name;
  std::uint64_t samples = 0;
  std::vector<ShardInfo> shards;
  std::vector<std::uint64_t> class_samples;  ///< per class; a statistic, outside the version; may be empty

  bool operator==(const SplitInfo&) const = default;
};

/// One component of samples, by its file extension in lower case: "jpg", "seg.png".
struct ComponentInfo {
  std::string name;
  bool is_image = false;
  bool operator==(const ComponentInfo&) const = default;
};

/// The structure of samples. Part of the version.
struct DatasetSchema {
  std::string container = "tar";
  std::vector<ComponentInfo> components;  ///< sorted by name
  bool has_labels = false;                ///< the index has an int64 label for each sample
  std::vector<std::string> classes;       ///< name of label 0, 1, ...; empty if labels have no names
  BlockHash block_hash = BlockHash::sha256;

  bool operator==(const DatasetSchema&) const = default;
};

/// Sums over 8-bit RGB pixels, exact, so that they do not depend on the order of adding.
struct ChannelSums {
  std::uint64_t pixels = 0;
  std::array<std::uint64_t, 3> sum{};
  std::array<std::uint64_t, 3> square_sum{};

  void add(const ChannelSums& other);
  /// Mean of channel `c`, as a share of 255. REQUIRES: pixels > 0.
  double mean(std::size_t c) const;
  double deviation(std::size_t c) const;
  bool operator==(const ChannelSums&) const = default;
};

/// Statistics of packed images; not part of the version. All zero without images.
struct ImageStatistics {
  std::uint64_t images = 0;
  std::uint64_t progressive = 0;
  std::uint64_t grayscale = 0;
  std::uint64_t cmyk = 0;
  std::uint64_t alpha = 0;
  std::uint64_t misnamed = 0;  ///< with an extension of a different format
  std::uint32_t width_min = 0, width_max = 0, height_min = 0, height_max = 0;
  std::uint64_t pixels = 0;
  ChannelSums channels;         ///< only when images were decoded
  std::uint64_t reencoded = 0;  ///< resized, or with a different quality than the source

  void add(const ImageStatistics& other);
  bool operator==(const ImageStatistics&) const = default;
};

/// The DVC version of the packed source, from a .dvc file beside it.
struct SourceVersion {
  std::string file;         ///< "images.dvc"
  std::string md5;          ///< in hexadecimal digits; for a folder with ".dir" appended
  std::uint64_t bytes = 0;  ///< in total; 0 if unknown
  std::uint64_t files = 0;  ///< in a folder

  bool operator==(const SourceVersion&) const = default;
};

struct Manifest {
  std::string version;  ///< 64 hexadecimal digits; see dataset_version()
  DatasetSchema schema;
  std::vector<SplitInfo> splits;
  std::uint64_t index_bytes = 0;
  Digest index_hash{};  ///< SHA-256 of index.bin
  /// SideIndex::table_digest(), which a reader compares in microseconds; absent in older manifests.
  std::optional<Digest> index_table = {};
  /// content_digest() of the index, if the shards do not define the samples completely. Then part of the
  /// version.
  std::optional<Digest> content = {};
  // Outside the version:
  ImageStatistics images;
  std::map<std::string, std::uint64_t> left_out;  ///< reason → files
  std::optional<SourceVersion> source;

  /// The first eight digits, for users.
  std::string short_version() const { return version.substr(0, 8); }
  std::uint64_t samples() const;
  std::uint64_t bytes() const;  ///< of all shards
  std::uint64_t shard_count() const;
  /// The named split, or the only one for an empty name. NotFound, with a list of the splits.
  Result<const SplitInfo*> split(std::string_view name) const;

  bool operator==(const Manifest&) const = default;
};

/// Whether shards of this schema may store labels only in the index, so that the manifest has a `content`:
/// tar.
bool stores_labels_in_index(const DatasetSchema& schema);
/// The version: SHA-256 over canonical bytes of schema, splits, shard hashes and the optional `content`.
std::string dataset_version(const Manifest& manifest);
/// Invalid, starting with `subject`, for a name that JSON cannot store: a class, split, component or shard
/// that is not UTF-8. A manifest is written only without one.
Status check_names(const Manifest& manifest, std::string_view subject);
/// JSON text with a final newline; deterministic.
std::string to_json(const Manifest& manifest);
/// Strict: an unknown format version, incompatible features, missing or contradicting fields and a wrong
/// `version` are errors that start with `subject`.
Result<Manifest> parse_manifest(std::string_view json, std::string_view subject);
/// Reads `<dataset>/manifest.json`. NotFound with a cure if the folder is not a dataset or unfinished.
Result<Manifest> read_manifest(const Path& dataset);

}  // namespace stoker::dataset
