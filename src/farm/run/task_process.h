// Starts the process of a task, and measures and ends it with all processes of its group. Used by worker.cc.
// Thread-compatible.
#pragma once

#include <optional>
#include <string>
#include <sys/types.h>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/process.h"
#include "stoker/status.h"

namespace stoker::farm {

/// One task to start.
struct TaskCall {
  std::string command;                 ///< a line for the shell
  std::vector<std::string> variables;  ///< "NAME=value", added to the environment
  int output_fd = -1;                  ///< receives standard output and standard error
  std::vector<int> cores;              ///< to bind it to; empty: all
};

/// A program that runs the tasks, such as `ch-run IMAGE --`.
struct TaskWrapper {
  std::vector<std::string> words;  ///< before each command; empty: none
  std::string shell;               ///< inside, for lines that need one
};

/// Starts tasks without copying this process, which may be large. A task is the leader of a process
/// group, has /dev/null as input, and is killed when this process dies. Lines without shell syntax are
/// started without a shell, portable ones by sh, all others by bash, or by sh where bash is missing. An
/// environment that sh does not pass on, with functions of bash, leaves all lines with shell syntax to bash.
class TaskStarter {
 public:
  /// `replaced`: names of variables that calls set.
  static Result<TaskStarter> create(const Environment& environment, const std::vector<std::string>& replaced,
                                    TaskWrapper wrapper);

  /// The process. A program that cannot be executed is reported by the shell in the output, with exit code
  /// 126 or 127.
  Result<pid_t> start(const TaskCall& call);

 private:
  const std::string* find_program(const std::string& name);
  std::optional<std::vector<std::string>> words_without_shell(const std::string& line) const;
  Result<pid_t> start_wrapped(const TaskCall& call);
  Result<pid_t> spawn(const char* program, const std::vector<std::string>& words, const TaskCall& call,
                      int* exec_errno);

  std::vector<std::string> environment_;
  std::string path_;
  std::string shell_;
  TaskWrapper wrapper_;
  bool may_use_sh_ = true;
  std::vector<std::string> functions_;  // of bash, in the environment
  Fd null_;
  std::unordered_map<std::string, std::string> programs_;  // as found in PATH
  std::vector<char> stack_;
};

/// The largest memory that this program has had. Unlike in getrusage(2), the process that started it does not
/// count.
ByteCount own_peak();
/// Memory of a process and its descendants, without counting shared pages twice once it exceeds `limit`.
ByteCount memory_of(pid_t task, ByteCount limit);
/// A signal to all processes of the task's group. Stopped ones continue.
void signal_group(pid_t task, int signal);
/// Kills what dead workers left running: processes of this user with STOKER_FARM_WORKER=<id> in their
/// environment. Waits until they have ended.
void end_orphans(const std::vector<std::string>& worker_ids);

/// The variable with the id of the worker.
inline constexpr std::string_view kWorkerVariable = "STOKER_FARM_WORKER";

}  // namespace stoker::farm
