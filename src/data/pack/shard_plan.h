// How many shards, and which sample goes where: a function of the listed source and the options alone, so
// that any number of threads and any number of interruptions give the same bytes. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "data/pack/shard/container.h"
#include "data/pack/source.h"

namespace stoker::data {

enum class LabelMembers;

enum class SampleOrder {
  shuffle,     ///< by a hash of key and seed: each shard holds a fair mix of classes
  source,      ///< by folder and name, or as the list has them
  stratified,  ///< shuffled, and every stretch has the same share of each class
};

/// The job that will read the shards.
struct ReadersWanted {
  std::uint32_t ranks = 1;
  std::uint32_t workers = 1;  ///< per rank
  std::uint64_t readers() const { return std::uint64_t{ranks} * workers; }
};

/// What the user wants; at most one of `shards` and `shard_size` is set.
struct ShardSizing {
  std::optional<std::int64_t> shards;  ///< per split
  std::optional<ByteCount> shard_size;
  std::optional<ReadersWanted> readers;  ///< never fewer shards than these
  bool is_text = false;                  ///< read front to back rather than picked from: larger shards
};

/// The shards of one split.
struct SplitSizing {
  std::uint64_t files = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  ///< in the archive, about
  std::uint64_t shards = 0;
  std::string reason;  ///< "fewer than 8 would starve 8 readers"
};

/// Decides the number of shards for `samples` samples that take `bytes`. Invalid, starting with `subject`,
/// where the wanted readers cannot have a shard each.
Result<SplitSizing> size_split(std::string_view subject, std::uint64_t samples, std::uint64_t bytes,
                               const ShardSizing& wanted);

/// One shard to be written.
struct ShardSpec {
  std::string file;  ///< "train-000000.tar"
  std::uint32_t split = 0;
  std::vector<SourceSample> samples;  ///< in order
  std::uint64_t files = 0;
};

struct Dealing {
  SampleOrder order = SampleOrder::shuffle;
  std::uint64_t seed = 0;
  ContainerKind container = ContainerKind::tar;
};

/// Deals the samples of a split over its shards; counts differ by at most one.
std::vector<ShardSpec> deal(const Source& source, std::uint32_t split, std::uint64_t shards, Dealing how);

/// Bytes of samples.
struct SampleBytes {
  std::uint64_t payload = 0;   ///< the files alone
  std::uint64_t tar = 0;       ///< with headers, padding and label members
  std::uint64_t tfrecord = 0;  ///< with the framing of records
  std::uint64_t parquet = 0;   ///< with keys, labels and lengths
  std::uint64_t arrays = 0;    ///< in hdf5 and zarr: with keys, labels and places

  std::uint64_t in(ContainerKind kind) const;
  void add(const SampleBytes& other);
};

/// What one sample takes.
SampleBytes sample_bytes(const Source& source, const SourceSample& sample, LabelMembers labels);

/// The columns that the source's files make, in the order in which a sample's files stand: the picture itself
/// first, then by name. The one with most bytes is streamed.
formats::ParquetShape columns_of(const Source& source);

/// The text of a sample's json member: "{"label":3,"class":"cat"}" without blanks.
std::string label_json(const std::vector<std::string>& classes, std::int64_t label);

}  // namespace stoker::data
