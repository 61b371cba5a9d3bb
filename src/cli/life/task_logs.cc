#include "cli/life/task_logs.h"

#include <vector>

#include "base/json/json.h"
#include "cli/runs.h"
#include "launch/state/array_state.h"
#include "launch/state/live_tasks.h"
#include "launch/status/control.h"
#include "observe/text_follower.h"

namespace stoker::cli {
namespace {

// Polling this many files several times a second does not burden a shared disk.
constexpr std::size_t kMaxFollowed = 500;

class TaskPrinter {
 public:
  TaskPrinter(const TaskLogs& what, Output& out) : what_(what), out_(out) {}

  Status run() {
    STOKER_ASSIGN_OR_RETURN(array, launch::read_array_file(what_.attempt));
    if (what_.task) {
      STOKER_ASSIGN_OR_RETURN(task, launch::find_task(what_.run, what_.attempt, *what_.task));
      if (task.record.state == launch::TaskState::waiting && !what_.is_following)
        out_.note("task {} has not started yet", task.number);
      logs_.push_back(log_of(task.number));
    } else {
      for (std::uint32_t task = 1; task <= array.tasks.size(); ++task) logs_.push_back(log_of(task));
    }
    if (what_.is_following && logs_.size() > kMaxFollowed) {
      // Always several.
      return invalid("logs: --follow: {} tasks are too many to follow", logs_.size())
          .cure("stoker logs {} -f --task 1", run_reference(what_.run));
    }
    STOKER_RETURN_IF_ERROR(print_new());
    if (what_.is_following) STOKER_RETURN_IF_ERROR(follow());
    for (Log& log : logs_) log.text.finish(sink_of(log.task));
    note_failures();
    out_.json(json_text(nlohmann::ordered_json{
        {"run", what_.run.id()}, {"attempt", what_.attempt.number()}, {"lines", lines_}}));
    return {};
  }

 private:
  struct Log {
    std::uint32_t task;
    observe::TextFollower text;
  };

  Log log_of(std::uint32_t task) const {
    return {task, observe::TextFollower(launch::task_log(what_.run, task))};
  }

  observe::TextFollower::Sink sink_of(std::uint32_t task) {
    return [this, task](std::string_view line) {
      if (!what_.wants(line)) return;
      if (out_.is_json()) {
        lines_.push_back({{"task", task}, {"text", std::string(line)}});
      } else {
        out_.raw(what_.task ? format("{}\n", line) : format("[{}] {}\n", task, line));
      }
    };
  }

  Status print_new() {
    for (Log& log : logs_) STOKER_RETURN_IF_ERROR(log.text.read_new(sink_of(log.task)));
    std::fflush(stdout);
    return {};
  }

  bool is_task_over() const {
    if (!what_.task) return false;
    const auto task = launch::find_task(what_.run, what_.attempt, *what_.task);
    return task.ok() && task->record.state != launch::TaskState::waiting &&
           task->record.state != launch::TaskState::running;
  }

  // Follows until the task or the whole array ends: a task may never start.
  Status follow() {
    auto scheduler = make_scheduler();
    launch::WaitOptions options;
    Status problem;
    bool is_over = false;
    options.should_stop = [&] {
      is_over = is_task_over();
      problem = print_new();
      return is_over || !problem.ok() || stop_requested();
    };
    const auto ended = launch::wait_for(what_.run, scheduler, options);
    STOKER_RETURN_IF_ERROR(problem);
    if (!is_over && !ended.ok()) return ended.status();
    return print_new();
  }

  void note_failures() {
    if (what_.task) return;
    const auto array = launch::read_array_file(what_.attempt);
    if (!array.ok()) return;  // the tasks were listed from it
    const launch::ArrayState state = launch::read_array_state(what_.run, what_.attempt, *array);
    if (state.failures.empty()) return;
    out_.note("{} of {} tasks failed ({})   stoker logs {} --task {}", state.failed, state.tasks,
              launch::format_tasks(state.failures), run_reference(what_.run), state.failures.front());
  }

  const TaskLogs& what_;
  Output& out_;
  std::vector<Log> logs_;
  nlohmann::ordered_json lines_ = nlohmann::ordered_json::array();
};

}  // namespace

Status show_task_logs(const TaskLogs& what, Output& out) { return TaskPrinter(what, out).run(); }

}  // namespace stoker::cli
