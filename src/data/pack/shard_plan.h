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
#include "data/pack/source.h"

namespace stoker::data {

enum class SampleOrder {
  shuffled,  ///< by a hash of the key: each shard holds a fair mix of classes
  sorted,    ///< by folder and name
};

/// What the user wants; at most one is set.
struct ShardSizing {
  std::optional<std::int64_t> shards;  ///< per split
  std::optional<ByteCount> shard_size;
};

/// The shards of one split.
struct SplitSizing {
  std::uint64_t files = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  ///< in the archive, about
  std::uint64_t shards = 0;
  std::string reason;  ///< "fewer than 8 would starve 8 readers"
};

/// Decides the number of shards for `samples` samples that take `bytes`.
SplitSizing size_split(std::uint64_t samples, std::uint64_t bytes, const ShardSizing& wanted);

/// One shard to be written.
struct ShardSpec {
  std::string file;  ///< "train-000000.tar"
  std::uint32_t split = 0;
  std::vector<SourceSample> samples;  ///< in order
  std::uint64_t files = 0;
};

/// Deals the samples of a split over its shards; counts differ by at most one.
std::vector<ShardSpec> deal(const Source& source, std::uint32_t split, std::uint64_t shards,
                            SampleOrder order);

/// Bytes that a sample takes in an archive, its label member included.
std::uint64_t archive_bytes(const Source& source, const SourceSample& sample);

}  // namespace stoker::data
