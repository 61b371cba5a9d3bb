#include "launch/array/task_record.h"

namespace stoker::launch {
namespace {

constexpr std::string_view kStarted = "task_started";
constexpr std::string_view kEnded = "task_ended";

std::string text(const record::Event& event, std::string_view name) {
  return std::string(event.text(name).value_or(std::string_view()));
}

}  // namespace

Path tasks_folder(const record::RunFolder& run) { return run.folder() / "tasks"; }
Path task_log(const record::RunFolder& run, std::uint32_t task) {
  return tasks_folder(run) / format("{:05}.log", task);
}
Path task_events(const record::RunFolder& run, std::uint32_t task) {
  return tasks_folder(run) / format("{:05}.jsonl", task);
}

Status write_task_event(record::EventWriter& out, const TaskStarted& event) {
  return out.write(kStarted, {{"attempt", std::int64_t{event.attempt}},
                              {"host", event.host},
                              {"scheduler_job", event.scheduler_job},
                              {"run", event.run}});
}

Status write_task_event(record::EventWriter& out, const TaskEnded& event) {
  return out.write(kEnded, {{"attempt", std::int64_t{event.attempt}},
                            {"outcome", std::string(to_text(event.outcome))},
                            {"exit_code", std::int64_t{event.exit_code}},
                            {"reason", event.reason}});
}

TaskRecord read_task(const record::RunFolder& run, std::uint32_t task, int attempt, bool is_chosen) {
  TaskRecord found;
  const auto log = record::read_events(task_events(run, task));
  if (!log.ok()) return found;
  for (const record::Event& event : log->events) {
    const int its = static_cast<int>(event.integer("attempt").value_or(0));
    if (event.kind == kStarted) {
      found.starts += its == attempt ? 1 : 0;
      found.state = TaskState::running;
      found.attempt = its;
      found.started = event.time;
      found.host = text(event, "host");
      found.run = text(event, "run");
      found.ended = 0;
      found.reason.clear();
    } else if (event.kind == kEnded) {
      const std::string outcome = text(event, "outcome");
      found.state = outcome == "done"      ? TaskState::done
                    : outcome == "stopped" ? TaskState::stopped
                                           : TaskState::failed;
      found.attempt = its;
      found.ended = event.time;
      found.exit_code = static_cast<int>(event.integer("exit_code").value_or(1));
      found.reason = text(event, "reason");
    }
  }
  if (is_chosen && found.attempt < attempt && found.state != TaskState::done)
    found.state = TaskState::waiting;
  return found;
}

}  // namespace stoker::launch
