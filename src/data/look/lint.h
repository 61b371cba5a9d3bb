// A census of a source or a dataset, and what is wrong with it, before it costs a training. Reads every file
// once; changes nothing. Used by `stoker data lint`. Blocks on the storage.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/finding.h"
#include "base/progress.h"
#include "base/status.h"
#include "data/pack/shard_plan.h"
#include "data/pack/source.h"

namespace stoker::data {

struct LintOptions {
  SourceOptions source;                  ///< also a dataset's folder
  bool decodes = false;                  ///< every pixel, not the structure alone
  std::optional<ReadersWanted> readers;  ///< of the job that is to read it
};

/// So many things of a kind, and their bytes.
struct Tally {
  std::string name;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
};

/// What is there, whether good or not.
struct Census {
  bool is_dataset = false;
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  std::uint64_t samples = 0;
  std::vector<Tally> splits;
  std::vector<Tally> classes;      ///< by number of files, largest first
  std::vector<Tally> sizes;        ///< "< 1 kB", "1 to 10 kB", ...
  std::vector<Tally> folders;      ///< the largest ten, or shards of a dataset
  std::vector<std::string> notes;  ///< how it was read, where one may not expect it
  std::uint64_t disk_bytes = 0;    ///< of the filesystem; 0: not known
  std::uint64_t disk_free = 0;
  std::uint64_t disk_files = 0;  ///< inodes
  std::uint64_t disk_files_free = 0;
};

struct LintReport {
  Census census;
  std::vector<Finding> findings;  ///< the worst first
};

/// Fails when there is nothing to look at, or on an error of the storage. Cancelled when `progress` says
/// stop.
Result<LintReport> lint(const LintOptions& options, Progress& progress);

}  // namespace stoker::data
