// `stoker status [RUN]`: docs/commands/status.md
#include <algorithm>

#include "base/file.h"
#include "base/time.h"
#include "cli/commands.h"
#include "cli/life/jobs.h"
#include "cli/life/run_table.h"
#include "cli/remote/host.h"

namespace stoker::cli {
namespace {

using namespace std::chrono_literals;

// Between two looks of --watch; a scheduler that gives no answer is left alone ever longer.
constexpr Duration kFirstPause = 2s;
constexpr Duration kLongestPause = 15s;
constexpr Duration kLongestSilence = 60s;
constexpr Duration kTick = 200ms;

struct StatusOptions {
  RunChoice choice{.run = ""};
  HostChoice host;
  std::int64_t count = 20;
  bool is_watching = false;
};

// What is shown: runs, or a job that is none.
struct View {
  std::vector<RunLine> runs;
  Target target;
  std::vector<launch::JobLife> jobs;

  bool is_of_job() const { return !target.job.empty(); }
};

Result<std::vector<record::ListedRun>> newest(const StatusOptions& o) {
  // The default is made by the first run.
  if (o.choice.runs != RunChoice{}.runs && !folder_exists(o.choice.runs))
    return not_found("status: {}: no such folder (--runs)", printable(o.choice.runs));
  OK_OR_RETURN(all, record::list_runs(o.choice.runs));
  const auto count = static_cast<std::size_t>(o.count);
  if (all.size() > count) all.erase(all.begin(), all.end() - static_cast<std::ptrdiff_t>(count));
  return std::move(all);
}

Result<View> look(const StatusOptions& o, slurm::SlurmCommands& scheduler) {
  View view;
  if (o.choice.run.empty()) {
    OK_OR_RETURN(listed, newest(o));
    view.runs = look_at_runs(listed, scheduler);
    return view;
  }
  OK_OR_RETURN(target, find_target(o.choice));
  view.target = std::move(target);
  if (view.is_of_job()) {
    OK_OR_RETURN(jobs, look_at(view.target, scheduler));
    view.jobs = std::move(jobs);
    return view;
  }
  const record::RunFolder& run = *view.target.run;
  view.runs = look_at_runs({{run.id(), run.folder(), run, {}}}, scheduler);
  const auto attempt = run.last_attempt();
  if (attempt.ok() && view.runs[0].life.life == launch::Life::done)
    view.runs[0].doubts = observe::doubts_of(*attempt);
  return view;
}

void print(const View& view, const StatusOptions& o, Output& out) {
  if (view.is_of_job()) return print_jobs(view.target, view.jobs, out);
  if (view.runs.empty()) out.line("no runs in {}/ (another folder: --runs DIR)", o.choice.runs);
  if (!view.runs.empty()) print_runs(view.runs, out);
}

std::string view_json(const View& view, const slurm::SlurmCommands& scheduler) {
  std::string text = format("{{\"runs\":{}", json_of(view.runs));
  if (view.is_of_job()) text += format(",\"jobs\":{}", json_of(view.jobs));
  return text + format(",\"scheduler\":{}}}", json_of(scheduler));
}

bool is_over(const View& view) {
  const bool are_jobs_over = std::all_of(view.jobs.begin(), view.jobs.end(),
                                         [](const auto& job) { return launch::is_over(job.life); });
  return are_jobs_over && std::all_of(view.runs.begin(), view.runs.end(), [](const RunLine& line) {
           // One that never began waits for nobody.
           return !line.problem.ok() || launch::is_over(line.life.life) ||
                  line.life.life == launch::Life::created;
         });
}

// What does not change by itself from second to second.
std::string gist_of(const View& view) {
  std::string gist = view.is_of_job() ? sentence(view.jobs) : "";
  for (const RunLine& line : view.runs) gist += format("{} {} {}\n", line.id, state_of(line), note_of(line));
  return gist;
}

std::string footer(const slurm::SlurmCommands& scheduler, Duration pause) {
  const slurm::SlurmCommands::Calls& calls = scheduler.calls();
  std::string asked = "Slurm not asked";
  if (calls.count > 0)
    asked = format("Slurm asked {}, {} in all", calls.count == 1 ? "once" : format("{} times", calls.count),
                   rounded_duration(calls.spent));
  if (calls.count > 0 && scheduler.budget().per_second() > 0)
    asked += format(", {:.0f} questions free", scheduler.budget().left());
  return format("{}; next look in {}", asked, rounded_duration(pause));
}

void sleep(Duration pause) {
  const Deadline end = Deadline::after(pause);
  while (!end.passed() && !stop_requested()) RealClock().sleep(std::min(kTick, end.left()));
}

int watch(const StatusOptions& o, slurm::SlurmCommands& scheduler, Output& out) {
  install_stop_signals();
  std::string told;
  for (Duration pause = kFirstPause; !stop_requested();) {
    const auto view = look(o, scheduler);
    const bool is_answered = view.ok() || view.error().code() == Code::not_found;
    if (!view.ok() && is_answered) return out.fail(view.error());
    if (!view.ok()) out.note("{}", view.error().message());
    if (view.ok()) {
      const std::string gist = gist_of(*view);
      if (out.is_terminal()) out.raw("\x1b[H\x1b[2J");
      if (out.is_terminal() || gist != told) print(*view, o, out);
      std::fflush(stdout);
      told = gist;
      if (is_over(*view)) return exit_code::kOk;
    }
    if (out.is_terminal()) out.note("{}", footer(scheduler, pause));
    sleep(pause);
    pause = is_answered ? std::min(kLongestPause, pause + pause / 4) : std::min(kLongestSilence, pause * 2);
  }
  return out.fail(cancelled("status: no longer watched"));
}

}  // namespace

int status(std::span<const std::string> words, Output& out) {
  StatusOptions o;
  Arguments arguments("status", "Shows runs at a glance, the newest last: state, progress, speed.");
  arguments.optional_positional(
      "RUN", &o.choice.run,
      "only this one: run id, a unique prefix of one, a folder, 'last', or the id of "
      "any job of Slurm");
  arguments.option("--runs", &o.choice.runs, "DIR",
                   "folder that holds the runs (the job's record.directory)");
  arguments.option("-n,--count", &o.count, "N", "show the newest N");
  arguments.flag("-w,--watch", &o.is_watching, "look again and again until all of them are over");
  add_host_choice(arguments, &o.host);
  arguments.example("stoker status");
  arguments.example("stoker status last --watch");
  if (const auto code = arguments.parse(words, out)) return *code;
  if (o.host.is_elsewhere()) return run_elsewhere(o.host, "status", words, "", out);
  if (o.count < 1) return out.fail(invalid("status: --count {}: must be at least 1", o.count));
  if (o.is_watching && out.is_json())
    return out.fail(invalid("status: --watch shows many states, --json prints one value"));
  auto scheduler = make_scheduler();
  if (o.is_watching) return watch(o, scheduler, out);
  const auto view = look(o, scheduler);
  if (!view.ok()) return out.fail(view.error());
  print(*view, o, out);
  if (out.is_json()) out.json(view_json(*view, scheduler));
  return exit_code::kOk;
}

}  // namespace stoker::cli
