// Plans the number of shards and their samples as a function of source and options only, so that any number
// of threads and interruptions gives the same bytes. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pack/container/container.h"
#include "sources/source.h"
#include "stoker/bytes.h"
#include "stoker/status.h"

namespace stoker::pack {

enum class LabelMembers;

enum class SampleOrder {
  shuffle,     ///< by a hash of key and seed: each shard is a fair mix of classes
  source,      ///< by folder and name, or in the order of the list
  stratified,  ///< shuffled, with the same share of each class in every part
};

/// The job that will read the shards.
struct TargetReaders {
  std::uint32_t ranks = 1;
  std::uint32_t workers = 1;  ///< per rank
  std::uint64_t readers() const { return std::uint64_t{ranks} * workers; }
};

/// Requested sizes; at most one of `shards` and `shard_size` is set.
struct ShardSizing {
  std::optional<std::int64_t> shards;  ///< per split
  std::optional<ByteCount> shard_size;
  std::optional<TargetReaders> readers;  ///< minimum number of shards
  bool is_text = false;                  ///< for sequential instead of random reads: larger shards
};

/// The shards of one split.
struct SplitSizing {
  std::uint64_t files = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  ///< in the archive, approximate
  std::uint64_t shards = 0;
  std::string reason;  ///< "fewer than 8 would starve 8 readers"
};

/// Chooses the number of shards for `samples` samples of `bytes`. Invalid, starting with `subject`, if the
/// readers cannot have a shard each.
Result<SplitSizing> size_split(std::string_view subject, std::uint64_t samples, std::uint64_t bytes,
                               const ShardSizing& wanted);

/// One shard to be written.
struct ShardSpec {
  std::string file;  ///< "train-000000.tar"
  std::uint32_t split = 0;
  std::vector<sources::SourceSample> samples;  ///< in order
  std::uint64_t files = 0;
};

struct ShardAssignment {
  SampleOrder order = SampleOrder::shuffle;
  std::uint64_t seed = 0;
  dataset::ContainerKind container = dataset::ContainerKind::tar;
};

/// Assigns the samples of a split to shards; counts differ by at most one.
std::vector<ShardSpec> assign_samples(const sources::PackSource& source, std::uint32_t split,
                                      std::uint64_t shards, ShardAssignment how);

/// Size of samples in each format.
struct SampleBytes {
  std::uint64_t payload = 0;   ///< the files alone
  std::uint64_t tar = 0;       ///< with headers, padding and label members
  std::uint64_t tfrecord = 0;  ///< with the framing of records
  std::uint64_t parquet = 0;   ///< with keys, labels and lengths
  std::uint64_t arrays = 0;    ///< in hdf5 and zarr: with keys, labels and offsets

  std::uint64_t in(dataset::ContainerKind kind) const;
  void add(const SampleBytes& other);
};

/// Size of one sample.
SampleBytes sample_bytes(const sources::PackSource& source, const sources::SourceSample& sample,
                         LabelMembers labels);

/// The columns for the source's file extensions, in the order of files in a sample: the main image first,
/// then by name. The largest one is streamed.
parquet::ParquetColumns columns_of(const sources::PackSource& source);

/// The text of a sample's json member: "{"label":3,"class":"cat"}" without spaces.
std::string label_json(const std::vector<std::string>& classes, std::int64_t label);

}  // namespace stoker::pack
