// Index files of Megatron-Energon: the sample offsets of each shard (<shard>.tar.idx), and in .nv-meta/
// counts, splits, sample description and a database of all samples by key (index.sqlite). Used by the index
// export. Thread-compatible.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "dataset/manifest.h"
#include "inspect/export/sqlite.h"
#include "sources/shard_scan.h"
#include "stoker/status.h"

namespace stoker::inspect {

/// The offset of each sample's first header, and the end of the last sample.
std::string energon_shard_index(const sources::ShardScan& scan);

/// Writes the folder .nv-meta of a dataset, shard by shard.
class EnergonFolder {
 public:
  static Result<EnergonFolder> create(const Path& dataset);
  EnergonFolder(EnergonFolder&&) noexcept = default;
  EnergonFolder& operator=(EnergonFolder&&) noexcept = default;
  ~EnergonFolder();

  /// The next shard, in the order of the manifest.
  Status add(std::string_view shard, const sources::ShardScan& scan);

  /// Written paths relative to the dataset, and a note about a skipped file.
  struct Written {
    std::vector<std::string> files;
    std::string note;
  };
  Result<Written> finish(const dataset::Manifest& manifest);

 private:
  EnergonFolder(Path folder, SqliteDatabase database);
  Status add_sample(const sources::ShardSample& sample, std::int64_t in_shard, std::uint64_t end);
  Result<std::string> finish_database();

  Path folder_;
  std::unique_ptr<SqliteDatabase> database_;         // null after finish_database()
  std::size_t insert_sample_ = 0, insert_part_ = 0;  // prepared statements
  std::int64_t shards_ = 0;
  sources::ShardSample first_;
};

}  // namespace stoker::inspect
