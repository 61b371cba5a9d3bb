// The processes of the tasks that run on this machine: the limits that stop them, and how they end. Used by
// worker.cc. Thread-compatible. At most one per process: it waits for all children.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <sys/resource.h>
#include <sys/types.h>
#include <vector>

#include "base/process.h"
#include "farm/ledger/records.h"
#include "farm/list/task_list.h"
#include "farm/run/node_resources.h"
#include "farm/run/output_file.h"
#include "stoker/time.h"

namespace stoker::farm {

/// A task whose process was started.
struct RunningTask {
  TaskIndex task = 0;
  pid_t pid = -1;
  Grant grant;
  TaskNeeds needs;
  double start = 0;  ///< Unix seconds
  MonoTime started;
  OutputSpool spool;
  std::uint64_t kernel_kills = 0;  ///< of the cgroup when it started
};

/// A task whose process has ended.
struct EndedTask {
  RunningTask task;
  Exit exit;
  TaskOutcome outcome = TaskOutcome::failed;
  std::string why;  ///< "exit code 7", "more than 4 GiB of memory"
  double seconds = 0;
  std::uint64_t peak_bytes = 0;
};

/// Why a running task was stopped.
enum class TaskStop { none, request, end_of_time, own_time, memory };

class RunningTasks {
 public:
  /// `list` and `clock` must outlive it.
  RunningTasks(const TaskList& list, const Clock& clock) : list_(list), clock_(clock) {}

  void add(RunningTask task);
  /// Tasks whose processes run.
  std::size_t size() const { return running_.size(); }
  /// Whether no process runs, and each end was returned.
  bool is_idle() const { return running_.empty() && held_.empty(); }

  /// A task that has ended, without waiting for one; call it until it returns nullopt. Kills what the task
  /// left behind, which would use the cores of the next one. Slurm signals all processes of a job, and this
  /// one may receive its own signal later: a task that such a signal ended is held back for a second.
  std::optional<EndedTask> next_ended();
  /// A task that was held back long enough, or any of them if the worker is stopping: it was stopped too.
  std::optional<EndedTask> next_held();

  /// Sends the signal to all tasks, and SIGKILL after a grace time.
  void stop_all(TaskStop cause, int signal);
  /// Whether stop_all() was called: no task is started any more.
  bool is_stopping() const { return is_stopping_; }
  /// SIGKILL at this time, in place of the usual grace time.
  void kill_all_at(MonoTime time);
  /// Stops tasks that exceed their time or memory, and kills those whose grace time is over.
  void check_limits();
  /// The time until check_limits() or next_held() is due.
  Duration next_wait() const;

 private:
  struct Watched {
    RunningTask task;
    MonoTime next_measure;  // of memory
    TaskStop cause = TaskStop::none;
    std::optional<MonoTime> kill_at;
    std::uint64_t peak_bytes = 0;  // of all its processes together, as measured while it runs
  };
  struct HeldEnd {
    Watched task;
    int status = 0;
    rusage usage{};
    MonoTime until;
  };

  EndedTask end_of(Watched task, int status, const rusage& usage);
  TaskOutcome outcome_of(const Watched& task, const Exit& exit, std::string* why) const;
  std::uint64_t peak_of(const rusage& usage);
  void measure(Watched& task, MonoTime time);
  void stop(Watched& task, TaskStop cause, int signal);

  const TaskList& list_;
  const Clock& clock_;
  std::vector<Watched> running_;
  std::vector<HeldEnd> held_;
  std::uint64_t own_peak_bytes_ = 0;
  bool is_stopping_ = false;
};

}  // namespace stoker::farm
