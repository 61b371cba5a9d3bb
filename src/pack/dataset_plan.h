// All parameters that turn finished shards into a dataset, without the source. Stored next to the shards
// while packing, so that `stoker data merge` can merge the parts of several nodes. Plain values.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "dataset/manifest.h"
#include "sources/source.h"
#include "stoker/status.h"

namespace stoker::pack {

struct ShardFacts;

struct PlannedShard {
  std::string file;  ///< "train-000000.tar"
  std::uint32_t split = 0;
};

struct DatasetPlan {
  std::string fingerprint;  ///< of all inputs that determine the result
  std::string source;       ///< as given by the user, for messages
  std::vector<std::string> splits;
  std::vector<std::string> classes;
  std::string container = "tar";
  dataset::BlockHash hash = dataset::BlockHash::sha256;
  bool has_labels = false;
  bool declares_classes = false;  ///< a class may have no sample
  bool is_strict = false;
  double max_left_out_percent = 1;
  std::uint64_t files = 0;                 ///< of the source, without hidden ones
  std::uint64_t shard_bytes = 0;           ///< estimated size of the shards
  std::uint32_t parts = 1;                 ///< number of processes that share the work, as of the last part
  std::vector<sources::LeftOut> left_out;  ///< while listing the source
  std::optional<dataset::SourceVersion> version;  ///< of the source
  std::vector<PlannedShard> shards;

  /// JSON with a checksum. decode() is Corrupt for a damaged plan.
  std::string encode() const;
  static Result<DatasetPlan> decode(std::string_view text, std::string_view subject);
};

/// A dataset without its shards.
struct Assembly {
  dataset::Manifest manifest;
  std::string index;
  std::string left_out_csv;  ///< empty if no file was left out
  std::uint64_t left_out = 0;
};

/// Combines the results of all shards. Fails if too many files were left out, or if a split or a class has no
/// sample. Consumes `facts`. Sets `unlisted` to the list of left-out files (CSV) if it fails because of more
/// files than its message names.
Result<Assembly> assemble(const DatasetPlan& dataset_plan, std::vector<ShardFacts>& facts,
                          std::string* unlisted);

/// Number of left-out files, without kHidden.
std::uint64_t count_left_out(const std::map<std::string, std::uint64_t>& left_out);
/// "2 not an image, 1 truncated"; empty without left-out files.
std::string left_out_text(const std::map<std::string, std::uint64_t>& left_out);

}  // namespace stoker::pack
