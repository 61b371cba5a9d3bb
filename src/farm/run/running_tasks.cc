#include "farm/run/running_tasks.h"

#include <algorithm>
#include <csignal>
#include <sys/wait.h>
#include <utility>

#include "base/file.h"
#include "farm/run/task_process.h"
#include "rank/process/process_tree.h"

namespace stoker::farm {

namespace {

constexpr Duration kTaskGrace = std::chrono::seconds(10);          // between SIGTERM and SIGKILL
constexpr Duration kFirstMeasure = std::chrono::milliseconds(50);  // of memory, later at twice the age
constexpr Duration kLongestMeasure = std::chrono::seconds(1);
constexpr Duration kSignalsTogether = std::chrono::seconds(1);  // Slurm's, to the processes of a job

// Ended by a signal that Slurm sends, also inside of a shell.
bool may_be_stopped(int status) {
  const int signal = WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status) - 128;
  return signal == SIGTERM || signal == SIGKILL || signal == SIGINT || signal == SIGHUP;
}

}  // namespace

void RunningTasks::add(RunningTask task) {
  const MonoTime first_measure = task.started + kFirstMeasure;
  running_.push_back({.task = std::move(task), .next_measure = first_measure});
}

std::optional<EndedTask> RunningTasks::next_ended() {
  int status = 0;
  rusage usage{};
  for (pid_t pid = 0; (pid = ::wait4(-1, &status, WNOHANG, &usage)) > 0;) {
    const auto found =
        std::find_if(running_.begin(), running_.end(), [&](const Watched& r) { return r.task.pid == pid; });
    if (found == running_.end()) continue;
    Watched task = std::move(*found);
    if (found != running_.end() - 1) *found = std::move(running_.back());
    running_.pop_back();
    signal_group(pid, SIGKILL);
    if (!may_be_stopped(status) || task.cause != TaskStop::none || is_stopping_)
      return end_of(std::move(task), status, usage);
    held_.push_back({std::move(task), status, usage, clock_.mono() + kSignalsTogether});
  }
  return std::nullopt;
}

std::optional<EndedTask> RunningTasks::next_held() {
  const MonoTime time = clock_.mono();
  const auto due = std::find_if(held_.begin(), held_.end(),
                                [&](const HeldEnd& each) { return is_stopping_ || time >= each.until; });
  if (due == held_.end()) return std::nullopt;
  HeldEnd end = std::move(*due);
  held_.erase(due);
  if (is_stopping_) end.task.cause = TaskStop::request;
  return end_of(std::move(end.task), end.status, end.usage);
}

EndedTask RunningTasks::end_of(Watched task, int status, const rusage& usage) {
  EndedTask end;
  end.exit = WIFSIGNALED(status) ? Exit{0, WTERMSIG(status)} : Exit{WEXITSTATUS(status), 0};
  task.peak_bytes = std::max(task.peak_bytes, peak_of(usage));
  end.peak_bytes = task.peak_bytes;
  end.outcome = outcome_of(task, end.exit, &end.why);
  end.seconds = Seconds(clock_.mono() - task.task.started).count();
  end.task = std::move(task.task);
  return end;
}

TaskOutcome RunningTasks::outcome_of(const Watched& task, const Exit& exit, std::string* why) const {
  const TaskNeeds& needs = task.task.needs;
  *why = to_text(exit);
  if (exit.ok()) {
    const TaskExtras* const extras = list_.extras(task.task.task);
    if (extras == nullptr) return TaskOutcome::done;
    const auto missing = std::find_if(extras->makes.begin(), extras->makes.end(),
                                      [](const Path& file) { return !path_exists(file); });
    if (missing == extras->makes.end()) return TaskOutcome::done;
    *why = format("did not make {}", missing->string());
    return TaskOutcome::failed;
  }
  switch (task.cause) {
    case TaskStop::request:
    case TaskStop::end_of_time:
      return TaskOutcome::stopped;
    case TaskStop::own_time:
      *why = format("longer than {}", duration_text(*needs.time));
      return TaskOutcome::timeout;
    case TaskStop::memory:
      *why = format("more than {} of memory", to_text(*needs.memory));
      return TaskOutcome::out_of_memory;
    case TaskStop::none:
      break;
  }
  const bool is_killed = exit.shell_code() == 128 + SIGKILL;
  if (is_killed && needs.memory && rank::memory_kills().count > task.task.kernel_kills) {
    *why = "killed for lack of memory";
    return TaskOutcome::out_of_memory;
  }
  if (needs.memory && task.peak_bytes > needs.memory->value) {
    *why = format("{}, after it used {} of memory", *why, rounded(ByteCount{task.peak_bytes}));
    return TaskOutcome::out_of_memory;
  }
  return TaskOutcome::failed;
}

// Of the largest process of an ended task. A process begins with the memory of its parent in this counter: 0
// if it is not larger.
std::uint64_t RunningTasks::peak_of(const rusage& usage) {
  const auto peak = static_cast<std::uint64_t>(usage.ru_maxrss) << 10;
  if (peak > own_peak_bytes_) {
    own_peak_bytes_ = own_peak().value;
  }
  return peak > own_peak_bytes_ ? peak : 0;
}

void RunningTasks::stop(Watched& task, TaskStop cause, int signal) {
  if (task.cause == TaskStop::none) task.cause = cause;
  signal_group(task.task.pid, signal);
  if (!task.kill_at) task.kill_at = clock_.mono() + kTaskGrace;
}

void RunningTasks::stop_all(TaskStop cause, int signal) {
  is_stopping_ = true;
  for (Watched& task : running_) stop(task, cause, signal);
}

void RunningTasks::kill_all_at(MonoTime time) {
  for (Watched& task : running_) task.kill_at = time;
}

void RunningTasks::check_limits() {
  const MonoTime time = clock_.mono();
  for (Watched& task : running_) {
    const TaskNeeds& needs = task.task.needs;
    if (task.kill_at && time >= *task.kill_at) signal_group(task.task.pid, SIGKILL);
    if (task.cause != TaskStop::none) continue;
    if (needs.time && time - task.task.started > *needs.time) stop(task, TaskStop::own_time, SIGTERM);
    if (needs.memory && time >= task.next_measure) measure(task, time);
  }
}

// Often at first: short tasks are measured too.
void RunningTasks::measure(Watched& task, MonoTime time) {
  const ByteCount limit = *task.task.needs.memory;
  const ByteCount used = memory_of(task.task.pid, limit);
  task.peak_bytes = std::max(task.peak_bytes, used.value);
  task.next_measure = time + std::clamp<Duration>(time - task.task.started, kFirstMeasure, kLongestMeasure);
  if (used > limit) stop(task, TaskStop::memory, SIGKILL);
}

Duration RunningTasks::next_wait() const {
  Duration wait = std::chrono::milliseconds(held_.empty() ? 500 : 100);
  const MonoTime time = clock_.mono();
  for (const Watched& task : running_) {
    if (task.kill_at || task.task.needs.time) wait = std::min<Duration>(wait, std::chrono::milliseconds(100));
    if (task.task.needs.memory)
      wait = std::min(wait, std::max<Duration>(task.next_measure - time, std::chrono::milliseconds(1)));
  }
  return wait;
}

}  // namespace stoker::farm
