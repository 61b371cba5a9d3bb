// What has happened in a farm, from its claims and ledgers: the outcome and the owner of each task. Used by
// workers, and by the commands that show a farm. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "farm/ledger/records.h"
#include "farm/ledger/run_times.h"
#include "farm/list/task_list.h"
#include "stoker/status.h"

namespace stoker::farm {

/// A process that works or worked in a farm.
struct KnownWorker {
  std::string id;
  std::string file;  ///< name of its ledger without ".log"
  record::ProcessIdentity who;
  std::string job;
  std::uint64_t list_digest = 0;
  bool is_over = false;
  bool has_exited = false;  ///< it recorded its end
  double started = 0;       ///< Unix seconds
  double last_end = 0;      ///< of a task, Unix seconds; 0 before the first
  std::uint64_t ended = 0;  ///< attempts
  double missed_since = 0;  ///< Unix seconds since when its ledger is missing; 0 if it is there
};

/// Where the output of an attempt is.
struct OutputPlace {
  std::uint32_t file = 0;  ///< index in FarmState::files()
  std::uint64_t offset = 0;
  std::uint64_t length = 0;
};

/// Tasks by their state.
struct TaskCounts {
  std::uint64_t done = 0;
  std::uint64_t up_to_date = 0;
  std::uint64_t failed = 0;         ///< all kinds of failure
  std::uint64_t out_of_memory = 0;  ///< of the failed ones
  std::uint64_t timeout = 0;        ///< of the failed ones
  std::uint64_t claimed = 0;        ///< running, or next on a worker
  std::uint64_t waiting = 0;
};

/// What to keep of the last attempt of each task.
enum class KeepOutputs { no, yes };

/// Whether a Slurm job has ended; nullopt if that is not known.
using JobIsOver = std::function<std::optional<bool>(const std::string& job)>;

class FarmState {
 public:
  /// `list` must outlive it. Reads nothing yet.
  FarmState(Path folder, const TaskList& list, KeepOutputs outputs = KeepOutputs::no);

  /// Reads what was added to claims and ledgers. A folder without ledgers is empty.
  Status refresh();
  /// Marks workers that have ended without a record: killed ones. A worker of this host is looked up by pid,
  /// start time and boot; one of a different host is over when its job is over, or when its ledger was not
  /// touched for kWorkerLease. `now`: Unix seconds on the clock of the filesystem.
  Status find_lost_workers(double now, const JobIsOver& job_is_over);

  const TaskList& list() const { return list_; }
  TaskOutcome outcome(TaskIndex task) const { return tasks_[task].outcome; }
  std::uint32_t attempts(TaskIndex task) const { return tasks_[task].attempts; }
  /// How often its memory is to be doubled: once for each attempt that ended for lack of memory, and more
  /// often where such an attempt used more.
  std::uint32_t memory_doublings(TaskIndex task) const { return tasks_[task].memory_doublings; }
  /// Index in workers(), or nullopt without an owner.
  std::optional<std::uint32_t> owner(TaskIndex task) const;
  /// With KeepOutputs::yes; length 0 without output.
  OutputPlace output(TaskIndex task) const { return outputs_.empty() ? OutputPlace() : outputs_[task]; }
  const std::vector<KnownWorker>& workers() const { return workers_; }
  std::vector<std::string> files() const;
  TaskCounts counts() const;
  /// Of tasks that are done.
  const RunTimes& run_times() const { return run_times_; }
  /// Lines with a wrong CRC.
  std::uint64_t damaged() const { return damaged_; }
  /// The number of the next claim.
  std::uint64_t next_claim() const { return next_claim_; }
  Path claims_folder() const;
  const Path& folder() const { return folder_; }

  /// A record that this process wrote to `file`. Its bytes are skipped by refresh().
  void apply_own(const std::string& file, const LedgerRecord& record, std::uint64_t ledger_size);
  /// The claim with number next_claim(), which this process wrote.
  void apply_own_claim(const TaskClaim& claim);

 private:
  struct TaskFacts {
    std::uint32_t owner = 0;  // index in workers_ + 1; 0: none
    std::uint16_t attempts = 0;
    std::uint8_t memory_doublings = 0;
    TaskOutcome outcome = TaskOutcome::waiting;
  };
  struct LedgerFile {
    std::string name;
    std::uint64_t offset = 0;
    std::uint32_t worker = 0;  // its last one, as TaskFacts::owner
  };

  Result<std::uint64_t> size_of(const LedgerFile& file) const;
  Status find_ledgers();
  Status read_claims();
  Status read_ledger(std::size_t file, std::uint64_t end);
  void apply(std::size_t file, const LedgerRecord& record);
  void apply_end(std::size_t file, const TaskEnd& end);
  void double_memory(TaskIndex index, std::uint64_t peak_bytes);
  void apply_claim(const TaskClaim& claim);
  std::uint32_t worker_named(const std::string& id);
  void free_all_of(std::uint32_t worker);
  bool is_lost(KnownWorker& worker, double now, const JobIsOver& job_is_over) const;
  std::optional<TaskIndex> index_of(const TaskEnd& end);

  Path folder_;
  const TaskList& list_;
  std::vector<TaskFacts> tasks_;
  std::vector<OutputPlace> outputs_;
  std::vector<KnownWorker> workers_;
  std::vector<LedgerFile> files_;
  std::vector<std::pair<std::uint64_t, TaskIndex>> by_key_;  // sorted; filled when a list has changed
  RunTimes run_times_;
  std::uint64_t next_claim_ = 0;
  std::uint64_t damaged_ = 0;
};

/// A worker on a different host whose ledger was not touched for this time is taken for lost.
inline constexpr Duration kWorkerLease = std::chrono::minutes(5);

}  // namespace stoker::farm
