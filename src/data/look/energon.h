// What Megatron-Energon wants of a dataset: for each shard where its samples lie (<shard>.tar.idx), and in
// .nv-meta/ the counts, the splits, what samples look like, and a database of all samples by key
// (index.sqlite). Used by the export of indexes. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "data/look/shard_scan.h"
#include "format/manifest.h"
#include "format/sqlite/sqlite_writer.h"

namespace stoker::data {

/// Where each sample's first header lies, and where the last one ends.
std::string energon_shard_index(const ShardScan& scan);

/// Makes the folder .nv-meta of a dataset, shard by shard.
class EnergonFolder {
 public:
  static Result<EnergonFolder> create(const Path& dataset);
  EnergonFolder(EnergonFolder&&) noexcept = default;
  EnergonFolder& operator=(EnergonFolder&&) noexcept = default;
  ~EnergonFolder();

  /// The next shard, in the order of the manifest.
  Status add(std::string_view shard, const ShardScan& scan);

  /// What was written, by its path from the dataset; and a sentence about what could not be.
  struct Written {
    std::vector<std::string> files;
    std::string note;
  };
  Result<Written> finish(const formats::Manifest& manifest);

 private:
  EnergonFolder(Path folder, formats::SqliteWriter database);
  Status add_sample(const ShardSample& sample, std::int64_t in_shard, std::uint64_t end);
  Result<std::string> finish_database();

  Path folder_;
  std::unique_ptr<formats::SqliteWriter> database_;  // null once it is finished
  std::size_t samples_ = 0, parts_ = 0;              // tables
  std::size_t keys_index_ = 0, samples_index_ = 0, parts_index_ = 0, full_index_ = 0;
  std::int64_t shards_ = 0;
  std::int64_t sample_rows_ = 0, part_rows_ = 0;
  std::vector<std::pair<std::string, std::int64_t>> keys_;  // of each row of samples
  ShardSample first_;
};

}  // namespace stoker::data
