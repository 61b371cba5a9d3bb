#include "farm/show/farm_folder.h"

#include <algorithm>

#include "base/file.h"
#include "base/json/json.h"

namespace stoker::farm {

namespace {

constexpr std::string_view kCommandFile = "command.json";
constexpr std::size_t kPartBytes = 1U << 18;

}  // namespace

Path farm_folder(const Path& tasks) { return tasks.stem().string() + ".farm"; }

Status save_command(const Path& folder, const std::vector<std::string>& command) {
  const nlohmann::json json(command);
  const std::string text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
  if (const auto known = read_file(folder / kCommandFile); known && *known == text) return {};
  return write_file(folder / kCommandFile, text);
}

Result<std::vector<std::string>> saved_command(const Path& folder) {
  const auto text = read_file(folder / kCommandFile, 1_MiB);
  std::vector<std::string> command;
  if (!text) return text.error().code() == Code::not_found ? Result(command) : text.error();
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  const bool is_list = json.is_array() && std::all_of(json.begin(), json.end(),
                                                      [](const auto& word) { return word.is_string(); });
  if (!is_list) return corrupt("{}: not a list of words", folder / kCommandFile);
  for (const auto& word : json) command.push_back(word.get<std::string>());
  return command;
}

Status read_output(const FarmState& state, TaskIndex task,
                   const std::function<void(std::string_view)>& sink) {
  const OutputPlace place = state.output(task);
  if (place.length == 0) return {};
  STOKER_ASSIGN_OR_RETURN(file,
                          File::open_read(state.folder() / "output" / (state.files()[place.file] + ".out")));
  std::string part;
  for (std::uint64_t at = 0; at < place.length; at += part.size()) {
    part.resize(std::min<std::uint64_t>(place.length - at, kPartBytes));
    STOKER_RETURN_IF_ERROR(file.read_at(place.offset + at, std::as_writable_bytes(std::span(part))));
    sink(part);
  }
  return {};
}

double tasks_per_second(const FarmState& state) {
  double rate = 0;
  for (const KnownWorker& worker : state.workers()) {
    if (!worker.is_over && worker.last_end > worker.started)
      rate += static_cast<double>(worker.ended) / (worker.last_end - worker.started);
  }
  return rate;
}

std::string counts_text(const TaskCounts& counts) {
  std::string text = format("{} done", grouped(counts.done));
  if (counts.up_to_date > 0) text += format(", {} up to date", grouped(counts.up_to_date));
  if (counts.failed > 0) text += format(", {} failed", grouped(counts.failed));
  if (counts.out_of_memory + counts.timeout > 0) {
    std::string kinds;
    if (counts.out_of_memory > 0) kinds = format("{} out of memory", grouped(counts.out_of_memory));
    if (counts.timeout > 0)
      kinds += format("{}{} out of time", kinds.empty() ? "" : ", ", grouped(counts.timeout));
    text += format(" ({})", kinds);
  }
  if (counts.claimed > 0) text += format(", {} on workers", grouped(counts.claimed));
  if (counts.waiting > 0) text += format(", {} waiting", grouped(counts.waiting));
  return text;
}

}  // namespace stoker::farm
