// Where the processes of a hanging rank are, written to its log before the rank is ended: threads and their
// system calls, the stacks of Python (py-spy, or faulthandler where the program imported stoker), and of C++
// (gdb, or base/stack_signal.h). Thread-compatible.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "rank/process/process_tree.h"
#include "stoker/time.h"

namespace stoker::rank {

/// All processes of a rank have this much time.
inline constexpr Duration kStackTime = std::chrono::seconds(8);

struct StackRequest {
  std::vector<ProcessFacts> processes;  ///< of the rank, parents first
  /// Waits until the processes have printed what kStackSignal asked for, and returns their output.
  std::function<std::string()> take_output;
  std::function<void(std::string_view)> write;  ///< to the rank's log
};

/// Writes all of it, and returns where the main thread of the training is in one line:
/// "Queue.get (queue.py:171), called by load (train.py:12)". "" if no stack could be read. Failures of the
/// tools are written, too.
std::string write_stacks(const StackRequest& request, Deadline deadline);

}  // namespace stoker::rank
