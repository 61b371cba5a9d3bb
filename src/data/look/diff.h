// What differs between two datasets, sample by sample, from their manifests and indexes alone. Used by
// `stoker data diff`. Blocks on the storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"

namespace stoker::data {

enum class Change {
  added,    ///< only the second has it
  removed,  ///< only the first has it
  content,  ///< other bytes: by length and CRC-32C of each file
  relabelled,
  moved,  ///< to another split
};
std::string_view to_text(Change change);

struct SampleChange {
  Change change = Change::added;
  std::string key;
  std::string before;  ///< label or split, where that is what changed
  std::string after;
};

struct DatasetDiff {
  std::string first_version;
  std::string second_version;
  std::uint64_t same = 0;             ///< samples in which nothing changed
  std::uint64_t counts[5] = {};       ///< per Change
  std::vector<std::string> schema;    ///< "class 'zebra' added"
  std::vector<SampleChange> samples;  ///< the first kMostShown of each change, by key
  bool order_differs = false;         ///< the same samples, in other shards or another order
  static constexpr std::size_t kMostShown = 1000;

  /// By what they hold: an older stoker's versions did not tell labels and rows that only the index has.
  bool is_same() const { return samples.empty() && schema.empty() && !order_differs; }
};

/// Invalid for a dataset whose index has no keys or has one twice.
Result<DatasetDiff> diff_datasets(const Path& first, const Path& second);

}  // namespace stoker::data
