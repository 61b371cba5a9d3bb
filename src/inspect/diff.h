// Compares two datasets sample by sample, from their manifests and indexes alone. Used by `stoker data diff`.
// Blocks on the storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/status.h"

namespace stoker::inspect {

enum class Change {
  added,    ///< only in the second dataset
  removed,  ///< only in the first dataset
  content,  ///< different bytes: by length and CRC-32C of each file
  relabelled,
  moved,  ///< to a different split
};
std::string_view to_text(Change change);

struct SampleChange {
  Change change = Change::added;
  std::string key;
  std::string before;  ///< label or split, if that changed
  std::string after;
};

struct DatasetDiff {
  std::string first_version;
  std::string second_version;
  std::uint64_t same = 0;             ///< unchanged samples
  std::uint64_t counts[5] = {};       ///< per Change
  std::vector<std::string> schema;    ///< "class 'zebra' added"
  std::vector<SampleChange> samples;  ///< the first kMaxShown of each change, by key
  bool order_differs = false;         ///< the same samples in different shards or a different order
  static constexpr std::size_t kMaxShown = 1000;

  /// Compares contents: versions of older releases do not cover labels and rows that only the index has.
  bool is_same() const { return samples.empty() && schema.empty() && !order_differs; }
};

/// Invalid for a dataset whose index has no keys or a duplicate key.
Result<DatasetDiff> diff_datasets(const Path& first, const Path& second);

}  // namespace stoker::inspect
