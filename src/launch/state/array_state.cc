#include "launch/state/array_state.h"

#include <algorithm>

namespace stoker::launch {
namespace {

constexpr std::size_t kRangesShown = 8;

}  // namespace

ArrayState read_array_state(const record::RunFolder& run, const record::Attempt& attempt,
                            const TaskArrayFile& array) {
  ArrayState state;
  state.tasks = static_cast<std::uint32_t>(array.tasks.size());
  for (std::uint32_t task = 1; task <= state.tasks; ++task) {
    const bool is_chosen = std::binary_search(array.chosen.begin(), array.chosen.end(), task);
    const TaskRecord record = read_task(run, task, attempt.number(), is_chosen);
    if (record.started > 0 && (state.started == 0 || record.started < state.started))
      state.started = record.started;
    state.ended = std::max(state.ended, record.ended);
    if (record.state == TaskState::done) {
      ++state.done;
      continue;
    }
    state.not_done.push_back(task);
    switch (record.state) {
      case TaskState::waiting:
        ++state.waiting;
        break;
      case TaskState::running:
        ++state.running;
        break;
      case TaskState::stopped:
        ++state.stopped;
        if (state.exit_code == 0) state.exit_code = record.exit_code;
        break;
      default:
        ++state.failed;
        state.failures.push_back(task);
        if (state.exit_code == 0) state.exit_code = record.exit_code == 0 ? 1 : record.exit_code;
    }
  }
  return state;
}

std::string format_tasks(const std::vector<std::uint32_t>& tasks) {
  std::string text;
  std::size_t ranges = 0;
  for (std::size_t i = 0; i < tasks.size(); ++ranges) {
    if (ranges == kRangesShown) return text + ", ...";
    std::size_t last = i;
    while (last + 1 < tasks.size() && tasks[last + 1] == tasks[last] + 1) ++last;
    text += format("{}{}", text.empty() ? "" : ", ", tasks[i]);
    if (last > i) text += format("-{}", tasks[last]);
    i = last + 1;
  }
  return text;
}

std::string to_text(const ArrayState& state) {
  std::string text = format("{} of {} done", state.done, state.tasks);
  if (state.running > 0) text += format(", {} running", state.running);
  if (state.waiting > 0) text += format(", {} waiting", state.waiting);
  if (state.failed > 0) text += format(", {} failed ({})", state.failed, format_tasks(state.failures));
  if (state.stopped > 0) text += format(", {} stopped", state.stopped);
  return text;
}

}  // namespace stoker::launch
