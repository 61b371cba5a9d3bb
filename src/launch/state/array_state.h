// The state of an array's tasks, from their records. Used by status, wait, cancel and resume. Thread-safe: no
// state.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "launch/state/array_file.h"
#include "launch/state/task_record.h"
#include "record/run_folder.h"

namespace stoker::launch {

/// Numbers of tasks; each task counts once.
struct ArrayState {
  std::uint32_t tasks = 0;  ///< of the whole array
  std::uint32_t waiting = 0;
  std::uint32_t running = 0;  ///< started and not ended, by the records
  std::uint32_t done = 0;
  std::uint32_t failed = 0;
  std::uint32_t stopped = 0;            ///< on request
  std::vector<std::uint32_t> not_done;  ///< numbers of all unfinished tasks, ascending
  std::vector<std::uint32_t> failures;  ///< numbers of the failed tasks
  int exit_code = 0;                    ///< of the first failure
  double started = 0;                   ///< of the first task, Unix seconds; 0 before
  double ended = 0;                     ///< of the last task that has ended

  bool has_ended() const { return waiting + running == 0; }
};

/// Reads the records of all tasks: one small file each.
ArrayState read_array_state(const record::RunFolder& run, const record::Attempt& attempt,
                            const TaskArrayFile& array);

/// "17 of 300 done, 20 running, 2 failed (3, 205)".
std::string to_text(const ArrayState& state);

/// {3, 4, 5, 9} as "3-5, 9", truncated after a few ranges.
std::string format_tasks(const std::vector<std::uint32_t>& tasks);

}  // namespace stoker::launch
