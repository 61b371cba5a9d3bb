// manifest.json: what a dataset is, which shards it has and how they are verified. It is written last, so a
// folder without it is no dataset. Used by pack, the loader, staging, the capsule. Plain values, thread-safe
// to read. Layout: docs/formats/manifest.md.
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
#include "base/status.h"

namespace stoker::formats {

constexpr std::string_view kManifestFile = "manifest.json";
constexpr std::string_view kIndexFile = "index.bin";
/// Where `stoker data pack` works inside the dataset folder until the dataset is whole.
constexpr std::string_view kPendingFolder = ".packing";
/// Shards are hashed in blocks of this size, the last one shorter, so that parts can be verified alone.
constexpr std::uint64_t kHashBlock = 4u << 20;

/// How blocks of shards are hashed.
enum class BlockHash {
  sha256,  ///< also tells a forged block
  crc32c,  ///< tells damage and nothing more, at the speed of memory
};

/// "sha256", "crc32c".
std::string_view to_text(BlockHash hash);

/// The digest of one block, given in pieces. A CRC-32C stands in the first four bytes, highest first, the
/// others are zero. Thread-compatible.
class BlockHasher {
 public:
  explicit BlockHasher(BlockHash hash) : hash_(hash) {}
  void update(std::span<const std::byte> bytes);
  /// The same for whoever knows the bytes' CRC-32C.
  void update(std::span<const std::byte> bytes, std::uint32_t crc32c);
  /// The digest of all that was given. The object is then as new.
  Digest finish();

 private:
  BlockHash hash_;
  Sha256 sha256_;
  std::uint32_t crc_ = 0;
};

/// The digest of a whole block.
Digest block_digest(BlockHash hash, std::span<const std::byte> block);

/// A shard's hash: SHA-256 over the digests of its blocks, one after the other.
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

/// A named part of the dataset ("train", "val"; "all" if the source had none). Its samples are those of its
/// shards in order: sample ids count from 0 in each split.
struct SplitInfo {
  std::string name;
  std::uint64_t samples = 0;
  std::vector<ShardInfo> shards;
  std::vector<std::uint64_t> class_samples;  ///< per class; a statistic, outside the version; may be empty

  bool operator==(const SplitInfo&) const = default;
};

/// One kind of file that samples consist of, by its extension in lower case: "jpg", "seg.png".
struct ComponentInfo {
  std::string name;
  bool is_image = false;
  bool operator==(const ComponentInfo&) const = default;
};

/// What samples look like. Part of the version.
struct Schema {
  std::string container = "tar";
  std::vector<ComponentInfo> components;  ///< sorted by name
  bool has_labels = false;                ///< the index has an int64 label for each sample
  std::vector<std::string> classes;       ///< name of label 0, 1, ...; empty if labels have no names
  BlockHash block_hash = BlockHash::sha256;

  bool operator==(const Schema&) const = default;
};

/// Sums over 8-bit RGB pixels, exact, so that they do not depend on the order of adding.
struct ChannelSums {
  std::uint64_t pixels = 0;
  std::array<std::uint64_t, 3> sum{};
  std::array<std::uint64_t, 3> square_sum{};

  void add(const ChannelSums& other);
  /// Of channel `c`, as a share of 255. REQUIRES: pixels > 0.
  double mean(std::size_t c) const;
  double deviation(std::size_t c) const;
  bool operator==(const ChannelSums&) const = default;
};

/// Facts that pack saw go by; not part of the version. All zero when no image was seen.
struct ImageStatistics {
  std::uint64_t images = 0;
  std::uint64_t progressive = 0;
  std::uint64_t grayscale = 0;
  std::uint64_t cmyk = 0;
  std::uint64_t alpha = 0;
  std::uint64_t misnamed = 0;  ///< of another kind than their extension says
  std::uint32_t width_min = 0, width_max = 0, height_min = 0, height_max = 0;
  std::uint64_t pixels = 0;
  ChannelSums channels;            ///< only when images were decoded
  std::uint64_t encoded_anew = 0;  ///< resized, or with another quality: not what the source had

  void add(const ImageStatistics& other);
  bool operator==(const ImageStatistics&) const = default;
};

/// What version of its data a dataset was packed from, as a .dvc file beside them said.
struct SourceVersion {
  std::string file;         ///< "images.dvc"
  std::string md5;          ///< in hexadecimal digits; of a folder with ".dir" behind it
  std::uint64_t bytes = 0;  ///< in all; 0 where it did not say
  std::uint64_t files = 0;  ///< of a folder

  bool operator==(const SourceVersion&) const = default;
};

struct Manifest {
  std::string version;  ///< 64 hexadecimal digits; see dataset_version()
  Schema schema;
  std::vector<SplitInfo> splits;
  std::uint64_t index_bytes = 0;
  Digest index_hash{};  ///< SHA-256 of index.bin
  /// What the index says of the samples (content_of()), where their shards do not say it all. Part of the
  /// version then.
  std::optional<Digest> content = {};
  // Outside the version:
  ImageStatistics images;
  std::map<std::string, std::uint64_t> left_out;  ///< reason → files
  std::optional<SourceVersion> source;

  /// The first eight digits: how people name it.
  std::string short_version() const { return version.substr(0, 8); }
  std::uint64_t samples() const;
  std::uint64_t bytes() const;  ///< of all shards
  std::uint64_t shard_count() const;
  /// The split of that name; for an empty name the only one. NotFound naming what there is.
  Result<const SplitInfo*> split(std::string_view name) const;

  bool operator==(const Manifest&) const = default;
};

/// Whether shards of such a dataset may leave the labels to the index, so that it has a `content`: a tar.
bool leaves_labels_to_index(const Schema& schema);
/// The version: SHA-256 over canonical bytes of schema, splits and shard hashes, and `content` where there is
/// one; nothing else.
std::string dataset_version(const Manifest& manifest);
/// JSON text, ends in a newline; a function of the value alone.
std::string to_json(const Manifest& manifest);
/// Strict: unknown format version, incompatible features, missing or contradicting fields and a `version`
/// that is not the one of the content are errors that start with `subject`.
Result<Manifest> parse_manifest(std::string_view json, std::string_view subject);
/// Reads `<dataset>/manifest.json`. NotFound with a cure if the folder is no dataset or was never finished.
Result<Manifest> read_manifest(const Path& dataset);

}  // namespace stoker::formats
