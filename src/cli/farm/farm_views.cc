// `stoker farm TASKS --status|--list|--output`: docs/commands/farm.md
#include <cstdio>

#include "base/enum_names.h"
#include "base/file.h"
#include "base/json/json.h"
#include "cli/farm/farm_request.h"
#include "farm/show/farm_folder.h"

namespace stoker::cli {
namespace {

using farm::FarmState;
using farm::TaskIndex;
using Json = nlohmann::ordered_json;

Result<std::vector<TaskIndex>> chosen_tasks(const FarmState& state, const FarmRequest& request) {
  std::vector<TaskIndex> tasks;
  for (const std::string& name : request.chosen) {
    const auto task = state.list().find(name);
    if (!task) return not_found("{}: no task '{}'", request.tasks, printable(name));
    tasks.push_back(*task);
  }
  if (!request.chosen.empty()) return tasks;
  for (TaskIndex task = 0; task < state.list().size(); ++task) tasks.push_back(task);
  return tasks;
}

Json facts_of(const FarmState& state, TaskIndex task) {
  return {{"task", state.list().name(task)},
          {"state", outcome_text(state, task)},
          {"attempts", state.attempts(task)},
          {"command", state.list().command(task)}};
}

int show_status(const FarmState& state, Output& out) {
  const farm::TaskCounts counts = state.counts();
  const double rate = farm::tasks_per_second(state);
  const double left = static_cast<double>(counts.waiting + counts.claimed);
  out.line("{}: {}", state.folder().string(), farm::counts_text(counts));
  std::size_t workers = 0;
  for (const farm::KnownWorker& worker : state.workers()) workers += worker.is_over ? 0 : 1;
  if (workers > 0 && rate > 0 && left > 0) {
    const auto rest = std::chrono::duration_cast<Duration>(Seconds(left / rate));
    out.line("  workers {}, {:.3g} tasks/s, about {} left", workers, rate, rounded_duration(rest));
  }
  if (state.run_times().count() > 0) {
    const auto time = [&](double share) {
      return rounded_duration(
          std::chrono::duration_cast<Duration>(Seconds(state.run_times().quantile(share))));
    };
    out.line("  run times: half within {}, 90 % within {}", time(0.5), time(0.9));
  }
  if (state.damaged() > 0) out.line("  damaged lines: {}", grouped(state.damaged()));
  out.json(json_text(Json{{"tasks", state.list().size()},
                          {"done", counts.done},
                          {"up_to_date", counts.up_to_date},
                          {"failed", counts.failed},
                          {"out_of_memory", counts.out_of_memory},
                          {"timeout", counts.timeout},
                          {"claimed", counts.claimed},
                          {"waiting", counts.waiting},
                          {"workers", workers},
                          {"tasks_per_s", rate},
                          {"damaged", state.damaged()}}));
  return exit_code::kOk;
}

int show_list(const FarmState& state, const std::vector<TaskIndex>& tasks, Output& out) {
  Json list = Json::array();
  std::vector<std::vector<std::string>> rows;
  for (const TaskIndex task : tasks) {
    if (out.is_json()) {
      list.push_back(facts_of(state, task));
    } else {
      rows.push_back({printable(state.list().name(task)), outcome_text(state, task),
                      format("{}", state.attempts(task)), printable(state.list().command(task))});
    }
  }
  if (!out.is_json()) out.table({"TASK", "STATE", "ATTEMPTS", "COMMAND"}, rows);
  out.json(json_text(list));
  return exit_code::kOk;
}

int show_output(const FarmState& state, const std::vector<TaskIndex>& tasks, Output& out) {
  Json list = Json::array();
  for (const TaskIndex task : tasks) {
    std::string text;
    const Status read = farm::read_output(state, task, [&](std::string_view part) {
      if (out.is_json()) {
        text += part;
      } else {
        out.raw(part);
      }
    });
    if (!read.ok()) return out.fail(read);
    if (!out.is_json()) continue;
    list.push_back(facts_of(state, task));
    list.back()["output"] = std::move(text);
  }
  out.json(json_text(list));
  return exit_code::kOk;
}

}  // namespace

std::string outcome_text(const FarmState& state, TaskIndex task) {
  if (!is_success(state.outcome(task)) && state.owner(task)) return "on a worker";
  std::string text(stoker::to_text(state.outcome(task)));
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

int show_farm(const FarmRequest& request, Output& out) {
  const Path folder = farm::farm_folder(request.tasks);
  if (!folder_exists(folder))
    return out.fail(not_found("{}: no farm", folder).cure("stoker farm {}", shell_quote(request.tasks)));
  std::vector<std::string> command = request.command;
  if (command.empty()) {
    auto saved = farm::saved_command(folder);
    if (!saved.ok()) return out.fail(saved.error());
    command = *std::move(saved);
  }
  const auto list = farm::TaskList::load(request.tasks, command, request.needs);
  if (!list.ok()) return out.fail(list.error());
  FarmState state(folder, *list, request.shows_output ? farm::KeepOutputs::yes : farm::KeepOutputs::no);
  if (const Status read = state.refresh(); !read.ok()) return out.fail(read);
  const double now = unix_seconds(RealClock().wall());
  if (const Status found = state.find_lost_workers(now, nullptr); !found.ok()) return out.fail(found);
  if (request.shows_status) return show_status(state, out);
  const auto tasks = chosen_tasks(state, request);
  if (!tasks.ok()) return out.fail(tasks.error());
  return request.shows_list ? show_list(state, *tasks, out) : show_output(state, *tasks, out);
}

}  // namespace stoker::cli
