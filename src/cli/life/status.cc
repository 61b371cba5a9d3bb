// `stoker status [RUN]`: docs/commands/status.md
#include <algorithm>
#include <optional>
#include <set>

#include "base/file.h"
#include "base/json/json.h"
#include "cli/commands.h"
#include "cli/life/jobs.h"
#include "cli/life/run_table.h"
#include "cli/remote/host.h"
#include "cli/sweep/study_status.h"
#include "launch/status/control.h"
#include "observe/idle_gpus.h"
#include "stoker/time.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

// Polling interval of --watch, with backoff while the scheduler does not answer.
constexpr Duration kFirstPause = 2s;
constexpr Duration kLongestPollInterval = 15s;
constexpr Duration kLongestBackoff = 60s;
constexpr Duration kTick = 200ms;
constexpr Duration kShortestIdle = 10s;

struct StatusOptions {
  RunChoice choice{.run = ""};
  HostChoice host;
  std::int64_t count = 20;
  bool is_watching = false;
  std::optional<Duration> idle_gpus;  ///< report GPUs that are idle for this long
  bool cancel_idle = false;
};

// Runs, or a job without a run.
struct View {
  std::vector<RunLine> runs;
  Target target;
  std::vector<launch::JobLife> jobs;
  std::vector<StudyLine> studies;  // of the current folder

  bool is_of_job() const { return !target.job.empty(); }
};

Result<std::vector<record::ListedRun>> newest(const StatusOptions& o) {
  // The first run creates the default folder.
  if (o.choice.runs != RunChoice{}.runs && !folder_exists(o.choice.runs))
    return not_found("status: {}: no such folder (--runs)", printable(o.choice.runs));
  STOKER_ASSIGN_OR_RETURN(all, record::list_runs(o.choice.runs));
  const auto count = static_cast<std::size_t>(o.count);
  if (all.size() > count) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count));
  return std::move(all);
}

Result<View> load_view(const StatusOptions& o, slurm::SlurmCommands& scheduler) {
  View view;
  if (o.choice.run.empty()) {
    STOKER_ASSIGN_OR_RETURN(listed, newest(o));
    view.runs = query_runs(listed, scheduler);
    view.studies = list_studies();
    return view;
  }
  STOKER_ASSIGN_OR_RETURN(target, find_target(o.choice));
  view.target = std::move(target);
  if (view.is_of_job()) {
    STOKER_ASSIGN_OR_RETURN(jobs, query_jobs(view.target, scheduler));
    view.jobs = std::move(jobs);
    return view;
  }
  const record::RunFolder& run = *view.target.run;
  view.runs = query_runs({{run.id(), run.folder(), run, {}}}, scheduler);
  const auto attempt = run.last_attempt();
  if (attempt.ok())
    view.runs[0].nodes = observe::read_live_nodes(*attempt, unix_seconds(RealClock().wall())).nodes;
  if (attempt.ok() && view.runs[0].life.life == launch::Life::done)
    view.runs[0].doubts = observe::attempt_suspect_lines(*attempt);
  return view;
}

void print(const View& view, const StatusOptions& o, Output& out) {
  if (view.is_of_job()) return print_jobs(view.target, view.jobs, out);
  if (view.runs.empty()) out.line("no runs in {}/ (--runs DIR selects a different folder)", o.choice.runs);
  if (!view.runs.empty()) print_runs(view.runs, out);
  for (const StudyLine& study : view.studies)
    out.line("{}  {}{}{}", printable(study.folder), printable(study.text), study.progress.empty() ? "" : "; ",
             study.progress);
}

std::string view_json(const View& view, const slurm::SlurmCommands& scheduler) {
  std::string text = format("{{\"runs\":{}", json_of(view.runs));
  if (view.is_of_job()) text += format(",\"jobs\":{}", json_of(view.jobs));
  if (!view.studies.empty()) {
    nlohmann::ordered_json studies = nlohmann::ordered_json::array();
    for (const StudyLine& study : view.studies)
      studies.push_back({{"folder", study.folder},
                         {"summary", study.text},
                         {"status", study.json.empty() ? nlohmann::ordered_json()
                                                       : parse_json<nlohmann::ordered_json>(study.json)}});
    text += format(",\"studies\":{}", json_text(studies));
  }
  return text + format(",\"scheduler\":{}}}", json_of(scheduler));
}

bool is_over(const View& view) {
  const bool are_jobs_over = std::all_of(view.jobs.begin(), view.jobs.end(),
                                         [](const auto& job) { return launch::is_over(job.life); });
  return are_jobs_over && std::all_of(view.runs.begin(), view.runs.end(), [](const RunLine& line) {
           // A run that was never started cannot end.
           return !line.problem.ok() || launch::is_over(line.life.life) ||
                  line.life.life == launch::Life::created;
         });
}

// The state without numbers that change every second.
std::string change_key(const View& view) {
  std::string key = view.is_of_job() ? summary_text(view.jobs) : "";
  for (const RunLine& line : view.runs) key += format("{} {} {}\n", line.id, state_of(line), note_of(line));
  for (const StudyLine& study : view.studies) key += study.text + "\n";
  return key;
}

std::string footer(const slurm::SlurmCommands& scheduler, Duration pause) {
  const slurm::SlurmCommands::Calls& calls = scheduler.calls();
  std::string asked = "Slurm not queried";
  if (calls.count > 0)
    asked =
        format("Slurm queried {}, {} in total", calls.count == 1 ? "once" : format("{} times", calls.count),
               rounded_duration(calls.spent));
  if (calls.count > 0 && scheduler.rate_limiter().per_second() > 0)
    asked += format(", {:.0f} queries left", scheduler.rate_limiter().left());
  return format("{}; next update in {}", asked, rounded_duration(pause));
}

// Reports the runs whose GPUs are idle, each once until one is used again, and cancels them if asked.
class IdleWatch {
 public:
  IdleWatch(Duration limit, bool is_cancelling) : limit_(limit), is_cancelling_(is_cancelling) {}

  void check(const std::vector<RunLine>& runs, slurm::SlurmCommands& scheduler, Output& out) {
    for (const RunLine& line : runs) {
      if (!line.folder || line.life.life != launch::Life::running) continue;
      const auto attempt = line.folder->last_attempt();
      if (!attempt.ok()) continue;
      const auto idle = observe::idle_gpus(*attempt, unix_seconds(RealClock().wall()));
      if (!idle || idle->seconds < Seconds(limit_).count()) {
        reported_.erase(line.id);
        continue;
      }
      if (!reported_.insert(line.id).second) continue;
      const std::string since =
          rounded_duration(std::chrono::duration_cast<Duration>(Seconds(idle->seconds)));
      out.note(
          "run {}: {} idle for {}{}", line.id,
          idle->gpus == 1 ? std::string("its GPU has been") : format("its {} GPUs have been", idle->gpus),
          since, is_cancelling_ ? "; cancelling it (--cancel-idle)" : "");
      if (is_cancelling_) cancel(*line.folder, scheduler, out);
      if (!is_cancelling_) out.note("  try: stoker top {}, or stoker cancel {}", line.id, line.id);
    }
  }

 private:
  static void cancel(const record::RunFolder& run, slurm::SlurmCommands& scheduler, Output& out) {
    const auto plan = launch::plan_cancel(run, scheduler, Deadline::after(kSchedulerTimeout));
    const Status status =
        plan.ok() ? launch::cancel(run, *plan, scheduler, Deadline::after(kSchedulerTimeout)) : plan.status();
    if (!status.ok()) out.note("{}", status.to_string());
  }

  const Duration limit_;
  const bool is_cancelling_;
  std::set<std::string> reported_;
};

void sleep(Duration pause) {
  const Deadline end = Deadline::after(pause);
  while (!end.passed() && !stop_requested()) RealClock().sleep(std::min(kTick, end.left()));
}

int watch(const StatusOptions& o, slurm::SlurmCommands& scheduler, Output& out) {
  install_stop_signals();
  std::string last_key;
  std::optional<IdleWatch> idle;
  if (o.idle_gpus) idle.emplace(*o.idle_gpus, o.cancel_idle);
  for (Duration pause = kFirstPause; !stop_requested();) {
    const auto view = load_view(o, scheduler);
    const bool is_answered = view.ok() || view.error().code() == Code::not_found;
    if (!view.ok() && is_answered) return out.fail(view.error());
    if (!view.ok()) out.note("{}", view.error().message());
    if (view.ok()) {
      const std::string key = change_key(*view);
      if (out.is_terminal()) out.raw("\x1b[H\x1b[2J");
      if (out.is_terminal() || key != last_key) print(*view, o, out);
      std::fflush(stdout);
      last_key = key;
      if (idle) idle->check(view->runs, scheduler, out);
      if (is_over(*view)) return exit_code::kOk;
    }
    if (out.is_terminal()) out.note("{}", footer(scheduler, pause));
    sleep(pause);
    pause = is_answered ? std::min(kLongestPollInterval, pause + pause / 4)
                        : std::min(kLongestBackoff, pause * 2);
  }
  return out.fail(cancelled("status: interrupted"));
}

}  // namespace

int status(std::span<const std::string> words, Output& out) {
  StatusOptions o;
  Arguments arguments("status", "Show state, progress and speed of runs, the newest last.");
  arguments.optional_positional(
      "RUN", &o.choice.run,
      "Show one run: run id, unique prefix, folder, 'last', or the id of any Slurm job");
  arguments.option("--runs", &o.choice.runs, "DIR", "Folder with the runs (the job's record.directory)");
  arguments.option("-n,--count", &o.count, "N", "Show the N newest runs");
  arguments.flag("-w,--watch", &o.is_watching, "Repeat until all runs have ended");
  arguments.option("--idle-gpus", &o.idle_gpus, "TIME",
                   "With --watch, report runs none of whose GPUs was used for this long (10m)");
  arguments.flag("--cancel-idle", &o.cancel_idle, "With --idle-gpus, also cancel these runs");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker status");
  arguments.example("stoker status last --watch");
  arguments.example("stoker status --watch --idle-gpus 10m");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_remote()) return run_on_host(o.host, "status", words, "", out);
  if (o.count < 1) return out.fail(invalid("status: --count {}: must be at least 1", o.count));
  if (o.idle_gpus && !o.is_watching)
    return out.fail(invalid("status: --idle-gpus needs --watch")
                        .cure("stoker status --watch --idle-gpus {}", duration_text(*o.idle_gpus)));
  if (o.idle_gpus && *o.idle_gpus < kShortestIdle)
    return out.fail(invalid("status: --idle-gpus {}: must be at least {}", duration_text(*o.idle_gpus),
                            duration_text(kShortestIdle)));
  if (o.cancel_idle && !o.idle_gpus)
    return out.fail(invalid("status: --cancel-idle needs --idle-gpus")
                        .cure("stoker status --watch --idle-gpus 10m --cancel-idle"));
  if (o.is_watching && out.is_json())
    return out.fail(invalid("status: --watch and --json exclude each other"));
  auto scheduler = make_scheduler();
  if (o.is_watching) return watch(o, scheduler, out);
  const auto view = load_view(o, scheduler);
  if (!view.ok()) return out.fail(view.error());
  print(*view, o, out);
  if (out.is_json()) out.json(view_json(*view, scheduler));
  return exit_code::kOk;
}

}  // namespace stoker::cli
