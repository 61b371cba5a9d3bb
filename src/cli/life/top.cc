// `stoker top RUN`: docs/commands/top.md
#include <algorithm>
#include <functional>

#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/life/jobs.h"
#include "cli/remote/host.h"
#include "cli/sweep/study_choice.h"
#include "cli/sweep/study_status.h"
#include "launch/state/live_tasks.h"
#include "launch/status/life.h"
#include "observe/live_json.h"
#include "observe/node_rows.h"
#include "report/progress_note.h"
#include "stoker/time.h"
#include "sweep/results/ranking.h"

namespace stoker::cli {
namespace {
using namespace std::chrono_literals;
using Json = nlohmann::ordered_json;
using observe::LiveRank;

constexpr std::size_t kMaxTasks = 40;
constexpr std::size_t kLongestLine = 100;
constexpr Duration kTopInterval = 1s;
constexpr Duration kTopTick = 100ms;
constexpr Duration kSlurmInterval = 15s;

struct TopOptions {
  RunChoice choice;
  std::optional<std::int64_t> task;
  std::optional<Duration> every;
  bool is_redrawn = false;
  HostChoice host;
};

struct TopView {
  launch::RunLife life;
  observe::LiveRun live;
  std::vector<launch::LiveTask> tasks;  // running tasks of an array
  double elapsed_s = 0;
  bool is_certain = true;
};

// Slurm is queried at intervals; otherwise the run's records are used.
TopView load_view(const record::RunFolder& run, slurm::SlurmCommands* scheduler) {
  const double now = unix_seconds(RealClock().wall());
  TopView view;
  const launch::RecordedStatus own = launch::read_recorded_status(run, now);
  view.is_certain = scheduler != nullptr || !launch::needs_scheduler(own);
  view.life = scheduler == nullptr ? launch::judge_life(own, {}, now)
                                   : launch::query_life(run, *scheduler, Deadline::after(kSchedulerTimeout));
  const record::RunState& records = view.life.records;
  const bool is_active = view.life.life == launch::Life::running || records.ended == 0;
  if (records.started > 0)
    view.elapsed_s = std::max(0.0, (is_active ? now : records.ended) - records.started);
  const auto attempt = run.last_attempt();
  if (attempt.ok() && view.life.array) {
    view.tasks = launch::running_tasks(run, *attempt, kMaxTasks);
  } else if (attempt.ok()) {
    view.live = observe::read_live_run(*attempt, run.description().world_size, now);
  }
  return view;
}

std::string percent(const std::optional<double>& share) {
  return share ? format("{:.0f} %", 100 * *share) : "-";
}

std::string phase_of(const LiveRank& rank) {
  if (rank.ended) return "ended";
  if (!rank.beacon) return "-";
  std::string text(to_text(rank.beacon->phase));
  // A step may take a second or two; show longer stalls.
  if (rank.silent_s && *rank.silent_s > 5)
    text +=
        format(" for {}", rounded_duration(std::chrono::duration_cast<Duration>(Seconds(*rank.silent_s))));
  return text;
}

std::vector<std::string> row_of(const LiveRank& rank) {
  const auto number = [](const auto& value) { return value ? std::to_string(*value) : "-"; };
  std::vector<std::string> row = {std::to_string(rank.rank),
                                  rank.host.empty() ? "-" : printable(rank.host),
                                  phase_of(rank),
                                  rank.epoch ? std::to_string(*rank.epoch + 1) : "-",
                                  number(rank.step),
                                  rank.steps_per_s ? format("{:.2f}", *rank.steps_per_s) : "-"};
  for (const auto& share : rank.shares) row.push_back(percent(share));
  row.push_back(rank.cpu_cores ? format("{:.1f}", *rank.cpu_cores) : "-");
  row.push_back(rank.memory_bytes ? rounded(ByteCount{static_cast<std::uint64_t>(*rank.memory_bytes)}) : "-");
  return row;
}

// With many ranks: the ones that are furthest behind.
std::vector<const LiveRank*> shown(const observe::LiveRun& live) {
  std::vector<const LiveRank*> ranks;
  for (const LiveRank& rank : live.ranks) ranks.push_back(&rank);
  if (ranks.size() <= kMaxTasks) return ranks;
  std::stable_sort(ranks.begin(), ranks.end(), [](const LiveRank* a, const LiveRank* b) {
    return a->step.value_or(-1) < b->step.value_or(-1);
  });
  ranks.resize(kMaxTasks);
  return ranks;
}

void print_tasks(const TopView& view, Output& out) {
  const double now = unix_seconds(RealClock().wall());
  std::vector<std::vector<std::string>> rows;
  for (const launch::LiveTask& task : view.tasks) {
    rows.push_back({std::to_string(task.number), printable(task.record.host),
                    clock_text(std::max(0.0, now - task.record.started)),
                    task.last_line.empty() ? "-" : printable(task.last_line.substr(0, kLongestLine))});
  }
  if (!rows.empty()) out.table({"TASK", "HOST", "RUNS", "LAST LINE"}, rows);
  if (view.life.array->running > rows.size())
    out.line("... and {} more tasks", grouped(view.life.array->running - rows.size()));
}

void print(const record::RunFolder& run, const TopView& view, Output& out) {
  std::string head = format("{}: {}", run.id(), to_text(view.life.life));
  if (view.life.life == launch::Life::running && !view.life.nodes.empty())
    head += " on " + printable(view.life.nodes);
  if (!view.life.note.empty()) head += format(" ({})", view.life.note);
  if (view.elapsed_s > 0) head += ", " + clock_text(view.elapsed_s);
  if (const auto rate = view.live.samples_per_s())
    head += format(", {} samples/s", grouped(static_cast<std::uint64_t>(*rate)));
  out.line("{}", head);
  if (view.life.array) return print_tasks(view, out);
  std::vector<std::vector<std::string>> rows;
  for (const LiveRank* rank : shown(view.live)) rows.push_back(row_of(*rank));
  if (!rows.empty()) {
    out.table({"RANK", "HOST", "PHASE", "EPOCH", "STEP", "STEPS/S", "DATA", "FORWARD", "BACKWARD", "COMM",
               "OPTIM", "CKPT", "CORES", "MEMORY"},
              rows);
  }
  if (rows.size() < view.live.ranks.size())
    out.line("... and {} more ranks", grouped(view.live.ranks.size() - rows.size()));
  const observe::NodeRows nodes = observe::rows_of(view.live.nodes);
  if (!nodes.rows.empty()) out.table(nodes.header, nodes.rows);
  for (const std::string& line : observe::gpu_lines(view.live)) out.line("{}", line);
  if (const auto& data = view.live.staged) {
    out.line("DATA  {} from the source, {} from other nodes, {} in caches: {:.0f} % not read at the source",
             rounded({data->read}), rounded({data->received}), rounded({data->cached}),
             100 * data->hit_rate());
  }
  for (const record::LastValue& metric : view.live.metrics()) out.line("{}", report::metric_line(metric));
}

Json to_json_value(const record::RunFolder& run, const TopView& view) {
  const auto or_null = [](const auto& value) { return value ? Json(*value) : Json(nullptr); };
  Json tasks = Json::array();
  for (const launch::LiveTask& task : view.tasks) {
    tasks.push_back({{"task", task.number},
                     {"host", task.record.host},
                     {"started", task.record.started},
                     {"last_line", task.last_line},
                     {"run", task.record.run.empty() ? Json(nullptr) : Json(task.record.run)}});
  }
  return {{"run", run.id()},
          {"state", std::string(to_text(view.life.life))},
          {"elapsed_s", view.elapsed_s},
          {"samples_per_s", or_null(view.live.samples_per_s())},
          {"ranks", parse_json<Json>(json_of(view.live.ranks))},
          {"nodes", parse_json<Json>(json_of(view.live.nodes))},
          {"gpus", parse_json<Json>(json_of(view.live.gpus))},
          {"staged", parse_json<Json>(observe::json_of(view.live.staged))},
          {"tasks", view.life.array ? tasks : Json(nullptr)}};
}

// Whether the text names a study and not a run: its folder, address or sweep file.
bool is_study(const std::string& text) {
  const Path path(text);
  return sweep::Study::is_in(path) || text.find("://") != std::string::npos ||
         ((path.extension() == ".yaml" || path.extension() == ".yml") && path_exists(path));
}

// A driver between two trials runs none.
bool is_over(const sweep::Study& study) {
  const bool is_driven = path_exists(study.folder() / "driver.json");
  return !is_driven && sweep::count_trials(study.trials()).running == 0;
}

// The selected run; with --task, the run of that array task.
Result<record::RunFolder> choose_run(const TopOptions& o) {
  STOKER_ASSIGN_OR_RETURN(run, find_run(o.choice));
  if (!o.task) return run;
  const auto last = run.last_attempt();
  if (!last.ok() || !launch::is_array(*last)) return invalid("top: --task: run {} is not an array", run.id());
  STOKER_ASSIGN_OR_RETURN(task, launch::find_task(run, *last, *o.task));
  if (auto own = launch::run_of_task(run, task)) return std::move(*own);
  return invalid("top: --task: task {} of run {} is a single process; see its log", task.number, run.id())
      .cure("stoker logs {} -f --task {}", run_reference(run), task.number);
}

void pause_for(Duration pause) {
  const Deadline end = Deadline::after(pause);
  while (!end.passed() && !stop_requested()) RealClock().sleep(std::min(kTopTick, end.left()));
}

void print_running_studies(Output& out) {
  for (const StudyLine& study : list_studies()) {
    if (study.is_running)
      out.line("{}  {}{}{}", printable(study.folder), printable(study.text),
               study.progress.empty() ? "" : "; ", study.progress);
  }
}

// Calls `show` once, or at the interval of the options until it returns true.
int repeat(const TopOptions& o, Output& out, const std::function<Result<bool>()>& show) {
  const bool is_live = !out.is_json() && (out.is_terminal() || o.every);
  if (is_live) install_stop_signals();
  for (;;) {
    if (is_live && (out.is_terminal() || o.is_redrawn)) out.raw("\x1b[H\x1b[2J");
    const auto is_over = show();
    if (!is_over.ok()) return out.fail(is_over.error());
    std::fflush(stdout);
    if (!is_live || *is_over) return exit_code::kOk;
    pause_for(o.every.value_or(kTopInterval));
    if (stop_requested()) return exit_code::kInterrupted;
  }
}

int top_of_study(const TopOptions& o, Output& out) {
  if (o.task) return out.fail(invalid("top: --task: {} is a study", printable(o.choice.run)));
  auto study = open_study(o.choice.run, sweep::MissingStudy::refuse, out);
  if (!study.ok()) return out.fail(study.error());
  return repeat(o, out, [&]() -> Result<bool> {
    STOKER_RETURN_IF_ERROR(study->refresh());
    const double now = unix_seconds(RealClock().wall());
    print_study_status(*study, now, out);
    out.json(study_status_json(*study, now));
    return is_over(*study);
  });
}

// The output of the host is a pipe: the options replace its missing terminal.
int top_on_host(const TopOptions& o, std::span<const std::string> words, Output& out) {
  std::vector<std::string> options;
  if (out.is_terminal() && !out.is_json()) {
    options.emplace_back("--redraw");
    if (!o.every) options.push_back("--every=" + duration_text(kTopInterval));
  }
  return run_on_host(o.host, "top", with_options(words, options), "", out);
}

}  // namespace

int top(std::span<const std::string> words, Output& out) {
  TopOptions o;
  Arguments arguments("top",
                      "Show the phase, speed and time split of each rank of a run, or how a study proceeds.");
  add_run_choice(arguments, &o.choice);
  arguments.option("--every", &o.every, "DURATION",
                   "Repeat at this interval until the run ends (default: 1 s on a terminal, else once)");
  arguments.flag("--redraw", &o.is_redrawn,
                 "Clear the screen before each repetition (default: only on a terminal)");
  arguments.option("--task", &o.task, "N", "Show the ranks of this array task");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker top last");
  arguments.example("stoker top lr.yaml");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_remote()) return top_on_host(o, words, out);
  if (o.every && *o.every < 100ms)
    return out.fail(invalid("top: --every {}: must be at least 100ms", duration_text(*o.every)));
  if (is_study(o.choice.run)) return top_of_study(o, out);
  const auto run = choose_run(o);
  if (!run.ok()) return out.fail(run.error());
  auto scheduler = make_scheduler();
  Deadline next_question = Deadline::after(0s);
  return repeat(o, out, [&]() -> Result<bool> {
    const bool is_asked = next_question.passed();
    if (is_asked) next_question = Deadline::after(kSlurmInterval);
    const TopView view = load_view(*run, is_asked ? &scheduler : nullptr);
    print(*run, view, out);
    print_running_studies(out);
    if (out.is_json()) out.json(json_text(to_json_value(*run, view)));
    return view.is_certain && launch::is_over(view.life.life);
  });
}

}  // namespace stoker::cli
