// The samples of a tar shard, whoever wrote it, by WebDataset's rules: files side by side that share a name
// up to its first dot. Used to index foreign shards and to write other readers' indexes. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::data {

struct ShardMember {
  std::string name;       ///< as stored
  std::string extension;  ///< behind the first dot of the last part, in lower case
  std::uint64_t header_offset = 0;
  std::uint64_t data_offset = 0;
  std::uint64_t bytes = 0;
};

struct ShardSample {
  std::string key;
  std::vector<ShardMember> members;
};

struct ShardScan {
  std::vector<ShardSample> samples;
  std::uint64_t end = 0;    ///< behind the last member
  std::uint64_t bytes = 0;  ///< of the file
};

/// Reads headers only. Members that WebDataset skips (folders, links, names without a dot, `__..__`) are
/// skipped. Invalid for a name that leaves the folder and for two files of one sample with one extension,
/// Corrupt for a damaged archive.
Result<ShardScan> scan_shard(const Path& file);

}  // namespace stoker::data
