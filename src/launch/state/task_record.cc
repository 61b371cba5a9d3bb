#include "launch/state/task_record.h"

namespace stoker::launch {
namespace {

constexpr std::string_view kStarted = "task_started";
constexpr std::string_view kEnded = "task_ended";

std::string text(const record::Event& event, std::string_view name) {
  return std::string(event.text(name).value_or(std::string_view()));
}

record::Outcome outcome_of(const record::Event& event) {
  const std::string outcome = text(event, "outcome");
  return outcome == "done"      ? record::Outcome::done
         : outcome == "stopped" ? record::Outcome::stopped
                                : record::Outcome::failed;
}

CheckpointStamp stamp_in(const record::Event& started) {
  return {text(started, "resume"), started.number("resume_written").value_or(0)};
}

TaskState state_of(const record::Event& ended) {
  if (ended.flag("goes_on").value_or(false)) return TaskState::waiting;
  switch (outcome_of(ended)) {
    case record::Outcome::done:
      return TaskState::done;
    case record::Outcome::stopped:
      return TaskState::stopped;
    default:
      return TaskState::failed;
  }
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
  std::vector<record::Field> fields = {{"attempt", std::int64_t{event.attempt}},
                                       {"host", event.host},
                                       {"scheduler_job", event.scheduler_job},
                                       {"run", event.run}};
  if (event.link > 0) fields.push_back({"link", std::int64_t{event.link}});
  if (!event.started_from.path.empty()) {
    fields.push_back({"resume", event.started_from.path});
    fields.push_back({"resume_written", event.started_from.written});
  }
  return out.write(kStarted, fields);
}

Status write_task_event(record::EventWriter& out, const TaskEnded& event) {
  std::vector<record::Field> fields = {{"attempt", std::int64_t{event.attempt}},
                                       {"outcome", std::string(to_text(event.outcome))},
                                       {"exit_code", std::int64_t{event.exit_code}},
                                       {"reason", event.reason}};
  if (event.will_continue) fields.push_back({"goes_on", true});
  return out.write(kEnded, fields);
}

TaskRecord read_task(const record::RunFolder& run, std::uint32_t task, int attempt, bool is_chosen) {
  TaskRecord found;
  const auto log = record::read_events(task_events(run, task));
  if (!log.ok()) return found;
  for (const record::Event& event : log->events) {
    const int event_attempt = static_cast<int>(event.integer("attempt").value_or(0));
    if (event.kind == kStarted) {
      found.starts += event_attempt == attempt ? 1 : 0;
      found.state = TaskState::running;
      found.attempt = event_attempt;
      found.started = event.time;
      found.host = text(event, "host");
      found.run = text(event, "run");
      found.started_from = stamp_in(event);
      found.ended = 0;
      found.reason.clear();
    } else if (event.kind == kEnded) {
      found.state = state_of(event);
      if (found.state == TaskState::waiting) found.starts = 0;
      found.attempt = event_attempt;
      found.ended = event.time;
      found.exit_code = static_cast<int>(event.integer("exit_code").value_or(1));
      found.reason = text(event, "reason");
    }
  }
  if (is_chosen && found.attempt < attempt && found.state != TaskState::done)
    found.state = TaskState::waiting;
  return found;
}

std::vector<PastAttempt> links_of_task(const record::RunFolder& run, std::uint32_t task, int attempt) {
  std::vector<PastAttempt> links;
  const auto log = record::read_events(task_events(run, task));
  if (!log.ok()) return links;
  CheckpointStamp started_from;
  for (const record::Event& event : log->events) {
    if (event.integer("attempt").value_or(0) != attempt) continue;
    if (event.kind == kStarted) {
      started_from = stamp_in(event);
    } else if (event.kind == kEnded) {
      const int code = static_cast<int>(event.integer("exit_code").value_or(1));
      links.push_back({.number = static_cast<int>(links.size()) + 1,
                       .cause = cause_of(outcome_of(event), code, text(event, "reason")),
                       .started_from = started_from});
    }
  }
  return links;
}

}  // namespace stoker::launch
