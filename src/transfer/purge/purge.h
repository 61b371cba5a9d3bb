// Removes datasets that `stoker data push` or `pull` copied to a folder and that were not used for a long
// time: `stoker data purge`. Blocks on the storage.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/file.h"
#include "stoker/progress.h"
#include "stoker/status.h"
#include "stoker/time.h"

namespace stoker::transfer {

struct PurgeRequest {
  Path folder;
  Duration age{};          ///< not used for so long
  std::vector<Path> runs;  ///< folders with runs, besides those below `folder`
  Path cache;              ///< of this node
  bool is_removing = false;
};

enum class PurgeKind {
  copy,        ///< a dataset
  unfinished,  ///< the pending folder of a transfer that did not finish
};

/// A dataset, or a part of one.
struct PurgeEntry {
  Path folder;
  PurgeKind kind = PurgeKind::copy;
  std::string version;  ///< of a copy
  std::string source;   ///< of a copy: where it came from
  std::uint64_t bytes = 0;
  std::uint64_t files = 0;
  double last_used = 0;    ///< Unix seconds
  std::string used_by;     ///< "read", "written", or what recorded the use
  std::string kept;        ///< why it stays; "" if it is removed, or would be
  bool is_in_use = false;  ///< it stays because of that
};

struct PurgeReport {
  Path folder;                      ///< absolute
  std::vector<PurgeEntry> entries;  ///< by path; copies that are too young are left out
  std::uint64_t bytes = 0;          ///< removed, or to be removed
  std::uint64_t young = 0;          ///< copies used within the age
  std::vector<Path> foreign;        ///< datasets that were not copied by Stoker: they stay
  std::vector<std::string> unread;  ///< folders that could not be read
  bool has_read_times = true;       ///< the filesystem records when files are read
};

/// Lists, and with `is_removing` removes. A removed dataset first loses its manifest; after an interruption
/// the next call removes the rest. NotFound without the folder; Unavailable if Slurm is there and does not
/// answer; Cancelled.
Result<PurgeReport> purge_copies(const PurgeRequest& request, Progress& progress);

}  // namespace stoker::transfer
