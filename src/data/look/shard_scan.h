// The samples of a shard, whoever wrote it. In tar by WebDataset's rules: files side by side that share a
// name up to its first dot. In TFRecord a sample is a record. Used to index foreign shards and to write other
// readers' indexes. Thread-safe: no state.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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
  std::optional<std::int64_t> label;  ///< that the container itself has (TFRecord)
  std::uint64_t offset = 0;           ///< of its record (TFRecord)
  std::uint64_t bytes = 0;            ///< of its record (TFRecord)
  std::vector<ShardMember> members;
};

struct ShardScan {
  std::vector<ShardSample> samples;
  std::uint64_t end = 0;    ///< behind the last member
  std::uint64_t bytes = 0;  ///< of the file
};

/// Whether a file is called as TFRecord shards are.
bool is_tfrecord(std::string_view file);

/// Reads headers only; which container it is, its name says. Members that WebDataset skips (folders, links,
/// names without a dot, `__..__`) are skipped. Invalid for a name that leaves the folder and for two files of
/// one sample with one extension, Corrupt for a damaged archive.
Result<ShardScan> scan_shard(const Path& file);

}  // namespace stoker::data
