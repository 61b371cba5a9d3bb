// A worker of a farm: its ledger, its claims, its heartbeat. Used by run/worker.cc. Thread-compatible.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/journal.h"
#include "farm/ledger/farm_state.h"
#include "farm/ledger/records.h"
#include "stoker/status.h"

namespace stoker::farm {

/// Creates the folder of a farm with farm.json, unless it exists. Invalid for a folder that is something
/// else, or a farm of a later version.
Status prepare_farm(const Path& folder);

/// The random name of a farm.
Result<std::string> farm_id(const Path& folder);

class Membership {
 public:
  /// Becomes a worker of the farm: takes the first ledger of this host that no process writes. REQUIRES:
  /// prepare_farm(). Refreshes `state`, which must outlive it. Exists if a worker runs with another version
  /// of the list.
  static Result<Membership> join(FarmState& state, const std::string& job);

  /// Claims up to `most` tasks that `may_claim` accepts, in order. `state` is refreshed first. Empty
  /// without such a task.
  Result<std::vector<TaskIndex>> claim(std::size_t most, const std::function<bool(TaskIndex)>& may_claim);
  /// Appends to the ledger, in one write. NoSpace when the disk is full: nothing of it is then read back.
  Status append(const LedgerRecord& record);
  /// Touches the ledger, and writes it to disk if something was appended.
  Status heartbeat();
  /// Frees claimed tasks and records the end.
  Status leave();

  /// Index in FarmState::workers().
  std::uint32_t worker() const { return worker_; }
  const std::string& id() const { return id_; }
  /// Name of its ledger without ".log".
  const std::string& file() const { return name_; }
  /// Unix seconds by the clock of the filesystem at the last heartbeat.
  double filesystem_time() const { return filesystem_time_; }

 private:
  explicit Membership(FarmState& state) : state_(&state) {}

  FarmState* state_;
  std::string id_;
  std::string name_;
  Fd slot_;
  JournalFile ledger_;
  std::uint32_t worker_ = 0;
  double filesystem_time_ = 0;
};

}  // namespace stoker::farm
