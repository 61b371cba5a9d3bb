#include "launch/state/live_tasks.h"

#include <algorithm>

#include "base/file.h"

namespace stoker::launch {
namespace {

constexpr std::uint64_t kEndOfLog = 4096;

TaskRecord record_of(const record::RunFolder& run, const record::Attempt& attempt, const TaskArrayFile& array,
                     std::uint32_t number) {
  const bool is_chosen = std::binary_search(array.chosen.begin(), array.chosen.end(), number);
  return read_task(run, number, attempt.number(), is_chosen);
}

}  // namespace

std::string last_line_of(const Path& log) {
  const auto file = File::open_regular(log);
  if (!file.ok()) return "";
  const auto size = file->size();
  if (!size.ok()) return "";
  std::string end(std::min(*size, kEndOfLog), '\0');
  if (!file->read_at(*size - end.size(), std::as_writable_bytes(std::span(end))).ok()) return "";
  std::string_view last;
  for (std::string_view line : split(end, '\n')) {
    // A progress bar overwrites itself with carriage returns.
    if (const std::size_t back = line.find_last_of('\r', line.size() < 2 ? 0 : line.size() - 2);
        back != std::string_view::npos)
      line.remove_prefix(back);
    if (!trim(line).empty()) last = trim(line);
  }
  return std::string(last);
}

Result<LiveTask> find_task(const record::RunFolder& run, const record::Attempt& attempt,
                           std::int64_t number) {
  STOKER_ASSIGN_OR_RETURN(array, read_array_file(attempt));
  const auto count = static_cast<std::int64_t>(array.tasks.size());
  if (number < 1 || number > count)
    return not_found("run {}: no task {} (valid: 1 to {})", run.id(), number, count);
  const auto task = static_cast<std::uint32_t>(number);
  return LiveTask{.number = task, .record = record_of(run, attempt, array, task), .last_line = ""};
}

std::vector<LiveTask> running_tasks(const record::RunFolder& run, const record::Attempt& attempt,
                                    std::size_t most) {
  std::vector<LiveTask> running;
  const auto array = read_array_file(attempt);
  if (!array.ok()) return running;
  for (std::uint32_t task = 1; task <= array->tasks.size() && running.size() < most; ++task) {
    TaskRecord record = record_of(run, attempt, *array, task);
    if (record.state != TaskState::running) continue;
    running.push_back({task, std::move(record), last_line_of(task_log(run, task))});
  }
  return running;
}

std::optional<record::RunFolder> run_of_task(const record::RunFolder& run, const LiveTask& task) {
  if (task.record.run.empty()) return std::nullopt;
  auto own = record::RunFolder::open(tasks_folder(run) / task.record.run);
  if (!own.ok()) return std::nullopt;
  return std::move(*own);
}

}  // namespace stoker::launch
