// The lines of a farm's ledgers and claims: words, then " #" and the CRC-32C of the bytes before in 8
// hexadecimal digits. docs/formats/farm.md describes the words. Thread-safe: no state.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "farm/list/task_list.h"
#include "record/state.h"

namespace stoker::farm {

/// How the last attempt at a task ended.
enum class TaskOutcome {
  waiting,        ///< no attempt has ended
  done,           ///< exit code 0
  failed,         ///< another exit code, a signal, or a file that it should make is missing
  out_of_memory,  ///< more memory than its limit
  timeout,        ///< longer than its time
  stopped,        ///< by Stoker, before the end of the allocation or on request: it runs again
  up_to_date,     ///< not run: what it makes is newer than what it needs
};
constexpr std::array<std::string_view, 7> names_of(TaskOutcome) {
  return {"waiting", "done", "failed", "out_of_memory", "timeout", "stopped", "up_to_date"};
}
/// Whether the task need not run again.
inline bool is_success(TaskOutcome outcome) {
  return outcome == TaskOutcome::done || outcome == TaskOutcome::up_to_date;
}
/// Whether it runs again only on request.
inline bool is_failure(TaskOutcome outcome) {
  return outcome == TaskOutcome::failed || outcome == TaskOutcome::out_of_memory ||
         outcome == TaskOutcome::timeout;
}

/// A worker begins to write the ledger. Earlier workers of this ledger are over.
struct WorkerStart {
  std::string id;                 ///< random
  record::ProcessIdentity who;    ///< the process
  std::string job;                ///< Slurm's id; "" outside of Slurm
  std::uint64_t list_digest = 0;  ///< of its TaskList
  double time = 0;                ///< Unix seconds
};
/// An attempt at a task ended.
struct TaskEnd {
  TaskIndex task = 0;
  std::uint64_t key = 0;
  std::uint32_t attempt = 1;
  TaskOutcome outcome = TaskOutcome::done;
  int code = 0;
  int signal = 0;
  double start = 0;  ///< Unix seconds
  double seconds = 0;
  std::uint64_t peak_bytes = 0;  ///< largest memory of its processes together, as far as measured
  std::uint64_t offset = 0;      ///< of its output in the worker's output file
  std::uint64_t length = 0;
  bool is_kept = false;  ///< the same worker retries it
};
/// Claimed tasks that the worker will not start.
struct TasksFreed {
  std::vector<TaskIndex> tasks;  ///< ascending
};
/// The worker is over.
struct WorkerExit {
  double time = 0;
};
/// A worker takes tasks.
struct TaskClaim {
  std::string worker;
  std::vector<TaskIndex> tasks;  ///< ascending
};
using LedgerRecord = std::variant<WorkerStart, TaskEnd, TasksFreed, WorkerExit, TaskClaim>;

/// The line of a record, with its CRC and line end.
std::string ledger_line(const LedgerRecord& record);
/// The record of a line without its line end, or nullopt if it is damaged.
std::optional<LedgerRecord> parse_ledger_line(std::string_view line);

}  // namespace stoker::farm
