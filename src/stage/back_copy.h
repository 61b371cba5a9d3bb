// Copies results from a node's disk back while its ranks run, and after they have ended: what has changed
// since the last time. Used by `stoker stage`. Thread-compatible.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "stage/listing.h"
#include "stage/node.h"
#include "stage/transfer_stats.h"
#include "stoker/status.h"

namespace stoker::stage {

/// What one round did.
struct StageOutRound {
  TransferStats copied;
  std::vector<std::string> missing;  ///< of `stage.back`
  std::vector<std::string> written;  ///< files that are being written, and are left for the next round
  Status problem;                    ///< the first one; what it does not concern was copied
};

class BackCopy {
 public:
  /// `folder`: on the node. `target` is created.
  BackCopy(const StageRequest& request, Path folder, Path target)
      : request_(request), folder_(std::move(folder)), target_(std::move(target)) {}

  /// Copies changed files, the newest first, until `should_stop`, which is asked between parts of about
  /// 256 MB. A file appears under its name when it is complete and on disk, and so does a new folder. Files
  /// changed in the last 2 s wait for the next round. What the ranks remove stays in the target.
  StageOutRound copy_changed(const std::function<bool()>& should_stop);
  /// The same after the ranks have ended: files do not wait, and one that still grows is copied with the
  /// length it has.
  StageOutRound copy_rest();
  /// All that is in the target.
  TransferStats total() const;

 private:
  struct Item;
  struct Unit;
  StageOutRound run(bool is_last, const std::function<bool()>& should_stop);
  std::vector<Unit> units_of(const std::vector<ArchiveEntry>& entries, bool is_last, StageOutRound& round);
  Status copy_units(const std::vector<Item>& items, const std::vector<Unit>& units, bool is_last,
                    StageOutRound& round);
  Status publish(const Unit& unit, const Path& pending);

  const StageRequest& request_;
  const Path folder_;
  const Path target_;
  std::map<std::string, ArchiveEntry> copied_;
};

}  // namespace stoker::stage
