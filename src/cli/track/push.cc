// `stoker track push RUN`: docs/commands/track-push.md
#include "track/push/push.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <poll.h>
#include <sys/resource.h>

#include "base/json/json.h"
#include "base/language/counted.h"
#include "base/secrets.h"
#include "cli/commands.h"
#include "cli/runs.h"
#include "launch/state/array_file.h"
#include "launch/state/task_record.h"
#include "launch/status/life.h"
#include "rank/process/signals.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

// Beside a run, SIGTERM ends it: the time for the last points.
constexpr Duration kTimeForRest = 10s;
constexpr int kNiceness = 10;

struct TrackArguments {
  RunChoice choice;
  std::vector<std::string> to;
  std::string folder;
  std::optional<std::int64_t> task;
  bool is_following = false;
};

// What one task, or a run without tasks, sent.
struct Pushed {
  std::uint32_t task = 0;
  std::vector<track::PushResult> results;
};

Result<track::PushOptions> push_options(const record::RunFolder& run, const TrackArguments& o, Output& out) {
  track::PushOptions options{.run = run, .folder = {}, .trackers = {}, .is_over = {}, .note = {}};
  options.folder = o.folder.empty() ? run.folder() / "track" : Path(o.folder);
  options.follows = o.is_following;
  options.note = [&out](const std::string& line) { out.note("{}", line); };
  options.is_over = [run] {
    const record::RunState records = record::derive_state(run);
    if (records.state == record::State::running || records.state == record::State::queued) return false;
    auto scheduler = make_scheduler();
    return is_over(launch::query_life(run, scheduler, Deadline::after(kSchedulerTimeout)).life);
  };
  for (const std::string& text : o.to) {
    STOKER_ASSIGN_OR_RETURN(choice, track::parse_choice(text));
    options.trackers.push_back(choice);
  }
  if (o.to.empty()) options.trackers = track::choices_of_job(run);
  if (options.trackers.empty()) {
    return invalid("track push: run {} has no tracker (record in its job file, --to)", run.id())
        .cure("stoker track push {} --to tensorboard", run_reference(run));
  }
  return options;
}

bool has_ended(launch::TaskState state) {
  return state == launch::TaskState::done || state == launch::TaskState::failed ||
         state == launch::TaskState::stopped;
}

// The tasks of an array.
class ArrayPush {
 public:
  ArrayPush(record::RunFolder run, int attempt, launch::TaskArrayFile array)
      : run_(std::move(run)), attempt_(attempt), array_(std::move(array)) {}

  /// Numbers of the tasks that have started.
  std::vector<std::int64_t> started() const {
    std::vector<std::int64_t> tasks;
    for (std::uint32_t task = 1; task <= array_.tasks.size(); ++task) {
      if (record_of(task).attempt > 0) tasks.push_back(task);
    }
    return tasks;
  }
  /// NotFound without this task.
  Result<track::PushOptions> options(std::int64_t number, const TrackArguments& o, Output& out) const {
    if (number < 1 || number > static_cast<std::int64_t>(array_.tasks.size()))
      return not_found("run {}: no task {} (valid: 1 to {})", run_.id(), number, array_.tasks.size());
    const auto task = static_cast<std::uint32_t>(number);
    const std::string own = record_of(task).run;
    if (!own.empty()) {
      STOKER_ASSIGN_OR_RETURN(folder, record::RunFolder::open(launch::tasks_folder(run_) / own));
      return push_options(folder, o, out);
    }
    STOKER_ASSIGN_OR_RETURN(options, push_options(run_, o, out));
    options.folder = options.folder / "tasks" / format("{:05}", task);
    options.task = task;
    options.describe = [this, task] { return describe(task); };
    options.is_over = [this, task] { return has_ended(record_of(task).state); };
    return options;
  }

 private:
  launch::TaskRecord record_of(std::uint32_t task) const {
    const bool is_chosen = std::ranges::binary_search(array_.chosen, task);
    return launch::read_task(run_, task, attempt_, is_chosen);
  }
  track::TrackedRun describe(std::uint32_t task) const {
    track::TrackedRun tracked = track::describe_run(run_);
    tracked.task = task;
    // The job file of the attempt has the values of the first task.
    for (const auto& [name, value] : array_.tasks[task - 1].values) {
      const std::string param = name.starts_with("params.") ? name.substr(7) : name;
      std::erase_if(tracked.params, [&](const auto& known) { return known.first == param; });
      tracked.params.emplace_back(param, hide_setting(name, value));
    }
    const launch::TaskRecord now = record_of(task);
    tracked.state = {.state = now.state == launch::TaskState::done      ? record::State::done
                              : now.state == launch::TaskState::failed  ? record::State::failed
                              : now.state == launch::TaskState::stopped ? record::State::stopped
                                                                        : record::State::running,
                     .exit_code = now.exit_code,
                     .started = now.started,
                     .ended = now.ended};
    return tracked;
  }

  record::RunFolder run_;
  int attempt_;
  launch::TaskArrayFile array_;
};

// SIGTERM leaves a moment for the last points, Ctrl-C only for the current request, a second one not even
// that: a killed push loses nothing.
std::vector<track::PushResult> wait_for(track::Push& push, rank::SignalFd& signals) {
  bool is_interrupted = false;
  while (!push.is_done()) {
    pollfd waiting{signals.fd(), POLLIN, 0};
    ::poll(&waiting, 1, 100);
    while (const auto signal = signals.next_signal()) {
      if (*signal == SIGTERM) push.control().finish_by(Deadline::after(kTimeForRest));
      if (*signal == SIGINT && is_interrupted) std::_Exit(exit_code::kInterrupted);
      is_interrupted = is_interrupted || *signal == SIGINT;
      if (is_interrupted) push.control().stop();
    }
  }
  return push.finish();
}

std::string describe(const track::PushResult& result) {
  const std::string refused = result.refused == 0 ? "" : format(", {} not accepted", grouped(result.refused));
  if (result.is_complete()) {
    return format("{}: {} sent, {} in all{}", result.tracker, counted(result.delivered, "point"),
                  grouped(result.total), refused);
  }
  if (result.waiting == 0) return format("{}: {}", result.tracker, result.status.message());
  const bool is_limit = result.waiting >= track::kMostCounted;
  return format("{}: {}{} not delivered: {}", result.tracker, is_limit ? "over " : "",
                counted(result.waiting, "point"), result.status.message());
}

int print(const record::RunFolder& run, const std::vector<Pushed>& all, Output& out) {
  int code = exit_code::kOk;
  nlohmann::ordered_json trackers = nlohmann::ordered_json::array();
  for (const Pushed& pushed : all) {
    for (const track::PushResult& result : pushed.results) {
      out.line("{}{}", pushed.task == 0 ? "" : format("task {}: ", pushed.task), describe(result));
      if (!result.status.cure().empty()) out.line("  try: {}", result.status.cure());
      if (code == exit_code::kOk) code = exit_code::from_status(result.status);
      nlohmann::ordered_json row;
      if (pushed.task > 0) row["task"] = pushed.task;
      row["tracker"] = result.tracker;
      row["delivered"] = result.delivered;
      row["total"] = result.total;
      row["refused"] = result.refused;
      row["waiting"] = result.waiting;
      row["problem"] = result.status.ok() ? "" : std::string(result.status.message());
      trackers.push_back(std::move(row));
    }
  }
  out.json(json_text(nlohmann::ordered_json{{"run", run.id()}, {"trackers", trackers}}));
  return code;
}

// Of an array without --task, the tasks follow each other.
Result<std::vector<Pushed>> push_all(const record::RunFolder& run, const TrackArguments& o,
                                     rank::SignalFd& signals, Output& out) {
  std::vector<Pushed> all;
  const auto last = run.last_attempt();
  if (!last.ok() || !launch::is_array(*last)) {
    if (o.task) return invalid("track push: --task: run {} is not an array", run.id());
    STOKER_ASSIGN_OR_RETURN(options, push_options(run, o, out));
    track::Push push(std::move(options));
    all.push_back({0, wait_for(push, signals)});
    return all;
  }
  if (o.is_following && !o.task) {
    return invalid("track push: --follow: run {} is an array (--task)", run.id())
        .cure("stoker track push {} --follow --task 1", run_reference(run));
  }
  STOKER_ASSIGN_OR_RETURN(file, launch::read_array_file(*last));
  const ArrayPush array(run, last->number(), std::move(file));
  for (const std::int64_t task : o.task ? std::vector{*o.task} : array.started()) {
    STOKER_ASSIGN_OR_RETURN(options, array.options(task, o, out));
    track::Push push(std::move(options));
    all.push_back({static_cast<std::uint32_t>(task), wait_for(push, signals)});
    if (push.control().must_end()) break;
  }
  return all;
}

}  // namespace

int track_push(std::span<const std::string> words, Output& out) {
  TrackArguments o;
  Arguments arguments("track push", "Send the points of a run to trackers, each point once.");
  add_run_choice(arguments, &o.choice);
  arguments.option("--to", &o.to, "TRACKER",
                   "Tracker: mlflow[=ADDRESS], tensorboard, wandb[=PROJECT], comet[=PROJECT] or csv "
                   "(default: as in the job file)");
  arguments.choices(track::kTrackerNames);
  arguments.option("--folder", &o.folder, "DIR",
                   "Folder for files and positions (default: track in the run folder)");
  arguments.option("--task", &o.task, "N", "Send only this task of an array");
  arguments.flag("-f,--follow", &o.is_following, "Continue until the run has ended");
  arguments.example("stoker track push last --to tensorboard");
  if (const auto code = arguments.parse(words, out)) return *code;
  const auto run = find_run(o.choice);
  if (!run.ok()) return out.fail(run.error());
  auto signals = rank::SignalFd::open({SIGINT, SIGTERM});
  if (!signals.ok()) return out.fail(signals.error());
  // A run on the same cores is worth more than its records.
  if (o.is_following) (void)::setpriority(PRIO_PROCESS, 0, kNiceness);
  const auto pushed = push_all(*run, o, *signals, out);
  return pushed.ok() ? print(*run, *pushed, out) : out.fail(pushed.error());
}

}  // namespace stoker::cli
