// Counts the files of a source or a dataset and finds problems before a training run. Reads every file once;
// changes nothing. Used by `stoker data lint`. Blocks on the storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "pack/shard_plan.h"
#include "sources/source.h"
#include "stoker/progress.h"
#include "stoker/status.h"

namespace stoker::inspect {

struct LintOptions {
  sources::SourceOptions source;               ///< or the folder of a dataset
  bool decodes = false;                        ///< decode every pixel, not only the structure
  std::optional<pack::TargetReaders> readers;  ///< of the job that will read it
};

/// Number and bytes of the files in one group.
struct Count {
  std::string name;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// All files, valid or not.
struct Census {
  bool is_dataset = false;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  std::vector<Count> splits;
  std::vector<Count> classes;      ///< by number of files, largest first
  std::vector<Count> sizes;        ///< "< 1 kB", "1 to 10 kB", ...
  std::vector<Count> folders;      ///< the largest ten, or the shards of a dataset
  std::vector<std::string> notes;  ///< unexpected interpretations of the source
  std::uint64_t disk_bytes = 0;    ///< of the filesystem; 0: unknown
  std::uint64_t disk_free = 0;
  std::uint64_t disk_files = 0;  ///< inodes
  std::uint64_t disk_files_free = 0;
};

struct LintReport {
  Census census;
  std::vector<Finding> findings;  ///< most severe first
};

/// Fails if the source is empty, or on a storage error. Cancelled on stop_requested().
Result<LintReport> lint(const LintOptions& options, Progress& progress);

}  // namespace stoker::inspect
